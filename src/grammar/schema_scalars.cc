#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "formats/printable.h"
#include "grammar/json_number.h"
#include "grammar/regex.h"
#include "grammar/schema_compiler.h"

namespace orthrus::grammar {
namespace {

using Json = SchemaCompiler::Json;

constexpr int64_t kMaxInteger = std::numeric_limits<int64_t>::max() - 1;

constexpr std::string_view kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";

/// Years from 1000 on, and the days that their months have.
constexpr std::string_view kDate =
    R"(([1-9]\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30))"
    R"(|02-(0[1-9]|1\d|2[0-8]))|([1-9]\d(0[48]|[2468][048]|[13579][26]))"
    R"(|([2468][048]|[13579][26])00)-02-29))";

constexpr std::string_view kHostname =
    R"([A-Za-z0-9](-?[A-Za-z0-9]){0,29}(\.[A-Za-z0-9](-?[A-Za-z0-9]){0,29}){0,3})";

constexpr std::string_view kIpv4 =
    R"(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";

std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const std::string last = "(" + group + ":" + group + "|" + std::string(kIpv4) + ")";
  std::string out = "((" + group + ":){6}" + last;
  // RFC 3986: "::" for what is missing, with at most so many groups before it.
  for (int behind = 5; behind >= 0; --behind) {
    const int before = 4 - behind;
    out += "|";
    if (before >= 0) out += fmt::format("(({}:){{0,{}}}{})?", group, before, group);
    out += fmt::format("::({}:){{{}}}{}", group, behind, last);
  }
  out += fmt::format("|(({}:){{0,5}}{})?::{}", group, group, group);
  out += fmt::format("|(({}:){{0,6}}{})?::)", group, group);
  return out;
}

/// What a format means, as a regular expression for the whole string.
const std::map<std::string_view, std::string>& formats() {
  static const std::map<std::string_view, std::string> made = {
      {"date", std::string(kDate)},
      {"time", std::string(kTime)},
      {"date-time", std::string(kDate) + "T" + std::string(kTime)},
      {"duration", R"(P(\d{1,9}W|(\d{1,9}Y(\d{1,9}M(\d{1,9}D)?)?|\d{1,9}M(\d{1,9}D)?|\d{1,9}D))"
                   R"((T(\d{1,9}H(\d{1,9}M(\d{1,9}S)?)?|\d{1,9}M(\d{1,9}S)?|\d{1,9}S))?)"
                   R"(|T(\d{1,9}H(\d{1,9}M(\d{1,9}S)?)?|\d{1,9}M(\d{1,9}S)?|\d{1,9}S)))"},
      {"email",
       R"([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,16}(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,15}){0,2}@)" +
           std::string(kHostname)},
      {"hostname", std::string(kHostname)},
      {"ipv4", std::string(kIpv4)},
      {"ipv6", ipv6()},
      {"uuid", "[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"}};
  return made;
}

}  // namespace

SchemaCompiler::Expr SchemaCompiler::compile_string(const Json& schema, const std::string& path) {
  const Json* pattern = find(schema, "pattern");
  const Json* format = find(schema, "format");
  const bool lengths = schema.contains("minLength") || schema.contains("maxLength");
  if ((pattern && format) || ((pattern || format) && lengths)) {
    fail_at(path,
            "of \"pattern\", \"format\" and \"minLength\" or \"maxLength\" only one is supported "
            "at a time");
  }
  if (pattern) {
    if (!pattern->is_string()) fail_at(path, "\"pattern\" must be a string");
    const std::string where = shown(path) + "/pattern";
    return out_.as_rule(
        path, json_.quoted(regex_content(out_, json_, pattern->get<std::string>(), where)), false);
  }
  if (format) {
    if (!format->is_string()) fail_at(path, "\"format\" must be a string");
    const auto known = formats().find(format->get<std::string>());
    if (known == formats().end()) {
      fail_at(path,
              fmt::format("format \"{}\" is not supported", printable(format->get<std::string>())));
    }
    return out_.as_rule(
        path, json_.quoted(regex_content(out_, json_, "^(" + known->second + ")$", "format")),
        false);
  }
  if (!lengths) return json_.string();
  const int64_t min = count(schema, "minLength", 0, path);
  const int64_t max = count(schema, "maxLength", Expressions::kUnbounded, path);
  if (max != Expressions::kUnbounded && max < min) {
    fail_at(path, "\"minLength\" is more than \"maxLength\"");
  }
  return out_.as_rule(path, json_.quoted(json_.characters(min, max)), false);
}

