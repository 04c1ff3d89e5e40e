#include "agreement.hpp"
#include "boyd/state/runtime_block.hpp"
#include "harness.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <csignal>
#include <set>

namespace boyd::signals_test {

using namespace boyd::test;

namespace {

constexpr std::size_t workers = 16;
constexpr std::size_t permits = 8;

test_settings sixteen(const std::string& grace) {
  test_settings t;
  t.node = "max_concurrent: 8, drain_grace: " + grace;
  for (std::size_t i = 0; i < workers; ++i)
    t.agents.push_back({"worker-" + std::to_string(10 + i),
                        "say began; [ -e @SITE@/go ] || sleep 600; say ended; echo done", ""});
  return t;
}

std::map<std::string, int> count_statuses(const site& s) {
  std::map<std::string, int> n;
  for (const auto& row : s.dispatches())
    ++n[row.at("status").get<std::string>()];
  return n;
}

/// After an ordered end with eight at work: everything is back, nothing was claimed on the way.
void check_given_back(const site& s) {
  CHECK(s.said("began") == permits);
  CHECK(count_statuses(s) == std::map<std::string, int>{{"pending", int{workers}}});
  for (const auto& row : s.dispatches()) {
    CHECK(row.at("attempt") == 0);
    CHECK(row.at("lease_owner") == "");
    CHECK(row.at("rescues") == 0);
  }
  for (const auto& l : s.ledger())
    CHECK_FALSE(alive(l.pid));
  const auto block = boyd::state::parse_runtime_block(s.state());
  REQUIRE(block);
  CHECK(name_of(block->latest.status) == "running");
  CHECK(block->latest.dispatched == int{workers});
  CHECK(s.state().find("stopped by shutdown, continues at the next start") != std::string::npos);
  CHECK(s.state().find("deadline") == std::string::npos);
  CHECK(s.git({"status", "--porcelain"}).empty());
}

/// Reading rows needs no time.
class no_clock final : public boyd::clock_port {
 public:
  boyd::utc_time now() const override { return boyd::from_unix_ms(1); }
  boyd::steady_time steady() const override { return {}; }
};

/// The rows of cycles of a home whose node has ended, newest first.
std::vector<boyd::cycle_record> cycle_rows(const site& s) {
  boyd::adapters::sqlite_options options;
  options.path = s.home() + "/boyd.db";
  options.create = false;
  options.clock = std::make_shared<no_clock>();
  const auto store = boyd::adapters::make_sqlite_store(options);
  REQUIRE(store->open());
  const auto replies = store->apply({boyd::store::list_cycles{"default", true, 10}});
  REQUIRE(replies);
  return std::get<std::vector<boyd::cycle_record>>(replies->front());
}

} // namespace

TEST_CASE("case 31 drain: SIGTERM gives unfinished work back unused, and the next start resumes "
          "the cycle",
          "[acceptance]") {
  const site s(sixteen("1s"));
  {
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    auto cycle = s.start_cycle();
    REQUIRE(eventually([&] { return s.said("began") == permits; }));
    node.signal(SIGTERM);
    const int code = node.wait_end();
    INFO(node.log());
    CHECK(code == 0);
    cycle.finish();
  }
  check_given_back(s);
  const auto id = s.dispatches().front().at("cycle_id").get<std::string>();

  s.open_gate("go");
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  CHECK(eventually([&] { return records_of(s, id) == 1; }));
  CHECK(count_statuses(s) == std::map<std::string, int>{{"done", int{workers}}});
  for (const auto& row : s.dispatches()) {
    CHECK(row.at("cycle_id") == id);
    CHECK(row.at("attempt") == 1);
  }
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  const auto wrong = disagreements(s);
  INFO(told(wrong));
  CHECK(wrong.empty());
}

TEST_CASE("case 31 drain: places that become free while a node drains stay empty", "[acceptance]") {
  auto settings = sixteen("60s");
  for (auto& agent : settings.agents)
    agent.script = "say began; until [ -e @SITE@/go ] || [ -e @SITE@/go-$$ ]; do sleep 0.05; done; "
                   "say ended; echo done";
  const site s(settings);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] { return s.said("began") == permits; }));
  const auto began = s.ledger();
  node.signal(SIGTERM);
  REQUIRE(eventually([&] { return node.log().find("node: stopping") != std::string::npos; }));
  // Half of them end, and the others keep the node from ending.
  for (std::size_t i = 0; i < permits / 2; ++i)
    s.open_gate("go-" + std::to_string(began.at(i).pid));
  REQUIRE(eventually([&] { return count_statuses(s)["done"] == int{permits} / 2; }));
  s.open_gate("go");
  CHECK(node.wait_end() == 0);
  cycle.finish();
  CHECK(promised(s.said("began") == permits, "a node that drains begins nothing"));
  CHECK(count_statuses(s) ==
        std::map<std::string, int>{{"done", int{permits}}, {"pending", int{workers - permits}}});
}

