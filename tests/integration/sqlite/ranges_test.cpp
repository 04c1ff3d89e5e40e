#include "sqlite_cli.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>

namespace boyd::ranges_test {

// What waits alike is one row, what was claimed together is one row; whoever goes another way
// leaves it. The database is read with another program: its view must say the same.

using namespace boyd;
using namespace boyd::test;

namespace {

class manual_clock final : public clock_port {
 public:
  utc_time now() const override { return now_; }
  steady_time steady() const override { return {}; }
  void advance(milliseconds by) { now_ += by; }

 private:
  utc_time now_ = from_unix_ms(1'000);
};

using strings = std::vector<std::string>;

std::string id_of(int number) {
  return "dispatch-" + std::to_string(1000 + number);
}

class world {
 public:
  world() {
    adapters::sqlite_options o;
    o.path = dir_.file("boyd.db");
    o.clock = clock;
    store_ = adapters::make_sqlite_store(o);
    REQUIRE(store_->open());
  }

  std::vector<store::any_reply> apply(const std::vector<store::operation>& batch) {
    auto replies = store_->apply(batch);
    REQUIRE(replies);
    return std::move(*replies);
  }

  template <class Operation>
  auto ask(const Operation& op) {
    return std::get<typename Operation::reply>(apply({op}).front());
  }

  /// Dispatches of one agent with these numbers, in one transaction and in this order.
  void enqueue(const std::vector<int>& numbers, const std::string& agent = "a") {
    std::vector<store::operation> batch;
    for (const auto n : numbers) {
      dispatch_spec s;
      s.dispatch_id = id_of(n);
      s.kernel_id = "k";
      s.cycle_id = "cycle-" + id_of(n);
      s.agent_id = agent;
      batch.emplace_back(store::enqueue_cycle{"k", s.cycle_id, {s}, {}});
    }
    apply(batch);
  }

  strings claim(std::size_t limit, const std::string& agent = "a") {
    strings ids;
    for (const auto& c : ask(store::claim{"n", "k", agent, limit, 1h}))
      ids.push_back(c.row.dispatch_id);
    return ids;
  }

  settle_result settle(int number, settle_to to = settle_to::done, std::int64_t fence = 1) {
    return ask(store::settle{"n", {{id_of(number), fence, to, 0ms, {}}}}).front();
  }

  std::string read(const std::string& sql) const { return sqlite_cli(dir_.file("boyd.db"), sql); }
  std::string rows_of(const std::string& table) const {
    return read("SELECT count(*) FROM " + table);
  }
  /// The numbers of the dispatches of a status, as the view has them.
  std::string numbers(const std::string& status) const {
    return read("SELECT group_concat(n) FROM (SELECT substr(dispatch_id, 10) - 1000 AS n FROM "
                "dispatches WHERE status = '" +
                status + "' ORDER BY 1)");
  }

  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();