SchemaCompiler::Expr SchemaCompiler::compile_number(const Json& schema, bool integer,
                                                    const std::string& path) {
  auto decimal = [&](const char* keyword) -> std::optional<Decimal> {
    const Json* value = find(schema, keyword);
    if (!value) return std::nullopt;
    if (!value->is_number()) fail_at(path, fmt::format("\"{}\" must be a number", keyword));
    auto parsed = parse_decimal(value->dump());
    if (!parsed)
      fail_at(path, fmt::format("\"{}\": {} is not supported: more than 40 digits before "
                                "or behind the point",
                                keyword, value->dump()));
    return parsed;
  };
  auto bound = [&](const char* keyword, const char* exclusive_keyword, int sign) {
    std::optional<Bound> out;
    if (auto value = decimal(keyword)) out = Bound{*value, false};
    if (auto value = decimal(exclusive_keyword)) {
      if (!out || compare(*value, out->value) * sign >= 0) out = Bound{*value, true};
    }
    return out;
  };
  const std::optional<Bound> min = bound("minimum", "exclusiveMinimum", 1);
  const std::optional<Bound> max = bound("maximum", "exclusiveMaximum", -1);
  const std::optional<Decimal> multiple = decimal("multipleOf");
  if (multiple && (multiple->negative || multiple->is_zero())) {
    fail_at(path, "\"multipleOf\" must be more than 0");
  }
  if (min && max && compare(min->value, max->value) > 0) {
    fail_at(path, "the minimum is more than the maximum");
  }
  if (!integer && !min && !max && !multiple) return json_.number();
  if (integer || (multiple && multiple->fraction.empty())) {
    if (multiple && !multiple->fraction.empty()) {
      fail_at(path, "\"multipleOf\" of an integer is supported only as a whole number");
    }
    if (multiple && multiple->whole.size() > 18) {
      fail_at(path, "\"multipleOf\" has more than 18 digits");
    }
    return compile_integer(min, max, multiple ? std::stoll(multiple->whole) : 1, path);
  }
  const auto least = representable(min, true, path), most = representable(max, false, path);
  size_t fraction_digits = kDecimalDigits - 1;
  if (multiple) {
    const std::string& digits = multiple->fraction;
    if (multiple->whole != "0" || digits != std::string(digits.size() - 1, '0') + "1") {
      fail_at(path, "\"multipleOf\" is supported only as a whole number or 0.1, 0.01, ...");
    }
    fraction_digits = digits.size();
  }
  return out_.as_rule(path, decimals(out_, least, most, fraction_digits), false);
}

/// A bound of what is written with at most kDecimalDigits digits; none where it is no bound to
/// that.
std::optional<Bound> SchemaCompiler::representable(const std::optional<Bound>& bound, bool is_min,
                                                   const std::string& path) const {
  if (!bound) return std::nullopt;
  const Decimal& value = bound->value;
  if (value.whole.size() > kDecimalDigits && value.negative == is_min) return std::nullopt;
  if (value.whole.size() + value.fraction.size() > kDecimalDigits) {
    fail_at(path, fmt::format("a minimum or maximum of more than {} digits is not supported",
                              kDecimalDigits));
  }
  return bound;
}

SchemaCompiler::Expr SchemaCompiler::compile_integer(const std::optional<Bound>& min,
                                                     const std::optional<Bound>& max,
                                                     int64_t multiple, const std::string& path) {
  // The least integer that is no less than the bound, or more than it; mirrored for a maximum.
  auto least = [](const Bound& bound, bool mirror) {
    const bool negative = bound.value.negative != mirror;
    const std::string& digits = bound.value.whole;
    int64_t magnitude = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
    const bool far = read.ec != std::errc() || magnitude > kMaxInteger;
    if (far) return negative ? -kMaxInteger - 1 : kMaxInteger + 1;
    const int64_t whole = negative ? -magnitude : magnitude;
    if (!bound.value.fraction.empty()) return negative ? whole : whole + 1;
    return bound.exclusive ? whole + 1 : whole;
  };
  const int64_t low = min ? std::max(least(*min, false), -kMaxInteger) : -kMaxInteger;
  const int64_t high = max ? std::min(-least(*max, true), kMaxInteger) : kMaxInteger;
  if (low > high) fail_at(path, "no integer lies between the minimum and the maximum");
  const auto made = integers(out_, low, high, multiple);
  if (!made) {
    fail_at(path,
            "\"multipleOf\" of more than 200 is supported only where the minimum and the "
            "maximum leave at most 1,000 values");
  }
  return out_.as_rule(path, *made, false);
}

}  // namespace orthrus::grammar
