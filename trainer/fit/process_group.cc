#include "trainer/fit/process_group.h"

#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

// libtorch says which backends it has; their headers also need those of the library behind them.
#if defined(USE_C10D_GLOO) && __has_include(<gloo/context.h>)
#define ORTHRUS_GLOO 1
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#if defined(USE_C10D_NCCL) && __has_include(<nccl.h>) && __has_include(<cusolverDn.h>)
#define ORTHRUS_NCCL 1
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#if __has_include(<torch/version.h>)
#include <torch/version.h>
#endif
#if defined(TORCH_VERSION_MAJOR) && TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus::train {
namespace {

#if defined(TORCH_VERSION_MAJOR) && TORCH_VERSION_MAJOR >= 2
using Collectives = c10d::Backend;
#else
using Collectives = c10d::ProcessGroup;
#endif
using Milliseconds = std::chrono::milliseconds;

constexpr int kMostProcesses = 1 << 16;

std::optional<std::string> variable(const std::string& name) {
  const char* text = std::getenv(name.c_str());
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

/// A whole number in [begin, end).
int number(const std::string& name, int end, int begin = 0) {
  const auto text = variable(name);
  if (!text) fail_usage("{} is not set, other variables of a group of processes are", name);
  int value = -1;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || stop != text->data() + text->size() || value < begin ||
      value >= end) {
    fail_usage("{} = {}: expected a whole number from {} to {}", name, printable(*text), begin,
               end - 1);
  }
  return value;
}

void read_ranks(WorldPlace& place, const std::string& rank, const std::string& size,
                const std::string& local_rank) {
  place.size = number(size, kMostProcesses);
  if (place.size == 0) fail_usage("{} = 0: expected at least 1", size);
  place.rank = number(rank, place.size);
  place.local_rank = variable(local_rank) ? number(local_rank, kMostProcesses) : 0;
}

/// The first line: libtorch adds its stack to what went wrong.
std::string first_line(std::string_view text) { return printable(text.substr(0, text.find('\n'))); }

c10::intrusive_ptr<c10d::Store> meet(const WorldPlace& place, Milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.isServer = place.rank == 0 && !place.store_is_there;
  options.numWorkers = static_cast<size_t>(place.size);
  options.waitWorkers = !place.store_is_there;
  options.timeout = patience;
  auto store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
  if (!place.store_is_there) return store;
  // As PyTorch's own workers do, so that a restarted group does not read what the last one wrote.
  const std::string attempt = variable("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return c10::make_intrusive<c10d::PrefixStore>("/worker/attempt_" + attempt, store);
}

c10::intrusive_ptr<Collectives> make_gloo([[maybe_unused]] const WorldPlace& place,
                                          [[maybe_unused]] Milliseconds patience) {
#ifdef ORTHRUS_GLOO
  using Gloo = c10d::ProcessGroupGloo;
  auto options = Gloo::Options::create(patience);
  const auto interface = variable("GLOO_SOCKET_IFNAME");
  const bool local = place.address == "127.0.0.1" || place.address == "localhost";
  options->devices.push_back(interface ? Gloo::createDeviceForInterface(*interface)
                             : local   ? Gloo::createDeviceForHostname("127.0.0.1")
                                       : Gloo::createDefaultDevice());
  return c10::make_intrusive<Gloo>(meet(place, patience), place.rank, place.size, options);
#else
  fail_usage("{} processes on the CPU: this build has no Gloo (build it with libgloo-dev)",
             place.size);
#endif
}

c10::intrusive_ptr<Collectives> make_nccl([[maybe_unused]] const WorldPlace& place,
                                          [[maybe_unused]] Milliseconds patience) {
#ifdef ORTHRUS_NCCL
  // wait() is to wait, so that a dead process is noticed; the old name is for libtorch before 2.2.
  ::setenv("TORCH_NCCL_BLOCKING_WAIT", "1", 0);
  ::setenv("NCCL_BLOCKING_WAIT", "1", 0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = patience;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(meet(place, patience), place.rank, place.size,
                                                     options);
#else
  fail_usage("{} processes on GPUs: this build has no NCCL", place.size);
#endif
}

}  // namespace

WorldPlace world_from_environment() {
  WorldPlace place;
  if (variable("RANK") || variable("WORLD_SIZE")) {
    read_ranks(place, "RANK", "WORLD_SIZE", "LOCAL_RANK");
  } else if (variable("OMPI_COMM_WORLD_RANK") || variable("OMPI_COMM_WORLD_SIZE")) {
    read_ranks(place, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK");
  } else if (variable("PMI_RANK") || variable("PMI_SIZE")) {
    read_ranks(place, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID");
  }
  if (place.size == 1) return place;
  const auto local_size = variable("OMPI_COMM_WORLD_LOCAL_SIZE")
                              ? variable("OMPI_COMM_WORLD_LOCAL_SIZE")
                              : variable("MPI_LOCALNRANKS");
  const bool one_machine = local_size == std::to_string(place.size);
  const auto address = variable("MASTER_ADDR");
  if (!address && !one_machine) {
    fail_usage("MASTER_ADDR is not set: where do the {} processes meet?", place.size);
  }
  if (address) place.address = *address;
  if (variable("MASTER_PORT")) place.port = number("MASTER_PORT", 1 << 16, 1);
  place.store_is_there = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return place;
}

struct ProcessGroup::Backend {
  c10::intrusive_ptr<Collectives> group;

  /// Starts one collective call and waits for its end.
  template <typename Start>
  void run(const Start& start) const {
    try {
      start(*group)->wait();
    } catch (const std::exception& error) {
      fail("another process of the group is gone or does not answer: {}", first_line(error.what()));
    }
  }
};

ProcessGroup::ProcessGroup(const WorldPlace& place, at::Device device, Milliseconds patience)
    : rank_(place.rank), size_(place.size), device_(device) {
  if (size_ == 1) return;
  backend_ = std::make_unique<Backend>();
  try {
    backend_->group = device.is_cpu() ? make_gloo(place, patience) : make_nccl(place, patience);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail("process {} of {} could not join the others at {}:{}: {}", rank_, size_,
         printable(place.address), place.port, first_line(error.what()));
  }
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::sum(const at::Tensor& tensor) const {
  if (size_ == 1) return;
  std::vector<at::Tensor> tensors{tensor};
  backend_->run([&](Collectives& group) { return group.allreduce(tensors); });
}

void ProcessGroup::broadcast(const at::Tensor& tensor) const {
  if (size_ == 1) return;
  std::vector<at::Tensor> tensors{tensor};
  backend_->run([&](Collectives& group) { return group.broadcast(tensors); });
}

namespace {

/// Lets `call` work on a tensor made of the values.
void with_tensor(std::vector<double>& values, at::Device device,
                 const std::function<void(const at::Tensor&)>& call) {
  const at::Tensor ours = at::from_blob(values.data(), {static_cast<int64_t>(values.size())},
                                        at::TensorOptions(at::kDouble));
  const at::Tensor shared = ours.to(device, at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  call(shared);
  ours.copy_(shared);
}

}  // namespace

void ProcessGroup::sum(std::vector<double>& values) const {
  if (size_ == 1) return;
  with_tensor(values, device_, [&](const at::Tensor& tensor) { sum(tensor); });
}

void ProcessGroup::broadcast(std::vector<double>& values) const {
  if (size_ == 1) return;
  with_tensor(values, device_, [&](const at::Tensor& tensor) { broadcast(tensor); });
}

void ProcessGroup::broadcast(std::string& text) const {
  if (size_ == 1) return;
  std::vector<double> values{static_cast<double>(text.size())};
  broadcast(values);
  text.resize(static_cast<size_t>(values[0]));
  values.assign(text.begin(), text.end());
  broadcast(values);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(values[i]);
}

}  // namespace orthrus::train
