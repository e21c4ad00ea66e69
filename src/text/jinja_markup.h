#pragma once

#include <string>
#include <string_view>

#include "text/jinja_builtins.h"
#include "text/jinja_value.h"

/// What `escape` and `safe` make. Nothing here escapes by itself (autoescape is off), but a text
/// so marked escapes what is joined to it, and is not escaped twice.
namespace orthrus::jinja {

/// & < > ' " as HTML writes them.
std::string html_escaped(std::string_view text);
/// The value's text, escaped where it is not marked.
Value escaped(Budget& budget, const Value& value);
/// `text` as a string, marked where `model` is.
Value like(Budget& budget, const Value& model, std::string text);
/// A method of a marked string from the one of a plain string: escapes the texts that go in, and
/// marks those that come out.
Value call_marked(Interpreter& in, std::string_view name, Method method, const Value& self,
                  const Arguments& arguments);
/// Without tags and comments, white space runs as one space, character references resolved: the
/// numeric ones and amp, lt, gt, quot, apos, nbsp.
std::string without_tags(std::string_view text);

}  // namespace orthrus::jinja
