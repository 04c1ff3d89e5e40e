#include "integration/git/stepper.hpp"
#include "old_schema.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>

namespace boyd::migration_test {

using namespace boyd;
using namespace boyd::test;
namespace fs = std::filesystem;

namespace {

constexpr int good = 0;
constexpr int failed = 1;

/// Brings a database up to date in a process of its own.
int migrate(const std::string& path) {
  auto s = adapters::make_sqlite_store(options_for(path));
  return s->open() ? good : failed;
}

/// So many of a migration's calls are tried for each schema, all of them where there are fewer.
constexpr int points_of_a_schema = 10;

struct sweep {
  int points = 0;
  int refused = 0; ///< of them: the call failed
};

void look_at(const std::string& path) {
  // As the next start finds it.
  auto s = adapters::make_sqlite_store(options_for(path));
  const auto opened = s->open();
  INFO((opened ? std::string() : to_string(opened.error())));
  REQUIRE(opened);
  REQUIRE(promised(rows_of(path) == old_rows, "a migration that was cut short has lost rows"));
  REQUIRE(sqlite_cli(path, "SELECT value FROM facts WHERE key = 'k'") == "v");
  REQUIRE(sqlite_cli(path, "PRAGMA integrity_check") == "ok");
  REQUIRE(sqlite_cli(path, "SELECT max(version) FROM schema_migrations") ==
          std::to_string(adapters::sqlite_schema_version()));
}

/// False: this machine does not allow it.
bool cut_short(int version, step_choice how, sweep& all) {
  const temp_dir d;
  make_old(d.file("old.db"), version);
  REQUIRE(sqlite_cli(d.file("old.db"), "INSERT INTO facts VALUES('s', 'k', 'v')").empty());
  const auto path = d.file("boyd.db");
  const auto begin_anew = [&] {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      fs::remove(path + suffix);
      if (fs::exists(d.file("old.db") + suffix))
        fs::copy_file(d.file("old.db") + suffix, path + suffix);
    }
  };
  begin_anew();
  const auto whole =
      run_stepped([&] { return migrate(path); }, [](const disk_step&) { return step_choice::go; });
  if (!whole.possible)
    return false;
  REQUIRE(whole.exit_code == good);
  const int stride = std::max(1, whole.steps / points_of_a_schema);
  // Another offset for each schema, so that not always the same kind of call is met.
  for (int point = version % stride; point < whole.steps; point += stride) {
    begin_anew();
    const auto run = run_stepped(
        [&] { return migrate(path); },
        [&](const disk_step& step) { return step.number == point ? how : step_choice::go; });
    INFO("schema " << version << ", call " << point << " of " << whole.steps);
    CHECK(run.killed == (how == step_choice::kill));
    look_at(path);
    ++all.points;
    all.refused += how == step_choice::refuse ? 1 : 0;
  }
  return true;
}

} // namespace

TEST_CASE("an upgrade that is killed, or whose disk fails, at any call keeps every row of every "
          "earlier schema") {
  sweep all;
  for (int version = 1; version < adapters::sqlite_schema_version(); ++version)
    for (const auto how : {step_choice::kill, step_choice::refuse})
      if (!cut_short(version, how, all))
        return tell_skipped("upgrades that are cut short", "tracing a child is not permitted");
  CHECK(all.points > 90);
  tell_figure("case 44: upgrades of SQLite cut short at " + std::to_string(all.points) +
              " calls (" + std::to_string(all.refused) + " of them failed, the others a kill) of " +
              std::to_string(adapters::sqlite_schema_version() - 1) + " schemas: 0 rows lost");
}

} // namespace boyd::migration_test
