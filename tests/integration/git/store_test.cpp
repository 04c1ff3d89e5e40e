#include "boyd/core/limits.hpp"
#include "boyd/state/versioned_store.hpp"
#include "integration/git/real_store.hpp"
#include "integration/git/stepper.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/repository.hpp"
#include "support/telling.hpp"

#include <random>

namespace boyd::store_test {

using namespace boyd;
using namespace boyd::test;
using state::versioned_store;

namespace {

/// Bytes that do not compress.
std::string random_text(std::size_t size) {
  std::minstd_rand random(7);
  std::string text(size, ' ');
  for (auto& c : text)
    c = static_cast<char>(random());
  return text;
}

} // namespace

TEST_CASE("what a write and its boundary make durable is synced once") {
  real_store s;
  REQUIRE(s.store.write("STATE.md", "one\n"));
  REQUIRE(s.store.commit_boundary("pre-cycle c1", {"c1", "n1", ""}, false));
  int syncs = 0;
  int steps = 0;
  const auto run = run_stepped(
      [&] {
        const auto two = [](std::string_view) -> result<std::string> { return "two\n"; };
        const bool written = s.store
                                 .update("STATE.md", two, versioned_store::snapshot_first::no,
                                         versioned_store::staging::with_commit)
                                 .has_value();
        return written && s.store.commit_boundary("cycle c1: success", {"c1", "n1", ""}, false) ? 0
                                                                                                : 1;
      },
      [&](const disk_step& step) {
        ++steps;
        syncs += step.sync ? 1 : 0;
        return step_choice::go;
      });
  if (!run.possible)
    return tell_skipped("how often a commit syncs", "tracing a child process is not permitted");
  REQUIRE(run.exit_code == 0);
  // STATE.md, its backup, their directory; a blob, a tree and a commit, each with its directory
  // (two of them may share one); the index; the branch and its directory. The boundary syncs the
  // directory of STATE.md itself: it does not know who wrote, and how.
  CHECK(syncs >= 11);
  CHECK(syncs <= 13);
  INFO(steps << " calls that change files");
  CHECK(steps <= 60);
  s.check_clean();
  s.check_sound();
}

TEST_CASE("what a cycle writes and commits is synced once") {
  real_store s;
  REQUIRE(s.store.write("STATE.md", "block\ntext\n"));
  REQUIRE(s.store.commit_boundary("cycle c0: success", {"c0", "n1", ""}, false));
  int syncs = 0;
  int steps = 0;
  const auto run = run_stepped(
      [&] {
        const auto edit = [](std::string_view) -> result<std::string> {
          return "new block\nnew text\n";
        };
        const earlier_version version{
            "STATE.md", [](const std::string& at_head, const std::string& later) {
              return at_head.substr(0, at_head.find('\n')) + later.substr(later.find('\n'));
            }};
        const bool written =
            s.store.update_before_commit("STATE.md", edit, [](std::string_view) { return false; })
                .has_value();
        return written && s.store.commit_cycle("pre-cycle c1", "cycle c1: success",
                                               {"c1", "n1", ""}, version, false)
                   ? 0
                   : 1;
      },
      [&](const disk_step& step) {
        ++steps;
        syncs += step.sync ? 1 : 0;
        return step_choice::go;
      });
  if (!run.possible)
    return tell_skipped("how often a cycle syncs", "tracing a child process is not permitted");
  REQUIRE(run.exit_code == 0);
  // STATE.md, its backup; two blobs, trees and commits, each with its directory (some of them may
  // share one); STATE.md's directory; the index; the branch and its directory.
  CHECK(syncs >= 13);
  CHECK(syncs <= 18);
  INFO(steps << " calls that change files");
  CHECK(steps <= 80);
  s.check_clean();
  s.check_sound();
}

TEST_CASE("a commit takes objects that are held together and such as are too large or too many") {
  // More objects than are held, and files on both sides of the size up to which one is.
  constexpr int files = 600;
  constexpr std::size_t kibi = 1024;
  real_store s;
  const std::string empty;
  const std::string small = random_text(59 * kibi);
  const std::string large = random_text(300 * kibi);
  put(s.file("empty"), empty);
  put(s.file("small"), small);
  put(s.file("large"), large);
  for (int i = 0; i < files; ++i)
    put(s.file("notes/" + std::to_string(i)), "note " + std::to_string(i) + "\n");
  const auto commit = s.store.commit_all("many");
  REQUIRE(commit);
  REQUIRE(*commit);
  CHECK(s.store.read_at(**commit, "empty").value() == empty);
  CHECK(s.store.read_at(**commit, "small").value() == small);
  CHECK(s.store.read_at(**commit, "large").value() == large);
  CHECK(s.store.read_at(**commit, "notes/599").value() == "note 599\n");
  s.check_clean();
  s.check_sound();
  REQUIRE(s.store.maintain().value() > files);
  CHECK(s.store.read_at(**commit, "small").value() == small);
  s.check_sound();
}

TEST_CASE("two cycles make the commits that the specification names") {
  real_store s;
  REQUIRE(s.store.seed("STATE.md", "# Kernel State\n"));
  for (const std::string id : {"c1", "c2"}) {
    put(s.file("notes.md"), "an agent in " + id + "\n");
    REQUIRE(s.store.commit_all("pre-cycle " + id, {id, "n1", ""}).value());
    REQUIRE(s.store.write("STATE.md", "# Kernel State\nafter " + id + "\n"));
    REQUIRE(s.store.commit_all("cycle " + id + ": success", {id, "n1", "g"}).value());
    s.clock.passed += 60s;
  }
  CHECK(s.subjects() == std::vector<std::string>{"cycle c2: success", "pre-cycle c2",
                                                 "cycle c1: success", "pre-cycle c1"});
  CHECK(s.store.read_at("c1", "STATE.md").value() == "# Kernel State\nafter c1\n");
  CHECK(s.store.read_at("c1", "notes.md").value() == "an agent in c1\n");
  CHECK(s.store.read_at("2026-02-13T12:00:30Z", "STATE.md").value() ==
        "# Kernel State\nafter c1\n");
  CHECK(s.store.diff("HEAD~1", "c2").value().find("+after c2") != std::string::npos);
  CHECK(s.git("log -1 --format='%(trailers:only)'").text ==
        "Boyd-Cycle: c2\nBoyd-Node: n1\nBoyd-Graph-Head: g\n\n");
  CHECK(std::filesystem::exists(s.file("STATE.md.bak")));
  s.check_clean();
  s.check_sound();
}

TEST_CASE("a cycle's boundaries are made once each, empty or not") {
  real_store s;
  const state::commit_trailers trailers{"c1", "n1", ""};
  // Not even in an unborn branch does an empty boundary fail.
  const auto before = s.store.commit_boundary("pre-cycle c1", trailers, false);
  INFO((before ? std::string() : to_string(before.error())));
  REQUIRE(before);
  REQUIRE(s.store.write("STATE.md", "after c1\n"));
  const auto after = s.store.commit_boundary("cycle c1: success", trailers, true).value();
  put(s.file("notes.md"), "written after the crash\n");
  CHECK(s.store.commit_boundary("pre-cycle c1", trailers, true).value() == *before);
  CHECK(s.store.commit_boundary("cycle c1: success", trailers, true).value() == after);
  // What was written behind them has a commit of its own.
  CHECK(s.subjects() ==
        std::vector<std::string>{"auto: pre-write snapshot", "cycle c1: success", "pre-cycle c1"});
  CHECK_FALSE(s.store.has_changes().value());
  put(s.file("notes.md"), "written in the same life\n");
  CHECK(s.store.commit_boundary("cycle c1: success", trailers, false).value() == after);
  CHECK(s.store.has_changes().value());
  CHECK(s.git("status --porcelain").text == " M notes.md\n");
  REQUIRE(s.store.commit_boundary("pre-cycle c2", {"c2", "n1", ""}, true));
  REQUIRE(s.store.commit_boundary("cycle c2: success", {"c2", "n1", ""}, true));
  CHECK(s.subjects().size() == 5);
  CHECK(s.store.read_at("c1", "STATE.md").value() == "after c1\n");
  s.check_clean();
  s.check_sound();
}

TEST_CASE("a cycle is found by a beginning that only it has") {
  real_store s;
  for (const std::string id : {"cycle-zz-1", "cycle-zz-2", "cycle-yy-1"}) {
    REQUIRE(s.store.write("STATE.md", id + "\n"));
    REQUIRE(s.store.commit_all("cycle " + id, {id, "n1", ""}).value());
  }
  CHECK(s.store.read_at("cycle-yy", "STATE.md").value() == "cycle-yy-1\n");
  CHECK(s.store.read_at("cycle-zz-1", "STATE.md").value() == "cycle-zz-1\n");
  CHECK(s.store.resolve("cycle-zz").error().code == errc::invalid_argument);
  CHECK(s.store.resolve("cycle-y").error().code == errc::not_found);
}

TEST_CASE("a mass deletion is refused, and a person can make it by hand") {
  real_store s;
  for (const char* name : {"a", "b", "c"})
    put(s.file(name), "x");
  REQUIRE(s.store.commit_all("base").value());
  std::filesystem::remove(s.file("a"));
  std::filesystem::remove(s.file("b"));
  CHECK(s.store.commit_all("x").error().code == errc::refused);
  REQUIRE(
      s.git("add -A && git -c user.name=p -c user.email=p@p commit -q -m 'by hand'").exit_code ==
      0);
  CHECK_FALSE(s.store.commit_all("x").value());
}

TEST_CASE("git taken away and given back: files go on, history comes back") {
  real_store s;
  REQUIRE(s.store.write("STATE.md", "one\n"));
  REQUIRE(s.store.commit_all("one").value());
  std::filesystem::rename(s.file(".git"), s.root.file("away"));
  REQUIRE(s.store.write("STATE.md", "two\n"));
  CHECK(get(s.file("STATE.md")) == "two\n");
  CHECK(s.store.health().degraded);
  CHECK_FALSE(std::filesystem::exists(s.file(".git")));
  std::filesystem::rename(s.root.file("away"), s.file(".git"));
  s.clock.passed += limits::backoff_cap;
  CHECK(s.store.commit_all("two").value());
  CHECK_FALSE(s.store.health().degraded);
  CHECK(s.subjects() == std::vector<std::string>{"two", "one"});
  s.check_clean();
  s.check_sound();
}

TEST_CASE("the directory taken away and given back: an error, then as before") {
  real_store s;
  REQUIRE(s.store.write("STATE.md", "one\n"));
  std::filesystem::rename(s.path, s.root.file("away"));
  CHECK(s.store.write("STATE.md", "two\n").error().code == errc::io_error);
  CHECK(s.store.read("STATE.md").error().code == errc::io_error);
  CHECK_FALSE(s.store.commit_all("x"));
  CHECK_FALSE(std::filesystem::exists(s.path));
  std::filesystem::rename(s.root.file("away"), s.path);
  s.clock.passed += limits::backoff_cap;
  CHECK(s.store.read("STATE.md").value() == "one\n");
  REQUIRE(s.store.write("STATE.md", "three\n"));
  REQUIRE(s.store.commit_all("three").value());
  CHECK_FALSE(s.store.health().degraded);
  s.check_clean();
}

TEST_CASE("a directory inside a person's work tree is refused at init") {
  git_home outer;
  const auto files = adapters::make_posix_file_system();
  hand_clock clock;
  versioned_store inner(*files, *outer.provider, clock, {outer.file("kernel"), {}, true, true});
  CHECK(inner.init().error().code == errc::refused);
  put(outer.file(".gitignore"), "/kernel/\n");
  CHECK(inner.init());
}

/// One script for the real repository and the simulated one; they must say the same.
TEST_CASE("conformance: simulated and real repositories agree") {
  const std::string home = "/home/kernel";
  git_home real;
  sim::sim_disk disk;
  sim::sim_repositories simulated(disk);
  auto made = simulated.init(home, {});
  REQUIRE(made);
  const bool use_real = GENERATE(true, false);
  repository& repo = use_real ? *real.repo : **made;
  const auto write = [&](const std::string& name, const std::string& text) {
    if (use_real)
      put(real.file(name), text);
    else
      disk.put(home + "/" + name, text);
  };
  using changes = std::vector<path_change>;
  CHECK_FALSE(repo.head().value());
  CHECK(repo.history("", 3).value().empty());
  CHECK(repo.commit_at(at(noon)).error().code == errc::not_found);
  CHECK(repo.read_at("HEAD", "a").error().code == errc::not_found);
  CHECK(repo.diff("HEAD", "HEAD").error().code == errc::not_found);
  write("a", "1\n");
  write("dir/b", "1\n");
  write(".a.boyd-tmp-0", "x");
  write("a.bak", "x");
  REQUIRE(repo.changes().value() ==
          changes{{"a", change_kind::added}, {"dir/b", change_kind::added}});
  REQUIRE(repo.stage({{"a", change_kind::modified}}));
  REQUIRE(repo.changes().value().size() == 2);
  const auto c1 = repo.commit({{"a", change_kind::added}}, "one\n\nBoyd-Cycle: c\n", at(noon));
  REQUIRE(c1.value());
  CHECK(c1.value()->size() == 40);
  CHECK(repo.head().value() == *c1);
  CHECK(repo.tracked_files().value() == 1);
  CHECK(repo.changes().value() == changes{{"dir/b", change_kind::added}});
  CHECK_FALSE(repo.commit({{"a", change_kind::modified}}, "none", at(noon)).value());
  CHECK_FALSE(repo.commit({{"no", change_kind::modified}}, "none", at(noon)).value());
  write("a", "2\n");
  const auto c2 =
      repo.commit(repo.changes().value(), "two", at(noon + 60) + milliseconds{300}).value();
  REQUIRE(c2);
  CHECK(repo.changes().value().empty());
  CHECK(repo.diff("HEAD", "").value().empty());
  CHECK(repo.diff(**c1, **c1).value().empty());
  CHECK_FALSE(repo.diff(**c1, *c2).value().empty());
  const auto all = repo.history("", 9).value();
  REQUIRE(all.size() == 2);
  CHECK(all[0].subject == "two");
  CHECK(all[0].time == at(noon + 60));
  CHECK(all[1].trailers == std::vector<std::pair<std::string, std::string>>{{"Boyd-Cycle", "c"}});
  CHECK(repo.history("dir/b", 9).value().size() == 1);
  CHECK(repo.commit_at(at(noon + 59)).value() == **c1);
  CHECK(repo.read_at((*c1)->substr(0, 10), "a").value() == "1\n");
  CHECK(repo.read_at(**c1, "dir/b").error().code == errc::not_found);
  CHECK(repo.loose_objects().value() > 0);
  CHECK(repo.pack().value() > 0);
  CHECK(repo.loose_objects().value() == 0);
  if (use_real)
    std::filesystem::remove(real.file("a"));
  else
    REQUIRE(disk.unlink(home + "/a"));
  CHECK(repo.changes().value() == changes{{"a", change_kind::deleted}});
  REQUIRE(repo.commit({{"a", change_kind::deleted}}, "gone", at(noon + 90)).value());
  // Without a path, the commit is meant to be empty.
  const auto empty = repo.commit({}, "empty\n\nBoyd-Cycle: d\n", at(noon + 95)).value();
  REQUIRE(empty);
  CHECK(repo.head().value() == empty);
  CHECK(repo.diff("HEAD", "").value().empty());
  CHECK(repo.history("", 1).value().front().trailers.front().second == "d");
  CHECK(repo.tracked_files().value() == 1);
  CHECK(repo.history("a", 9).value().size() == 3);
  // Two at once: the earlier one with another text of one file, from HEAD's and the later one's.
  const earlier_version joined{"dir/b", [](const std::string& at_head, const std::string& later) {
                                 return at_head + "+" + later;
                               }};
  write("a", "3\n");
  write("dir/b", "2\n");
  const auto two = repo.commit_two(repo.changes().value(), joined, "first", "second", at(noon));
  REQUIRE(two);
  CHECK(repo.head().value() == two->later);
  CHECK(repo.read_at(two->later, "dir/b").value() == "2\n");
  CHECK(repo.read_at(two->earlier, "dir/b").value() == "1\n+2\n");
  CHECK(repo.read_at(two->earlier, "a").value() == "3\n");
  CHECK(repo.history("", 9).value()[1].hash == two->earlier);
  CHECK(repo.changes().value().empty());
  const auto nothing = repo.commit_two({}, joined, "first", "second", at(noon));
  REQUIRE(nothing);
  CHECK(repo.diff(two->later, nothing->later).value().empty());
  CHECK(repo.history("", 9).value()[2].hash == two->later);
}

} // namespace boyd::store_test
