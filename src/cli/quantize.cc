#include <fmt/format.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_size.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/quantize.h"

namespace orthrus {
namespace {

class QuantizeCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flag(app, flags_.model);
    add_view_flags(app, flags_);
    add_threads_flag(app, flags_.threads);
    app.add_option("-o,--output", output_, "the GGUF file to write");
    app.add_option("--type", type_, "bf16, q8_0, or q4_0 (embedding and lm_head as q8_0)")
        ->transform(CLI::IsMember({"bf16", "q8_0", "q4_0"}, CLI::ignore_case))
        ->capture_default_str();
  }

  int run() override {
    require_model(flags_.model);
    if (output_.empty()) fail_usage("quantize: which file to write? Name one with -o");
    if (flags_.adapter == "copy") {
      fail_usage("quantize: --adapter copy has no weights of its own to be written");
    }
    const OpenedModel model = open_model_files(flags_);
    if (flags_.view == "dual" && !model.has_diffusion()) {
      fail_usage("--view dual: {} has no diffusion view, and no --adapter names one", flags_.model);
    }
    ThreadPool pool(flags_.threads);
    ProgressLine progress("quantizing");
    InterruptGuard interrupt(/*second_ends=*/false);
    QuantizeRequest request;
    request.format = format();
    request.diffusion = flags_.view != "ar";
    request.adapter = model.diffusion.adapter ? &*model.diffusion.adapter : nullptr;
    request.progress = [&](double share) { progress.update(share); };
    request.stop = interrupt.token();
    const QuantizeResult result = quantize_model(model.checkpoint, request, output_, pool);
    if (result.stopped) return 130;
    print(fmt::format("{}: {} tensors, {} bytes\n", output_, result.tensors,
                      grouped(static_cast<int64_t>(result.bytes))));
    return 0;
  }

 private:
  WeightFormat format() const {
    if (type_ == "bf16") return WeightFormat::kBF16;
    return type_ == "q4_0" ? WeightFormat::kQ4 : WeightFormat::kQ8;
  }

  ModelFlags flags_;
  std::string output_;
  std::string type_ = "q8_0";
};

}  // namespace

std::unique_ptr<Command> make_quantize_command() { return std::make_unique<QuantizeCommand>(); }

}  // namespace orthrus
