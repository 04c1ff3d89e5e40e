#include "support/pch.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/seeded_entropy.hpp"

#include <set>

using namespace boyd;
using boyd::sim::disk_fault;
using boyd::sim::disk_op;
using boyd::sim::sim_disk;

namespace {

/// The contents of /d/f that some crash leaves, over many seeds, after `work`.
std::set<std::string> outcomes(const std::function<void(sim_disk&)>& work) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    sim_disk disk;
    REQUIRE(disk.make_directories("/d"));
    work(disk);
    sim::seeded_entropy random(seed);
    disk.crash(random);
    const auto files = disk.snapshot();
    seen.insert(files.contains("/d/f") ? files.at("/d/f") : "(missing)");
  }
  return seen;
}

void write(sim_disk& disk, const std::string& path, bool sync) {
  auto file = disk.open(path, open_mode::append).value();
  REQUIRE(file->write("abcd"));
  if (sync) {
    REQUIRE(file->sync());
  }
}

} // namespace

TEST_CASE("the simulated disk keeps what was synced, and only that for certain", "[files][sim]") {
  CHECK(outcomes([](sim_disk& disk) {
          write(disk, "/d/f", true);
          REQUIRE(disk.sync_directory("/d"));
        }) == std::set<std::string>{"abcd"});
  const auto no_directory_sync = outcomes([](sim_disk& disk) { write(disk, "/d/f", true); });
  CHECK(no_directory_sync == std::set<std::string>{"(missing)", "abcd"});
  const auto no_file_sync = outcomes([](sim_disk& disk) {
    write(disk, "/d/f", false);
    REQUIRE(disk.sync_directory("/d"));
  });
  CHECK(no_file_sync.contains(""));
  CHECK(no_file_sync.contains("ab"));
  CHECK(no_file_sync.contains(std::string("abc\0", 4)));
  CHECK_FALSE(no_file_sync.contains("(missing)"));
}

TEST_CASE("a rename without fsync shows old, new, empty and torn content", "[files][sim]") {
  const auto seen = outcomes([](sim_disk& disk) {
    disk.put("/d/f", "old");
    write(disk, "/d/new", false);
    REQUIRE(disk.rename("/d/new", "/d/f"));
  });
  CHECK(seen.contains("old"));
  CHECK(seen.contains("abcd"));
  CHECK(seen.contains(""));
  CHECK_FALSE(seen.contains("(missing)"));
}

TEST_CASE("bytes of a failed fsync are lost although a second one succeeds", "[files][sim]") {
  const auto seen = outcomes([](sim_disk& disk) {
    auto file = disk.open("/d/f", open_mode::append).value();
    REQUIRE(disk.sync_directory("/d"));
    REQUIRE(file->write("abcd"));
    disk.fail_next(disk_op::sync, disk_fault::io_error);
    REQUIRE_FALSE(file->sync());
    REQUIRE(file->sync());
    REQUIRE(disk.read("/d/f", 10).value() == "abcd");
  });
  CHECK(seen == std::set<std::string>{""});
}

TEST_CASE("faults come as ordered, and handles die with their process", "[files][sim]") {
  sim_disk disk;
  REQUIRE(disk.make_directories("/d"));
  auto file = disk.open("/d/f", open_mode::append).value();
  disk.fail_next(disk_op::write, disk_fault::short_write, 1, "/f");
  CHECK(file->write("abcd").value() == 2);
  CHECK(file->write("cd").value() == 2);
  disk.set_capacity(5);
  CHECK(file->write("xyz").value() == 1);
  CHECK(file->write("yz").error().code == errc::no_space);
  CHECK(disk.corrupt("/d/f", 0) == false); // nothing is durable yet
  disk.kill_process();
  CHECK_FALSE(file->write("x"));
  CHECK(disk.read("/d/f", 10).value() == "abcdx");
  disk.put_symlink("/d/link");
  CHECK(disk.open("/d/link", open_mode::append).error().code == errc::refused);
}
