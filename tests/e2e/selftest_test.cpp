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
