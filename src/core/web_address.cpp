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
    return no_address("an address has neither spaces nor special characters");
  if (text.starts_with("https://"))
    a.secure = true;
  else if (!text.starts_with("http://"))
    return no_address("only http and https can be called");
  text.remove_prefix(text.find("//") + 2);
  if (text.find('#') != std::string_view::npos)
    return no_address("a fragment (#…) is not sent to anybody");
  const auto end = std::min(text.find_first_of("/?"), text.size());
  auto authority = text.substr(0, end);
  a.target = std::string(text.substr(end));
  if (!a.target.starts_with('/'))
    a.target.insert(0, "/");
  if (authority.find('@') != std::string_view::npos)
    return no_address("a user or password does not belong into an address");
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
    return no_address("this is no port");
  return a;
}

} // namespace boyd
