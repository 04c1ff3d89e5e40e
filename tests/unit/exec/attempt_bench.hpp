#pragma once

#include "boyd/exec/attempt.hpp"
#include "support/pch.hpp"
#include "support/sim/processes.hpp"

namespace boyd::test {

using namespace boyd::exec;

struct manual_clock : clock_port {
  steady_time time{1'000'000ms};
  utc_time now() const override { return utc_time{time.time_since_epoch()}; }
  steady_time steady() const override { return time; }
};

/// Carries out an attempt's effects on the simulated runner: what the executor actor does.
struct attempt_bench {
  std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
  sim::sim_process_runner runner{clock};
  attempt_options options;
  std::unique_ptr<attempt_core> core;
  std::map<timer_kind, steady_time> timers;
  std::map<run_index, process_handle> handles;
  std::map<std::string, result<file_info>> files;
  std::map<std::string, result<std::string>> texts;
  std::optional<run_outcome> outcome;
  std::vector<std::string> warnings;
  steady_time begun{};
  int finishes = 0;

  attempt_bench() {
    process_spec spec;
    spec.argv = {"agent"};
    options.work = spec;
    options.timeout = 10min;
    options.base_directory = "/repo";
    options.session_id = "kernel-a-1";
  }

  void perform(attempt_effects effects) {
    for (auto& e : effects) {
      if (auto* s = std::get_if<effect::start_process>(&e)) {
        const auto run = s->run;
        handles[run] = *runner.start(s->spec, {[this, run](output_stream o, std::string_view b) {
                                                 core->on_output(run, o, b, clock->time);
                                               },
                                               [this, run](const process_exit& x) {
                                                 perform(core->on_exit(run, x, clock->time));
                                               }});
      } else if (auto* k = std::get_if<effect::signal_process>(&e)) {
        runner.signal(handles.at(k->run), k->signal);
      } else if (auto* t = std::get_if<effect::arm_timer>(&e)) {
        timers[t->kind] = t->at;
      } else if (auto* f = std::get_if<effect::stat_file>(&e)) {
        const auto found = files.find(f->path);
        perform(
            core->on_file_info(found == files.end() ? file_info{} : found->second, clock->time));
      } else if (auto* r = std::get_if<effect::read_file>(&e)) {
        const auto found = texts.find(r->path);
        perform(core->on_file_text(found == texts.end()
                                       ? result<std::string>(fail(errc::not_found, "no such file"))
                                       : found->second,
                                   clock->time));
      } else if (auto* told = std::get_if<effect::talk>(&e)) {
        warnings.push_back(std::get<effect::warn>(told->what).text);
      } else {
        ++finishes;
        outcome = *std::get<effect::finish>(e).outcome;
      }
    }
  }

  void begin() {
    options.started_at = clock->now();
    core = std::make_unique<attempt_core>(options);
    begun = clock->time;
    perform(core->begin(clock->time));
  }

  /// One step of virtual time; false when nothing will happen any more.
  bool advance(std::optional<steady_time> until = std::nullopt) {
    auto next = runner.next_event();
    for (const auto& [kind, at] : timers)
      if (!next || at < *next)
        next = at;
    if (!next || (until && *next > *until))
      return false;
    clock->time = std::max(clock->time, *next);
    runner.step(clock->time);
    auto due = std::exchange(timers, {});
    for (const auto& [kind, at] : due) {
      if (at > clock->time)
        timers.emplace(kind, at);
      else
        perform(core->on_timer(kind, clock->time));
    }
    return true;
  }

  const run_outcome& run(sim::sim_program program) {
    runner.define("agent", std::move(program));
    begin();
    for (int i = 0; i < 10'000 && !outcome && advance(); ++i) {
    }
    REQUIRE(outcome.has_value());
    REQUIRE(finishes == 1);
    REQUIRE(core->finished());
    return *outcome;
  }

  milliseconds elapsed() const { return clock->time - begun; }
};

inline config::requirement need(config::requirement::kind_t kind, std::string argument = {}) {
  config::requirement r;
  r.kind = kind;
  r.argument = std::move(argument);
  return r;
}

} // namespace boyd::test
