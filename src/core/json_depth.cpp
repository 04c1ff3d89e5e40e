#include "boyd/core/json_depth.hpp"

#include "boyd/core/limits.hpp"

#include <algorithm>
#include <string>

namespace boyd {

std::size_t json_depth_of(std::string_view text) noexcept {
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

result<void> check_json_depth(std::string_view text) {
  if (json_depth_of(text) > limits::json_depth)
    return fail(errc::limit_exceeded,
                "JSON is nested deeper than " + std::to_string(limits::json_depth));
  return {};
}

} // namespace boyd
