#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/web_address.hpp"
#include "boyd/ports/http_client.hpp"

#include <string>
#include <vector>

namespace boyd::adapters::curl_detail {

/// A request that has been looked at, as libcurl wants it.
struct checked_request {
  std::string method;
  web_address address;
  bool loopback = false;            ///< the host is this machine, by its address or as "localhost"
  bool needs_name = false;          ///< the host is a name that must be looked up
  std::vector<std::string> headers; ///< lines
  std::string body;
  milliseconds connect_timeout{};
  milliseconds timeout{};
  std::size_t max_answer_bytes = 0;
};

/// Error: `invalid_argument` for what is no address, method or header (also for headers that are
/// the client's own, such as Content-Length), or a limit that is not positive. It quotes nothing
/// but names of headers.
result<checked_request> check_request(http_request request);

} // namespace boyd::adapters::curl_detail
