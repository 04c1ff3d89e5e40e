#pragma once

#include "boyd/core/result.hpp"
#include "http_types.hpp"

#include <string>
#include <string_view>

namespace boyd::adapters::control_detail {

/// What becomes of the connection after an answer.
enum class after_answer { keep, close };

/// Reads an origin-form target into `into.path` and `into.query`. Errors: `invalid_argument`.
result<void> read_target(std::string_view target, http_request& into);

/// The target of a request: percent-encoded path and query.
std::string write_target(const http_request& request);

/// Head and body of an answer. `without_body`: for HEAD.
std::string write_answer(const http_response& response, after_answer after, bool without_body);

/// The head of an answer whose body comes later: chunked, or until the connection closes.
std::string write_stream_head(bool chunked);

/// One chunk in chunked coding; empty for an empty `data`, which would end the body.
std::string write_chunk(std::string_view data);

inline constexpr std::string_view last_chunk = "0\r\n\r\n";

} // namespace boyd::adapters::control_detail
