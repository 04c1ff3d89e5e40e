#include "boyd/core/text.hpp"
#include "control_server.hpp"
#include "http_text_internal.hpp"

#include <boost/beast/http/status.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace boyd::adapters {

namespace {

constexpr int lowest_status = 200;
constexpr int highest_status = 599;
constexpr int server_failure = 500;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

tl::unexpected<error> bad_target(std::string what) {
  return fail(errc::invalid_argument, std::move(what), "request target");
}

std::optional<char> decode_hex(std::string_view two) {
  unsigned value = 0;
  if (two.size() != 2)
    return std::nullopt;
  const auto end = two.data() + two.size();
  const auto read = std::from_chars(two.data(), end, value, 16);
  if (read.ec != std::errc{} || read.ptr != end)
    return std::nullopt;
  return static_cast<char>(value);
}

result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto byte = decode_hex(text.substr(i + 1, 2));
      if (!byte)
        return bad_target("a '%' is not followed by two hexadecimal digits");
      c = *byte;
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (is_control(c))
      return bad_target("control characters are not allowed");
    out.push_back(c);
  }
  if (sanitize_utf8(out) != out)
    return bad_target("not UTF-8");
  return out;
}

std::string encode(std::string_view text, std::string_view also_plain) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                     "0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (plain.find(c) != std::string_view::npos || also_plain.find(c) != std::string_view::npos) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(digits[byte >> 4]);
    out.push_back(digits[byte & 0x0f]);
  }
  return out;
}

result<void> read_query(std::string_view text, http_request& into) {
  for (const auto& part : split(text, '&')) {
    if (part.empty())
      continue;
    const auto equals = part.find('=');
    const auto key = decode(std::string_view(part).substr(0, equals), true);
    const auto value = equals == std::string::npos
                           ? result<std::string>(std::string())
                           : decode(std::string_view(part).substr(equals + 1), true);
    if (!key || !value)
      return fail(key ? value.error() : key.error());
    if (!into.query.emplace(*key, *value).second)
      return bad_target("the query names '" + *key + "' twice");
  }
  return {};
}

std::string head_line(int status) {
  const auto reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return "HTTP/1.1 " + std::to_string(status) + " " + std::string(reason) + "\r\n";
}

} // namespace

namespace control_detail {

result<void> read_target(std::string_view target, http_request& into) {
  if (!target.starts_with('/'))
    return bad_target("the target must begin with '/'");
  if (target.find('#') != std::string_view::npos)
    return bad_target("a target has no fragment");
  const auto question = target.find('?');
  auto path = decode(target.substr(0, question), false);
  if (!path)
    return fail(path.error());
  for (const auto& segment : split(*path, '/'))
    if (segment == "." || segment == "..")
      return bad_target("'.' and '..' are not allowed in a path");
  into.path = std::move(*path);
  if (question == std::string_view::npos)
    return {};
  return read_query(target.substr(question + 1), into);
}

std::string write_target(const http_request& request) {
  auto target = encode(request.path, "/");
  char separator = '?';
  for (const auto& [key, value] : request.query) {
    target += separator + encode(key, {}) + "=" + encode(value, {});
    separator = '&';
  }
  return target;
}

std::string write_answer(const http_response& response, after_answer after, bool without_body) {
  const bool sound = response.status >= lowest_status && response.status <= highest_status &&
                     std::ranges::none_of(response.content_type, is_control);
  const auto& type = sound ? response.content_type : std::string("application/octet-stream");
  auto text = head_line(sound ? response.status : server_failure);
  text +=
      "Content-Type: " + type + "\r\nContent-Length: " + std::to_string(response.body.size()) +
      "\r\nCache-Control: no-store\r\n" +
      (!response.allow.empty() && std::ranges::none_of(response.allow, is_control)
           ? "Allow: " + response.allow + "\r\n"
           : std::string{}) +
      (response.retry_after > 0 ? "Retry-After: " + std::to_string(response.retry_after) + "\r\n"
                                : std::string{}) +
      "Connection: " + (after == after_answer::keep ? "keep-alive" : "close") + "\r\n\r\n";
  if (!without_body)
    text += response.body;
  return text;
}

std::string write_stream_head(bool chunked) {
  return head_line(lowest_status) +
         "Content-Type: application/x-ndjson\r\nCache-Control: no-store\r\nConnection: close\r\n" +
         (chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
}

std::string write_chunk(std::string_view data) {
  if (data.empty())
    return {};
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), data.size(), 16).ptr;
  std::string text(size.data(), end);
  text += "\r\n";
  text += data;
  text += "\r\n";
  return text;
}

} // namespace control_detail

http_response error_response(const error& e) {
  const nlohmann::json body = {{"schema", "boyd.error/1"},
                               {"error",
                                {{"code", name_of(e.code)},
                                 {"what", sanitize_utf8(e.what)},
                                 {"where", sanitize_utf8(e.where)},
                                 {"next", sanitize_utf8(e.next)}}}};
  http_response response;
  response.status = http_status_of(e.code);
  response.body = body.dump();
  return response;
}

} // namespace boyd::adapters
