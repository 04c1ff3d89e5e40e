#include "crash/campaign.hpp"
#include "e2e/improve_lab.hpp"
#include "support/pch.hpp"

#include <filesystem>
#include <iostream>

namespace boyd::crash {

using namespace boyd::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

/// Two tests fail. The patch mends the one that is chosen; what a second task would be stays.
const std::map<std::string, std::string> files{
    {"a.txt", "old\n"},
    {"b.txt", "bye\n"},
    {"test.sh",
     "#!/bin/sh\nif grep -q new a.txt; then echo 'ok 1 - a'; else echo 'not ok 1 - a'; fi\n"
     "if grep -q new z.txt; then echo 'ok 2 - last'; else echo 'not ok 2 - last'; fi\n"},
    {"z.txt", "old\n"},
    {"README.md", "test.sh\n"}};

std::string improve_part(const std::string& gate) {
  return "  scanners: [{name: tests, source: test, parser: tap, argv: [./test.sh]}]\n"
         "  hygiene: {enabled: false}\n"
         "  gate: [[" +
         gate + "]]\n  executor: {type: script, file: answers.yaml}\n";
}

/// What would mend the other test, were it asked for.
std::string second_patch() {
  return nlohmann::json{
      {"summary", "a second task"},
      {"files", {{{"path", "z.txt"}, {"action", "modify"}, {"content", "new\n"}}}}}
      .dump();
}

std::string patch() {
  return nlohmann::json{{"summary", "three files"},
                        {"files",
                         {{{"path", "a.txt"}, {"action", "modify"}, {"content", "new\n"}},
                          {{"path", "d/c.txt"}, {"action", "create"}, {"content", "made\n"}},
                          {{"path", "b.txt"}, {"action", "delete"}}}}}
      .dump();
}

/// A repository, killed and resumed.
class victim {
 public:
  explicit victim(const std::string& gate)
      : lab_(files, improve_part(gate)), before_(lab_.print()) {
    lab_.answers({patch(), second_patch()});
  }

  finished run(std::vector<std::string> args, const fault& f) {
    args.insert(args.begin(), {"--apply", "--auto-commit"});
    return program(lab_.argv(args), shim_.arm(fs::canonical(lab_.root()), f)).finish();
  }
  std::uint64_t calls() const { return shim_.calls(); }
  bool struck() const { return shim_.struck(); }
  std::string where() const { return shim_.where(); }
  const repository_lab& lab() const { return lab_; }
  bool is_before() const { return lab_.print() == before_; }
  bool is_after() const {
    return lab_.get("a.txt") == "new\n" && lab_.get("d/c.txt") == "made\n" &&
           !fs::exists(lab_.path("b.txt"));
  }
  void check_end(bool good) const {
    CHECK((good ? is_after() : is_before()));
    CHECK(lab_.git("log --format=%s") == (good ? "three files\nfirst\n" : "first\n"));
    CHECK(lab_.git("status --porcelain").empty());
    lab_.git("fsck --strict");
    const auto undo = lab_.path("_outputs/agi_kernel/undo");
    CHECK((!fs::exists(undo) || fs::is_empty(undo)));
    CHECK_FALSE(fs::exists(lab_.path("_outputs/agi_kernel/lock")));
    CHECK(lab_.state().at("status") != "RUNNING");
    CHECK(lab_.state().at("failure_log").size() <= 1);
    CHECK(lab_.state().at("successes").size() == (good ? 1 : 0));
    CHECK(lab_.state().at("selected_task").at("finding").at("test") == "a");
    CHECK(lab_.get("z.txt") == "old\n");
  }

 private:
  repository_lab lab_;
  std::map<std::string, std::string> before_;
  shim shim_;
};

/// Kills a cycle at calls that are spread over all of it, at random within each stretch, and
/// resumes each.
void kill_everywhere(bool good, std::uint64_t points) {
  const std::string gate = good ? "\"true\"" : "\"false\"";
  const auto e = effort_of(points, 90s);
  std::uint64_t total = 0;
  {
    victim v(gate);
    const auto ran = v.run({}, {action::none, 0});
    INFO(ran.out << ran.err);
    CHECK(ran.code == (good ? 0 : 1));
    v.check_end(good);
    total = v.calls();
  }
  REQUIRE(total > 20);
  const auto stride =
      e.all ? 1 : std::max<std::uint64_t>(1, total / std::max<std::uint64_t>(e.points, 1));
  tally t(e);
  std::mt19937_64 random(e.seed);
  for (std::uint64_t first = 1; first <= total && !t.enough(); first += stride, t.one()) {
    const auto last = std::min(first + stride - 1, total);
    const auto at = std::uniform_int_distribution<std::uint64_t>(first, last)(random);
    victim v(gate);
    const auto dead = v.run({}, {action::kill, at});
    INFO(about(e, t.done(), {action::kill, at}) << ": " << v.where() << "\n"
                                                << dead.out << dead.err);
    REQUIRE((dead.code == killed || !v.struck()));
    auto ended = v.run({"--resume"}, {});
    INFO(ended.out << ended.err);
    // Before its first state, and after its last, there is nothing to resume.
    if (ended.err.find("no cycle") != std::string::npos) {
      CHECK((v.is_before() || v.is_after()));
      // Another cycle after one that ended would rightly take the other task.
      if (ended.err.find("the last one") == std::string::npos)
        ended = v.run({}, {});
    }
    INFO(ended.out << ended.err);
    v.check_end(good);
  }
  std::cout << "improve: " << t.done() << " kills of " << total << " calls, gate "
            << (good ? "passes" : "fails") << "\n";
}

} // namespace

TEST_CASE("case 49 patch-half-applied: an improvement cycle that is killed at every write ends "
          "with all of its patch") {
  kill_everywhere(true, 40);
}

TEST_CASE("an improvement cycle that is killed while it fails leaves the tree as it was") {
  kill_everywhere(false, 40);
}

} // namespace boyd::crash
