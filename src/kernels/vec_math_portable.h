#pragma once

#include <cstdint>
#include <cstring>

namespace orthrus {
namespace {

/// 16 floats for any CPU, through the compiler's vector types: four parts of four lanes. Every
/// instruction set has such a type with the same members; the kernels are templates over it. It is
/// in an anonymous namespace so that nothing compiled for one instruction set can be linked into
/// another one's code.
struct VecPortable {
  using Part = float __attribute__((vector_size(16)));
  using IntPart = int32_t __attribute__((vector_size(16)));
  static constexpr int kParts = 4;
  /// Accumulators that a register tile may hold beside its operands.
  static constexpr int kAccumulators = 3;
  static constexpr int kMaxQueries = 3;

  Part part[kParts];

  template <typename Fn>
  static VecPortable make(Fn fn) {
    return {{fn(0), fn(1), fn(2), fn(3)}};
  }
  static VecPortable zero() { return broadcast(0.0f); }
  static VecPortable broadcast(float x) {
    return make([&](int) { return Part{x, x, x, x}; });
  }
  static VecPortable load(const float* p) {
    VecPortable v;
    std::memcpy(v.part, p, sizeof(v.part));
    return v;
  }
  void store(float* p) const { std::memcpy(p, part, sizeof(part)); }
  /// The first n < 16 lanes; the others are zero.
  static VecPortable load_first(const float* p, int n) {
    float lanes[16] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return load(lanes);
  }
  void store_first(float* p, int n) const {
    float lanes[16];
    store(lanes);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }
  /// 16 integers of 8 bits in order.
  static VecPortable load_i8(const void* p) {
    int8_t codes[16];
    std::memcpy(codes, p, sizeof(codes));
    return make([&](int i) {
      const int8_t* c = codes + 4 * i;
      return __builtin_convertvector((IntPart{c[0], c[1], c[2], c[3]}), Part);
    });
  }
  /// 16 pairs of bf16: the first of each pair, and the second.
  static void load_bf16_pairs(const void* p, VecPortable* first, VecPortable* second) {
    IntPart bits[kParts];
    std::memcpy(bits, p, sizeof(bits));
    *first = make([&](int i) { return (Part)(bits[i] << 16); });
    *second = make([&](int i) { return (Part)(bits[i] & static_cast<int32_t>(0xffff0000)); });
  }

  friend VecPortable operator+(const VecPortable& x, const VecPortable& y) {
    return make([&](int i) { return x.part[i] + y.part[i]; });
  }
  friend VecPortable operator-(const VecPortable& x, const VecPortable& y) {
    return make([&](int i) { return x.part[i] - y.part[i]; });
  }
  friend VecPortable operator*(const VecPortable& x, const VecPortable& y) {
    return make([&](int i) { return x.part[i] * y.part[i]; });
  }
  friend VecPortable operator/(const VecPortable& x, const VecPortable& y) {
    return make([&](int i) { return x.part[i] / y.part[i]; });
  }
  /// x * y + z; with one rounding where the instruction set has it.
  friend VecPortable mul_add(const VecPortable& x, const VecPortable& y, const VecPortable& z) {
    return make([&](int i) { return x.part[i] * y.part[i] + z.part[i]; });
  }
  /// y where either is NaN.
  friend VecPortable max(const VecPortable& x, const VecPortable& y) {
    return make([&](int i) { return select(x.part[i] > y.part[i], x.part[i], y.part[i]); });
  }
  friend VecPortable min(const VecPortable& x, const VecPortable& y) {
    return make([&](int i) { return select(x.part[i] < y.part[i], x.part[i], y.part[i]); });
  }
  /// Lanes [0, n) of x, the others of y. n may be outside [0, 16].
  static VecPortable select_first(int n, const VecPortable& x, const VecPortable& y) {
    return make([&](int i) {
      const int at = 4 * i;
      return select(IntPart{at, at + 1, at + 2, at + 3} < IntPart{n, n, n, n}, x.part[i],
                    y.part[i]);
    });
  }
  /// A bit a lane: x < y (false where either is NaN).
  friend uint32_t less_mask(const VecPortable& x, const VecPortable& y) {
    return mask([&](int i) { return x.part[i] < y.part[i]; });
  }
  friend uint32_t equal_mask(const VecPortable& x, const VecPortable& y) {
    return mask([&](int i) { return x.part[i] == y.part[i]; });
  }
  /// 2^n as a float for biased = n + 1.5 * 2^23, n in [-126, 127]; 0 for -127, inf for 128.
  static VecPortable power_of_two(const VecPortable& biased) {
    return make([&](int i) { return (Part)(((IntPart)biased.part[i] + 127) << 23); });
  }

 private:
  static Part select(IntPart condition, Part x, Part y) {
    return (Part)((condition & (IntPart)x) | (~condition & (IntPart)y));
  }
  template <typename Fn>
  static uint32_t mask(Fn fn) {
    IntPart bits = (fn(0) & IntPart{1, 2, 4, 8}) | (fn(1) & IntPart{16, 32, 64, 128}) |
                   (fn(2) & IntPart{256, 512, 1024, 2048}) |
                   (fn(3) & IntPart{4096, 8192, 16384, 32768});
    return static_cast<uint32_t>(bits[0] | bits[1] | bits[2] | bits[3]);
  }
};

}  // namespace
}  // namespace orthrus
