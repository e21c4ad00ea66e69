#include "trainer/data/torch_answers.h"

#include <optional>

#include "base/error.h"
#include "trainer/model/device.h"
#include "trainer/model/generate.h"

namespace orthrus::train {
namespace {

at::ScalarType parse_type(const std::string& weights, at::Device device) {
  if (weights == "f32" || (weights == "auto" && device.is_cpu())) return at::kFloat;
  if (weights == "bf16" || weights == "auto") return at::kBFloat16;
  fail_usage("weights {}: libtorch answers in f32 or bf16", weights);
}

class TorchAnswers : public Answerer {
 public:
  explicit TorchAnswers(const GenerateOptions& options)
      : model_(options.model),
        device_(parse_device(options.device)),
        type_(parse_type(options.weights, device_)) {}

  void answer(std::span<const AnswerRequest> requests, const BatchOptions& batch,
              const OnAnswer& on_answer) override {
    if (!decoder_) {
      decoder_.emplace(load_tensors(open_checkpoint(model_), DiffusionSource::kNone), device_,
                       type_);
    }
    generate(*decoder_, requests, batch, on_answer);
  }

 private:
  std::string model_;
  at::Device device_;
  at::ScalarType type_;
  std::optional<ArDecoder> decoder_;
};

}  // namespace

std::unique_ptr<Answerer> make_torch_answers(const GenerateOptions& options) {
  return std::make_unique<TorchAnswers>(options);
}

}  // namespace orthrus::train
