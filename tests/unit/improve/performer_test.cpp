#include "boyd/core/sha256.hpp"
#include "boyd/improve/performer.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "support/knob.hpp"
#include "support/pch.hpp"
#include "tree_lab.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>
#include <set>

/// Whole cycles on real files and a real git repository, with models that are simulated.
namespace boyd::performer_test {

using namespace boyd::improve;
namespace fs = std::filesystem;

namespace {

class steps final : public clock_port {
 public:
  utc_time now() const override { return utc_time(milliseconds(1'780'000'000'000 + tick())); }
  steady_time steady() const override { return steady_time(milliseconds(tick())); }

 private:
  std::int64_t tick() const { return 1000 * ++ticks_; }
  mutable std::int64_t ticks_ = 0;
};

/// The process ends here, as by kill -9.
struct killed {};

std::string patch(const std::string& path, const std::string& action, const std::string& content) {
  return nlohmann::json{{"summary", "changes " + path},
                        {"files", {{{"path", path}, {"action", action}, {"content", content}}}}}
      .dump();
}

const std::string good = "good\n";
const std::string bad = "bad\n";

/// Two failing tests and a broken link, and models that answer as the seed says.
class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed) {
    lab.put("a.txt", bad);
    lab.put("b.txt", bad);
    lab.put("README.md", "See [it](gone.md).\n");
    lab.put("secure/key", "x\n");
    lab.put("keep.sh", "#!/bin/sh\n", 0755);
    fs::create_symlink("..", lab.path("up"));
    std::ofstream(outside()) << "somebody's";
    auto repository = git->init(lab.root(), {});
    REQUIRE(repository);
    const auto all = (*repository)->changes();
    REQUIRE(all);
    REQUIRE((*repository)->commit(*all, "first", clock.now()));
    order.root = lab.root();
    scanner_settings tests;
    tests.name = "tests";
    tests.parser = report_format::tap;
    tests.argv = {"tests"};
    order.settings.scanners = {tests};
    order.settings.protect = {"secure/**"};
    order.settings.executors = {{"weak", false}, {"strong", false}};
    order.settings.hygiene.rules_off = {"unreferenced-script"};
    order.options.apply = true;
    order.options.executors = order.settings.executors;
    order.resume_open = true;
  }

  std::string outside() const { return fs::path(lab.root()).parent_path() / "outside"; }
  unsigned draw(unsigned most) { return std::uniform_int_distribution<unsigned>(0, most)(random_); }

  /// One cycle to its end, however often it is killed in between.
  cycle_state cycle() {
    asked.clear();
    selected.clear();
    told = {};
    order.options.auto_commit = true;
    for (int tries = 0; tries < 20; ++tries) {
      may_die_ = tries < 3;
      try {
        const auto state = run_cycle(order, ports());
        if (!state)
          INFO(to_string(state.error()));
        REQUIRE(state);
        return *state;
      } catch (const killed&) {
        ++kills;
      }
    }
    FAIL("a cycle does not end");
    throw killed{};
  }

  test::tree_lab lab;
  steps clock;
  std::shared_ptr<repository_provider> git = adapters::make_git_repositories();
  improve_order order;
  std::vector<std::string> asked; ///< executors, of one cycle
  std::set<std::string> selected; ///< tasks, of one cycle
  spending told;                  ///< since the last kill
  int kills = 0;
  std::map<std::string, int> kinds; ///< how often a model did what

 private:
  improve_ports ports() {
    const auto nonce = std::to_string(++runs_);
    return {clock,
            *lab.files,
            *lab.inside,
            *lab.tree,
            *git,
            [this](const command_order&) { return run_tests(); },
            [](std::int64_t) -> result<answer_end> { return fail(errc::not_found, "no script"); },
            [this](const agent_order& o) { return answer(o.name, o.prompt); },
            {1, 1, nonce, {}},
            [nonce](const lock_holder& h) { return h.nonce == nonce; },
            [this](const std::string&) { die_perhaps(); },
            {}};
  }

  void die_perhaps() {
    if (may_die_ && draw(39) == 0)
      throw killed{};
  }

