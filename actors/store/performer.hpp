#pragma once

#include "actors/keeper/core.hpp"
#include "boyd/core/long_work.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/spool.hpp"
#include "messages/health.hpp"
#include "messages/store.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace boyd {

class clock_port;

/// The store itself does not work, or not now: another request would fare no better.
bool is_outage(const error& e);
/// Something in the request is what the store does not take: another request may fare better.
bool is_refusal(const error& e);

/// The store worker's side without actors: opens the store, joins requests into one transaction,
/// spools results while the store is away and records them when it is back. Blocking; one thread.
class store_session {
 public:
  /// `store` is not opened yet. `clock` outlives the session.
  /// `work` hears of migrations; null: nobody does.
  store_session(std::unique_ptr<dispatch_store> store, queue::settlement_spool spool,
                const clock_port& clock, std::shared_ptr<long_work> work = {});

  /// Answers every job. While the store is away: settlements are spooled and count as accepted (a
  /// fact in the same request is answered with why), everything else is answered at once with why:
  /// `store_unavailable`, or `corrupt`. After a write for which the disk had no room, or which it
  /// failed, the same holds for requests that write until a write of some size has succeeded;
  /// questions are answered as long as they can be read.
  void perform(std::vector<job<store_request, store_reply>>& batch);

  /// What the store has to do when a batch is answered.
  void tidy();

  /// Tries to reconnect, and to write again, when it is time, and to record what was spooled.
  void probe();

  part_health health() const;

 private:
  using jobs = std::vector<job<store_request, store_reply>>;
  using some_jobs = std::vector<job<store_request, store_reply>*>;

  result<void> ensure_open();
  result<void> open_now();
  result<void> ensure_writable();
  result<void> prove_writes();
  result<void> record_spool();                                            // spooled.cpp
  result<void> record_some(std::span<const queue::node_settlement> some); // spooled.cpp
  void perform_some(const some_jobs& batch);
  void perform_together(const some_jobs& batch);
  void perform_apart(const some_jobs& batch);
  void answer(const some_jobs& questions, const error& why);
  result<store_reply> apply_joined(const some_jobs& batch);
  result<store_reply> apply(const std::vector<store::operation>& operations);
  void distribute(const some_jobs& batch, store_reply replies);
  void answer_during_outage(const some_jobs& batch, const error& why);
  result<store_reply> spooled(const store_request& request, const error& why);
  void look_for_concerns();
  void note_lock(const result<std::vector<store::any_reply>>& answered);
  void lost(const error& why);
  void restored();

  std::unique_ptr<dispatch_store> store_;
  queue::settlement_spool spool_;
  const clock_port& clock_;
  std::shared_ptr<long_work> work_;
  bool open_ = false;
  bool write_failed_ = false; ///< only a write of some size proves that the disk takes them again
  bool spool_loaded_ = false;
  std::size_t spooled_ = 0;
  bool spooling_told_ = false; ///< of this outage
  bool locked_out_ = false;    ///< another process holds the database, at the latest try
  milliseconds backoff_{0};
  steady_time next_try_{};
  part_health health_;
  error why_lost_; ///< what to tell whoever asks before the next try
};

} // namespace boyd
