#include "../integration/sqlite/sqlite_cli.hpp"
#include "program.hpp"
#include "stored_home.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"

#include <filesystem>

/// A home works with its own store only: another one is refused until a person says otherwise.
namespace boyd::test {

namespace {

using Catch::Matchers::Contains;

constexpr int other_store = 4;

} // namespace

TEST_CASE("case W9: another store is refused by the node and all commands, and begun with by word",
          "[store]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const bool to_postgres = GENERATE(true, false);
  CAPTURE(to_postgres);
  const auto database = server->make_database();
  const auto first = to_postgres ? std::string("sqlite") : database;
  const auto second = to_postgres ? database : std::string("sqlite");
  const home_of_boyd home(stored_yaml(first));
  REQUIRE(home.run({"cycle"}).code == 0);
  REQUIRE(home.run({"pause", "--agent", "one"}).code == 0);

  home.write_configuration(stored_yaml(second));
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"cycle"}, {"status"}, {"node"}, {"dispatches"}, {"resume"}, {"init"}, {"why"}}) {
    CAPTURE(command.front());
    const auto refused = home.run(command);
    CHECK(refused.code == other_store);
    CHECK_THAT(refused.err, Contains("boyd store migrate") && Contains("boyd store begin") &&
                                Contains("set node.store back to " + first));
  }
  CHECK_THAT(home.run({"doctor"}).out, Contains("boyd store begin"));

  // Nobody agreed yet; then the choice is on record, and only this store is taken.
  CHECK(home.run({"store", "begin"}).code == 2);
  CHECK(home.run({"cycle"}).code == other_store);
  const auto begun = home.run({"store", "begin", "--yes"});
  CHECK(begun.code == 0);
  CHECK_THAT(begun.out, Contains("0 runs, 0 pauses"));
  CHECK(home.run({"cycle"}).code == 0);
  home.write_configuration(stored_yaml(first));
  CHECK(home.run({"status"}).code == other_store);
  CHECK(home.run({"store", "begin", "--yes"}).code == 0);
  CHECK_THAT(home.run({"status"}).out, Contains("paused"));
}

TEST_CASE("case W9: a database in the place of the home's own is refused, too", "[store]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const bool postgres = GENERATE(true, false);
  CAPTURE(postgres);
  const auto uri = postgres ? server->make_database() : std::string("sqlite");
  const home_of_boyd home(stored_yaml(uri));
  REQUIRE(home.run({"cycle"}).code == 0);
  if (postgres) {
    server->query(uri, "DROP SCHEMA boyd CASCADE");
  } else {
    // Another home's, put in its place by mistake.
    const home_of_boyd other(stored_yaml(uri));
    std::filesystem::copy_file(other.file("boyd.db"), home.file("boyd.db"),
                               std::filesystem::copy_options::overwrite_existing);
  }
  const auto refused = home.run({"status"});
  CHECK(refused.code == other_store);
  CHECK_THAT(refused.err, Contains("restore the database") && Contains("boyd store begin"));
}

TEST_CASE("case W9: an earlier copy of the home's own database is no other store", "[store]") {
  const home_of_boyd home(stored_yaml("sqlite"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto backup = home.file("backup.db");
  sqlite_cli(home.file("boyd.db"), ".backup '" + backup + "'");
  REQUIRE(home.run({"cycle"}).code == 0);
  std::filesystem::remove(home.file("boyd.db-wal"));
  std::filesystem::remove(home.file("boyd.db-shm"));
  std::filesystem::rename(backup, home.file("boyd.db"));
  CHECK(home.run({"cycle"}).code == 0);
  // A home that remembers nothing takes the store that it finds.
  std::filesystem::remove(home.file("run/store"));
  CHECK(home.run({"status"}).code == 0);
  CHECK(std::filesystem::exists(home.file("run/store")));
}

} // namespace boyd::test
