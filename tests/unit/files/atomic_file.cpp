#include "boyd/files/atomic_file.hpp"

#include "support/pch.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/telling.hpp"

#include <rapidcheck.h>

using namespace boyd;
using boyd::files::atomic_options;
using boyd::files::read_checked;
using boyd::files::write_atomic;
using boyd::sim::disk_call;
using boyd::sim::disk_fault;
using boyd::sim::disk_op;

namespace {

const std::string path = "/home/STATE.md";
constexpr std::size_t plenty = 1 << 20;

std::size_t temporaries_on(sim::sim_disk& disk) {
  std::size_t count = 0;
  for (const auto& [name, content] : disk.snapshot()) {
    count += files::is_temporary_name(name.substr(name.rfind('/') + 1)) ? 1U : 0U;
  }
  return count;
}

std::string content_of(sim::sim_disk& disk, const std::string& of) {
  const auto all = disk.snapshot();
  const auto it = all.find(of);
  return it == all.end() ? "(missing)" : it->second;
}

/// Calls that one write takes on a fresh disk.
std::uint64_t calls_of_a_write(atomic_options options) {
  sim::sim_disk disk;
  disk.put(path, "old");
  const auto before = disk.calls();
  REQUIRE(write_atomic(disk, path, "new", options));
  return disk.calls() - before;
}

} // namespace

TEST_CASE("an atomic write replaces the content and leaves no temporary file", "[files]") {
  const bool backup = GENERATE(false, true);
  sim::sim_disk disk;
  disk.put(path, "old");
  REQUIRE(write_atomic(disk, path, "new", {backup}));
  CHECK(content_of(disk, path) == "new");
  CHECK(content_of(disk, path + ".bak") == (backup ? "new" : "(missing)"));
  CHECK(temporaries_on(disk) == 0);
}

TEST_CASE("an acknowledged write survives every crash", "[files]") {
  CHECK(rc::check("acknowledged content is there after a crash", [] {
    sim::sim_disk disk;
    RC_ASSERT(disk.make_directories("/home").has_value());
    const auto old = *rc::gen::arbitrary<std::string>();
    const auto fresh = *rc::gen::nonEmpty(rc::gen::arbitrary<std::string>());
    RC_ASSERT(write_atomic(disk, path, old, {true}).has_value());
    RC_ASSERT(write_atomic(disk, path, fresh, {true}).has_value());
    sim::seeded_entropy random(*rc::gen::arbitrary<std::uint64_t>());
    disk.crash(random);
    RC_ASSERT(content_of(disk, path) == fresh);
    RC_ASSERT(content_of(disk, path + ".bak") == fresh);
  }));
}

TEST_CASE("each failing call of a write leaves old or new content, and no temporary file",
          "[files][faults]") {
  const bool backup = GENERATE(false, true);
  const auto fault = GENERATE(disk_fault::io_error, disk_fault::no_space, disk_fault::short_write);
  const auto steps = calls_of_a_write({backup});
  REQUIRE(steps >= 5);
  for (std::uint64_t step = 0; step < steps; ++step) {
    sim::sim_disk disk;
    disk.put(path, "old");
    auto failed_op = disk_op::read;
    const auto first = disk.calls();
    disk.set_fault_plan([&, first, step](const disk_call& call) {
      if (call.number != first + step) {
        return disk_fault::none;
      }
      failed_op = call.op;
      return fault;
    });
    const auto written = write_atomic(disk, path, "new", {backup});
    const bool repaired = fault == disk_fault::short_write && failed_op == disk_op::write;
    CHECK(written.has_value() == repaired);
    const bool renamed = repaired || failed_op == disk_op::sync_directory;
    CHECK(content_of(disk, path) == (renamed ? "new" : "old"));
    CHECK(temporaries_on(disk) == 0);
    disk.clear_faults();
    REQUIRE(write_atomic(disk, path, "again", {backup}));
    CHECK(content_of(disk, path) == "again");
  }
}

TEST_CASE("a crash at each call of a write leaves old or new content, never else",
          "[files][faults]") {
  const auto steps = calls_of_a_write({true});
  constexpr std::uint64_t crashes = 10'000;
  const auto seeds = crashes / steps + 1;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      sim::sim_disk disk;
      REQUIRE(disk.make_directories("/home"));
      REQUIRE(write_atomic(disk, path, "old content", {true}));
      const auto first = disk.calls();
      disk.set_fault_plan([first, step](const disk_call& call) {
        return call.number >= first + step ? disk_fault::io_error : disk_fault::none;
      });
      REQUIRE_FALSE(write_atomic(disk, path, "new content", {true}));
      disk.clear_faults();
      sim::seeded_entropy random(seed * 131 + step);
      disk.crash(random);
      const auto after = content_of(disk, path);
      REQUIRE((after == "old content" || after == "new content"));
      REQUIRE(files::remove_leftover_temporaries(disk, "/home"));
      CHECK(temporaries_on(disk) == 0);
    }
  }
  boyd::test::tell_figure("a state file after " + std::to_string(seeds * steps) +
                          " crashes: old or new, 0 mixed, 0 empty");
}

TEST_CASE("leftovers of crashes neither stop a write nor stay for ever", "[files]") {
  sim::sim_disk disk;
  disk.put(path, "old");
  for (int number = 0; number < 8; ++number) {
    disk.put("/home/.STATE.md.boyd-tmp-" + std::to_string(number), "half");
  }
  disk.put("/home/.STATE.md.boyd-tmp-x", "an agent's own");
  REQUIRE(write_atomic(disk, path, "new"));
  CHECK(content_of(disk, path) == "new");
  CHECK(files::remove_leftover_temporaries(disk, "/home").value() == 7);
  CHECK(content_of(disk, "/home/.STATE.md.boyd-tmp-x") == "an agent's own");
  CHECK(files::remove_leftover_temporaries(disk, "/nowhere").value() == 0);
}

TEST_CASE("reading falls back to the backup and says why", "[files][faults]") {
  sim::sim_disk disk;
  const files::content_check has_heading = [](std::string_view bytes) {
    return bytes.starts_with("# ") ? std::string() : std::string("no heading");
  };
  SECTION("a good file is read") {
    disk.put(path, "# good");
    disk.put(path + ".bak", "# older");
    const auto read = read_checked(disk, path, plenty, has_heading);
    REQUIRE(read);
    CHECK(read->bytes == "# good");
    CHECK_FALSE(read->from_backup);
    CHECK(read->problem.empty());
  }
  SECTION("an empty file gives way, also without a check") {
    disk.put(path, "");
    disk.put(path + ".bak", "# good");
    const auto read = read_checked(disk, path, plenty, nullptr);
    REQUIRE(read);
    CHECK(read->bytes == "# good");
    CHECK(read->from_backup);
    CHECK(read->problem.find("empty") != std::string::npos);
  }
  SECTION("a missing or unreadable file gives way") {
    disk.put(path + ".bak", "# good");
    CHECK(read_checked(disk, path, plenty, has_heading).value().from_backup);
    disk.put(path, "# good");
    disk.fail_next(disk_op::read, disk_fault::io_error);
    CHECK(read_checked(disk, path, plenty, has_heading).value().from_backup);
  }
  SECTION("nothing at all") {
    CHECK(read_checked(disk, path, plenty, has_heading).error().code == errc::not_found);
  }
  SECTION("both are bad") {
    disk.put(path, "");
    disk.put(path + ".bak", "garbage");
    const auto read = read_checked(disk, path, plenty, has_heading);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == errc::corrupt);
    CHECK(read.error().what.find("STATE.md.bak") != std::string::npos);
  }
}
