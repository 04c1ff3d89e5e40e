#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

/// The Model Context Protocol: its messages, and what a client makes of them (docs/executors.md).
/// Pure.
namespace boyd::mcp {

/// The longest message that is taken in or sent, bytes.
inline constexpr std::size_t message_bytes = 8u << 20;

/// The id of a request: a number or a text, never null (JSON-RPC 2.0, and the protocol's own rule).
using rpc_id = std::variant<std::int64_t, std::string>;

/// Codes that are looked at (JSON-RPC 2.0 §5.1; specification 2026-07-28, "Error Codes").
namespace rpc_code {
inline constexpr std::int64_t parse_error = -32700;
inline constexpr std::int64_t invalid_request = -32600;
inline constexpr std::int64_t method_not_found = -32601;
inline constexpr std::int64_t invalid_params = -32602;
inline constexpr std::int64_t internal_error = -32603;
inline constexpr std::int64_t header_mismatch = -32020;
inline constexpr std::int64_t missing_capability = -32021;
inline constexpr std::int64_t unsupported_version = -32022;
} // namespace rpc_code

struct rpc_error {
  std::int64_t code = 0;
  std::string message;
  std::string data_json; ///< empty: none

  bool operator==(const rpc_error&) const = default;
};

struct rpc_request {
  rpc_id id;
  std::string method;
  std::string params_json; ///< an object, or empty: none

  bool operator==(const rpc_request&) const = default;
};

struct rpc_notification {
  std::string method;
  std::string params_json; ///< an object, or empty: none

  bool operator==(const rpc_notification&) const = default;
};

/// The answer to a request: exactly one of `result_json` (an object) and `error`.
struct rpc_response {
  std::optional<rpc_id> id; ///< nothing: the other side could not read the id of what it answers
  std::string result_json;
  std::optional<rpc_error> error;

  bool operator==(const rpc_response&) const = default;
};

using rpc_message = std::variant<rpc_request, rpc_notification, rpc_response>;

/// Reads one message: any bytes. Errors: `limit_exceeded` beyond message_bytes or
/// limits::json_depth, `parse_error` for what is no message (a batch is none); the text says what
/// is wrong without repeating the bytes.
result<rpc_message> read_message(std::string_view text);

/// The number that an id means: peers that count in texts write "1" for 1, others 1.0. Nothing for
/// any other text.
std::optional<std::int64_t> number_of(const rpc_id& id);

/// What can be said of a text that read_message refuses.
struct unreadable_message {
  bool is_answer = false;         ///< it was meant as an answer: it has no method
  std::optional<std::int64_t> id; ///< of the request, where it can be found
};

/// Looks at the names on the first level of an object, as far as it goes: the text may be cut off
/// or broken anywhere. Any bytes.
unreadable_message look_at_unreadable(std::string_view text);

/// Whether the error says that the other side does not know this session (any more), or waits for
/// the handshake.
bool names_lost_session(const rpc_error& e);

/// As one line without a line break at its end.
std::string to_text(const rpc_request& m);
std::string to_text(const rpc_notification& m);
std::string to_text(const rpc_response& m);

} // namespace boyd::mcp
