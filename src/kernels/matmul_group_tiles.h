#pragma once

#include "kernels/matmul_tiles.h"

namespace orthrus {

inline constexpr int kStepQuads = static_cast<int>(kStep / kQuad);

/// Codes and scales of one panel, read from the packed form.
template <typename V, TensorType kType>
class PackedReader {
 public:
  using Bytes = typename V::Bytes;
  using Floats = typename V::Floats;
  static constexpr GroupForm kForm = group_form(kType);
  static constexpr int kGroup = kForm.group;
  static constexpr bool kHasOffset = kForm.has_offset;
  static constexpr bool kWideCodes = kForm.zero == 128;  // codes up to 255, else below 64
  static constexpr int64_t kChunk = kForm.chunk;

  ORTHRUS_INLINE explicit PackedReader(const std::byte* panel) : chunk_(panel) {}

  /// Before the first step of every chunk.
  ORTHRUS_INLINE void open() {
    if constexpr (kForm.two_level) {
      super_scale_ = V::load_f16(chunk_ + kForm.super_at());
      if constexpr (kHasOffset) super_offset_ = V::load_f16(chunk_ + kForm.super_at() + 2 * kLanes);
    }
  }
  /// After its last step.
  ORTHRUS_INLINE void close() { chunk_ += kForm.bytes(); }

  ORTHRUS_INLINE void prefetch(int64_t step) const {
    constexpr size_t kStepBytes = kForm.bytes() / static_cast<size_t>(kChunk / kStep);
    unrolled<static_cast<int>((kStepBytes + 63) / 64)>([&](auto line) ORTHRUS_INLINE_LAMBDA {
      __builtin_prefetch(chunk_ + static_cast<size_t>(step) * kStepBytes + line.value * 64 +
                         V::kPrefetchBytes);
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

/// 256 inputs of one panel taken apart once for many rows: a byte a code, scales as floats.
struct UnpackedPanel {
  static constexpr int64_t kInputs = 256;
  alignas(64) uint8_t codes[kInputs / kQuad][64];
  alignas(64) float scale[kInputs / 16][kLanes];
  alignas(64) float offset[kInputs / 16][kLanes];
};

/// What the loop over an unpacked panel depends on: types that agree share its code.
template <int kGroupSize, bool kOffset, bool kWide>
struct UnpackedShape {
  static constexpr int kGroup = kGroupSize;
  static constexpr bool kHasOffset = kOffset;
  static constexpr bool kWideCodes = kWide;
};
template <typename V, TensorType kType>
using UnpackedShapeOf =
    UnpackedShape<PackedReader<V, kType>::kGroup, PackedReader<V, kType>::kHasOffset,
                  PackedReader<V, kType>::kWideCodes>;

/// The same reading as PackedReader's, from an unpacked panel.
template <typename V, typename Shape>
class UnpackedReader {
 public:
  static constexpr int kGroup = Shape::kGroup;
  static constexpr bool kHasOffset = Shape::kHasOffset;
  static constexpr bool kWideCodes = Shape::kWideCodes;
  static constexpr int64_t kChunk = kStep;

  ORTHRUS_INLINE explicit UnpackedReader(const UnpackedPanel& panel)
      : codes_(panel.codes[0]), scale_(panel.scale[0]), offset_(panel.offset[0]) {}
  ORTHRUS_INLINE void open() {}
  ORTHRUS_INLINE void close() {
    codes_ += kStepQuads * 64;
    scale_ += kStep / kGroup * kLanes;
    offset_ += kStep / kGroup * kLanes;
  }
  ORTHRUS_INLINE void prefetch(int64_t) const {}
  template <int kQuadOfStep>
  ORTHRUS_INLINE typename V::Bytes codes(int64_t) const {
    return V::load_bytes(codes_ + kQuadOfStep * 64);
  }
  ORTHRUS_INLINE typename V::Floats scale(int64_t group) const {
    return V::load(scale_ + group * kLanes);
  }
  ORTHRUS_INLINE typename V::Floats offset(int64_t group) const {
    return V::load(offset_ + group * kLanes);
  }

 private:
  const uint8_t* codes_;
  const float* scale_;
  const float* offset_;
};

/// Quantised rows from some input on (a multiple of 32).
struct GroupRows {
  const int8_t* codes;
  int64_t code_stride;
  const ActivationGroup* groups;
  int64_t group_stride;
};

/// Adds the products of `chunks` chunks to sums [kRows][kPanels * 16]. Per group and output: exact
/// integer sum of code * activation, minus zero * sum of activations, to float, times the
/// activations' scale, then one fused multiply-add with the weights' scale, and one for the offset.
template <typename V, typename Reader, int kRows, int kPanels>
ORTHRUS_INLINE void group_tile(Reader* readers, GroupRows x, int zero, int64_t chunks,
                               float* sums) {
  using Dot = typename V::template Dot<Reader::kWideCodes>;
  constexpr int kGroups = static_cast<int>(kStep) / Reader::kGroup;  // of a step
  constexpr int kQuads = Reader::kGroup / static_cast<int>(kQuad);   // of a group
  typename V::Floats acc[kRows][kPanels];
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
      acc[i.value][p.value] = V::load(sums + (i.value * kPanels + p.value) * kLanes);
    });
  });
  auto add_group = [&](auto g, int64_t step) ORTHRUS_INLINE_LAMBDA {
    typename V::Ints products[kRows][kPanels];
    unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
      const ActivationGroup& group = x.groups[i.value * x.group_stride];
      const int32_t* sum = kGroups == 1 ? &group.minus_sum : &group.half_minus_sum[g.value];
      const auto start = V::splat(*sum * zero);
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA { products[i.value][p.value] = start; });
    });
    unrolled<kQuads>([&](auto q) ORTHRUS_INLINE_LAMBDA {
      constexpr int kAt = g.value * kQuads + q.value;
      typename V::Bytes codes[kPanels];
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        codes[p.value] = readers[p.value].template codes<kAt>(step);
      });
      unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
        const auto inputs = Dot::load(x.codes + i.value * x.code_stride + kAt * kQuad);
        unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
          products[i.value][p.value] = Dot::add(products[i.value][p.value], codes[p.value], inputs);
        });
      });
    });
    const int64_t at = step * kGroups + g.value;
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
      const auto scale = readers[p.value].scale(at);
      unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
        const auto input_scale = V::splat(x.groups[i.value * x.group_stride].scale);
        const auto product = V::mul(V::to_floats(products[i.value][p.value]), input_scale);
        acc[i.value][p.value] = V::fma(product, scale, acc[i.value][p.value]);
      });
    });
    if constexpr (Reader::kHasOffset) {
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        const auto offset = readers[p.value].offset(at);
        unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
          const ActivationGroup& group = x.groups[i.value * x.group_stride];
          const auto sum =
              V::splat(kGroups == 1 ? group.scaled_sum : group.half_scaled_sum[g.value]);
          acc[i.value][p.value] = V::minus_product(offset, sum, acc[i.value][p.value]);
        });
      });
    }
  };
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA { readers[p.value].open(); });
    for (int64_t step = 0; step < Reader::kChunk / kStep; ++step) {
      if constexpr (kRows <= V::kPrefetchRows) {
        unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA { readers[p.value].prefetch(step); });
      }
      unrolled<kGroups>([&](auto g) ORTHRUS_INLINE_LAMBDA { add_group(g, step); });
      x.codes += kStep;
      ++x.groups;
    }
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA { readers[p.value].close(); });
  }
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
      V::store(sums + (i.value * kPanels + p.value) * kLanes, acc[i.value][p.value]);
    });
  });
}

