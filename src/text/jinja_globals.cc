// The functions every template sees, and the attributes of `loop`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_interpreter.h"

namespace orthrus::jinja {

namespace {

constexpr Int kMaxRange = 100'000;  // as Jinja's sandbox

Value range(Interpreter& in, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty()) {
    fail("range() takes 1 to 3 arguments");
  }
  auto made = std::make_shared<Range>();
  const auto at = [&](size_t i) { return static_cast<Int>(to_int64(given[i])); };
  made->start = given.size() > 1 ? at(0) : 0;
  made->stop = at(given.size() > 1 ? 1 : 0);
  made->step = given.size() > 2 ? at(2) : 1;
  if (made->step == 0) fail("range(): the step must not be zero");
  const Int span = made->step > 0 ? made->stop - made->start : made->start - made->stop;
  const Int step = made->step > 0 ? made->step : -made->step;
  const Int count = span <= 0 ? 0 : (span + step - 1) / step;
  if (count > kMaxRange) fail("range(): more than {} numbers", static_cast<int64_t>(kMaxRange));
  in.budget().bytes(static_cast<uint64_t>(count) * sizeof(Value));
  in.budget().step(static_cast<uint64_t>(count));
  for (Int i = 0; i < count; ++i) made->items.emplace_back(made->start + i * made->step);
  return Value(std::shared_ptr<Object>(std::move(made)));
}

/// What dict(...) and namespace(...) make of their arguments.
Entries entries_of(Interpreter& in, std::string_view function, const Arguments& arguments) {
  Entries entries;
  if (arguments.positional.size() > 1) fail("{} takes at most 1 positional argument", function);
  if (!arguments.positional.empty()) {
    const Value& first = arguments.positional[0];
    if (first.is(ObjectKind::kDict)) {
      entries = first.as<Mapping>()->entries;
      in.budget().bytes(entries.size() * 2 * sizeof(Value));
    } else {
      for (const Value& pair : elements(in.budget(), first)) {
        std::vector<Value> parts = elements(in.budget(), pair);
        if (parts.size() != 2) fail("{}: expected pairs", function);
        put(in.budget(), entries, parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    put(in.budget(), entries, in.string(name), value);
  }
  return entries;
}

Value make_namespace(Interpreter& in, const Arguments& arguments) {
  return in.make_namespace(entries_of(in, "namespace()", arguments));
}

Value dict(Interpreter& in, const Arguments& arguments) {
  return make_dict(in.budget(), entries_of(in, "dict()", arguments));
}

Value raise_exception(Interpreter& in, const Arguments& arguments) {
  const Bound bound("raise_exception()", arguments, {"message"}, 1);
  throw RaisedByTemplate{in.text(bound[0])};
}

/// Python's %f is the microseconds, and its local time has no zone: %z and %Z print nothing.
std::string python_format(std::string_view format, int64_t micros) {
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    const char next = format[at] == '%' && at + 1 < format.size() ? format[at + 1] : '\0';
    if (next == 'f') {
      out += fmt::format("{:06}", micros);
    } else if (next == '%') {
      out += "%%";
    } else if (next != 'z' && next != 'Z') {
      out += format[at];
      continue;
    }
    ++at;
  }
  return out;
}

Value strftime_now(Interpreter& in, const Arguments& arguments) {
  const Bound bound("strftime_now()", arguments, {"format"}, 1);
  if (bound.string(0).size() > 1000) fail("strftime_now(): a format over 1000 bytes");
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  const std::time_t now = static_cast<std::time_t>(micros / 1'000'000);
  std::tm local{};
  localtime_r(&now, &local);
  const std::string format = python_format(bound.string(0), micros % 1'000'000);
  std::vector<char> text(100 * format.size() + 1);  // no conversion is longer than that
  return in.string(
      std::string(text.data(), std::strftime(text.data(), text.size(), format.c_str(), &local)));
}

Value joiner(Interpreter& in, const Arguments& arguments) {
  const Bound bound("joiner()", arguments, {"sep"});
  const Value separator = bound.has(0) ? bound[0] : in.string(", ");
  in.budget().bytes(sizeof(Function));
  return make_function(
      "joiner", 1 + separator.depth(),
      [separator, used = std::make_shared<bool>(false)](Interpreter&, const Arguments& none) {
        const Bound no_arguments("the joiner", none, {});
        return std::exchange(*used, true) ? separator : Value::string("");
      });
}

Value cycler(Interpreter& in, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) fail("cycler() takes its items");
  return make_sequence(in.budget(), ObjectKind::kCycler, arguments.positional);
}

Value next_of_cycler(Interpreter&, const std::shared_ptr<Sequence>& cycler,
                     const Arguments& arguments) {
  const Bound bound("next()", arguments, {});
  const Value current = cycler->items[cycler->next];
  cycler->next = (cycler->next + 1) % cycler->items.size();
  return current;
}

Value reset_cycler(Interpreter&, const std::shared_ptr<Sequence>& cycler,
                   const Arguments& arguments) {
  const Bound bound("reset()", arguments, {});
  cycler->next = 0;
  return Value();
}

Value cycle(Interpreter& in, const std::shared_ptr<Loop>& loop, const Arguments& arguments) {
  const auto& items = arguments.positional;
  if (items.empty()) fail("loop.cycle() needs items");
  return items[static_cast<size_t>(loop->index0) % items.size()];
}

Value changed(Interpreter& in, const std::shared_ptr<Loop>& loop, const Arguments& arguments) {
  const Value now = make_sequence(in.budget(), ObjectKind::kTuple, arguments.positional);
  const bool same = loop->changed && equal(in.budget(), *loop->changed, now);
  if (!same) loop->changed = now;
  return Value(!same);
}

}  // namespace

const Value* find_global(std::string_view name) {
  static const std::pair<std::string_view, Value> kGlobals[] = {
      {"range", make_function("range", 1, range)},
      {"namespace", make_function("namespace", 1, make_namespace)},
      {"dict", make_function("dict", 1, dict)},
      {"cycler", make_function("cycler", 1, cycler)},
      {"joiner", make_function("joiner", 1, joiner)},
      {"raise_exception", make_function("raise_exception", 1, raise_exception)},
      {"strftime_now", make_function("strftime_now", 1, strftime_now)},
  };
  for (const auto& [known, value] : kGlobals) {
    if (known == name) return &value;
  }
  return nullptr;
}

std::optional<Value> loop_attribute(Budget& budget, const Value& value, std::string_view name) {
  const auto loop = value.as<Loop>();
  const auto peek = [&]() -> bool { return !loop->ahead.empty() || loop->fill_one(); };
  const auto length = [&] {
    while (loop->fill_one()) budget.step();
    return loop->index0 + 1 + static_cast<int64_t>(loop->ahead.size());
  };
  if (name == "index") return Value::integer(loop->index0 + 1);
  if (name == "index0") return Value::integer(loop->index0);
  if (name == "first") return Value(loop->index0 == 0);
  if (name == "last") return Value(!peek());
  if (name == "length") return Value::integer(length());
  if (name == "revindex") return Value::integer(length() - loop->index0);
  if (name == "revindex0") return Value::integer(length() - loop->index0 - 1);
  if (name == "depth") return Value::integer(loop->depth0 + 1);
  if (name == "depth0") return Value::integer(loop->depth0);
  if (name == "previtem") {
    return loop->before ? *loop->before : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return peek() ? loop->ahead.front() : Value::undefined("there is no next item");
  }
  // A method holds its loop weakly: the loop may hold it in turn.
  const std::weak_ptr<Loop> weak = loop;
  const auto method = [&](auto function) {
    return make_function(std::string(name), 1,
                         [weak, function](Interpreter& in, const Arguments& arguments) {
                           const auto alive = weak.lock();
                           if (!alive) fail("the loop is over");
                           return function(in, alive, arguments);
                         });
  };
  if (name == "cycle") return method(cycle);
  if (name == "changed") return method(changed);
  return std::nullopt;
}

std::optional<Value> cycler_attribute(const Value& value, std::string_view name) {
  const auto cycler = value.as<Sequence>();
  if (name == "current") return cycler->items[cycler->next];
  if (name != "next" && name != "reset") return std::nullopt;
  const auto method = name == "next" ? next_of_cycler : reset_cycler;
  return make_function(std::string(name), 1 + cycler->depth,
                       [cycler, method](Interpreter& in, const Arguments& arguments) {
                         return method(in, cycler, arguments);
                       });
}

}  // namespace orthrus::jinja
