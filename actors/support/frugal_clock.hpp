#pragma once

#include <caf/detail/thread_safe_actor_clock.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace boyd {

/// The clock of CAF's scheduler: delayed messages and the limits of requests. CAF's own clock hands
/// each change to its thread, which wakes for it: with every limit that is set, with every answer
/// that comes in time and with every actor that ends. Here who changes something does it, under a
/// lock, and the thread is woken only when something has become due sooner than it would wake.
///
/// Derived from CAF's, of which it uses the lists alone, because a scheduler has to hand out one of
/// that type (caf/scheduler/coordinator.hpp, 0.17.6). All members may be called by any thread.
class frugal_clock final : public caf::detail::thread_safe_actor_clock {
 public:
  void set_ordinary_timeout(time_point due, caf::abstract_actor* self, caf::atom_value type,
                            std::uint64_t id) override;
  void set_multi_timeout(time_point due, caf::abstract_actor* self, caf::atom_value type,
                         std::uint64_t id) override;
  void set_request_timeout(time_point due, caf::abstract_actor* self, caf::message_id id) override;
  void cancel_ordinary_timeout(caf::abstract_actor* self, caf::atom_value type) override;
  void cancel_request_timeout(caf::abstract_actor* self, caf::message_id id) override;
  void cancel_timeouts(caf::abstract_actor* self) override;
  void schedule_message(time_point due, caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override;
  void schedule_message(time_point due, caf::group target, caf::strong_actor_ptr sender,
                        caf::message content) override;
  void cancel_all() override;

  /// How many timeouts and messages are listed.
  std::size_t waiting();

  /// Sends what is due, until `end`: the body of one thread.
  void run();
  void end();

 private:
  template <class Change>
  void change(Change apply);
  std::vector<unique_delayed_event_ptr> take_due(time_point now);

  std::mutex lock_;
  std::condition_variable sooner_;
  /// When the thread looks by itself: `max` while nothing is listed, `min` while it is awake or has
  /// been woken already.
  time_point looks_at_ = time_point::min();
  bool ended_ = false;
};

} // namespace boyd
