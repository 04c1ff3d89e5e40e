#include "option_checks.hpp"
#include "verbs.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_rows = 1000;
constexpr std::size_t most_depth = 10;

void run_argument(CLI::App* a, arguments& args) {
  a->add_option("run", args.id,
                "The run: its id, or the short id in tables, an agent (its newest run), or last: "
                "the run that began last")
      ->required()
      ->check(not_empty)
      ->type_name("RUN");
}

void limit_option(CLI::App* a, arguments& args, const std::string& help) {
  a->add_option("-n,--limit", args.limit, help)
      ->check(CLI::Range(std::size_t{1}, most_rows))
      ->type_name("N");
}

void since_option(CLI::App* a, arguments& args, const std::string& help) {
  a->add_option("--since", args.since, help)->check(not_empty)->type_name("TIME");
}

} // namespace

void add_knowledge_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* kg =
      verb(app, "kg",
           "Query the log of facts: what runs read, used and caused (default command: learned).",
           "boyd kg why last");
  run_argument(verb(*kg, "trace", "Show the context and skills that a run read, used and followed.",
                    "boyd kg trace last"),
               args);
  run_argument(verb(*kg, "why", "Show the sources of a run's answer.", "boyd kg why report"), args);
  limit_option(verb(*kg, "stats", "Show how often context items were read, and with what success.",
                    "boyd kg stats --limit 20"),
               args, "Maximum number of items (default: 50)");
  auto* lineage = verb(*kg, "lineage", "Show the origin and history of a skill.",
                       "boyd kg lineage release-notes");
  lineage->add_option("skill", args.name, "The skill")
      ->required()
      ->check(not_empty)
      ->type_name("SKILL");
  limit_option(verb(*kg, "findings",
                    "List context items and skills that need review, with suggestions.",
                    "boyd kg findings"),
               args, "Maximum number of findings (default: 50)");
  since_option(verb(*kg, "learned", "Show recent lessons in plain sentences.",
                    "boyd kg learned --since 2026-02-01T00:00:00Z"),
               args, "Start time (default: 7 days ago)");
  auto* query =
      verb(*kg, "query", "List facts, newest first.", "boyd kg query --type promoted_to --limit 5");
  query
      ->add_option("--from", args.from,
                   "The start of the fact: a path, an agent, a skill, or an id or its beginning")
      ->type_name("NODE");
  query->add_option("--to", args.to, "The end of the fact, called the same way")->type_name("NODE");
  query->add_option("--type", args.type, "Type of fact: used_in, resulted_in, promoted_to, …")
      ->type_name("TYPE");
  since_option(query, args, "Only facts since this time");
  limit_option(query, args, "Maximum number of facts (default: 50)");
  verb(*kg, "verify", "Verify that no fact was changed or removed.", "boyd kg verify");

  auto* graph =
      verb(app, "graph",
           "Draw what runs read, used and caused: the newest facts, or those around one item.",
           "boyd graph --dot --around skill_release-notes | dot -Tsvg > graph.svg");
  auto* group = graph->add_option_group("form");
  group->set_help_flag(); // the verb has one
  group->add_flag_callback(
      "--mermaid", [&args] { args.format = "mermaid"; }, "Print Mermaid");
  group->add_flag_callback(
      "--dot", [&args] { args.format = "dot"; }, "Print Graphviz (dot)");
  group->add_flag_callback(
      "--text", [&args] { args.format = "text"; }, "Print lists (the default)");
  group->require_option(0, 1);
  graph
      ->add_option("--around", args.around,
                   "The centre: a path, an agent, a skill, or an id or its beginning")
      ->check(not_empty)
      ->type_name("NODE");
  graph->add_option("--depth", args.depth, "Number of steps around the centre (default: 2)")
      ->check(CLI::Range(std::size_t{0}, most_depth))
      ->type_name("N");
  limit_option(graph, args, "Maximum number of items (default: 50)");
}

} // namespace boyd::app
