#include "server/answer_format.h"

#include <utility>

#include "server/api_chat_answer.h"
#include "server/api_completion_answer.h"
#include "server/api_error.h"
#include "server/api_json.h"
#include "server/api_prompt.h"

namespace orthrus {
namespace {

int64_t size_of(const std::vector<int32_t>& ids) { return static_cast<int64_t>(ids.size()); }

class ChatFormat : public AnswerFormat {
 public:
  ChatFormat(ChatRequest request, AnswerHead head, const ChatTemplate& chat_template,
             const Tokenizer& tokenizer, int64_t max_seq_len)
      : request_(std::move(request)),
        head_(std::move(head)),
        prompt_(render_chat(request_, chat_template)),
        ids_(encode(prompt_.text, tokenizer, max_seq_len)),
        tokenizer_(tokenizer),
        stream_(head_, request_, prompt_.thought, tokenizer) {
    // All that is left of it is its tokens, however long it waits.
    request_.context = nullptr;
    prompt_.text = {};
  }

  std::vector<EngineRequest> requests() const override {
    std::vector<EngineRequest> requests;
    for (int64_t i = 0; i < request_.n; ++i) {
      requests.push_back({ids_, chat_options(request_, prompt_, i), {}, 0});
    }
    return requests;
  }
  const GenerationRequest& request() const override { return request_; }

  AnswerStream& stream() override { return stream_; }
  std::string whole(std::span<const GenerateResult> results) override {
    return dump_json_line(chat_answer(head_, request_, prompt_.thought, tokenizer_, results));
  }

 private:
  static std::vector<int32_t> encode(const std::string& text, const Tokenizer& tokenizer,
                                     int64_t max_seq_len) {
    check_prompt_bytes(text.size(), tokenizer.max_token_bytes(), max_seq_len);
    std::vector<int32_t> ids = tokenizer.encode(text);
    check_prompt_length(size_of(ids), max_seq_len);
    return ids;
  }

  ChatRequest request_;
  AnswerHead head_;
  ChatPrompt prompt_;
  std::vector<int32_t> ids_;
  const Tokenizer& tokenizer_;
  ChatStream stream_;
};

class CompletionFormat : public AnswerFormat {
 public:
  CompletionFormat(CompletionRequest request, AnswerHead head, const Tokenizer& tokenizer,
                   int64_t max_seq_len)
      : request_(std::move(request)),
        head_(std::move(head)),
        prompts_(encode(request_, tokenizer, max_seq_len)),
        tokenizer_(tokenizer),
        stream_(head_, request_, prompts_, tokenizer) {}

  std::vector<EngineRequest> requests() const override {
    std::vector<EngineRequest> requests;
    for (const CompletionPrompt& prompt : prompts_) {
      for (int64_t i = 0; i < request_.n; ++i) {
        requests.push_back({prompt.ids, request_.choice_options(i), {}, 0});
      }
    }
    return requests;
  }
  const GenerationRequest& request() const override { return request_; }

  AnswerStream& stream() override { return stream_; }
  std::string whole(std::span<const GenerateResult> results) override {
    return dump_json_line(completion_answer(head_, request_, prompts_, tokenizer_, results));
  }

 private:
  /// Leaves no prompts in the request, as ChatFormat.
  static std::vector<CompletionPrompt> encode(CompletionRequest& request,
                                              const Tokenizer& tokenizer, int64_t max_seq_len) {
    std::vector<CompletionPrompt> prompts;
    for (const auto& prompt : std::exchange(request.prompts, {})) {
      if (const auto* text = std::get_if<std::string>(&prompt)) {
        check_prompt_bytes(text->size(), tokenizer.max_token_bytes(), max_seq_len);
      }
      prompts.push_back(completion_prompt(prompt, tokenizer));
      check_prompt_length(size_of(prompts.back().ids), max_seq_len);
    }
    return prompts;
  }

  CompletionRequest request_;
  AnswerHead head_;
  std::vector<CompletionPrompt> prompts_;
  const Tokenizer& tokenizer_;
  CompletionStream stream_;
};

}  // namespace

std::unique_ptr<AnswerFormat> make_chat_format(std::string_view body, const ApiContext& context,
                                               AnswerHead head, const ChatTemplate* chat_template,
                                               const Tokenizer& tokenizer, int64_t max_seq_len) {
  ChatRequest request = parse_chat_request(body, context);
  if (!chat_template) {
    throw bad_request("The model has no chat template; /v1/completions takes plain text.",
                      "messages", "unsupported_parameter");
  }
  return std::make_unique<ChatFormat>(std::move(request), std::move(head), *chat_template,
                                      tokenizer, max_seq_len);
}

std::unique_ptr<AnswerFormat> make_completion_format(std::string_view body,
                                                     const ApiContext& context, AnswerHead head,
                                                     const Tokenizer& tokenizer,
                                                     int64_t max_seq_len) {
  return std::make_unique<CompletionFormat>(parse_completion_request(body, context),
                                            std::move(head), tokenizer, max_seq_len);
}

}  // namespace orthrus
