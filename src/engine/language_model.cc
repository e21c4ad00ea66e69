#include "orthrus/language_model.h"

#include "base/error.h"
#include "engine/generator.h"
#include "engine/template_request.h"

namespace orthrus {

void TextStreamer::on_prompt(std::span<const int32_t>, std::string_view text) { on_text(text); }

void TextStreamer::on_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

struct Session::Impl {
  Impl(std::shared_ptr<void> model, BlockPool& pool)
      : owner(std::move(model)), conversation(pool) {}
  std::shared_ptr<void> owner;  // keeps the pool alive
  Conversation conversation;
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

void Session::reset() {
  impl_->conversation.tokens.clear();
  impl_->conversation.table.set_length(0);
}

struct LanguageModel::Impl {
  explicit Impl(const LoadOptions& options) : generator(options) {}
  Generator generator;
};

LanguageModel::LanguageModel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
LanguageModel::~LanguageModel() = default;
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;

LanguageModel LanguageModel::load(const LoadOptions& options) {
  return LanguageModel(std::make_shared<Impl>(options));
}

std::vector<int32_t> LanguageModel::encode(std::string_view text, bool add_special_tokens) const {
  return impl_->generator.loaded().tokenizer.encode(text, add_special_tokens);
}

std::string LanguageModel::decode(std::span<const int32_t> token_ids,
                                  bool skip_special_tokens) const {
  return impl_->generator.loaded().decode(token_ids, skip_special_tokens);
}

bool LanguageModel::has_chat_template() const {
  return impl_->generator.loaded().chat_template != nullptr;
}

std::string LanguageModel::apply_chat_template(std::string_view json) const {
  const auto& chat_template = impl_->generator.loaded().chat_template;
  if (!chat_template) fail("the model has no chat template");
  return chat_template->render(template_context(json));
}

GenerateResult LanguageModel::generate(std::span<const int32_t> input_ids,
                                       const GenerateOptions& options, Streamer* streamer,
                                       Session* session, std::stop_token stop) {
  if (session && session->impl_->owner != impl_) {
    fail_usage("generate: the session belongs to another model");
  }
  Conversation* conversation = session ? &session->impl_->conversation : nullptr;
  return impl_->generator.generate(input_ids, options, streamer, conversation, stop);
}

void LanguageModel::generate_batch(std::span<const BatchRequest> requests,
                                   const std::function<void(size_t, GenerateResult)>& done,
                                   const std::function<void(size_t, const std::string&)>& failed,
                                   std::stop_token stop) {
  impl_->generator.generate_batch(requests, done, failed, stop);
}

Session LanguageModel::new_session() const {
  return Session(std::make_unique<Session::Impl>(impl_, impl_->generator.block_pool()));
}

ModelInfo LanguageModel::info() const {
  Generator& generator = impl_->generator;
  const LoadedModel& loaded = generator.loaded();
  ModelInfo info;
  info.path = loaded.checkpoint.path;
  info.diffusion_source = loaded.diffusion_source;
  info.weights = loaded.weights;
  info.draft_weights = loaded.draft_weights;
  info.draft_vocab = loaded.model.draft_vocab();
  info.isa = isa_name(generator.forward().context().isa);
  info.threads = generator.thread_pool().size();
  info.key_type = generator.forward().layout().key_type;
  info.value_type = generator.forward().layout().value_type;
  info.block_size = loaded.model.has_diffusion() ? loaded.model.config.block_size : 0;
  info.weight_bytes = loaded.model.weight_bytes();
  info.diffusion_bytes = loaded.model.diffusion_bytes();
  return info;
}

bool LanguageModel::has_diffusion_view() const {
  return impl_->generator.loaded().model.has_diffusion();
}

int64_t LanguageModel::max_seq_len() const { return impl_->generator.max_seq_len(); }

SamplingOptions LanguageModel::default_sampling() const {
  return impl_->generator.default_sampling();
}

}  // namespace orthrus
