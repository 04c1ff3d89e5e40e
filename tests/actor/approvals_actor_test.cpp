#include "actors/approvals/actor.hpp"
#include "actors/approvals/notices.hpp"
#include "actors/store/actor.hpp"
#include "actors/store/replies.hpp"
#include "actors/support/ask.hpp"
#include "actors/support/handlers.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/queue/approvals.hpp"
#include "node_fixture.hpp"
#include "pch.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace boyd::approvals_actor_test {

using namespace boyd;
using namespace boyd::test;
using store::approval_outcome;
using store::approval_state;

namespace {

using heard_ptr = std::shared_ptr<std::vector<approval_answer>>;

/// A run that hears what becomes of its wishes.
struct waiter_state {
  static inline const char* name = "waiter";
};

approval_waiter_actor::behavior_type
waiter(approval_waiter_actor::stateful_pointer<waiter_state> self, const heard_ptr& heard) {
  install_handlers(self, "waiter");
  return {[heard](approval_answer& m) { heard->push_back(m); }};
}

/// An endpoint of people that answers each call with this status; 0: not at all.
class simulated_web final : public http_client {
 public:
  int status = 200;
  std::vector<http_request> calls;

  http_handle start(http_request request, http_events events) override {
    calls.push_back(std::move(request));
    if (status == 0) {
      events.on_end(fail(errc::io_error, "connection refused"));
    } else {
      events.on_head({status, {}});
      events.on_end({});
    }
    return calls.size();
  }
  void cancel(http_handle) override {}
  std::size_t running() const override { return 0; }
};

/// The inbox of a node on the simulated store, with one dispatch that runs.
struct fixture : simulated_node {
  store_actor store;
  approvals_actor approvals;
  approval_waiter_actor run;
  heard_ptr heard = std::make_shared<std::vector<approval_answer>>();
  std::shared_ptr<simulated_web> web = std::make_shared<simulated_web>();
  std::string dispatch_id;
  std::int64_t fence = 0;
  int wishes = 0;

  explicit fixture(bool shared = false) {
    context->shared_store = shared;
    context->ports.http = web;
    store = actors.own(spawn_store(actors.system(), context));
    start();
    begin_run();
  }

  void start() {
    approvals = actors.own(spawn_approvals(actors.system(), context, configuration, store));
    actors.run_all();
  }

  template <class Op>
  typename Op::reply on_store(const Op& op) {
    const auto answer = actors.ask_now<store_reply>(store, store_request{{}, {op}});
    REQUIRE(answer.ok());
    return std::get<typename Op::reply>(store_replies::of(answer.value()).front());
  }

  /// `waits`: who asks for the run; nobody: the run itself.
  void begin_run(const approval_waiter_actor& waits = {}) {
    dispatch_spec spec;
    spec.dispatch_id = dispatch_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
    spec.kernel_id = "default";
    spec.cycle_id = spec.dispatch_id;
    spec.agent_id = "writer";
    on_store(store::enqueue_cycle{"default", spec.cycle_id, {spec}, {}});
    const auto claimed = on_store(store::claim{"node-1", "default", "", 1, 24h});
    REQUIRE(claimed.size() == 1);
    fence = claimed.front().row.fence;
    run = waits ? waits : actors.own(actors.system().spawn(waiter, heard));
  }

  std::string ask(milliseconds wait = 5min, bool hold = false, milliseconds lives = 24h,
                  const std::string& arguments = "1") {
    approval_wish w;
    w.ask.approval_id = "approval-" + std::to_string(++wishes);
    w.ask.matter = {"default", "writer", dispatch_id, "run_command", arguments, "/w", {}, "do it"};
    w.ask.reason = "rule 1";
    w.ask.node_id = "node-1";
    w.ask.fence = fence;
    w.ask.lives = lives;
    w.wait = wait;
    w.hold = hold;
    const auto id = w.ask.approval_id;
    caf::anon_send(approvals, approval_request{{}, std::move(w), run});
    actors.run_all();
    return id;
  }

  store::find_approval::story story(const std::string& id) {
    auto found = on_store(store::find_approval{id});
    REQUIRE(found);
    return *found;
  }

  store::decide_approval verdict(const std::string& id, bool approve = true) {
    store::decide_approval op;
    op.approval_id = id;
    op.hash = story(id).row.hash;
    op.approve = approve;
    op.by = "anna";
    op.decision_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
    return op;
  }