 private:
  temp_dir dir_;
  std::unique_ptr<dispatch_store> store_;
};

strings ids(const std::vector<int>& numbers) {
  strings out;
  for (const auto n : numbers)
    out.push_back(id_of(n));
  return out;
}

} // namespace

TEST_CASE("what came in together waits and runs in one row, in whatever order it was asked for") {
  world w;
  w.enqueue({5, 3, 1, 4, 2, 6});
  CHECK(w.rows_of("dispatch_waiting") == "1");
  CHECK(w.claim(2) == ids({1, 2}));
  CHECK(w.claim(3) == ids({3, 4, 5}));
  CHECK(w.rows_of("dispatch_waiting") == "1");
  CHECK(w.rows_of("dispatch_running") == "2");
  CHECK(w.numbers("pending") == "6");
  CHECK(w.numbers("running") == "1,2,3,4,5");

  SECTION("one in the middle ends, the others run on") {
    CHECK(w.settle(4) == settle_result::accepted);
    CHECK(w.settle(4) == settle_result::already_settled);
    CHECK(w.rows_of("dispatch_running") == "3");
    CHECK(w.numbers("running") == "1,2,3,5");
    for (const auto n : {5, 1, 3, 2})
      CHECK(w.settle(n) == settle_result::accepted);
    CHECK(w.rows_of("dispatch_running") == "0");
    CHECK(w.numbers("done") == "1,2,3,4,5");
  }
  SECTION("one that is given back waits alone, and is the first again") {
    CHECK(w.settle(4, settle_to::retry) == settle_result::accepted);
    CHECK(w.numbers("pending") == "4,6");
    CHECK(w.rows_of("dispatch_waiting") == "2");
    CHECK(w.claim(1) == ids({4}));
    CHECK(w.settle(4) == settle_result::already_settled);
    CHECK(w.settle(4, settle_to::done, 2) == settle_result::accepted);
    CHECK(w.claim(5) == ids({6}));
  }
  SECTION("a lease that is renewed leaves the others as they are") {
    w.clock->advance(10min);
    CHECK(w.ask(store::renew_leases{"n", {{id_of(4), 1}, {id_of(4), 1}, {id_of(5), 2}}, 2h}).lost ==
          ids({5}));
    CHECK(w.rows_of("dispatch_running") == "4");
    w.clock->advance(1h);
    CHECK(w.ask(store::rescue_expired{"m", 3, 10}).returned == ids({1, 2, 3, 5}));
    CHECK(w.numbers("running") == "4");
    CHECK(w.settle(4) == settle_result::accepted);
  }
  SECTION("renewed together they stay together") {
    store::renew_leases all{"n", {}, 2h};
    for (const auto n : {5, 2, 4, 1, 3})
      all.items.push_back({id_of(n), 1});
    CHECK(w.ask(all).lost.empty());
    CHECK(w.rows_of("dispatch_running") == "2");
    CHECK(w.read("SELECT DISTINCT lease_expires_at FROM dispatches WHERE status = 'running'") ==
          std::to_string(1'000 + 2 * 3600 * 1000));
  }
}

TEST_CASE("what waits at one time is claimed by its ids, whichever transaction brought it") {
  world w;
  w.enqueue({1, 4, 7, 10});
  w.enqueue({2, 5, 8, 11});
  w.enqueue({3, 6, 9, 12}, "b");
  CHECK(w.rows_of("dispatch_waiting") == "3");
  CHECK(w.claim(3) == ids({1, 2, 4}));
  CHECK(w.claim(4, "") == ids({3, 5, 6, 7}));
  w.clock->advance(1ms);
  w.enqueue({0});
  CHECK(w.claim(2) == ids({8, 10}));
  CHECK(w.claim(9) == ids({11, 0}));
  CHECK(w.claim(9, "") == ids({9, 12}));
  CHECK(w.rows_of("dispatch_waiting") == "0");
}

TEST_CASE("what is cancelled leaves its row, from its end, its middle and its begin") {
  world w;
  w.enqueue({1, 2, 3, 4, 5, 6});
  for (const auto n : {6, 3, 1})
    CHECK(w.ask(store::cancel_dispatch{id_of(n)}).result == settle_result::accepted);
  CHECK(w.rows_of("dispatch_waiting") == "2");
  CHECK(w.numbers("pending") == "2,4,5");
  CHECK(w.ask(store::due_agents{}).due.front().count == 3);
  CHECK(w.claim(9) == ids({2, 4, 5}));
  // Two rows of the queue are one claim; numbers that do not follow each other run in two.
  CHECK(w.rows_of("dispatch_running") == "2");
  CHECK(w.ask(store::take_back{"n", 3, 10}).returned == ids({2, 4, 5}));
  CHECK(w.rows_of("dispatch_running") == "0");
  CHECK(w.claim(2) == ids({2, 4}));
}

TEST_CASE("a repeat in the midst of what is new leaves rows of one kind together") {
  world w;
  w.enqueue({3});
  w.enqueue({1, 2, 3, 4, 5});
  CHECK(w.numbers("pending") == "1,2,3,4,5");
  CHECK(w.claim(4) == ids({1, 2, 3, 4}));
  CHECK(w.claim(4) == ids({5}));
}

TEST_CASE("what a list by status leaves out of all rows is the same, however many of them wait") {
  const bool many = GENERATE(false, true);
  world w;
  w.enqueue({1, 2, 3, 4, 5, 6});
  w.enqueue({7, 8, 9}, "b");
  REQUIRE(w.claim(4) == ids({1, 2, 3, 4}));
  CHECK(w.settle(1, settle_to::failed) == settle_result::accepted);
  CHECK(w.settle(2) == settle_result::accepted);
  CHECK(w.settle(3, settle_to::retry) == settle_result::accepted);
  std::vector<int> more;
  for (int n = 1000; many && n < 12'000; ++n)
    more.push_back(n);
  w.enqueue(more, "c");
  store::list_dispatches every;
  every.limit = 20'000;
  const auto all = w.ask(every);
  for (const auto status :
       {dispatch_status::pending, dispatch_status::running, dispatch_status::done,
        dispatch_status::failed, dispatch_status::cancelled})
    for (const std::string agent : {"", "a", "b", "x"})
      for (const auto& not_agents : {strings{}, strings{"b", "c"}})
        for (const std::string before : {"", "dispatch-1006"})
          for (const std::size_t limit : {std::size_t{2}, std::size_t{20'000}}) {
            store::list_dispatches op;
            op.agent_id = agent;
            op.status = status;
            op.before = before;
            op.limit = limit;
            op.not_agent_ids = not_agents;
            strings expected;
            for (const auto& d : all)
              if (d.status == status && (agent.empty() || d.agent_id == agent) &&
                  std::ranges::find(not_agents, d.agent_id) == not_agents.end() &&
                  (before.empty() || d.dispatch_id < before) && expected.size() < limit)
                expected.push_back(d.dispatch_id);
            strings got;
            for (const auto& d : w.ask(op))
              got.push_back(d.dispatch_id);
            INFO(name_of(status) << " of " << agent << " before " << before);
            CHECK(got == expected);
          }
  store::list_dispatches other;
  other.kernel_id = "other";
  other.status = dispatch_status::pending;
  CHECK(w.ask(other).empty());
}

} // namespace boyd::ranges_test
