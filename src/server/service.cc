#include "server/service.h"

#include <ctime>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "base/log.h"
#include "server/answer_format.h"
#include "server/answer_job.h"
#include "server/api_error.h"
#include "server/api_json.h"
#include "server/http_router.h"
#include "server/page.h"

namespace orthrus {
namespace {

using Clock = AnswerJob::Clock;

constexpr std::chrono::seconds kTimeToTell{1};

HttpAnswer json_answer(const nlohmann::ordered_json& body) {
  return {.body = dump_json_line(body)};
}

HttpAnswer page_answer(const HttpRequest& request, const PageFile& file) {
  HttpAnswer answer;
  answer.content_type = file.content_type;
  answer.headers = {{"etag", std::string(file.etag)},
                    {"cache-control", "no-cache"},
                    {"referrer-policy", "no-referrer"},
                    {"content-security-policy", std::string(kPageSecurityPolicy)}};
  const std::string* known = request.header("if-none-match");
  if (known && *known == file.etag) {
    answer.status = 304;
  } else {
    answer.body = file.body;
  }
  return answer;
}

// What /tokenize takes and gives: its answer is built in memory, a few hundred bytes a token.
constexpr size_t kMaxTokenizeBytes = size_t{4} << 20;
constexpr size_t kMaxTokenizeTokens = size_t{1} << 18;

void check_tokenize_size(const char* what, size_t found, size_t most) {
  if (found <= most) return;
  throw bad_request(fmt::format("The text has {} {}, expected at most {}.", found, what, most),
                    "content", "text_too_long");
}

uint64_t draw_seed() {
  // Numbers of JSON are doubles in JavaScript and others: exact up to 2^53.
  constexpr uint64_t kExact = (uint64_t{1} << 53) - 1;
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) & kExact;
}

/// On a reader's thread, so that a grammar that takes its time holds up none of the answers that
/// are written. ApiError for one that is wrong.
void prepare_form(Grammars& grammars, const GenerationRequest& request) {
  try {
    grammars.prepare(request.options);
  } catch (const Error& error) {
    throw api_error(error, request.form);
  }
}

bool thinks(const Tokenizer& tokenizer) {
  return tokenizer.token_id("<think>") >= 0 && tokenizer.token_id("</think>") >= 0;
}

}  // namespace

/// The model and the engine that serves it.
struct Service::Served {
  Served(Generator& model, const EngineOptions& options, ModelCard model_card, int64_t most_answers)
      : generator(model),
        engine({model.answer_parts(), model.forward(), model.block_pool()}, options),
        card(std::move(model_card)),
        places(most_answers),
        thread([this](const std::stop_token& stop) { engine.run(stop); }) {}

  const LoadedModel& loaded() const { return generator.loaded(); }

  Generator& generator;
  Engine engine;
  ModelCard card;
  ApiContext context;
  std::string fingerprint;
  std::optional<uint64_t> seed;
  Places places;
  std::jthread thread;  // last: the engine runs while the rest is there
};

Service::Service(ServiceOptions options)
    : options_(std::move(options)), metrics_(options_.version) {
  for (const char* path : {"/v1/health", "/version", "/openapi.json"}) {
    options_.http.public_paths.emplace_back(path);
  }
  options_.http.quiet_paths = {"/health", "/v1/health", "/metrics"};
  if (options_.page) {
    for (const PageFile& file : page_files()) {
      options_.http.public_paths.emplace_back(file.path);
    }
  }
  http_ = std::make_unique<HttpServer>(options_.http, routes());
}

Service::~Service() {
  http_->stop();  // clients that are still there have their requests cancelled
  end_engine();
  readers_.join();
  writers_.join();
}

void Service::serve(Generator& generator, const EngineOptions& engine_options,
                    GenerateOptions defaults, std::optional<uint64_t> seed) {
  const LoadedModel& loaded = generator.loaded();
  ModelCard card{options_.names, std::time(nullptr), generator.max_seq_len(),
                 loaded.model.has_diffusion()};
  served_ = std::make_unique<Served>(generator, engine_options, std::move(card),
                                     engine_options.decode_batch_size + options_.max_queue);
  ApiContext& context = served_->context;
  context.models = options_.names;
  context.defaults = std::move(defaults);
  if (!options_.template_kwargs.empty()) {
    context.template_kwargs = nlohmann::ordered_json::parse(options_.template_kwargs);
  }
  context.vocab_size = loaded.model.config.vocab_size;
  context.thinks = thinks(loaded.tokenizer);
  served_->seed = seed;
  served_->fingerprint = fmt::format("orthrus-{}-{}", options_.version, loaded.weights);
  metrics_.set_model({options_.names.front(), loaded.weights, loaded.model.has_diffusion(),
                      loaded.model.has_diffusion() ? loaded.model.config.block_size : 0});
  state_ = ServerState::kReady;
}

