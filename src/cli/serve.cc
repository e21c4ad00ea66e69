#include <fmt/format.h>
#include <pthread.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/trimmed.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "engine/generator.h"
#include "engine/model_registry.h"
#include "server/service.h"

namespace orthrus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Takes SIGINT and SIGTERM from all threads that are begun after it: the first one is waited for,
/// a second one is told through a stop token. Until expect() they end the program.
class Termination {
 public:
  Termination() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    ORTHRUS_CHECK(pthread_sigmask(SIG_BLOCK, &signals_, nullptr) == 0);
    watcher_ = std::jthread([this](const std::stop_token& end) { watch(end); });
  }
  /// From now on a signal ends wait() instead of the program.
  void expect() { expected_ = true; }
  /// The signal.
  int wait() {
    first_.wait(0);
    return first_;
  }
  /// Stops at the second signal.
  std::stop_token hurry() const { return hurry_.get_token(); }

 private:
  void watch(const std::stop_token& end) {
    while (!end.stop_requested()) {
      const timespec moment{0, 100'000'000};
      const int signal = sigtimedwait(&signals_, nullptr, &moment);
      if (signal < 0) continue;
      if (!expected_) std::_Exit(128 + signal);
      if (first_ != 0) hurry_.request_stop();
      first_ = signal;
      first_.notify_all();
    }
  }

  sigset_t signals_;
  std::atomic<bool> expected_ = false;
  std::atomic<int> first_ = 0;
  std::stop_source hurry_;
  std::jthread watcher_;
};

/// One key a line; empty lines do not count.
void read_key_file(const std::string& path, std::vector<std::string>& keys) {
  std::istringstream lines(read_all(path));
  for (std::string line; std::getline(lines, line);) {
    const std::string_view key = trimmed(line);
    if (!key.empty() && key[0] != '#') keys.emplace_back(key);
  }
  if (keys.empty()) fail("{}: no API key in it", path);
}

