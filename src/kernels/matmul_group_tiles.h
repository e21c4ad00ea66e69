#pragma once

#include "kernels/matmul_tiles.h"

namespace orthrus {

inline constexpr int kStepQuads = static_cast<int>(kStep / kQuad);

/// -sum of the codes of the first or second 16 of a group.
template <int kHalf>
ORTHRUS_INLINE int32_t half_sum(const ActivationGroup& group) {
  return kHalf == 0 ? group.minus_half_sum : group.minus_sum - group.minus_half_sum;
}

/// Codes and scales of one panel, read from the packed form.
template <typename V, TensorType kType>
class PackedReader {
 public:
  using Bytes = typename V::Bytes;
  using Floats = typename V::Floats;
  static constexpr GroupForm kForm = group_form(kType);
  static constexpr bool kWideCodes = kForm.zero == 128;  // codes up to 255, else below 64
  static constexpr size_t kStepBytes = kForm.bytes() / static_cast<size_t>(kForm.chunk / kStep);

  ORTHRUS_INLINE explicit PackedReader(const std::byte* panel) : chunk_(panel) {}

  /// Before the first step of every chunk.
  ORTHRUS_INLINE void open() {
    if constexpr (kForm.two_level) {
      super_scale_ = V::load_f16(chunk_ + kForm.super_at());
      if constexpr (kForm.has_offset)
        super_offset_ = V::load_f16(chunk_ + kForm.super_at() + 2 * kLanes);
    }
  }
  /// After its last step.
  ORTHRUS_INLINE void close() { chunk_ += kForm.bytes(); }

  /// Asks for the step's share of what lies kPrefetchBytes ahead. Panels follow each other, so that
  /// this runs into the next one. Non-temporal: it shall not displace the activations.
  ORTHRUS_INLINE void prefetch(int64_t step) const {
    unrolled<static_cast<int>((kStepBytes + 63) / 64)>([&](auto line) ORTHRUS_INLINE_LAMBDA {
      __builtin_prefetch(chunk_ + static_cast<size_t>(step) * kStepBytes + line.value * 64 +
                             V::kGroupPrefetchBytes,
                         0, 0);
    });
  }

  /// Quad kQuadOfStep (0 to 7) of a step.
  template <int kQuadOfStep>
  ORTHRUS_INLINE Bytes codes(int64_t step) const {
    Bytes low = plane<kForm.low_bits, kQuadOfStep>(chunk_, step);
    if constexpr (kForm.lookup) return V::lookup(kIq4Codes.data(), low);
    if constexpr (kForm.high_bits == 0) {
      return low;
    } else {
      return V::template merge<kForm.low_bits>(
          low, plane<kForm.high_bits, kQuadOfStep>(chunk_ + kForm.high_at(), step));
    }
  }

  ORTHRUS_INLINE Floats scale(int64_t group) const {
    const std::byte* at = chunk_ + kForm.scales_at();
    if constexpr (!kForm.two_level) return V::load_f16(at + group * kLanes * 2);
    if constexpr (kForm.nibble_scales()) {
      return V::mul(super_scale_, V::load_low_nibbles(at + group * kLanes));
    }
    return V::mul(super_scale_, V::load_i8(at + group * kLanes));
  }

  ORTHRUS_INLINE Floats offset(int64_t group) const {
    const std::byte* at = chunk_ + kForm.offsets_at();
    if constexpr (!kForm.two_level) return V::load_f16(at + group * kLanes * 2);
    if constexpr (kForm.nibble_scales()) {
      return V::mul(super_offset_,
                    V::load_high_nibbles(chunk_ + kForm.scales_at() + group * kLanes));
    }
    return V::mul(super_offset_, V::load_i8(at + group * kLanes));
  }

 private:
  template <int kBits, int kQuadOfStep>
  static ORTHRUS_INLINE Bytes plane(const std::byte* plane, int64_t step) {
    constexpr int kPerRegister = 8 / kBits;
    const std::byte* at =
        plane + step * (kStepQuads / kPerRegister * 64) + kQuadOfStep / kPerRegister * 64;
    return V::template field<kQuadOfStep % kPerRegister * kBits, kBits>(V::load_bytes(at));
  }