bool Service::drain(const std::stop_token& hurry) {
  state_ = ServerState::kDraining;
  readers_.refuse_waiting(going_down());
  const Clock::time_point end = Clock::now() + options_.drain_timeout;
  while (http_->open_replies() > 0 && Clock::now() < end && !hurry.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const int64_t left = http_->open_replies();
  if (left == 0) return true;
  spdlog::warn("answers cut off: {}", left);
  // Their clients are told, if they listen.
  end_engine();
  const Clock::time_point told = Clock::now() + kTimeToTell;
  while (http_->open_replies() > 0 && Clock::now() < told) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

void Service::end_engine() {
  if (!served_ || !served_->thread.joinable()) return;
  served_->thread.request_stop();
  served_->thread.join();
}

Service::Served& Service::served() const {
  switch (state_.load()) {
    case ServerState::kLoading:
      throw not_ready("The model is being loaded.");
    case ServerState::kDraining:
      throw going_down();
    case ServerState::kReady:
      break;
  }
  return *served_;
}

HttpRouter Service::routes() {
  HttpRouter router;
  router.add("POST", "/v1/chat/completions", on_reader(&Service::chat));
  router.add("POST", "/v1/completions", on_reader(&Service::completion));
  router.add("GET", "/v1/models", on_reader(&Service::models));
  router.add("GET", "/v1/models/*", on_reader(&Service::models));  // names may hold slashes
  router.add("POST", "/tokenize", on_reader(&Service::tokenize));
  router.add("POST", "/detokenize", on_reader(&Service::detokenize));
  for (const char* path : {"/v1/embeddings", "/v1/responses"}) {
    router.add("POST", path, [](const HttpRequest& request, const auto& reply) {
      reply->send(error_answer(unsupported_endpoint(request.path)));
    });
  }
  for (const char* path : {"/health", "/v1/health"}) {
    router.add("GET", path, [this](const auto&, const auto& reply) { reply->send(health()); });
  }
  router.add("GET", "/version", [this](const auto&, const auto& reply) {
    reply->send(json_answer({{"version", options_.version}}));
  });
  router.add("GET", "/metrics", [this](const auto&, const auto& reply) { reply->send(metrics()); });
  router.add("GET", "/openapi.json", [](const auto&, const auto& reply) {
    reply->send({.body = std::string(openapi_json())});
  });
  if (options_.page) {
    for (const PageFile& file : page_files()) {
      router.add("GET", std::string(file.path), [&file](const auto& request, const auto& reply) {
        reply->send(page_answer(request, file));
      });
    }
  }
  return router;
}

HttpHandler Service::on_reader(void (Service::*read)(HttpRequest&,
                                                     const std::shared_ptr<HttpReply>&)) {
  return readers_.handler(
      [this, read](HttpRequest& request, const auto& reply) { (this->*read)(request, reply); });
}

void Service::chat(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  answer(request, reply, true);
}

void Service::completion(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  answer(request, reply, false);
}

void Service::answer(HttpRequest& request, const std::shared_ptr<HttpReply>& reply, bool chat) {
  AnswerJob::Origin origin{request.id, request.path, request.client, Clock::now(), {}};
  std::unique_ptr<AnswerFormat> format;
  try {
    Served& model = served();
    if (model.places.full()) throw queue_full();  // before the work of reading it
    ApiContext context = model.context;
    context.seed = model.seed ? *model.seed : draw_seed();
    AnswerHead head{(chat ? "chatcmpl-" : "cmpl-") + request.id, std::time(nullptr),
                    options_.names.front(), model.fingerprint};
    const LoadedModel& loaded = model.loaded();
    format =
        chat ? make_chat_format(request.body, context, std::move(head), loaded.chat_template.get(),
                                loaded.tokenizer, model.generator.max_seq_len())
             : make_completion_format(request.body, context, std::move(head), loaded.tokenizer,
                                      model.generator.max_seq_len());
    prepare_form(model.generator.answer_parts().grammars, format->request());
  } catch (const ApiError& error) {
    const bool rejected = error.status == 429 || error.status == 503;
    metrics_.failed(origin.endpoint, rejected ? Outcome::kRejected : Outcome::kError);
    throw;
  }
  request.body = std::string();
  origin.share = std::move(request.share);
  const AnswerJob::Parts parts{served_->engine, metrics_, served_->places, writers_,
                               options_.request_timeout};
  std::make_shared<AnswerJob>(parts, std::move(origin), std::move(format), reply)->start();
}

void Service::models(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const ModelCard& card = served().card;
  const std::string prefix = "/v1/models/";
  reply->send(json_answer(request.path.starts_with(prefix)
                              ? model_body(card, request.path.substr(prefix.size()))
                              : models_body(card)));
}

void Service::tokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  Served& model = served();
  const TokenizeRequest wanted = parse_tokenize_request(request.body, model.context);
  const LoadedModel& loaded = model.loaded();
  if (!wanted.context.is_null() && !loaded.chat_template) {
    throw bad_request("The model has no chat template.", "messages", "unsupported_parameter");
  }
  const std::string text =
      wanted.context.is_null() ? wanted.text : loaded.chat_template->render(wanted.context);
  check_tokenize_size("bytes", text.size(), kMaxTokenizeBytes);
  const std::vector<int32_t> ids = loaded.tokenizer.encode(text, wanted.add_special);
  check_tokenize_size("tokens", ids.size(), kMaxTokenizeTokens);
  reply->send(
      json_answer(tokenize_body(wanted, ids, loaded.tokenizer, model.generator.max_seq_len())));
}

void Service::detokenize(HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  Served& model = served();
  const std::vector<int32_t> ids = parse_detokenize_request(request.body, model.context);
  reply->send(json_answer(detokenize_body(ids, model.loaded().tokenizer)));
}

HttpAnswer Service::health() const {
  const ServerState state = state_;
  return {.status = health_status(state), .body = dump_json_line(health_body(state))};
}

HttpAnswer Service::metrics() {
  std::optional<EngineStats> stats;
  if (state_ != ServerState::kLoading) stats = served_->engine.stats();
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = metrics_.text(stats ? &*stats : nullptr, http_->connections())};
}

}  // namespace orthrus
