#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "http_types.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace boyd::adapters {

/// The largest answer the client takes.
inline constexpr std::size_t http_answer_bytes = 256u << 20;
/// The longest line of an event stream.
inline constexpr std::size_t http_line_bytes = 1u << 20;

/// Sends `request` over the control socket and waits for the answer, whatever its status. Blocks
/// up to `timeout` in all (milliseconds::max(): no limit); `keep_going`, when given, is asked
/// several times a second and after every signal.
/// Errors: `not_found` "no node is running" (no socket, or nobody listens on it); `timed_out`;
/// `cancelled` when `keep_going` said no; `refused` when the socket is another user's; `io_error`
/// when the connection broke; `parse_error` for what is no HTTP; `limit_exceeded` for an answer
/// that is too large; `invalid_argument`.
result<http_response> control_call(const std::string& socket_path, const http_request& request,
                                   milliseconds timeout,
                                   const std::function<bool()>& keep_going = {});

/// Reads a stream of lines: calls `on_line` with each (no line break), on this thread, until the
/// server ends the stream (success), `on_line` returns false (success) or `keep_going` does
/// (success; asked several times a second and after every signal). `on_open`, when given, is called
/// once the server has begun a good answer: from then on nothing that happens is missed. Errors as
/// above, and the server's own error when its status is not 2xx.
result<void> control_stream(const std::string& socket_path, const http_request& request,
                            const std::function<bool(std::string_view line)>& on_line,
                            const std::function<bool()>& keep_going,
                            const std::function<void()>& on_open = {});

/// The error that an answer with a status of 400 or more stands for: what `error_response` wrote,
/// or, for any other body, an error made from the status.
error error_of(const http_response& response);

} // namespace boyd::adapters
