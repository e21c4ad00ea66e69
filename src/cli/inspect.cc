#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/model_size.h"
#include "cli/result_report.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

double bits(int64_t bytes, int64_t parameters) {
  return parameters ? 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters) : 0;
}

Json rope_report(const RopeConfig& rope) {
  Json out = {{"theta", rope.theta}, {"attention_factor", rope.attention_factor}};
  if (!rope.divisors.empty()) {
    const auto [least, most] = std::minmax_element(rope.divisors.begin(), rope.divisors.end());
    out["least_divisor"] = *least;
    out["most_divisor"] = *most;
  }
  if (rope.yarn) {
    out["yarn"] = {{"factor", rope.yarn->factor},
                   {"original_context", rope.yarn->original_context},
                   {"beta_fast", rope.yarn->beta_fast},
                   {"beta_slow", rope.yarn->beta_slow},
                   {"truncate", rope.yarn->truncate}};
  }
  return out;
}

std::string rope_line(const RopeConfig& rope) {
  std::string text = fmt::format("theta {}", rope.theta);
  if (rope.yarn) {
    text += fmt::format(", yarn: factor {} over {} tokens", rope.yarn->factor,
                        grouped(rope.yarn->original_context));
  } else if (!rope.divisors.empty()) {
    const auto [least, most] = std::minmax_element(rope.divisors.begin(), rope.divisors.end());
    text += fmt::format(", slowed by {:.4g} to {:.4g}", *least, *most);
  }
  if (rope.attention_factor != 1) {
    text += fmt::format(", attention factor {:.5g}", rope.attention_factor);
  }
  return text;
}

double diffusion_share(const ModelSize& size) {
  return size.parameters
             ? static_cast<double>(size.diffusion_parameters) / static_cast<double>(size.parameters)
             : 0;
}

class InspectCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, flags_);
    app.add_option("path", path_, "the model, as with -m");
    app.add_flag("--tensors", tensors_, "list every tensor");
    app.add_flag("--json", json_, "as one JSON object");
  }

  int run() override {
    if (flags_.model.empty()) flags_.model = path_;
    const OpenedModel model = open_model_files(flags_);
    const ModelSize size = measure_model(model, flags_);
    print(json_ ? dump_json(report(model, size)) + "\n" : page(model, size));
    return 0;
  }

 private:
  Json report(const OpenedModel& model, const ModelSize& size) const {
    const ModelConfig& config = model.checkpoint.config;
    const KvLayout layout = kv_layout(config, flags_);
    const int64_t context = context_tokens(config, flags_);
    Json types = Json::object();
    for (const auto& [name, share] : size.types) {
      types[name] = {{"tensors", share.tensors},
                     {"parameters", share.parameters},
                     {"file_bytes", share.file_bytes},
                     {"runtime_bytes", share.runtime_bytes},
                     {"file_bits_per_weight", bits(share.file_bytes, share.parameters)},
                     {"runtime_bits_per_weight", bits(share.runtime_bytes, share.parameters)}};
    }
    Json out = {{"path", model.checkpoint.path},
                {"architecture", architecture_name(config.architecture)},
                {"name", config.name},
                {"layers", config.num_layers},
                {"hidden_size", config.hidden_size},
                {"intermediate_size", config.intermediate_size},
                {"heads", config.num_heads},
                {"kv_heads", config.num_kv_heads},
                {"head_dim", config.head_dim},
                {"vocab_size", config.vocab_size},
                {"max_position_embeddings", config.max_position_embeddings},
                {"rope", rope_report(config.rope)},
                {"tied_embeddings", config.tie_word_embeddings},
                {"parameters", size.parameters},
                {"diffusion_view", model.diffusion_source()},
                {"diffusion_parameters", size.diffusion_parameters},
                {"diffusion_share", diffusion_share(size)},
                {"block_size", model.has_diffusion() ? model.block_size() : 0},
                {"types", types},
                {"weight_bytes", size.runtime_bytes},
                {"diffusion_weight_bytes", size.diffusion_runtime_bytes},
                {"kv_bytes_per_token", kv_bytes_per_token(layout)},
                {"context", context},
                {"kv_bytes", kv_bytes(layout, context)},
                {"working_bytes", working_bytes(model, flags_, 1, Consensus::kExact)}};
    if (tensors_) {
      for (const TensorInfo* tensor : all_tensors(model)) {
        out["tensors"].push_back({{"name", tensor->name},
                                  {"type", traits(tensor->type).name},
                                  {"shape", tensor->shape},
                                  {"bytes", tensor->data.size()}});
      }
    }
    return out;
  }

  std::string page(const OpenedModel& model, const ModelSize& size) const {
    return architecture_lines(model, size) + type_table(size) + memory_lines(model, size) +
           (tensors_ ? tensor_lines(model) : "");
  }

  static std::string architecture_lines(const OpenedModel& model, const ModelSize& size) {
    const ModelConfig& config = model.checkpoint.config;
    std::string text = fmt::format(
        "model:         {} ({})\narchitecture:  {}, {} layers, hidden {}, MLP {}\n"
        "attention:     {} heads, {} KV heads of {}\nrotary:        {}\nvocabulary:    {} rows, "
        "lm_head {}\n"
        "context:       {} tokens\nparameters:    {}\n",
        config.name, model.checkpoint.path, architecture_name(config.architecture),
        config.num_layers, config.hidden_size, config.intermediate_size, config.num_heads,
        config.num_kv_heads, config.head_dim, rope_line(config.rope), grouped(config.vocab_size),
        config.tie_word_embeddings ? "tied to the embedding" : "of its own",
        grouped(config.max_position_embeddings), grouped(size.parameters));
    text += fmt::format("diffusion:     {}", model.diffusion_source());
    if (model.has_diffusion()) {
      text += fmt::format("\n               {} parameters, {:.2f} % of all; blocks of {}",
                          grouped(size.diffusion_parameters), 100 * diffusion_share(size),
                          model.block_size());
    }
    return text + "\n";
  }

  static std::string type_table(const ModelSize& size) {
    std::string text = fmt::format("\n{:8}{:>9}{:>15}{:>12}{:>14}{:>14}\n", "type", "tensors",
                                   "parameters", "file", "bits/weight", "at run time");
    for (const auto& [name, share] : size.types) {
      text += fmt::format(
          "{:8}{:>9}{:>15}{:>12}{:>14.3f}{:>14.3f}\n", name, share.tensors,
          grouped(share.parameters), human_bytes(static_cast<double>(share.file_bytes)),
          bits(share.file_bytes, share.parameters), bits(share.runtime_bytes, share.parameters));
    }
    return text;
  }

  std::string memory_lines(const OpenedModel& model, const ModelSize& size) const {
    const ModelConfig& config = model.checkpoint.config;
    const KvLayout layout = kv_layout(config, flags_);
    const int64_t context = context_tokens(config, flags_);
    const int64_t cache = kv_bytes(layout, context);
    auto human = [](int64_t bytes) { return human_bytes(static_cast<double>(bytes)); };
    return fmt::format(
        "\nKV cache:      {} bytes a token (both views share it)\n"
        "memory:        weights {} (diffusion {}), KV cache {} at {} tokens,\n"
        "               program and passes at most {}\n",
        grouped(kv_bytes_per_token(layout)), human(size.runtime_bytes),
        human(size.diffusion_runtime_bytes), human(cache), grouped(context),
        human(working_bytes(model, flags_, 1, Consensus::kExact)));
  }

  static std::vector<const TensorInfo*> all_tensors(const OpenedModel& model) {
    std::vector<const TensorInfo*> list;
    for (const TensorInfo& tensor : model.checkpoint.tensors->tensors()) list.push_back(&tensor);
    if (!model.diffusion.adapter) return list;
    for (const TensorInfo& tensor : model.diffusion.adapter->tensors->tensors())
      list.push_back(&tensor);
    return list;
  }

  static std::string tensor_lines(const OpenedModel& model) {
    std::string text = "\n";
    for (const TensorInfo* tensor : all_tensors(model)) {
      text += fmt::format("{:60} {:6} [{}]\n", tensor->name, traits(tensor->type).name,
                          fmt::join(tensor->shape, ", "));
    }
    return text;
  }

  ModelFlags flags_;
  std::string path_;
  bool tensors_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace orthrus
