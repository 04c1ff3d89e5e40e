#include "boyd/mcp/json_rpc.hpp"

#include "boyd/core/json_depth.hpp"
#include "json.hpp"

#include <limits>
#include <utility>

namespace boyd::mcp {

namespace {

/// What a text of an error may have.
constexpr std::size_t error_text_characters = 2000;

auto no_message(const std::string& why) {
  return fail(errc::parse_error, "this is no message of the protocol: " + why);
}

std::optional<rpc_id> id_of(const json& value) {
  if (value.is_string())
    return rpc_id(value.get<std::string>());
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (n <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return rpc_id(static_cast<std::int64_t>(n));
    return std::nullopt;
  }
  if (value.is_number_integer())
    return rpc_id(value.get<std::int64_t>());
  // A server that counts in floating point writes 1.0 for 1.
  if (value.is_number_float()) {
    constexpr double most = 9007199254740991.0;
    const auto n = value.get<double>();
    if (n >= -most && n <= most && n == static_cast<double>(static_cast<std::int64_t>(n)))
      return rpc_id(static_cast<std::int64_t>(n));
  }
  return std::nullopt;
}

json to_json(const rpc_id& id) {
  return std::visit([](const auto& value) { return json(value); }, id);
}

std::string params_of(const json& message) {
  const auto& params = member(message, "params");
  return params.is_object() ? dump(params) : std::string();
}

rpc_error error_of(const json& value) {
  rpc_error e;
  const auto& code = member(value, "code");
  if (code.is_number_integer())
    e.code = code.get<std::int64_t>();
  e.message = std::string(cut_characters(text_in(value, "message"), error_text_characters));
  if (const auto& data = member(value, "data"); !data.is_null())
    e.data_json = dump(data);
  return e;
}

result<rpc_message> response_of(const json& all) {
  rpc_response out;
  const auto& id = member(all, "id");
  if (!id.is_null()) {
    out.id = id_of(id);
    if (!out.id)
      return no_message("its id is neither a whole number nor a text");
  }
  const bool has_error = member(all, "error").is_object();
  const auto& value = member(all, "result");
  if (has_error == value.is_object())
    return no_message("an answer has either a result or an error, and both are objects");
  if (has_error)
    out.error = error_of(all.at("error"));
  else
    out.result_json = dump(value);
  if (!out.id && !out.error)
    return no_message("a result without the id of its request");
  return rpc_message(std::move(out));
}

json begin(const char* version = "2.0") {
  json out = json::object();
  out["jsonrpc"] = version;
  return out;
}

json params_json(const std::string& text) {
  return parse(text);
}

} // namespace

result<rpc_message> read_message(std::string_view text) {
  if (text.size() > message_bytes)
    return fail(errc::limit_exceeded,
                "a message of more than " + std::to_string(message_bytes >> 20) + " MiB");
  if (auto deep = check_json_depth(text); !deep)
    return fail(std::move(deep.error()));
  const auto all = parse(text);
  if (all.is_discarded())
    return no_message("it is not JSON");
  if (all.is_array())
    return no_message("batches are not taken");
  if (!all.is_object() || text_in(all, "jsonrpc") != "2.0")
    return no_message("it is no object with \"jsonrpc\": \"2.0\"");
  const auto& method = member(all, "method");
  if (method.is_null())
    return response_of(all);
  if (!method.is_string())
    return no_message("its method is no text");
  if (!all.contains("id"))
    return rpc_message(rpc_notification{method.get<std::string>(), params_of(all)});
  const auto id = id_of(all.at("id"));
  if (!id)
    return no_message("its id is neither a whole number nor a text");
  return rpc_message(rpc_request{*id, method.get<std::string>(), params_of(all)});
}

std::string to_text(const rpc_request& m) {
  auto out = begin();
  out["id"] = to_json(m.id);
  out["method"] = m.method;
  if (!m.params_json.empty())
    out["params"] = params_json(m.params_json);
  return dump(out);
}

std::string to_text(const rpc_notification& m) {
  auto out = begin();
  out["method"] = m.method;
  if (!m.params_json.empty())
    out["params"] = params_json(m.params_json);
  return dump(out);
}

std::string to_text(const rpc_response& m) {
  auto out = begin();
  out["id"] = m.id ? to_json(*m.id) : json();
  if (!m.error) {
    out["result"] = m.result_json.empty() ? json::object() : parse(m.result_json);
    return dump(out);
  }
  out["error"] = {{"code", m.error->code}, {"message", m.error->message}};
  if (!m.error->data_json.empty())
    out["error"]["data"] = parse(m.error->data_json);
  return dump(out);
}

} // namespace boyd::mcp