bool is_local(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string url_host(const std::string& host) {
  if (host == "0.0.0.0" || host == "::") return "localhost";
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

class ServeCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, model_flags_);
    add_server_flags(app);
    add_scheduler_flags(app);
    add_generation_flags(app, generation_);
    app.footer(
        "Flags of generation are what a request has that does not say otherwise. Flags of "
        "llama-server and vLLM that have no use here are refused with what to do instead.");
  }

  int run() override {
    require_model(model_flags_.model);
    resolve_model(model_flags_.model);  // before anyone is told to wait for it
    if (generation_.max_tokens == 0) fail_usage("-n 0: answers without a token are none");
    Termination termination;
    ServiceOptions options = service_options();
    const LoadOptions load = serving_load_options();
    // The service's engine works with the generator to its end, so that this one must go later.
    std::optional<Generator> generator;
    Service service(std::move(options));
    print_stderr(fmt::format("loading {}; http://{}:{}/health says when it is ready\n",
                             model_flags_.model, url_host(host_), service.port()));
    generator.emplace(load);
    if (model_flags_.view == "dual" && !generator->loaded().model.has_diffusion()) {
      fail_usage("--view dual: {} has no diffusion view, and no --adapter names one",
                 model_flags_.model);
    }
    note_context(model_flags_, generator->max_seq_len());
    return serve(service, *generator, termination);
  }

 private:
  void add_server_flags(CLI::App& app) {
    const char* group = "Server";
    app.add_option("--host", host_, "address to listen on; 0.0.0.0 or ::, every one")
        ->capture_default_str()
        ->group(group);
    app.add_option("--port", port_, "0: any that is free")
        ->check(number_in(0, 65535))
        ->capture_default_str()
        ->group(group);
    app.add_option("-a,--alias,--served-model-name", aliases_,
                   "name of the model in requests; repeatable")
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--api-key", api_keys_, "that requests must bring; repeatable")
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--api-key-file", key_file_, "a file with one key a line, # before comments")
        ->group(group);
    add_template_kwargs_flag(app, template_kwargs_)->group("Generation");
    app.add_option("--cors-origin", cors_origins_,
                   "origin whose pages may ask, *: any; repeatable (default: none)")
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--forwarded-allow-ips", forwarded_allow_ips_,
                   "addresses of proxies whose X-Forwarded-For says who asks, parted by commas; *: "
                   "any (default: none)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--timeout", timeout_, "seconds in which a client must send or take data")
        ->check(number_in(1, 86400))
        ->capture_default_str()
        ->group(group);
    app.add_option("--request-timeout", request_timeout_,
                   "seconds that an answer may take in all, 0: no limit")
        ->check(number_in(0, 86400))
        ->capture_default_str()
        ->group(group);
    app.add_option("--drain-timeout", drain_timeout_,
                   "seconds that running answers have at the end")
        ->check(number_in(0, 86400))
        ->capture_default_str()
        ->group(group);
    app.add_option("--max-queue", max_queue_,
                   "answers that may wait beside those of --parallel; more get 429")
        ->check(number_in(0, 1e6))
        ->capture_default_str()
        ->group(group);
    app.add_option("--max-body-mb", max_body_mb_, "MiB of a request's body")
        ->check(number_in(1, 1024))
        ->capture_default_str()
        ->group(group);
    app.add_option("--max-connections", max_connections_, "open connections")
        ->check(number_in(1, 100000))
        ->capture_default_str()
        ->group(group);
    app.add_flag("--no-page", no_page_, "no chat page at /")->group(group);
  }

  void add_scheduler_flags(CLI::App& app) {
    const char* group = "Scheduler";
    app.add_option("--parallel,--decode-batch-size,--max-num-seqs", scheduler_.decode_batch_size,
                   "(-np) answers that are written at once, at most")
        ->check(number_in(1, 1024))
        ->capture_default_str()
        ->group(group);
    app.add_option("--prefill-batch-size", scheduler_.prefill_batch_size,
                   "prompts that are read at once")
        ->check(number_in(1, 1024))
        ->capture_default_str()
        ->group(group);
    app.add_option("--prefill-mode", prefill_mode_,
                   "mixed: prompts share passes with answers; separate: passes of their own")
        ->check(CLI::IsMember({"mixed", "separate"}))
        ->capture_default_str()
        ->group(group);
    app.add_option("--prefill-share", scheduler_.prefill_share,
                   "time that prompts may add to the steps of running answers, as a share of it; "
                   "more reads prompts faster, less keeps the answers' pace")
        ->check(number_in(0.01, 1000))
        ->capture_default_str()
        ->group(group);
    app.add_option("--kv-cache-memory-budget-gb", kv_budget_gb_,
                   "GiB of keys and values, at most 80 % of the memory that is free")
        ->check(number_in(0, 1e6))
        ->capture_default_str()
        ->group(group);
    app.add_option("--memory-utilization-target", scheduler_.memory_utilization_target,
                   "use of the budget below which the batch of answers grows")
        ->check(number_in(0, 1))
        ->capture_default_str()
        ->group(group);
    app.add_option("--dynamic-adjust-interval-ms", scheduler_.dynamic_adjust_interval_ms,
                   "time between looks at the memory")
        ->check(number_in(1, 1e6))
        ->capture_default_str()
        ->group(group);
  }

  ServiceOptions service_options() const {
    ServiceOptions options;
    options.http.host = host_;
    options.http.port = static_cast<uint16_t>(port_);
    options.http.api_keys = api_keys_;
    if (!key_file_.empty()) read_key_file(key_file_, options.http.api_keys);
    options.http.cors_origins = cors_origins_;
    options.http.forwarded_allow_ips = forwarded_allow_ips_;
    options.http.max_body_bytes = static_cast<size_t>(max_body_mb_) << 20;
    options.http.max_total_body_bytes =
        std::max(options.http.max_total_body_bytes, 2 * options.http.max_body_bytes);
    options.http.max_connections = max_connections_;
    options.http.body_timeout = options.http.write_timeout = seconds(timeout_);
    options.template_kwargs = template_kwargs_;
    options.names = aliases_;
    if (options.names.empty()) options.names = {default_name()};
    options.version = version_number();
    options.max_queue = max_queue_;
    options.request_timeout = seconds(request_timeout_);
    options.drain_timeout = seconds(drain_timeout_);
    options.page = !no_page_;
    return options;
  }

  LoadOptions serving_load_options() const {
    LoadOptions load = load_options(model_flags_, scheduler_.decode_batch_size);
    load.kv_cache_memory_budget_gb = kv_budget_gb_;
    if (kv_budget_gb_ <= 0) {
      fail_usage("--kv-cache-memory-budget-gb: expected a number above 0, found {}", kv_budget_gb_);
    }
    return load;
  }

  /// The last part of a path without the extension of its format; names of models are as they are.
  std::string default_name() const {
    std::filesystem::path path(model_flags_.model);
    if (!path.has_filename()) path = path.parent_path();
    if (path.extension() == ".gguf") path.replace_extension();
    const std::string name = path.filename().string();
    return name.empty() || name == "." || name == ".." ? "model" : name;
  }

  int serve(Service& service, Generator& generator, Termination& termination) {
    EngineOptions engine = scheduler_;
    engine.prefill_mode =
        prefill_mode_ == "separate" ? PrefillMode::kSeparate : PrefillMode::kMixed;
    termination.expect();
    const LoadedModel& loaded = generator.loaded();
    const int64_t block_size = loaded.model.has_diffusion() ? loaded.model.config.block_size : 0;
    std::optional<uint64_t> seed;
    if (generation_.seed.value_or(-1) >= 0) seed = static_cast<uint64_t>(*generation_.seed);
    const GenerateOptions defaults =
        generate_options(generation_, model_flags_, generator.default_sampling(), block_size);
    generator.answer_parts().grammars.constraint(defaults);  // a wrong one is found here
    service.serve(generator, engine, defaults, seed);
    print_stderr(fmt::format("{}: ready at http://{}:{}{}\n", model_flags_.model, url_host(host_),
                             service.port(), no_page_ ? "/v1" : "/"));
    if (!is_local(host_) && service_options().http.api_keys.empty()) {
      spdlog::warn("--host {} without --api-key: whoever reaches this machine may ask", host_);
    }
    termination.wait();
    print_stderr(fmt::format(
        "stopping: running answers have {} seconds, new requests get 503 (Ctrl-C again: "
        "stop now)\n",
        drain_timeout_));
    print_stderr(service.drain(termination.hurry()) ? "stopped\n"
                                                    : "stopped, with answers cut off\n");
    return 0;
  }

  ModelFlags model_flags_;
  GenerationFlags generation_;
  std::string host_ = "127.0.0.1";
  int port_ = 8080;
  std::vector<std::string> aliases_, api_keys_, cors_origins_, forwarded_allow_ips_;
  std::string key_file_, template_kwargs_;
  int64_t timeout_ = 60, request_timeout_ = 0, drain_timeout_ = 30;
  int64_t max_queue_ = 128, max_body_mb_ = 16, max_connections_ = 2048;
  bool no_page_ = false;
  EngineOptions scheduler_;
  std::string prefill_mode_ = "mixed";
  double kv_budget_gb_ = 40;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() { return std::make_unique<ServeCommand>(); }

}  // namespace orthrus
