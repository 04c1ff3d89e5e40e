#pragma once

#include "actors/node/root.hpp"
#include "actors/supervision/shell.hpp"
#include "actors/support/role.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// Private to actors/node: what the files of the root supervisor share.
namespace boyd::node_impl {

/// Every kernel has written its final record, or had its time.
struct kernels_stopped : message {};

/// `part` has taken the order to reload of that number, or is gone.
struct reload_taken : message {
  std::uint64_t number = 0;
  std::string part;
};

/// Whoever asked for the reload has waited long enough.
struct reload_overdue : message {
  std::uint64_t number = 0;
};

/// Time to ping the children again.
struct heartbeat_tick : message {};

using root_impl = root_actor::extend<caf::reacts_to<supervise_tick>, caf::reacts_to<stop_overdue>,
                                     caf::reacts_to<kernels_stopped>, caf::reacts_to<reload_taken>,
                                     caf::reacts_to<reload_overdue>, caf::reacts_to<heartbeat_tick>,
                                     caf::reacts_to<pong>>;

/// Somebody who watches the events. Kept here, because a gateway may be replaced under them.
struct event_watcher {
  std::function<bool(const std::string&)> sink;
  std::atomic<bool> gone = false; ///< set by the gateway's thread
};

/// The latest reload. A newer one, when it is over, answers who waits for the one before, too.
struct reload_progress {
  std::uint64_t number = 0;
  bool over = true;                ///< every part works by it
  std::set<std::string> untaken{}; ///< parts that the order is on its way to
  struct asker {
    std::uint64_t number = 0; ///< of its own reload
    std::function<void(result<reload_reply>)> done;
  };
  std::vector<asker> askers{};
};

struct root_state {
  node_context_ptr context;
  configuration_ptr configuration;
  configuration_ptr started_with; ///< for what only a restart changes
  configuration_ptr homes_with;   ///< what the keepers of kernel homes were started with, or older
  reload_hook on_reload;
  reload_progress reloading;
  std::unique_ptr<supervisor_shell<root_impl::base>> shell;
  std::vector<std::shared_ptr<event_watcher>> watchers;
  std::shared_ptr<role<mcp_actor>> servers = std::make_shared<role<mcp_actor>>();
  std::shared_ptr<role<event_listener_actor>> watched =
      std::make_shared<role<event_listener_actor>>();
  std::shared_ptr<role<state_writer_actor>> writer = std::make_shared<role<state_writer_actor>>();
  std::shared_ptr<role<knowledge_actor>> knowledge = std::make_shared<role<knowledge_actor>>();
  bool claiming = false;
  bool stopping = false;
  bool finishing = false; ///< the kernels make their final records
  /// The grace of a stop that waits until what is being started anew runs.
  std::optional<milliseconds> stop_behind_renewal;
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
void add_kernel(self_pointer self, const std::string& kernel_id); // root.cpp
void add_gateway(self_pointer self);                              // root.cpp
/// Lets loose what `faults:` asks for. Not in a command that only asks: it must answer.
void arm_faults(const node_context& context,
                const config::configuration& configuration); // reloading.cpp
/// Gives every part the new configuration, and starts anew those that only so work by it; answered
/// when all do.
caf::typed_response_promise<result<reload_reply>> reload(self_pointer self,
                                                         reload_order& order); // reloading.cpp
caf::typed_response_promise<result<api_response>> reload(self_pointer self,
                                                         reload_request& order); // reloading.cpp
void on_taken(self_pointer self, const reload_taken& m);                         // reloading.cpp
void on_overdue(self_pointer self, const reload_overdue& m);                     // reloading.cpp
/// Answers who waits for a reload, when every part works by it. Call it when that may be so.
void end_reload(self_pointer self); // reloading.cpp
/// Answers who waits for a reload that the node's stop overtakes.
void give_up_reload(self_pointer self);                // reloading.cpp
void shut_down(self_pointer self, milliseconds grace); // stopping.cpp
/// The same, but what is just being started anew runs again first, or has had its time.
void shut_down_in_turn(self_pointer self, milliseconds grace); // stopping.cpp
/// All that is left after the drain: stop the children in reverse order.
void stop_tree(self_pointer self); // stopping.cpp
/// Some part ended while the node drains: without the store what runs cannot be recorded and is not
/// waited for, and the node ends as one that has failed.
void look_at_drain(self_pointer self); // stopping.cpp
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
