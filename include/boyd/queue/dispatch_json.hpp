#pragma once

#include "boyd/core/dispatch.hpp"
#include "boyd/core/result.hpp"

#include <string>
#include <string_view>

namespace boyd::queue {

/// One dispatch as a JSON object for the API and `boyd dispatches`: docs/queue.md's column names,
/// times as RFC 3339 with milliseconds (null when unset), `metadata`, `usage` and `attempts` as
/// JSON values, the verdicts as `execution`, `claim`, `verification`, `failure_class`. `prompt` and
/// `output` only `with_bodies`. Bytes that are not UTF-8 come out as U+FFFD.
std::string dispatch_to_json(const dispatch& row, bool with_bodies);

/// A settlement as one line of JSON (no line break), complete: `settlement_from_json` gives it
/// back. Texts are made valid UTF-8 first.
std::string settlement_to_json(const std::string& node_id, const settlement& item);

struct node_settlement {
  std::string node_id;
  settlement item;
};

/// The inverse; `parse_error` for anything else.
result<node_settlement> settlement_from_json(std::string_view line);

} // namespace boyd::queue
