// "..." % values.
#include <cmath>

#include "base/error.h"
#include "text/jinja_builtins.h"
#include "text/jinja_format.h"
#include "text/jinja_string.h"

namespace orthrus::jinja {

namespace {

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, std::string_view format, const Value& values)
      : budget_(budget), format_(format), values_(values) {
    if (values.is(ObjectKind::kTuple)) {
      items_ = elements(budget, values);
    } else {
      items_ = {values};
    }
  }

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', at_), format_.size());
      out += format_.substr(at_, percent - at_);
      at_ = percent + 1;
      if (percent < format_.size()) out += conversion();
    }
    // What can be asked for items may be left over.
    const bool may_remain = values_.is(ObjectKind::kDict) || values_.is(ObjectKind::kList) ||
                            values_.is(ObjectKind::kRange) || values_.is_undefined();
    if (used_ < items_.size() && !by_key_ && !may_remain) {
      fail("not all arguments converted during string formatting");
    }
    budget_.bytes(out.size());
    return out;
  }

 private:
  const Value& next_value() {
    if (used_ >= items_.size()) fail("not enough arguments for format string");
    return items_[used_++];
  }

  Value named_value() {
    const size_t close = format_.find(')', at_);
    if (close == std::string_view::npos || !values_.is(ObjectKind::kDict)) {
      fail("a format with names needs a mapping");
    }
    const std::string key(format_.substr(at_ + 1, close - at_ - 1));
    const Value* found = values_.as<Mapping>()->find(key);
    if (found == nullptr) fail("format: no value named '{}'", key);
    by_key_ = true;
    at_ = close + 1;
    return *found;
  }

  bool at(std::string_view set) const {
    return at_ < format_.size() && is_one_of(format_[at_], set);
  }

  /// A width or precision: digits, or * for one of the values.
  int64_t size() {
    if (!at("*")) return read_width(format_, at_);
    ++at_;
    const Value& given = next_value();
    if (!given.is_integer()) fail("* wants an integer");
    const int64_t size = to_int64(given);
    if (size > FormatSpec::kMaxWidth || size < -FormatSpec::kMaxWidth) {
      fail("a format with a width over {}", FormatSpec::kMaxWidth);
    }
    return size;
  }

  /// After the "%".
  std::string conversion() {
    std::optional<Value> named;
    if (at("(")) named = named_value();
    FormatSpec spec;
    for (; at("-+ 0#"); ++at_) {
      const char flag = format_[at_];
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
      if (flag == '0') spec.zero = true;
      if (flag == '#') spec.alternate = true;
    }
    spec.width = size();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (spec.zero && spec.align == 0) spec.fill = "0";
    if (at(".")) {
      ++at_;
      spec.precision = std::max<int64_t>(0, size());
    }
    if (at("hlL")) ++at_;
    if (at_ == format_.size()) fail("incomplete format");
    spec.type = format_[at_++];
    if (spec.type == '%') return "%";
    if (!is_one_of(spec.type, "sracdiuxXoeEfFgG")) fail("unknown format '%{}'", spec.type);
    budget_.bytes(static_cast<uint64_t>(spec.width));
    return printed(named ? *named : next_value(), spec);
  }

  std::string printed_text(const std::string& text, FormatSpec spec) {
    if (spec.align == 0) spec.align = '>';
    spec.fill = " ";
    return format_text(text, spec);
  }

  std::string printed(const Value& value, FormatSpec spec) {
    if (spec.type == 's') return printed_text(to_string(budget_, value), spec);
    if (spec.type == 'r') return printed_text(to_repr(budget_, value), spec);
    if (spec.type == 'a') return printed_text(ascii_only(to_repr(budget_, value)), spec);
    if (spec.type == 'c') {
      spec.precision = -1;
      if (value.is_string() && count_characters(value.string()) == 1) {
        return printed_text(value.string(), spec);
      }
      if (!value.is_integer()) fail("%c needs a character, given '{}'", value.type_name());
      spec.fill = " ";
      return format_character(value, spec);
    }
    if (!value.is_number()) fail("%{} needs a number, given '{}'", spec.type, value.type_name());
    if (is_one_of(spec.type, "eEfFgG")) return format_number(value, spec);
    spec.digits = spec.precision;
    if (is_one_of(spec.type, "diu")) {
      spec.type = 'd';
      if (!value.is_float()) return format_number(value, spec);
      if (!(std::abs(value.number()) < 0x1p126)) fail("integer too large");
      return format_number(Value(static_cast<Int>(value.number())), spec);
    }
    if (value.is_float()) fail("%{} needs an integer", spec.type);
    return format_number(value, spec);
  }

  Budget& budget_;
  std::string_view format_;
  const Value& values_;
  std::vector<Value> items_;
  size_t at_ = 0;
  size_t used_ = 0;
  bool by_key_ = false;
};

}  // namespace

std::string percent_format(Budget& budget, std::string_view format, const Value& values) {
  return PercentFormatter(budget, format, values).run();
}

}  // namespace orthrus::jinja
