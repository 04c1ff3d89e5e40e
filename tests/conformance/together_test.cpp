#include "harness.hpp"

namespace boyd::together_test {

// Dispatches that came in together, were claimed together and then go different ways: a store may
// keep them in one place until they do.

using namespace boyd;
using namespace boyd::test;

namespace {

using strings = std::vector<std::string>;

std::unique_ptr<store_world> any_world() {
  return make_world(GENERATE(from_range(store_kinds())));
}

/// Dispatches `first` to `last` of one agent, each in its own cycle, in one transaction.
void enqueue_together(dispatch_store& s, int first, int last, const std::string& agent = "a") {
  std::vector<store::operation> batch;
  for (int i = first; i <= last; ++i) {
    const auto cycle = "c" + std::to_string(i);
    batch.emplace_back(store::enqueue_cycle{"k", cycle, {spec(i, agent, 10, cycle)}, {}});
  }
  const auto replies = s.apply(batch);
  REQUIRE(replies);
  for (const auto& r : *replies)
    REQUIRE(std::get<store::enqueue_cycle::reply>(r).inserted == 1);
}

strings ids(const std::vector<claimed_dispatch>& claimed) {
  strings out;
  for (const auto& c : claimed)
    out.push_back(c.row.dispatch_id);
  return out;
}

strings ids_of(int first, int last) {
  strings out;
  for (int i = first; i <= last; ++i)
    out.push_back(id_of(i));
  return out;
}

std::uint64_t due(dispatch_store& s) {
  const auto all = ask(s, store::due_agents{}).due;
  return all.empty() ? 0 : all.front().count;
}

} // namespace

TEST_CASE("a backlog is claimed in its order, in pieces of any size") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 130);
  enqueue_together(s, 131, 140);
  REQUIRE(due(s) == 140);
  int next = 1;
  for (const int piece : {1, 47, 2, 60, 30}) {
    REQUIRE(ids(claim(s, "n1", static_cast<std::size_t>(piece), "a")) ==
            ids_of(next, std::min(140, next + piece - 1)));
    next += piece;
  }
  REQUIRE(due(s) == 0);
  REQUIRE(ask(s, store::count_by_status{"k"}) ==
          store::count_by_status::reply{{dispatch_status::running, 140}});
}

TEST_CASE("a claim for any agent goes by age, also between what came in together") {
  const auto w = any_world();
  auto& s = w->store();
  std::vector<store::operation> batch;
  for (int i = 1; i <= 12; ++i) {
    const auto cycle = "c" + std::to_string(i);
    const std::string agent = i % 3 == 0 ? "b" : "a";
    batch.emplace_back(store::enqueue_cycle{"k", cycle, {spec(i, agent, 10, cycle)}, {}});
  }
  REQUIRE(s.apply(batch));
  REQUIRE(ids(claim(s, "n1", 4)) == ids_of(1, 4));
  REQUIRE(ids(claim(s, "n1", 1, "b")) == ids_of(6, 6));
  REQUIRE(ids(claim(s, "n1", 3)) == strings{id_of(5), id_of(7), id_of(8)});
  REQUIRE(ids(claim(s, "n1", 9)) == ids_of(9, 12));
}

TEST_CASE("claims and settlements that alternate in one batch are answered each in its turn") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 6, "a");
  enqueue_together(s, 7, 12, "b");
  const auto claim_one = [](const std::string& agent) {
    return store::operation{store::claim{"n1", "k", agent, 1, 30s}};
  };
  const auto end = [](int number, settle_to to) {
    return store::operation{store::settle{"n1", {{id_of(number), 1, to, 0ms, {}}}}};
  };
  REQUIRE(s.apply({claim_one("a"), claim_one("b")}));
  const auto replies = s.apply({end(1, settle_to::done), claim_one("a"), end(7, settle_to::failed),
                                claim_one("b"), end(2, settle_to::release), claim_one("a"),
                                end(2, settle_to::done), end(8, settle_to::done), claim_one("b")});
  REQUIRE(replies);
  const auto claimed = [&](std::size_t i) {
    return ids(std::get<std::vector<claimed_dispatch>>(replies->at(i))).at(0);
  };
  const auto settled = [&](std::size_t i) {
    return std::get<std::vector<settle_result>>(replies->at(i)).at(0);
  };
  for (const std::size_t i : {0U, 2U, 4U, 7U})
    REQUIRE(settled(i) == settle_result::accepted);
  REQUIRE(settled(6) == settle_result::already_settled);
  REQUIRE(claimed(1) == id_of(2));
  REQUIRE(claimed(3) == id_of(8));
  REQUIRE(claimed(5) == id_of(2));
  REQUIRE(claimed(8) == id_of(9));
}

