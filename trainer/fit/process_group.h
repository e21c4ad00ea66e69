#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace orthrus::train {

/// Where this process stands among those that train together.
struct WorldPlace {
  int rank = 0;
  int size = 1;
  int local_rank = 0;                 ///< among those of this machine: which GPU is its own
  std::string address = "127.0.0.1";  ///< of the first process, where the others meet
  int port = 29500;
  bool store_is_there = false;  ///< torchrun listens at that port itself
};

/// From the variables that torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open
/// MPI's mpirun (OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE) or that of MPICH and Intel
/// MPI (PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS) has set; one process where there are
/// none. Where the last ones say that all are on one machine, MASTER_ADDR may be left out.
/// Error(kUsage) names a variable that is missing or out of range.
WorldPlace world_from_environment();

/// Processes that hold the same model. All of them must make the same calls in the same order. A
/// call ends with Error(kInput) where another process is gone or does not answer in time.
class ProcessGroup {
 public:
  /// Waits until all have come. Gloo for tensors on the CPU, NCCL for those of a GPU, from libtorch
  /// itself; Error(kUsage) where this build has none. Of one process: does nothing, ever.
  ProcessGroup(const WorldPlace& place, at::Device device, std::chrono::milliseconds patience);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The one that writes files and decides.
  bool first() const { return rank_ == 0; }

  /// Replaces a dense tensor on the group's device by the sum over all processes, the very same
  /// bits in each.
  void sum(const at::Tensor& tensor) const;
  void sum(std::vector<double>& values) const;

  /// What the first process has.
  void broadcast(const at::Tensor& tensor) const;
  void broadcast(std::vector<double>& values) const;
  void broadcast(std::string& text) const;

 private:
  struct Backend;
  int rank_, size_;
  at::Device device_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace orthrus::train
