#include "integration/git/fixture.hpp"
#include "integration/git/stepper.hpp"
#include "support/telling.hpp"

#include <algorithm>

namespace boyd::crash_test {

using namespace boyd;
using namespace boyd::test;

namespace {

constexpr int committed = 10;
constexpr int failed = 11;
constexpr int nothing_to_do = 12;
/// More file-changing calls than this in one commit would be a fault of its own.
constexpr int most_steps = 400;

int commit_once(const git_home& h, const std::string& message) {
  auto repo = adapters::make_git_repositories()->open(h.path, h.who);
  if (!repo)
    return failed;
  const auto done = (*repo)->commit({{"STATE.md", change_kind::modified}}, message, at(noon));
  return !done ? failed : *done ? committed : nothing_to_do;
}

/// "before NAME" and NAME, with STATE.md's text of the same kind.
int commit_two(const git_home& h, const std::string& name) {
  auto repo = adapters::make_git_repositories()->open(h.path, h.who);
  if (!repo)
    return failed;
  const earlier_version version{
      "STATE.md", [](const std::string&, const std::string& later) { return "before " + later; }};
  const auto done = (*repo)->commit_two({{"STATE.md", change_kind::modified}}, version,
                                        "before " + name, name, at(noon));
  return done ? committed : failed;
}

std::size_t times(const git_home& h, const std::string& subject) {
  const auto all = h.subjects();
  return static_cast<std::size_t>(std::count(all.begin(), all.end(), subject));
}

bool skipped(const stepped& run) {
  if (!run.possible)
    tell_skipped("kill points inside a commit", "tracing a child process is not permitted");
  return !run.possible;
}

} // namespace

TEST_CASE("killed before any call of a commit: the next commit works at once") {
  git_home h;
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  int point = 0;
  for (bool all = false; !all && point < most_steps; ++point) {
    const std::string name = "k" + std::to_string(point);
    put(h.file("STATE.md"), name + "\n");
    const auto run =
        run_stepped([&] { return commit_once(h, name); },
                    [&](const disk_step& step) {
                      return step.number == point ? step_choice::kill : step_choice::go;
                    });
    if (skipped(run))
      return;
    all = !run.killed;
    INFO("kill point " << point);
    REQUIRE((run.killed || run.exit_code == committed));
    const int again = commit_once(h, name);
    REQUIRE((again == committed || again == nothing_to_do));
    REQUIRE(promised(times(h, name) == 1, "a commit was made twice, or is lost"));
    REQUIRE(h.git("status --porcelain").text.empty());
    REQUIRE_FALSE(std::filesystem::exists(h.file(".git/index.lock")));
    REQUIRE_FALSE(std::filesystem::exists(h.file(".git/refs/heads/main.lock")));
  }
  CHECK(point > 20);
  CHECK(point < most_steps);
  h.check_sound();
}

TEST_CASE(
    "case 43 commit-error-but-moved: one failing call in a commit never makes a duplicate or a "
    "false answer") {
  git_home h;
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  int point = 0;
  bool moved_in_spite = false;
  for (bool all = false; !all && point < most_steps; ++point) {
    const std::string name = "e" + std::to_string(point);
    put(h.file("STATE.md"), name + "\n");
    bool reached = false;
    const auto run =
        run_stepped([&] { return commit_once(h, name); },
                    [&](const disk_step& step) {
                      reached = reached || step.number == point;
                      return step.number == point ? step_choice::refuse : step_choice::go;
                    });
    if (skipped(run))
      return;
    all = !reached;
    INFO("failing call " << point << ", answer " << run.exit_code);
    REQUIRE((run.exit_code == committed || run.exit_code == failed));
    if (run.exit_code == committed)
      REQUIRE(promised(times(h, name) == 1, "a commit that was acknowledged is not there once"));
    moved_in_spite = moved_in_spite || (run.exit_code == committed && reached);
    const int again = commit_once(h, name);
    REQUIRE((again == committed || again == nothing_to_do));
    REQUIRE(promised(times(h, name) == 1, "a commit was made twice, or is lost"));
    REQUIRE(h.git("status --porcelain").text.empty());
  }
  CHECK(moved_in_spite);
  CHECK(point > 20);
  h.check_sound();
  tell_figure("case 43: " + std::to_string(point - 1) +
              " calls of a commit failed, each once: 0 second commits, 0 false answers");
}

TEST_CASE(
    "case 34 eio-fsync-for-ever: a commit is not acknowledged when a sync that it needs failed, "
    "also where HEAD has moved") {
  git_home h;
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  int point = 0;
  bool moved = false;
  for (bool all = false; !all && point < most_steps; ++point) {
    const std::string name = "f" + std::to_string(point);
    put(h.file("STATE.md"), name + "\n");
    bool refused = false;
    const auto run = run_stepped([&] { return commit_once(h, name); },
                                 [&](const disk_step& step) {
                                   const bool fails = step.sync && step.number >= point;
                                   refused = refused || fails;
                                   return fails ? step_choice::refuse : step_choice::go;
                                 });
    if (skipped(run))
      return;
    all = !refused;
    INFO("syncs fail from call " << point << ", answer " << run.exit_code);
    REQUIRE(promised(run.exit_code == (refused ? failed : committed),
                     "a commit was acknowledged without its sync"));
    moved = moved || (refused && times(h, name) == 1);
    const int again = commit_once(h, name);
    REQUIRE((again == committed || again == nothing_to_do));
    REQUIRE(promised(times(h, name) == 1, "a commit was made twice, or is lost"));
  }
  CHECK(moved);
  CHECK(point > 10);
  h.check_sound();
}

TEST_CASE(
    "case 34 eio-fsync-for-ever: a commit that is not on the disk is not believed by who looks "
    "for it either") {
  git_home h;
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  constexpr int refused_too = 20;
  constexpr int believed = 21;
  int point = 0;
  bool moved = false;
  for (bool all = false; !all && point < most_steps; ++point) {
    const std::string name = "g" + std::to_string(point);
    put(h.file("STATE.md"), name + "\n");
    bool refused = false;
    // The repository is opened anew by the same process, as after any error of it.
    const auto run = run_stepped(
        [&] {
          if (commit_once(h, name) == committed)
            return committed;
          auto repo = adapters::make_git_repositories()->open(h.path, h.who);
          return repo && (*repo)->head() ? believed : refused_too;
        },
        [&](const disk_step& step) {
          const bool fails = step.sync && step.number >= point;
          refused = refused || fails;
          return fails ? step_choice::refuse : step_choice::go;
        });
    if (skipped(run))
      return;
    all = !refused;
    INFO("syncs fail from call " << point << ", answer " << run.exit_code);
    if (refused) {
      const bool there = times(h, name) == 1;
      moved = moved || there;
      REQUIRE(promised(!there || run.exit_code == refused_too,
                       "a commit that is not on the disk was believed"));
    }
    const int again = commit_once(h, name);
    REQUIRE((again == committed || again == nothing_to_do));
    REQUIRE(promised(times(h, name) == 1, "a commit was made twice, or is lost"));
  }
  CHECK(moved);
  h.check_sound();
}

TEST_CASE("one failing call, or a kill, in two commits leaves both of them or none") {
  const auto how = GENERATE(step_choice::kill, step_choice::refuse);
  git_home h;
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  int point = 0;
  bool moved_in_spite = false;
  for (bool all = false; !all && point < most_steps; ++point) {
    const std::string name = "t" + std::to_string(point);
    put(h.file("STATE.md"), name + "\n");
    bool reached = false;
    const auto run = run_stepped([&] { return commit_two(h, name); },
                                 [&](const disk_step& step) {
                                   reached = reached || step.number == point;
                                   return step.number == point ? how : step_choice::go;
                                 });
    if (skipped(run))
      return;
    all = !reached;
    INFO("call " << point << ", way " << static_cast<int>(how) << ", answer " << run.exit_code);
    const auto made = times(h, name);
    REQUIRE(times(h, "before " + name) == made);
    REQUIRE((run.killed || run.exit_code == committed || run.exit_code == failed));
    if (!run.killed)
      REQUIRE(made == (run.exit_code == committed ? 1 : 0));
    moved_in_spite = moved_in_spite || (made == 1 && reached);
    if (made == 0)
      REQUIRE(commit_two(h, name) == committed);
    REQUIRE(h.git("show HEAD~1:STATE.md").text == "before " + name + "\n");
    REQUIRE(h.git("show HEAD:STATE.md").text == name + "\n");
    REQUIRE_FALSE(std::filesystem::exists(h.file(".git/refs/heads/main.lock")));
    // What a kill behind the ref leaves of the index lock goes with the next commit.
    if (made == 0)
      REQUIRE(h.git("status --porcelain").text.empty());
  }
  CHECK(moved_in_spite);
  CHECK(point > 30);
  CHECK(point < most_steps);
  REQUIRE(commit_two(h, "last") == committed);
  h.check_clean();
  h.check_sound();
}

TEST_CASE("case 44 fault-during-recovery: opening what a crash has left may be killed, or fail, at "
          "any call") {
  // A commit that dies before this call leaves locks and loose ends behind.
  constexpr int crash_point = 30;
  int cleared = 0;
  int points = 0;
  for (const auto how : {step_choice::kill, step_choice::refuse}) {
    int point = 0;
    for (bool all = false; !all && point < most_steps; ++point) {
      git_home h;
      put(h.file("STATE.md"), "start\n");
      REQUIRE(h.commit_all("start"));
      put(h.file("STATE.md"), "changed\n");
      const auto crashed =
          run_stepped([&] { return commit_once(h, "crashed"); },
                      [&](const disk_step& step) {
                        return step.number == crash_point ? step_choice::kill : step_choice::go;
                      });
      if (skipped(crashed))
        return;
      const bool locked = std::filesystem::exists(h.file(".git/index.lock")) ||
                          std::filesystem::exists(h.file(".git/refs/heads/main.lock"));
      cleared += locked ? 1 : 0;
      bool reached = false;
      (void)run_stepped(
          [&] { return adapters::make_git_repositories()->open(h.path, h.who) ? 0 : failed; },
          [&](const disk_step& step) {
            reached = reached || step.number == point;
            return step.number == point ? how : step_choice::go;
          });
      all = !reached;
      INFO("call " << point << ", way " << static_cast<int>(how));
      const int again = commit_once(h, "crashed");
      REQUIRE((again == committed || again == nothing_to_do));
      REQUIRE(times(h, "crashed") == 1);
      h.check_sound();
      h.check_clean();
    }
    CHECK(point < most_steps);
    points += point - 1;
  }
  CHECK(cleared > 0);
  tell_figure("case 44: a repository opened after a crash, killed or failing at " +
              std::to_string(points) + " calls: the next commit works after each");
}

TEST_CASE("killed before any call of packing: every commit stays readable") {
  constexpr int rounds = 12;
  int point = 0;
  for (bool all = false; !all && point < most_steps; point += 3) {
    git_home h;
    for (int i = 0; i < rounds; ++i) {
      put(h.file("STATE.md"), std::to_string(i) + "\n");
      REQUIRE(h.commit_all("c" + std::to_string(i)));
      if (i == rounds / 2)
        REQUIRE(h.repo->pack());
    }
    const auto run = run_stepped(
        [&] {
          auto repo = adapters::make_git_repositories()->open(h.path, h.who);
          return repo && (*repo)->pack() ? committed : failed;
        },
        [&](const disk_step& step) {
          return step.number == point ? step_choice::kill : step_choice::go;
        });
    if (skipped(run))
      return;
    all = !run.killed;
    INFO("kill point " << point);
    h.check_sound();
    REQUIRE(h.subjects().size() == rounds);
    REQUIRE(h.repo->pack());
    CHECK(h.repo->loose_objects().value() == 0);
    h.check_sound();
  }
  CHECK(point > 20);
}

TEST_CASE("the cost of a commit does not grow with the number of commits") {
  git_home h;
  const auto steps = [&](const std::string& name) {
    put(h.file("STATE.md"), name + "\n");
    const auto run = run_stepped([&] { return commit_once(h, name); },
                                 [](const disk_step&) { return step_choice::go; });
    REQUIRE((!run.possible || run.exit_code == committed));
    return run;
  };
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  const auto early = steps("early");
  if (skipped(early))
    return;
  for (int i = 0; i < 200; ++i) {
    put(h.file("STATE.md"), std::to_string(i) + "\n");
    REQUIRE(h.commit_all("c" + std::to_string(i)));
  }
  // New fan-out directories of loose objects may or may not be needed.
  CHECK(steps("late").steps <= early.steps + 6);
  REQUIRE(h.repo->pack());
  CHECK(steps("packed").steps <= early.steps + 6);
}

} // namespace boyd::crash_test
