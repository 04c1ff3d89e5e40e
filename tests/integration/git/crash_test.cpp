#include "integration/git/fixture.hpp"
#include "integration/git/stepper.hpp"
#include "support/telling.hpp"

#include <algorithm>
#include <utility>

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

/// A commit of which calls were killed or refused.
struct struck_commit {
  std::string name;
  stepped run;
  bool struck = false; ///< a call was
};

/// Strikes a commit at its call 0, then another one at its call 1, and so on until one has no such
/// call; after each, the next commit must work and leave one commit of the name. `child` commits
/// STATE.md under the name that it is given, `strike` is asked for each call of it with the number
/// in turn, `look` follows at once. How many there were; 0: it cannot be done here.
template <class Child, class Strike, class Look>
int at_each_call(git_home& h, const std::string& prefix, Child child, Strike strike, Look look) {
  put(h.file("STATE.md"), "start\n");
  REQUIRE(h.commit_all("start"));
  int point = 0;
  for (bool all = false; !all && point < most_steps; ++point) {
    struck_commit c{prefix + std::to_string(point), {}, false};
    put(h.file("STATE.md"), c.name + "\n");
    bool reached = false;
    c.run = run_stepped([&] { return child(c.name); },
                        [&](const disk_step& step) {
                          const auto choice = strike(step, point);
                          reached = reached || choice != step_choice::go;
                          return choice;
                        });
    if (skipped(c.run))
      return 0;
    c.struck = reached;
    all = !reached;
    INFO("from call " << point << ", answer " << c.run.exit_code);
    look(std::as_const(c));
    const int again = commit_once(h, c.name);
    REQUIRE((again == committed || again == nothing_to_do));
    REQUIRE(promised(times(h, c.name) == 1, "a commit was made twice, or is lost"));
    REQUIRE(h.git("status --porcelain").text.empty());
    REQUIRE_FALSE(std::filesystem::exists(h.file(".git/index.lock")));
    REQUIRE_FALSE(std::filesystem::exists(h.file(".git/refs/heads/main.lock")));
  }
  h.check_sound();
  return point;
}

} // namespace

TEST_CASE("killed before any call of a commit: the next commit works at once") {
  git_home h;
  const int points = at_each_call(
      h, "k", [&](const std::string& name) { return commit_once(h, name); },
      [](const disk_step& step, int point) {
        return step.number == point ? step_choice::kill : step_choice::go;
      },
      [](const struck_commit& c) { REQUIRE((c.run.killed || c.run.exit_code == committed)); });
  if (points == 0)
    return;
  CHECK(points > 20);
  CHECK(points < most_steps);
}

TEST_CASE(
    "case 43 commit-error-but-moved: one failing call in a commit never makes a duplicate or a "
    "false answer") {
  git_home h;
  bool moved_in_spite = false;
  const int points = at_each_call(
      h, "e", [&](const std::string& name) { return commit_once(h, name); },
      [](const disk_step& step, int point) {
        return step.number == point ? step_choice::refuse : step_choice::go;
      },
      [&](const struck_commit& c) {
        REQUIRE((c.run.exit_code == committed || c.run.exit_code == failed));
        if (c.run.exit_code == committed)
          REQUIRE(
              promised(times(h, c.name) == 1, "a commit that was acknowledged is not there once"));
        moved_in_spite = moved_in_spite || (c.run.exit_code == committed && c.struck);
      });
  if (points == 0)
    return;
  CHECK(moved_in_spite);
  CHECK(points > 20);
  tell_figure("case 43: " + std::to_string(points - 1) +
              " calls of a commit failed, each once: 0 second commits, 0 false answers");
}

TEST_CASE(
    "case 34 eio-fsync-for-ever: a commit that is not on the disk is neither acknowledged nor "
    "believed by who looks for it") {
  git_home h;
  const auto commit_and_look = [&](const std::string& name) {
    if (commit_once(h, name) == committed)
      return committed;
    // Opened anew by the same process, as after any error of it.
    auto repo = adapters::make_git_repositories()->open(h.path, h.who);
    return repo && (*repo)->head() ? nothing_to_do : failed;
  };
  bool moved = false;
  const int points = at_each_call(
      h, "f", commit_and_look,
      [](const disk_step& step, int point) {
        return step.sync && step.number >= point ? step_choice::refuse : step_choice::go;
      },
      [&](const struck_commit& c) {
        const bool there = times(h, c.name) == 1;
        moved = moved || (c.struck && there);
        REQUIRE(promised((c.run.exit_code == committed) != c.struck,
                         "a commit was acknowledged without its sync"));
        REQUIRE(promised(!c.struck || !there || c.run.exit_code == failed,
                         "a commit that is not on the disk was believed"));
      });
  if (points == 0)
    return;
  CHECK(moved);
  CHECK(points > 10);
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
