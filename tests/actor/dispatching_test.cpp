#include "boyd/faults/points.hpp"
#include "dispatching_fixture.hpp"
#include "support/pch.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/local_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace boyd::dispatching_test {

using namespace boyd;
using boyd::test::scripted;
using fixture = boyd::test::dispatching_fixture;

namespace {

/// Runs the simulated program "agent", which is given its prompt in a file.
config::agent commanded() {
  config::agent agent;
  agent.agent_id = "agent";
  agent.run.emplace<config::command_executor>().argv = {"agent", "{prompt_file}"};
  return agent;
}

} // namespace

TEST_CASE("answers without delay are given, each by a worker of its own", "[dispatching]") {
  fixture f({scripted("quick", {0ms})});
  f.enqueue("quick", 50);
  f.actors.run_all();
  const auto rows = f.rows();
  REQUIRE(rows.size() == 50);
  std::set<std::string> sessions;
  for (const auto& row : rows) {
    CHECK(row.status == dispatch_status::done);
    CHECK(row.attempt == 1);
    CHECK(row.outcome.summary == "after 0");
    CHECK(row.outcome.execution == execution_verdict::succeeded);
    sessions.insert(row.outcome.session_id);
  }
  CHECK(sessions.size() == 50);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("of a flood of small runs the first of a minute have records, the database has all",
          "[dispatching]") {
  fixture f({scripted("quick", {0ms})});
  const auto records = [&] {
    const auto folder = f.context->layout().executions();
    const auto ids = f.context->ports.files->list(folder).value();
    std::size_t n = 0;
    for (const auto& id : ids)
      n += f.context->ports.files->read(folder + "/" + id + "/record.json", 1U << 20) ? 1 : 0;
    return n;
  };
  f.enqueue("quick", 70);
  f.actors.run_all();
  CHECK(f.done() == 70);
  CHECK(records() == 60);
  f.actors.advance(61s);
  f.enqueue("quick", 5);
  f.actors.run_all();
  CHECK(f.done() == 75);
  CHECK(records() == 65);
}

TEST_CASE("the program of a lost lease is gone when the lease ends, whatever it thinks of TERM",
          "[dispatching]") {
  // No tick comes between the moment from which the lease counts as lost, 27 s, and its end.
  for (const auto tick : {1s, 29s}) {
    fixture f({commanded()}, true, tick);
    f.processes->define("agent", sim::sim_program{.hang = true, .ignore_term = true});
    f.enqueue("agent", 1);
    f.actors.run_all();
    REQUIRE(f.processes->alive() == 1);
    f.database->faults.unavailable = true;
    f.actors.advance(limits::lease - limits::lease / 10 - 1s);
    CHECK(f.processes->alive() == 1);
    f.actors.advance(2s);
    CHECK(f.processes->alive() == 0);
  }
}

TEST_CASE("an attempt that is cancelled before it could begin starts nothing", "[dispatching]") {
  const faults::isolation of_this_test;
  fixture f({commanded()});
  f.processes->define("agent", sim::sim_program{});
  REQUIRE(faults::arm({{"workspace.request", faults::action::delay, 1, 1.0, 10s}}, 1));
  f.enqueue("agent", 1);
  f.actors.run_all();
  REQUIRE(f.rows().front().status == dispatch_status::running);
  caf::anon_send(f.pool, cancel_run{{}, f.rows().front().dispatch_id});
  f.actors.advance(11s);
  CHECK(f.processes->started() == 0);
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::cancelled, 1}});
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("answers with and without delay of one agent come in turn", "[dispatching]") {
  fixture f({scripted("mixed", {0ms, 10s})});
  f.enqueue("mixed", 4);
  f.actors.run_all();
  CHECK(f.done() == 2);
  CHECK(f.permits_in_use() == 2);
  f.actors.advance(10s);
  CHECK(f.done() == 4);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("the crash of a worker costs its own attempt one try, and no other", "[dispatching]") {
  fixture f({scripted("a", {0ms}), scripted("b", {1s})});
  f.enqueue("b", 1);
  REQUIRE(faults::arm({{"executor.run", faults::action::crash, 1, 1.0, 0ms}}, 1));
  f.enqueue("a", 8);
  f.actors.run_all();
  CHECK(faults::triggered("executor.run") > 0);
  const auto was_interrupted = [](const dispatch& row) {
    return row.status == dispatch_status::pending &&
           row.attempts_json.find("indeterminate") != std::string::npos;
  };
  CHECK(std::ranges::count_if(f.rows(), was_interrupted) == 1);
  f.actors.advance(1min);
  int twice = 0;
  for (const auto& row : f.rows()) {
    CHECK(row.status == dispatch_status::done);
    twice += row.attempt == 2 ? 1 : 0;
  }
  CHECK(twice == 1);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("whatever a crashed dispatcher left running is given back, more than one page of it",
          "[dispatching]") {
  constexpr int left = 450;
  fixture f({scripted("quick", {0ms})});
  store_request request;
  for (int i = 0; i < left; ++i)
    request.operations.emplace_back(f.enqueueing("quick"));
  // Claimed behind the dispatcher's back: it does not run them.
  request.operations.emplace_back(
      store::claim{f.context->node_id, f.kernel().kernel_id, "quick", left, 1h});
  REQUIRE(f.actors.ask_now<store_reply>(f.store, std::move(request)).ok());
  f.actors.advance(2s);
  REQUIRE(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, left}});
  REQUIRE(faults::arm({{"dispatcher.claim", faults::action::crash, 1, 1.0, 0ms}}, 1));
  f.enqueue("quick", 1);
  f.actors.advance(1min);
  CHECK(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::done, left + 1}});
}

