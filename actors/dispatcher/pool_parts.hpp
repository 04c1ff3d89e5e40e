#pragma once

#include "actors/dispatcher/actor.hpp"
#include "actors/dispatcher/pool.hpp"
#include "actors/dispatcher/status_collector.hpp"
#include "actors/supervision/shell.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// Private to the supervisor of dispatchers: what its files share.
namespace boyd::dispatcher_pool {

struct sweep_tick : message {};

/// A rescue that the store did not answer is asked for again.
struct rescue_again : message {};

/// A lease of another node has run out, if it was not renewed.
struct lease_over : message {
  std::uint64_t generation = 0;
};

struct poll_tick : message {
  std::uint64_t generation = 0;
};

using pool_impl =
    dispatcher_pool_actor::extend<caf::reacts_to<supervise_tick>, caf::reacts_to<stop_overdue>,
                                  caf::reacts_to<sweep_tick>, caf::reacts_to<rescue_again>,
                                  caf::reacts_to<lease_over>, caf::reacts_to<poll_tick>,
                                  caf::replies_to<ping>::with<pong>, caf::reacts_to<pong>>;
using drain_promise = caf::typed_response_promise<result<drained>>;

struct member {
  std::string kernel_id;
  std::string agent_id;
  bool wanted = true; ///< false: removed by a reload, drains
};

struct pool_state {
  node_context_ptr context;
  configuration_ptr configuration;
  run_services services;
  std::unique_ptr<supervisor_shell<pool_impl::base>> shell;
  std::map<std::string, member> members; ///< by child id
  std::set<std::string> renewed;         ///< children that take over from a living one, or its pool
  bool claiming = false;
  bool asking = false; ///< a due_agents question is under way
  bool ask_again = false;
  bool rescuing = false;                ///< a rescue is under way, or a rescue_again on its way
  bool rescue_doubted = false;          ///< one was not answered, and may have been carried out
  std::optional<steady_time> lease_end; ///< when a lease_over comes
  std::uint64_t lease_generation = 0;
  std::uint64_t poll_generation = 0;
  std::string store_problem;
  steady_time unknown_told{}; ///< when work that is left to other nodes was told of
  bool draining = false;
  std::vector<drain_promise> drain_askers; ///< not answered yet
  std::set<std::string> undrained;
  std::vector<std::weak_ptr<status_collector>> collectors;
  static inline const char* name = "dispatchers";

  /// CAF drops promises silently: whoever still waits is told that the pool is gone.
  ~pool_state() {
    const error gone{errc::actor_down, "the part is being restarted", name, "try again"};
    for (auto& p : drain_askers)
      p.deliver(result<drained>(fail(gone)));
    for (const auto& weak : collectors)
      if (auto c = weak.lock(); c && c->missing > 0)
        c->promise.deliver(result<dispatchers_reply>(fail(gone)));
  }
};

using self_pointer = pool_impl::stateful_pointer<pool_state>;

inline std::string child_id(const std::string& kernel, const std::string& agent) {
  return "dispatcher:" + kernel + "/" + agent;
}

/// The living dispatcher, or null.
inline dispatcher_actor handle_of(self_pointer self, const std::string& id) {
  auto any = self->state.shell->handle(id);
  return any ? caf::actor_cast<dispatcher_actor>(any) : dispatcher_actor{};
}

// by file
/// Asks the store whose work is due, and tells them.
void ask_due(self_pointer self); // pool.cpp
/// Takes back what an earlier process of this node left running; then the dispatchers may claim. A
/// pool that follows another one in the same process finds no such rows: its dispatchers give back
/// those of their predecessors.
void recover(self_pointer self); // pool_recovery.cpp
/// Membership, and the rescue of rows whose lease has run out; repeats itself.
void sweep(self_pointer self); // pool_recovery.cpp
/// Gives rows back whose lease has run out.
void rescue(self_pointer self); // pool_recovery.cpp
/// Cancels pending rows of agents that the configuration does not have, so that their cycles end;
/// an empty `agent`: of all such agents of the kernel. While the database knows other nodes they
/// are left to those, which may have the agent.
void cancel_unknown(self_pointer self, const std::string& kernel,
                    const std::string& agent); // pool_unknown.cpp

} // namespace boyd::dispatcher_pool
