#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "boyd/state/versioned_store.hpp"
#include "integration/git/fixture.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "support/small_disk.hpp"

#include <spdlog/spdlog.h>

namespace boyd::full_disk_test {

using namespace boyd;
using namespace boyd::test;

namespace {

constexpr std::size_t plenty = std::size_t{16} << 20;

class fixed_clock final : public clock_port {
 public:
  utc_time now() const override { return at(noon) + passed; }
  steady_time steady() const override { return steady_time{passed}; }

  milliseconds passed{0};
};

bool is_edge(std::string_view line) {
  return line.size() > 2 && line.front() == '{' && line.back() == '}';
}

std::string numbered(int number, std::size_t size) {
  return "{\"n\":" + std::to_string(number) + ",\"x\":\"" + std::string(size, 'x') + "\"}";
}

} // namespace

TEST_CASE("case 35 enospc-jsonl, case 36 short-write: on a disk that is really full") {
  const auto disk = small_disk::mount(std::size_t{1} << 20);
  if (!disk)
    return;
  const auto files = adapters::make_posix_file_system();
  const auto path = disk->file("graph.jsonl");
  files::journal_options options;
  options.parses = is_edge;
  auto log = files::journal::open(*files, path, options).value();
  disk->fill(std::size_t{300} << 10);
  // Lines that do not end where the disk's blocks do: the write that meets the end is a short one.
  std::string good;
  int number = 0;
  result<std::uint64_t> last = 0;
  for (; last && number < 10'000; ++number) {
    const auto line = numbered(number, 3'000 + static_cast<std::size_t>(number));
    last = log.append({line, line});
    if (last)
      good += line + "\n" + line + "\n";
  }
  REQUIRE_FALSE(last);
  CHECK(last.error().code == errc::no_space);
  CHECK(files->read(path, plenty).value() == good);
  for (int again = 0; again < 3; ++again)
    CHECK_FALSE(log.append({numbered(0, 20'000)}));
  CHECK(files->read(path, plenty).value() == good);
  // Another start on the full disk finds all of it.
  CHECK(files::journal::open(*files, path, options).value().end() == good.size());
  disk->make_room();
  REQUIRE(log.append({numbered(1, 20'000)}));
  CHECK(files->read(path, plenty).value() == good + numbered(1, 20'000) + "\n");
}

TEST_CASE("case 35 enospc-state: the old text stays, and the next write works when there is room") {
  const auto disk = small_disk::mount(std::size_t{1} << 20);
  if (!disk)
    return;
  const auto files = adapters::make_posix_file_system();
  const auto path = disk->file("STATE.md");
  const std::string text(std::size_t{100} << 10, 'a');
  REQUIRE(files::write_atomic(*files, path, text, {true}));
  disk->fill();
  const std::string longer(std::size_t{200} << 10, 'b');
  const auto written = files::write_atomic(*files, path, longer, {true});
  REQUIRE_FALSE(written);
  CHECK(written.error().code == errc::no_space);
  CHECK(files->read(path, plenty).value() == text);
  CHECK(files->read(path + ".bak", plenty).value() == text);
  CHECK(files->list(disk->path()).value() ==
        std::vector<std::string>{"STATE.md", "STATE.md.bak", "ballast"});
  disk->make_room();
  REQUIRE(files::write_atomic(*files, path, longer, {true}));
  CHECK(files->read(path, plenty).value() == longer);
}

TEST_CASE(
    "case 35 enospc-git: commits fail, nothing is broken, and they go on when there is room") {
  const auto disk = small_disk::mount(std::size_t{4} << 20);
  if (!disk)
    return;
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  const auto files = adapters::make_posix_file_system();
  const auto provider = adapters::make_git_repositories();
  fixed_clock clock;
  const auto home = disk->file("home");
  state::versioned_store store(*files, *provider, clock, {home, {}, true, true});
  REQUIRE(store.init());
  REQUIRE(store.write("STATE.md", "one\n"));
  REQUIRE(store.commit_all("one").value());
  REQUIRE(store.write("STATE.md", "two\n"));
  // Ever less room: another of a commit's steps is the one that meets the end.
  int failures = 0;
  for (const std::size_t left : {0U, 4U, 8U, 12U, 16U, 24U, 32U}) {
    disk->make_room();
    disk->fill(left << 10);
    put(home + "/notes.md", "note " + std::to_string(left) + "\n");
    const auto made = store.commit_all("with " + std::to_string(left) + " KiB left");
    failures += made ? 0 : 1;
    INFO(left << " KiB left: " << (made ? "committed" : to_string(made.error())));
    // Neither somebody else nor the repository is to blame.
    CHECK((made || made.error().code == errc::no_space));
  }
  CHECK(failures > 0);
  CHECK_FALSE(store.write("STATE.md", std::string(std::size_t{1} << 20, 'x')));
  CHECK(store.read("STATE.md").value() == "two\n");
  disk->make_room();
  clock.passed += 60s;
  REQUIRE(store.write("STATE.md", "three\n"));
  const auto done = store.commit_all("three");
  INFO((done ? std::string() : to_string(done.error())));
  REQUIRE(done);
  CHECK(store.read_at("HEAD", "STATE.md").value() == "three\n");
  const auto fsck = shell(home, "git fsck --strict --no-dangling");
  INFO(fsck.text);
  CHECK(fsck.exit_code == 0);
  CHECK(shell(home, "git status --porcelain").text.empty());
  spdlog::set_level(level);
}

} // namespace boyd::full_disk_test
