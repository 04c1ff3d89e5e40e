#include "boyd/mcp/json_rpc.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/core/outside_json.hpp"
#include "json.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <system_error>
#include <utility>

namespace boyd::mcp {

namespace {

/// What a text of an error may have.
constexpr std::size_t error_text_characters = 2000;

auto no_message(const std::string& why) {
  return fail(errc::parse_error, "not a valid protocol message: " + why);
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
  // Some servers write the text alone.
  if (value.is_string())
    e.message = std::string(cut_characters(value.get<std::string>(), error_text_characters));
  return e;
}

result<rpc_message> response_of(const json& all) {
  rpc_response out;
  const auto& id = member(all, "id");
  if (!id.is_null()) {
    out.id = id_in(id);
    if (!out.id)
      return no_message("the id is not an integer or a string");
  }
  const auto& why = member(all, "error");
  const bool has_error = why.is_object() || why.is_string();
  const auto& value = member(all, "result");
  if (has_error && !value.is_null())
    return no_message("it has a result and an error");
  if (!has_error && !why.is_null())
    return no_message("the error is not an object");
  if (!has_error && value.is_null())
    return no_message("it has no result and no error");
  if (!has_error && !value.is_object())
    return no_message("the result is not an object");
  if (has_error)
    out.error = error_of(all.at("error"));
  else
    out.result_json = dump(value);
  if (!out.id && !out.error)
    return no_message("the result has no request id");
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

std::optional<rpc_id> id_in(const json& value) {
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

result<rpc_message> read_message(std::string_view text) {
  if (text.size() > message_bytes)
    return fail(errc::limit_exceeded,
                "a message of more than " + std::to_string(message_bytes >> 20) + " MiB");
  if (auto deep = check_json_depth(text); !deep)
    return fail(std::move(deep.error()));
  auto all = parse(text);
  if (all.is_discarded()) {
    const auto mended = mend_json(text);
    if (!mended)
      return no_message("not JSON");
    all = parse(mended->text);
  }
  if (all.is_array())
    return no_message("batches are not supported");
  if (!all.is_object() || text_in(all, "jsonrpc") != "2.0")
    return no_message("not an object with \"jsonrpc\": \"2.0\"");
  const auto& method = member(all, "method");
  if (method.is_null())
    return response_of(all);
  if (!method.is_string())
    return no_message("the method is not a string");
  if (!all.contains("id"))
    return rpc_message(rpc_notification{method.get<std::string>(), params_of(all)});
  const auto id = id_in(all.at("id"));
  if (!id)
    return no_message("the id is not an integer or a string");
  return rpc_message(rpc_request{*id, method.get<std::string>(), params_of(all)});
}

std::optional<std::int64_t> number_of(const rpc_id& id) {
  if (const auto* number = std::get_if<std::int64_t>(&id))
    return *number;
  std::string_view text = trim(std::get<std::string>(id));
  if (text.size() > 2 && text.ends_with(".0"))
    text.remove_suffix(2);
  std::int64_t out = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || bad != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return out;
}

namespace {

/// The end of the text in quotes that begins at `from`: behind its last quote, or the end of all.
std::size_t end_of_quoted(std::string_view text, std::size_t from) {
  for (auto i = from + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return text.size();
}

constexpr std::string_view blanks = " \t\r\n";

/// A number, or a text in quotes, at `from`.
std::optional<std::int64_t> number_at(std::string_view text, std::size_t from) {
  from = text.find_first_not_of(blanks, from);
  if (from == std::string_view::npos)
    return std::nullopt;
  if (text[from] == '"') {
    const auto end = end_of_quoted(text, from);
    if (end < from + 2 || text[end - 1] != '"')
      return std::nullopt;
    return number_of(std::string(text.substr(from + 1, end - from - 2)));
  }
  // The last number of a text that is cut off may be cut as well.
  const auto end = text.find_first_of(",} \t\r\n", from);
  if (end == std::string_view::npos)
    return std::nullopt;
  return number_of(std::string(text.substr(from, end - from)));
}

} // namespace

unreadable_message look_at_unreadable(std::string_view text) {
  unreadable_message out;
  bool method = false;
  int depth = 0;
  bool name_comes = false; ///< the next text is the name of a member
  for (std::size_t i = text.find('{'); i < text.size();) {
    const char c = text[i];
    if (c == '{' || c == '[') {
      name_comes = ++depth == 1;
    } else if (c == '}' || c == ']') {
      if (--depth == 0)
        break;
    } else if (c == ',' && depth == 1) {
      name_comes = true;
    } else if (c == '"') {
      const auto end = end_of_quoted(text, i);
      const auto colon = text.find_first_not_of(blanks, end);
      if (std::exchange(name_comes, false) && depth == 1 && colon < text.size() &&
          text[colon] == ':') {
        const auto name = text.substr(i + 1, end - i - 2);
        method = method || name == "method";
        out.is_answer = out.is_answer || name == "jsonrpc" || name == "result" || name == "error";
        if (name == "id")
          out.id = number_at(text, colon + 1);
      }
      i = end;
      continue;
    }
    ++i;
  }
  out.is_answer = (out.is_answer || out.id) && !method;
  return out;
}

bool names_lost_session(const rpc_error& e) {
  auto said = e.message + " " + e.data_json;
  std::ranges::transform(said, said.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto has = [&](std::string_view word) { return said.find(word) != std::string::npos; };
  const auto any = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, has);
  };
  if (any({"not initialized", "not initialised", "uninitialized", "not been initialized",
           "before initialization", "initialize first"}))
    return true;
  return has("session") &&
         any({"unknown",        "not found",      "no such",      "not exist",  "n't exist",
              "expired",        "invalid",        "not valid",    "no valid",   "missing",
              "required",       "terminated",     "closed",       "ended",      "no longer",
              "not recognized", "not recognised", "unrecognized", "not known",  "lost",
              "gone",           "stale",          "timed out",    "no session", "bad session"});
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
