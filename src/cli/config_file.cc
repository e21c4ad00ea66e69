#include "cli/config_file.h"

#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/nearest.h"
#include "cli/foreign_flags.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 16;
constexpr size_t kMaxNumber = 64;  // characters

std::string flag_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// A plain scalar has the type that its text shows; a quoted one (tag "!") is a string.
nlohmann::json scalar_to_json(const YAML::Node& node) {
  if (node.Tag() != "!" && node.Scalar().size() <= kMaxNumber) {
    int64_t integer;
    double number;
    bool truth;
    if (YAML::convert<int64_t>::decode(node, integer)) return integer;
    if (YAML::convert<double>::decode(node, number)) return number;
    if (YAML::convert<bool>::decode(node, truth)) return truth;
  }
  return node.Scalar();
}

/// What the values of one file may come to, with a byte for each: no more than a file can hold,
/// although aliases can make a small one a huge tree.
class Budget {
 public:
  void take(const YAML::Node& node) {
    const size_t bytes = 1 + (node.IsScalar() ? node.Scalar().size() : 0);
    if (bytes > left_) fail_usage("nested too deeply, or too large");
    left_ -= bytes;
  }

 private:
  size_t left_ = kMaxBytes;
};

nlohmann::json to_json(const YAML::Node& node, int depth, Budget& budget) {
  if (depth > kMaxDepth) fail_usage("nested too deeply, or too large");
  budget.take(node);
  if (node.IsNull()) return nullptr;
  if (node.IsScalar()) return scalar_to_json(node);
  if (node.IsSequence()) {
    nlohmann::json list = nlohmann::json::array();
    for (const YAML::Node& item : node) list.push_back(to_json(item, depth + 1, budget));
    return list;
  }
  nlohmann::json object = nlohmann::json::object();
  for (const auto& item : node) {
    if (!item.first.IsScalar()) fail_usage("a key is not a plain word");
    const std::string& key = item.first.Scalar();
    if (object.contains(key)) fail_usage("{} is set twice", printable(key));
    object[key] = to_json(item.second, depth + 1, budget);
  }
  return object;
}

// The value as the command line would hold it; a list is a flag given several times.
std::vector<std::string> flag_values(const YAML::Node& node, Budget& budget) {
  std::vector<std::string> values;
  if (node.IsScalar()) {
    budget.take(node);
    values.push_back(node.Scalar());
  } else if (node.IsSequence()) {
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) fail_usage("expected a list of plain values");
      budget.take(item);
      values.push_back(item.Scalar());
    }
  } else if (node.IsMap()) {
    const nlohmann::json object = to_json(node, 0, budget);
    try {
      values.push_back(object.dump());
    } catch (const nlohmann::json::exception&) {
      fail_usage("expected UTF-8");
    }
  }
  return values;
}

class ConfigReader {
 public:
  ConfigReader(const std::string& path, CLI::App& app, const std::vector<std::string>& all_flags)
      : path_(path), app_(app), all_flags_(all_flags) {}

