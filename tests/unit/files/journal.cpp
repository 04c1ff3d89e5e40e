#include "boyd/files/journal.hpp"

#include "support/pch.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/seeded_entropy.hpp"

#include <rapidcheck.h>

#include <limits>
#include <numeric>
#include <utility>

using namespace boyd;
using boyd::files::journal;
using boyd::files::journal_options;
using boyd::sim::disk_call;
using boyd::sim::disk_fault;
using boyd::sim::disk_op;

namespace {

const std::string path = "/home/graph.jsonl";
using lines = std::vector<std::string>;

journal_options braces() {
  journal_options options;
  options.parses = [](std::string_view line) {
    return line.size() >= 2 && line.front() == '{' && line.back() == '}';
  };
  return options;
}

std::string content_of(sim::sim_disk& disk, const std::string& of) {
  const auto all = disk.snapshot();
  const auto it = all.find(of);
  return it == all.end() ? "" : it->second;
}

std::string joined(const lines& all) {
  std::string text;
  for (const auto& line : all) {
    text += line + "\n";
  }
  return text;
}

std::string numbered(int number) {
  return "{\"n\":" + std::to_string(number) + "}";
}

} // namespace

TEST_CASE("a journal acknowledges the end of each batch", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  REQUIRE(log);
  CHECK(log->end() == 0);
  CHECK(log->append({numbered(1), numbered(2)}).value() == 16);
  CHECK(log->append({}).value() == 16);
  CHECK(log->append({numbered(3)}).value() == 24);
  CHECK(log->last_line() == numbered(3));
  CHECK(content_of(disk, path) == joined({numbered(1), numbered(2), numbered(3)}));
}

TEST_CASE("a batch costs one fsync", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  int syncs = 0;
  disk.set_fault_plan([&](const disk_call& call) {
    syncs += call.op == disk_op::sync ? 1 : 0;
    return disk_fault::none;
  });
  REQUIRE(log->append(lines(100, numbered(7))));
  CHECK(syncs == 1);
}

TEST_CASE("case 37 torn-tail: it is cut at every byte of the last record and kept aside",
          "[files][journal][faults]") {
  const std::string whole = joined({numbered(1), numbered(2)});
  const std::string last = R"({"n":3,"text":"the record that was being written"})";
  for (std::size_t cut = 0; cut <= last.size(); ++cut) {
    sim::sim_disk disk;
    disk.put(path, whole + last.substr(0, cut));
    auto log = journal::open(disk, path, braces());
    REQUIRE(log);
    CHECK(log->end() == whole.size());
    CHECK(log->last_line() == numbered(2));
    CHECK(content_of(disk, path) == whole);
    CHECK(content_of(disk, path + ".torn") == (cut == 0 ? "" : last.substr(0, cut) + "\n"));
    CHECK(log->torn() == last.substr(0, cut));
    REQUIRE(log->append({numbered(4)}));
    CHECK(content_of(disk, path) == whole + numbered(4) + "\n");
  }
}

TEST_CASE("what may be cut is bounded, and the middle is left alone", "[files][journal]") {
  sim::sim_disk disk;
  auto options = braces();
  SECTION("zeroed lines at the end are cut") {
    disk.put(path, numbered(1) + "\n" + std::string(5, '\0') + "\n\n" + std::string(3, '\0'));
    const auto log = journal::open(disk, path, options);
    REQUIRE(log);
    CHECK(log->end() == 8);
    CHECK(log->torn() == std::string(5, '\0') + "\n\n" + std::string(3, '\0'));
  }
  SECTION("a damaged line in the middle stays") {
    const std::string text = joined({numbered(1), "#damaged#", numbered(2)});
    disk.put(path, text);
    CHECK(journal::open(disk, path, options).value().end() == text.size());
    CHECK(content_of(disk, path) == text);
  }
  SECTION("a file of something else is not cut away") {
    options.max_batch_bytes = 64;
    disk.put(path, joined(lines(20, "not ours")));
    const auto log = journal::open(disk, path, options);
    REQUIRE_FALSE(log);
    CHECK(log.error().code == errc::corrupt);
    CHECK(content_of(disk, path) == joined(lines(20, "not ours")));
  }
  SECTION("batches and files have a limit") {
    options.max_batch_bytes = 20;
    options.max_file_bytes = 24;
    disk.put(path, numbered(1) + "\n");
    auto log = journal::open(disk, path, options);
    REQUIRE(log);
    CHECK(log->append(lines(3, numbered(2))).error().code == errc::limit_exceeded);
    CHECK(log->append(lines(2, numbered(2))).value() == 24);
    CHECK(log->append({numbered(3)}).error().code == errc::no_space);
  }
}

TEST_CASE("malformed lines are not taken", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  REQUIRE(log);
  for (const std::string bad : {"", "{\n}", "{\r}", "no braces"}) {
    CHECK(log->append({numbered(1), bad}).error().code == errc::invalid_argument);
  }
  CHECK(content_of(disk, path).empty());
}

