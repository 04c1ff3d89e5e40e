#pragma once

#include "actors/dispatcher/pool.hpp"
#include "actors/governor/actor.hpp"
#include "actors/permits/actor.hpp"
#include "actors/store/actor.hpp"
#include "actors/store/replies.hpp"
#include "actors/workspace/actor.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::test {

inline config::agent scripted(const std::string& id, std::vector<milliseconds> delays) {
  config::agent agent;
  agent.agent_id = id;
  agent.max_concurrent = 8;
  auto& script = agent.run.emplace<config::script_executor>();
  for (const auto delay : delays) {
    auto& answer = script.answers.emplace_back();
    answer.summary = "after " + format_duration(delay);
    answer.delay = delay;
  }
  return agent;
}

/// A store that notes what was asked of it, one entry a transaction.
class recording_store final : public dispatch_store {
 public:
  using list = std::vector<std::vector<store::operation>>;

  recording_store(std::unique_ptr<dispatch_store> inner, std::shared_ptr<list> asked)
      : inner_(std::move(inner)), asked_(std::move(asked)) {}

  void tell_migrations(migration_step before) override { inner_->tell_migrations(before); }
  result<void> open() override { return inner_->open(); }
  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    asked_->push_back(batch);
    return inner_->apply(batch);
  }
  void tidy() override { inner_->tidy(); }
  result<std::vector<std::string>> concerns() override { return inner_->concerns(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<dispatch_store> inner_;
  std::shared_ptr<list> asked_;
};

/// The dispatching side of a node on the simulated store.
struct dispatching_fixture : simulated_node {
  std::shared_ptr<recording_store::list> transactions = std::make_shared<recording_store::list>();
  store_actor store;
  permits_actor permits;
  workspace_actor workspace;
  governor_actor governor;
  dispatcher_pool_actor pool;

  explicit dispatching_fixture(std::vector<config::agent> agents, bool shared = false,
                               milliseconds tick = 1s, milliseconds lease = limits::lease) {
    context->shared_store = shared;
    context->ports.make_store = [db = database, all = transactions] {
      return std::make_unique<recording_store>(sim::make_sim_store(db), all);
    };
    context->housekeeping.dispatcher_tick = tick;
    configuration->node_settings.max_concurrent = 16;
    configuration->node_settings.lease = lease;
    if (lease != limits::lease)
      configuration->node_settings.lease_renewal = lease / 2;
    kernel().agents = std::move(agents);
    store = actors.own(spawn_store(actors.system(), context));
    permits = actors.own(spawn_permits(actors.system(), configuration));
    workspace = actors.own(spawn_workspace(actors.system(), context));
    governor = actors.own(spawn_governor(actors.system(), context, configuration));
    pool = actors.own(spawn_dispatcher_pool(actors.system(), context, configuration,
                                            {store, permits, workspace, governor}));
    caf::anon_send(pool, start_claiming{});
    actors.run_all();
  }
  ~dispatching_fixture() { faults::disarm(); }

  void enqueue(const std::string& agent, int count) {
    store_request request;
    for (int i = 0; i < count; ++i)
      request.operations.emplace_back(enqueueing(agent));
    const auto taken = actors.ask_now<store_reply>(store, std::move(request));
    REQUIRE(taken.ok());
  }

  std::vector<dispatch> rows() {
    store::list_dispatches op;
    op.limit = 1000;
    const auto answer = actors.ask_now<store_reply>(store, store_request{{}, {op}});
    REQUIRE(answer.ok());
    return std::get<std::vector<dispatch>>(store_replies::of(answer.value()).front());
  }

  std::size_t done() {
    const auto all = rows();
    return static_cast<std::size_t>(
        std::ranges::count(all, dispatch_status::done, &dispatch::status));
  }

  /// The pool hears of a configuration with these agents.
  void reload(std::vector<config::agent> agents) {
    auto next = std::make_shared<config::configuration>(*configuration);
    next->node_settings.drain_grace = 1s;
    next->kernels.front().agents = std::move(agents);
    caf::anon_send(pool, reload_order{{}, next});
    actors.advance(2s);
  }

  /// How many rows stand so.
  std::map<dispatch_status, int> statuses() {
    std::map<dispatch_status, int> n;
    for (const auto& row : rows())
      ++n[row.status];
    return n;
  }

  int permits_in_use() {
    const auto status = actors.ask_now<permits_status>(permits, permits_query{});
    REQUIRE(status.ok());
    return status.value().in_use;
  }
};

} // namespace boyd::test
