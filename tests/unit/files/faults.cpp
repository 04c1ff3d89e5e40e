#include "boyd/faults/faulty_ports.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "support/pch.hpp"
#include "support/sim/disk.hpp"

#include <algorithm>

using namespace boyd;
using faults::action;

namespace {

const std::string path = "/home/STATE.md";

struct fixture {
  std::shared_ptr<sim::sim_disk> disk = std::make_shared<sim::sim_disk>();
  std::shared_ptr<file_system> files = faults::watched(disk, faults::state_writer_files);
  std::shared_ptr<file_system> lines = faults::watched(disk, faults::graph_recorder_files);

  fixture() { disk->put(path, "old"); }
  ~fixture() { faults::disarm(); }
  fixture(const fixture&) = delete;
  fixture& operator=(const fixture&) = delete;

  std::string content(const std::string& of) const {
    const auto all = disk->snapshot();
    const auto it = all.find(of);
    return it == all.end() ? "(missing)" : it->second;
  }

  static void arm(const char* point, action what) {
    faults::arming a;
    a.point = point;
    a.what = what;
    a.seed = 3;
    REQUIRE(faults::arm({a}, 1));
  }
};

} // namespace

TEST_CASE("faults: what a disk changes or loses does not replace a good file", "[files]") {
  fixture f;
  const auto what = GENERATE(action::corrupt, action::drop);
  const bool backup = GENERATE(false, true);
  f.arm("state_writer.bytes", what);
  const auto written = files::write_atomic(*f.files, path, "new", {backup});
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::corrupt);
  CHECK(f.content(path) == "old");
  CHECK(f.disk->snapshot().size() == 1);
  REQUIRE(files::write_atomic(*f.files, path, "new", {backup}));
  CHECK(f.content(path) == "new");
}

TEST_CASE("faults: a write fails at each of its points as a disk would", "[files]") {
  fixture f;
  const std::string point = GENERATE("state_writer.open", "state_writer.bytes", "state_writer.sync",
                                     "state_writer.rename", "state_writer.read");
  f.arm(point.c_str(), action::error);
  const auto written = files::write_atomic(*f.files, path, "new");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::io_error);
  CHECK(written.error().what.find(point) != std::string::npos);
  CHECK(f.content(path) == "old");
  CHECK(f.disk->snapshot().size() == 1);
}

TEST_CASE("faults: a journal line that the disk lost is not acknowledged, and can be repeated",
          "[files]") {
  fixture f;
  auto log = files::journal::open(*f.lines, "/home/log");
  REQUIRE(log);
  REQUIRE(log->append({"one"}));
  f.arm("graph_recorder.bytes", action::drop);
  const auto lost = log->append({"two"});
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == errc::io_error);
  REQUIRE(log->append({"two"}));
  REQUIRE(log->append({"three"}));
  CHECK(f.content("/home/log") == "one\ntwo\nthree\n");
}

TEST_CASE(
    "faults: a journal line that reaches the file with a changed bit is not acknowledged, and "
    "can be repeated",
    "[files]") {
  fixture f;
  auto log = files::journal::open(*f.lines, "/home/log");
  REQUIRE(log);
  REQUIRE(log->append({"one"}));
  for (std::uint64_t turn = 0; turn < 8; ++turn) {
    f.arm("graph_recorder.bytes", action::corrupt);
    const auto changed = log->append({"two", "three"});
    REQUIRE_FALSE(changed);
    CHECK(changed.error().code == errc::io_error);
    CHECK(f.content("/home/log") == "one\n");
  }
  REQUIRE(log->append({"two", "three"}));
  CHECK(f.content("/home/log") == "one\ntwo\nthree\n");
}