TEST_CASE("case 36 short-write: a short write on a full disk is cut back",
          "[files][journal][faults]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  REQUIRE(log->append({numbered(1)}));
  disk.set_capacity(12);
  const auto full = log->append({numbered(2)});
  REQUIRE_FALSE(full);
  CHECK(full.error().code == errc::no_space);
  CHECK(content_of(disk, path) == joined({numbered(1)}));
  disk.set_capacity(std::nullopt);
  REQUIRE(log->append({numbered(3)}));
  CHECK(content_of(disk, path) == joined({numbered(1), numbered(3)}));
}

TEST_CASE("when the cutting back fails too, the next batch repairs the file",
          "[files][journal][faults]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  REQUIRE(log->append({numbered(1)}));
  disk.fail_next(disk_op::write, disk_fault::short_write);
  disk.fail_next(disk_op::truncate, disk_fault::io_error);
  disk.set_capacity(12);
  REQUIRE_FALSE(log->append({numbered(2)}));
  CHECK(content_of(disk, path) != joined({numbered(1)}));
  disk.set_capacity(std::nullopt);
  REQUIRE(log->append({numbered(3)}));
  CHECK(content_of(disk, path) == joined({numbered(1), numbered(3)}));
}

TEST_CASE("after a failed fsync nothing is acknowledged until the bytes were written anew",
          "[files][journal][faults]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    sim::sim_disk disk;
    REQUIRE(disk.make_directories("/home"));
    auto log = journal::open(disk, path, braces());
    REQUIRE(log->append({numbered(1)}));
    disk.fail_next(disk_op::sync, disk_fault::io_error);
    REQUIRE_FALSE(log->append({numbered(2)}));
    REQUIRE(log->end() == 8);
    REQUIRE(log->append({numbered(2)}).value() == 16);
    sim::seeded_entropy random(seed);
    disk.crash(random);
    REQUIRE(content_of(disk, path) == joined({numbered(1), numbered(2)}));
  }
}

TEST_CASE(
    "case 34 eio-fsync: a node killed after a failed fsync loses nothing that is acknowledged "
    "later",
    "[files][journal][faults]") {
  const auto first = joined({numbered(1), numbered(2)});
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    sim::sim_disk disk;
    REQUIRE(disk.make_directories("/home"));
    {
      auto log = journal::open(disk, path, braces());
      REQUIRE(log->append({numbered(1)}));
      disk.fail_next(disk_op::sync, disk_fault::io_error);
      REQUIRE_FALSE(log->append({numbered(2)}));
      disk.kill_process();
    }
    // What the next life finds it goes on behind: its fsync must not take the pages' word.
    auto next = journal::open(disk, path, braces());
    REQUIRE(next->end() == first.size());
    REQUIRE(next->append({numbered(3)}));
    sim::seeded_entropy random(seed);
    disk.crash(random);
    REQUIRE(content_of(disk, path) == first + numbered(3) + "\n");
  }
}

TEST_CASE("case 34 eio-fsync for ever: nothing is acknowledged, and what was is there afterwards",
          "[files][journal][faults]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    sim::sim_disk disk;
    REQUIRE(disk.make_directories("/home"));
    auto log = journal::open(disk, path, braces());
    REQUIRE(log->append({numbered(1)}));
    disk.fail_next(disk_op::sync, disk_fault::io_error, std::numeric_limits<std::uint64_t>::max());
    for (int attempt = 0; attempt < 5; ++attempt) {
      REQUIRE(log->append({numbered(2)}).error().code == errc::io_error);
      REQUIRE(log->end() == 8);
      REQUIRE_FALSE(journal::open(disk, path, braces()));
    }
    disk.clear_faults();
    REQUIRE(log->append({numbered(3)}));
    sim::seeded_entropy random(seed);
    disk.crash(random);
    REQUIRE(content_of(disk, path) == joined({numbered(1), numbered(3)}));
  }
}

TEST_CASE("case 44 fault-during-recovery: a journal's repair may end or fail at each of its steps",
          "[files][journal][faults]") {
  const auto whole = joined({numbered(1), numbered(2)});
  const std::string torn = R"({"n":3,"text":"torn)";
  enum class end : std::uint8_t { error, kill, power };
  for (const auto how : {end::error, end::kill, end::power}) {
    for (std::uint64_t step = 0;; ++step) {
      sim::sim_disk disk;
      sim::seeded_entropy random(step);
      disk.put(path, whole + torn);
      const auto begin = disk.calls();
      bool struck = false;
      disk.set_fault_plan([&](const disk_call& call) {
        if (call.number < begin + step || (struck && how == end::error))
          return disk_fault::none;
        if (!std::exchange(struck, true) && how == end::power)
          disk.crash(random);
        else if (how == end::kill)
          disk.kill_process();
        return disk_fault::io_error;
      });
      const auto repaired = journal::open(disk, path, braces());
      disk.clear_faults();
      if (!struck)
        break;
      INFO("step " << step << ", way " << static_cast<int>(how));
      CHECK_FALSE(repaired);
      auto log = journal::open(disk, path, braces());
      REQUIRE(log);
      CHECK(log->end() == whole.size());
      CHECK(content_of(disk, path) == whole);
      CHECK(content_of(disk, path + ".torn").find(torn) != std::string::npos);
      REQUIRE(log->append({numbered(4)}));
    }
  }
}

