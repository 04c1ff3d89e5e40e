#pragma once

#include "boyd/core/cycle.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/state/reducer.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What follows a recorded cycle. It is written with the cycle's row, in one transaction, as facts
/// of the store, and removed when it is done: whatever crashes in between, it is found again.
namespace boyd::effects {

enum class effect_kind : std::uint8_t {
  edges,   ///< facts for the knowledge graph
  lessons, ///< what these facts mean for items and skills: more facts, the bank's files, and what
           ///< records of executions tell of all of it
  history, ///< the cycle's rendering in STATE.md, and its two commits (docs/adr/0012)
};

/// A skill that runs of a cycle declared, and how many of them spoke for and against it.
struct used_skill {
  std::string id;
  std::int64_t successes = 0;
  std::int64_t failures = 0;

  bool operator==(const used_skill&) const = default;
};

/// What there is to learn about.
struct lessons_about {
  std::vector<std::string> items{}; ///< ids of contexts
  std::vector<used_skill> skills{};
  std::vector<std::string> runs{}; ///< ids of the dispatches that used them

  bool empty() const { return items.empty() && skills.empty(); }
  bool operator==(const lessons_about&) const = default;
};

struct effect {
  std::uint64_t number = 0; ///< their order in one kernel of one node, from 1
  effect_kind kind = effect_kind::history;
  std::string cycle_id;
  std::string behind{}; ///< why the latest try failed; empty: none has failed

  // Of `history`:
  cycle_status status = cycle_status::running; ///< as the row has it
  utc_time ended{};                            ///< of the row; milliseconds; also of `lessons`
  std::vector<state::action_line> outcomes{};  ///< for `## recent_actions`

  // Of `edges`:
  std::vector<graph::edge> edges{};

  // Of `lessons`:
  lessons_about about{};

  bool operator==(const effect&) const = default;
};

/// The scope of the store's facts that hold them: each node has files and a graph of its own.
std::string scope_of(std::string_view kernel_id, std::string_view node_id);

/// The key of its fact: keys sort as the numbers do.
std::string key_of(std::uint64_t number);

/// The value of its fact. Texts need not be UTF-8: what is not is replaced.
std::string text_of(const effect& e);

/// The effects of a scope's facts, by number. A fact that is none is left out: nobody but Boyd
/// writes them.
std::vector<effect> read_effects(const std::map<std::string, std::string>& facts);

/// What people are told of those that were tried and failed, each text once; of one cycle, or of
/// all (empty id).
std::vector<std::string> behind_of(const std::vector<effect>& all, std::string_view cycle_id = {});

} // namespace boyd::effects
