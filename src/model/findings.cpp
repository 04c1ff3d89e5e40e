#include "boyd/model/probe.hpp"
#include "json.hpp"

namespace boyd::model {
namespace {

using nlohmann::json;

std::optional<bool> flag_of(const json& value, const char* key) {
  const auto* found = member(value, key);
  return found != nullptr && found->is_boolean() ? std::optional(found->get<bool>()) : std::nullopt;
}

} // namespace

std::string to_text(const found_capabilities& found, const std::string& base_url, utc_time at) {
  json out{{"base_url", base_url}, {"at", format_rfc3339(at)}};
  const auto add = [&](const char* key, const std::optional<bool>& value) {
    if (value)
      out[key] = *value;
  };
  add("tools", found.tools);
  add("schema", found.schema);
  add("stream", found.stream);
  add("stream_usage", found.stream_usage);
  return to_text(out);
}

found_capabilities found_in(std::string_view text, const std::string& base_url) {
  const auto value = parse_json(text);
  if (!value || text_of(*value, "base_url") != base_url)
    return {};
  return {flag_of(*value, "tools"), flag_of(*value, "schema"), flag_of(*value, "stream"),
          flag_of(*value, "stream_usage")};
}

void apply(const found_capabilities& found, config::provider& p) {
  const auto take = [](const std::optional<bool>& finding, bool said, bool& capability) {
    if (finding && !said)
      capability = *finding;
  };
  take(found.tools, p.said.tools, p.capabilities.tools);
  take(found.schema, p.said.schema, p.capabilities.schema);
  take(found.stream, p.said.stream, p.capabilities.stream);
  take(found.stream_usage, p.said.stream_usage, p.capabilities.stream_usage);
}

std::string findings_scope(const std::string& provider_id) {
  return "provider:" + provider_id;
}

} // namespace boyd::model
