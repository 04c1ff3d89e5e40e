#include "harness.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"

#include <csignal>
#include <filesystem>

namespace boyd::honest_answers_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

test_settings one_worker(const std::string& store = "sqlite") {
  test_settings t;
  t.node = "max_concurrent: 4, drain_grace: 60s, store: \"" + store + "\"";
  t.agents = {{"worker", "say began; echo done", ""}};
  return t;
}

/// A worker that ends when the gate opens.
test_settings held_worker() {
  auto t = one_worker();
  t.agents = {{"worker", "say began; wait_for go; echo done", ""}};
  return t;
}

void damage(const std::string& database) {
  for (const char* more : {"-wal", "-shm"})
    fs::remove(database + more);
  write_file(database, std::string(8192, 'x'));
}

nlohmann::json named(const nlohmann::json& rows, const std::string& name) {
  for (const auto& row : rows)
    if (row.value("name", "") == name)
      return row;
  return nullptr;
}

/// Nothing that was not read is shown as a number, and the cause comes first.
void check_unknown(const site& s, const std::string& cause) {
  const auto r = s.run({"status", "--json"});
  INFO(r.out << r.err);
  REQUIRE(r.code == 0);
  const auto status = r.json();
  for (const char* key : {"pending", "running", "done", "failed", "cancelled"})
    CHECK(status.at("queue").at(key).is_null());
  CHECK(status.at("agents")[0].at("last_status").is_null());
  CHECK(status.at("agents")[0].at("paused").is_null());
  CHECK(status.at("nodes").is_null());
  const auto store = named(status.at("health"), "store");
  CHECK(store.at("ok") == false);
  CHECK_THAT(store.at("reason").get<std::string>(), Contains(cause));
  REQUIRE_FALSE(status.at("problems").empty());
  CHECK_THAT(status.at("problems")[0].get<std::string>(), Contains(cause));
  const auto text = s.run({"status"}).out;
  CHECK_THAT(text, Contains("needs attention"));
  CHECK_THAT(text, Contains(cause));
  CHECK_THAT(text, Contains("queue  pending unknown  running unknown  done unknown"));
  CHECK_THAT(text, Contains("worker  0/1     unknown  unknown"));
}

/// The command names the cause and what to do, well before the 30 s that a part may be silent.
void check_refused_cycle(const site& s, const std::string& cause, const std::string& next) {
  const auto r = s.run({"cycle"});
  INFO(r.out << r.err);
  CHECK(r.code == 1);
  CHECK_THAT(r.err, Contains(cause));
  CHECK_THAT(r.err, Contains("next: " + next));
  CHECK_THAT(r.err, !Contains("no answer in time"));
}

} // namespace

TEST_CASE("without a node a damaged database is no empty queue", "[acceptance]") {
  const site s(one_worker());
  REQUIRE(s.run({"cycle"}).code == 0);
  damage(s.home() + "/boyd.db");
  check_unknown(s, "the database is unreadable or damaged");
  check_refused_cycle(s, "the database is unreadable or damaged", "try again and check the disk");
}

TEST_CASE("without a node a PostgreSQL that is down is no empty queue", "[acceptance]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const site s(one_worker(server->make_database()));
  REQUIRE(s.run({"cycle"}).code == 0);
  server->stop();
  check_unknown(s, "127.0.0.1");
  check_refused_cycle(s, "connection to server", "start the database");
  server->start();
  CHECK(s.run({"cycle"}).code == 0);
}

