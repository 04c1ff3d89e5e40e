#pragma once

#include "boyd/context/citation.hpp"
#include "boyd/context/snapshot.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What stays of an execution: executions/<dispatch_id>/record.json (SPEC §10.8, §11). Pure.
namespace boyd::record {

/// One model call, or one program.
struct turn {
  int number = 1;
  context::snapshot snapshot;
  context::snapshot_diff diff; ///< to the turn before
  // JSON values, members in the order of their names; empty: null.
  std::string action;     ///< what was asked of whom
  std::string governance; ///< decisions about what the model wanted to do
  std::string result;

  bool operator==(const turn&) const = default;
};

/// One attempt at the dispatch.
struct attempt {
  std::int64_t fence = 0; ///< of its claim: no two attempts of a dispatch share one
  int number = 1;         ///< attempts that are given back count again
  std::string level;      ///< full, focused or minimal
  utc_time started_at{};
  std::optional<utc_time> ended_at; ///< nothing: it runs, or nobody saw its end
  std::string outcome;              ///< JSON value; empty: null
  std::vector<turn> turns;

  bool operator==(const attempt&) const = default;
};

/// An item that an answer cited or used.
struct named_item {
  std::string key; ///< may be empty
  std::string id;
  std::string path;

  bool operator==(const named_item&) const = default;
};

/// What became of the citation contract in the latest attempt.
struct citations {
  std::string contract; ///< observe or enforce
  std::vector<named_item> valid;
  std::vector<std::string> invented; ///< as they stand in the answer
  std::vector<named_item> uncited;   ///< used, not cited
  std::vector<named_item> used;      ///< verifiably, whatever was cited
  std::optional<double> accuracy;
  bool weak = false; ///< under `enforce`: the run earns nothing

  bool operator==(const citations&) const = default;
};

struct execution {
  std::string dispatch_id;
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  std::vector<attempt> attempts;
  std::optional<citations> cited; ///< nothing: no attempt has ended yet

  bool operator==(const execution&) const = default;
};

/// `boyd.execution/1`, readable; read_execution(to_json(e)) == e. `corrupt` for what is none.
std::string to_json(const execution& e);
result<execution> read_execution(std::string_view json);

/// The latest snapshot of an execution; empty: there is none.
context::snapshot latest_snapshot(const execution& e);

/// Begins an attempt: its first turn's diff is to the latest turn of the dispatch, else to `last`,
/// what the agent's last execution could read. An attempt of the same fence is begun anew.
void begin_attempt(execution& e, attempt begun, const context::snapshot& last);

/// Its turns so far stand for its first one (whose snapshot and diff stay), and those after it.
/// False: no attempt has this fence.
bool go_on(execution& e, std::int64_t fence, std::vector<turn> turns);

/// Ends it: `turns` stand for its first one (whose snapshot and diff stay), and those after it.
/// False: no attempt has this fence.
struct attempt_end {
  std::int64_t fence = 0;
  utc_time at{};
  std::string outcome;
  std::vector<turn> turns;
  citations cited;
};
bool end_attempt(execution& e, attempt_end end);

/// The contract's outcome for an answer; `items` are what it could cite, `rest_of_prompt` the
/// prompt without them.
citations judge(std::string_view answer, std::string_view rest_of_prompt,
                const std::vector<context::citable>& items,
                const std::vector<std::string>& paths_of_actions, bool enforced);

/// What a turn's prompt shows, for the contract: what was left out cannot be cited.
std::vector<context::citable> citables_of(const std::vector<context::offered_item>& items,
                                          const context::context_block& block);

} // namespace boyd::record
