#pragma once

#include "boyd/improve/performer.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "support/pch.hpp"
#include "tree_lab.hpp"

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace boyd::test {

/// Whole cycles on real files and a real git repository; executor, tests and gate are functions,
/// which can do to the tree whatever a person or a program does.
class cycle_lab {
 public:
  cycle_lab(std::initializer_list<std::pair<const char*, const char*>> files) {
    for (const auto& [name, text] : files)
      tree.put(name, text);
    repository_ = git->init(tree.root(), {}).value();
    commit("first");
    order.root = tree.root();
    order.options.apply = true;
    order.settings.executor.kind = improve::executor_settings::kind_t::script;
    order.settings.hygiene.rules_off = {"unreferenced-script"};
  }

  /// From now on there is a scanner of tests, which print in TAP's form.
  void has_tests(std::function<std::string()> print) {
    tests = std::move(print);
    improve::scanner_settings s;
    s.name = "tests";
    s.parser = improve::report_format::tap;
    s.argv = {"tests"};
    order.settings.scanners = {s};
  }
  /// And a gate, which passes.
  void has_gate(std::function<void()> does) {
    gate = std::move(does);
    order.settings.gate = {{"gate"}};
  }

  improve::cycle_state cycle() {
    if (asks_agent)
      order.settings.executors = order.options.executors = {{"agent", false}};
    const auto state = improve::run_cycle(order, ports());
    INFO((state ? std::string() : to_string(state.error())));
    REQUIRE(state.has_value());
    return *state;
  }

  result<improve::cycle_state> try_cycle() { return improve::run_cycle(order, ports()); }
  result<std::string> retry(const std::string& task) {
    return improve::retry_task(order, ports(), task);
  }

  result<void> mark_told(const std::vector<std::string>& ends) {
    return improve::mark_told(order, ports(), ends);
  }

  std::string commit(const std::string& message) {
    const auto all = repository_->changes();
    REQUIRE(all);
    const auto made = repository_->commit(*all, message, clock.now());
    REQUIRE(made);
    REQUIRE(*made);
    return **made;
  }
  std::string head() const { return repository_->head().value().value_or(""); }

  /// Everything but Boyd's own, and git's but for what a patch could harm in it.
  std::map<std::string, std::string> print() const {
    auto all = tree.print();
    std::erase_if(all, [](const auto& entry) {
      const auto& name = entry.first;
      const bool is_gits = name == ".git" || name.starts_with(".git/");
      return name.starts_with("_logs") ||
             (is_gits && !name.starts_with(".git/hooks/") && name != ".git/config");
    });
    return all;
  }

  tree_lab tree;
  improve::improve_order order;
  std::shared_ptr<repository_provider> git = adapters::make_git_repositories();
  std::function<std::string(const std::string& prompt)> answer;
  std::function<std::string()> tests;
  std::function<void()> gate;
  bool asks_agent = false; ///< the answer is one to a prompt
  bool is_late = false;    ///< a whole run of the tests takes too long

 private:
  class ticking final : public clock_port {
   public:
    utc_time now() const override { return from_unix_ms(1'780'000'000'000 + tick()); }
    steady_time steady() const override { return steady_time(milliseconds(tick())); }

   private:
    std::int64_t tick() const { return 1000 * ++ticks_; }
    mutable std::int64_t ticks_ = 0;
  };

  improve::improve_ports ports() {
    const auto nonce = std::to_string(++runs_);
    return {clock,
            *tree.files,
            *tree.inside,
            *tree.tree,
            *git,
            [this](const improve::command_order& o) { return run(o); },
            [this](std::int64_t) -> result<improve::answer_end> {
              improve::answer_end a;
              a.text = answer("");
              return a;
            },
            [this](const improve::agent_order& o) {
              improve::answer_end a;
              a.text = answer(o.prompt);
              return a;
            },
            {1, 1, nonce, {}},
            [nonce](const improve::lock_holder& h) { return h.nonce == nonce; },
            {},
            {}};
  }

  improve::command_end run(const improve::command_order& o) {
    improve::command_end end;
    end.exit_code = 0;
    if (o.argv.front() == "gate") {
      gate();
      return end;
    }
    end.out = tests();
    end.timed_out = o.argv.front() == "tests" && is_late;
    end.exit_code = end.out.find("not ok") == std::string::npos ? 0 : 1;
    return end;
  }

  ticking clock;
  std::unique_ptr<repository> repository_;
  int runs_ = 0;
};

} // namespace boyd::test
