#include "actors/support/frugal_clock.hpp"

#include <caf/abstract_actor.hpp>

#include <utility>

namespace boyd {

using lists = caf::detail::simple_actor_clock;

template <class Change>
void frugal_clock::change(Change apply) {
  {
    const std::lock_guard guard(lock_);
    apply();
    if (schedule_.empty() || schedule_.begin()->first >= looks_at_)
      return;
    looks_at_ = time_point::min();
  }
  // Without the lock: who wakes would have to wait for it.
  sooner_.notify_one();
}

void frugal_clock::set_ordinary_timeout(time_point due, caf::abstract_actor* self,
                                        caf::atom_value type, std::uint64_t id) {
  change([&] { lists::set_ordinary_timeout(due, self, type, id); });
}

void frugal_clock::set_multi_timeout(time_point due, caf::abstract_actor* self,
                                     caf::atom_value type, std::uint64_t id) {
  change([&] { lists::set_multi_timeout(due, self, type, id); });
}

void frugal_clock::set_request_timeout(time_point due, caf::abstract_actor* self,
                                       caf::message_id id) {
  change([&] { lists::set_request_timeout(due, self, id); });
}

void frugal_clock::cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) {
  change([&] { lists::cancel_ordinary_timeout(self, type); });
}

void frugal_clock::cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) {
  change([&] { lists::cancel_request_timeout(self, id); });
}

void frugal_clock::cancel_timeouts(caf::abstract_actor* self) {
  change([&] { lists::cancel_timeouts(self); });
}

void frugal_clock::schedule_message(time_point due, caf::strong_actor_ptr receiver,
                                    caf::mailbox_element_ptr content) {
  change([&] { lists::schedule_message(due, std::move(receiver), std::move(content)); });
}

void frugal_clock::schedule_message(time_point due, caf::group target, caf::strong_actor_ptr sender,
                                    caf::message content) {
  change([&] {
    lists::schedule_message(due, std::move(target), std::move(sender), std::move(content));
  });
}

void frugal_clock::cancel_all() {
  // Dropped without the lock: the last reference to an actor may go with it, and an actor that ends
  // cancels its timeouts.
  schedule_map dropped;
  const std::lock_guard guard(lock_);
  dropped.swap(schedule_);
  actor_lookup_.clear();
}

std::size_t frugal_clock::waiting() {
  const std::lock_guard guard(lock_);
  return schedule_.size();
}

std::vector<frugal_clock::unique_delayed_event_ptr> frugal_clock::take_due(time_point now) {
  std::vector<unique_delayed_event_ptr> due;
  while (!schedule_.empty() && schedule_.begin()->first <= now) {
    auto first = schedule_.begin();
    if (first->second->backlink != actor_lookup_.end())
      actor_lookup_.erase(first->second->backlink);
    due.push_back(std::move(first->second));
    schedule_.erase(first);
  }
  return due;
}

void frugal_clock::run() {
  std::unique_lock guard(lock_);
  while (!ended_) {
    if (auto due = take_due(now()); !due.empty()) {
      guard.unlock();
      for (const auto& each : due)
        ship(*each);
      due.clear();
      guard.lock();
    } else if (schedule_.empty()) {
      looks_at_ = time_point::max();
      sooner_.wait(guard);
    } else {
      looks_at_ = schedule_.begin()->first;
      // A copy: another thread may change it meanwhile.
      const auto until = looks_at_;
      sooner_.wait_until(guard, until);
    }
    looks_at_ = time_point::min();
  }
}

void frugal_clock::end() {
  {
    const std::lock_guard guard(lock_);
    ended_ = true;
  }
  sooner_.notify_one();
}

} // namespace boyd
