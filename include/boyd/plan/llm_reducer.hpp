#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"
#include "boyd/plan/advice.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The LLM reducer (docs/state-and-history.md) as values. A model may word the text of an outcome's
/// line; which lines there are, their time, agent and status come from the rows, and the rules of
/// state/reducer.hpp render and bound them.
namespace boyd::plan {

/// What a line is to be made of.
struct told_outcome {
  std::string dispatch_id;
  std::string agent_id;
  std::string status;
  std::string text; ///< what the rules would say
};

/// What stands in the decisions of a cycle under reducer_voice.
struct reduce_record {
  advice asked;
  std::map<std::string, std::string> lines; ///< texts by dispatch_id, as they were taken
  std::vector<std::string> dropped;         ///< what was not taken, and why

  bool operator==(const reduce_record&) const = default;
};

std::string to_json(const reduce_record& r);
std::optional<reduce_record> read_reduce_record(std::string_view json);
std::string say(const reduce_record& r);

std::string reducer_instructions(const config::reducer& settings);

/// The outcomes as one JSON object; bounded, without secrets.
std::string reducer_question(const std::vector<told_outcome>& outcomes,
                             const std::vector<std::string>& secrets);

std::string reducer_schema();

/// Takes an answer's lines into `r`. `parse_error` for an answer against the schema or without a
/// line for any of the outcomes. A line of an unknown dispatch, a second one or an empty one is
/// dropped; the others become one line of at most limits::summary_characters, without secrets, and
/// without the beginning of an HTML comment, which the markers of the runtime block are.
result<void> take_lines(std::string_view answer, const std::vector<told_outcome>& outcomes,
                        const std::vector<std::string>& secrets, reduce_record& r);

} // namespace boyd::plan
