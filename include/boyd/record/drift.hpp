#pragma once

#include "boyd/record/execution.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

/// How far two runs on the same context are apart (docs/explain.md). Pure.
namespace boyd::record {

/// What a run came to.
struct came_to {
  std::vector<std::string> citations; ///< keys of items, and what was invented as it stands there
  std::vector<std::string> actions;   ///< calls of tools: "name arguments"
  std::string conclusion;             ///< the final answer

  bool operator==(const came_to&) const = default;
};

/// Each part from 0, the same, to 1, nothing in common.
struct drift {
  double citations = 0;
  double actions = 0;
  double conclusion = 0;

  /// Their mean.
  double whole() const { return (citations + actions + conclusion) / parts; }
  bool is_none() const { return citations <= 0 && actions <= 0 && conclusion <= 0; }

  static constexpr double parts = 3;
  bool operator==(const drift&) const = default;
};

/// Citations and actions: the share of them that only one of the runs has (actions as often as they
/// are made, their arguments as JSON values). Conclusions: the share of their pairs of neighbouring
/// words that only one has; letter case and punctuation do not count.
drift drift_of(const came_to& recorded, const came_to& now);

/// An answer's citations, by the items that the attempt's prompt showed.
std::vector<std::string> citations_in(const attempt& a, const std::string& answer);

/// What an attempt wanted of its tools, in order.
std::vector<std::string> actions_of(const attempt& a);

/// Tools as an attempt has met them: each answer once, in order; when all answers to a call are
/// used up, the last one again. A call that the record does not have is told so, as an error.
class recorded_tools {
 public:
  /// `results`: replay_report::results.
  recorded_tools(const attempt& a, const std::map<std::string, std::string>& results);

  /// What the tool said, and whether it was an error.
  std::pair<std::string, bool> answer(const std::string& name, const std::string& arguments);

 private:
  struct said {
    std::string text;
    bool is_error = false;
  };
  std::map<std::string, std::vector<said>> known_; ///< by the call
  std::map<std::string, std::size_t> next_;
};

} // namespace boyd::record