TEST_CASE("case 10 stuck-actor: a run whose worker spins is told of, and is for the watchdog",
          "[dispatching]") {
  fixture f({scripted("slow", {1h})});
  f.context->housekeeping.heartbeat = limits::heartbeat;
  f.enqueue("slow", 1);
  f.actors.advance(1s);
  REQUIRE(f.statuses() == std::map<dispatch_status, int>{{dispatch_status::running, 1}});
  pong heard;
  const auto beat = [&] {
    f.actors.system().spawn([&heard, pool = f.pool](caf::event_based_actor* self) {
      self->request(caf::actor_cast<caf::actor>(pool), std::chrono::minutes{60}, ping{})
          .then([&heard](pong& p) { heard = std::move(p); }, [](caf::error&) {});
    });
  };
  for (int i = 0; i < 30; ++i) {
    beat();
    f.actors.advance(limits::heartbeat);
  }
  CHECK(heard.silent.empty()); // it runs for long, and answers
  for (milliseconds stuck{0}; stuck <= limits::stuck_worker; stuck += limits::heartbeat) {
    beat();
    f.actors.advance_without("executor", limits::heartbeat);
  }
  beat();
  f.actors.advance_without("executor", 1s);
  REQUIRE(heard.silent.size() == 1);
  CHECK(heard.silent[0].name == "dispatcher:default/slow");
  CHECK(heard.silent[0].missed == 0);
  CHECK(heard.silent[0].worker_busy >= limits::stuck_worker);
  beat();
  f.actors.advance(1s);
  beat();
  f.actors.advance(1s);
  beat();
  f.actors.advance(1s);
  CHECK(heard.silent.empty());
}

TEST_CASE("an injected error of an attempt is its own", "[dispatching]") {
  fixture f({scripted("a", {0ms})});
  REQUIRE(faults::arm({{"executor.run", faults::action::error, 1, 1.0, 0ms}}, 1));
  f.enqueue("a", 3);
  f.actors.run_all();
  CHECK(f.done() == 2);
  f.actors.advance(1min);
  CHECK(f.done() == 3);
}

TEST_CASE("case 22 notify-lost: work of another node whose wake-up is lost is found by the poll",
          "[dispatching]") {
  fixture f({scripted("quick", {0ms})}, true);
  f.actors.advance(1min);
  dispatch_spec spec;
  spec.kernel_id = f.kernel().kernel_id;
  spec.cycle_id = "cycle-of-another-node";
  spec.dispatch_id = "dispatch-of-another-node";
  spec.agent_id = "quick";
  f.database->run({store::enqueue_cycle{spec.kernel_id, spec.cycle_id, {spec}, {}}});
  f.actors.run_all();
  CHECK(f.done() == 0);
  f.actors.advance(limits::queue_poll);
  CHECK(f.done() == 1);
}