  const std::byte* chunk_;
  Floats super_scale_;
  Floats super_offset_;
};

/// Adds the products of one group of a step to acc. Per row: exact integer sum of code *
/// activation, minus zero * sum of activations, to float, times the activations' scale, then one
/// fused multiply-add with the weights' scale, and one for the offset. `x` are the rows' groups.
template <typename V, typename Reader, int kGroupOfStep, int kRows>
ORTHRUS_INLINE void add_group(const Reader& reader, int64_t step, const ActivationGroup* x,
                              typename V::Floats (&acc)[kRows]) {
  using Dot = typename V::template Dot<Reader::kWideCodes>;
  constexpr GroupForm kForm = Reader::kForm;
  constexpr int kQuads = kForm.group / static_cast<int>(kQuad);
  constexpr bool kWholeStep = kForm.group == kStep;
  typename V::Ints products[kRows];
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    const ActivationGroup& group = x[i.value];
    if constexpr (kForm.zero == 0) {
      products[i.value] = V::template splat_times<1>(0);
    } else if constexpr (kWholeStep) {
      products[i.value] = V::template splat_times<kForm.zero>(group.minus_sum);
    } else {
      products[i.value] = V::template splat_times<kForm.zero>(half_sum<kGroupOfStep>(group));
    }
  });
  unrolled<kQuads>([&](auto q) ORTHRUS_INLINE_LAMBDA {
    constexpr int kAt = kGroupOfStep * kQuads + q.value;
    const auto codes = reader.template codes<kAt>(step);
    unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
      products[i.value] =
          Dot::add(products[i.value], codes, Dot::load(x[i.value].codes + kAt * kQuad));
    });
  });
  const int64_t at = step * (kStep / kForm.group) + kGroupOfStep;
  const auto scale = reader.scale(at);
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    const auto product = V::mul(V::to_floats(products[i.value]), V::splat(x[i.value].scale));
    acc[i.value] = V::fma(product, scale, acc[i.value]);
  });
  if constexpr (kForm.has_offset) {
    const auto offset = reader.offset(at);
    unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
      const ActivationGroup& group = x[i.value];
      const float sum = kWholeStep
                            ? group.scaled_sum
                            : group.scale * static_cast<float>(-half_sum<kGroupOfStep>(group));
      acc[i.value] = V::minus_product(offset, V::splat(sum), acc[i.value]);
    });
  }
}

/// kRows rows of one panel. Codes go from the packed form to the products within registers.
template <typename V, TensorType kType, int kRows>
void group_tile(const MatmulJob& job, int64_t row, int64_t panel) {
  using Reader = PackedReader<V, kType>;
  Reader reader(job.panels + static_cast<size_t>(panel) * job.panel_bytes);
  const ActivationGroup* x = job.groups + row;
  const int64_t chunks = panel_chunks(Reader::kForm, job.cols);
  typename V::Floats acc[kRows];
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA { acc[i.value] = V::zero(); });
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    reader.open();
    for (int64_t step = 0; step < Reader::kForm.chunk / kStep; ++step, x += job.group_stride) {
      reader.prefetch(step);
      unrolled<kStep / Reader::kForm.group>([&](auto g) ORTHRUS_INLINE_LAMBDA {
        add_group<V, Reader, g.value, kRows>(reader, step, x, acc);
      });
    }
    reader.close();
  }
  alignas(64) float sums[kRows * kLanes];
  unrolled<kRows>([&](auto i)
                      ORTHRUS_INLINE_LAMBDA { V::store(sums + i.value * kLanes, acc[i.value]); });
  store_sums<V>(job, row, kRows, panel, kLanes, sums);
}

/// One panel at a time, so that memory is read in one run over all the panels of a thread; the rows
/// after the first tile find it in the cache.
template <typename V, TensorType kType>
void run_groups(const MatmulJob& job, int64_t begin, int64_t end) {
  for (; begin < end; ++begin) {
    for_row_tiles<V::kGroupRows>(
        0, job.rows, [&](int64_t row, int64_t height) ORTHRUS_INLINE_LAMBDA {
          with_height<V::kGroupRows>(height, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
            group_tile<V, kType, rows.value>(job, row, begin);
          });
        });
  }
}

}  // namespace orthrus
