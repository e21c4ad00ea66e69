#include "trainer/model/device.h"

#include <optional>

#include "base/error.h"

namespace orthrus::train {

at::Device parse_device(const std::string& name) {
  std::optional<at::Device> device;
  try {
    device.emplace(name);
  } catch (const c10::Error&) {
    // below
  }
  if (!device || !(device->is_cpu() || device->is_cuda())) {
    fail_usage("device \"{}\": expected cpu, cuda or cuda:N", name);
  }
  if (device->is_cuda() && !at::hasCUDA()) {
    fail_usage("device {}: there is none, or this build's libtorch has no CUDA", name);
  }
  return *device;
}

}  // namespace orthrus::train
