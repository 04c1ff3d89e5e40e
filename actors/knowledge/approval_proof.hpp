#pragma once

#include "actors/knowledge/fact_reader.hpp"
#include "actors/support/node_context.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/graph/learned_skills.hpp"
#include "boyd/graph/segments.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

/// What the log of facts itself says of skills: the index is a file beside it that anybody with the
/// same account can change, and so is a line in the middle of the log. An approval counts when its
/// line stands in the log, and every line behind it names the hash of the one before, to the last
/// line that the index has read. So the log is read once, from its beginning; then only what has
/// come since, and what was found stays known in memory. Blocking; one thread.
class approval_proof {
 public:
  explicit approval_proof(node_context_ptr context) : context_(std::move(context)) {}

  /// Why this version of a skill is not the one that the log approves; empty: it is. `until`: how
  /// far the index has read the log.
  std::string doubt_of(const std::string& skill, const graph::skill_version& version,
                       const log_position& until);
  /// Whether a person has disabled the version that the log approves. After doubt_of.
  bool is_disabled(const std::string& skill) const;
  /// Nobody has approved what is there: nothing stands against it.
  void forget_doubt(const std::string& skill) { doubts_.erase(skill); }
  /// What stands against skills that somebody may think approved; empty: nothing.
  std::string doubts() const;

 private:
  /// The approval of a skill that is in force.
  struct approval {
    std::int64_t number = 0;
    std::string hash;
    std::string place; ///< "graph.jsonl:17"
    bool disabled = false;
  };
  /// How far the log was followed, and what it says up to there.
  struct followed {
    std::uint32_t segment = 0;
    std::uint64_t bytes = 0;                  ///< of that segment
    std::uint64_t lines = 0;                  ///< of that segment
    std::string last;                         ///< the last line, with its line break
    std::string head;                         ///< the hash that the next line has to name
    bool chained = false;                     ///< a line had a place in the chain
    std::map<std::string, approval> approved; ///< by skill
    /// Those that a line behind them no longer vouches for.
    std::map<std::string, approval> lost;
  };

  std::string find_doubt(const std::string& skill, const graph::skill_version& version,
                         const log_position& until);
  /// False: it is a long way, and goes on with a later question, so that nobody takes the worker
  /// for stuck.
  result<bool> follow(const log_position& until);
  result<bool> follow_segment(graph::segment_files& files, const graph::segment& which,
                              std::uint64_t end, steady_time begun);
  result<bool> is_still_there(graph::segment_files& files,
                              const std::vector<graph::segment>& segments) const;
  bool is_at(const log_position& until) const;
  void begin();
  void take(std::string_view raw);
  void take_fact(std::string_view line);
  /// What stands before here is not what was there when the log went on.
  void lose_all();

  node_context_ptr context_;
  followed at_{};
  std::optional<steady_time> paused_;         ///< when the end was not reached
  std::map<std::string, std::string> doubts_; ///< by skill
};

} // namespace boyd
