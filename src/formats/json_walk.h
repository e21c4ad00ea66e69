#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace orthrus {

/// Goes through a JSON text with sax_parse() before anything is built of it, for checks. (Not as a
/// callback of the parser: with one, nlohmann's takes a time for each element of a list that grows
/// with their number.) What is called may throw, which ends the walk.
template <typename Json>
class JsonWalk : public nlohmann::json_sax<Json> {
 public:
  using Sax = nlohmann::json_sax<Json>;

  bool null() final { return value(); }
  bool boolean(bool) final { return value(); }
  bool number_integer(typename Sax::number_integer_t) final { return value(); }
  bool number_unsigned(typename Sax::number_unsigned_t) final { return value(); }
  bool number_float(typename Sax::number_float_t, const typename Sax::string_t&) final {
    return value();
  }
  bool string(typename Sax::string_t&) final { return value(); }
  bool binary(typename Sax::binary_t&) final { return value(); }
  bool start_object(std::size_t) final { return begin(true); }
  bool start_array(std::size_t) final { return begin(false); }
  bool key(typename Sax::string_t& name) final {
    on_key(name);
    return true;
  }
  bool end_object() final { return end(true); }
  bool end_array() final { return end(false); }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) final {
    on_error(byte, dynamic_cast<const typename Json::parse_error*>(&error) == nullptr);
    return false;
  }

 protected:
  /// A value that is neither object nor array.
  virtual void on_value() {}
  /// `depth`: 1 for the outermost.
  virtual void on_begin(int depth, bool object) = 0;
  virtual void on_end(bool /*object*/) {}
  virtual void on_key(const std::string& /*name*/) {}
  /// The text is not JSON, or a number is out of range.
  virtual void on_error(std::size_t byte, bool out_of_range) = 0;

 private:
  bool value() {
    on_value();
    return true;
  }
  bool begin(bool object) {
    on_begin(++depth_, object);
    return true;
  }
  bool end(bool object) {
    --depth_;
    on_end(object);
    return true;
  }
  int depth_ = 0;
};

}  // namespace orthrus
