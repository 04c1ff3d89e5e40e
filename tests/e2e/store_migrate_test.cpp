#include "../integration/sqlite/sqlite_cli.hpp"
#include "program.hpp"
#include "stored_home.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"

#include <csignal>
#include <filesystem>
#include <map>

/// A store is moved whole, to the other kind and back, also when it is ended in the middle.
namespace boyd::test {

namespace {

using Catch::Matchers::Contains;

std::string moving_yaml(const std::string& store) {
  return stored_yaml(
      store,
      "      - {agent_id: good, executor: {type: command, argv: [printf, 'a\\\\tb\\\\n\\\\\\\\ "
      "€ 😀']}}\n"
      "      - {agent_id: bad, executor: {type: command, argv: [\"false\"]}}\n"
      "      - {agent_id: idle, wake: {argv: [\"true\"]}, executor: {type: command, argv: "
      "[\"true\"]}}\n");
}

/// What every kind of store answers with the same words.
const std::vector<std::pair<std::string, std::string>> shared_questions{
    {"dispatches",
     "SELECT d.dispatch_id, d.kernel_id, d.agent_id, d.cycle_id, d.prompt, d.priority, d.status, "
     "d.attempt, d.fence, d.created_at, d.started_at, d.finished_at, d.rescues, d.execution, "
     "d.failure_class, d.exit_code, d.summary, d.error, d.output FROM dispatches d ORDER BY 1"},
    {"occurrences", "SELECT kernel_id, scheduled_at, trigger, state, reason, cycle_id, node_id, "
                    "created_at, finished_at FROM occurrences ORDER BY 1, 2"},
    {"cycles", "SELECT cycle_id, kernel_id, status, dispatched, succeeded, failed, error, "
               "started_at, finished_at, no FROM cycles ORDER BY 1"},
    {"decisions", "SELECT kernel_id, cycle_id, agent_id, decided_at, reason, detail FROM decisions "
                  "ORDER BY 1, 2, 3"},
    {"pauses", "SELECT kernel_id, agent_id, reason, since FROM pauses ORDER BY 1, 2"},
    {"facts", "SELECT scope, key, value FROM facts WHERE scope <> 'store' ORDER BY 1, 2"},
    {"nodes", "SELECT node_id, host, pid, first_seen, last_seen FROM nodes ORDER BY 1"},
    {"spend", "SELECT call_id, day, dispatch_id, model, input, output, cost, release_reason, "
              "released_cost FROM spend "
              "ORDER BY 1"},
    {"spend_totals", "SELECT day, scope, tokens, cost FROM spend_totals ORDER BY 1, 2"},
    {"approvals", "SELECT approval_id, state, shown, created_at, decided_at, lines FROM approvals "
                  "ORDER BY 1"},
    {"approval_trail", "SELECT approval_id, number, at, what, outcome, by_whom, detail FROM "
                       "approval_trail ORDER BY 1, 2"}};

/// A home and a database of the server, of which one is in use.
struct moving_lab {
  explicit moving_lab(postgres_server& s) : server(s), uri(s.make_database()) {}

  std::string ask(const std::string& store, const std::string& sql) const {
    return store == "sqlite" ? sqlite_cli(home.file("boyd.db"), sql)
                             : server.query(uri, "SET search_path TO boyd; " + sql);
  }

  std::map<std::string, std::string> content(const std::string& store) const {
    std::map<std::string, std::string> all;
    for (const auto& [name, sql] : shared_questions) {
      auto text = ask(store, sql);
      if (text.starts_with("SET"))
        text.erase(0, text.find('\n') == std::string::npos ? text.size() : text.find('\n') + 1);
      all[name] = text;
    }
    return all;
  }

  /// Rows that no cycle here makes.
  void fill(const std::string& store) const {
    const std::string many =
        store == "sqlite" ? "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                            "WHERE i < 20000) SELECT 'many', 'key ' || i, 'value ' || i FROM n"
                          : "SELECT 'many', 'key ' || i, 'value ' || i FROM "
                            "generate_series(1, 20000) i";
    ask(store, "INSERT INTO facts(scope, key, value) " + many);
    const std::string scopes =
        store == "sqlite" ? "'[\\\"node:a\\\",\\\"agent:b c\\\"]'" : "ARRAY['node:a','agent:b c']";
    ask(store, "INSERT INTO spend VALUES('call/1','2026-02-13',5,NULL,'d','k','a','p','m',1,2,3,4,"
               "1000000," +
                   scopes + ",9,'somebody','why',1,2)");
    ask(store, "INSERT INTO spend_totals VALUES('2026-02-13','node:a',4,1000000)");
    ask(store, "INSERT INTO approvals VALUES('ap1','default','good','d','run_command','s','/w','b',"
               "'shown','m','h','why','n',1,0,'approved',5,6,7,'somebody','note',NULL,'','',2)");
    ask(store, "INSERT INTO approval_trail VALUES('ap1',1,5,'asked','ok','n','')");
  }

  postgres_server& server;
  std::string uri;
  home_of_boyd home{moving_yaml("sqlite")};
};

} // namespace