/// Readers of kPanels panels, made by make(panel index).
template <typename Reader, typename Make, int... kIndices>
ORTHRUS_INLINE auto make_readers(Make&& make, std::integer_sequence<int, kIndices...>) {
  struct Readers {
    Reader at[sizeof...(kIndices)];
  };
  return Readers{{Reader(make(kIndices))...}};
}

template <typename V>
ORTHRUS_INLINE GroupRows rows_from(const MatmulJob& job, int64_t row, int64_t k) {
  return {job.codes + row * job.code_stride + k, job.code_stride,
          job.groups + row * job.group_stride + k / kStep, job.group_stride};
}

/// Few rows: codes go from the packed form to the products within registers.
template <typename V, TensorType kType, int kRows, int kPanels>
void packed_tile(const MatmulJob& job, int64_t row, int64_t panel) {
  using Reader = PackedReader<V, kType>;
  const std::byte* panels = job.panels + static_cast<size_t>(panel) * job.panel_bytes;
  auto readers = make_readers<Reader>(
      [&](int p)
          ORTHRUS_INLINE_LAMBDA { return panels + static_cast<size_t>(p) * job.panel_bytes; },
      std::make_integer_sequence<int, kPanels>{});
  alignas(64) float sums[kRows * kPanels * kLanes] = {};
  group_tile<V, Reader, kRows, kPanels>(readers.at, rows_from<V>(job, row, 0), Reader::kForm.zero,
                                        panel_chunks(Reader::kForm, job.cols), sums);
  store_sums<V>(job, row, kRows, panel, kPanels * kLanes, sums);
}