  void apply(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) fail_usage("{}: expected keys and values at the top", path_);
    for (const auto& item : root) {
      if (!item.first.IsScalar()) fail_usage("{}: a key is not a plain word", path_);
      const std::string& key = item.first.Scalar();
      if (!seen_.insert(flag_name(key)).second) {
        fail_usage("{}: {} is set twice", path_, printable(key));
      }
      apply_key(item.first.Scalar(), item.second);
    }
    if (!unused_.empty()) {
      spdlog::info("{}: without effect here: {}", path_, fmt::join(unused_, ", "));
    }
  }

 private:
  void apply_key(const std::string& key, const YAML::Node& value) {
    const std::string name = flag_name(key);
    if (name == "use-diffusion-mode") return apply_use_diffusion_mode(key, value);
    if (CLI::Option* option = find(name)) return set(*option, key, value);
    if (std::find(all_flags_.begin(), all_flags_.end(), name) == all_flags_.end()) {
      const std::string_view hint = foreign_flag_hint("--" + name);
      if (!hint.empty()) fail_usage("{}: no key {} here: {}", path_, printable(key), hint);
      fail_usage("{}: unknown key {}{}: keys are the long names of flags, as --help lists them",
                 path_, printable(key), nearest_hint(name, all_flags_));
    }
    unused_.push_back(key);
  }

  CLI::Option* find(const std::string& name) const {
    if (name == "config" || name == "help") return nullptr;
    return app_.get_option_no_throw("--" + name);
  }

  void apply_use_diffusion_mode(const std::string& key, const YAML::Node& value) {
    CLI::Option* view = find("view");
    if (!view) return unused_.push_back(key);
    bool dual;
    if (!value.IsScalar() || !YAML::convert<bool>::decode(value, dual)) {
      fail_usage("{}: {}: expected true or false", path_, key);
    }
    set(*view, key, YAML::Node(dual ? "dual" : "ar"));
  }

  void set(CLI::Option& option, const std::string& key, const YAML::Node& value) {
    // A flag on the command line wins; results that an earlier key set are told apart by name.
    if (option.count() > 0) {
      auto earlier = std::find(applied_.begin(), applied_.end(), &option);
      if (earlier != applied_.end()) {
        fail_usage("{}: {} is set twice, the first time by another name", path_, key);
      }
      return;
    }
    try {
      std::vector<std::string> values = flag_values(value, budget_);
      if (values.empty()) fail_usage("expected a value, found none");
      for (std::string& text : values) option.add_result(std::move(text));
      option.run_callback();
      applied_.push_back(&option);
    } catch (const CLI::Error& error) {
      fail_usage("{}: {}: {}", path_, key, error.what());
    } catch (const Error& error) {
      fail_usage("{}: {}: {}", path_, key, error.what());
    }
  }

  const std::string& path_;
  CLI::App& app_;
  const std::vector<std::string>& all_flags_;
  std::vector<CLI::Option*> applied_;
  std::vector<std::string> unused_;
  std::set<std::string> seen_;  // as names of flags
  Budget budget_;
};

class NoEvents : public YAML::EventHandler {
  using Mark = YAML::Mark;
  using Style = YAML::EmitterStyle::value;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override {}
  void OnAlias(const Mark&, YAML::anchor_t) override {}
  void OnScalar(const Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const std::string&, YAML::anchor_t, Style) override {}
  void OnMapEnd() override {}
};

// Not by YAML::LoadAll: where a document begins with what can begin none, such as a comma, that of
// yaml-cpp 0.7 reads empty documents from the same place until memory is full.
bool has_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  NoEvents events;
  return parser.HandleNextDocument(events) && parser.HandleNextDocument(events);
}

// YAML has no other control characters.
void check_characters(std::string_view text, const std::string& where) {
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if ((c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == '\x7f') {
      fail("{}:{}: byte {}, expected text", where, line, static_cast<int>(c));
    }
  }
}

}  // namespace

void apply_config_file(const std::string& path, CLI::App& app,
                       const std::vector<std::string>& all_flags) {
  const MappedFile file(path);
  if (file.bytes().size() > kMaxBytes) {
    fail("{}: {} bytes, expected a config file of at most {}", path, file.bytes().size(),
         kMaxBytes);
  }
  apply_config({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path, app,
               all_flags);
}

void apply_config(std::string_view text, const std::string& where, CLI::App& app,
                  const std::vector<std::string>& all_flags) {
  check_characters(text, where);
  try {
    const std::string copy(text);
    if (has_second_document(copy)) {
      fail_usage(
          "{}: more than one YAML document, expected one (no line ---, no comma at the start)",
          where);
    }
    ConfigReader(where, app, all_flags).apply(YAML::Load(copy));
  } catch (const YAML::Exception& error) {
    fail("{}:{}: not YAML or JSON: {}", where, error.mark.line + 1, error.msg);
  }
}

}  // namespace orthrus
