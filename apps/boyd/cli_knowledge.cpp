#include "cli_knowledge.hpp"

#include "option_checks.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_rows = 1000;
constexpr std::size_t most_depth = 10;

void execution_argument(CLI::App* a, arguments& args) {
  a->add_option("execution", args.id, "`last`, an agent's name, or a run's id or a part of it")
      ->required()
      ->check(not_empty)
      ->type_name("RUN");
}

void limit_option(CLI::App* a, arguments& args, const std::string& help) {
  a->add_option("--limit", args.limit, help)
      ->check(CLI::Range(std::size_t{1}, most_rows))
      ->type_name("N");
}

void since_option(CLI::App* a, arguments& args, const std::string& help) {
  a->add_option("--since", args.since, help)->check(not_empty)->type_name("TIME");
}

} // namespace

void add_knowledge_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* kg = verb(app, "kg", "Answers from the log of facts; without a verb: learned.",
                  "boyd kg why last");
  execution_argument(
      verb(*kg, "trace", "What a run was given, used and followed.", "boyd kg trace last"), args);
  execution_argument(verb(*kg, "why", "What stands behind a run's answer.", "boyd kg why report"),
                     args);
  limit_option(verb(*kg, "stats", "What runs were given to read, and what came of it.",
                    "boyd kg stats --limit 20"),
               args, "At most so many items; 50 when left out");
  auto* lineage = verb(*kg, "lineage", "Where a skill comes from, and what became of it.",
                       "boyd kg lineage release-notes");
  lineage->add_option("skill", args.name, "The skill")
      ->required()
      ->check(not_empty)
      ->type_name("SKILL");
  verb(*kg, "findings", "Context and skills that deserve a look, with a suggestion for each.",
       "boyd kg findings");
  since_option(verb(*kg, "learned", "What this node has learned, in sentences.",
                    "boyd kg learned --since 2026-02-01T00:00:00Z"),
               args, "Since when; the last 7 days when left out");
  auto* query =
      verb(*kg, "query", "Facts, the newest first.", "boyd kg query --type promoted_to --limit 5");
  query->add_option("--from", args.from, "The node that the fact is about")->type_name("NODE");
  query->add_option("--to", args.to, "The node at its other end")->type_name("NODE");
  query->add_option("--type", args.type, "Its type: used_in, resulted_in, promoted_to, …")
      ->type_name("TYPE");
  since_option(query, args, "Not older than this");
  limit_option(query, args, "At most so many facts; 50 when left out");
  verb(*kg, "verify", "Proves that nothing in the log was changed or removed.", "boyd kg verify");

  auto* graph = verb(app, "graph", "A picture of the facts: the newest, or around a node.",
                     "boyd graph --dot --around skill_release-notes | dot -Tsvg > graph.svg");
  auto* group = graph->add_option_group("form");
  group->add_flag_callback(
      "--mermaid", [&args] { args.format = "mermaid"; }, "For Mermaid");
  group->add_flag_callback(
      "--dot", [&args] { args.format = "dot"; }, "For Graphviz");
  group->add_flag_callback(
      "--text", [&args] { args.format = "text"; }, "As lists; so it is when nothing is said");
  group->require_option(0, 1);
  graph->add_option("--around", args.around, "This node: ctx_…, exec_…, skill_…")
      ->check(not_empty)
      ->type_name("NODE");
  graph->add_option("--depth", args.depth, "So many steps around it; 2 when left out")
      ->check(CLI::Range(std::size_t{0}, most_depth))
      ->type_name("N");
  limit_option(graph, args, "At most so many nodes; 50 when left out");
}

} // namespace boyd::app
