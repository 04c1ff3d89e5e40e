#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/mcp/session.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace boyd::mcp {

/// Where a server of streamable HTTP is.
struct http_target {
  std::string url;
  http_headers headers; ///< with each request
};

namespace http_effect {

/// http_client::start; its events come back under this number.
struct start {
  std::uint64_t exchange = 0;
  http_request request;
};

struct cancel {
  std::uint64_t exchange = 0;
};

/// For session::on_message.
struct message {
  std::string text;
  std::optional<std::int64_t> via;
};

/// For session::on_undelivered.
struct undelivered {
  std::int64_t id = 0;
  delivery_failure why;
};

/// The server does not know the session any more, and no request of a session is concerned:
/// session::on_session_lost.
struct session_lost {};

/// Something to write down.
struct note {
  std::string text;
};

} // namespace http_effect

using http_effect_t =
    std::variant<http_effect::start, http_effect::cancel, http_effect::message,
                 http_effect::undelivered, http_effect::session_lost, http_effect::note>;
using http_effects = std::vector<http_effect_t>;

/// Carries the messages of a session over streamable HTTP: each is a POST of its own, answered with
/// one JSON text or a stream of events. In the handshake era it keeps the session's id, takes up
/// broken streams again (GET with Last-Event-ID, after the wait that the server asks for), and
/// listens for what the server says by itself. (event, now) → effects; no clock, no I/O. Not
/// thread-safe.
class http_link {
 public:
  explicit http_link(http_target target);
  ~http_link();
  http_link(http_link&&) noexcept;
  http_link& operator=(http_link&&) noexcept;

  /// `era` and `version` as the session says now.
  http_effects send(const effect::send& what, era_t era, const std::string& version,
                    steady_time now);
  /// Nobody waits for the answer to this request.
  http_effects abandon(std::int64_t id);
  /// Opens the stream of what a server of the handshake era says by itself.
  http_effects listen(const std::string& version, steady_time now);
  /// Ends everything; a session that the server keeps is given back.
  http_effects close(const std::string& version);

  http_effects on_head(std::uint64_t exchange, const http_head& head, steady_time now);
  http_effects on_body(std::uint64_t exchange, std::string_view bytes, steady_time now);
  http_effects on_end(std::uint64_t exchange, const result<void>& transport, steady_time now);
  /// To be called at next_time() or later.
  http_effects on_time(steady_time now);
  std::optional<steady_time> next_time() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace boyd::mcp
