#include "../integration/sqlite/sqlite_cli.hpp"
#include "program.hpp"
#include "stored_home.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>
#include <memory>

/// What a database refuses ends with a word (field case 26): in the spool's refused file, in the
/// row, in status, doctor and the log; and `boyd cycle` ends.
namespace boyd::test {

namespace {

using Catch::Matchers::Contains;

/// A home whose one agent prints what some databases cannot hold.
std::string priced_yaml(const std::string& store) {
  return stored_yaml(store, "      - agent_id: price\n"
                            "        prompt: what does it cost\n"
                            "        executor: {type: command, argv: [printf, '5 €\\n']}\n");
}

/// A home and its database, of either kind.
struct refusing_lab {
  explicit refusing_lab(bool postgres)
      : server(postgres ? shared_postgres() : nullptr),
        uri(server != nullptr ? server->make_database() : "sqlite"), home(priced_yaml(uri)) {
    REQUIRE(home.run({"cycle"}).code == 0);
  }

  void sql(const std::string& text) const {
    if (server != nullptr)
      server->query(uri, "SET search_path TO boyd; " + text);
    else
      sqlite_cli(home.file("boyd.db"), text);
  }

  /// A rule that somebody has added: `event` on `table` is refused where `when` holds.
  void refuse(const std::string& table, const std::string& event, const std::string& when) const {
    if (server == nullptr)
      return sql("CREATE TRIGGER refuses_" + table + " BEFORE " + event + " ON " + table +
                 " WHEN " + when + " BEGIN SELECT RAISE(ABORT, 'not in this house'); END");
    sql("CREATE OR REPLACE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
        "EXCEPTION 'not in this house'; END $$");
    sql("CREATE TRIGGER refuses_" + table + " BEFORE " + event + " ON " + table +
        " FOR EACH ROW WHEN (" + when + ") EXECUTE FUNCTION refuses()");
  }

  nlohmann::json newest() const {
    return home.run({"dispatches", "ls", "--json"}).json()["items"][0];
  }
  std::string doctor_on_store() const {
    const auto found = home.run({"doctor", "--json"}).json();
    for (const auto& f : found["checks"])
      if (f["name"] == "refused results")
        return f.dump();
    return {};
  }

  postgres_server* server;
  std::string uri;
  home_of_boyd home;
};

bool has_no_server(bool postgres) {
  return postgres && shared_postgres() == nullptr;
}

} // namespace

TEST_CASE(
    "field case 26: a result that the database refuses is kept aside, ends its run and is told",
    "[case26]") {
  const bool postgres = GENERATE(false, true);
  CAPTURE(postgres);
  if (has_no_server(postgres))
    return;
  const refusing_lab l(postgres);
  l.refuse("dispatch_results", "INSERT", "new.output LIKE '%€%'");
  const auto cycle = l.home.run({"cycle"});
  CAPTURE(cycle.out, cycle.err);
  CHECK(cycle.code == 1);
  const auto row = l.newest();
  CHECK(row["status"] == "failed");
  CHECK_THAT(row["error"].get<std::string>(), Contains("refused the result"));
  CHECK_THAT(row["error"].get<std::string>(), Contains("run/spool.jsonl.refused"));
  const auto kept = read_file(l.home.file("run/spool.jsonl.refused"));
  CHECK_THAT(kept, Contains("5 €") && Contains("not in this house"));
  CHECK_THAT(cycle.err, Contains("refused the result of"));
  CHECK_THAT(l.home.run({"status"}).out, Contains("refused 1 result"));
  CHECK_THAT(l.doctor_on_store(), Contains("warn") && Contains("spool.jsonl.refused"));
  // A person has looked after it.
  std::filesystem::remove(l.home.file("run/spool.jsonl.refused"));
  CHECK_THAT(l.home.run({"status"}).out, !Contains("refused 1 result"));
  CHECK(l.doctor_on_store().empty());
}

TEST_CASE("field case 26: a database that takes no end of a run at all does not hold the cycle",
          "[case26]") {
  const bool postgres = GENERATE(false, true);
  CAPTURE(postgres);
  if (has_no_server(postgres))
    return;
  const refusing_lab l(postgres);
  l.refuse("dispatch_results", "INSERT", "new.status <> 'pending'");
  const auto cycle = l.home.run({"cycle"});
  CAPTURE(cycle.out, cycle.err);
  CHECK(cycle.code == 1);
  CHECK_THAT(read_file(l.home.file("run/spool.jsonl.refused")), Contains("5 €"));
  CHECK(l.newest()["status"] == "failed"); // as far as anybody here is told
  CHECK_THAT(l.home.run({"status"}).out, Contains("refuses their end"));
  // When the cause is gone, the next command ends the row; the work is not done again.
  l.sql("DROP TRIGGER refuses_dispatch_results" +
        std::string(postgres ? " ON dispatch_results" : ""));
  CHECK(l.newest()["status"] == "failed");
  CHECK_THAT(l.home.run({"status"}).out, !Contains("refuses their end"));
}

TEST_CASE("field case 26: a cycle ends whatever write of it is refused", "[case26]") {
  const bool postgres = GENERATE(false, true);
  const auto write =
      GENERATE(std::pair("cycles", "UPDATE"), std::pair("dispatch_requests", "INSERT"),
               std::pair("decisions", "INSERT"), std::pair("dispatch_running", "INSERT"),
               std::pair("occurrences", "UPDATE"));
  const std::string table = write.first;
  const std::string event = write.second;
  CAPTURE(postgres, table, event);
  if (has_no_server(postgres))
    return;
  const refusing_lab l(postgres);
  l.refuse(table, event, "1 = 1");
  const auto cycle = l.home.run({"cycle"});
  CAPTURE(cycle.out, cycle.err);
  if (table == "occurrences")
    CHECK(cycle.code == 0); // the cycle is recorded; its slot alone stays open
  else
    CHECK(cycle.code == 1);
  CHECK_THAT(cycle.err + cycle.out, Contains("not in this house"));
}

TEST_CASE("field case 26: a database that is not UTF8 is refused at init, and told of when in use",
          "[case26]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto latin =
      server->make_database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  const temp_dir directory;
  const auto yaml = directory.file("boyd.yaml");
  write_file(yaml, priced_yaml(latin));
  const auto refused = boyd_run({"--home", directory.file("home"), "init", "--from", yaml});
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, Contains("LATIN1") && Contains("createdb --encoding=UTF8"));
  const auto doctor =
      boyd_run({"--home", directory.file("home"), "doctor", "--json"}).json()["checks"].dump();
  CHECK_THAT(doctor, Contains("LATIN1") && Contains("createdb --encoding=UTF8"));

