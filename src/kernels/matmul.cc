#include "kernels/matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/activations.h"
#include "kernels/matmul_kernels.h"
#include "kernels/packed_form.h"

namespace orthrus {
namespace {

// Tasks of one parallel section; more run in several. A pass has at most six (q, k, v of two
// views).
constexpr size_t kMaxTasks = 16;

MatmulJob make_job(const Activations& x, const MatmulTask& task) {
  const PackedMatrix& weight = *task.weight;
  ORTHRUS_CHECK(weight.cols() == x.cols() && task.row_begin >= 0 && task.row_count >= 0 &&
                task.row_begin + task.row_count <= x.rows());
  ORTHRUS_CHECK(!activation_forms(weight).groups || ActivationAccess::forms(x).groups);
  return {.form = weight.form(),
          .panels = PackedAccess::data(weight),
          .panel_bytes = panel_bytes(weight.form(), weight.cols()),
          .outputs = weight.rows(),
          .cols = weight.cols(),
          .rows = task.row_count,
          .x = x.row(task.row_begin),
          .x_stride = ActivationAccess::stride(x),
          .groups = ActivationAccess::groups(x) + task.row_begin,
          .group_stride = x.rows(),
          .bf16 = ActivationAccess::forms(x).bf16
                      ? ActivationAccess::bf16(x) + task.row_begin * bf16_stride(x.cols())
                      : nullptr,
          .bf16_stride = bf16_stride(x.cols()),
          .out = task.out,
          .out_stride = task.out_stride,
          .bias = task.bias};
}

// Outputs on their way to a reader: they lie on the thread's stack, for so many rows at once.
constexpr int64_t kPieceFloats = 16384;
constexpr int64_t kPieceRows = 64;
constexpr int64_t kPiecePanels = 12;  // or a multiple: tiles are up to four panels wide
static_assert(kPieceFloats >= kPieceRows * kLanes * kPiecePanels);

// Kernels compute panels in twos: an odd one at the end of a thread's share costs as much.
constexpr int64_t kSplitPanels = 2;

// Time of one panel in units of a byte read: what it reads, and its products. A core reads about
// 15 GB/s while it does about 4 float or 15 integer products a byte.
double panel_cost(const MatmulJob& job) {
  const double products = static_cast<double>(job.rows * job.cols * kLanes);
  const bool integer = group_form(job.form).group != 0;
  return static_cast<double>(job.panel_bytes) + products / (integer ? 15.0 : 4.0);
}

struct Work {
  std::array<MatmulJob, kMaxTasks> jobs;
  std::array<OutputReader*, kMaxTasks> readers;
  std::array<double, kMaxTasks> cost_before;  // of all panels of the jobs before this one
  size_t count = 0;
  double total = 0;

  void add(const MatmulJob& job, OutputReader* reader) {
    jobs[count] = job;
    readers[count] = reader;
    cost_before[count] = total;
    total += panel_cost(job) * static_cast<double>(panel_count(job.outputs));
    ++count;
  }

  // The first panel of job j that belongs to a thread whose share begins at `cost`.
  int64_t panel_at(size_t j, double cost) const {
    const double splits = (cost - cost_before[j]) / panel_cost(jobs[j]) / kSplitPanels;
    const int64_t panels = panel_count(jobs[j].outputs);
    const auto most = static_cast<double>(panels);
    return std::min(panels,
                    static_cast<int64_t>(std::clamp(splits + 0.5, 0.0, most)) * kSplitPanels);
  }
};

// Panels [begin, end) of rows [row, row + rows), written to out [rows, (end - begin) * kLanes].
MatmulJob part_of(MatmulJob job, int64_t row, int64_t rows, int64_t begin, int64_t end,
                  float* out) {
  job.panels += static_cast<size_t>(begin) * job.panel_bytes;
  job.outputs = std::min(job.outputs, end * kLanes) - begin * kLanes;
  if (job.bias != nullptr) job.bias += begin * kLanes;
  job.rows = rows;
  job.x += row * job.x_stride;
  job.groups += row;
  if (job.bf16 != nullptr) job.bf16 += row * job.bf16_stride;
  job.out = out;
  job.out_stride = (end - begin) * kLanes;
  return job;
}

// Panels [begin, end) for a reader, a piece at a time, which it reads while it is in the cache.
void run_pieces(const MatmulKernels& kernels, const MatmulJob& job, OutputReader& reader,
                int thread, int64_t begin, int64_t end) {
  alignas(64) float piece[kPieceFloats];
  const int64_t height = std::min(job.rows, kPieceRows);
  const int64_t width = kPieceFloats / (height * kLanes) / kPiecePanels * kPiecePanels;
  for (; begin < end; begin += width) {
    const int64_t last = std::min(end, begin + width);
    for (int64_t row = 0; row < job.rows; row += height) {
      const int64_t rows = std::min(height, job.rows - row);
      const MatmulJob part = part_of(job, row, rows, begin, last, piece);
      kernels.run(part, 0, last - begin);
      for (int64_t i = 0; i < rows; ++i) {
        reader.read(thread, row + i, begin * kLanes,
                    {piece + i * part.out_stride, static_cast<size_t>(part.outputs)});
      }
    }
  }
}

void run_jobs(const ComputeContext& context, const Work& work) {
  const MatmulKernels& kernels = matmul_kernels(context.isa);
  const int threads = context.pool.size();
  context.pool.run([&](int thread) {
    const double begin = work.total * thread / threads;
    const double end = work.total * (thread + 1) / threads;
    for (size_t j = 0; j < work.count; ++j) {
      const int64_t first = thread == 0 ? 0 : work.panel_at(j, begin);
      const int64_t last =
          thread + 1 == threads ? panel_count(work.jobs[j].outputs) : work.panel_at(j, end);
      if (first >= last) continue;
      if (OutputReader* reader = work.readers[j]) {
        run_pieces(kernels, work.jobs[j], *reader, thread, first, last);
      } else {
        kernels.run(work.jobs[j], first, last);
      }
    }
  });
}

}  // namespace

ActivationForms activation_forms(const PackedMatrix& matrix) {
  return {.groups = group_form(matrix.form()).group != 0,
          .bf16 = matrix.form() == TensorType::kBF16};
}

void matmul(const ComputeContext& context, const Activations& x,
            std::span<const MatmulTask> tasks) {
  for (size_t begin = 0; begin < tasks.size(); begin += kMaxTasks) {
    Work work;
    for (const MatmulTask& task : tasks.subspan(begin, std::min(kMaxTasks, tasks.size() - begin))) {
      if (task.row_count == 0) continue;
      if (task.reader != nullptr) task.reader->begin(context.pool.size());
      work.add(make_job(x, task), task.reader);
    }
    if (work.count > 0) run_jobs(context, work);
  }
}

const MatmulKernels& matmul_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512Bf16) return avx512bf16_matmul_kernels();
  if (isa == Isa::kAvx512) return avx512_matmul_kernels();
  if (isa == Isa::kAvxVnni) return avxvnni_matmul_kernels();
  if (isa == Isa::kAvx2) return avx2_matmul_kernels();
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return neon_matmul_kernels();
#endif
  ORTHRUS_CHECK(isa == Isa::kPortable);
  return portable_matmul_kernels();
}

}  // namespace orthrus
