#include "request_internal.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <netinet/in.h>
#include <string_view>
#include <utility>

namespace boyd::adapters::curl_detail {

namespace {

using namespace std::string_view_literals;

/// Those that say how long a message is or what becomes of the connection would let a header speak
/// for the next request; the others are for the client to say.
constexpr std::array own_headers{
    "accept-encoding"sv,   "connection"sv, "content-length"sv,   "expect"sv, "host"sv,
    "http2-settings"sv,    "keep-alive"sv, "proxy-connection"sv, "te"sv,     "trailer"sv,
    "transfer-encoding"sv, "upgrade"sv};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// RFC 9110 §5.6.2.
bool is_token(std::string_view text) {
  constexpr auto marks = "!#$%&'*+-.^_`|~"sv;
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || marks.find(static_cast<char>(c)) != marks.npos;
  });
}

/// RFC 9110 §5.5: no control characters but the tab.
bool is_field_value(std::string_view text) {
  constexpr unsigned char del = 0x7f;
  return std::ranges::all_of(text,
                             [](unsigned char c) { return c == '\t' || (c >= ' ' && c != del); });
}

bool is_host(std::string_view host) {
  constexpr auto marks = "-._:"sv;
  return std::ranges::all_of(host, [&](unsigned char c) {
    return std::isalnum(c) != 0 || marks.find(static_cast<char>(c)) != marks.npos;
  });
}

/// Where the host is, told without looking up a name.
void locate(checked_request& r) {
  constexpr unsigned loopback_net = 127; // 127.0.0.0/8, RFC 1122 §3.2.1.3
  const auto& host = r.address.host;
  const auto name = lower(host);
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) == 1) {
    constexpr std::size_t mapped_at = 12;
    r.loopback = IN6_IS_ADDR_LOOPBACK(&six) ||
                 (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[mapped_at] == loopback_net);
  } else if (::inet_aton(host.c_str(), &four) != 0) { // also 127.1, as libcurl takes it
    constexpr unsigned net_shift = 24;
    r.loopback = ntohl(four.s_addr) >> net_shift == loopback_net;
  } else {
    r.loopback = name == "localhost" || name.ends_with(".localhost"); // RFC 6761 §6.3
    r.needs_name = !r.loopback;
  }
}

tl::unexpected<error> wrong(std::string what) {
  return fail(errc::invalid_argument, std::move(what));
}

/// One line for libcurl, which takes "Name:" for "leave it out" and "Name;" for an empty value.
std::string header_line(const std::string& name, const std::string& value) {
  return value.empty() ? name + ";" : name + ": " + value;
}

result<std::vector<std::string>> header_lines(const http_headers& headers) {
  std::vector<std::string> lines;
  lines.reserve(headers.size() + 2);
  bool has_type = false;
  for (const auto& [name, value] : headers) {
    if (!is_token(name))
      return wrong("a header name has invalid characters");
    const auto low = lower(name);
    if (std::ranges::find(own_headers, low) != own_headers.end())
      return wrong("the header " + low + " is set by the client");
    if (!is_field_value(value))
      return wrong("the value of the header " + low + " has control characters");
    has_type = has_type || low == "content-type";
    lines.push_back(header_line(name, value));
  }
  // What libcurl would add: a form's type, and a round trip before a large body.
  if (!has_type)
    lines.emplace_back("Content-Type:");
  lines.emplace_back("Expect:");
  return lines;
}

} // namespace

result<checked_request> check_request(http_request request) {
  checked_request r;
  auto address = parse_web_address(request.url);
  if (!address)
    return fail(std::move(address.error()));
  if (!is_host(address->host))
    return wrong("the host has invalid characters");
  r.address = std::move(*address);
  if (!is_token(request.method) || request.method == "CONNECT")
    return wrong("not an HTTP method");
  auto lines = header_lines(request.headers);
  if (!lines)
    return fail(std::move(lines.error()));
  if (request.timeout <= 0ms || request.connect_timeout <= 0ms)
    return wrong("a request needs a time limit");
  locate(r);
  r.method = std::move(request.method);
  r.headers = std::move(*lines);
  r.body = std::move(request.body);
  r.timeout = request.timeout;
  r.connect_timeout = std::min(request.connect_timeout, request.timeout);
  r.max_answer_bytes = request.max_answer_bytes;
  return r;
}

} // namespace boyd::adapters::curl_detail
