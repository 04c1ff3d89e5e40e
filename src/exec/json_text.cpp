#include "json_text.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"

#include <string>

namespace boyd::exec {

namespace {

/// Braces in words before an object, at most.
constexpr int object_places = 16;

} // namespace

std::size_t end_of_object(std::string_view text, std::size_t begin) noexcept {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

result<found_object> find_object(std::string_view text) {
  // The usual case: it is one object, and nothing else.
  if (auto whole = parse_json(text); whole && whole->is_object())
    return found_object{std::move(*whole), text.size()};
  auto begin = text.find('{');
  for (int i = 0; i < object_places && begin != std::string_view::npos; ++i) {
    const auto end = end_of_object(text, begin);
    if (end != std::string_view::npos) {
      const auto mended = mend_json(text.substr(begin, end - begin));
      if (auto value =
              mended ? parse_json(mended->text) : result<nlohmann::json>(fail(mended.error()));
          value)
        return found_object{std::move(*value), end};
    }
    // An object that is broken is not searched: one inside of it means something else.
    if (trim(text.substr(begin + 1)).starts_with('"'))
      break;
    begin = text.find('{', begin + 1);
  }
  return fail(errc::parse_error, "no JSON object");
}

result<nlohmann::json> parse_json(std::string_view text) {
  if (const auto shallow = check_json_depth(text); !shallow)
    return fail(shallow.error());
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded())
    return fail(errc::parse_error, "not valid JSON");
  return value;
}

} // namespace boyd::exec
