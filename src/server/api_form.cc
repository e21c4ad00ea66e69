#include "server/api_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/printable.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxGrammarBytes = 256 * 1024;
constexpr size_t kMaxGuidedChoices = 1024;
constexpr const char* kAnyObject = R"({"type":"object"})";

/// The form of the answer, which one parameter decides at most.
class Form {
 public:
  /// The parameter at `path` decides: the answer is of this schema, or this grammar.
  void schema(const std::string& path, std::string text) { set(path, schema_, std::move(text)); }
  void grammar(const std::string& path, std::string text) { set(path, grammar_, std::move(text)); }
  void put_into(GenerationRequest& request) && {
    if (path_.empty()) return;
    request.form = parameter(path_);
    request.options.grammar = std::move(grammar_);
    request.options.json_schema = std::move(schema_);
  }

 private:
  static std::string parameter(const std::string& path) { return path.substr(0, path.find('.')); }

  void set(const std::string& path, std::string& member, std::string text) {
    if (!path_.empty()) {
      const bool apart = parameter(path) != parameter(path_);
      throw bad_request(
          fmt::format("{} and {} cannot both decide the answer's form.",
                      apart ? parameter(path) : path, apart ? parameter(path_) : path_),
          parameter(path), "invalid_value");
    }
    path_ = path;
    member = std::move(text);
  }

  std::string path_, grammar_, schema_;
};

std::string schema_text(const Json& schema, const ObjectReader& reader, const char* name) {
  std::string text = dump_json_line(schema);
  if (text.size() > kMaxGrammarBytes) reader.fail(name, "a smaller schema");
  return text;
}

// The schema of "json_schema": {"name": ..., "schema": {...}}, OpenAI's.
std::string read_named_schema(ObjectReader& format) {
  const Json* member = format.object("json_schema");
  if (!member) format.fail("json_schema", "an object");
  ObjectReader reader(*member, format.path_of("json_schema"));
  const std::string name = reader.string("name", 64);
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
  if (name.empty() || !plain) reader.fail("name", "1 to 64 letters, digits, _ or -");
  reader.string("description", kMaxGrammarBytes);
  reader.boolean("strict", true);  // it is enforced either way
  const Json* schema = reader.object("schema");
  if (!schema) reader.fail("schema", "an object");
  reader.finish();
  return schema_text(*schema, reader, "schema");
}

void read_response_format(ObjectReader& body, Form& form) {
  const Json* member = body.object("response_format");
  if (!member) return;
  ObjectReader format(*member, "response_format");
  if (!format.has("type")) format.fail("type", "one of \"text\", \"json_object\", \"json_schema\"");
  const int type = format.choice("type", {"text", "json_object", "json_schema"}, 0);
  if (type == 1) {
    const Json* schema = format.object("schema");  // llama-server's
    form.schema("response_format", schema ? schema_text(*schema, format, "schema") : kAnyObject);
  } else if (type == 2) {
    form.schema("response_format", read_named_schema(format));
  }
  format.finish();
}

void read_grammar(ObjectReader& reader, const char* name, Form& form) {
  std::string text = reader.string(name, kMaxGrammarBytes);
  if (!text.empty()) form.grammar(reader.path_of(name), std::move(text));
}

// A schema, or its text.
void read_guided_json(ObjectReader& reader, const char* name, Form& form) {
  const Json* value = reader.find(name);
  if (!value) return;
  Json parsed;
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > kMaxGrammarBytes) reader.fail(name, "a smaller schema");
    try {
      parsed = parse_request_json(text, reader.path_of(name));  // with the bounds of a body
    } catch (const ApiError& error) {
      throw bad_request(error.what(), reader.path_of(name), "invalid_value");
    }
    value = &parsed;
  }
  if (!value->is_object()) reader.fail(name, "a JSON schema, an object");
  form.schema(reader.path_of(name), schema_text(*value, reader, name));
}

// A literal of GBNF.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

void read_guided_choice(ObjectReader& reader, const char* name, Form& form) {
  const Json* choices = reader.array(name, kMaxGuidedChoices);
  if (!choices) return;
  std::string grammar;
  for (size_t i = 0; i < choices->size(); ++i) {
    const Json& choice = (*choices)[i];
    if (!choice.is_string() || choice.get_ref<const std::string&>().empty()) {
      throw bad_request(fmt::format("{}[{}]: expected a text that is not empty, found {}.",
                                    reader.path_of(name), i, shown(choice)),
                        reader.path_of(name), "invalid_value");
    }
    grammar += (i == 0 ? "root ::= " : " | ") + literal(choice.get<std::string>());
  }
  if (choices->empty()) reader.fail(name, "one text or more");
  if (grammar.size() > kMaxGrammarBytes) reader.fail(name, "fewer or shorter texts");
  form.grammar(reader.path_of(name), std::move(grammar));
}

void read_structured_outputs(ObjectReader& body, Form& form) {
  const Json* member = body.object("structured_outputs");
  if (!member) return;
  ObjectReader outputs(*member, "structured_outputs");
  read_guided_json(outputs, "json", form);
  read_grammar(outputs, "grammar", form);
  read_guided_choice(outputs, "choice", form);
  if (outputs.boolean("json_object", false)) {
    form.schema(outputs.path_of("json_object"), kAnyObject);
  }
  outputs.refuse("regex", "use json with a \"pattern\", or grammar");
  outputs.finish();
}

}  // namespace

void read_form(ObjectReader& body, GenerationRequest& request) {
  Form form;
  read_response_format(body, form);
  read_grammar(body, "grammar", form);
  read_guided_json(body, "guided_json", form);
  read_grammar(body, "guided_grammar", form);
  read_guided_choice(body, "guided_choice", form);
  read_structured_outputs(body, form);
  body.refuse("guided_regex", "use guided_json with a \"pattern\", or guided_grammar");
  // {"type": "text"} and "" ask for no form, not for the server's own.
  for (const char* name : {"response_format", "grammar", "guided_json", "guided_grammar",
                           "guided_choice", "structured_outputs"}) {
    if (!body.has(name)) continue;
    request.options.grammar.clear();
    request.options.json_schema.clear();
  }
  std::move(form).put_into(request);
}

}  // namespace orthrus
