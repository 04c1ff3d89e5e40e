#include "cli_explain.hpp"

#include "option_checks.hpp"

namespace boyd::app {

void add_explain_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto& o = args.record;
  auto* explain = verb(app, "explain",
                       "What a run was given, did and achieved, and what was learned from it, in "
                       "plain English.",
                       "boyd explain last");
  explain->add_flag("--context", o.context, "Only what it read, how that changed, what it cited");
  explain->add_flag("--lifecycle", o.lifecycle, "Only what to do with the texts that it read");
  explain->add_flag("--kg,!--no-kg", o.facts, "With the facts that are in the log; the standard");
  explain->add_flag("--graph", o.graph, "These facts as a picture, too, in Mermaid");
  explain->footer("It comes from the record of the run alone, and writes nothing.");
  auto* replay = verb(app, "replay",
                      "Put a run together again from what is kept of it, and compare: the prompt, "
                      "the texts, the explanation.",
                      "boyd replay last --strict");
  replay->add_flag("--strict", o.strict, "Exit with 1 when a byte differs or something is missing");
  replay->add_flag("--diff", o.diff, "Show where");
  replay->add_flag("--prompt", o.prompt, "Print what the run was told, byte for byte");
  auto* again = replay->add_flag("--reevaluate", o.reevaluate,
                                 "Ask the model again what it was asked; its tools answer as they "
                                 "did then. Shows how far the answers are apart");
  replay->add_option("--executor", o.executor, "With --reevaluate: this provider instead")
      ->needs(again)
      ->check(not_empty)
      ->type_name("PROVIDER");
  replay->add_option("--model", args.model, "With --reevaluate: this model instead")
      ->needs(again)
      ->check(not_empty)
      ->type_name("NAME");
  auto* policy = replay->add_option("--policy", args.policy,
                                    "Instead of a run: the history under the numbers of this file; "
                                    "what would be another stage, candidate or action");
  policy->check(not_empty)->type_name("FILE");
  replay->add_option("--since", args.since, "With --policy: what happened before stays as it was")
      ->needs(policy)
      ->check(not_empty)
      ->type_name("TIME");
  replay->footer("With --reevaluate --strict exits with 1 when anything is not as it was then. The "
                 "call counts towards the\nbudgets; nothing is learned from it.");
  for (auto* v : {explain, replay}) {
    auto* id = v->add_option("id", args.id,
                             "The run: its id or the beginning of it, an agent (its newest run), "
                             "or last");
    id->check(not_empty)->type_name("ID");
    if (v == explain)
      id->required();
    else
      id->excludes(policy);
    v->add_option("--kernel", args.kernel, "With last or an agent: only of this kernel")
        ->type_name("ID");
  }
}

} // namespace boyd::app
