#pragma once

#include <memory>

#include "grammar/expressions.h"
#include "grammar/grammar.h"

namespace orthrus::grammar {

/// The grammar that begins with `root`. Error(kUsage) for left recursion, for a grammar without a
/// finite text, and where it becomes too large.
std::shared_ptr<const Grammar> compile(const Expressions& expressions, Expressions::Rule root);

}  // namespace orthrus::grammar
