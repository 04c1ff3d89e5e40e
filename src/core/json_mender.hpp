#pragma once

#include "boyd/core/outside_json.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace boyd {

/// Rewrites the first JSON value of a text so that a strict parser takes it; see mend_json. It
/// reads tokens and counts brackets: whether they make a value is the parser's to say.
class json_mender {
 public:
  /// The text outlives the mender.
  json_mender(std::string_view text, const outside_json_options& options)
      : text_(text), options_(options) {}

  /// False when the text ends before the value does.
  bool run();

  /// What run() made.
  outside_json take() { return std::move(out_); }

 private:
  bool token();
  bool string();
  void escape();
  void unicode_escape(unsigned unit);
  void character();
  void end_string(std::size_t begin);
  bool word();
  bool number();
  void keep(std::size_t bytes);
  void replace(std::size_t bytes, std::string_view by);
  void replace_half(std::size_t bytes, char32_t stand_in);

  std::string_view text_;
  outside_json_options options_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  outside_json out_;
};

} // namespace boyd
