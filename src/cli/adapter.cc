#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/result_report.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "formats/adapter.h"
#include "formats/checkpoint.h"
#include "formats/printable.h"
#include "formats/tensor_names.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

struct AdapterSize {
  int64_t parameters = 0;  ///< scales not counted
  int64_t bytes = 0;
  std::string type;  ///< of the projections
};

AdapterSize measure(const Adapter& adapter) {
  AdapterSize size;
  for (const TensorInfo& tensor : adapter.tensors->tensors()) {
    size.bytes += static_cast<int64_t>(tensor.data.size());
    if (tensor.name.ends_with(kScaleSuffix)) continue;
    int64_t count = 1;
    for (int64_t extent : tensor.shape) count *= extent;
    size.parameters += count;
    if (size.type.empty() && tensor.shape.size() == 2) size.type = traits(tensor.type).name;
  }
  return size;
}

class AdapterCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flag(app, model_);
    app.add_option("words", words_,
                   "show (default) or convert, and the adapter (default: the model's own)");
    app.add_option("--to", to_, "convert to this type")->check(CLI::IsMember({"bf16", "int8"}));
    app.add_option("-o,--output", output_, "file or folder of the converted adapter");
    app.add_flag("--json", json_, "as one JSON object");
  }

  int run() override {
    require_model(model_);
    take_words();
    const ResolvedModel resolved = resolve_model(model_);
    const std::string path = path_.empty() ? resolved.adapter : resolve_adapter(path_);
    const Checkpoint base = open_checkpoint(resolved.path);
    if (path.empty() && base.config.is_orthrus) {
      fail_usage(
          "adapter: the diffusion weights of {} are in its own files, not in an adapter: `orthrus "
          "inspect` shows them",
          printable(model_));
    }
    if (path.empty()) {
      fail_usage("adapter: which one? {} has no diffusion view of its own", printable(model_));
    }
    const Adapter adapter = open_adapter(path, base.config);
    if (to_.empty()) {
      show(adapter, base);
    } else {
      convert(adapter);
    }
    return 0;
  }

 private:
  void take_words() {
    const std::string verb = words_.empty() ? "" : words_.front();
    const bool named = verb == "show" || verb == "convert";
    const size_t paths = words_.size() - (named ? 1 : 0);
    if (paths > 1) fail_usage("adapter: expected one adapter, found {}", paths);
    if (paths == 1) path_ = words_.back();
    if (to_.empty() != output_.empty()) fail_usage("adapter: --to and -o go together");
    if (verb == "show" && !to_.empty()) fail_usage("adapter: show takes neither --to nor -o");
    if (verb == "convert" && to_.empty()) fail_usage("adapter: convert needs --to and -o");
  }

  void show(const Adapter& adapter, const Checkpoint& base) const {
    const AdapterSize size = measure(adapter);
    const char* trained_on = "not said";
    if (!adapter.base_hash.empty()) {
      trained_on = is_base(base, adapter.base_hash) ? "this model" : "another model";
    }
    if (json_) {
      Json report = {{"path", adapter.path},
                     {"method", adapter.method},
                     {"type", size.type},
                     {"parameters", size.parameters},
                     {"bytes", size.bytes},
                     {"block_size", adapter.block_size},
                     {"mask_token_id", adapter.mask_token_id},
                     {"base_hash", adapter.base_hash},
                     {"trained_on", trained_on},
                     {"metadata", adapter.metadata}};
      print(dump_json(report) + "\n");
      return;
    }
    std::string text = fmt::format(
        "adapter:     {}\nmethod:      {}\nweights:     {} ({} parameters, {})\nblock size:  {}\n"
        "mask:        {}\ntrained on:  {}\n",
        adapter.path, adapter.method, size.type, grouped(size.parameters),
        human_bytes(static_cast<double>(size.bytes)), adapter.block_size,
        adapter.mask_token_id < 0 ? "an embedding of its own"
                                  : fmt::format("token {}", adapter.mask_token_id),
        trained_on);
    for (const auto& [key, value] : adapter.metadata)
      text += fmt::format("{:12} {}\n", key + ":", value);
    print(text);
  }

  void convert(const Adapter& adapter) const {
    std::filesystem::path target = output_;
    std::error_code error;
    if (std::filesystem::is_directory(target, error)) target /= "adapter.safetensors";
    write_adapter(adapter, to_ == "int8" ? AdapterType::kInt8 : AdapterType::kBf16,
                  target.string());
    const uintmax_t bytes = std::filesystem::file_size(target, error);
    if (error) fail("{}: cannot read its size: {}", target.string(), error.message());
    print(fmt::format("{}: {} bytes\n", target.string(), grouped(static_cast<int64_t>(bytes))));
  }

  std::string model_, path_, to_, output_;
  std::vector<std::string> words_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_adapter_command() { return std::make_unique<AdapterCommand>(); }

}  // namespace orthrus