TEST_CASE("case W9: a store is moved to the other kind and back, every row of it", "[store]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const moving_lab l(*server);
  REQUIRE(l.home.run({"cycle"}).code == 3);
  REQUIRE(l.home.run({"cycle"}).code == 3);
  REQUIRE(l.home.run({"pause", "--agent", "good", "--reason", "a\tb 'c' €"}).code == 0);
  l.fill("sqlite");
  const auto before = l.content("sqlite");
  for (const auto& [name, text] : before) {
    INFO(name);
    CHECK_FALSE((name != "nodes" && text.empty()));
  }
  const auto moved = l.home.run({"store", "migrate", "sqlite", l.uri});
  CAPTURE(moved.out, moved.err);
  REQUIRE(moved.code == 0);
  CHECK_THAT(moved.out, Contains("are equal") && Contains("set node.store: " + l.uri));
  for (const auto& [name, text] : l.content(l.uri)) {
    INFO(name);
    CHECK(text == before.at(name));
  }
  // Nobody goes on with the old one by accident, and once more changes nothing.
  const auto old = l.home.run({"status"});
  CHECK(old.code == 4);
  CHECK_THAT(old.err, Contains("was moved to " + l.uri));
  CHECK_THAT(l.home.run({"store", "migrate", "sqlite", l.uri}).out, Contains("already"));
  l.home.write_configuration(moving_yaml(l.uri));
  CHECK_THAT(l.home.run({"status"}).out, Contains("paused"));
  CHECK(l.home.run({"resume", "--agent", "good"}).code == 0);
  CHECK(l.home.run({"cycle"}).code == 3);
  CHECK(l.home.run({"doctor"}).out.find("store schema") != std::string::npos);

  // And back, into a new file.
  CHECK_THAT(l.home.run({"store", "migrate", l.uri, "sqlite"}).err, Contains("is not empty"));
  std::filesystem::create_directory(l.home.file("old"));
  for (const std::string end : {"", "-wal", "-shm"})
    if (std::filesystem::exists(l.home.file("boyd.db" + end)))
      std::filesystem::rename(l.home.file("boyd.db" + end), l.home.file("old/boyd.db" + end));
  const auto newest = l.content(l.uri);
  const auto back = l.home.run({"store", "migrate", l.uri, "sqlite"});
  CAPTURE(back.out, back.err);
  REQUIRE(back.code == 0);
  for (const auto& [name, text] : l.content("sqlite")) {
    INFO(name);
    CHECK(text == newest.at(name));
  }
  l.home.write_configuration(moving_yaml("sqlite"));
  CHECK(l.home.run({"cycle"}).code == 3);
}

TEST_CASE("case W9: a move that was killed goes on where it was, and neither store is used",
          "[store]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const moving_lab l(*server);
  REQUIRE(l.home.run({"cycle"}).code == 3);
  l.fill("sqlite");
  const auto before = l.content("sqlite");
  {
    program moving({boyd_binary(), "--home", l.home.path(), "store", "migrate", "sqlite", l.uri});
    REQUIRE(moving.wait_for_stderr("rows of facts"));
    moving.signal(SIGKILL);
    moving.finish();
  }
  const auto moved_facts = std::stoi(l.ask(l.uri, "SELECT count(*) FROM facts").substr(4));
  CHECK(moved_facts >= 1'000);
  l.home.write_configuration(moving_yaml(l.uri));
  const auto half = l.home.run({"status"});
  CHECK(half.code == 4);
  CHECK_THAT(half.err, Contains("unfinished move") && Contains("boyd store migrate sqlite"));
  CHECK_THAT(l.home.run({"store", "begin", "--yes"}).err, Contains("unfinished move"));
  const auto moved = l.home.run({"store", "migrate", "sqlite", l.uri});
  CAPTURE(moved.out, moved.err);
  REQUIRE(moved.code == 0);
  CHECK_THAT(moved.err, !Contains("rows of dispatches"));
  for (const auto& [name, text] : l.content(l.uri)) {
    INFO(name);
    CHECK(text == before.at(name));
  }
  CHECK(l.home.run({"cycle"}).code == 3);
}

TEST_CASE("case R10: doctor names what the database lacks, and triggers that are not Boyd's",
          "[store]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const bool postgres = GENERATE(false, true);
  CAPTURE(postgres);
  const moving_lab l(*server);
  const auto store = postgres ? l.uri : std::string("sqlite");
  const auto told = [&] {
    std::string all;
    const auto found = l.home.run({"doctor", "--json"}).json();
    for (const auto& f : found["checks"])
      if (f["name"] == "store schema")
        all += f.dump() + "\n";
    return all;
  };
  if (postgres) {
    std::filesystem::remove(l.home.file("run/store"));
    l.home.write_configuration(moving_yaml(l.uri));
  }
  REQUIRE(l.home.run({"cycle"}).code == 3);
  CHECK_THAT(told(), Contains("\"ok\""));
  l.ask(store, "DROP INDEX spend_day");
  CHECK_THAT(told(), Contains("index spend_day of table spend is missing") && Contains("fail"));
  l.ask(store, "ALTER TABLE pauses DROP COLUMN reason");
  CHECK_THAT(told(), Contains("column reason of table pauses is missing"));
  if (postgres) {
    l.ask(store, "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'");
    l.ask(store, "CREATE TRIGGER mine BEFORE INSERT ON nodes FOR EACH ROW EXECUTE FUNCTION f()");
    l.ask(store, "ALTER TABLE nodes ALTER COLUMN pid TYPE integer");
    CHECK_THAT(told(), Contains("column pid of table nodes is integer not null, not bigint"));
  } else {
    l.ask(store, "CREATE TRIGGER mine BEFORE INSERT ON nodes BEGIN SELECT 1; END");
  }
  CHECK_THAT(told(), Contains("trigger mine of table nodes is not part of Boyd"));
  l.ask(store, std::string("DROP TABLE cycles") + (postgres ? " CASCADE" : ""));
  const auto all = told();
  CHECK_THAT(all, Contains("table cycles is missing") && !Contains("of table cycles is missing"));
  CHECK(l.home.run({"doctor"}).code != 0);
}

} // namespace boyd::test
