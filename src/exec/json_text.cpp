#include "json_text.hpp"

#include "boyd/core/json_depth.hpp"

namespace boyd::exec {

result<nlohmann::json> parse_json(std::string_view text) {
  if (const auto shallow = check_json_depth(text); !shallow)
    return fail(shallow.error());
  auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded())
    return fail(errc::parse_error, "not valid JSON");
  return value;
}

} // namespace boyd::exec