  approval_outcome decide(const std::string& id, bool approve = true) {
    const auto answer = actors.ask_now<store::approval_change>(
        approvals, approval_decision{{}, verdict(id, approve)});
    REQUIRE(answer.ok());
    return answer.value().outcome;
  }

  void use(const std::string& id) {
    caf::anon_send(approvals, approval_use_request{{}, {id, story(id).row.hash}, run});
    actors.run_all();
  }

  std::vector<approval_word> words() const {
    std::vector<approval_word> all;
    for (const auto& a : *heard)
      all.push_back(a.word);
    return all;
  }

  approvals_status status() {
    const auto answer = actors.ask_now<approvals_status>(approvals, approvals_query{});
    REQUIRE(answer.ok());
    return answer.value();
  }
};

using words = std::vector<approval_word>;

} // namespace

TEST_CASE("approvals: a decision wakes the run that waits, and is used once", "[approvals]") {
  fixture f;
  const auto id = f.ask();
  CHECK(f.words() == words{approval_word::asked});
  CHECK(f.status().waiting_runs == 1);
  CHECK(f.decide(id) == approval_outcome::accepted);
  CHECK(f.words() == words{approval_word::asked, approval_word::approved});
  CHECK(f.decide(id) == approval_outcome::decided);
  f.use(id);
  CHECK(f.heard->back().word == approval_word::granted);
  CHECK(f.story(id).row.state == approval_state::used);
  CHECK(f.status().waiting_runs == 0);
  f.use(id);
  CHECK(f.heard->size() == 3);
}

TEST_CASE("approvals: a decision on another node reaches the run by a look", "[approvals]") {
  fixture f(true);
  const auto id = f.ask();
  CHECK(f.on_store(f.verdict(id)).outcome == approval_outcome::accepted);
  CHECK(f.words() == words{approval_word::asked});
  SECTION("within the time between polls") {
    f.actors.advance(limits::queue_poll + 1s);
  }
  SECTION("when the other node's word is heard") {
    caf::anon_send(f.store, external_wakeup{});
    f.actors.advance(200ms);
  }
  CHECK(f.words() == words{approval_word::asked, approval_word::approved});
}

TEST_CASE("approvals: what nobody decides is withdrawn with the wait, or held", "[approvals]") {
  fixture f;
  const bool hold = GENERATE(false, true);
  const auto id = f.ask(10s, hold);
  f.actors.advance(11s);
  CHECK(f.heard->back().word == (hold ? approval_word::held : approval_word::unanswered));
  CHECK(f.story(id).row.state == (hold ? approval_state::pending : approval_state::withdrawn));
  caf::anon_send(f.approvals, approval_end{{}, {f.dispatch_id, f.fence}, f.run});
  f.actors.run_all();
  CHECK(f.story(id).row.state == (hold ? approval_state::pending : approval_state::withdrawn));
}

TEST_CASE("approvals: the run is told when its request has expired", "[approvals]") {
  fixture f;
  const auto id = f.ask(5min, false, 20s);
  f.actors.advance(1min);
  CHECK(f.heard->back().word == approval_word::denied);
  CHECK(f.decide(id) == approval_outcome::expired);
}

TEST_CASE("approvals: the end of the run withdraws what it asked", "[approvals]") {
  fixture f;
  const auto id = f.ask();
  SECTION("by its word") {
    caf::anon_send(f.approvals, approval_end{{}, {f.dispatch_id, f.fence}, f.run});
  }
  SECTION("without a word") {
    f.actors.kill(f.run);
  }
  f.actors.run_all();
  CHECK(f.status().waiting_runs == 0);
  CHECK(f.story(id).trail.back().what == "withdraw");
  CHECK(f.decide(id) == approval_outcome::withdrawn);
}

TEST_CASE("approvals: a tool server that dies takes the questions of all its runs with it",
          "[approvals]") {
  fixture f;
  const auto server = f.run;
  std::vector<std::string> asked{f.ask(), f.ask(5min, false, 24h, "2")};
  for (int runs = 0; runs < 3; ++runs) {
    f.begin_run(server);
    asked.push_back(f.ask());
  }
  f.begin_run();
  const auto of_another = f.ask();
  CHECK(f.status().waiting_runs == asked.size() + 1);
  f.actors.kill(server);
  f.actors.run_all();
  for (const auto& id : asked) {
    CHECK(f.story(id).row.state == approval_state::withdrawn);
    CHECK(f.decide(id) == approval_outcome::withdrawn);
  }
  CHECK(f.status().waiting_runs == 1);
  CHECK(f.decide(of_another) == approval_outcome::accepted);
}

