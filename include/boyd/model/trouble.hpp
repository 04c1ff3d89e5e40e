#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/core/verdict.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boyd::model {

/// What went wrong with a call of a model. Values are stable: they appear in rows and turn records.
enum class trouble_kind : std::uint8_t {
  unavailable,  ///< connection, time-out, 5xx, 408, 409
  overloaded,   ///< 503, 529, or the like said inside a 200 stream
  rate_limited, ///< 429 that will pass
  quota,        ///< no money or credit left (429 or 402 with such a code): never tried again
  unauthorized, ///< 401, 403: the key is missing, wrong, or may not
  not_found,    ///< the model or the address does not exist
  bad_request,  ///< 400, 422: the request itself
  too_long,     ///< the context does not fit the model
  refused,      ///< content filter
  bad_answer,   ///< the answer does not follow the protocol (garbage, broken stream, too large)
  cancelled,    ///< we ended it
};

std::string_view name_of(trouble_kind k) noexcept;
std::optional<trouble_kind> trouble_kind_from(std::string_view name) noexcept;

/// A call that failed.
struct trouble {
  trouble_kind kind = trouble_kind::unavailable;
  std::string what; ///< one line, without the request's secrets, at most 500 characters
  int status = 0;   ///< of HTTP; 0: there was no answer
  std::string code; ///< the provider's own word, e.g. "insufficient_quota"; may be empty
  std::optional<milliseconds> retry_after; ///< asked for by the provider
  std::optional<bool> should_retry;        ///< x-should-retry: what the provider wants
};

/// From the transport's error: no answer came, or it broke off.
trouble trouble_of_transport(const error& e);

/// From an answer that is not 2xx. `body` may be anything.
trouble trouble_of_answer(const http_head& head, std::string_view body);

/// From an error object inside a stream or body that began with 200.
trouble trouble_of_object(std::string_view json);

/// Whether the same request may be sent again: unavailable, overloaded, rate_limited and
/// bad_answer, unless the provider says otherwise (should_retry). Never quota.
bool may_repeat(const trouble& t) noexcept;

/// How long to wait before repetition number `repeat` (from 0), as the official clients do: what
/// the provider asks for, when that is at most 120 s (more: nothing, the call has failed); else 0.5
/// s·2ⁿ up to 8 s, less up to a quarter of it by `unit` (uniform in [0, 1)).
std::optional<milliseconds> wait_before_repeat(const trouble& t, int repeat, double unit);

/// retry-after-ms, else Retry-After (seconds, or an HTTP date against `now`).
std::optional<milliseconds> retry_after_of(const http_headers& headers, utc_time now);

/// What the attempt's failure class becomes: transient, environment (unauthorized, not_found,
/// quota), deterministic (bad_request, refused), transient for too_long (a shorter context helps).
failure_class class_of(trouble_kind k) noexcept;

} // namespace boyd::model
