#pragma once

#include <string_view>

#include "text/jinja_ast.h"

namespace orthrus::jinja {

/// Compiles a template. Error(kInput) "chat template line N: ..." for whatever is malformed or
/// unknown (tags, filters, tests).
Block parse(std::string_view source);

}  // namespace orthrus::jinja
