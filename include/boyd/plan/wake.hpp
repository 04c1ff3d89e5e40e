#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/time.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace boyd::plan {

/// What an agent's wake check said (docs/planning.md, `wake`).
enum class wake_kind : unsigned char {
  changed,   ///< run
  unchanged, ///< skipped(no_change)
  waiting,   ///< skipped(no_change): the check itself is backed off
  error,     ///< the check failed: run, for a broken check must not silence an agent
};

struct wake_answer {
  wake_kind kind = wake_kind::changed;
  std::string detail; ///< e.g. why the check failed, or until when it waits

  bool operator==(const wake_answer&) const = default;
};

/// What is remembered of an agent's checks between cycles and restarts.
struct wake_memory {
  int noops = 0; ///< unchanged answers in a row
  utc_time checked_at{};
  std::string hash; ///< of the inputs or the output at the last check that said "changed"

  bool operator==(const wake_memory&) const = default;
};

/// One line that read_wake_memory reads back; for store::put_fact.
std::string write_wake_memory(const wake_memory& memory);

/// Nothing for text that write_wake_memory did not make: then the agent counts as never checked.
std::optional<wake_memory> read_wake_memory(std::string_view text);

/// The wait after `noops` unchanged answers in a row: min(max, 2^(noops-1) × base); 0 without one.
milliseconds wake_delay(int noops, milliseconds base, milliseconds max);

/// When the next check is due; at once when the clock went back behind the last one.
utc_time wake_due_at(const wake_memory& memory, const config::wake_policy& policy, utc_time now);

/// The answer of a check that found `hash`, and the memory to keep. A first check is `changed`.
struct wake_step {
  wake_answer answer;
  wake_memory memory;
};
wake_step advance_wake(const std::optional<wake_memory>& memory, const std::string& hash,
                       utc_time now);

} // namespace boyd::plan
