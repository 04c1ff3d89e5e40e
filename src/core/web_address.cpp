#include "boyd/core/web_address.hpp"

#include <algorithm>
#include <charconv>

namespace boyd {

namespace {

constexpr unsigned highest_port = 65535;
constexpr const char* expected = "http://HOST[:PORT][/PATH] or https://…";

tl::unexpected<error> no_address(const char* why) {
  return fail(errc::invalid_argument, why, "", expected);
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto end = text.data() + text.size();
  const auto [at, ec] = std::from_chars(text.data(), end, port);
  return !text.empty() && ec == std::errc{} && at == end && port > 0 && port <= highest_port;
}

/// Printable ASCII without what would end a line of a request or a log.
bool is_plain(char c) {
  return c > ' ' && c < '\x7f' && c != '"' && c != '<' && c != '>' && c != '\\';
}

} // namespace

std::string web_address::origin() const {
  const auto shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return (secure ? "https://" : "http://") + shown + ":" + port;
}

result<web_address> parse_web_address(std::string_view text) {
  web_address a;
  if (!std::ranges::all_of(text, is_plain))
    return no_address("spaces and control characters are not allowed");
  if (text.starts_with("https://"))
    a.secure = true;
  else if (!text.starts_with("http://"))
    return no_address("only http and https are supported");
  text.remove_prefix(text.find("//") + 2);
  if (text.find('#') != std::string_view::npos)
    return no_address("a fragment (#…) is not allowed");
  const auto end = std::min(text.find_first_of("/?"), text.size());
  auto authority = text.substr(0, end);
  a.target = std::string(text.substr(end));
  if (!a.target.starts_with('/'))
    a.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos)
    return no_address("a user or password is not allowed");
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos)
      return no_address("the bracket of the host is not closed");
    a.host = std::string(authority.substr(1, close - 1));
    port = authority.substr(close + 1);
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    a.host = std::string(authority.substr(0, colon));
    port = authority.substr(colon);
  }
  if (a.host.empty())
    return no_address("the host is missing");
  if (port.empty())
    a.port = a.secure ? "443" : "80";
  else if (is_port(port.substr(1)) && port.front() == ':')
    a.port = std::string(port.substr(1));
  else
    return no_address("not a port");
  return a;
}

bool is_loopback_host(std::string_view host) noexcept {
  constexpr std::string_view block = "127.";
  constexpr std::size_t numbers = 4;
  constexpr unsigned highest_number = 255;
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1")
    return true;
  if (!host.starts_with(block))
    return false;
  // A name may begin like an address.
  std::size_t seen = 0;
  for (std::size_t at = 0; at <= host.size(); ++seen) {
    const auto end = std::min(host.find('.', at), host.size());
    unsigned number = 0;
    const auto [last, ec] = std::from_chars(host.data() + at, host.data() + end, number);
    if (ec != std::errc{} || last != host.data() + end || number > highest_number)
      return false;
    at = end + 1;
  }
  return seen == numbers;
}

} // namespace boyd
