#include "harness.hpp"

namespace boyd::ledger_test {

using namespace boyd;
using namespace boyd::test;

namespace {

std::unique_ptr<store_world> any_world() {
  return make_world(GENERATE(from_range(store_kinds())));
}

occurrence slot_at(std::int64_t ms) {
  occurrence o;
  o.kernel_id = "k";
  o.scheduled_at = from_unix_ms(ms);
  o.trigger = "schedule";
  o.node_id = "n1";
  return o;
}

cycle_record cycle_at(const std::string& id, std::int64_t ms) {
  cycle_record c;
  c.cycle_id = id;
  c.kernel_id = "k";
  c.scheduled_at = from_unix_ms(ms);
  c.started_at = from_unix_ms(ms);
  c.node_id = "n1";
  return c;
}

} // namespace

TEST_CASE("a slot is opened once and closed once") {
  const auto w = any_world();
  auto& s = w->store();
  REQUIRE(ask(s, store::open_occurrence{slot_at(1000)}).opened);
  REQUIRE(!ask(s, store::open_occurrence{slot_at(1000)}).opened);
  REQUIRE(ask(s, store::open_occurrence{slot_at(2000)}).opened);
  ask(s, store::begin_cycle{cycle_at("c1", 1000)});
  ask(s, store::close_occurrence{"k", from_unix_ms(1000), occurrence_state::ran, "", ""});
  ask(s, store::close_occurrence{"k", from_unix_ms(1000), occurrence_state::missed, "late", ""});
  auto missed = slot_at(3000);
  missed.state = occurrence_state::missed;
  missed.reason = "the node was down";
  REQUIRE(ask(s, store::open_occurrence{missed}).opened);
  const auto all = ask(s, store::list_occurrences{"k", {}, 10});
  REQUIRE(all.size() == 3);
  REQUIRE(all[0].state == occurrence_state::missed);
  REQUIRE(all[0].finished_at);
  REQUIRE(all[1].state == occurrence_state::open);
  REQUIRE(all[2].state == occurrence_state::ran);
  REQUIRE(all[2].cycle_id == "c1");
  REQUIRE(ask(s, store::list_occurrences{"k", from_unix_ms(1500), 10}).size() == 1);
}

TEST_CASE("a repeated request opens its own slot again until a cycle begins in it") {
  const auto w = any_world();
  auto& s = w->store();
  auto own = slot_at(1000);
  own.created_at = from_unix_ms(1001);
  REQUIRE(ask(s, store::open_occurrence{own}).opened);
  REQUIRE(ask(s, store::open_occurrence{own}).opened);
  const auto all = ask(s, store::list_occurrences{"k", {}, 10});
  REQUIRE(all == std::vector{own});
  auto other = own;
  other.node_id = "n2";
  REQUIRE(!ask(s, store::open_occurrence{other}).opened);
  other = own;
  other.trigger = "manual";
  REQUIRE(!ask(s, store::open_occurrence{other}).opened);
  other = own;
  other.created_at = from_unix_ms(1002);
  REQUIRE(!ask(s, store::open_occurrence{other}).opened);
  other.created_at = {};
  REQUIRE(!ask(s, store::open_occurrence{other}).opened);
  other = own;
  other.state = occurrence_state::skipped;
  REQUIRE(!ask(s, store::open_occurrence{other}).opened);
  REQUIRE(ask(s, store::list_occurrences{"k", {}, 10}) == all);
  ask(s, store::begin_cycle{cycle_at("c1", 1000)});
  REQUIRE(!ask(s, store::open_occurrence{own}).opened);
  own.scheduled_at = from_unix_ms(2000);
  REQUIRE(ask(s, store::open_occurrence{own}).opened);
  ask(s, store::close_occurrence{"k", from_unix_ms(2000), occurrence_state::missed, "late", ""});
  REQUIRE(!ask(s, store::open_occurrence{own}).opened);
}

TEST_CASE("a slot is opened with its cycle's row, or neither is written") {
  const auto w = any_world();
  auto& s = w->store();
  auto slot = slot_at(1000);
  slot.created_at = from_unix_ms(1001);
  slot.cycle_id = "c1";
  const store::open_occurrence own{slot, cycle_at("c1", 1000)};
  REQUIRE(ask(s, own).opened);
  const auto rows = [&] { return ask(s, store::list_cycles{"k", true, 5}); };
  REQUIRE(rows() == std::vector{cycle_at("c1", 1000)});
  REQUIRE(ask(s, store::list_occurrences{"k", {}, 10}) == std::vector{slot});
  // Repeated after an answer that was not heard.
  REQUIRE(ask(s, own).opened);
  REQUIRE(rows() == std::vector{cycle_at("c1", 1000)});

  auto other = own;
  other.slot.node_id = "n2";
  other.slot.cycle_id = "c2";
  other.cycle = cycle_at("c2", 1000);
  REQUIRE(!ask(s, other).opened);
  REQUIRE(rows() == std::vector{cycle_at("c1", 1000)});

  other.cycle->scheduled_at = from_unix_ms(2000);
  REQUIRE(refusal(s, other) == errc::invalid_argument);
  other = {slot_at(2000), cycle_at("c3", 2000)};
  REQUIRE(refusal(s, other) == errc::invalid_argument);
  REQUIRE(ask(s, store::list_occurrences{"k", {}, 10}).size() == 1);
}

TEST_CASE("a slot that no pause may meet is not written while its kernel is paused") {
  const auto w = any_world();
  auto& s = w->store();
  auto slot = slot_at(1000);
  slot.created_at = from_unix_ms(1001);
  slot.cycle_id = "c1";
  const store::open_occurrence own{slot, cycle_at("c1", 1000), true};
  const auto pause = [&](const char* kernel, const char* agent) {
    ask(s, store::set_pause{{kernel, agent, "holidays", {}}});
  };
  // Of another kernel, and of one agent.
  pause("other", "");
  pause("k", "a");
  REQUIRE(ask(s, own).opened);
  pause("k", "");
  // Its own once more, after an answer that was not heard.
  REQUIRE(ask(s, own).opened);

  slot.scheduled_at = from_unix_ms(2000);
  slot.cycle_id = "c2";
  REQUIRE(!ask(s, store::open_occurrence{slot, cycle_at("c2", 2000), true}).opened);
  slot.cycle_id.clear();
  REQUIRE(!ask(s, store::open_occurrence{slot, {}, true}).opened);
  REQUIRE(ask(s, store::list_occurrences{"k", {}, 10}).size() == 1);
  REQUIRE(ask(s, store::list_cycles{"k", true, 5}).size() == 1);
  REQUIRE(ask(s, store::open_occurrence{slot}).opened);
  ask(s, store::clear_pause{"k", ""});
  slot.scheduled_at = from_unix_ms(3000);
  REQUIRE(ask(s, store::open_occurrence{slot, {}, true}).opened);
}

TEST_CASE("a cycle's row is made, finished and listed newest first") {
  const auto w = any_world();
  auto& s = w->store();
  ask(s, store::begin_cycle{cycle_at("c1", 1000)});
  ask(s, store::begin_cycle{cycle_at("c2", 2000)});
  ask(s, store::begin_cycle{cycle_at("c1", 9000)});
  auto end = cycle_at("c1", 1000);
  end.status = cycle_status::partial_success;
  end.dispatched = 2;
  end.succeeded = 1;
  end.failed = 1;
  end.failed_agents = {"b\"'"};
  end.agents = {{"a", "done", "fine | yes"}, {"b", "failed", "ü\n"}};
  end.duration_ms = 12;
  end.error = "x";
  end.finished_at = from_unix_ms(1500);
  ask(s, store::finish_cycle{end});
  ask(s, store::finish_cycle{end});
  REQUIRE(ask(s, store::list_cycles{"k", false, 5}) == std::vector{end});
  const auto all = ask(s, store::list_cycles{"k", true, 5});
  REQUIRE(all.size() == 2);
  REQUIRE(all[0].cycle_id == "c2");
  REQUIRE(ask(s, store::list_cycles{"k", false, 5, "c1"}) == std::vector{end});
  REQUIRE(ask(s, store::list_cycles{"k", false, 5, "c2"}).empty());
  REQUIRE(ask(s, store::list_cycles{"k", true, 5, "c2"}).size() == 1);
  REQUIRE(ask(s, store::list_cycles{"other", true, 5, "c2"}).empty());
  REQUIRE(refusal(s, store::finish_cycle{cycle_at("c3", 1)}) == errc::invalid_argument);
}

TEST_CASE(
    "case 23 clock-step: the latest cycle is the one that began last, whatever its clock said") {
  const auto w = any_world();
  auto& s = w->store();
  for (const auto& [id, at] : {std::pair{"c3", 5000}, {"c1", 9000}, {"c4", 1000}, {"c2", 9000}})
    ask(s, store::begin_cycle{cycle_at(id, at)});
  const auto listed = [&](const store::list_cycles& op) {
    std::vector<std::string> ids;
    for (const auto& c : ask(s, op))
      ids.push_back(c.cycle_id);
    return ids;
  };
  auto other = cycle_at("o1", 100);
  other.kernel_id = "o";
  ask(s, store::begin_cycle{other});
  CHECK(listed({"o", true, 5}) == std::vector<std::string>{"o1"});
  CHECK(listed({"k", true, 5}) == std::vector<std::string>{"c2", "c4", "c1", "c3"});
  // A cycle that ends, or is noted again, does not become the latest.
  for (const auto& [id, at] : {std::pair{"c3", 5000}, {"c1", 9000}, {"c4", 1000}}) {
    auto end = cycle_at(id, at);
    end.status = cycle_status::success;
    end.finished_at = end.started_at + 5ms;
    ask(s, store::finish_cycle{end});
    ask(s, store::begin_cycle{end});
  }
  CHECK(listed({"k", false, 2}) == std::vector<std::string>{"c4", "c1"});
  CHECK(listed({"k", false, 5, "", "n1"}) == std::vector<std::string>{"c4", "c1", "c3"});
}

TEST_CASE("a node finds its own slots and cycles behind any number of others'") {
  const auto w = any_world();
  auto& s = w->store();
  const auto begin = [&](int number, const std::string& node) {
    const auto at = 1000 * number;
    auto slot = slot_at(at);
    slot.node_id = node;
    REQUIRE(ask(s, store::open_occurrence{slot}).opened);
    auto cycle = cycle_at("c" + std::to_string(number), at);
    cycle.node_id = node;
    ask(s, store::begin_cycle{cycle});
    return cycle;
  };
  const auto ended = [&](cycle_record cycle) {
    cycle.status = cycle_status::success;
    cycle.finished_at = cycle.started_at + 5ms;
    ask(s, store::finish_cycle{cycle});
    ask(s, store::close_occurrence{"k", cycle.scheduled_at, occurrence_state::ran, "", ""});
    return cycle;
  };
  const auto whole = ended(begin(1, "away"));
  const auto cut = begin(2, "away");
  for (int number = 3; number < 20; ++number)
    ended(begin(number, "here"));
  const std::string any_cycle;
  REQUIRE(ask(s, store::list_cycles{"k", true, 5, any_cycle, "away"}) == std::vector{cut, whole});
  REQUIRE(ask(s, store::list_cycles{"k", true, 1, any_cycle, "away"}) == std::vector{cut});
  REQUIRE(ask(s, store::list_cycles{"k", false, 5, any_cycle, "away"}) == std::vector{whole});
  REQUIRE(ask(s, store::list_cycles{"k", true, 5, "c1", "away"}) == std::vector{whole});
  REQUIRE(ask(s, store::list_cycles{"k", true, 5, "c3", "away"}).empty());
  REQUIRE(ask(s, store::list_cycles{"other", true, 5, any_cycle, "away"}).empty());
  REQUIRE(ask(s, store::list_cycles{"k", true, 5}).at(0).node_id == "here");
  const auto slots = ask(s, store::list_occurrences{"k", {}, 5, "away"});
  REQUIRE(slots.size() == 2);
  REQUIRE(slots[0].cycle_id == "c2");
  REQUIRE(slots[0].state == occurrence_state::open);
  REQUIRE(slots[1].cycle_id == "c1");
  REQUIRE(ask(s, store::list_occurrences{"k", from_unix_ms(1500), 5, "away"}).size() == 1);
  REQUIRE(ask(s, store::list_occurrences{"k", {}, 5, "nowhere"}).empty());
}

TEST_CASE("a running cycle's row takes what a shutdown notes, a finished one does not") {
  const auto w = any_world();
  auto& s = w->store();
  const auto running_row = [&] { return ask(s, store::list_cycles{"k", true, 5}).at(0); };
  ask(s, store::begin_cycle{cycle_at("c1", 1000)});
  auto note = cycle_at("c1", 1000);
  note.dispatched = 3;
  note.succeeded = 1;
  note.failed = 1;
  note.failed_agents = {"b"};
  note.agents = {{"a", "done", "fine"}, {"b", "failed", "no"}, {"c", "pending", "goes on"}};
  note.duration_ms = 40;
  note.error = "cut short";
  ask(s, store::begin_cycle{note});
  ask(s, store::begin_cycle{note});
  REQUIRE(running_row() == note);
  REQUIRE(ask(s, store::list_cycles{"k", false, 5}).empty());
  // When, where and whose the cycle is was said at its beginning.
  auto other = note;
  other.scheduled_at = from_unix_ms(7000);
  other.started_at = from_unix_ms(7000);
  other.node_id = "n2";
  other.kernel_id = "elsewhere";
  ask(s, store::begin_cycle{other});
  REQUIRE(running_row() == note);
  auto end = note;
  end.status = cycle_status::success;
  end.succeeded = 3;
  end.failed = 0;
  end.finished_at = from_unix_ms(1500);
  ask(s, store::finish_cycle{end});
  ask(s, store::begin_cycle{note}); // e.g. repeated after a commit in doubt
  REQUIRE(running_row() == end);
}

TEST_CASE("decisions are kept once and filtered") {
  const auto w = any_world();
  auto& s = w->store();
  store::enqueue_cycle op{"k", "c1", {}, {{"a", true, "", ""}, {"b", false, "paused", "by me"}}};
  ask(s, op);
  ask(s, op);
  op.cycle_id = "c2";
  ask(s, op);
  REQUIRE(ask(s, store::list_decisions{"k", "", "", {}, 50}).size() == 4);
  const auto b = ask(s, store::list_decisions{"k", "b", "c2", {}, 50});
  REQUIRE(b.size() == 1);
  REQUIRE(b[0].decision == agent_decision{"b", false, "paused", "by me"});
  REQUIRE(ask(s, store::list_decisions{"k", "b", "", from_unix_ms(5), 50}).empty());
}

TEST_CASE("pauses, facts and nodes") {
  const auto w = any_world();
  auto& s = w->store();
  ask(s, store::set_pause{{"k", "a", "first", {}}});
  ask(s, store::set_pause{{"k", "a", "second", {}}});
  ask(s, store::set_pause{{"k2", "", "all", {}}});
  REQUIRE(ask(s, store::list_pauses{""}).size() == 2);
  const auto pauses = ask(s, store::list_pauses{"k"});
  REQUIRE(pauses.at(0).reason == "second");
  REQUIRE(to_unix_ms(pauses.at(0).since) > 0);
  REQUIRE(ask(s, store::clear_pause{"k", "a"}).cleared);
  REQUIRE(!ask(s, store::clear_pause{"k", "a"}).cleared);
  ask(s, store::put_fact{"s", "x", "1"});
  ask(s, store::put_fact{"s", "y", "2"});
  ask(s, store::put_fact{"s", "x", "3"});
  ask(s, store::put_fact{"s", "y", ""});
  REQUIRE(ask(s, store::get_facts{"s"}) == store::get_facts::reply{{"x", "3"}});
  REQUIRE(ask(s, store::get_facts{"t"}).empty());
  ask(s, store::beat{"n1", "host", 5});
  ask(s, store::beat{"n1", "host", 6});
  const auto nodes = ask(s, store::list_nodes{});
  REQUIRE(nodes.size() == 1);
  REQUIRE(nodes[0].pid == 6);
  REQUIRE(nodes[0].first_seen <= nodes[0].last_seen);
}

TEST_CASE("retention removes old finished rows in batches and nothing else") {
  const auto w = any_world();
  auto& s = w->store();
  for (int i = 1; i <= 5; ++i)
    enqueue(s, {spec(i, "a", 10, "c" + std::to_string(i))});
  for (const auto& c : claim(s, "n1", 3))
    settle(s, c, settle_to::done);
  claim(s, "n1", 1);
  auto end = cycle_at("old", 1000);
  end.status = cycle_status::success;
  end.finished_at = from_unix_ms(2000);
  ask(s, store::finish_cycle{end});
  end.cycle_id = "new";
  end.started_at = from_unix_ms(500); // by a clock that was set back
  ask(s, store::finish_cycle{end});
  REQUIRE(ask(s, store::remove_finished{1h, 5, 100}).removed == 0);
  std::uint64_t removed = 0;
  REQUIRE(w->after_span([&] {
    for (int i = 0; i < 3; ++i) {
      const auto batch = ask(s, store::remove_finished{1ms, 1, 2}).removed;
      REQUIRE(batch <= 2);
      removed += batch;
    }
    return removed >= 4;
  }));
  REQUIRE(ask(s, store::remove_finished{1ms, 1, 2}).removed == 0);
  REQUIRE(removed == 4);
  REQUIRE(ask(s, store::list_dispatches{}).size() == 2);
  REQUIRE(ask(s, store::list_cycles{"k", true, 5}).at(0).cycle_id == "new");
  REQUIRE(
      ask(s, store::count_by_status{}) ==
      store::count_by_status::reply{{dispatch_status::pending, 1}, {dispatch_status::running, 1}});
}

TEST_CASE("a node that has not been seen for long is forgotten, one that was is not") {
  const auto w = any_world();
  auto& s = w->store();
  ask(s, store::beat{"gone", "host", 1});
  ask(s, store::beat{"here", "host", 1});
  const auto removed = [&](milliseconds age, std::size_t limit) {
    return ask(s, store::remove_finished{1h, 5, limit, age}).removed;
  };
  REQUIRE(removed(1h, 100) == 0);
  REQUIRE(ask(s, store::list_nodes{}).size() == 2);
  const auto age = w->span() / 2;
  REQUIRE(w->after_span([&] {
    ask(s, store::beat{"here", "host", 1});
    return removed(age, 0) == 0 && removed(age, 100) == 1;
  }));
  REQUIRE(ask(s, store::list_nodes{}).size() == 1);
  REQUIRE(ask(s, store::list_nodes{}).at(0).node_id == "here");
}

TEST_CASE("what a node that never returns has begun is ended for it") {
  const auto w = any_world();
  auto& s = w->store();
  const auto begin = [&](const std::string& node, std::int64_t ms) {
    auto slot = slot_at(ms);
    slot.node_id = node;
    ask(s, store::open_occurrence{slot});
    auto cycle = cycle_at("of " + node, ms);
    cycle.node_id = node;
    ask(s, store::begin_cycle{cycle});
    slot.scheduled_at += 1ms; // nothing has begun in this one,
    ask(s, store::open_occurrence{slot});
    slot.scheduled_at += 1ms; // nor in this one, which is promised to somebody
    slot.cycle_id = "promised by " + node;
    ask(s, store::open_occurrence{slot});
  };
  ask(s, store::beat{"gone", "host", 1});
  for (std::int64_t ms = 1000; const char* node : {"gone", "here", "me", "unheard"})
    begin(node, ms += 1000);
  store::remove_finished look{1h, 5, 1, w->span() / 2, "me"};
  std::uint64_t ended = 0;
  REQUIRE(w->after_span([&] {
    for (int i = 0; i < 6; ++i) {
      const auto replies = s.apply({store::beat{"here", "host", 1}, look});
      REQUIRE(replies);
      const auto batch = std::get<store::remove_finished::reply>(replies->at(1)).ended;
      REQUIRE(batch <= 2); // a cycle and a slot
      ended += batch;
    }
    return ended >= 8;
  }));
  REQUIRE(ended == 8);
  for (const auto& c : ask(s, store::list_cycles{"k", true, 10})) {
    const bool lost = c.node_id == "gone" || c.node_id == "unheard";
    CHECK(c.status == (lost ? cycle_status::error : cycle_status::running));
    CHECK(c.error == (lost ? "its node " + c.node_id + " did not return" : ""));
    CHECK(c.finished_at.has_value() == lost);
  }
  int ran = 0;
  int missed = 0;
  for (const auto& o : ask(s, store::list_occurrences{"k", {}, 20})) {
    const bool lost = o.node_id == "gone" || o.node_id == "unheard";
    CHECK((o.state == occurrence_state::open) == !lost);
    ran += o.state == occurrence_state::ran ? 1 : 0;
    missed += o.state == occurrence_state::missed ? 1 : 0;
  }
  CHECK(ran == 2);
  CHECK(missed == 4);
  // It comes back after all, with its cycle at its end.
  auto late = cycle_at("of gone", 2000);
  late.node_id = "gone";
  late.status = cycle_status::success;
  late.finished_at = from_unix_ms(5000);
  ask(s, store::finish_cycle{late});
  for (const auto& c : ask(s, store::list_cycles{"k", true, 10}))
    if (c.node_id == "gone")
      CHECK(c.status == cycle_status::success);
}

TEST_CASE("a store that is not open says so") {
  const auto w = any_world();
  auto s = w->connect();
  const auto reply = s->apply({store::list_nodes{}});
  REQUIRE(!reply);
  REQUIRE(reply.error().code == errc::store_unavailable);
}

} // namespace boyd::ledger_test