TEST_CASE("drain: the row of a cycle that is cut short and STATE.md say the same", "[acceptance]") {
  test_settings t;
  t.node = "max_concurrent: 8, drain_grace: 1s";
  t.agents = {{"done", "say ended; echo done", ""},
              {"broken", "say ended; exit 3", "retry: {max_attempts: 1}"},
              {"slow", "say began; [ -e @SITE@/go ] || sleep 600; echo done", ""}};
  const site s(t);
  {
    node_process node(s.home(), s.log_path());
    node.wait_ready();
    auto cycle = s.start_cycle();
    REQUIRE(eventually([&] {
      const auto rows = s.dispatches();
      return s.said("began") == 1 && std::ranges::count_if(rows, [](const auto& row) {
                                       return row.at("status") == "done" ||
                                              row.at("status") == "failed";
                                     }) == 2;
    }));
    node.signal(SIGTERM);
    CHECK(node.wait_end() == 0);
    cycle.finish();
  }
  const auto block = boyd::state::parse_runtime_block(s.state());
  REQUIRE(block);
  const auto& shown = block->latest;
  const auto rows = cycle_rows(s);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].cycle_id == shown.cycle_id);
  CHECK(rows[0].status == boyd::cycle_status::running);
  CHECK(rows[0].status == shown.status);
  CHECK(rows[0].dispatched == 3);
  CHECK(rows[0].dispatched == shown.dispatched);
  CHECK(rows[0].succeeded == 1);
  CHECK(rows[0].succeeded == shown.succeeded);
  CHECK(rows[0].failed == 1);
  CHECK(rows[0].failed == shown.failed);
  CHECK(rows[0].failed_agents == std::vector<std::string>{"broken"});
  CHECK_FALSE(rows[0].finished_at);

  s.open_gate("go");
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  CHECK(eventually([&] { return records_of(s, shown.cycle_id) == 1; }));
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  const auto ended = cycle_rows(s);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == boyd::cycle_status::partial_success);
  CHECK(ended[0].succeeded == 2);
  CHECK(ended[0].started_at == rows[0].started_at);
}

TEST_CASE("drain: a second SIGTERM does not wait for the grace", "[acceptance]") {
  // The grace is far longer than this test's patience.
  const site s(sixteen("1h"));
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  auto cycle = s.start_cycle();
  REQUIRE(eventually([&] { return s.said("began") == permits; }));
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_log("node: stopping"));
  CHECK(node.running());
  node.signal(SIGTERM);
  const int code = node.wait_end();
  INFO(node.log());
  CHECK(code == 0);
  cycle.finish();
  check_given_back(s);
}

TEST_CASE("reload: SIGHUP with a bad file keeps the old one, a good one adds an agent",
          "[acceptance]") {
  test_settings t;
  t.agents = {{"first", "say began; echo done", ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  write_file(s.home() + "/boyd.yaml", "version: 1\nkernels: [{agents: [{agent: wrong}]}]\n");
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_log("the previous one stays active"));
  CHECK(s.run({"cycle"}).code == 0);
  CHECK(s.said("began") == 1);

  t.agents.push_back({"second", "say began; echo done", ""});
  s.configure(t);
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_log("configuration reloaded"));
  CHECK(eventually([&] { return s.ask({"agents"}).at("items").size() == 2; }));
  const auto cycle = s.run({"cycle", "--json"});
  CHECK(cycle.code == 0);
  CHECK(cycle.json()["succeeded"] == 2);
  CHECK(s.said("began") == 3);
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
}

TEST_CASE("a second node on the same home ends with 5 and names the owner", "[acceptance]") {
  test_settings t;
  t.agents = {{"first", "echo done", ""}};
  const site s(t);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  const auto second = s.run({"node"});
  CHECK(second.code == 5);
  CHECK(second.err.find("process " + std::to_string(node.pid())) != std::string::npos);
  CHECK(second.err.find("started 20") != std::string::npos);
  CHECK(s.status().at("node").at("pid") == node.pid());
}

} // namespace boyd::signals_test
