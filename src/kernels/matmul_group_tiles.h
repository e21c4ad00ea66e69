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
  static constexpr int kMostCode =
      kForm.lookup ? 255 : (1 << (kForm.low_bits + kForm.high_bits)) - 1;
  static constexpr size_t kStepBytes = kForm.bytes() / static_cast<size_t>(kForm.chunk / kStep);

  PackedReader() = default;
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

  /// Asks for the step's share of what lies kGroupPrefetchBytes ahead. Panels follow each other, so
  /// that this runs into the next one. Non-temporal: it shall not displace the activations.
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

/// V::Dot<kMostCode> multiplies quads of codes (at most kMostCode) with inputs: Sums take the
/// products of kQuads quads, total() adds them to what was before, and where kSigned, weights() has
/// taken the zero point 128 from the codes. This is its part where an instruction adds a quad's
/// products to 32-bit sums.
template <typename V>
struct DirectDot {
  using Ints = typename V::Ints;
  using Sums = Ints;
  using Bytes = typename V::Bytes;
  using Weights = Bytes;
  static constexpr int kQuads = kStepQuads;
  static constexpr bool kSigned = false;
  static ORTHRUS_INLINE const Sums& start(const Ints& before) { return before; }
  static ORTHRUS_INLINE const Ints& total(const Ints&, const Sums& sums) { return sums; }
  static ORTHRUS_INLINE const Bytes& weights(const Bytes& codes) { return codes; }
};

/// Adds the products of one group of a step to acc. Per row: exact integer sum of code *
/// activation, minus zero * sum of activations, to float, times the activations' scale, then one
/// fused multiply-add with the weights' scale, and one for the offset. `x` are the rows' groups.
template <typename V, typename Reader, int kGroupOfStep, int kRows, int kPanels>
ORTHRUS_INLINE void add_group(const Reader (&readers)[kPanels], int64_t step,
                              const ActivationGroup* x, typename V::Floats (&acc)[kRows][kPanels]) {
  using Dot = typename V::template Dot<Reader::kMostCode>;
  constexpr GroupForm kForm = Reader::kForm;
  constexpr int kQuads = kForm.group / static_cast<int>(kQuad);
  constexpr bool kWholeStep = kForm.group == kStep;
  static_assert(!Dot::kSigned || kForm.zero == 128);
  constexpr bool kShifted = kForm.zero != 0 && !Dot::kSigned;  // codes have the zero in them
  constexpr int kFactor = kShifted ? kForm.zero : 1;
  typename V::Ints products[kRows][kPanels];
  ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
    const ActivationGroup& group = x[i];
    int32_t sum = 0;
    if constexpr (kShifted) sum = kWholeStep ? group.minus_sum : half_sum<kGroupOfStep>(group);
    const auto start = V::template splat_times<kFactor>(sum);
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) products[i][p] = start;
  }
  constexpr int kRun = kQuads < Dot::kQuads ? kQuads : Dot::kQuads;  // quads of one Dot::Sums
  unrolled<(kQuads + kRun - 1) / kRun>([&](auto run) ORTHRUS_INLINE_LAMBDA {
    constexpr int kFirst = run.value * kRun;
    typename Dot::Sums sums[kRows][kPanels];
    ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) sums[i][p] = Dot::start(products[i][p]);
    }
    unrolled<(kFirst + kRun < kQuads ? kRun : kQuads - kFirst)>([&](auto q) ORTHRUS_INLINE_LAMBDA {
      constexpr int kAt = kGroupOfStep * kQuads + kFirst + q.value;
      typename Dot::Weights weights[kPanels];
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
        weights[p] = Dot::weights(readers[p].template codes<kAt>(step));
      }
      ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
        const auto inputs = Dot::load(x[i].codes + kAt * kQuad);
        ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
          sums[i][p] = Dot::add(sums[i][p], weights[p], inputs);
        }
      }
    });
    ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
        products[i][p] = Dot::total(products[i][p], sums[i][p]);
      }
    }
  });
  const int64_t at = step * (kStep / kForm.group) + kGroupOfStep;
  typename V::Floats scales[kPanels];
  ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) scales[p] = readers[p].scale(at);
  ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
    const auto factor = V::splat(x[i].scale);
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
      const auto product = V::mul(V::to_floats(products[i][p]), factor);
      acc[i][p] = V::fma(product, scales[p], acc[i][p]);
    }
  }
  if constexpr (kForm.has_offset) {
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) scales[p] = readers[p].offset(at);
    ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
      const ActivationGroup& group = x[i];
      const auto sum =
          V::splat(kWholeStep ? group.scaled_sum
                              : group.scale * static_cast<float>(-half_sum<kGroupOfStep>(group)));
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
        acc[i][p] = V::minus_product(scales[p], sum, acc[i][p]);
      }
    }
  }
}

/// What a later tile reads, to be asked for in equal parts.
struct Ahead {
  const std::byte* at;
  int64_t lines;  ///< a step
};

