#include "sqlite_cli.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <cstdio>

namespace boyd::many_rows_test {

using namespace boyd;
using namespace boyd::test;

namespace {

class fixed_clock final : public clock_port {
 public:
  utc_time now() const override { return from_unix_ms(1'000); }
  steady_time steady() const override { return {}; }
};

adapters::sqlite_options options_for(const std::string& path) {
  adapters::sqlite_options o;
  o.path = path;
  o.clock = std::make_shared<fixed_clock>();
  return o;
}

std::string id_of(std::size_t cycle, std::size_t agent) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "dispatch-%04zu-%zu", cycle, agent);
  return text.data();
}

dispatch_spec spec_of(std::size_t cycle, std::size_t agent) {
  dispatch_spec s;
  s.dispatch_id = id_of(cycle, agent);
  s.kernel_id = "k";
  s.cycle_id = "cycle-" + std::to_string(cycle);
  s.agent_id = "agent-" + std::to_string(agent);
  s.prompt = "work";
  return s;
}

constexpr std::size_t agents = 3;

store::enqueue_cycle whole_cycle(std::size_t number) {
  store::enqueue_cycle op{"k", "cycle-" + std::to_string(number), {}, {}};
  for (std::size_t a = 0; a < agents; ++a)
    op.specs.push_back(spec_of(number, a));
  return op;
}

store::count_by_status::reply count_of(dispatch_store& s) {
  const auto replies = s.apply({store::count_by_status{}});
  REQUIRE(replies);
  return std::get<store::count_by_status::reply>(replies->front());
}

} // namespace

TEST_CASE("what stands already is passed over in the midst of many new dispatches") {
  constexpr std::size_t cycles = 100;
  constexpr std::size_t every = 7;
  temp_dir d;
  auto s = adapters::make_sqlite_store(options_for(d.file("boyd.db")));
  REQUIRE(s->open());
  std::vector<store::operation> first;
  for (std::size_t c = 0; c < cycles; c += every)
    first.emplace_back(whole_cycle(c));
  REQUIRE(s->apply(first));
  std::vector<store::operation> all;
  for (std::size_t c = 0; c < cycles; ++c)
    all.emplace_back(whole_cycle(c));
  const auto replies = s->apply(all);
  REQUIRE(replies);
  for (std::size_t c = 0; c < cycles; ++c) {
    const auto& reply = std::get<store::enqueue_cycle::reply>(replies->at(c));
    REQUIRE(reply.inserted == (c % every == 0 ? 0 : agents));
    REQUIRE(reply.dispatch_ids == std::vector<std::string>{id_of(c, 0), id_of(c, 1), id_of(c, 2)});
  }
  REQUIRE(count_of(*s) ==
          store::count_by_status::reply{{dispatch_status::pending, cycles * agents}});
  // All of them are there to be claimed, each once and in its order.
  const auto claimed = s->apply({store::claim{"n", "k", "agent-1", cycles + 1, 1h}});
  REQUIRE(claimed);
  const auto& rows = std::get<std::vector<claimed_dispatch>>(claimed->front());
  REQUIRE(rows.size() == cycles);
  std::vector<settlement> ends;
  for (const auto& r : rows)
    ends.push_back({r.row.dispatch_id, r.row.fence, settle_to::done, 0ms, {}});
  REQUIRE(std::ranges::is_sorted(ends, {}, &settlement::dispatch_id));
  REQUIRE(s->apply({store::settle{"n", ends}}));
  REQUIRE(count_of(*s) ==
          store::count_by_status::reply{{dispatch_status::pending, cycles * (agents - 1)},
                                        {dispatch_status::done, cycles}});
}

TEST_CASE("an id that another cycle has refuses its own operation from there on, and no other") {
  temp_dir d;
  auto s = adapters::make_sqlite_store(options_for(d.file("boyd.db")));
  REQUIRE(s->open());
  REQUIRE(s->apply({whole_cycle(1)}));
  auto wrong = whole_cycle(2);
  wrong.specs.at(1).dispatch_id = id_of(1, 1);
  const auto replies = s->apply({wrong, whole_cycle(3)});
  REQUIRE(replies);
  REQUIRE(std::get<error>(replies->at(0)).code == errc::already_exists);
  REQUIRE(std::get<store::enqueue_cycle::reply>(replies->at(1)).inserted == agents);
  const auto found = s->apply({store::find_dispatch{id_of(2, 0)}, store::find_dispatch{id_of(2, 2)},
                               store::find_dispatch{id_of(1, 1)}});
  REQUIRE(std::get<std::optional<dispatch>>(found->at(0)));
  REQUIRE(!std::get<std::optional<dispatch>>(found->at(1)));
  REQUIRE(std::get<std::optional<dispatch>>(found->at(2))->cycle_id == "cycle-1");
  REQUIRE(count_of(*s) ==
          store::count_by_status::reply{{dispatch_status::pending, agents * 2 + 1}});
}

TEST_CASE("what ran under the schema that had leases by text ends under its fence") {
  constexpr int leases_by_text = 5;
  temp_dir d;
  const auto path = d.file("boyd.db");
  auto old = options_for(path);
  old.migrate_to = leases_by_text;
  REQUIRE(adapters::make_sqlite_store(old)->open());
  REQUIRE(sqlite_cli(path, "INSERT INTO kernels VALUES(1, 'k'); INSERT INTO node_names VALUES(1, "
                           "'n'); INSERT INTO agents VALUES(1, 1, 'agent-0'), (2, 1, 'agent-1'), "
                           "(3, 1, 'agent-2'); INSERT INTO dispatch_requests SELECT no, "
                           "'dispatch-0001-' || (no - 1), no, 'cycle-1', 5, 3, 900, 900, '{}', "
                           "'work' FROM agents; INSERT INTO dispatch_waiting SELECT agent_no, "
                           "priority, created_at, dispatch_id, not_before, id FROM "
                           "dispatch_requests WHERE id <> 2; INSERT INTO dispatch_running SELECT "
                           "dispatch_id, id, agent_no, 1, 1, 1, 9000, 900, 1 FROM "
                           "dispatch_requests WHERE id = 2; INSERT INTO dispatch_counts "
                           "VALUES('k', 'pending', 2), ('k', 'running', 1)")
              .empty());
  auto s = adapters::make_sqlite_store(options_for(path));
  REQUIRE(s->open());
  store::list_dispatches running;
  running.status = dispatch_status::running;
  const auto before = s->apply({running});
  REQUIRE(before);
  const auto& rows = std::get<std::vector<dispatch>>(before->front());
  REQUIRE(rows.size() == 1);
  REQUIRE(rows.front().dispatch_id == id_of(1, 1));
  REQUIRE(rows.front().lease_owner == "n");
  REQUIRE(rows.front().lease_expires_at == from_unix_ms(9'000));
  const settlement stale{id_of(1, 1), 2, settle_to::done, 0ms, {}};
  const settlement end{id_of(1, 1), 1, settle_to::done, 0ms, {}};
  const auto replies = s->apply(
      {store::renew_leases{"n", {{id_of(1, 1), 1}}, 1h}, store::settle{"n", {stale, end}}});
  REQUIRE(replies);
  REQUIRE(std::get<store::renew_leases::reply>(replies->at(0)).lost.empty());
  REQUIRE(std::get<std::vector<settle_result>>(replies->at(1)) ==
          std::vector<settle_result>{settle_result::stale, settle_result::accepted});
  REQUIRE(count_of(*s) ==
          store::count_by_status::reply{{dispatch_status::pending, 2}, {dispatch_status::done, 1}});
}

} // namespace boyd::many_rows_test
