#pragma once

#include "actors/program/program.hpp"
#include "boyd/config/configuration.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {

/// Helper programs (senses, wake checks) that run at one moment, in the whole node. They run beside
/// max_concurrent, not under it: a cycle needs them before it can say what it wants to run, and
/// with permits it would wait for the very attempts (of an hour, perhaps) that it is to look after.
inline constexpr std::size_t helpers_at_once = 4;

/// A helper that had no place for so long is not run; its sense or check counts as failed.
inline constexpr milliseconds helper_patience = 2min;

/// What is remembered of a sense between cycles and restarts, as a fact in the store.
struct sense_memory {
  utc_time at{};         ///< last run
  utc_time changed_at{}; ///< last run whose output differed from the one before
  std::string hash;      ///< of the last good output; empty: there was none yet
  std::string output;    ///< the last good output, capped
  std::string problem;   ///< why the last run failed; empty: it did not

  bool operator==(const sense_memory&) const = default;
};

/// Text that read_sense_memory reads back.
std::string write_sense_memory(const sense_memory& memory);

/// Nothing for text that write_sense_memory did not make: then the sense counts as never run.
std::optional<sense_memory> read_sense_memory(std::string_view text);

/// What the facts of scope "sense:<kernel_id>" hold, by name of sense; what is malformed is left
/// out.
std::map<std::string, sense_memory>
read_sense_memories(const std::map<std::string, std::string>& facts);

/// True when `sense` must run now: its interval has passed, or the clock went back behind its last
/// run. A failed run counts as a run, so that a broken sense does not cost more than a good one.
bool is_due(const config::sense& sense, const std::optional<sense_memory>& memory, utc_time now);

/// What to remember after a run at `now`.
sense_memory after_run(const std::optional<sense_memory>& before,
                       const result<program_outcome>& outcome, utc_time now);

/// The text of {SENSES}: one section for each sense that ever ran, in the order of configuration,
/// saying since when it is unchanged, or why it failed.
std::string render_senses(const std::vector<config::sense>& senses,
                          const std::map<std::string, sense_memory>& memory);

/// One line for each sense whose last run failed.
std::vector<std::string> sense_problems(const std::vector<config::sense>& senses,
                                        const std::map<std::string, sense_memory>& memory);

/// What stands in a prompt in the place of a file that cannot be read: an agent must not take it
/// for an empty one.
std::string unreadable_text(const std::string& name, const error& why);

/// Puts that into `files` for each file that cannot be read; a sentence for each.
std::vector<std::string> note_unreadable(const std::map<std::string, error>& unreadable,
                                         std::map<std::string, std::string>& files);

/// The text of {MEMORY}: SOUL.md (who the kernel is) before MEMORY.md, as far as they exist and the
/// budget goes.
std::string memory_text(const std::map<std::string, std::string>& kernel_files,
                        std::int64_t budget_tokens);

/// The identity of a wake check's output.
std::string hash_of(const program_outcome& outcome);

/// The longest time gather_context takes for `kernel`, waiting for places included; for the asker's
/// own time-out.
milliseconds gather_limit(const config::kernel& kernel);

/// The longest time check_wake takes for `kernel`.
milliseconds wake_limit(const config::kernel& kernel);

} // namespace boyd
