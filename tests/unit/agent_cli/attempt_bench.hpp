#pragma once

#include "boyd/exec/attempt.hpp"
#include "support.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace boyd::agent_cli_testing {

/// An attempt whose program does what the test says.
struct attempt_bench {
  steady_time now{1h};
  exec::attempt_core core;
  std::optional<run_outcome> outcome;
  std::map<exec::timer_kind, steady_time> timers;
  std::vector<int> signals;
  std::vector<std::string> warnings;

  static exec::attempt_options options_of(const config::cli_adapter& adapter, bool denials_fail,
                                          const config::budget_limit& budget) {
    exec::attempt_options o;
    o.work = process_spec{};
    o.timeout = 10min;
    o.no_output_timeout = 2min;
    o.cli = exec::cli_contract{std::make_shared<config::cli_adapter>(adapter), denials_fail, 60s,
                               budget};
    o.wall_budget = budget.wall;
    return o;
  }

  explicit attempt_bench(const std::string& adapter, bool denials_fail = true,
                         const config::budget_limit& budget = {})
      : attempt_bench(built_in(adapter).adapter, denials_fail, budget) {}
  explicit attempt_bench(const config::cli_adapter& adapter, bool denials_fail = true,
                         const config::budget_limit& budget = {})
      : core(options_of(adapter, denials_fail, budget)) {
    take(core.begin(now));
  }

  void take(exec::attempt_effects effects) {
    for (auto& e : effects) {
      if (auto* done = std::get_if<exec::effect::finish>(&e))
        outcome = std::move(*done->outcome);
      else if (auto* t = std::get_if<exec::effect::arm_timer>(&e))
        timers[t->kind] = t->at;
      else if (auto* s = std::get_if<exec::effect::signal_process>(&e))
        signals.push_back(s->signal);
      else if (auto* talk = std::get_if<exec::effect::talk>(&e))
        warnings.push_back(std::get<exec::effect::warn>(talk->what).text);
    }
  }

  void print(std::string_view text) {
    if (core.on_output(0, output_stream::out, text, now))
      take(core.on_figures(now));
  }
  void complain(std::string_view text) { core.on_output(0, output_stream::err, text, now); }

  /// Lets time pass, with the timers that are due on the way.
  void wait(milliseconds time) {
    const auto until = now + time;
    for (;;) {
      auto next = timers.end();
      for (auto it = timers.begin(); it != timers.end(); ++it)
        if (it->second <= until && (next == timers.end() || it->second < next->second))
          next = it;
      if (next == timers.end())
        break;
      now = std::max(now, next->second);
      const auto kind = next->first;
      timers.erase(next);
      take(core.on_timer(kind, now));
    }
    now = until;
  }

  const run_outcome& exit(int code, int signal = 0) {
    process_exit e;
    e.exit_code = code;
    e.signal = signal;
    take(core.on_exit(0, e, now));
    REQUIRE(outcome);
    return *outcome;
  }

  const run_outcome& end(const std::string& name, int code) {
    print(transcript(name));
    return exit(code);
  }
};

} // namespace boyd::agent_cli_testing
