#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/tensor_source.h"
#include "trainer/fit/student.h"

namespace orthrus::train {

/// The highest memory that a run will have taken, by its parts, in bytes.
struct MemoryPrediction {
  struct Part {
    std::string name;
    int64_t bytes = 0;
  };
  std::vector<Part> parts;

  int64_t total() const;
  /// One line: the total and the parts, in MiB.
  std::string text() const;
};

/// Of a run on the CPU with rows of `row` at most. resident: what this process takes already
/// (program, data). file: mapped_memory of the base model. held_out_tokens: of the longest document
/// that is evaluated on, which is never cut.
struct MemoryQuestion {
  int64_t resident = 0;
  int64_t file = 0;
  RowPlanOptions row;
  StudentOptions student;
  Precision precision = Precision::kFloat32;
  int64_t held_out_tokens = 0;
};
MemoryPrediction predict_memory(const ModelConfig& config, const MemoryQuestion& question);

/// Bytes of a file of tensors that its hash brings into memory: the pages around both ends of each.
int64_t mapped_memory(const TensorSource& tensors);

/// Bytes of this process in memory now, and at most so far.
int64_t resident_memory();
int64_t peak_memory();

}  // namespace orthrus::train