namespace {

/// Armed for the test alone.
struct faulty_fixture : fixture {
  faults::isolation of_this_test;

  static void arm(const char* point, faults::action what, milliseconds delay = 0ms) {
    REQUIRE(faults::arm({{point, what, 1, 1.0, delay}}, 1));
  }
};

} // namespace

TEST_CASE("fault points: a wish that fails is denied, a late one is asked late", "[approvals]") {
  faulty_fixture f;
  SECTION("error") {
    f.arm("approvals.ask", faults::action::error);
    const auto id = f.ask();
    REQUIRE(f.words() == words{approval_word::denied});
    CHECK_THAT(f.heard->front().why, Catch::Matchers::Contains("fault point approvals.ask"));
    CHECK_FALSE(f.on_store(store::find_approval{id}));
    CHECK(f.status().waiting_runs == 0);
  }
  SECTION("delay") {
    f.arm("approvals.ask", faults::action::delay, 5s);
    const auto id = f.ask();
    f.actors.advance(4s);
    CHECK(f.heard->empty());
    f.actors.advance(2s);
    CHECK(f.words() == words{approval_word::asked});
    CHECK(f.decide(id) == approval_outcome::accepted);
  }
  SECTION("delay, and the run is gone before") {
    f.arm("approvals.ask", faults::action::delay, 5s);
    const auto id = f.ask();
    f.actors.kill(f.run);
    f.actors.advance(6s);
    CHECK(f.story(id).row.state == approval_state::withdrawn);
    CHECK(f.status().waiting_runs == 0);
  }
  SECTION("crash") {
    f.arm("approvals.ask", faults::action::crash);
    f.ask();
    CHECK(f.actors.ended(f.approvals));
    CHECK(f.heard->empty());
  }
}

TEST_CASE("fault points: the use of an approval that fails does nothing, a late one is let through "
          "late",
          "[approvals]") {
  faulty_fixture f;
  const auto id = f.ask();
  REQUIRE(f.decide(id) == approval_outcome::accepted);
  SECTION("error") {
    f.arm("approvals.use", faults::action::error);
    f.use(id);
    CHECK(f.heard->back().word == approval_word::denied);
    CHECK(f.story(id).row.state == approval_state::approved);
    caf::anon_send(f.approvals, approval_end{{}, {f.dispatch_id, f.fence}, f.run});
    f.actors.run_all();
    CHECK(f.story(id).row.state == approval_state::withdrawn);
  }
  SECTION("delay") {
    f.arm("approvals.use", faults::action::delay, 5s);
    f.use(id);
    CHECK(f.heard->back().word == approval_word::approved);
    f.actors.advance(6s);
    CHECK(f.heard->back().word == approval_word::granted);
    CHECK(f.story(id).row.state == approval_state::used);
  }
  SECTION("crash") {
    f.arm("approvals.use", faults::action::crash);
    f.use(id);
    CHECK(f.actors.ended(f.approvals));
    CHECK(f.story(id).row.state == approval_state::approved);
  }
}

TEST_CASE("fault points: a withdrawal that goes wrong ends with the run", "[approvals]") {
  faulty_fixture f;
  const auto id = f.ask();
  const auto end = [&] {
    caf::anon_send(f.approvals, approval_end{{}, {f.dispatch_id, f.fence}, f.run});
    f.actors.run_all();
  };
  SECTION("error or loss") {
    f.arm("approvals.end", GENERATE(faults::action::error, faults::action::drop));
    end();
    CHECK(f.story(id).row.state == approval_state::pending);
    f.actors.kill(f.run); // as a run does behind its last word
    f.actors.run_all();
  }
  SECTION("of one question alone") {
    f.arm("approvals.end", GENERATE(faults::action::error, faults::action::drop));
    caf::anon_send(f.approvals, approval_withdrawal{{}, id, "not wanted"});
    f.actors.run_all();
    CHECK(f.story(id).row.state == approval_state::pending);
    end();
  }
  SECTION("delay") {
    f.arm("approvals.end", faults::action::delay, 5s);
    end();
    CHECK(f.story(id).row.state == approval_state::pending);
    f.actors.advance(6s);
  }
  SECTION("crash") {
    f.arm("approvals.end", faults::action::crash);
    end();
    CHECK(f.actors.ended(f.approvals));
    f.on_store(store::take_back{"node-1"});
    f.start();
    f.actors.advance(1s);
  }
  CHECK(f.story(id).row.state == approval_state::withdrawn);
}