namespace {

using counts = std::map<dispatch_status, int>;

/// One of its runs takes longer than any grace; a second one waits for it.
config::agent slow_one() {
  auto agent = scripted("gone", {8s});
  agent.max_concurrent = 1;
  return agent;
}

} // namespace

TEST_CASE("a removed agent finishes what it runs, and its waiting work is cancelled",
          "[dispatching][reload]") {
  fixture f({slow_one(), scripted("stays", {0ms})});
  f.enqueue("gone", 2);
  f.actors.advance(1s);
  REQUIRE(f.statuses() == counts{{dispatch_status::running, 1}, {dispatch_status::pending, 1}});
  f.reload({scripted("stays", {0ms})});
  // What a kernel enqueued before it heard of it is no work either.
  f.enqueue("gone", 1);
  f.actors.advance(1s);
  CHECK(f.statuses() == counts{{dispatch_status::running, 1}, {dispatch_status::cancelled, 2}});
  f.actors.advance(20s);
  CHECK(f.statuses() == counts{{dispatch_status::done, 1}, {dispatch_status::cancelled, 2}});
  for (const auto& row : f.rows()) {
    const bool ran = row.status == dispatch_status::done;
    CHECK(row.attempt == (ran ? 1 : 0));
    CHECK((row.outcome.summary == "after 8s") == ran);
    CHECK((row.outcome.error.find("no longer configured") == std::string::npos) == ran);
  }
  CHECK(f.permits_in_use() == 0);
  f.enqueue("gone", 1);
  f.actors.advance(1s);
  CHECK(f.statuses() == counts{{dispatch_status::done, 1}, {dispatch_status::cancelled, 3}});
}

TEST_CASE("a shutdown drains what a removed agent still runs", "[dispatching][reload]") {
  fixture f({slow_one(), scripted("stays", {0ms})});
  f.enqueue("gone", 1);
  f.actors.advance(1s);
  f.reload({scripted("stays", {0ms})});
  auto empty = f.actors.ask<drained>(f.pool, drain_order{{}, 1s});
  f.actors.advance(3s);
  CHECK(empty.ok());
  const auto rows = f.rows();
  REQUIRE(rows.size() == 1);
  CHECK(rows.front().status == dispatch_status::pending);
  CHECK(rows.front().attempt == 0);
}

TEST_CASE("an agent that comes back while its attempts run goes on", "[dispatching][reload]") {
  fixture f({slow_one(), scripted("stays", {0ms})});
  f.enqueue("gone", 1);
  f.actors.advance(1s);
  f.reload({scripted("stays", {0ms})});
  auto again = slow_one();
  again.max_concurrent = 2;
  f.reload({again, scripted("stays", {0ms})});
  f.enqueue("gone", 1);
  f.actors.advance(1s);
  // It does not wait for the first one's end.
  CHECK(f.statuses() == counts{{dispatch_status::running, 2}});
  f.actors.advance(20s);
  CHECK(f.statuses() == counts{{dispatch_status::done, 2}});
  // Removed once more with nothing at work, and back.
  f.reload({scripted("stays", {0ms})});
  f.reload({again, scripted("stays", {0ms})});
  f.enqueue("gone", 1);
  f.actors.advance(20s);
  CHECK(f.statuses() == counts{{dispatch_status::done, 3}});
}

TEST_CASE("who listens hears of a cancelled dispatch, not of one that could not be",
          "[dispatching]") {
  // Heard of both, a kernel that cancels what it waits for asked and was told without end.
  fixture f({scripted("slow", {1h}), scripted("waits", {1h})});
  const auto heard = std::make_shared<std::vector<std::string>>();
  const auto listener = f.actors.own(f.actors.system().spawn(
      [heard](queue_listener_actor::pointer) -> queue_listener_actor::behavior_type {
        return {[](queue_changed&) {},
                [heard](dispatches_settled& m) {
                  heard->insert(heard->end(), m.dispatch_ids.begin(), m.dispatch_ids.end());
                }};
      }));
  caf::anon_send(f.store, subscribe_queue{{}, listener});
  f.enqueue("slow", 9); // eight at once
  f.actors.run_all();
  REQUIRE(f.statuses()[dispatch_status::running] == 8);
  std::string waiting;
  for (const auto& row : f.rows()) {
    if (row.status == dispatch_status::pending)
      waiting = row.dispatch_id;
    const store_request cancel{{}, {store::cancel_dispatch{row.dispatch_id}}};
    REQUIRE(f.actors.ask_now<store_reply>(f.store, cancel).ok());
  }
  f.actors.run_all();
  CHECK(*heard == std::vector{waiting});
}