  // One that was filled before: what it cannot hold ends as any refused result.
  refusing_lab l(true);
  const auto copied =
      program({"/bin/sh", "-c",
               "{ pg_dump --schema-only '" + l.uri + "'; pg_dump --data-only -t boyd.facts -t " +
                   "boyd.schema_migrations '" + l.uri + "'; } | psql -q '" + latin + "'"})
          .finish();
  REQUIRE(copied.code == 0);
  l.home.write_configuration(priced_yaml(latin));
  const auto cycle = l.home.run({"cycle"});
  CAPTURE(cycle.out, cycle.err);
  CHECK(cycle.code == 1);
  CHECK_THAT(l.newest()["error"].get<std::string>(), Contains("refused the result"));
  CHECK_THAT(read_file(l.home.file("run/spool.jsonl.refused")), Contains("5 €"));
  CHECK_THAT(l.home.run({"status"}).out, Contains("LATIN1") && Contains("refused 1 result"));
  CHECK_THAT(l.home.run({"doctor"}).out, Contains("LATIN1"));
}

TEST_CASE("field case 28: a pooler in transaction mode is named, one in session mode works",
          "[case28]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const auto direct = server->make_database();
  const auto database = direct.substr(direct.rfind('/') + 1);
  const temp_dir directory;
  const auto yaml = directory.file("boyd.yaml");
  for (const std::string mode : {"transaction", "statement", "session"}) {
    CAPTURE(mode);
    const auto through = server->start_pooler(database, mode);
    if (through.empty())
      return tell_skipped("field case 28", "PgBouncer is not installed");
    write_file(yaml, priced_yaml(through));
    const auto home = directory.file(mode);
    const auto made = boyd_run({"--home", home, "init", "--from", yaml});
    CAPTURE(made.out, made.err);
    const auto doctor = boyd_run({"--home", home, "doctor"});
    CAPTURE(doctor.out);
    if (mode == "session") {
      CHECK(made.code == 0);
      CHECK(boyd_run({"--home", home, "cycle"}).code == 0);
      CHECK_THAT(doctor.out, !Contains("pooler"));
      continue;
    }
    CHECK(made.code == 4);
    CHECK_THAT(made.err, Contains("transaction pooler") && Contains("pool_mode = session"));
    CHECK_THAT(doctor.out, Contains("transaction pooler") && Contains("pool_mode = session"));
  }
}

} // namespace boyd::test
