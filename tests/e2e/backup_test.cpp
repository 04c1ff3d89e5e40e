#include "program.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>

// `boyd backup` and `boyd restore` (docs/operations.md, Backup).

namespace boyd::backup_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

const char* agents = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "@every 1s"
    cycle_deadline: 60s
    agents:
      - agent_id: writer
        prompt: note
        executor: {type: command, argv: [sh, -c, "date +%N >> notes.txt; echo noted"]}
)";

/// The home's own copy somewhere else, the home itself moved away: two of one kind are refused.
struct restored_home {
  std::string path;

  finished run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"--home", path});
    return boyd_run(args);
  }
};

std::vector<nlohmann::json> dispatches_of(const finished& listed) {
  const auto items = listed.json().at("items");
  return {items.begin(), items.end()};
}

std::size_t cycles_of(const finished& log) {
  return log.json().at("items").size();
}

int system_in(const std::string& directory, const std::string& command) {
  return std::system(("cd '" + directory + "' && " + command + " >/dev/null 2>&1").c_str());
}

} // namespace

TEST_CASE("backup: a home without a node, and what is not restored over", "[e2e][backup]") {
  const home_of_boyd home(agents);
  const temp_dir place;
  REQUIRE(home.run({"cycle"}).code == 0);
  fs::create_directory_symlink("/nonexistent", home.file("kernel/default/dangling"));
  write_file(home.file("kernel/default/" + std::string(120, 'n') + ".txt"), "long\n");
  const auto file = place.file("b.tar");
  const auto made = home.run({"backup", file});
  INFO(made.err);
  REQUIRE(made.code == 0);
  CHECK_THAT(made.out, Contains("Backup of " + home.path() + ": "));
  struct ::stat s {};
  REQUIRE(::stat(file.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777U) == 0600U);
  CHECK_FALSE(fs::exists(file + ".part"));
  CHECK_FALSE(fs::exists(file + ".part.db"));
  // Any tar reads it.
  CHECK(system_in(place.path(), "tar tf b.tar") == 0);
  const auto again = home.run({"backup", file});
  CHECK(again.code == 1);
  CHECK_THAT(again.err, Contains("the file already exists"));
  const auto over = home.run({"restore", file});
  CHECK(over.code == 1);
  CHECK_THAT(over.err, Contains("the home is not empty") &&
                           Contains("\n      mv " + home.path() + " " + home.path() + ".old\n"));
  const auto before = dispatches_of(home.run({"dispatches", "ls", "--json"}));
  const auto state = read_file(home.file("kernel/default/STATE.md"));
  fs::rename(home.path(), home.path() + ".old");
  const restored_home back{place.file("deep/restored")};
  const auto done = back.run({"restore", file});
  INFO(done.err);
  REQUIRE(done.code == 0);
  CHECK_THAT(done.out, Contains("All files were verified.\n") &&
                           Contains("  of home     " + home.path() + "\n") &&
                           Contains("  dispatches  1 done\n"));
  CHECK_THAT(done.err, Contains("next: boyd --home " + back.path + " doctor"));
  // Beside the original, it is told at once why no node will start.
  fs::rename(home.path() + ".old", home.path());
  const restored_home beside{place.file("beside")};
  const auto copied = beside.run({"restore", file});
  CHECK(copied.code == 0);
  CHECK_THAT(copied.err, Contains(beside.path + " is a copy of " + home.path() + ", which still") &&
                             Contains("\n      rm " + beside.path + "/run/node_id\n"));
  fs::rename(home.path(), home.path() + ".old");
  CHECK(dispatches_of(back.run({"dispatches", "ls", "--json"})) == before);
  CHECK(read_file(back.path + "/kernel/default/STATE.md") == state);
  CHECK(fs::read_symlink(back.path + "/kernel/default/dangling") == "/nonexistent");
  CHECK(read_file(back.path + "/kernel/default/" + std::string(120, 'n') + ".txt") == "long\n");
  CHECK(fs::status(back.path).permissions() == fs::perms::owner_all);
  const auto doctor = back.run({"doctor"});
  INFO(doctor.out);
  CHECK(doctor.code == 0);
  CHECK(back.run({"cycle"}).code == 0);
  CHECK(system_in(back.path + "/kernel/default", "git fsck --strict") == 0);
}

