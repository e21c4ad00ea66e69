#pragma once

#include <ATen/ATen.h>

#include <string>

namespace orthrus::train {

/// cpu, cuda or cuda:N. Error(kUsage) for anything else, and for cuda where there is none.
at::Device parse_device(const std::string& name);

}  // namespace orthrus::train