namespace {

/// One run that takes hours, and may.
config::agent long_one(milliseconds takes) {
  auto agent = scripted("slow", {takes});
  agent.timeout = 2 * takes;
  return agent;
}

/// What no clock and no sleep may do to a row that runs on.
void check_undisturbed(fixture& f) {
  for (const auto& row : f.rows()) {
    CHECK(row.status == dispatch_status::running);
    CHECK(row.fence == 1);
    CHECK(row.rescues == 0);
  }
}

} // namespace

TEST_CASE("case 23 clock-step: a node whose clock is set does not take its own runs for lost",
          "[dispatching]") {
  const bool shared = GENERATE(false, true);
  const auto by = GENERATE(milliseconds{1h}, -milliseconds{1h});
  INFO((shared ? "shared, by " : "alone, by ") << by.count());
  fixture f({long_one(10min)}, shared);
  f.enqueue("slow", 3);
  f.actors.run_all();
  f.actors.clock()->jump(by);
  f.actors.advance(2 * f.context->housekeeping.sweep_alone);
  check_undisturbed(f);
  CHECK(f.permits_in_use() == 3);
  f.actors.clock()->jump(-by);
  f.actors.advance(10min);
  CHECK(f.done() == 3);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE(
    "case 23 suspend: however often a node sleeps, what it runs goes on and no permit is lost",
    "[dispatching]") {
  constexpr int sleeps = limits::max_rescues + 2;
  fixture f({long_one(100h)});
  f.enqueue("slow", 2);
  f.actors.run_all();
  for (int i = 0; i < sleeps; ++i) {
    f.actors.clock()->advance(1h);
    f.actors.advance(2min);
    check_undisturbed(f);
    CHECK(f.permits_in_use() == 2);
  }
  f.actors.advance(100h);
  CHECK(f.done() == 2);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("case 23 suspend: with a shared store what slept beyond its lease runs again, once",
          "[dispatching]") {
  fixture f({long_one(20h)}, true);
  f.enqueue("slow", 2);
  f.actors.run_all();
  f.actors.clock()->advance(1h);
  f.actors.advance(10s);
  for (const auto& row : f.rows()) {
    CHECK(row.status == dispatch_status::running);
    CHECK(row.fence == 2);
    CHECK(row.rescues == 0);
  }
  CHECK(f.permits_in_use() == 2);
  f.actors.advance(20h);
  CHECK(f.done() == 2);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("fault points: rows that ran out are told of again when their dispatcher did not hear",
          "[dispatching]") {
  fixture f({scripted("quick", {0ms})});
  f.leave_running("quick");
  REQUIRE(faults::arm({{"dispatcher.expired", faults::action::drop}}, 1));
  f.actors.advance(f.context->housekeeping.sweep_alone + 2 * limits::lease);
  f.actors.advance(2 * f.context->housekeeping.sweep_alone);
  CHECK(faults::triggered("dispatcher.expired") == 1);
  CHECK(f.done() == 1);
}

TEST_CASE("the shortest lease is renewed in time, whenever a run began", "[dispatching]") {
  // The dispatcher looks after its runs since the first one began; the others begin in between.
  for (auto later = 100ms; later < 1000ms; later += 100ms) {
    fixture f({long_one(20h)}, true, 1s, 2s);
    f.enqueue("slow", 1);
    f.actors.advance(later);
    f.enqueue("slow", 1);
    f.actors.advance(10s);
    INFO("the second began after " << later.count() << " ms");
    for (const auto& row : f.rows())
      CHECK(row.fence == 1);
  }
}

TEST_CASE("what another node took while this one slept is not run twice beside itself here",
          "[dispatching]") {
  fixture f({long_one(20h)}, true);
  f.enqueue("slow", 2);
  f.actors.run_all();
  f.actors.clock()->advance(1h);
  CHECK(std::get<store::rescue_expired::reply>(
            f.database->run({store::rescue_expired{"node-2"}}).front())
            .returned.size() == 2);
  // They come here again, and the older attempts take their time to end.
  f.actors.advance_without("executor", 10s);
  CHECK(f.permits_in_use() == 4);
  f.actors.advance(10s);
  for (const auto& row : f.rows()) {
    CHECK(row.status == dispatch_status::running);
    CHECK(row.rescues == 1);
  }
  CHECK(f.permits_in_use() == 2);
  f.actors.advance(20h);
  CHECK(f.done() == 2);
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("own rows that no dispatcher knows of go back to the queue once their lease is over",
          "[dispatching]") {
  const bool shared = GENERATE(false, true);
  fixture f({scripted("quick", {0ms}), scripted("slow", {1h})}, shared);
  f.enqueue("slow", 1);
  f.actors.run_all();
  // Claimed without its dispatcher, as by a claim whose answer never came.
  std::vector<store::operation> all;
  for (int i = 0; i < 3; ++i)
    all.emplace_back(f.enqueueing("quick"));
  all.emplace_back(
      store::claim{f.context->node_id, f.kernel().kernel_id, "quick", 3, limits::lease});
  f.database->run(all);
  f.actors.advance(limits::lease - 5s);
  CHECK(f.statuses() == counts{{dispatch_status::running, 4}});
  f.actors.advance(5s + f.context->housekeeping.sweep_alone);
  CHECK(f.statuses() == counts{{dispatch_status::running, 1}, {dispatch_status::done, 3}});
  for (const auto& row : f.rows()) {
    CHECK(row.rescues == 0);
    CHECK(row.attempt == 1);
  }
  CHECK(f.permits_in_use() == 1);
}

TEST_CASE("what a parked dispatcher's agent has running is given back for other nodes",
          "[dispatching]") {
  fixture f({scripted("bad", {0ms}), scripted("good", {0ms})}, true);
  REQUIRE(faults::arm({{"dispatcher.claim", faults::action::crash, -1, 1.0, 0ms}}, 1));
  f.enqueue("bad", 1);
  f.actors.advance(5min);
  const auto health = f.actors.ask_now<part_health>(f.pool, health_query{});
  REQUIRE(health.ok());
  REQUIRE(health.value().reason.find("parked: dispatcher:default/bad") != std::string::npos);
  const auto answers =
      f.database->run({store::claim{f.context->node_id, f.kernel().kernel_id, "bad", 1, 30s}});
  REQUIRE(std::get<std::vector<claimed_dispatch>>(answers.front()).size() == 1);
  f.actors.advance(30s + f.context->housekeeping.sweep);
  CHECK(f.statuses() == counts{{dispatch_status::pending, 1}});
  CHECK(f.rows().front().rescues == 0);
}

TEST_CASE("case 27 rescue-page-full: a dead node's many runs do not hold up the last of them",
          "[dispatching]") {
  constexpr std::size_t dead = 10'000;
  fixture f({scripted("quick", {0ms})}, true);
  // Of an agent that another node has: they stay in the queue when they are back in it.
  std::vector<store::operation> all;
  all.emplace_back(store::beat{"node-3", "elsewhere", 1});
  for (std::size_t i = 0; i < dead; ++i)
    all.emplace_back(f.enqueueing("elsewhere"));
  all.emplace_back(store::claim{"node-2", f.kernel().kernel_id, "elsewhere", dead, limits::lease});
  (void)f.database->run(all);
  f.actors.advance(1s);
  (void)f.database->run({f.enqueueing("quick"),
                         store::claim{"node-2", f.kernel().kernel_id, "quick", 1, limits::lease}});
  f.actors.advance(limits::lease + f.context->housekeeping.sweep);
  CHECK(f.done() == 1);
  const auto counted = f.database->run({store::count_by_status{}});
  CHECK(
      std::get<store::count_by_status::reply>(counted.front()) ==
      store::count_by_status::reply{{dispatch_status::pending, dead}, {dispatch_status::done, 1}});
}

TEST_CASE("a dead node's work runs elsewhere when its lease ends, not a sweep later",
          "[dispatching]") {
  const auto between_sweeps = GENERATE(0ms, 700ms, 1700ms, 3100ms, 4990ms);
  fixture f({scripted("quick", {0ms})}, true);
  f.actors.advance(between_sweeps);
  const store::claim taken{"node-2", f.kernel().kernel_id, "quick", 1, limits::lease};
  (void)f.database->run({store::beat{"node-2", "elsewhere", 1}, f.enqueueing("quick"), taken});
  f.actors.advance(1s);
  (void)f.database->run({f.enqueueing("quick"), taken});
  f.actors.advance(limits::lease - 1001ms);
  CHECK(f.done() == 0);
  f.actors.advance(200ms);
  CHECK(f.done() == 1);
  f.actors.advance(1s);
  CHECK(f.done() == 2);
}

TEST_CASE("a dead node's work does not wait for another sweep when the store missed one",
          "[dispatching]") {
  fixture f({scripted("quick", {0ms})}, true);
  (void)f.database->run({store::beat{"node-2", "elsewhere", 1}, f.enqueueing("quick"),
                         store::claim{"node-2", f.kernel().kernel_id, "quick", 1, limits::lease}});
  f.actors.advance(limits::lease - 1s);
  f.database->faults.unavailable = true;
  f.actors.advance(1s + f.context->housekeeping.sweep); // each sweep of that time fails
  f.database->faults.unavailable = false;
  f.actors.advance(2s + f.context->housekeeping.retry);
  CHECK(f.done() == 1);
}

TEST_CASE("a result that the store has not taken is that of no run which nobody knows",
          "[dispatching]") {
  fixture f({scripted("quick", {0ms})});
  // The first result waits; meanwhile nobody knows what the second claim came to.
  const int times = GENERATE(range(1, 13));
  INFO(times << " times");
  faults::arming claim{"store.claim", faults::action::error, 2};
  claim.after = 1;
  REQUIRE(faults::arm({{"store.settle", faults::action::error, times},
                       {"spool.bytes", faults::action::error, times},
                       claim},
                      1));
  f.enqueue("quick", 1);
  f.actors.advance(500ms);
  f.database->run({f.enqueueing("quick")});
  caf::anon_send(f.pool, queue_changed{});
  f.actors.advance(2min);
  CHECK(f.done() == 2);
  for (const auto& row : f.rows()) {
    CHECK(row.fence == 1);
    CHECK(row.attempt == 1);
    CHECK(row.attempts_json == "[]");
  }
  CHECK(f.permits_in_use() == 0);
}

TEST_CASE("case 18 commit-in-doubt: what the store claimed before it repeated a batch waits for no "
          "lease",
          "[dispatching]") {
  fixture f({scripted("quick", {0ms})}, true);
  for (int i = 0; i < 16; ++i) {
    int batches = 0;
    f.database->run({f.enqueueing("quick"), f.enqueueing("quick")});
    f.database->faults.slow = [&](std::size_t) {
      f.database->faults.disconnect_in_commit = ++batches % 2;
    };
    caf::anon_send(f.pool, queue_changed{});
    f.actors.advance(200ms);
    f.database->faults.end();
    f.actors.advance(3s);
    CHECK(f.done() == 2 * static_cast<std::size_t>(i + 1));
  }
  CHECK(f.database->faults.struck.in_doubt > 0);
}

TEST_CASE("a dispatcher that is told to start anew gives back what ran, and it does not count",
          "[dispatching]") {
  fixture f({scripted("slow", {1h})});
  f.enqueue("slow", 1);
  f.actors.run_all();
  REQUIRE(f.rows().front().status == dispatch_status::running);
  const auto told = f.actors.ask_now<actor_order_reply>(
      f.pool, actor_order{{}, actor_verb::restart, "dispatcher:default/slow"});
  REQUIRE(told.ok());
  f.actors.advance(5s);
  const auto row = f.rows().front();
  CHECK(row.status == dispatch_status::running);
  CHECK(row.fence == 2);
  CHECK(row.attempt == 1);
  CHECK(row.rescues == 0);
  CHECK(f.permits_in_use() == 1);
}

} // namespace boyd::dispatching_test
