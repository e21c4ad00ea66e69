#pragma once

#include <utility>
#include <vector>

#include "text/jinja_builtins.h"
#include "text/jinja_value.h"

/// What the filters on sequences share.
namespace orthrus::jinja {

Value list_of(Interpreter& in, std::vector<Value> items);
Value iterator_of(Interpreter& in, std::vector<Value> items);

/// item.a.b.0 of the attribute "a.b.0"; the item itself where there is no attribute.
Value follow(Interpreter& in, Value item, const Value* attribute, const Value* otherwise);
/// In lower case where it is a string and case does not matter.
Value fold_case(Interpreter& in, Value value, bool case_sensitive);
/// The argument where it is given and not none.
const Value* given(const Bound& bound, size_t index);

using Keyed = std::pair<Value, Value>;  // what an item is ordered by, and the item
/// Stable, in comparisons that the budget counts.
void sort_keyed(Interpreter& in, std::vector<Keyed>& items, bool reversed);

}  // namespace orthrus::jinja
