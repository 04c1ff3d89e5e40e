#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "integration/git/stepper.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/small_disk.hpp"
#include "support/telling.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace boyd::scarce_test {

using namespace boyd;
using namespace boyd::test;

namespace {

constexpr std::size_t plenty = std::size_t{1} << 20;

class wall_clock final : public clock_port {
 public:
  utc_time now() const override {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  }
  steady_time steady() const override {
    return std::chrono::floor<milliseconds>(std::chrono::steady_clock::now());
  }
};

std::unique_ptr<dispatch_store> store_at(const std::string& path) {
  adapters::sqlite_options options;
  options.path = path;
  options.clock = std::make_shared<wall_clock>();
  auto s = adapters::make_sqlite_store(options);
  REQUIRE(s->open());
  return s;
}

store::enqueue_cycle work(int number) {
  dispatch_spec s;
  s.dispatch_id = "d" + std::to_string(number);
  s.kernel_id = "k";
  s.cycle_id = "c" + std::to_string(number);
  s.agent_id = "a";
  s.prompt = "work";
  return {"k", s.cycle_id, {s}, {}};
}

std::vector<claimed_dispatch> claim_all(dispatch_store& s) {
  store::claim c;
  c.node_id = "n1";
  c.kernel_id = "k";
  c.limit = 100;
  c.lease = 1min;
  const auto replies = s.apply({c});
  REQUIRE(replies);
  return std::get<store::claim::reply>(replies->front());
}

result<settle_result> settle(dispatch_store& s, const claimed_dispatch& claimed) {
  settlement item;
  item.dispatch_id = claimed.row.dispatch_id;
  item.fence = claimed.row.fence;
  item.to = settle_to::done;
  item.outcome.execution = execution_verdict::succeeded;
  item.outcome.output = std::string(20'000, 'o');
  const auto replies = s.apply({store::settle{"n1", {item}}});
  if (!replies)
    return fail(replies.error());
  return std::get<store::settle::reply>(replies->front()).front();
}

/// How a process of its own fares that records work in a database, and asks for its rows at once.
namespace recorded {
constexpr int taken = 0;
constexpr int in_doubt = 1;
constexpr int refused = 2;
} // namespace recorded

int record(const std::string& path) {
  adapters::sqlite_options options;
  options.path = path;
  options.clock = std::make_shared<wall_clock>();
  auto s = adapters::make_sqlite_store(options);
  if (!s->open())
    return recorded::refused;
  const auto done = s->apply({work(1)});
  // Not closed: that makes calls of its own, behind the answer.
  static_cast<void>(s.release());
  if (done)
    return recorded::taken;
  return done.error().code == errc::commit_in_doubt ? recorded::in_doubt : recorded::refused;
}

/// As long as it lives no descriptor is left for this process.
class no_descriptors {
 public:
  no_descriptors() {
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    ::rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;

 private:
  ::rlimit before_{};
};

} // namespace

TEST_CASE(
    "case 46 fd-exhaustion: results are settled and facts recorded without a new descriptor") {
  const temp_dir d;
  const auto s = store_at(d.file("boyd.db"));
  const auto files = adapters::make_posix_file_system();
  auto log = files::journal::open(*files, d.file("graph.jsonl")).value();
  REQUIRE(files::write_atomic(*files, d.file("STATE.md"), "old", {true}));
  constexpr int count = 50;
  for (int i = 0; i < count; ++i)
    REQUIRE(s->apply({work(i)}));
  const auto rows = claim_all(*s);
  REQUIRE(rows.size() == count);
  int settled = 0;
  result<std::uint64_t> recorded = 0;
  result<void> state;
  std::string kept;
  {
    const no_descriptors none;
    for (const auto& row : rows)
      settled += settle(*s, row) == settle_result::accepted ? 1 : 0;
    recorded = log.append({"{}"});
    state = files::write_atomic(*files, d.file("STATE.md"), "new", {true});
  }
  CHECK(settled == count);
  CHECK(recorded);
  REQUIRE_FALSE(state);
  CHECK(state.error().next == "raise the limit for open files");
  CHECK(files->read(d.file("STATE.md"), plenty).value() == "old");
  REQUIRE(files::write_atomic(*files, d.file("STATE.md"), "new", {true}));
  CHECK(files->read(d.file("STATE.md"), plenty).value() == "new");
  CHECK(claim_all(*s).empty());
}

TEST_CASE("case 35 enospc-wal: without room a settlement is refused whole, with room it is taken") {
  const auto disk = small_disk::mount(std::size_t{24} << 20);
  if (!disk)
    return;
  const auto s = store_at(disk->file("boyd.db"));
  for (int i = 0; i < 100; ++i)
    REQUIRE(s->apply({work(i)}));
  const auto rows = claim_all(*s);
  REQUIRE(rows.size() == 100);
  disk->fill(std::size_t{256} << 10);
  std::size_t at = 0;
  while (at < rows.size() && settle(*s, rows[at]) == settle_result::accepted)
    ++at;
  REQUIRE(at < rows.size());
  const auto refused = settle(*s, rows[at]);
  REQUIRE_FALSE(refused);
  CHECK(category_of(refused.error()) == error_category::transient);
  disk->make_room();
  const bool open = s->apply({store::list_nodes{}}).has_value() || s->open().has_value();
  REQUIRE(open);
  for (; at < rows.size(); ++at)
    REQUIRE(settle(*s, rows[at]) == settle_result::accepted);
  for (const auto& row : rows)
    REQUIRE(settle(*s, row) == settle_result::already_settled);
}

TEST_CASE("case 35 enospc-wal: an open for which there is no room says so, and goes with room") {
  const auto disk = small_disk::mount(std::size_t{8} << 20);
  if (!disk)
    return;
  const auto path = disk->file("boyd.db");
  REQUIRE(store_at(path)->apply({work(1)}));
  disk->fill();
  adapters::sqlite_options options;
  options.path = path;
  options.clock = std::make_shared<wall_clock>();
  const auto s = adapters::make_sqlite_store(options);
  const auto opened = s->open();
  REQUIRE_FALSE(opened);
  INFO(to_string(opened.error()));
  CHECK(opened.error().code == errc::no_space);
  disk->make_room();
  REQUIRE(s->open());
  CHECK(claim_all(*s).size() == 1);
}

TEST_CASE("case 34 eio-fsync: a commit whose fsync fails, or finds no room, is in doubt and never "
          "acknowledged") {
  const temp_dir d;
  int made = 0;
  const auto path = [&] { return d.file("boyd-" + std::to_string(made) + ".db"); };
  // `choose` gets the number of the fsync, or less than 0 for another call.
  const auto run = [&](const std::function<step_choice(const disk_step&, int)>& choose) {
    ++made;
    (void)store_at(path()); // its schema
    int syncs = 0;
    return run_stepped(
        [&] { return record(path()); },
        [&](const disk_step& step) { return choose(step, step.sync ? syncs++ : -1); });
  };
  std::vector<bool> of_directory;
  const auto whole = run([&](const disk_step& step, int sync) {
    if (sync >= 0)
      of_directory.push_back(step.directory);
    return step_choice::go;
  });
  if (!whole.possible)
    return tell_skipped("case 34, an fsync that fails in SQLite", "tracing is not permitted");
  REQUIRE(whole.exit_code == recorded::taken);
  int in_doubt = 0;
  bool name_is_safe = false; // the log's own
  for (std::size_t at = 0; at < of_directory.size(); ++at) {
    for (const auto how : {step_choice::refuse, step_choice::full}) {
      const auto failed = run([&](const disk_step&, int sync) {
        return sync == static_cast<int>(at) ? how : step_choice::go;
      });
      INFO("fsync " << at << " of " << of_directory.size());
      CHECK((failed.exit_code != recorded::taken || (of_directory[at] && name_is_safe)));
      in_doubt += failed.exit_code == recorded::in_doubt ? 1 : 0;
      // Whatever it was: the next look finds a sound database, with the work or without.
      CHECK(claim_all(*store_at(path())).size() <= 1);
    }
    name_is_safe = name_is_safe || of_directory[at];
  }
  CHECK(in_doubt >= 2);
}

} // namespace boyd::scarce_test