/// Rows up to which a pass takes as long as its weights' way from memory: while a step's products
/// of one row are computed, about 128 bytes come, and 64 where two panels of 8-bit codes and the
/// inputs are more than the first-level cache holds.
template <typename V, TensorType kType>
constexpr int64_t few_rows() {
  if (V::kGroupPanels == 1) return V::kGroupRows;
  constexpr size_t kRowBytes = group_form(kType).low_bits == 8 ? 64 : 128;
  return static_cast<int64_t>(PackedReader<V, kType>::kStepBytes / kRowBytes);
}

/// kRows rows of the panels [panels.begin, panels.end), at most kPanels; of fewer the first is
/// computed again in place of the others. Codes go from the packed form to the products within
/// registers. One panel looks ahead by itself.
template <typename V, TensorType kType, int kRows, int kPanels>
void group_tile(const MatmulJob& job, int64_t row, PanelRange panels, Ahead ahead) {
  using Reader = PackedReader<V, kType>;
  Reader readers[kPanels];
  ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
    const int64_t at = panels.begin + (panels.begin + p < panels.end ? p : 0);
    readers[p] = Reader(job.panels + static_cast<size_t>(at) * job.panel_bytes);
  }
  const ActivationGroup* x = job.groups + row;
  const int64_t chunks = panel_chunks(Reader::kForm, job.cols);
  typename V::Floats acc[kRows][kPanels];
  ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) acc[i][p] = V::zero();
  }
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) readers[p].open();
    for (int64_t step = 0; step < Reader::kForm.chunk / kStep; ++step, x += job.group_stride) {
      if constexpr (kPanels == 1) {
        readers[0].prefetch(step);
      } else {
        for (int64_t i = 0; i < ahead.lines; ++i, ahead.at += 64) {
          __builtin_prefetch(ahead.at, 0, 2);  // to the second level: the first is full of inputs
        }
      }
      unrolled<kStep / Reader::kForm.group>([&](auto g) ORTHRUS_INLINE_LAMBDA {
        add_group<V, Reader, g.value, kRows, kPanels>(readers, step, x, acc);
      });
    }
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) readers[p].close();
  }
  store_tile<V>(job, row, panels, acc);
}

/// One panel at a time, so that memory is read in one run over all the panels of a thread.
template <typename V, TensorType kType>
void run_single_panels(const MatmulJob& job, int64_t begin, int64_t end) {
  constexpr int kMost = static_cast<int>(few_rows<V, kType>());
  for (; begin < end; ++begin) {
    for_row_tiles<kMost>(0, job.rows, [&](int64_t row, int64_t height) ORTHRUS_INLINE_LAMBDA {
      with_height<kMost>(height, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
        group_tile<V, kType, rows.value, 1>(job, row, {begin, begin + 1}, {});
      });
    });
  }
}

/// A few panels at a time, which share the loads of the inputs; the rows after the first tile find
/// them in the cache. While they are computed, each tile asks for its part of the next ones.
template <typename V, TensorType kType>
void run_panels(const MatmulJob& job, int64_t begin, int64_t end) {
  constexpr int kPanels = V::kGroupPanels;
  constexpr GroupForm kForm = group_form(kType);
  // The least height of a tile: of the only one, or of several of nearly equal height.
  constexpr int64_t kFew = few_rows<V, kType>();
  constexpr int64_t kLeast = kFew < V::kGroupRows / 2 ? kFew + 1 : V::kGroupRows / 2;
  const int64_t steps = panel_chunks(kForm, job.cols) * (kForm.chunk / kStep);
  const int64_t tiles = (job.rows + V::kGroupRows - 1) / V::kGroupRows;
  const auto bytes = static_cast<int64_t>(job.panel_bytes);
  const int64_t lines = (kPanels * bytes / 64 + tiles * steps - 1) / (tiles * steps);
  for (; begin < end; begin += kPanels) {
    Ahead ahead{job.panels + (begin + kPanels) * bytes, begin + kPanels < end ? lines : 0};
    const PanelRange panels{begin, begin + kPanels < end ? begin + kPanels : end};
    for_row_tiles<V::kGroupRows>(
        0, job.rows, [&](int64_t row, int64_t height) ORTHRUS_INLINE_LAMBDA {
          with_height<V::kGroupRows>(height, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
            if constexpr (rows.value >= kLeast) {
              group_tile<V, kType, rows.value, kPanels>(job, row, panels, ahead);
            }
          });
          ahead.at += ahead.lines * steps * 64;
        });
  }
}

template <typename V, TensorType kType>
void run_groups(const MatmulJob& job, int64_t begin, int64_t end) {
  if constexpr (V::kGroupPanels > 1) {
    if (job.rows > few_rows<V, kType>()) return run_panels<V, kType>(job, begin, end);
  }
  run_single_panels<V, kType>(job, begin, end);
}

}  // namespace orthrus