TEST_CASE("a question between settlements of one batch does not see those behind it") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue(s, {spec(1, "a"), spec(2, "b"), spec(3, "c")});
  enqueue(s, {spec(4, "a", 10, "c2")});
  REQUIRE(claim(s, "n1", 10).size() == 4);
  const std::string cycle = GENERATE("c1", ""); // whether the settlement says whose it is
  const auto end = [&](int number, const std::string& of) {
    const settlement item{id_of(number), 1, settle_to::done, 0ms, {}, of};
    return store::operation{store::settle{"n1", {item}}};
  };
  const auto rows_of = [](const std::string& of) {
    store::list_dispatches list;
    list.cycle_id = of;
    return store::operation{list};
  };
  const auto replies =
      s.apply({end(1, cycle), rows_of("c1"), end(4, "c2"), end(2, cycle), rows_of("c1"),
               rows_of("c2"), store::find_dispatch{id_of(3)}, end(3, cycle), rows_of("c1")});
  REQUIRE(replies);
  const auto running = [&](std::size_t i) {
    const auto& rows = std::get<std::vector<dispatch>>(replies->at(i));
    return std::ranges::count(rows, dispatch_status::running, &dispatch::status);
  };
  for (const std::size_t i : {0U, 2U, 3U, 7U})
    REQUIRE(std::get<std::vector<settle_result>>(replies->at(i)).at(0) == settle_result::accepted);
  CHECK(running(1) == 2);
  CHECK(running(4) == 1);
  CHECK(running(5) == 0);
  CHECK(std::get<std::optional<dispatch>>(replies->at(6)).value().status ==
        dispatch_status::running);
  CHECK(running(8) == 0);
}

TEST_CASE("what comes in and its claims may be one transaction") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 1, "b");
  auto asked = spec(2, "a", 10, "c2");
  // PostgreSQL does not take a text with the last of these as it is.
  asked.prompt =
      GENERATE(std::string(12, 'p'), std::string(20'000, 'p'), std::string(20'000, 'p') + "\xff");
  asked.metadata_json = GENERATE("{}", R"({"v": [1, "two"],  "a": 1.50})");
  asked.max_attempts = 7;
  const auto replies =
      s.apply({store::enqueue_cycle{"k", "c2", {asked}, {}},
               store::enqueue_cycle{"k", "c3", {spec(3, "b", 10, "c3")}, {}},
               store::claim{"n1", "k", "a", 1, 30s}, store::claim{"n1", "k", "b", 1, 30s}});
  REQUIRE(replies);
  REQUIRE(replies->size() == 4);
  CHECK(std::get<store::enqueue_cycle::reply>((*replies)[0]).inserted == 1);
  const auto& of_a = std::get<store::claim::reply>((*replies)[2]);
  REQUIRE(ids(of_a) == ids_of(2, 2));
  const auto stands = row(s, id_of(2));
  const auto& claimed = of_a.front().row;
  CHECK(claimed.prompt == stands.prompt);
  CHECK(claimed.prompt.starts_with(asked.prompt.substr(0, asked.prompt.size() - 1)));
  CHECK(claimed.cycle_id == "c2");
  CHECK(claimed.max_attempts == 7);
  CHECK(nlohmann::json::parse(claimed.metadata_json) == nlohmann::json::parse(asked.metadata_json));
  CHECK(claimed.created_at == stands.created_at);
  CHECK(claimed.fence == 1);
  CHECK(claimed.attempt == 1);
  // The one that waited before goes first.
  REQUIRE(ids(std::get<store::claim::reply>((*replies)[3])) == ids_of(1, 1));
  CHECK(due(s) == 1);
  CHECK(settle(s, of_a.front(), settle_to::done) == settle_result::accepted);
  CHECK(ask(s, store::count_by_status{"k"}) ==
        store::count_by_status::reply{{dispatch_status::pending, 1},
                                      {dispatch_status::running, 1},
                                      {dispatch_status::done, 1}});
}

