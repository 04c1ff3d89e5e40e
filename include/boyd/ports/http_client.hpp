#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

using http_headers = std::vector<std::pair<std::string, std::string>>;

/// One request, e.g. a call of a model.
struct http_request {
  std::string method = "POST";
  std::string url; ///< http or https
  /// No line breaks inside. An Authorization header is never written to a log or an error.
  http_headers headers;
  std::string body;
  milliseconds connect_timeout = 10s;
  milliseconds timeout = 10min;             ///< from start to the last byte
  std::size_t max_answer_bytes = 64u << 20; ///< of the body, unpacked; then `limit_exceeded`
};

/// The first lines of an answer.
struct http_head {
  int status = 0;
  http_headers headers; ///< names in lower case, in their order
};

/// Callbacks of one request, in order: from the client's own thread, or on_end from start() itself
/// for a request that is refused at once. They must neither block nor throw; they may start and
/// cancel requests.
struct http_events {
  std::function<void(const http_head&)> on_head;   ///< once, for the final answer (no 1xx)
  std::function<void(std::string_view)> on_body;   ///< as it comes
  std::function<void(const result<void>&)> on_end; ///< once, last
};

using http_handle = std::uint64_t;

/// Many HTTP requests at once, without a thread for each. Redirections are not followed, nothing is
/// repeated, no cookies are kept. Non-blocking. Threads: any.
///
/// on_end's errors: `invalid_argument` for an address or header that is none; `overloaded` when too
/// many are under way; `timed_out`; `io_error` when the connection could not be made or broke, with
/// host and cause (`refused` for a certificate that does not hold); `limit_exceeded` for a body or
/// a head that is too long; `parse_error` for an answer that is no HTTP; `cancelled`.
class http_client {
 public:
  virtual ~http_client() = default;

  /// Takes the request in; every failure comes through on_end.
  virtual http_handle start(http_request request, http_events events) = 0;

  /// Ends it with `cancelled`; an unknown or ended one is ignored. Events may still come until
  /// on_end.
  virtual void cancel(http_handle handle) = 0;

  /// Requests started and not ended.
  virtual std::size_t running() const = 0;
};

} // namespace boyd
