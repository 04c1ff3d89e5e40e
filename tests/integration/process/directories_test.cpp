#include "boyd/exec/sandbox.hpp"
#include "boyd/faults/points.hpp"
#include "harness.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <filesystem>

/// Where a program works, and what it leaves there.
namespace boyd::directories_test {

using namespace boyd;
using namespace boyd::test;

TEST_CASE("a run's temporary directory that cannot be removed stays, and the next try removes it") {
  const temp_dir dir;
  const auto scratch = dir.file("scratch");
  std::filesystem::create_directories(scratch + "/piled/up");
  const auto runner = make_runner();
  REQUIRE(faults::arm({{"sandbox.remove", faults::action::error}}, 1));
  exec::remove_scratch(*runner, scratch);
  CHECK(faults::triggered("sandbox.remove") > 0);
  CHECK(runner->running() == 0);
  CHECK(std::filesystem::exists(scratch));
  exec::remove_scratch(*runner, scratch);
  faults::disarm();
  CHECK(wait_until([&] { return !std::filesystem::exists(scratch); }));
}

TEST_CASE("case R10: a working directory that is a link does not lead out of its workspace") {
  const temp_dir dir;
  const auto workspace = dir.file("workspace");
  std::filesystem::create_directories(workspace + "/inside/deep");
  std::filesystem::create_directories(dir.file("outside"));
  std::filesystem::create_directory_symlink(dir.file("outside"), workspace + "/out");
  std::filesystem::create_directory_symlink("../outside", workspace + "/up");
  std::filesystem::create_directory_symlink("inside", workspace + "/in");
  const auto runner = make_runner();
  const auto in = [&](const std::string& cwd) {
    auto spec = shell("pwd -P");
    spec.cwd = workspace + cwd;
    spec.cwd_within = workspace;
    recorder seen;
    REQUIRE(runner->start(spec, seen.events()).has_value());
    REQUIRE(seen.wait());
    return seen.exit().started ? seen.out() : "refused";
  };
  for (const char* cwd : {"/out", "/up", "/in/../up", "/..", "/../outside", "x"})
    CHECK(in(cwd) == "refused");
  CHECK(in("") == workspace + "\n");
  CHECK(in("/in/deep") == workspace + "/inside/deep\n");
}

} // namespace boyd::directories_test
