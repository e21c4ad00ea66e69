#pragma once

#include <string_view>
#include <vector>

#include "grammar/expressions.h"

namespace orthrus::grammar {

/// The parts of JSON as expressions. Between tokens stands nothing, one space, or a new line with
/// up to 24 spaces or 8 tabs, so that blanks cannot go on for ever; numbers have up to 19 digits
/// before the point, 18 behind it and 2 in the exponent, so that every parser reads them.
class JsonRules {
 public:
  using Expr = Expressions::Expr;

  /// `out` must outlive this.
  explicit JsonRules(Expressions& out);

  Expr space() const { return space_; }
  Expr value() const { return value_; }
  Expr object() const { return object_; }
  Expr array() const { return array_; }
  Expr string() const { return string_; }
  Expr number() const { return number_; }
  /// One character of a string, in any way to write it.
  Expr character() const { return character_; }
  /// So many characters of a string.
  Expr characters(int64_t min, int64_t max);
  /// One of these characters, escaped where it must be and only there.
  Expr one_of(const std::vector<CodePoints>& ranges);
  /// Strings without escapes that are none of these.
  Expr string_except(std::vector<std::string_view> names);

  /// `first` (`,` `next`)*, between brackets, where `next` are as many as the expression says.
  Expr enclosed(char open, Expr inner, bool may_be_empty, char close);
  /// "," and a space before `item`.
  Expr further(Expr item) { return out_.sequence({comma_, space_, item}); }
  Expr quoted(Expr content) { return out_.sequence({quote_, content, quote_}); }
  /// `key` ":" `value`
  Expr member(Expr key, Expr value) { return out_.sequence({key, colon_, space_, value}); }

 private:
  Expr except(const std::vector<std::u32string_view>& names, size_t position);

  Expressions& out_;
  Expr comma_, colon_, quote_;
  Expr space_, character_, escape_, plain_characters_, string_, number_;
  Expr value_, object_, array_;
};

}  // namespace orthrus::grammar