TEST_CASE("one of many that wait together is cancelled, and comes back to its place") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 9);
  for (const int gone : {1, 5, 9})
    REQUIRE(ask(s, store::cancel_dispatch{id_of(gone)}).result == settle_result::accepted);
  REQUIRE(due(s) == 6);
  REQUIRE(ask(s, store::retry_dispatch{id_of(5)}).result == settle_result::accepted);
  REQUIRE(ids(claim(s, "n1", 5, "a")) == ids_of(2, 6));
  REQUIRE(ids(claim(s, "n1", 5, "a")) == ids_of(7, 8));
  REQUIRE(ask(s, store::count_by_status{"k"}) ==
          store::count_by_status::reply{{dispatch_status::running, 7},
                                        {dispatch_status::cancelled, 2}});
}

TEST_CASE("what is claimed is what was asked for, however many waited together") {
  const auto w = any_world();
  auto& s = w->store();
  const strings texts{"plain", "", "NULL", "{a,\"b\"}", "back\\slash\ttab\r\n\nline, ü and '",
                      "\n"};
  constexpr int most = 120;
  std::vector<store::operation> batch;
  for (int i = 1; i <= most; ++i) {
    auto one = spec(i, "a", 10, "c" + std::to_string(i));
    const auto kind = static_cast<std::size_t>(i);
    one.prompt = texts[kind % texts.size()] + (i % 17 == 0 ? std::string(5000, 'x') : "");
    one.metadata_json = i > 30 && i < 40 ? R"({"n":[1,"two"]})" : "{}";
    one.max_attempts = i > 35 ? 5 : 3;
    batch.emplace_back(store::enqueue_cycle{"k", one.cycle_id, {one}, {}});
  }
  REQUIRE(s.apply(batch));
  for (const int gone : {1, 34, most})
    REQUIRE(ask(s, store::cancel_dispatch{id_of(gone)}).result == settle_result::accepted);
  REQUIRE(ask(s, store::retry_dispatch{id_of(34)}).result == settle_result::accepted);
  std::size_t seen = 0;
  for (const std::size_t piece : {1U, 50U, 7U, 100U})
    for (const auto& c : claim(s, "n1", piece, "a")) {
      ++seen;
      auto expected = row(s, c.row.dispatch_id);
      const auto& asked = std::get<store::enqueue_cycle>(
          batch[static_cast<std::size_t>(std::stoi(expected.cycle_id.substr(1))) - 1]);
      REQUIRE(c.row.dispatch_id == asked.specs[0].dispatch_id);
      REQUIRE(c.row.cycle_id == asked.cycle_id);
      REQUIRE(c.row.prompt == asked.specs[0].prompt);
      REQUIRE(c.row.max_attempts == asked.specs[0].max_attempts);
      REQUIRE(c.row.prompt == expected.prompt);
      REQUIRE(c.row.metadata_json == expected.metadata_json);
      REQUIRE(c.row.max_attempts == expected.max_attempts);
      REQUIRE(c.row.priority == expected.priority);
      REQUIRE(c.row.created_at == expected.created_at);
      REQUIRE(c.row.fence == expected.fence);
      REQUIRE(c.row.attempt == expected.attempt);
    }
  REQUIRE(seen == most - 2);
}

TEST_CASE("a renewal prolongs the leases that it names, and no other of the same claim") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 6);
  REQUIRE(claim(s, "n1", 6, "a", w->span()).size() == 6);
  store::renew_leases renew{"n1", {{id_of(2), 1}, {id_of(5), 1}, {id_of(6), 2}}, 1h};
  REQUIRE(ask(s, renew).lost == strings{id_of(6)});
  REQUIRE(w->after_span([&] {
    return ask(s, store::rescue_expired{}).returned ==
           strings{id_of(1), id_of(3), id_of(4), id_of(6)};
  }));
  renew.items = {{id_of(1), 1}, {id_of(2), 1}, {id_of(5), 1}};
  REQUIRE(ask(s, renew).lost == strings{id_of(1)});
  const settlement kept{id_of(2), 1, settle_to::done, 0ms, {}};
  const settlement late{id_of(3), 1, settle_to::done, 0ms, {}};
  REQUIRE(ask(s, store::settle{"n1", {kept, late}}) ==
          std::vector{settle_result::accepted, settle_result::stale});
}

