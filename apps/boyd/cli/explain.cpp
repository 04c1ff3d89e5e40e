#include "option_checks.hpp"
#include "verbs.hpp"

namespace boyd::app {

void add_explain_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto& o = args.record;
  auto* explain =
      verb(app, "explain",
           "Explain a run: what it read, did and achieved, and what Boyd learned from it.",
           "boyd explain last");
  explain->add_flag("--context", o.context,
                    "Only the texts it read, their changes and its citations");
  explain->add_flag("--lifecycle", o.lifecycle,
                    "Only the recommended actions for the texts it read");
  explain->add_flag("--kg,!--no-kg", o.facts, "With the facts in the log (the default)");
  explain->add_flag("--graph", o.graph, "Also draw these facts as a Mermaid diagram");
  explain->footer("The explanation uses only the record of the run, and changes nothing.");
  auto* replay = verb(
      app, "replay",
      "Rebuild a run from its record and compare prompt, texts and explanation with the original.",
      "boyd replay last --strict");
  replay->add_flag("--strict", o.strict, "Exit with 1 if anything differs or is missing");
  replay->add_flag("--diff", o.diff, "Show each difference");
  replay->add_flag("--prompt", o.prompt, "Print the exact prompt of the run");
  auto* again = replay->add_flag(
      "--reevaluate", o.reevaluate,
      "Ask the model again, with the recorded tool results, and compare the answers");
  replay->add_option("--executor", o.executor, "With --reevaluate: use this provider instead")
      ->needs(again)
      ->check(not_empty)
      ->type_name("PROVIDER");
  replay->add_option("--model", args.model, "With --reevaluate: use this model instead")
      ->needs(again)
      ->check(not_empty)
      ->type_name("NAME");
  auto* policy =
      replay->add_option("--policy", args.policy,
                         "Instead of a run: apply the thresholds in FILE to the history, and show "
                         "which stages, candidates and actions would differ");
  policy->check(not_empty)->type_name("FILE");
  replay
      ->add_option("--since", args.since,
                   "With --policy: keep everything before this time as it was")
      ->needs(policy)
      ->check(not_empty)
      ->type_name("TIME");
  replay->footer("--reevaluate --strict exits with 1 if anything differs from the original. The "
                 "call counts towards the budgets; nothing is learned from it.");
  for (auto* v : {explain, replay}) {
    auto* id = v->add_option("id", args.id,
                             "The run: its id, or the short id in tables, an agent (its newest "
                             "run), or last: the run that began last");
    id->check(not_empty)->type_name("ID");
    if (v == explain)
      id->required();
    else
      id->excludes(policy);
    v->add_option("--kernel", args.kernel, "With last or an agent: only runs of this kernel")
        ->type_name("ID");
  }
}

} // namespace boyd::app
