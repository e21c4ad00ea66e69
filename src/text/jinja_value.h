#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace orthrus::jinja {

class Interpreter;

/// Wide enough for every integer JSON carries (int64 and uint64). Overflow is an error.
__extension__ typedef __int128 Int;

/// What one rendering may cost. Every evaluated node and every visited element is a step; every
/// byte of a string or container made is counted when it is made, so the sum also bounds memory.
class Budget {
 public:
  static constexpr uint64_t kMaxSteps = 10'000'000;
  static constexpr uint64_t kMaxBytes = 512ull << 20;
  static constexpr int kMaxDepth = 200;  // nesting of containers

  void step(uint64_t count = 1);
  /// Error(kInput) where `count` more bytes are over the limit; called before allocating them.
  void bytes(uint64_t count);

 private:
  uint64_t steps_ = 0;
  uint64_t bytes_ = 0;
};

enum class ObjectKind {
  kList,
  kTuple,
  kRange,
  kKeys,
  kValues,
  kItems,
  kIterator,  // what a Python generator is: can be walked once, has no length
  kDict,
  kNamespace,
  kFunction,
  kMacro,
  kLoop,
  kCycler,
};

/// A value with parts, shared and (but for kIterator, kNamespace, kLoop and kCycler) immutable.
/// `depth` is one more than the deepest part's: bounded, so that walking and destroying may
/// recurse.
struct Object {
  ObjectKind kind;
  int depth = 1;
  explicit Object(ObjectKind object_kind) : kind(object_kind) {}
  virtual ~Object() = default;
};

struct None {};
struct Undefined {
  std::shared_ptr<const std::string> why;  // what an error that uses it says
};

/// A string that needs no escaping for HTML (markupsafe's Markup, a str in all else).
struct Markup {
  std::shared_ptr<const std::string> text;
};

/// A Python value as templates see it.
class Value {
 public:
  Value() : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(Int value) : data_(value) {}
  Value(double value) : data_(value) {}
  Value(std::shared_ptr<const std::string> text) : data_(std::move(text)) {}
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  static Value undefined(std::string why);
  static Value string(std::string text);
  static Value markup(std::string text);
  static Value integer(int64_t value) { return Value(static_cast<Int>(value)); }

  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_string() const { return std::holds_alternative<Text>(data_) || is_markup(); }
  bool is_markup() const { return std::holds_alternative<Markup>(data_); }
  /// An int or a bool, which Python takes for one.
  bool is_integer() const { return is_bool() || std::holds_alternative<Int>(data_); }
  bool is_number() const { return is_integer() || is_float(); }
  bool is(ObjectKind kind) const { return object() != nullptr && object()->kind == kind; }
  bool is_callable() const;

  const std::string& string() const {
    return is_markup() ? *std::get<Markup>(data_).text : *std::get<Text>(data_);
  }
  Int integer() const;    // of is_integer()
  double number() const;  // of is_number()
  const Object* object() const;
  template <typename T>
  std::shared_ptr<T> as() const {
    return std::static_pointer_cast<T>(std::get<std::shared_ptr<Object>>(data_));
  }
  int depth() const { return object() == nullptr ? 0 : object()->depth; }
  const std::string& why_undefined() const { return *std::get<Undefined>(data_).why; }

  /// Python's type name, for messages.
  std::string_view type_name() const;
  bool truth() const;

 private:
  using Text = std::shared_ptr<const std::string>;
  std::variant<None, Undefined, bool, Int, double, Text, Markup, std::shared_ptr<Object>> data_;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Sequence : Object {
  std::vector<Value> items;
  size_t next = 0;     // of kIterator: the first item not yet taken; of kCycler: the current one
  bool group = false;  // a tuple of groupby, whose items also have the names grouper and list
  using Object::Object;
};

struct Range : Sequence {
  Int start = 0, stop = 0, step = 1;
  Range() : Sequence(ObjectKind::kRange) {}
};

using Entries = std::vector<std::pair<Value, Value>>;

/// kDict in insertion order, and kNamespace (keys are strings).
struct Mapping : Object {
  Entries entries;
  using Object::Object;
  const Value* find(std::string_view key) const;
};

struct Function : Object {
  std::string name;
  std::function<Value(Interpreter&, const Arguments&)> call;
  Function() : Object(ObjectKind::kFunction) {}
};

/// The variable `loop`. Items are pulled as late as Python pulls them from a generator.
struct Loop : Object {
  std::function<std::optional<Value>()> pull;  // empty once the loop is over
  std::deque<Value> ahead;                     // pulled, not yet current
  std::optional<Value> before, current;
  std::optional<Value> changed;                // the last arguments of loop.changed()
  std::function<Value(const Value&)> recurse;  // loop(items); empty where it is not recursive
  int64_t index0 = -1;
  int64_t depth0 = 0;  // of recursion
  Loop() : Object(ObjectKind::kLoop) {}
  bool advance();
  bool fill_one();
};

/// New containers: charged to the budget, Error(kInput) where nested too deep.
Value make_sequence(Budget& budget, ObjectKind kind, std::vector<Value> items);
Value make_dict(Budget& budget, Entries entries);
Value make_string(Budget& budget, std::string text);
Value make_function(std::string name, int depth,
                    std::function<Value(Interpreter&, const Arguments&)> call);

/// Python's ==. Numbers compare across types, containers by their parts.
bool equal(Budget& budget, const Value& a, const Value& b);
/// Python's ordering: -1, 0, 1; 2 where unordered (nan). Error(kInput) for types without one.
int compare(Budget& budget, const Value& a, const Value& b);
/// Python's `a in b`.
bool contains(Budget& budget, const Value& a, const Value& b);
/// The elements that iterating gives; takes what is left of an iterator.
std::vector<Value> elements(Budget& budget, const Value& value);
/// Python's len().
int64_t length(const Value& value);
/// Whether the value can be the key of an entry; check_key: Error(kInput) where it cannot.
bool is_key(const Value& value);
void check_key(const Value& key);
/// Adds or replaces an entry. Error(kInput) where the key cannot be one.
void put(Budget& budget, Entries& entries, Value key, Value value);
const Value* find(Budget& budget, const Mapping& map, const Value& key);

/// Python's str() and repr().
std::string to_string(Budget& budget, const Value& value);
std::string to_repr(Budget& budget, const Value& value);
std::string float_repr(double value);
std::string int_repr(Int value);

}  // namespace orthrus::jinja
