#include "json_text.hpp"

#include <algorithm>

namespace boyd::exec {

namespace {

std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

} // namespace

result<nlohmann::json> parse_json(std::string_view text) {
  if (depth_of(text) > limits::json_depth)
    return fail(errc::limit_exceeded,
                "JSON is nested deeper than " + std::to_string(limits::json_depth));
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded())
    return fail(errc::parse_error, "not valid JSON");
  return value;
}

} // namespace boyd::exec