TEST_CASE("what was claimed together ends in every way, under its own fence") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 6);
  REQUIRE(claim(s, "n1", 6, "a").size() == 6);
  const auto item = [](int number, settle_to to) {
    return settlement{id_of(number), 1, to, 0ms, {}};
  };
  const auto ends = store::settle{"n1",
                                  {item(1, settle_to::done), item(2, settle_to::failed),
                                   item(3, settle_to::retry), item(4, settle_to::release)}};
  REQUIRE(ask(s, ends) == std::vector(4, settle_result::accepted));
  REQUIRE(ask(s, ends) == std::vector(4, settle_result::already_settled));
  REQUIRE(ask(s, store::take_back{"n1"}).returned == ids_of(5, 6));
  const auto again = claim(s, "n2", 9, "a");
  REQUIRE(ids(again) == ids_of(3, 6));
  for (const auto& c : again)
    REQUIRE(c.row.fence == 2);
  REQUIRE(again[0].row.attempt == 2);
  REQUIRE(again[1].row.attempt == 1);
  REQUIRE(again[2].row.rescues == 1);
  REQUIRE(ask(s, store::settle{"n1", {item(5, settle_to::done)}}) ==
          std::vector{settle_result::stale});
  store::list_dispatches list;
  list.kernel_id = "k";
  list.status = dispatch_status::running;
  REQUIRE(ask(s, list).size() == 4);
}

TEST_CASE("another connection settles, renews and takes back what the first one claimed") {
  const auto w = any_world();
  if (!w->shared())
    return;
  enqueue_together(w->store(), 1, 5);
  REQUIRE(claim(w->store(), "n1", 5, "a").size() == 5);
  const auto other = w->connect();
  REQUIRE(other->open());
  const settlement done{id_of(2), 1, settle_to::done, 0ms, {}};
  REQUIRE(ask(*other, store::settle{"n1", {done, done}}) ==
          std::vector{settle_result::accepted, settle_result::already_settled});
  REQUIRE(ask(*other, store::renew_leases{"n1", {{id_of(2), 1}, {id_of(3), 1}}, 1h}).lost ==
          strings{id_of(2)});
  REQUIRE(ask(*other, store::take_back{"n1", 3, 2}).returned == strings{id_of(1), id_of(3)});
  const settlement mine{id_of(3), 1, settle_to::done, 0ms, {}};
  const settlement held{id_of(4), 1, settle_to::done, 0ms, {}};
  REQUIRE(ask(w->store(), store::settle{"n1", {mine, held}}) ==
          std::vector{settle_result::stale, settle_result::accepted});
}

TEST_CASE("a batch that repeats what stands already inserts what is new") {
  const auto w = any_world();
  auto& s = w->store();
  enqueue_together(s, 1, 3);
  std::vector<store::operation> batch;
  for (const int cycle : {2, 4, 3, 5, 5}) {
    const auto name = "c" + std::to_string(cycle);
    batch.emplace_back(store::enqueue_cycle{
        "k", name, {spec(100 + static_cast<int>(batch.size()), "a", 10, name)}, {}});
  }
  batch.emplace_back(store::put_fact{"scope", "key", "value"});
  const auto replies = s.apply(batch);
  REQUIRE(replies);
  strings got;
  for (std::size_t i = 0; i < 5; ++i)
    got.push_back(std::get<store::enqueue_cycle::reply>(replies->at(i)).dispatch_ids.at(0));
  REQUIRE(got == strings{id_of(2), id_of(101), id_of(3), id_of(103), id_of(103)});
  REQUIRE(due(s) == 5);
}

} // namespace boyd::together_test