TEST_CASE("backup: what is in one is shown without restoring it", "[e2e][backup]") {
  const home_of_boyd home(agents);
  const temp_dir place;
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto file = place.file("b.tar");
  REQUIRE(home.run({"backup", file}).code == 0);
  // The home in use is no hindrance, and nothing stays beside it.
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  const auto seen = home.run({"restore", "--check", file});
  INFO(seen.err);
  CHECK(seen.code == 0);
  CHECK_THAT(seen.out, Contains("The backup is complete and undamaged: " + file) &&
                           Contains("  of home     " + home.path() + "\n") &&
                           Contains("  kernels     default\n") &&
                           Contains("  dispatches  1 done\n"));
  const auto body = home.run({"restore", "--check", file, "--json"}).json();
  CHECK(body.at("schema") == "boyd.backup_check/1");
  CHECK(body.at("node_id") == home.run({"status", "--json"}).json()["node"]["node_id"]);
  CHECK(body.at("dispatches") == nlohmann::json{{"done", 1}});
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  auto damaged = read_file(file);
  const auto at = damaged.find("kernel_runtime");
  REQUIRE(at != std::string::npos);
  damaged[at] = 'K';
  write_file(place.file("bad.tar"), damaged);
  const restored_home nowhere{place.file("none/restored")};
  const auto refused = nowhere.run({"restore", "--check", place.file("bad.tar")});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err, Contains("differs from the original"));
  CHECK_THAT(nowhere.run({"restore", "--check", place.file("gone.tar")}).err,
             Contains("boyd: there is no such file: " + place.file("gone.tar")));
  CHECK_FALSE(fs::exists(place.file("none")));
  for (const auto& entry : fs::directory_iterator(fs::path(home.path()).parent_path()))
    CHECK_THAT(entry.path().filename().string(), !Contains("checking"));
}

TEST_CASE("backup: of a node at work is consistent", "[e2e][backup]") {
  const home_of_boyd home(agents);
  const temp_dir place;
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  std::vector<std::string> files;
  for (int i = 0; i < 5; ++i) {
    REQUIRE(node.wait_for_new_stderr("agent default/writer: dispatch "));
    files.push_back(place.file("b" + std::to_string(i) + ".tar"));
    const auto made = home.run({"backup", files.back(), "--json"});
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK(made.json().at("schema") == "boyd.backup/1");
  }
  const auto in_use = home.run({"restore", files[0]});
  CHECK(in_use.code == 5);
  CHECK_THAT(in_use.err, Contains("the home is in use by process ") &&
                             Contains("\n      boyd stop\n      mv "));
  node.signal(SIGTERM);
  REQUIRE(node.finish().code == 0);
  fs::rename(home.path(), home.path() + ".old");
  std::size_t cycles = 0;
  for (const auto& file : files) {
    INFO(file);
    const restored_home back{file + ".home"};
    const auto done = back.run({"restore", file, "--json"});
    INFO(done.err);
    REQUIRE(done.code == 0);
    CHECK(done.json().at("has_database") == true);
    CHECK(system_in(back.path + "/kernel/default", "git fsck --strict") == 0);
    const auto doctor = back.run({"doctor"});
    INFO(doctor.out);
    CHECK(doctor.code == 0);
    CHECK(back.run({"cycle"}).code == 0);
    // Later ones know more, and all go on.
    const auto known = cycles_of(back.run({"state", "log", "--limit", "1000", "--json"}));
    CHECK(known > cycles);
    cycles = known;
    fs::remove_all(back.path);
  }
}

TEST_CASE("restore: a backup that is damaged, cut or none leaves nothing behind", "[e2e][backup]") {
  const home_of_boyd home(agents);
  const temp_dir place;
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto file = place.file("b.tar");
  REQUIRE(home.run({"backup", file}).code == 0);
  const auto whole = read_file(file);
  const restored_home back{place.file("restored")};
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    write_file(place.file("bad.tar"), bytes);
    const auto r = back.run({"restore", place.file("bad.tar")});
    INFO(r.err);
    CHECK(r.code == 1);
    CHECK_THAT(r.err, Contains(why));
    CHECK_FALSE(fs::exists(back.path));
    CHECK(std::distance(fs::directory_iterator(place.path()), fs::directory_iterator()) == 2);
  };
  auto flipped = whole;
  const auto at = flipped.find("kernel_runtime");
  REQUIRE(at != std::string::npos);
  flipped[at] = 'K';
  refused(flipped, "differs from the original");
  refused(whole.substr(0, whole.size() / 2), "ends too early");
  refused("no archive at all", "this is not a Boyd backup (");
  refused(std::string(2048, 'x'), "this is not a Boyd backup (");
  refused(std::string(2048, '\0'), "not a Boyd backup");
  // Made by hand: a way out of the home.
  fs::create_directories(place.file("evil/home"));
  write_file(place.file("evil/home/x"), "x\n");
  REQUIRE(system_in(place.file("evil"),
                    "tar -P -cf ../evil.tar --transform 's,home/x,home/../../x,' home") == 0);
  const auto evil = read_file(place.file("evil.tar"));
  fs::remove_all(place.file("evil"));
  fs::remove(place.file("evil.tar"));
  refused(evil, "leads out of its directory");
  CHECK_FALSE(fs::exists(place.file("x")));
  CHECK(home.run({"backup"}).code == 2);
  CHECK(boyd_run({"--home", place.file("nowhere"), "backup", place.file("c.tar")}).code == 1);
  CHECK_FALSE(fs::exists(place.file("c.tar")));
}

} // namespace boyd::backup_test
