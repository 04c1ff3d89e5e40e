#include "program.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>

namespace boyd::selftest_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

TEST_CASE("selftest kills a scratch node, finds nothing lost, and leaves nothing behind", "[e2e]") {
  const temp_dir dir;
  const auto r = boyd_run({"--home", dir.file("home"), "selftest", "--crash", "--seconds", "2",
                           "--dir", dir.path(), "--json"});
  INFO(r.err << r.out);
  REQUIRE(r.code == 0);
  const auto said = r.json();
  CHECK(said["schema"] == "boyd.selftest/1");
  CHECK(said["ok"] == true);
  CHECK(said["kills"] > 0);
  CHECK(said["batch_kills"] > 0);
  CHECK(said["acknowledged"] > 0);
  CHECK(said["effects"] > 0);
  CHECK(said["examinations"] > 0);
  CHECK(said["git_fsck"] == true);
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("selftest lives through 30 days in which a document becomes a skill, fails, and is "
          "rolled back",
          "[e2e]") {
  const temp_dir dir;
  const auto r =
      boyd_run({"--home", dir.file("home"), "selftest", "--learn", "--dir", dir.path(), "--json"});
  INFO(r.err << r.out);
  REQUIRE(r.code == 0);
  const auto said = r.json();
  CHECK(said["ok"] == true);
  CHECK(said["days"] == 30);
  CHECK(said["story"].size() == 7);
  CHECK_THAT(said["lineage"].get<std::string>(), Contains("release.md"));
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("selftest needs no home, nor the directories that one would be made in", "[e2e]") {
  const temp_dir dir;
  const auto r = boyd_run(
      {"--home", dir.file("state/of/boyd"), "selftest", "--crash", "--seconds", "1", "--json"});
  INFO(r.err << r.out);
  CHECK(r.code == 0);
  CHECK(r.json()["ok"] == true);
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("selftest finds out what is taken away of a cycle that was told to be whole", "[e2e]") {
  struct loss {
    const char* command; ///< in the scratch home, after a good cycle
    const char* told;
  };
  const auto [command, told] = GENERATE(
      loss{"sed -i 1d knowledge/graph.jsonl", "the graph does not know dispatch "},
      loss{"$GIT update-ref HEAD $($GIT rev-list --max-parents=0 HEAD)", "its commit is not there"},
      loss{"rm kernel/default/STATE.md", "STATE.md does not know it"},
      loss{"sed -i 1d ../effects", "was told to be done; it never acted"});
  // What examines the repository comes first: in front of it, once, something is taken away.
  const temp_dir dir;
  const temp_dir programs;
  write_file(programs.file("git"), "#!/bin/sh\n"
                                   "GIT='/usr/bin/git -c safe.directory=* -C kernel/default'\n"
                                   "if mkdir " +
                                       programs.file("once") + " 2>/dev/null; then (cd " +
                                       dir.path() + "/boyd-selftest-*/home && " + command +
                                       ") || exit 1; fi\n" + "exec /usr/bin/git \"$@\"\n");
  std::filesystem::permissions(programs.file("git"), std::filesystem::perms::owner_all);
  const auto r = boyd_run({"--home", dir.file("home"), "selftest", "--crash", "--seconds", "1",
                           "--dir", dir.path(), "--json"},
                          {{"PATH", programs.path() + ":/usr/local/bin:/usr/bin:/bin"}});
  INFO(command << "\n" << r.err << r.out);
  CHECK(r.code == 1);
  CHECK(r.json()["ok"] == false);
  CHECK_THAT(r.json()["violations"].dump(), Contains(told));
  CHECK(std::filesystem::exists(programs.file("once")));
}

TEST_CASE("selftest says what it needs", "[e2e]") {
  const auto nothing = boyd_run({"selftest"});
  CHECK(nothing.code == 2);
  CHECK_THAT(nothing.err, Contains("boyd selftest --crash"));
  const auto nowhere = boyd_run({"selftest", "--crash", "--dir", "/nonexistent"});
  CHECK(nowhere.code == 1);
  CHECK_THAT(nowhere.err, Contains("--dir"));
  const auto help = boyd_run({"selftest", "--help"});
  CHECK(help.code == 0);
  CHECK_THAT(help.out, Catch::Matchers::StartsWith("Example:\n  boyd selftest --crash"));
}

} // namespace boyd::selftest_test