TEST_CASE("fault points: a word for a run may be late; a crash before it loses no decision",
          "[approvals]") {
  faulty_fixture f;
  const auto id = f.ask();
  SECTION("delay") {
    f.arm("approvals.answer", faults::action::delay, 5s);
    CHECK(f.decide(id) == approval_outcome::accepted);
    CHECK(f.words() == words{approval_word::asked});
    f.actors.advance(6s);
    CHECK(f.words() == words{approval_word::asked, approval_word::approved});
  }
  SECTION("crash") {
    f.arm("approvals.answer", faults::action::crash);
    (void)f.actors.ask_now<store::approval_change>(f.approvals,
                                                   approval_decision{{}, f.verdict(id)});
    CHECK(f.actors.ended(f.approvals));
    CHECK(f.story(id).row.state == approval_state::approved);
  }
}

TEST_CASE("fault points: a notice that fails is tried again", "[approvals]") {
  faulty_fixture f;
  auto next = std::make_shared<config::configuration>(*f.configuration);
  next->notices.webhook = "https://chat.example.org/hook";
  caf::anon_send(f.approvals, reload_order{{}, next});
  SECTION("error") {
    f.arm("approvals.notify", faults::action::error);
    f.ask();
    CHECK(f.web->calls.empty());
    f.actors.advance(1min);
    CHECK(f.web->calls.size() == 1);
    CHECK(f.status().notices_sent == 1);
  }
  SECTION("crash") {
    f.arm("approvals.notify", faults::action::crash);
    const auto id = f.ask();
    CHECK(f.actors.ended(f.approvals));
    CHECK(f.story(id).row.state == approval_state::pending);
  }
}

TEST_CASE("fault points: a decision that does not get through is told to the person",
          "[approvals]") {
  faulty_fixture f;
  const auto id = f.ask();
  // As the gateway asks.
  const auto decided = std::make_shared<std::optional<result<store::approval_change>>>();
  const auto ask = [&] {
    auto person = f.actors.own(f.actors.system().spawn(
        [to = f.approvals, what = f.verdict(id), decided](caf::event_based_actor* self) {
          install_handlers(self, "person");
          boyd::ask<store::approval_change>(
              self, to, approval_decision{{}, what},
              [decided](result<store::approval_change> r) { *decided = std::move(r); });
        }));
    f.actors.run_all();
    return person;
  };
  SECTION("error") {
    f.arm("approvals.request", faults::action::error);
    ask();
    REQUIRE(*decided);
    CHECK(decided->value().error().code == errc::actor_down);
  }
  SECTION("lost") {
    f.arm("approvals.request", faults::action::drop);
    ask();
    CHECK_FALSE(*decided);
    f.actors.advance(limits::request_timeout + 1s);
    REQUIRE(*decided);
    CHECK(decided->value().error().code == errc::timed_out);
  }
  SECTION("a crash ends who asks, not the inbox") {
    f.arm("approvals.request", faults::action::crash);
    CHECK(f.actors.ended(ask()));
    CHECK_FALSE(f.actors.ended(f.approvals));
  }
  SECTION("late") {
    f.arm("approvals.request", faults::action::delay, 3s);
    ask();
    f.actors.advance(2s);
    CHECK(f.words() == words{approval_word::asked});
    f.actors.advance(2s);
    REQUIRE(*decided);
    CHECK(decided->value()->outcome == approval_outcome::accepted);
    return;
  }
  CHECK(f.words() == words{approval_word::asked});
  CHECK(f.decide(id) == approval_outcome::accepted);
}

