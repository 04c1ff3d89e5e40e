#pragma once

#include "tests/sim/lab/machine.hpp"
#include "tests/sim/lab/models.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::sim {

/// The invariants of chats:
///  - no call without a reservation of its own in the database, within the limits of the day; never
///    more of them at one provider than it takes at once;
///  - what was said to have been used is in the database at the end, as are the sums of each scope,
///    and no run has used up more than its budget;
///  - a reservation is left over only where something has gone wrong;
///  - a file that a model had written is whole at any time, and one that was acknowledged is not
///    gone after a crash;
///  - a run that failed says why, one that succeeded has an answer.
/// Single-threaded.
class chat_watch {
 public:
  /// `violated` hears of each broken rule.
  chat_watch(const sim_database& database, const config::configuration& configuration,
             std::function<void(const std::string&)> violated);

  /// Makes the workspaces.
  void furnish(machine& m);
  /// Whether it goes to a provider of chats.
  bool is_chat(const http_request& request) const;
  /// The machine's node makes a call; `reply` is changed so that its end is heard of.
  void calling(machine& m, const http_request& request, model_reply& reply);
  /// A file has changed.
  void stepped(machine& m) { check_files(m, false); }
  /// The node is gone.
  void crashed(machine& m);
  /// Something has gone wrong of late. `loses`: what parts say to each other may have been lost.
  void disturbed(bool loses);
  /// Nothing has.
  void quiet(machine& m, milliseconds now);
  /// Nothing is under way any more.
  void settled();

  std::uint64_t calls() const { return calls_; }

 private:
  struct chat {
    std::string kernel_id;
    std::string agent_id;
    std::string workspace; ///< empty: it writes nothing
    std::int64_t run_tokens = 0;
  };
  using place = std::pair<const machine*, std::string>; ///< and the provider, or the path

  /// One of the files that models write.
  struct file {
    std::uint64_t seen = 0;         ///< inode that was looked at
    std::uint64_t acknowledged = 0; ///< inode that must not be gone
  };

  const config::provider* provider_of(const http_request& request) const;
  const chat* chat_of(const http_request& request) const;
  bool is_chat_agent(const std::string& agent_id) const;
  void count(const place& at, int limit, model_reply& reply, std::string call_id);
  std::string take_reservation(const machine& m, const chat& c, const std::string& provider_id);
  void check_limits(const store::reserve_spend& asked);
  void hear_of_writes(machine& m, const chat& c, const std::string& body);
  void check_files(machine& m, bool all);
  void check_sums();
  void check_runs();
  void check_outcomes();

  const sim_database& database_;
  std::function<void(const std::string&)> violated_;
  std::vector<config::provider> providers_;
  std::vector<chat> chats_;
  std::map<place, int> under_way_;
  std::map<place, file> files_;
  std::map<std::uint64_t, std::string> path_of_write_; ///< by serial number
  std::set<std::string> called_;                       ///< reservations that had their call
  std::map<std::string, std::int64_t> told_tokens_;    ///< by call_id
  std::set<std::string> open_;                         ///< reservations, at the last look
  std::set<std::string> excused_;                      ///< those that may stay open
  std::map<const machine*, int> kills_;
  milliseconds looked_at_{0};
  bool excuses_ = false; ///< what is open at the next look
  std::uint64_t calls_ = 0;
};

/// How a chat is told who it is; its requests are known by that.
std::string chat_identity(const std::string& agent_id);

} // namespace boyd::sim