/// Products of one unpacked block of inputs.
template <typename V, typename Shape, int kRows, int kPanels>
void unpacked_tile(const UnpackedPanel* panels, GroupRows x, int zero, int64_t inputs,
                   float* sums) {
  using Reader = UnpackedReader<V, Shape>;
  auto readers = make_readers<Reader>(
      [&](int p) ORTHRUS_INLINE_LAMBDA -> const UnpackedPanel& { return panels[p]; },
      std::make_integer_sequence<int, kPanels>{});
  group_tile<V, Reader, kRows, kPanels>(readers.at, x, zero, inputs / kStep, sums);
}

/// Takes `chunks` chunks of a panel apart.
template <typename V, TensorType kType>
ORTHRUS_INLINE void unpack_panel(PackedReader<V, kType>& reader, int64_t chunks,
                                 UnpackedPanel& out) {
  constexpr GroupForm kForm = group_form(kType);
  int64_t step_at = 0;
  int64_t group_at = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    reader.open();
    for (int64_t step = 0; step < kForm.chunk / kStep; ++step, ++step_at) {
      unrolled<kStepQuads>([&](auto q) ORTHRUS_INLINE_LAMBDA {
        V::store_bytes(out.codes[step_at * kStepQuads + q.value],
                       reader.template codes<q.value>(step));
      });
    }
    for (int64_t g = 0; g < kForm.groups(); ++g, ++group_at) {
      V::store(out.scale[group_at], reader.scale(g));
      if constexpr (kForm.has_offset) V::store(out.offset[group_at], reader.offset(g));
    }
    reader.close();
  }
}

/// Many rows: a block of inputs is taken apart once, then meets all rows while it lies in L1.
template <typename V, TensorType kType, int kPanels>
void unpacked_rows(const MatmulJob& job, int64_t row, int64_t rows, int64_t panel) {
  constexpr int64_t kWidth = kPanels * kLanes;
  constexpr GroupForm kForm = group_form(kType);
  const std::byte* panels = job.panels + static_cast<size_t>(panel) * job.panel_bytes;
  auto readers = make_readers<PackedReader<V, kType>>(
      [&](int p)
          ORTHRUS_INLINE_LAMBDA { return panels + static_cast<size_t>(p) * job.panel_bytes; },
      std::make_integer_sequence<int, kPanels>{});
  UnpackedPanel unpacked[kPanels];
  alignas(64) float sums[V::kBlockRows * kWidth] = {};
  const int64_t padded = panel_chunks(kForm, job.cols) * kForm.chunk;
  for (int64_t k = 0; k < padded; k += UnpackedPanel::kInputs) {
    const int64_t inputs =
        padded - k < UnpackedPanel::kInputs ? padded - k : UnpackedPanel::kInputs;
    for (int p = 0; p < kPanels; ++p) {
      unpack_panel<V, kType>(readers.at[p], inputs / kForm.chunk, unpacked[p]);
    }
    for_row_tiles<V::kGroupRows>(0, rows, [&](int64_t first, int64_t height) ORTHRUS_INLINE_LAMBDA {
      with_height<V::kGroupRows>(height, [&](auto h) ORTHRUS_INLINE_LAMBDA {
        unpacked_tile<V, UnpackedShapeOf<V, kType>, h.value, kPanels>(
            unpacked, rows_from<V>(job, row + first, k), kForm.zero, inputs, sums + first * kWidth);
      });
    });
  }
  store_sums<V>(job, row, rows, panel, kWidth, sums);
}

template <typename V, TensorType kType, int kPanels>
void group_panels(const MatmulJob& job, int64_t panel) {
  if (job.rows <= V::kDirectRows) {
    with_height<V::kDirectRows>(job.rows, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
      packed_tile<V, kType, rows.value, kPanels>(job, 0, panel);
    });
    return;
  }
  for_row_tiles<V::kBlockRows>(0, job.rows, [&](int64_t row, int64_t rows) ORTHRUS_INLINE_LAMBDA {
    unpacked_rows<V, kType, kPanels>(job, row, rows, panel);
  });
}

template <typename V, TensorType kType>
void run_groups(const MatmulJob& job, int64_t begin, int64_t end) {
  for (; begin + V::kGroupPanels <= end; begin += V::kGroupPanels) {
    group_panels<V, kType, V::kGroupPanels>(job, begin);
  }
  for (; begin < end; ++begin) group_panels<V, kType, 1>(job, begin);
}

}  // namespace orthrus
