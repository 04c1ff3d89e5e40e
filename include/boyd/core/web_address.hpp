#pragma once

#include "boyd/core/result.hpp"

#include <string>
#include <string_view>

namespace boyd {

/// An address of the web, taken apart (RFC 3986 §3).
struct web_address {
  bool secure = false; ///< https
  std::string host;    ///< a name or an address; IPv6 without its brackets
  std::string port;    ///< digits
  std::string target;  ///< path and query; at least "/"

  /// Without the target, which may hold a secret: for logs and errors.
  std::string origin() const;
};

/// Reads `http://host[:port][/path][?query]`, or https. Errors: `invalid_argument` for any other
/// scheme, for a user or password in it, a fragment, or what is no address.
result<web_address> parse_web_address(std::string_view text);

/// True for a host that is this machine itself: localhost and names below it, 127.0.0.0/8 and ::1.
bool is_loopback_host(std::string_view host) noexcept;

} // namespace boyd