  command_end run_tests() {
    die_perhaps();
    command_end end;
    if (draw(49) == 0) {
      end.timed_out = true;
      return end;
    }
    int n = 0;
    for (const auto* name : {"a", "b"}) {
      const bool passes = lab.get(std::string(name) + ".txt") == good;
      end.out += (passes ? "ok " : "not ok ") + std::to_string(++n) + " - " + name + "\n";
    }
    end.exit_code = end.out.find("not ok") == std::string::npos ? 0 : 1;
    return end;
  }

  answer_end answer(const std::string& name, const std::string& prompt) {
    asked.push_back(name);
    const auto begin = prompt.find("Task ") + 5;
    selected.insert(prompt.substr(begin, prompt.find(':', begin) - begin));
    die_perhaps();
    answer_end a = drawn(prompt);
    a.spent = {1 + draw(9), 10, 5, 1};
    told += a.spent;
    return a;
  }

  answer_end drawn(const std::string& prompt) {
    const bool link = prompt.find("gone.md") != std::string::npos &&
                      prompt.find("broken-link") != std::string::npos;
    const std::string path = link                                            ? "README.md"
                             : prompt.find(": a fails") != std::string::npos ? "a.txt"
                                                                             : "b.txt";
    switch (draw(5)) {
    case 0:
    case 1:
      ++kinds["well"];
      return said(link ? patch(path, "modify", "See it.\n") : patch(path, "modify", good));
    case 2:
      ++kinds["badly"];
      return said(draw(1) == 0 ? patch(path, "modify", "worse " + std::to_string(draw(1000)) + "\n")
                               : patch(path, "delete", {}));
    case 3:
      ++kinds["late"];
      return {{}, draw(3) == 0 ? failure_kind::environment : failure_kind::transient, "too late"};
    case 4:
      ++kinds["babble"];
      return said(babble());
    default:
      ++kinds["hostile"];
      return said(hostile());
    }
  }

  static answer_end said(std::string text) {
    answer_end a;
    a.text = std::move(text);
    return a;
  }

  std::string babble() {
    std::string text;
    for (auto n = draw(60); n > 0; --n)
      text += "{}[]\"\\@+-diff \n\0\xff"[draw(16)];
    return draw(1) == 0 ? text : R"({"files": [)" + text + "]}";
  }

  std::string hostile() {
    switch (draw(14)) {
    case 12:
      return patch(".gitignore", "create", "README.md\n");
    case 13:
      return patch("conftest.py", "create", "x\n");
    case 14:
      return patch("README.md", draw(1) == 0 ? "delete" : "modify", {});
    case 0:
      return patch(".git/hooks/pre-commit", "create", "#!/bin/sh\n");
    case 1:
      return patch("../outside", "modify", "mine");
    case 2:
      return patch("up/outside", "modify", "mine");
    case 3:
      return patch(outside(), "modify", "mine");
    case 4:
      return patch("secure/key", "modify", "mine");
    case 5:
      return patch("A.txt", "create", good);
    case 6:
      return patch(".gitattributes", "create", "* filter=x\n");
    case 7: {
      std::string many;
      for (int i = 0; i < 300; ++i)
        many += std::to_string(i) + "\n";
      return patch("many.txt", "create", many);
    }
    case 8: {
      auto files = nlohmann::json::array();
      for (int i = 0; i < 6; ++i)
        files.push_back(
            {{"path", "n" + std::to_string(i)}, {"action", "create"}, {"content", "x\n"}});
      return nlohmann::json{{"files", files}}.dump();
    }
    case 9:
      return patch("_outputs/agi_kernel/state.json", "modify", "{}");
    case 10:
      return "diff --git a/keep.sh b/keep.sh\nold mode 100755\nnew mode 100644\n";
    default:
      return patch(".GIT/config", "create", "[core]\n");
    }
  }

  std::mt19937_64 random_;
  bool may_die_ = false;
  int runs_ = 0;
};

/// Names without directories, whose times change when something comes and goes.
std::map<std::string, std::string> files_of(const world& w) {
  auto all = w.lab.print();
  std::erase_if(all, [](const auto& entry) {
    return entry.first.starts_with(".git/") || entry.first == ".git" ||
           entry.first.starts_with("_logs");
  });
  return all;
}

