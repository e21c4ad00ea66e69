#include "text/jinja_sequences.h"

#include <algorithm>

#include "text/jinja_interpreter.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

Value list_of(Interpreter& in, std::vector<Value> items) {
  return make_sequence(in.budget(), ObjectKind::kList, std::move(items));
}

Value iterator_of(Interpreter& in, std::vector<Value> items) {
  return make_sequence(in.budget(), ObjectKind::kIterator, std::move(items));
}

Value follow(Interpreter& in, Value item, const Value* attribute, const Value* otherwise) {
  if (attribute == nullptr || attribute->is_none()) return item;
  std::vector<Value> parts;
  if (attribute->is_string()) {
    for (const std::string& part : split(attribute->string(), ".", -1, false)) {
      const bool number = part.size() < 18 && all_are(part, CharacterClass::kDecimal);
      parts.push_back(number ? Value::integer(std::stoll(part)) : Value::string(part));
    }
  } else {
    parts.push_back(*attribute);
  }
  for (const Value& part : parts) {
    item = in.item(item, part);
    if (otherwise != nullptr && item.is_undefined()) item = *otherwise;
  }
  return item;
}

Value fold_case(Interpreter& in, Value value, bool case_sensitive) {
  return case_sensitive || !value.is_string() ? value : in.string(lower(value.string()));
}

const Value* given(const Bound& bound, size_t index) {
  return bound.has(index) && !bound[index].is_none() ? &bound[index] : nullptr;
}

void sort_keyed(Interpreter& in, std::vector<Keyed>& items, bool reversed) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reversed ? compare(in.budget(), b.first, a.first) == -1
                    : compare(in.budget(), a.first, b.first) == -1;
  });
}

}  // namespace orthrus::jinja
