// Time of the matmuls of a qwen3-0.6b pass against the machine's own limits.
//   orthrus_matmul_bench [threads] [layers] [repetitions] [format]
// Each call (one parallel section) is timed alone and its least time over the repetitions is
// summed, so that other work on the machine disturbs little. Formats and row counts are
// interleaved.

#include <immintrin.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/matmul.h"

namespace {

using namespace orthrus;

// With one thread the time is the thread's own, which other work on the machine does not stretch.
bool own_time = false;

double now() {
  timespec time;
  clock_gettime(own_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& fn) {
  const double begin = now();
  fn();
  return now() - begin;
}

// Sums 64-byte lines; the result keeps the loop alive.
__attribute__((target("avx512f"))) int64_t read_lines(const std::byte* data, size_t bytes) {
  __m512i sums[8] = {};
  for (size_t at = 0; at < bytes; at += 512) {
    for (int i = 0; i < 8; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(data + at + i * 64 + 2048), _MM_HINT_T0);
      sums[i] = _mm512_add_epi64(sums[i], _mm512_loadu_si512(data + at + i * 64));
    }
  }
  for (int i = 1; i < 8; ++i) sums[0] = _mm512_add_epi64(sums[0], sums[i]);
  int64_t lanes[8];
  _mm512_storeu_si512(lanes, sums[0]);
  return lanes[0] ^ lanes[7];
}

constexpr int kChains = 16;
constexpr int kSpins = 20000;

__attribute__((target("avx512f"))) float spin_floats() {
  __m512 sums[kChains];
  for (auto& s : sums) s = _mm512_set1_ps(1.0f);
  __m512 a = _mm512_set1_ps(0.5f);
  for (int i = 0; i < kSpins; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) sums[j] = _mm512_fmadd_ps(sums[j], a, a);
    asm volatile("" : "+v"(a));
  }
  float total = 0;
  for (auto& s : sums) total += s[0];
  return total;
}

__attribute__((target("avx512f,avx512vnni"))) int spin_ints() {
  __m512i sums[kChains];
  for (auto& s : sums) s = _mm512_set1_epi32(1);
  __m512i a = _mm512_set1_epi8(3);
  for (int i = 0; i < kSpins; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < kChains; ++j) sums[j] = _mm512_dpbusd_epi32(sums[j], a, a);
    asm volatile("" : "+v"(a));
  }
  int total = 0;
  for (auto& s : sums) total += static_cast<int>(s[0]);
  return total;
}

struct Limits {
  double bytes_per_second;
  double float_products;  // multiply-adds a second, all threads
  double int_products;
};

Limits measure(ThreadPool& pool) {
  AlignedBuffer memory(size_t{512} << 20);
  pool.parallel_for(static_cast<int64_t>(memory.size() >> 12), [&](int64_t begin, int64_t end) {
    std::memset(memory.data() + (begin << 12), 1, static_cast<size_t>(end - begin) << 12);
  });
  constexpr size_t kSlice = size_t{16} << 20;
  std::vector<double> slices(memory.size() / kSlice, 1e9);
  double floats = 1e9;
  double ints = 1e9;
  volatile double sink = 0;
  for (int repetition = 0; repetition < 12; ++repetition) {
    for (size_t s = 0; s < slices.size(); ++s) {
      slices[s] =
          std::min(slices[s], seconds_of([&] {
                     pool.run([&](int t) {
                       const size_t part = kSlice / static_cast<size_t>(pool.size());
                       sink = sink + static_cast<double>(read_lines(
                                         memory.data() + s * kSlice + part * static_cast<size_t>(t),
                                         part / 512 * 512));
                     });
                   }));
    }
    floats =
        std::min(floats, seconds_of([&] { pool.run([&](int) { sink = sink + spin_floats(); }); }));
    ints = std::min(ints, seconds_of([&] { pool.run([&](int) { sink = sink + spin_ints(); }); }));
  }
  double total = 0;
  for (double s : slices) total += s;
  const double spins = static_cast<double>(pool.size()) * kSpins * kChains;
  return {static_cast<double>(memory.size()) / total, spins * 16 / floats, spins * 64 / ints};
}

struct Call {
  std::vector<PackedMatrix> weights;  // of one parallel section
};

PackedMatrix random_matrix(int64_t rows, int64_t cols, TensorType type, WeightFormat format,
                           ThreadPool& pool, WeightArena& arena) {
  std::vector<std::byte> bytes(static_cast<size_t>(rows) * row_bytes(type, cols));
  std::mt19937 random(1);
  for (size_t at = 0; at < bytes.size(); at += traits(type).block_bytes) {
    const uint32_t bits = random();
    std::memset(bytes.data() + at, static_cast<int>(bits & 0x77), traits(type).block_bytes);
    if (traits(type).block_elements > 1) {  // sane scales at either end of a block
      const uint16_t scale = 0x1c00 | (bits >> 8 & 255);
      std::memcpy(bytes.data() + at, &scale, 2);
      std::memcpy(bytes.data() + at + traits(type).block_bytes - 2, &scale, 2);
    } else {
      const uint16_t value = static_cast<uint16_t>(0x3c00 | (bits & 0x81ff));
      std::memcpy(bytes.data() + at, &value, 2);
    }
  }
  return pack({.type = type, .data = bytes, .rows = rows, .cols = cols}, format, pool, &arena);
}

