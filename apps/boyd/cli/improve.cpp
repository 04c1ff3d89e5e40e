#include "option_checks.hpp"
#include "verbs.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_cycles = 1'000'000;

void repo_option(CLI::App* a, improve_options& o) {
  a->add_option("--repo", o.repo, "Top directory of the repository (default: .)")
      ->check(not_empty)
      ->type_name("DIR");
}

} // namespace

void add_improve_verb(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto& o = args.improve;
  auto* a = verb(app, "improve",
                 "Find problems in a repository and fix them one at a time, with verification.",
                 "boyd improve --repo . --dry-run");
  a->require_subcommand(0, 1);
  repo_option(a, o);
  auto* dry = a->add_flag("--dry-run", o.dry_run, "Only show the plan (the default)");
  auto* apply = a->add_flag("--apply", o.apply,
                            "Do one task: change files, then verify; roll back on failure");
  dry->excludes(apply);
  auto* once = a->add_flag("--once", o.once, "Run one cycle (the default)");
  auto* loop = a->add_flag("--loop", o.loop, "Run cycles until no task is left");
  once->excludes(loop);
  a->add_option("--interval", o.interval, "With --loop: wait between cycles (default: 300s)")
      ->type_name("TIME");
  a->add_option("--max-cycles", o.max_cycles, "With --loop: maximum number of cycles")
      ->check(CLI::Range(std::size_t{1}, most_cycles))
      ->type_name("N");
  a->add_flag("--resume", o.resume, "Continue a cycle that was interrupted or awaits approval");
  a->add_flag("--approve", o.approve,
              "Stop before applying, so that a person can review the patch");
  a->add_option("--approved", o.approved, "With --resume: digest of the patch to apply")
      ->check(not_empty)
      ->type_name("DIGEST");
  a->add_flag("--auto-commit", o.auto_commit, "Commit the verified change");
  // For a node's `executor: {type: improve}`.
  a->add_flag("--unattended", o.unattended)->group("")->excludes(loop);
  a->footer("Scanners, gate and executors are set under `improve` in --config FILE, or in "
            "boyd-improve.yaml of the repository. Without a file Boyd looks for the usual tests. "
            "See docs/improve.md.");
  auto* report = verb(*a, "report", "Show the last cycle, failures and paused tasks.",
                      "boyd improve report --repo .");
  repo_option(report, o);
  auto* retry = verb(*a, "retry", "Take a paused or quarantined task up again.",
                     "boyd improve retry test-a017ce8fd88b --repo .");
  repo_option(retry, o);
  retry->add_option("task", o.task, "The task, or the beginning of its id")
      ->required()
      ->check(not_empty)
      ->type_name("TASK");
}

} // namespace boyd::app