TEST_CASE("a running node whose database file was moved away says what it does not know",
          "[acceptance]") {
  const site s(one_worker());
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  REQUIRE(s.run({"cycle"}).code == 0);
  CHECK(named(s.run({"doctor", "--json"}).json().at("checks"), "store").at("state") == "ok");
  const auto database = s.home() + "/boyd.db";
  fs::rename(database, s.outside("away"));
  check_unknown(s, "missing or was replaced");
  const auto doctor = s.run({"doctor", "--json"});
  INFO(doctor.out);
  CHECK(doctor.code == 1);
  const auto store = named(doctor.json().at("checks"), "store");
  CHECK(store.at("state") == "fail");
  CHECK_THAT(store.at("what").get<std::string>(), Contains(database + " is missing"));
  CHECK_THAT(store.at("next").get<std::string>(), Contains("restore the file"));
  check_refused_cycle(s, "missing or was replaced", "restore it, then try again");
  fs::rename(s.outside("away"), database);
  CHECK(eventually([&] { return s.run({"doctor"}).code == 0; }));
  CHECK(s.status().at("queue").at("done") == 1);
  CHECK(s.status().at("problems").empty());
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
}

TEST_CASE("a drain is to be seen, and what is asked for meanwhile is refused as busy",
          "[acceptance]") {
  const site s(held_worker());
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  program cycle({boyd_binary(), "--home", s.home(), "cycle"});
  REQUIRE(eventually([&] { return s.said("began") == 1; }));
  CHECK(s.status().at("node").at("state") == "running");
  node.signal(SIGTERM);
  REQUIRE(node.wait_for_log("node: stopping"));
  const auto status = s.status();
  CHECK(status.at("node").at("state") == "draining");
  REQUIRE(status.at("problems").size() == 1);
  CHECK_THAT(status.at("problems")[0].get<std::string>(), Contains(" for 1 running attempt"));
  const auto text = s.run({"status"}).out;
  CHECK_THAT(text, Contains("  stopping as process "));
  CHECK_THAT(text, Contains("! Stopping: waiting up to "));
  const auto doctor = s.run({"doctor"}); // it asks /readyz, which answers 503
  CHECK_THAT(doctor.out, Contains("is running, but: stopping"));
  const auto refused = s.run({"cycle"});
  CHECK(refused.code == 5);
  CHECK_THAT(refused.err, Contains("the node is shutting down"));
  s.open_gate("go");
  CHECK(node.wait_end() == 0);
  cycle.finish();
}

TEST_CASE("a configuration that does not load any more is to be seen until it does",
          "[acceptance]") {
  const site s(one_worker());
  const auto file = s.home() + "/boyd.yaml";
  const auto good = read_file(file);
  node_process node(s.home(), s.log_path());
  node.wait_ready();
  CHECK(s.status().at("problems").empty());
  write_file(file, "version: 1\nnonsense: true\n");
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_log("the previous one stays active"));
  const auto text = s.run({"status"}).out;
  INFO(text);
  CHECK_THAT(text, Contains("! boyd.yaml has errors; the node keeps the previous configuration"));
  CHECK_THAT(text, Contains("boyd.yaml:1:1: ") && Contains("(and 1 more: boyd --home ") &&
                       Contains(" config validate)"));
  const auto checks = s.run({"doctor", "--json"}).json().at("checks");
  CHECK(named(checks, "store").at("state") == "ok");
  CHECK_THAT(named(checks, "kernels").at("what").get<std::string>(), Contains("not checked"));
  write_file(file, good);
  node.signal(SIGHUP);
  REQUIRE(node.wait_for_log("configuration reloaded"));
  CHECK(s.status().at("problems").empty());
  node.signal(SIGTERM);
  CHECK(node.wait_end() == 0);
  write_file(file, "version: 1\nnonsense: true\n");
  const auto idle = s.run({"doctor", "--json"}).json().at("checks");
  CHECK_THAT(named(idle, "store").at("what").get<std::string>(), Contains("not checked"));
}

TEST_CASE("without a node there is no process and no start", "[acceptance]") {
  const site s(one_worker());
  const auto node = s.status().at("node");
  CHECK(node.at("state") == "stopped");
  CHECK(node.at("pid").is_null());
  CHECK(node.at("started_at").is_null());
}

} // namespace boyd::honest_answers_test
