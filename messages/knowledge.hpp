#pragma once

#include "boyd/context/confidence.hpp"
#include "boyd/context/item.hpp"
#include "boyd/core/time.hpp"
#include "boyd/effects/effect.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/graph/evidence.hpp"
#include "boyd/graph/learned.hpp"
#include "boyd/ports/knowledge_index.hpp"
#include "boyd/skills/memory_policy.hpp"
#include "boyd/skills/policy_replay.hpp"
#include "messages/message.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace boyd {

struct memory_question {
  std::string text;
  std::optional<utc_time> at; ///< only entries up to then exist; nothing: now
};

/// The best entries of a kernel's memory for each question (docs/context.md, docs/memory.md).
struct recall_memory {
  std::string kernel_id;
  std::vector<memory_question> questions;
  std::int64_t budget_tokens = 0;     ///< of the entries of one answer, together
  std::size_t limit = 0;              ///< most entries of one answer; 0: what the budget allows
  context::confidence_rule ranking{}; ///< how much is thought of entries that runs have tried
};

/// What the kernel's memory holds.
struct describe_memory {
  std::string kernel_id;
};

/// What the log of facts says of items, by their ids; nothing of those that it does not name.
struct know_items {
  std::vector<std::string> ids;
};

/// A question about the log of facts (docs/knowledge.md).
struct inspect_graph {
  enum class kind : std::uint8_t { trace, stats, lineage, why, findings, learned, query, picture };
  kind what = kind::stats;
  std::string subject;           ///< an execution, a skill or a node
  std::string from, to, type;    ///< of query
  std::optional<utc_time> since; ///< of query and learned
  std::size_t most = 100;        ///< rows, or nodes of a picture
  int depth = 1;                 ///< of a picture
};

/// What the memory policy says of a kernel's items (docs/memory.md).
struct judge_memory {
  std::string kernel_id;
};

/// What the items would be under other numbers (docs/memory.md). A long history takes several
/// requests: each goes on where the one before it, of the same id, has stopped.
struct replay_policy {
  skills::policy_numbers numbers;
  std::optional<utc_time> since; ///< nothing: from the beginning
  std::string id{};              ///< the asker's own
};

/// What a run is given of what its kernel has learned: the items of the bank that fit a question
/// best, and the approved skills.
struct offer_learned {
  std::string kernel_id;
  std::string question;
  context::confidence_rule ranking{}; ///< how much is thought of items
};

/// A kernel's skills and candidates as they are, for people; `name`: this skill alone.
struct look_at_skills {
  std::string kernel_id;
  std::string name{};
  bool candidates = false; ///< those, too, with the texts that they would become
  bool bank = false;       ///< what the bank holds, and nothing else
};

/// What follows from a recorded cycle whose facts are in the log (skills::lessons_of).
struct draw_lessons {
  std::string kernel_id;
  std::string cycle_id;
  utc_time at{};
  effects::lessons_about about;
};

/// What the log has of executions of a recorded cycle whose lessons are drawn, for their records.
struct find_evidence {
  graph::evidence_question about;
};

/// The index is to have what the log says up to now.
struct catch_up {};

/// All of them look first whether the files, or the log, have changed.
struct knowledge_request : message {
  std::variant<catch_up, recall_memory, describe_memory, know_items, inspect_graph, judge_memory,
               replay_policy, offer_learned, look_at_skills, draw_lessons, find_evidence>
      what;
  request_end until = request_end::max();
};

struct recalled_row {
  memory_row row;
  double score = 0;
};

struct memory_file_description {
  std::string path;
  std::uint64_t bytes = 0;
  std::size_t entries = 0;
};

/// A section of a memory file that has entries.
struct memory_section_description {
  std::string file;
  std::string section;
  std::size_t entries = 0;
  std::size_t longest = 0; ///< characters of its longest entry
};

struct memory_description {
  std::size_t entries = 0; ///< different ones, of all files
  std::vector<memory_file_description> files;
  std::vector<memory_section_description> sections;
  std::vector<std::string> problems; ///< files and lines that could not be read
};

/// An item of the bank.
struct banked_item {
  std::string id;
  graph::learned_item item;
  double score = 0; ///< of the question
};

/// A skill of a kernel's home.
struct skill_view {
  std::string name;
  std::string id;
  std::string description;
  /// skills::skill_state, or: not approved, missing, unreadable.
  std::string state;
  std::string hash;                    ///< of the bytes that are there; empty: there are none
  std::string text;                    ///< these bytes
  std::int64_t version = 0;            ///< of them; 0: nobody has approved them
  std::vector<std::string> problems{}; ///< of them
  bool is_sound = false;               ///< they are a SKILL.md
  graph::learned_skill known{};
  double score = 0;
};

/// A candidate, and the SKILL.md that an approval would make.
struct candidate_view {
  std::string id;
  graph::learned_candidate known;
  graph::candidate_status status = graph::candidate_status::pending; ///< now
  graph::learned_item item;
  std::string name; ///< of the skill
  std::string description;
  std::string text;
  std::string hash;                    ///< of `text`
  bool drafted = false;                ///< somebody has written it
  std::string own_text{};              ///< of the item; empty: its content is not recorded any more
  std::vector<std::string> problems{}; ///< why it cannot be approved; what a person should see
  bool is_sound = false;               ///< it can be
};

struct knowledge_reply {
  std::vector<std::vector<recalled_row>> answers; ///< of recall_memory, in the questions' order
  memory_description description;                 ///< of describe_memory
  std::map<std::string, context::item_statistics> items; ///< of know_items
  std::string inspected;                                 ///< of inspect_graph: a JSON object
  std::vector<skills::policy_decision> decisions;        ///< of judge_memory, by path
  std::vector<skills::policy_item> judged;               ///< of judge_memory
  std::vector<skills::policy_difference> differences;    ///< of replay_policy
  std::size_t looked_at = 0;                             ///< of replay_policy: facts
  bool goes_on = false;           ///< of replay_policy: it is not through, ask again:
  std::uint64_t lines = 0;        ///< of the log: replayed, else of judge_memory, look_at_skills
  std::uint64_t lines_of = 0;     ///< of replay_policy: of so many
  std::uint64_t left_out = 0;     ///< of these three: lines that cannot be read or believed
  std::vector<banked_item> bank;  ///< of offer_learned, the best first; of look_at_skills, by id
  std::vector<skill_view> skills; ///< of look_at_skills
  std::vector<candidate_view> candidates;   ///< of look_at_skills
  std::string section;                      ///< of offer_learned: `# Skills`; empty: there are none
  std::vector<std::string> names;           ///< of offer_learned: skills that a run may declare
  std::vector<graph::edge> facts;           ///< of draw_lessons
  std::map<std::string, std::string> files; ///< of draw_lessons: of the kernel's home, by name
  std::vector<record::execution_facts> evidence; ///< of find_evidence, in the executions' order
  std::vector<std::string> invented; ///< of inspect_graph: what a run cited that it was never given
  std::string damage; ///< what the log lacks, told where people ask; empty: nothing that is known
};

} // namespace boyd
