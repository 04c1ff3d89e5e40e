#include "support/sim/store.hpp"

#include "support/sim/store_transaction.hpp"

#include <array>
#include <utility>

namespace boyd::sim {

using namespace store;

sim_database::sim_database(std::shared_ptr<clock_port> the_clock, std::shared_ptr<entropy> rand)
    : clock(std::move(the_clock)), random(std::move(rand)) {}

std::vector<any_reply> sim_database::run(const std::vector<operation>& batch) {
  const std::lock_guard lock(mutex_);
  ++batches;
  sim_transaction transaction(*this, clock->now());
  std::vector<any_reply> replies;
  replies.reserve(batch.size());
  for (const auto& op : batch) {
    if (auto problem = queue::check_operation(op))
      replies.emplace_back(std::move(*problem));
    else
      replies.push_back(std::visit([&](const auto& o) { return transaction.run(o); }, op));
  }
  return replies;
}

std::map<std::string, queue::queue_row> sim_database::rows() const {
  const std::lock_guard lock(mutex_);
  return data_.dispatches;
}

std::vector<occurrence> sim_database::occurrences() const {
  const std::lock_guard lock(mutex_);
  std::vector<occurrence> out;
  for (const auto& [key, slot] : data_.slots)
    out.push_back(slot);
  return out;
}

std::map<std::string, cycle_record> sim_database::cycles() const {
  const std::lock_guard lock(mutex_);
  return data_.cycles;
}

std::map<std::pair<std::string, std::int64_t>, int> sim_database::settled() const {
  const std::lock_guard lock(mutex_);
  return settled_;
}

namespace {

class sim_store final : public dispatch_store {
 public:
  sim_store(std::shared_ptr<sim_database> database, store_faults* own)
      : database_(std::move(database)), all_{&database_->faults, own} {}

  void tell_migrations(migration_step) override {} // it has none

  result<void> open() override {
    open_ = false;
    if (struck(&store_strikes::refused,
               [this](const store_faults& f) { return f.unavailable || drawn(f.refuse_open); }))
      return fail(errc::store_unavailable, "the simulated database refuses connections", "sim");
    open_ = true;
    return {};
  }

  result<std::vector<any_reply>> apply(const std::vector<operation>& batch) override {
    if (database_->faults.slow)
      database_->faults.slow(batch.size());
    const auto is_away = [](const store_faults& f) { return f.unavailable; };
    const auto breaks = [this](const store_faults& f) { return drawn(f.disconnect_before); };
    if (!open_ || struck(&store_strikes::refused, is_away) ||
        struck(&store_strikes::disconnected, breaks)) {
      open_ = false;
      return fail(errc::store_unavailable, "the simulated connection is gone", "sim");
    }
    for (auto* faults : all_)
      if (faults != nullptr && faults->refuse_writes && !std::ranges::all_of(batch, is_question)) {
        ++faults->struck.unwritten;
        return fail(*faults->refuse_writes, "the simulated database takes no writes", "sim");
      }
    if (struck(&store_strikes::in_doubt,
               [this](const store_faults& f) { return drawn(f.disconnect_in_commit); })) {
      open_ = false;
      if (database_->random->unit() < 0.5)
        database_->run(batch);
      return fail(errc::commit_in_doubt, "the simulated connection broke in COMMIT", "sim");
    }
    return database_->run(batch);
  }

  void tidy() override {
    // nop
  }
  result<std::vector<std::string>> concerns() override { return std::vector<std::string>{}; }

  std::string describe() const override { return "simulated"; }

 private:
  /// Draws only for faults that are on, so that turning one on leaves the others' runs alone.
  bool drawn(double probability) const {
    return probability > 0 && database_->random->unit() < probability;
  }

  /// Counts those that strike in `count`.
  template <class Strikes>
  bool struck(std::uint64_t store_strikes::*count, Strikes strikes) {
    for (auto* faults : all_)
      if (faults != nullptr && strikes(*faults)) {
        ++(faults->struck.*count);
        return true;
      }
    return false;
  }

  std::shared_ptr<sim_database> database_;
  std::array<store_faults*, 2> all_; ///< of all connections, of this one
  bool open_ = false;
};

} // namespace

std::unique_ptr<dispatch_store> make_sim_store(std::shared_ptr<sim_database> database,
                                               store_faults* own) {
  return std::make_unique<sim_store>(std::move(database), own);
}

} // namespace boyd::sim