std::set<std::string> differing(const std::map<std::string, std::string>& a,
                                const std::map<std::string, std::string>& b) {
  std::set<std::string> names;
  for (const auto& [name, text] : a)
    if (const auto it = b.find(name); it == b.end() || it->second != text)
      names.insert(name);
  for (const auto& [name, text] : b)
    if (!a.contains(name))
      names.insert(name);
  return names;
}

/// What docs/improve.md promises of every cycle.
void judge(world& w, const cycle_state& s, const cycle_state& before,
           const std::map<std::string, std::string>& tree_before) {
  const auto changed = differing(tree_before, files_of(w));
  std::set<std::string> wanted;
  if (s.outcome == "SUCCESS") {
    for (const auto& c : s.execution.patch->changes)
      wanted.insert(c.path);
    CHECK(s.verification.proof_passed);
    // The three findings are mended in their files, which stay.
    for (const auto* name : {"a.txt", "b.txt", "README.md"})
      CHECK(w.lab.get(name).size() > 3);
    CHECK(s.verification.gate_passed);
    CHECK_FALSE(s.commit.empty());
  }
  CHECK((changed == wanted));
  CHECK(changed.size() <= most_patch_files);
  // One task, and only it.
  CHECK(w.selected.size() <= 1);
  if (s.selected && !w.selected.empty())
    CHECK(*w.selected.begin() == s.selected->task_id);
  if (s.selected)
    CHECK(std::ranges::find(before.paused_tasks, s.selected->task_id) == before.paused_tasks.end());
  for (const auto& [task, n] : s.strikes)
    CHECK(n <= strikes_that_pause);
  CHECK(s.execution.refusals.size() <= 2 * most_tries);
  // Who was asked first follows from what failed before; nobody weaker comes behind a stronger one.
  if (s.selected && !w.asked.empty()) {
    const auto failed = std::ranges::count_if(before.failure_log, [&](const failure_entry& f) {
      return f.task_id == s.selected->task_id &&
             (f.kind == failure_kind::deterministic || f.kind == failure_kind::policy);
    });
    CHECK(w.asked.front() == (failed == 0 ? "weak" : "strong"));
    CHECK(w.asked.back() == s.execution.executor);
  }
  // Nothing of somebody else's, nothing left.
  CHECK(w.lab.get("secure/key") == "x\n");
  std::ifstream outside(w.outside());
  CHECK(std::string(std::istreambuf_iterator<char>(outside), {}) == "somebody's");
  CHECK_FALSE(fs::exists(w.lab.path(".git/hooks/pre-commit")));
  const auto outputs = w.lab.path("_outputs/agi_kernel/");
  CHECK_FALSE(fs::exists(outputs + "lock"));
  CHECK((!fs::exists(outputs + "undo") || fs::is_empty(outputs + "undo")));
  for (const auto* name : {"state.json", "state.json.bak"})
    CHECK(why_unreadable(w.lab.get("_outputs/agi_kernel/" + std::string(name))).empty());
}

} // namespace

TEST_CASE("a thousand seeds of models that answer well, badly, late and with malice") {
  const auto seeds = test::knob("BOYD_IMPROVE_SEEDS", 1000);
  const auto first = test::knob("BOYD_IMPROVE_FIRST_SEED", 1);
  std::map<std::string, int> kinds;
  std::map<std::string, int> outcomes;
  int kills = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    INFO("BOYD_IMPROVE_FIRST_SEED=" << seed << " BOYD_IMPROVE_SEEDS=1");
    world w(static_cast<std::uint64_t>(seed));
    cycle_state before;
    for (int n = 0; n < 4; ++n) {
      const auto tree = files_of(w);
      const auto s = w.cycle();
      INFO("cycle " << n << ": " << s.reason);
      judge(w, s, before, tree);
      ++outcomes[s.outcome];
      before = s;
    }
    kills += w.kills;
    for (const auto& [kind, n] : w.kinds)
      kinds[kind] += n;
  }
  // It has tried what it says.
  if (seeds >= 100) {
    for (const auto* kind : {"well", "badly", "late", "babble", "hostile"})
      CHECK(kinds[kind] > 0);
    CHECK(kills > 0);
    CHECK(outcomes["SUCCESS"] > 0);
    CHECK(outcomes["FAILURE"] > 0);
  }
}

} // namespace boyd::performer_test
