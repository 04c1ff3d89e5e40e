#pragma once

#include "actors/node/root.hpp"
#include "actors/supervision/shell.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Private to actors/node: what the files of the root supervisor share.
namespace boyd::node_impl {

/// Every kernel has written its final record, or had its time.
struct kernels_stopped : message {};

/// Every part has taken this configuration, or is gone.
struct reload_heard : message {
  configuration_ptr configuration;
  caf::typed_response_promise<result<reload_reply>> promise;
};

/// Time to ping the children again.
struct heartbeat_tick : message {};

using root_impl = root_actor::extend<caf::reacts_to<supervise_tick>, caf::reacts_to<stop_overdue>,
                                     caf::reacts_to<kernels_stopped>, caf::reacts_to<reload_heard>,
                                     caf::reacts_to<heartbeat_tick>, caf::reacts_to<pong>>;

/// Somebody who watches the events. Kept here, because a gateway may be replaced under them.
struct event_watcher {
  std::function<bool(const std::string&)> sink;
  std::atomic<bool> gone = false; ///< set by the gateway's thread
};

struct root_state {
  node_context_ptr context;
  configuration_ptr configuration;
  configuration_ptr started_with; ///< for what only a restart changes
  configuration_ptr homes_with;   ///< what the keepers of kernel homes were started with, or older
  reload_hook on_reload;
  std::unique_ptr<supervisor_shell<root_impl::base>> shell;
  std::vector<std::shared_ptr<event_watcher>> watchers;
  bool claiming = false;
  bool stopping = false;
  std::uint64_t heartbeats = 0;
  std::string failed;                    ///< why the node gives up; empty: it does not
  std::vector<restart_event> unrecorded; ///< restarts on their way into the store, oldest first
  std::uint64_t restarts_seen = 0;
  bool recording = false;
  std::vector<std::function<void()>> when_recorded;
  static inline const char* name = "root";
};

using self_pointer = root_impl::stateful_pointer<root_state>;

/// The living child; null while it is not there.
template <class Handle>
Handle child(self_pointer self, const std::string& id) {
  auto any = self->state.shell->handle(id);
  return any ? caf::actor_cast<Handle>(any) : Handle{};
}

template <class Handle>
caf::actor plain(const Handle& h) {
  return caf::actor_cast<caf::actor>(h);
}

inline std::string kernel_child(const std::string& id) {
  return "kernel:" + id;
}

/// Those that live.
inline std::vector<kernel_actor> kernels_of(self_pointer self) {
  std::vector<kernel_actor> all;
  for (const auto& k : self->state.configuration->kernels)
    if (auto h = child<kernel_actor>(self, kernel_child(k.kernel_id)))
      all.push_back(h);
  return all;
}

// by file
void shut_down(self_pointer self, milliseconds grace); // stopping.cpp
/// All that is left after the drain: stop the children in reverse order.
void stop_tree(self_pointer self); // stopping.cpp
/// Brings the tree in line with what is wanted; a spent intensity shuts the node down.
void reconcile(self_pointer self);                                          // stopping.cpp
caf::typed_response_promise<result<tree_reply>> tree_of(self_pointer self); // asking.cpp
caf::typed_response_promise<result<actor_order_reply>> obey(self_pointer self,
                                                            const actor_order& order); // asking.cpp
/// Writes down what the restart log holds; `then`, in any case, when the store has answered. What
/// it did not take is kept, up to a bound, and tried again at the next call.
void record_restarts(self_pointer self, std::function<void()> then = {}); // restarts.cpp
/// Leaves word for the watchdog.
void say_pulse(const root_state& s); // asking.cpp
/// Pings the children and leaves word for the watchdog.
void beat(self_pointer self); // asking.cpp

} // namespace boyd::node_impl
