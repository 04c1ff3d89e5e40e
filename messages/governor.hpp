#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/model/governor.hpp"
#include "boyd/model/trouble.hpp"
#include "messages/message.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace boyd {

/// A call of a model wants a place at its provider. `call` is the holder's own number for it.
struct place_wish : message {
  std::string provider_id;
  std::string agent; ///< kernel/agent: agents take turns
  std::uint64_t call = 0;
  std::int64_t tokens = 0; ///< that it may use
  std::string model;
};

/// The place is yours, or (`why`) there will be none.
struct place_answer : message {
  std::uint64_t call = 0;
  std::optional<model::trouble> why;
  double input_ratio = 1; ///< see model::governor_core::input_ratio
};

/// How a call ended whose place is given back.
struct call_ended {
  std::int64_t tokens = 0; ///< that it used
  std::optional<model::trouble> trouble;
  std::optional<model::input_count> counted{};
};

struct governors_query : message {};

struct governor_status {
  std::string provider_id;
  int limit = 0;
  int in_use = 0;
  std::size_t waiting = 0;
  model::breaker_state breaker = model::breaker_state::closed;
  std::string last_trouble; ///< empty after a success
};

struct governors_reply : message {
  std::vector<governor_status> providers;
};

} // namespace boyd
