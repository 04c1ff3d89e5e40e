#include "cli_improve.hpp"

#include "option_checks.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_cycles = 1'000'000;

void repo_option(CLI::App* a, improve_options& o) {
  a->add_option("--repo", o.repo, "The repository's top directory (default: .)")
      ->check(not_empty)
      ->type_name("DIR");
}

} // namespace

void add_improve_verb(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto& o = args.improve;
  auto* a = verb(app, "improve",
                 "Find what is wrong in a repository, and mend one thing at a time, verified.",
                 "boyd improve --repo . --dry-run");
  a->require_subcommand(0, 1);
  repo_option(a, o);
  auto* dry = a->add_flag("--dry-run", o.dry_run, "Only say what would be done (the default)");
  auto* apply = a->add_flag("--apply", o.apply, "Do one task: change files, verify, or roll back");
  dry->excludes(apply);
  auto* once = a->add_flag("--once", o.once, "One cycle (the default)");
  auto* loop = a->add_flag("--loop", o.loop, "One cycle after the other, until nothing is left");
  once->excludes(loop);
  a->add_option("--interval", o.interval, "With --loop: from the end of one to the next (300s)")
      ->type_name("TIME");
  a->add_option("--max-cycles", o.max_cycles, "With --loop: at most so many")
      ->check(CLI::Range(std::size_t{1}, most_cycles))
      ->type_name("N");
  a->add_flag("--resume", o.resume, "Go on with a cycle that was interrupted or awaits approval");
  a->add_flag("--approve", o.approve, "Stop before applying: a person looks at the patch");
  a->add_option("--approved", o.approved, "With --resume: the digest of the patch to apply")
      ->check(not_empty)
      ->type_name("DIGEST");
  a->add_flag("--auto-commit", o.auto_commit, "Commit what was verified");
  a->footer("Scanners, gate and executor stand under `improve` in --config FILE, else in the "
            "repository's\nboyd-improve.yaml; without a file the usual tests are found. "
            "See docs/improve.md.");
  auto* report = verb(*a, "report", "What the last cycle did, what failed, what is paused.",
                      "boyd improve report --repo .");
  repo_option(report, o);
}

} // namespace boyd::app
