#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// One model among the GGUF files of a folder or repository.
struct GgufModel {
  std::string quant;  ///< its tag in upper case: "Q4_K_M", "F16", or "": its name has none
  std::vector<std::string> parts;  ///< one path, or those of a split model in order
};

/// The models among these paths, sorted by path. Files that are none (projectors, importance
/// matrices) and split models of which a part is not listed are left out.
std::vector<GgufModel> gguf_models(std::span<const std::string> paths);

/// The model with that tag (in any case), as llama.cpp's -hf has them; without a tag Q4_K_M, else
/// Q8_0, else the only one. nullopt where there is none. Error(kUsage) where several fit: it lists
/// them as `repository`:TAG.
std::optional<GgufModel> choose_gguf(std::span<const GgufModel> models, const std::string& quant,
                                     const std::string& repository);

}  // namespace orthrus