struct Model {
  WeightArena arena;
  std::vector<Call> calls;
  double bytes = 0;
  double products = 0;  // a row

  Model(TensorType type, WeightFormat format, int layers, ThreadPool& pool) {
    auto add = [&](std::vector<std::pair<int64_t, int64_t>> shapes) {
      Call call;
      for (auto [rows, cols] : shapes) {
        call.weights.push_back(random_matrix(rows, cols, type, format, pool, arena));
        bytes += static_cast<double>(call.weights.back().bytes());
        products += static_cast<double>(rows * cols);
      }
      calls.push_back(std::move(call));
    };
    for (int l = 0; l < layers; ++l) {
      add({{2048, 1024}, {1024, 1024}, {1024, 1024}});
      add({{1024, 2048}});
      add({{3072, 1024}, {3072, 1024}});
      add({{1024, 3072}});
    }
    add({{151936 / 4, 1024}});  // a quarter of the head: enough to be memory-bound
  }
};

struct Format {
  const char* name;
  TensorType type;
  WeightFormat format;
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int layers = argc > 2 ? std::atoi(argv[2]) : 4;
  const int repetitions = argc > 3 ? std::atoi(argv[3]) : 9;
  const std::string only = argc > 4 ? argv[4] : "bf16,q8,q4";
  const std::vector<Format> all = {{"f32", TensorType::kBF16, WeightFormat::kF32},
                                   {"bf16", TensorType::kBF16, WeightFormat::kAuto},
                                   {"f16", TensorType::kF16, WeightFormat::kAuto},
                                   {"q8", TensorType::kBF16, WeightFormat::kQ8},
                                   {"q4", TensorType::kBF16, WeightFormat::kQ4},
                                   {"Q4_1", TensorType::kQ4_1, WeightFormat::kAuto},
                                   {"Q5_0", TensorType::kQ5_0, WeightFormat::kAuto},
                                   {"Q5_1", TensorType::kQ5_1, WeightFormat::kAuto},
                                   {"Q2_K", TensorType::kQ2_K, WeightFormat::kAuto},
                                   {"Q3_K", TensorType::kQ3_K, WeightFormat::kAuto},
                                   {"Q4_K", TensorType::kQ4_K, WeightFormat::kAuto},
                                   {"Q5_K", TensorType::kQ5_K, WeightFormat::kAuto},
                                   {"Q6_K", TensorType::kQ6_K, WeightFormat::kAuto},
                                   {"IQ4_NL", TensorType::kIQ4_NL, WeightFormat::kAuto}};
  const std::vector<int64_t> row_counts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};

  own_time = threads == 1;
  ThreadPool pool(threads);
  const Isa isa = choose_isa();
  const ComputeContext context{isa, pool};
  const Limits limits = measure(pool);
  std::printf("%s, %d threads: read %.1f GB/s, f32 %.0f GFLOP/s, int8 %.0f GOP/s\n",
              std::string(isa_name(isa)).c_str(), threads, limits.bytes_per_second / 1e9,
              2 * limits.float_products / 1e9, 2 * limits.int_products / 1e9);

  constexpr int64_t kMostRows = 64;
  std::vector<float> x(kMostRows * 3104);
  std::mt19937 random(2);
  for (float& v : x) v = std::normal_distribution<float>()(random);
  std::vector<float> out(kMostRows * 40000);
  for (const Format& format : all) {
    if (("," + only + ",").find("," + std::string(format.name) + ",") == std::string::npos)
      continue;
    const Model model(format.type, format.format, layers, pool);
    std::vector<std::vector<double>> best(row_counts.size(),
                                          std::vector<double>(model.calls.size(), 1e9));
    double quantising = 1e9;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      for (size_t r = 0; r < row_counts.size(); ++r) {
        for (size_t c = 0; c < model.calls.size(); ++c) {
          const Call& call = model.calls[c];
          const int64_t cols = call.weights[0].cols();
          static Activations activations;
          double q = seconds_of([&] {
            activations.set(context, x.data(), cols + 16, row_counts[r], cols,
                            activation_forms(call.weights[0]));
          });
          if (r == 0 && c == 0) quantising = std::min(quantising, q);
          std::vector<MatmulTask> tasks;
          float* to = out.data();
          for (const PackedMatrix& w : call.weights) {
            tasks.push_back({&w, 0, row_counts[r], to, w.rows()});
            to += row_counts[r] * w.rows();
          }
          best[r][c] =
              std::min(best[r][c], seconds_of([&] { matmul(context, activations, tasks); }));
        }
      }
    }
    const bool integer = activation_forms(model.calls[0].weights[0]).groups;
    const double peak = integer ? limits.int_products : limits.float_products;
    std::printf("%-7s %5.2f bits, one row of 1024 quantised in %.2f us\n", format.name,
                model.calls[0].weights[0].bits_per_weight(), quantising * 1e6);
    for (size_t r = 0; r < row_counts.size(); ++r) {
      double total = 0;
      for (double b : best[r]) total += b;
      const double rows = static_cast<double>(row_counts[r]);
      const double limit =
          std::max(model.bytes / limits.bytes_per_second, model.products * rows / peak);
      std::printf("  rows %2.0f: %7.3f ms, %5.1f GB/s, %6.0f GOP/s, %.2f of the limit\n", rows,
                  total * 1e3, model.bytes / total / 1e9, 2 * model.products * rows / total / 1e9,
                  total / limit);
    }
  }
}
