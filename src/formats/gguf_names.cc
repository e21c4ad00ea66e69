#include "formats/gguf_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "formats/tensor_names.h"

namespace orthrus {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 4> kGlobals = {{
    {"token_embd.weight", kEmbeddingName},
    {"mask_embd.weight", kMaskEmbeddingName},
    {"output_norm.weight", kFinalNormName},
    {"output.weight", kLmHeadName},
}};

// Of one layer, without ".weight" or ".bias".
constexpr std::array<NamePair, 17> kLayers = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_q_diff", "self_attn.q_proj_diff"},
    {"attn_k_diff", "self_attn.k_proj_diff"},
    {"attn_v_diff", "self_attn.v_proj_diff"},
    {"attn_output_diff", "self_attn.o_proj_diff"},
    {"attn_q_norm_diff", "self_attn.q_norm_diff"},
    {"attn_k_norm_diff", "self_attn.k_norm_diff"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

struct GgmlType {
  uint32_t number;
  std::string_view name;
};

constexpr std::array<GgmlType, 34> kGgmlTypes = {{
    {0, "F32"},     {1, "F16"},      {2, "Q4_0"},   {3, "Q4_1"},    {6, "Q5_0"},
    {7, "Q5_1"},    {8, "Q8_0"},     {9, "Q8_1"},   {10, "Q2_K"},   {11, "Q3_K"},
    {12, "Q4_K"},   {13, "Q5_K"},    {14, "Q6_K"},  {15, "Q8_K"},   {16, "IQ2_XXS"},
    {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},
    {22, "IQ2_S"},  {23, "IQ4_XS"},  {24, "I8"},    {25, "I16"},    {26, "I32"},
    {27, "I64"},    {28, "F64"},     {29, "IQ1_M"}, {30, "BF16"},   {31, "Q4_0_4_4"},
    {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"}, {40, "NVFP4"},
}};

bool is_number(std::string_view text) {
  if (text.empty() || text.size() > 9) return false;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

/// One of the two schemes: its side of the tables and what comes before a layer's number.
struct Scheme {
  std::string_view NamePair::*name;
  std::string_view layers;
};

constexpr Scheme kGgml = {&NamePair::first, "blk."};
constexpr Scheme kHf = {&NamePair::second, "model.layers."};

std::string translated(std::string_view name, const Scheme& from, const Scheme& to) {
  for (const NamePair& pair : kGlobals) {
    if (name == pair.*from.name) return std::string(pair.*to.name);
  }
  if (!name.starts_with(from.layers)) return std::string(name);
  std::string_view rest = name.substr(from.layers.size());
  const size_t first_dot = rest.find('.');
  const size_t last_dot = rest.rfind('.');
  if (first_dot == std::string_view::npos || first_dot == last_dot) return std::string(name);
  const std::string_view layer = rest.substr(0, first_dot);
  const std::string_view part = rest.substr(first_dot + 1, last_dot - first_dot - 1);
  if (!is_number(layer)) return std::string(name);
  for (const NamePair& pair : kLayers) {
    if (part != pair.*from.name) continue;
    std::string out(to.layers);
    out.append(layer).append(".").append(pair.*to.name).append(rest.substr(last_dot));
    return out;
  }
  return std::string(name);
}

}  // namespace

std::string hf_tensor_name(std::string_view name) { return translated(name, kGgml, kHf); }

std::string ggml_tensor_name(std::string_view name) { return translated(name, kHf, kGgml); }

RotaryRows rotary_rows(std::string_view hf_name) {
  if (hf_name.find(".q_proj") != std::string_view::npos) return RotaryRows::kQuery;
  if (hf_name.find(".k_proj") != std::string_view::npos) return RotaryRows::kKey;
  return RotaryRows::kNone;
}

std::optional<TensorType> tensor_type_from_ggml(uint32_t type) {
  constexpr uint32_t kGgmlI8 = 24;  // one of our types, but only adapters hold it
  if (type == kGgmlI8) return std::nullopt;
  for (const GgmlType& known : kGgmlTypes) {
    if (known.number == type) return tensor_type_from_name(known.name);
  }
  return std::nullopt;
}

uint32_t ggml_type_number(TensorType type) {
  const auto known = std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(), [&](const GgmlType& entry) {
    return entry.name == traits(type).name;
  });
  ORTHRUS_CHECK(known != kGgmlTypes.end() && type != TensorType::kI8);
  return known->number;
}

std::string ggml_type_name(uint32_t type) {
  for (const GgmlType& known : kGgmlTypes) {
    if (known.number == type) return std::string(known.name);
  }
  return "number " + std::to_string(type);
}

}  // namespace orthrus
