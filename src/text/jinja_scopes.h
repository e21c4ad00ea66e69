#pragma once

#include "text/jinja_ast.h"

namespace orthrus::jinja {

/// Puts a kUndefine before what of `block` and the scopes in it needs one: a name that a scope sets
/// itself, and that no scope around mentions, has there no value before it is set, whatever the
/// template's variables are. Error(kInput) where a loop's body sets `loop`.
void declare_names(Block& block);

}  // namespace orthrus::jinja
