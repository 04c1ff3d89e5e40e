#include "boyd/core/invariant.hpp"
#include "boyd/effects/outbox.hpp"
#include "support/pch.hpp"

namespace boyd::outbox_test {

using namespace boyd;
using namespace boyd::effects;

namespace {

constexpr utc_time t0{milliseconds{1'770'976'800'000}};

effect edges_of(const std::string& cycle) {
  effect e;
  e.kind = effect_kind::edges;
  e.cycle_id = cycle;
  e.edges = {{"exec_1", "decision_" + cycle, "decided_by", t0, R"({"agent":"a"})"}};
  return e;
}

effect history_of(const std::string& cycle) {
  effect e;
  e.cycle_id = cycle;
  e.status = cycle_status::partial_success;
  e.ended = t0;
  e.outcomes = {{t0, "a", "went \"well\"", "done"}};
  return e;
}

/// What the store has after `box` has told it.
void save(outbox& box, std::map<std::string, std::string>& store) {
  const auto changes = box.changes();
  for (const auto& [key, text] : changes)
    if (text.empty())
      store.erase(key);
    else
      store[key] = text;
  box.saved(changes);
}

void record(outbox& box, std::map<std::string, std::string>& store, std::vector<effect> fresh) {
  box.number(fresh);
  for (const auto& e : fresh)
    store[key_of(e.number)] = text_of(e);
  box.add(std::move(fresh));
}

} // namespace

TEST_CASE("effects: what is written reads back, in its order", "[effects]") {
  std::map<std::string, std::string> facts;
  std::vector<effect> all;
  for (std::uint64_t i = 1; i <= 12; ++i) {
    auto e = i % 2 == 0 ? edges_of("c" + std::to_string(i)) : history_of("c" + std::to_string(i));
    e.number = i;
    if (i == 7)
      e.behind = "git committer: no room";
    facts[key_of(i)] = text_of(e);
    all.push_back(std::move(e));
  }
  CHECK(read_effects(facts) == all);
  // What is none is left out.
  facts["x"] = "{}";
  facts[key_of(20)] = "not JSON";
  facts[key_of(21)] = R"({"kind":"unknown","cycle":"c"})";
  CHECK(read_effects(facts) == all);
  CHECK(behind_of(all) == std::vector<std::string>{"git committer: no room"});
  CHECK(behind_of(all, "c7").size() == 1);
  CHECK(behind_of(all, "c1").empty());
  auto bytes = history_of("c");
  bytes.outcomes.front().text = "\xff\xfe";
  bytes.number = 1;
  CHECK(read_effects({{key_of(1), text_of(bytes)}}).size() == 1);
}

TEST_CASE("outbox: done is removed, failed is told once, and a restart knows the rest",
          "[effects]") {
  std::map<std::string, std::string> store;
  outbox box;
  record(box, store, {edges_of("c1"), history_of("c1")});
  record(box, store, {edges_of("c2"), history_of("c2")});
  REQUIRE(box.first(effect_kind::edges)->cycle_id == "c1");
  box.done(box.first(effect_kind::edges)->number);
  const auto number = box.first(effect_kind::history)->number;
  box.failed(number, "no room");
  CHECK(box.changes().size() == 2);
  save(box, store);
  box.failed(number, "no room");
  CHECK(box.changes().empty());

  outbox next;
  next.load(read_effects(store));
  CHECK(next.open() == box.open());
  CHECK(next.open().size() == 3);
  record(next, store, {history_of("c3")});
  CHECK(next.open().back().number > number);
  while (!next.open().empty())
    next.done(next.open().front().number);
  save(next, store);
  CHECK(store.empty());
}

TEST_CASE("outbox: two effects never share a number", "[effects]") {
  outbox box;
  std::vector<effect> fresh{history_of("c1")};
  box.number(fresh);
  box.add(fresh);
  CHECK_THROWS_AS(box.add(fresh), broken_invariant);
}

TEST_CASE("outbox: what changes while the store is told is told again", "[effects]") {
  outbox box;
  std::vector<effect> fresh{history_of("c1")};
  box.number(fresh);
  box.add(fresh);
  const auto number = fresh.front().number;
  box.failed(number, "one");
  const auto sent = box.changes();
  box.failed(number, "two");
  box.saved(sent);
  REQUIRE(box.changes().size() == 1);
  CHECK(box.changes().begin()->second.find("two") != std::string::npos);
}

TEST_CASE("outbox: lost commits come before all that follow, once", "[effects]") {
  std::map<std::string, std::string> store;
  outbox box;
  record(box, store, {edges_of("c8"), history_of("c8")});
  record(box, store, {history_of("c9")});
  auto lost = history_of("c5");
  lost.behind = "gone";
  box.again({lost, history_of("c9")});
  std::vector<std::string> order;
  for (const auto& e : box.open())
    if (e.kind == effect_kind::history)
      order.push_back(e.cycle_id);
  CHECK(order == std::vector<std::string>{"c5", "c8", "c9"});
  save(box, store);
  CHECK(read_effects(store) == box.open());
}

TEST_CASE("outbox: more than it keeps waits in the store", "[effects]") {
  std::map<std::string, std::string> store;
  outbox box;
  const auto all = outbox::most_open + 10;
  for (std::size_t i = 0; i < all; ++i)
    record(box, store, {history_of("c" + std::to_string(i))});
  CHECK(box.open().size() == outbox::most_open);
  CHECK(box.is_cut());
  std::size_t done = 0;
  for (int load = 0; load < 3; ++load) {
    while (!box.open().empty()) {
      CHECK(box.open().front().cycle_id == "c" + std::to_string(done++));
      box.done(box.open().front().number);
    }
    save(box, store);
    box.load(read_effects(store));
  }
  CHECK(done == all);
  CHECK_FALSE(box.is_cut());
  CHECK(store.empty());
}

} // namespace boyd::outbox_test
