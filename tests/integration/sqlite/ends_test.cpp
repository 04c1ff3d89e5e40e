#include "sqlite_cli.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <set>

namespace boyd::ends_test {

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

constexpr std::size_t cycles = 60;
const std::vector<std::string> agents{"a", "b", "c"};

std::string id_of(std::size_t cycle, const std::string& agent) {
  return "dispatch-" + std::to_string(1000 + cycle) + "-" + agent;
}

/// A store with pending work of three agents.
class world {
 public:
  world() {
    adapters::sqlite_options o;
    o.path = path();
    o.clock = clock;
    store_ = adapters::make_sqlite_store(o);
    REQUIRE(store_->open());
    std::vector<store::operation> all;
    for (std::size_t c = 0; c < cycles; ++c) {
      store::enqueue_cycle op{"k", "cycle-" + std::to_string(c), {}, {}};
      for (const auto& a : agents) {
        dispatch_spec s;
        s.dispatch_id = id_of(c, a);
        s.kernel_id = "k";
        s.cycle_id = op.cycle_id;
        s.agent_id = a;
        op.specs.push_back(s);
      }
      all.emplace_back(std::move(op));
    }
    REQUIRE(store_->apply(all));
  }

  std::string path() const { return dir_.file("boyd.db"); }

  template <class Operation>
  auto ask(const Operation& op) {
    const auto replies = store_->apply({op});
    REQUIRE(replies);
    return std::get<typename Operation::reply>(replies->front());
  }

  /// Begins `count` of an agent's dispatches.
  std::vector<settlement> begin_some(const std::string& agent, std::size_t count) {
    std::vector<settlement> ends;
    for (const auto& r : ask(store::claim{"n", "k", agent, count, 1h}))
      ends.push_back({r.row.dispatch_id, r.row.fence, settle_to::failed, 0ms, {}});
    return ends;
  }

  /// Ends them, one second after what ended last.
  std::set<std::string> end_all(const std::vector<settlement>& ends) {
    std::set<std::string> ids;
    for (const auto& e : ends)
      ids.insert(e.dispatch_id);
    clock->advance(1s);
    ask(store::settle{"n", ends});
    return ids;
  }

  std::set<std::string> end_some(const std::string& agent, std::size_t count) {
    return end_all(begin_some(agent, count));
  }

  std::set<std::string> ended_since(utc_time since) {
    store::list_dispatches op;
    op.kernel_id = "k";
    op.finished_since = since;
    op.limit = cycles * agents.size();
    std::set<std::string> out;
    const auto rows = ask(op);
    for (const auto& d : rows)
      out.insert(d.dispatch_id);
    CHECK(out.size() == rows.size());
    return out;
  }

  std::string count_of(const std::string& table) const {
    return sqlite_cli(path(), "SELECT count(*) FROM " + table);
  }

  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();

 private:
  temp_dir dir_;
  std::unique_ptr<dispatch_store> store_;
};

} // namespace

TEST_CASE("what ended since a time is found where ranges of several times lie in each other") {
  world w;
  const auto begin = w.clock->now();
  std::vector<settlement> even;
  std::vector<settlement> odd;
  for (auto& s : w.begin_some("a", 40))
    (even.size() > odd.size() ? odd : even).push_back(std::move(s));
  const auto first = w.end_all(even);
  const auto between = w.clock->now() + 1ms;
  const auto second = w.end_all(odd);
  auto all = first;
  all.insert(second.begin(), second.end());
  CHECK(w.ended_since(begin) == all);
  CHECK(w.ended_since(between) == second);
  CHECK(w.ended_since(w.clock->now() + 1ms).empty());
  // One transaction's dispatches share their row, though others' lie between them.
  CHECK(w.count_of("dispatch_ends") == "2");

  SECTION("what is repeated has not ended, and ends anew at its own time") {
    const auto again = *first.begin();
    w.ask(store::retry_dispatch{again});
    all.erase(again);
    CHECK(w.ended_since(begin) == all);
    w.end_some("a", 1);
    const auto third = w.clock->now();
    CHECK(w.ended_since(third).size() == 1);
  }
  SECTION("far from each other they have rows of their own") {
    w.end_some("a", 2);
    w.end_some("c", 1);
    CHECK(w.count_of("dispatch_ends") == "4");
    w.ask(store::retry_dispatch{id_of(0, "a")});
    w.ask(store::retry_dispatch{id_of(19, "a")});
    // Both are due before the rest; numbers 1 and 20 are no neighbours.
    const auto ends = w.end_some("a", 2);
    CHECK(ends == std::set<std::string>{id_of(0, "a"), id_of(19, "a")});
    CHECK(w.ended_since(w.clock->now()) == ends);
  }
  SECTION("what is removed by age leaves no range behind") {
    w.clock->advance(1h);
    store::remove_finished op;
    op.age = 30min;
    op.limit = 15; // less than a range
    for (std::size_t gone = 0; gone < all.size();) {
      const auto removed = w.ask(op).removed;
      REQUIRE(removed > 0);
      gone += removed;
    }
    CHECK(w.ended_since(begin).empty());
    CHECK(w.count_of("dispatch_results") == "0");
    CHECK(w.count_of("dispatch_ends") == "0");
    CHECK(w.count_of("dispatch_requests") == std::to_string(cycles * 3 - all.size()));
  }
}

} // namespace boyd::ends_test
