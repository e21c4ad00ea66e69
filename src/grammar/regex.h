#pragma once

#include <string>
#include <string_view>

#include "grammar/json_rules.h"

namespace orthrus::grammar {

/// The content of JSON strings in which a regular expression of JSON Schema (ECMA-262) finds
/// something. Error(kUsage), begun with `where`, for what is malformed or no part of the subset in
/// docs/grammar.md.
Expressions::Expr regex_content(Expressions& out, JsonRules& json, std::string_view pattern,
                                const std::string& where);

}  // namespace orthrus::grammar
