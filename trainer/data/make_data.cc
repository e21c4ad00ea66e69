#include "trainer/data/make_data.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "cli/terminal.h"
#include "engine/prompt_lines.h"
#include "engine/template_request.h"
#include "formats/checkpoint.h"
#include "formats/file_exists.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "text/chat_template.h"
#include "text/jinja_string.h"
#include "text/tokenizer.h"
#include "trainer/data/differences.h"
#include "trainer/data/overlap.h"
#include "trainer/data/self_prompts.h"
#include "trainer/data/shard.h"
#include "trainer/data/token_hash.h"

namespace orthrus::train {
namespace {

using Json = nlohmann::ordered_json;

std::string read_text(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail("{}: is a folder", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read", path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Maker {
 public:
  explicit Maker(const MakeDataOptions& options)
      : options_(options),
        checkpoint_(open_checkpoint(options.generate.model)),
        base_hash_(base_hash(*checkpoint_.tensors)),
        tokenizer_(Tokenizer::load(options.generate.model)),
        template_(ChatTemplate::load(options.generate.model)),
        answerer_(make_answerer(options.generate, options.out + "/part", options.shard_documents)) {
    std::error_code error;
    std::filesystem::create_directories(options.out, error);
    if (error) fail("{}: cannot be created: {}", options.out, error.message());
    lock_.emplace(options.out);
    lock_->require();
  }

  void run();

 private:
  std::vector<PromptLine> lines_of(const std::string& path, int64_t limit) const;
  std::string text_of(const PromptLine& line) const;
  void hold_out(const std::string& path);
  void check(const std::vector<int32_t>& tokens, const std::string& where) const;
  void add_file(const std::string& path);
  void add_self_prompts();
  void drop_too_long();
  void add_user_text(const std::string& text);
  void add_chat(Json request);
  Json chat(const std::string& text) const;
  std::map<std::string, std::string> provenance() const;
  std::string shard_path(size_t index) const;
  std::vector<size_t> missing_shards() const;
  Shard make_shard(size_t index) const;
  void make_shards();

  const MakeDataOptions& options_;
  std::optional<FolderLock> lock_;
  Checkpoint checkpoint_;
  std::string base_hash_;
  Tokenizer tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Answerer> answerer_;
  std::vector<std::vector<int32_t>> prompts_;
  std::map<std::string, std::string> provenance_;  // of every shard, once all prompts are there
  Overlap held_out_;
  int64_t left_out_ = 0;
};

Json Maker::chat(const std::string& text) const {
  Json messages = Json::array();
  if (!options_.system_prompt.empty()) {
    messages.push_back({{"role", "system"}, {"content", options_.system_prompt}});
  }
  messages.push_back({{"role", "user"}, {"content", text}});
  return {{"messages", messages}};
}

void Maker::add_chat(Json request) {
  prompts_.push_back(tokenizer_.encode(template_->render(template_context(request.dump())), true));
}

void Maker::add_user_text(const std::string& text) {
  if (held_out_.found_in(text)) {
    ++left_out_;
  } else if (template_) {
    add_chat(chat(text));
  } else {
    prompts_.push_back(tokenizer_.encode(text, true));
  }
}

/// The prompts of a file: a text file has one a line.
std::vector<PromptLine> Maker::lines_of(const std::string& path, int64_t limit) const {
  const std::string text = read_text(path);
  if (!path.ends_with(".txt")) return parse_prompt_lines(text, path, limit);
  std::vector<PromptLine> prompts;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    if (!jinja::is_valid_utf8(line)) fail("{}: line {} is not UTF-8", path, number);
    if (limit > 0 && static_cast<int64_t>(prompts.size()) == limit) break;
    prompts.emplace_back().prompt = line;
  }
  return prompts;
}

/// What its author wrote, of a chat all messages.
std::string Maker::text_of(const PromptLine& line) const {
  if (line.token_ids) return tokenizer_.decode(*line.token_ids);
  if (!line.messages) return *line.prompt;
  std::string text;
  for (const Json& message : *line.messages) {
    if (message.contains("content") && message["content"].is_string()) {
      text += message["content"].get<std::string>() + '\n';
    }
  }
  return text;
}

void Maker::hold_out(const std::string& path) {
  for (const PromptLine& line : lines_of(path, 0)) held_out_.hold_out(text_of(line));
}

/// A document holds what was attended to: no prompt is empty.
void Maker::check(const std::vector<int32_t>& tokens, const std::string& where) const {
  if (tokens.empty()) fail("{}: a prompt without tokens", where);
  for (const int32_t token : tokens) {
    if (token < 0 || token >= checkpoint_.config.vocab_size) {
      fail("{}: token {} is outside the vocabulary of {}", where, token,
           checkpoint_.config.vocab_size);
    }
  }
}

void Maker::add_file(const std::string& path) {
  for (const PromptLine& line : lines_of(path, options_.limit)) {
    if (line.token_ids) check(*line.token_ids, line.where);
    if (line.prompt && !line.token_ids && !line.messages) {
      add_user_text(*line.prompt);
    } else if (held_out_.found_in(text_of(line))) {
      ++left_out_;
    } else if (line.token_ids) {
      prompts_.push_back(*line.token_ids);
    } else {
      if (!template_) fail("{}: messages, but the model has no chat template", line.where);
      Json request;
      line.add_chat(request);
      try {
        add_chat(std::move(request));
      } catch (const Error& error) {
        fail("{}: {}", line.where, error.what());
      }
    }
  }
}

/// What differs between two records of what self-prompts were asked for, in the names of flags.
std::string self_prompt_difference(const Json& made, const Json& asked) {
  static constexpr NamedKey kKeys[] = {{"count", "--self-prompts"},
                                       {"seed", "--seed"},
                                       {"starts", "--self-prompt-start"},
                                       {"system_prompt", "--system-prompt"},
                                       {"base_hash", "a model of the hash"}};
  const auto words = [](const Json& record) {
    Words result;
    for (const auto& [key, value] : record.items()) {
      result[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return result;
  };
  const std::string text = differences(kKeys, words(made), words(asked));
  return text.empty() ? "further words" : text;
}

/// Error(kUsage) where the file was made with other flags.
std::vector<std::string> read_self_prompts(const std::string& path, const Json& asked) {
  const Json saved = Json::parse(read_text(path), nullptr, /*allow_exceptions=*/false);
  const bool whole = saved.is_object() && saved.contains("asked") && saved.contains("texts") &&
                     saved["texts"].is_array();
  if (!whole) fail("{}: not a list of self-prompts", path);
  if (saved["asked"] != asked) {
    fail_usage("{}: made with {}", path, self_prompt_difference(saved["asked"], asked));
  }
  std::vector<std::string> texts;
  for (const Json& text : saved["texts"]) {
    if (!text.is_string()) fail("{}: not a list of texts", path);
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

/// Written once and kept beside the shards, so that a later call has the same ones.
void Maker::add_self_prompts() {
  if (options_.self_prompts == 0) return;
  if (!template_) fail("self-prompts: the model has no chat template");
  const std::string path = options_.out + "/self-prompts.json";
  const Json asked{{"count", options_.self_prompts},
                   {"seed", options_.generate.seed},
                   {"starts", options_.self_prompt_starts},
                   {"system_prompt", options_.system_prompt},
                   {"base_hash", base_hash_}};
  std::vector<std::string> texts;
  if (file_exists(path)) {
    texts = read_self_prompts(path, asked);
  } else {
    // What the template puts before and after a user's text.
    const std::string mark = "\x01USER TEXT\x01";
    const std::string rendered = template_->render(template_context(chat(mark).dump()));
    const size_t at = rendered.find(mark);
    if (at == std::string::npos) fail("self-prompts: the chat template hides the user's text");
    const std::string after = rendered.substr(at + mark.size());
    const size_t line = after.find('\n');
    const GenerateOptions& generate = options_.generate;
    const SelfPromptRequest request{rendered.substr(0, at), options_.self_prompt_starts,
                                    after.substr(0, line),  options_.self_prompts,
                                    generate.batch.rows,    generate.seed};
    if (request.stop.empty()) fail("self-prompts: the chat template does not end a user's turn");
    texts = self_prompts(request, tokenizer_, *answerer_);
    write_file_atomically(path, Json{{"asked", asked}, {"texts", texts}}.dump());
  }
  for (const std::string& text : texts) add_user_text(text);
}

std::map<std::string, std::string> Maker::provenance() const {
  const GenerateOptions& g = options_.generate;
  TokenHash prompts;
  for (const std::vector<int32_t>& prompt : prompts_) prompts.add(prompt);
  std::string files;
  for (const std::string& path : options_.prompts) {
    files += (files.empty() ? "" : ", ") + std::filesystem::path(path).filename().string();
  }
  std::map<std::string, std::string> words = {
      {"model", checkpoint_.config.name},
      {"weights", g.weights},
      {"prompt_files", files},
      {"prompts", std::to_string(prompts_.size())},
      {"prompts_hash", prompts.text()},
      {"self_prompts", std::to_string(options_.self_prompts)},
      {"shard_documents", std::to_string(options_.shard_documents)},
      {"max_tokens", std::to_string(g.batch.max_tokens)},
      {"temperature", fmt::format("{}", g.batch.temperature)},
      {"seed", std::to_string(g.seed)}};
  if (g.backend == Backend::kTorch) words["backend"] = "libtorch on " + g.device;
  return words;
}

std::string Maker::shard_path(size_t index) const {
  return fmt::format("{}/{:05}.shard", options_.out, index);
}

/// Checks those that are there.
std::vector<size_t> Maker::missing_shards() const {
  const auto size = static_cast<size_t>(options_.shard_documents);
  std::vector<size_t> missing;
  for (size_t i = 0; i * size < prompts_.size(); ++i) {
    if (!file_exists(shard_path(i))) {
      missing.push_back(i);
      continue;
    }
    const Shard shard = read_shard(shard_path(i));
    if (shard.provenance != provenance_) {
      fail_usage("{}: made with {}", shard_path(i),
                 provenance_difference(shard.provenance, provenance_));
    }
    if (shard.base_hash != base_hash_) {
      fail_usage("{}: made by another model (hash {}) than {} (hash {})", shard_path(i),
                 printable(short_hash(shard.base_hash)), options_.generate.model,
                 short_hash(base_hash_));
    }
  }
  return missing;
}

/// With the prompts, still without answers.
Shard Maker::make_shard(size_t index) const {
  Shard shard{base_hash_, checkpoint_.config.vocab_size, provenance_, {}};
  const auto size = static_cast<size_t>(options_.shard_documents);
  for (size_t i = index * size; i < std::min((index + 1) * size, prompts_.size()); ++i) {
    shard.documents.push_back({prompts_[i], {}});
  }
  return shard;
}

/// A line every ten seconds, and one at the end.
class Progress {
 public:
  explicit Progress(size_t answers) : answers_(answers) {}
  void add(size_t tokens) {
    ++made_;
    tokens_ += tokens;
    const Clock::time_point now = Clock::now();
    if (made_ < answers_ && now - shown_ < std::chrono::seconds(10)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const auto made = static_cast<double>(made_);
    print_stderr(fmt::format("{} of {} answers  {:.0f} tokens/s  {:.1f} min left\n", made_,
                             answers_, static_cast<double>(tokens_) / seconds,
                             seconds / made * (static_cast<double>(answers_) - made) / 60));
  }

 private:
  using Clock = std::chrono::steady_clock;
  const size_t answers_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = begin_;
  size_t made_ = 0, tokens_ = 0;
};

void Maker::make_shards() {
  /// A shard whose answers are on their way.
  struct Pending {
    size_t index;
    Shard shard;
    size_t open;  // documents without an answer
  };
  std::vector<Pending> pending;
  std::vector<AnswerRequest> requests;
  std::vector<std::pair<size_t, size_t>> places;  // a request: which of pending, document
  for (const size_t index : missing_shards()) {
    pending.push_back({index, make_shard(index), 0});
    for (const Document& document : pending.back().shard.documents) {
      const size_t prompt =
          index * static_cast<size_t>(options_.shard_documents) + pending.back().open;
      places.emplace_back(pending.size() - 1, pending.back().open++);
      requests.push_back({document.tokens, options_.generate.seed + prompt});
    }
  }
  Progress progress(requests.size());
  answerer_->answer(requests, options_.generate.batch, [&](size_t i, std::vector<int32_t> answer) {
    Pending& p = pending[places[i].first];
    Document& document = p.shard.documents[places[i].second];
    const auto prompt_end = static_cast<int64_t>(document.tokens.size());
    document.tokens.insert(document.tokens.end(), answer.begin(), answer.end());
    if (!answer.empty()) {
      document.answers = {{prompt_end, static_cast<int64_t>(document.tokens.size())}};
    }
    if (--p.open == 0) {
      write_shard(shard_path(p.index), p.shard);
      p.shard = {};
    }
    progress.add(answer.size());
  });
}

/// Prompts that leave no room for an answer within the model's positions.
void Maker::drop_too_long() {
  const int64_t limit = checkpoint_.config.max_position_embeddings;
  const int64_t answer = options_.generate.batch.max_tokens;
  const size_t dropped = std::erase_if(prompts_, [&](const std::vector<int32_t>& prompt) {
    return limit > 0 && static_cast<int64_t>(prompt.size()) + answer > limit;
  });
  if (dropped == 0) return;
  spdlog::warn("{} prompts left out: with {} tokens of answer they pass the model's {}", dropped,
               answer, limit);
}

void Maker::run() {
  for (const std::string& path : options_.held_out) hold_out(path);
  for (const std::string& path : options_.prompts) add_file(path);
  add_self_prompts();
  if (left_out_ > 0) {
    spdlog::info("{} prompts left out: they share {} words in a row with held-out ones", left_out_,
                 Overlap::kWords);
  }
  drop_too_long();
  if (prompts_.empty()) fail_usage("no prompts: --prompts or --self-prompts brings some");
  provenance_ = provenance();
  make_shards();
  const Shard all = read_shards({options_.out});
  print(fmt::format("{}: {} documents, {} answer tokens\n", options_.out, all.documents.size(),
                    answer_tokens(all)));
}

}  // namespace

void make_data(const MakeDataOptions& options) { Maker(options).run(); }

}  // namespace orthrus::train
