#pragma once

#include "actors/keeper/core.hpp"
#include "boyd/core/long_work.hpp"
#include "boyd/core/worker_roll.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/spool.hpp"
#include "messages/health.hpp"
#include "messages/store.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd {

class clock_port;

/// The store itself does not work, or not now: another request would fare no better.
bool is_outage(const error& e);
/// Lock or serialization conflict: retry; another request may succeed at once.
bool is_hindrance(const error& e);
/// Another process holds the whole database, whose results wait in the spool as well.
bool is_lock(const error& e);
/// The request was rejected: another request may succeed.
bool is_refusal(const error& e);
/// Results of finished work, alone or with a fact that counts them and questions behind them.
bool brings_results(const store_request& request);
/// What a job is answered that was not done now. An earlier worker that ended with it may have done
/// it: that it was not done is then not known, and is said as `commit_in_doubt`.
error answer_to(const job<store_request, store_reply>& j, error why);

/// The store worker's side without actors: opens the store, joins requests into one transaction,
/// spools results while the store is away and records them when it is back. Blocking; one thread.
class store_session {
 public:
  /// `store` is not opened yet. `clock` outlives the session.
  /// `work` hears of migrations, `roll` of an opening that is under way; null: nobody does.
  store_session(std::unique_ptr<dispatch_store> store, queue::settlement_spool spool,
                const clock_port& clock, std::shared_ptr<long_work> work = {},
                std::shared_ptr<worker_roll> roll = {});

  /// Answers every job. While the store is away: settlements are spooled and count as accepted (a
  /// fact in the same request is answered with why), everything else is answered at once with why:
  /// `store_unavailable`, or `corrupt`. The same, with `timed_out` or `conflict`, for those
  /// requests that somebody is in the way of; the others are carried out. After a write for which
  /// the disk had no room, or which it failed, the same holds for requests that write until a write
  /// of some size has succeeded; questions are answered as long as they can be read.
  void perform(std::vector<job<store_request, store_reply>>& batch);

  /// What the store has to do when a batch is answered.
  void tidy();

  /// Tries to reconnect, and to write again, when it is time, and to record what was spooled.
  void probe();

  part_health health() const;

 private:
  using jobs = std::vector<job<store_request, store_reply>>;
  using some_jobs = std::vector<job<store_request, store_reply>*>;
  using all_replies = std::vector<store::any_reply>;    ///< in the order of the operations
  using attempt = std::pair<std::string, std::int64_t>; ///< a dispatch and its fence

  result<void> ensure_open();
  result<void> open_now();
  result<void> ensure_writable();
  result<void> prove_writes();
  result<void> record_spool();                                                       // spooled.cpp
  result<void> record_turn(std::span<const queue::node_settlement>& left);           // spooled.cpp
  result<void> record_some(std::span<const queue::node_settlement> some);            // spooled.cpp
  result<void> set_aside(const queue::node_settlement& refused, const error& why);   // spooled.cpp
  result<store_reply> end_refused(const store_request& request);                     // refused.cpp
  result<settle_result> settle_alone(const queue::node_settlement& one);             // refused.cpp
  result<settle_result> refuse(const queue::node_settlement& one, const error& why); // refused.cpp
  result<settle_result> end_in_place(const queue::node_settlement& one,
                                     std::string_view reason);                      // refused.cpp
  bool takes_results(const std::string& node_id, const error& why, error& instead); // refused.cpp
  void end_unended();                                                               // refused.cpp
  void find_refused();                                                              // refused.cpp
  void note_refusal(const store_request& request, const error& why);                // refused.cpp
  void note_taken(const std::vector<store::operation>& operations);                 // refused.cpp
  void show_refusals();                                                             // refused.cpp
  void show_ended(all_replies& replies) const;                                      // refused.cpp
  std::vector<std::string> refusals() const;                                        // refused.cpp
  void put_off(const queue::node_settlement& hindered, const error& why);           // spooled.cpp
  void record_late();                                                               // spooled.cpp
  void keep_spooled(std::vector<queue::node_settlement> left,                       // spooled.cpp
                    std::size_t recorded, bool turned);
  void perform_some(const some_jobs& batch);
  void perform_behind_spool(const some_jobs& batch);
  void perform_together(const some_jobs& batch);
  void perform_apart(const some_jobs& batch);
  void take_refusal(const some_jobs& batch, const error& why);
  void answer(const some_jobs& questions, const error& why);
  result<all_replies> apply_joined(const some_jobs& batch);
  result<all_replies> apply(const std::vector<store::operation>& operations);
  void distribute(const some_jobs& batch, all_replies replies);
  bool works() const { return open_ && !write_failed_; }
  bool has_time() const;
  bool is_in_spool(const store_request& request) const;                        // spooled.cpp
  void answer_without(const some_jobs& batch, const error& why);               // spooled.cpp
  result<store_reply> spooled(const store_request& request, const error& why); // spooled.cpp
  void look_for_concerns();
  void show();
  void note_lock(const result<std::vector<store::any_reply>>& answered);
  void lost(const error& why);
  void restored();

  std::unique_ptr<dispatch_store> store_;
  queue::settlement_spool spool_;
  const clock_port& clock_;
  std::shared_ptr<long_work> work_;
  std::shared_ptr<worker_roll> roll_;
  bool open_ = false;
  bool write_failed_ = false; ///< only a write of some size proves that the disk takes them again
  bool spool_loaded_ = false;
  std::set<attempt> kept_;     ///< whose results are in the spool
  bool spooling_told_ = false; ///< of this outage
  bool works_off_ = false;     ///< the store is open, and results are left in the spool
  /// While the spool is being recorded: what somebody is in the way of, and what there was no time
  /// to try by itself.
  std::vector<queue::node_settlement> put_off_;
  std::vector<queue::node_settlement> untried_;
  std::size_t group_ = 1; ///< so many go into the next transaction
  error why_late_;        ///< why the latest of them were
  milliseconds late_backoff_{0};
  steady_time late_try_{};
  /// Attempts whose end the store takes in no form: they are over for everybody who asks here.
  std::map<attempt, queue::node_settlement> unended_;
  std::size_t refused_ = 0; ///< results in the spool's refused file
  std::string why_refused_; ///< the newest of them, where it was refused in this life
  /// By kind of operation: why the latest was refused, until one is taken.
  std::map<std::size_t, std::string> refusals_;
  bool refusals_changed_ = false;     ///< since they were last shown
  steady_time turn_ends_{};           ///< of what is being recorded from the spool
  steady_time begun_{};               ///< the batch that is under way
  bool doubted_ = false;              ///< some of it was tried before, perhaps to its end
  std::vector<std::string> concerns_; ///< of a store that works, as it said last
  bool locked_out_ = false;           ///< another process holds the database, at the latest try
  std::optional<steady_time> hindered_since_; ///< nothing was answered since then
  milliseconds backoff_{0};
  steady_time next_try_{};
  part_health health_;
  error why_lost_; ///< what to tell whoever asks before the next try
};

} // namespace boyd