TEST_CASE("approvals: a crash leaves nothing to be used: the next life withdraws it",
          "[approvals]") {
  fixture f;
  const auto pending = f.ask();
  const auto approved = f.ask(5min, false, 24h, "2");
  CHECK(f.decide(approved) == approval_outcome::accepted);
  f.actors.kill(f.approvals);
  f.actors.kill(f.run);
  f.actors.run_all();
  f.on_store(store::take_back{"node-1"});
  f.start();
  f.actors.advance(1s);
  for (const auto& id : {pending, approved}) {
    CHECK(f.story(id).row.state == approval_state::withdrawn);
    CHECK(f.story(id).trail.back().what == "withdraw");
  }
  CHECK(f.decide(pending) == approval_outcome::withdrawn);
  store::use_approval op{approved, f.story(approved).row.hash, f.fence, "replayed"};
  CHECK(f.on_store(op).outcome == approval_outcome::withdrawn);
}

TEST_CASE("approvals: a store that is away is waited for", "[approvals]") {
  fixture f;
  f.database->faults.unavailable = true;
  f.ask();
  CHECK(f.heard->empty());
  f.actors.advance(5s);
  f.database->faults.unavailable = false;
  f.actors.advance(5s);
  CHECK(f.words() == words{approval_word::asked});
  CHECK(f.decide("approval-1") == approval_outcome::accepted);
  f.database->faults.unavailable = true;
  caf::anon_send(f.approvals,
                 approval_use_request{{}, {"approval-1", f.heard->back().row.hash}, f.run});
  f.actors.advance(5s);
  CHECK(f.heard->back().word == approval_word::approved);
  f.database->faults.unavailable = false;
  f.actors.advance(5s);
  CHECK(f.heard->back().word == approval_word::granted);
  CHECK(f.story("approval-1").row.lines == 3); // asked, approved, used: each once
}

TEST_CASE("case 57 approval-double: an unsteady store gives one effect at most", "[approvals]") {
  fixture f;
  f.database->faults.disconnect_before = 0.2;
  f.database->faults.disconnect_in_commit = 0.4;
  int granted = 0;
  for (int i = 0; i < 40; ++i) {
    f.heard->clear();
    const auto id = f.ask(1h, false, 24h, std::to_string(i));
    f.actors.advance(1min);
    store::approval row;
    for (const auto& a : *f.heard)
      row = a.row;
    if (row.approval_id.empty())
      continue;
    store::decide_approval op{id, row.hash, true, "anna", {}, "decision-" + std::to_string(i)};
    for (int tries = 0; tries < 5; ++tries)
      (void)f.actors.ask_now<store::approval_change>(f.approvals, approval_decision{{}, op});
    f.actors.advance(1min);
    caf::anon_send(f.approvals, approval_use_request{{}, {id, row.hash}, f.run});
    caf::anon_send(f.approvals, approval_use_request{{}, {id, row.hash}, f.run});
    f.actors.advance(2min);
    const auto uses = std::ranges::count(f.words(), approval_word::granted);
    CHECK(uses <= 1);
    granted += static_cast<int>(uses);
  }
  CHECK(granted > 20);
  int used = 0;
  for (const auto& s : f.database->approvals()) {
    const auto accepted = std::ranges::count_if(s.trail, [](const auto& l) {
      return l.what == "use" && l.outcome == approval_outcome::accepted;
    });
    CHECK(accepted <= 1);
    used += static_cast<int>(accepted);
  }
  CHECK(used == granted);
}

TEST_CASE("approvals: people are told of what is asked, without what it is", "[approvals]") {
  fixture f;
  auto next = std::make_shared<config::configuration>(*f.configuration);
  next->notices.webhook = "https://chat.example.org/hook";
  caf::anon_send(f.approvals, reload_order{{}, next});
  SECTION("once") {
    const auto id = f.ask();
    REQUIRE(f.web->calls.size() == 1);
    CHECK_THAT(f.web->calls.front().body, Catch::Matchers::Contains(id));
    CHECK_THAT(f.web->calls.front().body, !Catch::Matchers::Contains("do it"));
    CHECK(f.status().notices_sent == 1);
  }
  SECTION("a notice that fails is tried three times, and the run does not notice") {
    f.web->status = GENERATE(0, 500);
    const auto id = f.ask();
    f.actors.advance(1min);
    CHECK(f.web->calls.size() == approving::notice_tries);
    CHECK(f.status().notices_failed == 1);
    CHECK_FALSE(f.status().last_notice_error.empty());
    CHECK(f.decide(id) == approval_outcome::accepted);
    CHECK(f.heard->back().word == approval_word::approved);
  }
}

} // namespace boyd::approvals_actor_test
