#pragma once

#include "boyd/context/citation.hpp"
#include "boyd/context/item.hpp"
#include "boyd/context/snapshot.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What stays of an execution: executions/<dispatch_id>/record.json (docs/context.md,
/// docs/explain.md). Pure.
namespace boyd::record {

/// A content of an item that stands in a text.
struct text_place {
  std::size_t at = 0; ///< offset in the frame, bytes
  std::string hash;   ///< of the content, which stands in context/objects

  bool operator==(const text_place&) const = default;
};

/// A text that a model or program was told, so that it can be put together again: the frame, with
/// contents at its places.
struct kept_text {
  std::string hash; ///< SHA-256 of the whole text, hexadecimal; empty: it is not on record
  std::int64_t bytes = 0;
  std::string text;  ///< the frame, when it is short
  std::string frame; ///< else its hash: it stands in context/objects; empty: `text` is the frame
  std::vector<text_place> places; ///< in the order of their offsets

  bool operator==(const kept_text&) const = default;
};

/// A content, and the hash under which it is kept.
struct kept_content {
  std::string hash;
  std::string_view content;
};

/// Takes a text apart: each of the contents that stands in it, in their order, becomes a place. A
/// long frame is added to `to_keep`.
kept_text take_apart(std::string_view text, const std::vector<kept_content>& contents,
                     std::vector<std::string>& to_keep);

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

/// What the log of facts said of an item when the run began.
struct known_item {
  std::string id;
  context::item_statistics counts; ///< without `changed`
  bool frozen = false;

  bool operator==(const known_item&) const = default;
};

/// One attempt at the dispatch.
struct attempt {
  std::int64_t fence = 0; ///< of its claim: no two attempts of a dispatch share one
  int number = 1;         ///< attempts that are given back count again
  std::string level;      ///< full, focused or minimal
  std::string version;    ///< of the program that wrote it; empty: before prompts were on record
  std::string executor;   ///< JSON value: kind, provider, model, contract, what was required
  kept_text system;       ///< of a model; what it is told before the prompt
  kept_text tools;        ///< of a model; JSON of those that it was offered
  kept_text prompt;
  kept_text answer;              ///< of a model or an agent's own program; what it said last
  std::vector<known_item> known; ///< items that the log knew
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

/// A skill that a run was offered, or declared.
struct named_skill {
  std::string name;
  std::string state; ///< offered, declared or validated

  bool operator==(const named_skill&) const = default;
};

/// An item that moved from one stage to another with this execution.
struct stage_change {
  std::string id;
  std::string path;
  std::string from;
  std::string to;
  std::string reason;

  bool operator==(const stage_change&) const = default;
};

/// A fact, and its line in the log when that is known.
struct evidence_line {
  std::string from;
  std::string to;
  std::string type;
  std::string line; ///< "graph.jsonl:1042"

  bool operator==(const evidence_line&) const = default;
};

/// What the log of facts has of an execution, once its cycle is recorded.
struct execution_facts {
  std::string dispatch_id;
  std::vector<stage_change> stage_changes; ///< of items that it was given
  std::vector<evidence_line> evidence;     ///< in the order of the log
  std::vector<std::string> validated;      ///< names of skills that it followed with success

  bool operator==(const execution_facts&) const = default;
};

struct execution {
  std::string dispatch_id;
  std::string kernel_id;
  std::string cycle_id;
  std::string agent_id;
  std::vector<attempt> attempts;
  std::optional<citations> cited; ///< nothing: no attempt with items to cite has ended
  std::vector<named_skill> skills;
  std::vector<stage_change> stage_changes;
  std::vector<evidence_line> evidence;
  std::string explanation; ///< SHA-256 of its explanation; empty: an attempt is under way

  bool operator==(const execution&) const = default;
};

/// `boyd.execution/1`, readable, sealed; read_execution(to_json(e)) == e. `corrupt` for what is
/// none.
std::string to_json(const execution& e);
result<execution> read_execution(std::string_view json);

/// Whether a record's text is the one that was written, whichever version wrote it.
enum class seal_state : std::uint8_t {
  none, ///< it was written before records were sealed
  whole,
  broken,
};
seal_state seal_of(std::string_view json);

/// The latest snapshot of an execution; empty: there is none.
context::snapshot latest_snapshot(const execution& e);

/// Begins an attempt: the diff of its first turn is to the latest turn of the dispatch, else to
/// `last`, what the agent's last execution could read. An attempt of the same fence is begun anew.
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
  kept_text answer;
  std::vector<turn> turns;
  std::optional<citations> cited; ///< nothing: there was nothing to cite
  std::vector<named_skill> skills{};
};
bool end_attempt(execution& e, attempt_end end);

/// Adds what the log has of it; what is there already stays. Its explanation is another one
/// then.
void add_facts(execution& e, const execution_facts& told);

/// What a run said and did, to find out what it has used.
struct run_words {
  std::string answer;             ///< what the model, or the program, said
  std::string wrote;              ///< lines that it added to files; citations there are none
  std::string rest_of_prompt;     ///< without the contents of items
  std::vector<std::string> paths; ///< that actions read, wrote or named
};

/// The contract's outcome for an answer; `items` are what it could cite, `rest_of_prompt` the
/// prompt without them.
citations judge(const run_words& run, const std::vector<context::citable>& items, bool enforced);

/// What a turn's prompt shows, for the contract: what was left out cannot be cited.
std::vector<context::citable> citables_of(const std::vector<context::offered_item>& items,
                                          const context::context_block& block);

} // namespace boyd::record
