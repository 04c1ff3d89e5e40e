#pragma once

#include <caf/policy/unprofiled.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

namespace boyd {

/// A policy for CAF's scheduler: one queue that all its threads take from, as CAF's own `sharing`
/// has, but a sleeping thread is woken only for work that would have to wait. What an actor sends
/// is mostly the next step of what its own thread does: that thread takes it itself when the actor
/// has been resumed, sooner than another one would be awake, and two that hand a question and its
/// answer to each other stay on one processor.
///
/// Work from outside (the clock, a worker's thread, a signal) always wakes somebody who sleeps.
/// What a scheduler's thread puts there itself wakes one when more than `most_behind` jobs wait or
/// the oldest has waited for `patience`; both are looked at with each job that is put or taken.
class frugal_sharing : public caf::policy::unprofiled {
 public:
  using time = std::chrono::steady_clock::time_point;

  struct job {
    caf::resumable* what = nullptr;
    time since;
  };

  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}

    std::mutex lock;
    std::condition_variable work;
    std::deque<job> queue;
    std::size_t asleep = 0; ///< threads that wait for work
    std::size_t called = 0; ///< of them: have been notified, and are not awake yet
  };

  struct worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator*) {}
  };

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* what) {
    put(d(self), what, own_scheduler() == self);
  }

  /// Also how the coordinator ends its threads.
  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* what) {
    put(d(self->parent()), what, false);
  }

  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* what) {
    put(d(self->parent()), what, true);
  }

  template <class Worker>
  void resume_job_later(Worker* self, caf::resumable* what) {
    put(d(self->parent()), what, true);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    own_scheduler() = self->parent();
    auto& data = d(self->parent());
    std::unique_lock guard(data.lock);
    while (data.queue.empty())
      sleep(data, guard);
    auto* next = data.queue.front().what;
    data.queue.pop_front();
    call_if_needed(data, guard, true);
    return next;
  }

  template <class Worker, class Function>
  void foreach_resumable(Worker*, Function) {
    // No thread has jobs of its own.
  }

  template <class Coordinator, class Function>
  void foreach_central_resumable(Coordinator* self, Function f) {
    auto& data = d(self);
    const std::lock_guard guard(data.lock);
    for (const auto& each : data.queue)
      f(each.what);
    data.queue.clear();
  }

 private:
  static constexpr std::size_t most_behind = 2;
  static constexpr std::chrono::microseconds patience{20};

  /// Whose thread this is; null outside of a scheduler. Also for what is sent without a context,
  /// such as the first resumption of an actor that was just made.
  static const void*& own_scheduler() {
    static thread_local const void* own = nullptr;
    return own;
  }

  static void sleep(coordinator_data& data, std::unique_lock<std::mutex>& guard) {
    ++data.asleep;
    data.work.wait(guard);
    --data.asleep;
    // A thread that wakes by itself may take another one's call: then one is called too much.
    if (data.called > 0)
      --data.called;
  }

  static void put(coordinator_data& data, caf::resumable* what, bool from_own_thread) {
    std::unique_lock guard(data.lock);
    data.queue.push_back({what, std::chrono::steady_clock::now()});
    call_if_needed(data, guard, from_own_thread);
  }

  /// Gives the lock back first: who wakes would have to wait for it.
  static void call_if_needed(coordinator_data& data, std::unique_lock<std::mutex>& guard,
                             bool from_own_thread) {
    if (!needs_another(data, from_own_thread))
      return;
    ++data.called;
    guard.unlock();
    data.work.notify_one();
  }

  static bool needs_another(const coordinator_data& data, bool from_own_thread) {
    if (data.queue.empty() || data.asleep <= data.called)
      return false;
    return !from_own_thread || data.queue.size() > most_behind ||
           std::chrono::steady_clock::now() - data.queue.front().since > patience;
  }
};

} // namespace boyd