TEST_CASE("a file changed behind the journal's back is not appended to", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  REQUIRE(log->append({numbered(1)}));
  SECTION("replaced") {
    disk.put(path, numbered(1) + "\n");
  }
  SECTION("removed") {
    REQUIRE(disk.unlink(path));
  }
  SECTION("grown") {
    REQUIRE(disk.open(path, open_mode::append).value()->write("{}\n"));
  }
  SECTION("cut") {
    REQUIRE(disk.open(path, open_mode::append).value()->truncate(3));
  }
  CHECK(log->append({numbered(2)}).error().code == errc::conflict);
  CHECK(content_of(disk, path).find(numbered(2)) == std::string::npos);
}

namespace {

/// A run of appends under random faults with crashes between; every acknowledged line must be there
/// once and in order, and what is there was appended.
void check_run_under_faults(std::uint64_t seed) {
  sim::seeded_entropy random(seed);
  sim::sim_disk disk;
  auto options = braces();
  // So small that most opens see the end of the file alone.
  if (random.next() % 2 == 0) {
    options.max_batch_bytes = 32;
  }
  RC_ASSERT(disk.make_directories("/home").has_value());
  lines acknowledged;
  int next = 0;
  for (int life = 0; life < 4; ++life) {
    disk.clear_faults();
    if (life % 2 == 1) {
      disk.fail_next(disk_op::sync, disk_fault::io_error, 1 + random.next() % 2);
    }
    auto log = journal::open(disk, path, options);
    disk.clear_faults();
    if (log) {
      disk.set_fault_plan([&](const disk_call&) {
        const auto dice = random.next() % 24;
        return dice == 0   ? disk_fault::io_error
               : dice == 1 ? disk_fault::short_write
               : dice == 2 ? disk_fault::no_space
                           : disk_fault::none;
      });
      for (int batch = 0; batch < 6; ++batch) {
        lines wanted(1 + random.next() % 3);
        for (auto& line : wanted) {
          line = numbered(++next);
        }
        if (log->append(wanted)) {
          acknowledged.insert(acknowledged.end(), wanted.begin(), wanted.end());
        }
      }
    }
    disk.clear_faults();
    disk.crash(random);
    auto recovered = journal::open(disk, path, options);
    RC_ASSERT(recovered.has_value());
    const auto text = content_of(disk, path);
    // A batch whose end came with the crash may be there in part or whole, unacknowledged.
    RC_ASSERT(text.starts_with(joined(acknowledged)));
    acknowledged.clear();
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin);
      acknowledged.push_back(text.substr(begin, end - begin));
      RC_ASSERT(braces().parses(acknowledged.back()));
      begin = end + 1;
    }
  }
}

} // namespace

TEST_CASE("what another writer has appended meanwhile is not cut off", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  auto log = journal::open(disk, path, braces());
  REQUIRE(log);
  REQUIRE(log->append({numbered(1)}));
  bool came = false;
  disk.set_fault_plan([&](const disk_call& call) {
    if (call.op == disk_op::sync && !std::exchange(came, true)) {
      auto other = journal::open(disk, path, braces());
      REQUIRE(other);
      REQUIRE(other->append({numbered(7)}));
    }
    return disk_fault::none;
  });
  CHECK(log->append({numbered(2)}).error().code == errc::conflict);
  CHECK(log->append({numbered(2)}).error().code == errc::conflict);
  CHECK(content_of(disk, path).find(numbered(7)) != std::string::npos);
}

TEST_CASE("a last line that is longer than batches are now is found", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  const std::string longest = "{" + std::string(1000, 'x') + "}";
  REQUIRE(journal::open(disk, path, braces()).value().append({numbered(1), longest}));
  REQUIRE(disk.open(path, open_mode::append).value()->write("{\"to"));
  auto options = braces();
  options.max_batch_bytes = 32;
  auto log = journal::open(disk, path, options);
  REQUIRE(log);
  CHECK(log->last_line() == longest);
  CHECK(content_of(disk, path + ".torn") == "{\"to\n");
  // And after a failed fsync.
  disk.fail_next(disk_op::sync, disk_fault::io_error);
  CHECK_FALSE(log->append({numbered(2)}));
  REQUIRE(log->append({numbered(2)}));
  CHECK(content_of(disk, path) == joined({numbered(1), longest, numbered(2)}));
}

TEST_CASE("a file above its limit is refused as one without room", "[files][journal]") {
  sim::sim_disk disk;
  REQUIRE(disk.make_directories("/home"));
  REQUIRE(journal::open(disk, path, braces()).value().append({numbered(1), numbered(2)}));
  auto options = braces();
  options.max_file_bytes = 10;
  CHECK(journal::open(disk, path, options).error().code == errc::no_space);
}

TEST_CASE("acknowledged lines survive faults and crashes in order and once",
          "[files][journal][faults]") {
  CHECK(
      rc::check("journal under faults", [](std::uint64_t seed) { check_run_under_faults(seed); }));
}
