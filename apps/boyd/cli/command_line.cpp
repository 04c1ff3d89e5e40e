#include "command_line.hpp"

#include "../terminal.hpp"
#include "boyd/core/text.hpp"
#include "boyd/plan/human_time.hpp"
#include "boyd_version.hpp"
#include "errors.hpp"
#include "help.hpp"
#include "option_checks.hpp"
#include "verbs.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace boyd::app {

namespace {

/// Columns that every terminal has.
constexpr std::size_t help_width = 80;
constexpr std::size_t largest_limit = 1000;
/// Tokens of one recall.
constexpr std::size_t largest_budget = 1'000'000;
/// A day.
constexpr std::size_t longest_selftest = 86'400;

/// Options that stand before or after a verb which takes notice of them.
constexpr const char* home_options =
    "  --home DIR                  The home of the node\n  --config FILE               "
    "Configuration file (default: HOME/boyd.yaml)\n";
constexpr const char* json_option = "  --json                      Print one JSON object\n";

/// The CLI11 application and what hangs on it.
struct command_line {
  arguments args;
  std::shared_ptr<help_formatter> formatter = std::make_shared<help_formatter>();
  CLI::App app{
      "Boyd runs AI agents and other programs on a schedule, and keeps a record of everything "
      "they do."};
  std::map<const CLI::Option*, std::vector<std::string>> choices;

  command_line();

  CLI::App* verb(CLI::App& parent, const std::string& name, const std::string& help,
                 const std::string& example);
  void add_service_verbs();
  void add_actor_verbs();
  void add_dispatch_verbs();
  void add_approval_verbs();
  void add_server_verbs();
  void add_state_verbs();
  void add_memory_verbs();
  void add_context_verbs();
  void add_question_verbs();
  void add_release(CLI::App& cost);
  void add_tool_verbs();
  void add_chaos_verbs();

  void kernel_option(CLI::App* a,
                     const std::string& help = "The kernel (default: the first kernel)") {
    a->add_option("--kernel", args.kernel, help)->type_name("ID");
  }
  void limit_option(CLI::App* a) {
    a->add_option("-n,--limit", args.limit, "Maximum number of rows")
        ->check(CLI::Range(std::size_t{1}, largest_limit))
        ->type_name("N");
  }
  /// What was meant with a value that is none of an option's; empty: no idea.
  std::string meant_choice() const {
    for (const auto& [option, values] : choices)
      for (const auto& given : option->results())
        if (std::ranges::find(values, given) == values.end())
          return std::string(nearest(given, {values.begin(), values.end()}));
    return {};
  }
  void one_of(CLI::Option* option, std::vector<std::string> values) {
    option->check(CLI::IsMember(values));
    choices[option] = std::move(values);
  }
};

command_line::command_line() {
  app.name("boyd");
  app.formatter(formatter);
  app.fallthrough();
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", std::string("boyd ") + program_version, "Print the version");
  formatter->examples[&app] = "boyd init && boyd cycle && boyd status";
  app.add_option(
         "--home", args.home,
         "The home of the node (default: $BOYD_HOME, $XDG_STATE_HOME/boyd or ~/.local/state/boyd)")
      ->check(not_empty)
      ->type_name("DIR");
  app.add_option("--config", args.config, "Configuration file (default: HOME/boyd.yaml)")
      ->check(not_empty)
      ->type_name("FILE");
  app.add_flag("--json", args.json, "Print one JSON object");
  app.add_flag("--utc", args.utc, "Show times in UTC (default: your time zone, TZ)");
  app.add_flag("--no-color", args.no_color, "Print without colours (same as NO_COLOR=1)");
  app.add_flag("-q,--quiet", args.quiet, "Print no progress, only results and errors");
  app.add_flag("-v,--verbose", args.verbose, "Print more details on standard error");
  app.footer("Exit codes: 0 ok, 1 failure, 2 usage, 3 partial success, 4 configuration, "
             "5 busy or locked.");
  add_service_verbs();
  add_actor_verbs();
  add_dispatch_verbs();
  add_approval_verbs();
  add_server_verbs();
  add_state_verbs();
  add_memory_verbs();
  add_context_verbs();
  add_question_verbs();
  add_tool_verbs();
  add_improve_verb(app, args, std::bind_front(&command_line::verb, this));
  add_store_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_knowledge_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_explain_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_skill_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_run_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_backup_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_chaos_verbs();
}

CLI::App* command_line::verb(CLI::App& parent, const std::string& name, const std::string& help,
                             const std::string& example) {
  auto* a = parent.add_subcommand(name, help);
  if (parent.get_parent() != nullptr)
    a->group("Commands");
  a->fallthrough();
  formatter->examples[a] = example;
  formatter->common[a] = std::string(home_options) + json_option;
  const auto path = parent.get_parent() == nullptr ? name : parent.get_name() + " " + name;
  a->callback([this, path, a] {
    if (a->get_subcommands().empty())
      args.verb = path;
  });
  return a;
}

void command_line::add_service_verbs() {
  auto* init = verb(app, "init",
                    "Create a home: boyd.yaml, its schema, the kernels' git repositories and the "
                    "database. Existing files are kept.",
                    "boyd --home ~/node init --no-input --from config/examples/briefing.yaml");
  init->add_flag("--no-input", args.no_input, "Do not ask questions");
  init->add_option("--from", args.from, "Copy this configuration file")->type_name("FILE");
  init->add_option("--name", args.name, "Name of the first kernel (default: default)")
      ->type_name("ID");
  init->add_option("--schedule", args.schedule, "Schedule of the first kernel, for example @hourly")
      ->type_name("CRON");
  init->footer(
      "--from copies the file. Relative paths in a configuration start at its own folder, so the "
      "copy has absolute paths for cwd, file, inputs, workspace and store_password_file (also "
      "inside ${VAR:-path}); comments and everything else stay the same. Boyd loads the copy and "
      "refuses it if it would not mean the same as the original.");
  add_node_verbs(app, args, std::bind_front(&command_line::verb, this));
  auto* cycle =
      verb(app, "cycle",
           "Run all agents that are due now, and wait for them. This is one cycle; it works with "
           "or without a running node.",
           "boyd cycle --json");
  kernel_option(cycle);
  cycle->footer(
      "Exit codes: 0 success, 3 partial success, 1 failed, 5 not started (busy or paused).");
  auto* run = verb(app, "run",
                   "Run one agent now, whatever its schedule, and show its output. Works with or "
                   "without a running node.",
                   "boyd run daily-report \"only the last hour\"");
  run->add_option("agent", args.agent, "Name of the agent (list: boyd agents)")
      ->required()
      ->type_name("AGENT");
  run->add_option("message", args.message,
                  "Text to append to the prompt (a command gets it on its input)")
      ->type_name("MESSAGE");
  kernel_option(run);
  run->footer("Exit codes: 0 done, 5 not started (busy or paused). If the run fails: the exit code "
              "of its program, or 1.");
  auto* status =
      verb(app, "status", "Show the state of the node: problems first, then kernels and agents.",
           "boyd status --watch");
  status->add_flag("--watch", args.watch,
                   "Keep the display up to date on the whole screen; q ends it");
  status->add_flag("--parts", args.parts, "Also show the parts of the node if all are well");
  auto* agents =
      verb(app, "agents", "List, show, add or remove agents (default command: ls).", "boyd agents");
  kernel_option(agents);
  auto* list = verb(*agents, "ls", "List agents with executor, limits, last result and next run.",
                    "boyd agents ls --kernel default");
  kernel_option(list);
  list->footer("ACTIVE: runs under way, of so many at once. A narrow screen has no PRIO, EXECUTOR "
               "or ACTIVE.");
  auto* agent = verb(*agents, "show", "Show one agent: schedule, limits, tools and latest runs.",
                     "boyd agents show daily-report");
  agent->add_option("agent", args.agent, "Name of the agent (list: boyd agents)")
      ->required()
      ->type_name("AGENT");
  kernel_option(agent);
  add_agent_edits(*agents, args, std::bind_front(&command_line::verb, this));
}

void command_line::add_actor_verbs() {
  auto* a =
      verb(app, "actors", "List or restart the parts of the running node (default command: ls).",
           "boyd actors unpark git_committer");
  verb(*a, "ls", "List all parts with state, number of restarts and the reason.",
       "boyd actors ls --json");
  auto* restart = verb(*a, "restart", "Restart a part and the parts that depend on it.",
                       "boyd actors restart kernel:default");
  auto* unpark =
      verb(*a, "unpark",
           "Restart a parked part (one that failed too often) and reset its failure count.",
           "boyd actors unpark dispatcher:default/daily-report");
  for (auto* v : {restart, unpark})
    v->add_option("name", args.id, "Name of the part (see: boyd actors ls)")
        ->required()
        ->type_name("NAME");
}

void command_line::add_dispatch_verbs() {
  auto* d = verb(app, "dispatches",
                 "List, show, repeat or cancel runs (default command: ls). In the queue a run is a "
                 "dispatch.",
                 "boyd dispatches ls");
  const auto list_options = [this](CLI::App* a) {
    kernel_option(a, "Only this kernel (default: all kernels)");
    a->add_option("--agent", args.agent, "Only this agent")->type_name("ID");
    a->add_option("--cycle", args.cycle, "Only this cycle")->type_name("ID");
    one_of(a->add_option("--status", args.status, "Only this state"),
           {"pending", "running", "done", "failed", "cancelled"});
    a->add_option("--since", args.since,
                  std::string("Only runs created since: ") + plan::human_time_forms)
        ->type_name("TIME");
    limit_option(a);
    a->add_option("--before", args.before, "Only runs older than this one (next page)")
        ->type_name("ID");
  };
  list_options(
      verb(*d, "ls", "List runs, newest first.", "boyd dispatches ls --status failed --limit 5"));
  const auto id = [this](CLI::App* a) {
    a->add_option("id", args.id,
                  "A run (its id, or the short id in tables), an agent (its newest run), or last: "
                  "the run that began last")
        ->required()
        ->type_name("ID");
    kernel_option(a, "Kernel of the agent (default: any)");
  };
  auto* show = verb(*d, "show",
                    "Show one run: result, prompt, output and earlier attempts. -v adds what the "
                    "queue keeps of it: verdicts, fence, lease, metadata.",
                    "boyd dispatches show 6a2f9d41");
  id(show);
  add_attempt_option(*show, args, "Show the output of this attempt only (its number in the table)");
  id(verb(*d, "retry", "Queue a finished run again. The output of its earlier attempts is kept.",
          "boyd dispatches retry 6a2f9d41"));
  id(verb(*d, "cancel", "Cancel a run. If it has begun, it is stopped.",
          "boyd dispatches cancel 6a2f9d41"));
}

void command_line::add_server_verbs() {
  auto* t = verb(app, "tools",
                 "List, test and trust the MCP tool servers of agents (default command: ls).",
                 "boyd tools ls");
  auto* list =
      verb(*t, "ls", "List the servers with state and transport.", "boyd tools ls --connect");
  list->add_flag("--connect", args.connect, "Start each server and check that it answers");
  auto* show = verb(*t, "show", "Start one server and list its tools.", "boyd tools show files");
  auto* call = verb(*t, "call", "Call one tool as yourself; no agent's policy applies.",
                    "boyd tools call mcp__files__read_file '{\"path\": \"notes.txt\"}'");
  call->add_option("tool", args.id, "mcp__SERVER__TOOL")->required()->type_name("TOOL");
  call->add_option("arguments", args.tool_arguments, "A JSON object")->type_name("JSON");
  auto* trust =
      verb(*t, "trust",
           "Allow agents to use a server from the .mcp.json of their workspace, as it is now.",
           "boyd tools trust files");
  trust
      ->add_option("--hash", args.hash,
                   "Trust the server only if it still has this hash (printed by `tools show`)")
      ->check(not_empty)
      ->type_name("HASH");
  auto* forget = verb(*t, "forget", "Withdraw the trust in a server.", "boyd tools forget files");
  for (auto* v : {show, trust, forget})
    v->add_option("server", args.id, "Name of the server")->required()->type_name("SERVER");
  for (auto* v : {trust, forget})
    v->add_option("--path", args.path,
                  "The workspace with the .mcp.json (needed only if there are several)")
        ->type_name("DIRECTORY");
  auto* served = verb(app, "mcp",
                      "Serve status, agents, dispatches, explain and enqueue as MCP tools on "
                      "standard input and output.",
                      "claude mcp add boyd -- boyd mcp");
  served->add_flag(
      "--operator", args.operators,
      "Also offer approve and reject; only for a client that shows every call to a person");
  formatter->common[served] = home_options;
}

void command_line::add_approval_verbs() {
  auto* a = verb(app, "approvals",
                 "Review and decide the actions that agents ask for (default command: ls).",
                 "boyd approvals ls");
  auto* list = verb(*a, "ls", "List pending approvals, newest first.", "boyd approvals ls --all");
  list->add_flag("--all", args.all, "Also show decided and expired requests");
  kernel_option(list, "Only this kernel (default: all kernels)");
  limit_option(list);
  auto* show = verb(*a, "show", "Show the exact action and the history of one request.",
                    "boyd approvals show 01956c2e-4f1a-7c35");
  auto* approve = verb(*a, "approve", "Allow this action once, for the run that asked.",
                       "boyd approvals approve 01956c2e-4f1a-7c35 --reason \"as agreed\"");
  auto* reject = verb(*a, "reject", "Refuse this action.",
                      "boyd approvals reject 01956c2e-4f1a-7c35 --reason \"not today\"");
  for (auto* v : {show, approve, reject})
    v->add_option("id", args.id, "Id of the approval, or the beginning of it")
        ->required()
        ->type_name("ID");
  for (auto* v : {approve, reject}) {
    v->add_option("--hash", args.hash,
                  "Decide only if the request still has this hash (printed by `approvals show`)")
        ->check(not_empty)
        ->type_name("HASH");
    v->add_option("--reason", args.reason, "Reason; recorded and shown to the agent")
        ->type_name("TEXT");
    v->footer("Exit code 5: the request is already decided, used, withdrawn or expired, or it has "
              "another hash. Programs that Boyd itself started cannot decide (exit code 1).");
  }
}

void command_line::add_state_verbs() {
  auto* s =
      verb(app, "state", "Show the files of a kernel and their history (default command: show).",
           "boyd state show --at 2026-02-13T10:00:00Z");
  auto* show = verb(*s, "show", "Show a file of the kernel, now or at an earlier time.",
                    "boyd state show --path GOAL.md");
  auto* log = verb(*s, "log", "List commits, newest first.", "boyd state log --limit 5");
  auto* diff = verb(*s, "diff",
                    "Show changes between two points. Without TO: from FROM until now. Without "
                    "both: the newest commit.",
                    "boyd state diff HEAD~2 HEAD");
  const auto path = [this](CLI::App* a) {
    a->add_option("--path", args.path, "The file (default: STATE.md)")->type_name("FILE");
  };
  for (auto* a : {show, log, diff})
    kernel_option(a);
  path(show);
  show->add_option("--at", args.at,
                   std::string("A cycle, a commit or a time: ") + plan::human_time_forms)
      ->type_name("POINT");
  log->add_option("--path", args.path, "Only commits that change this file")->type_name("FILE");
  limit_option(log);
  diff->add_option("from", args.from, "A time, a cycle or a commit")->type_name("FROM");
  diff->add_option("to", args.to, "A time, a cycle or a commit")->type_name("TO");
}

void command_line::add_memory_verbs() {
  auto* m = verb(app, "memory",
                 "Show, search and extend the memory of a kernel (default command: status).",
                 "boyd memory recall \"why did the nightly copy fail?\"");
  auto* status = verb(*m, "status", "Show memory files, sections, size limits and the index.",
                      "boyd memory status --json");
  auto* append = verb(*m, "append", "Add an entry to a section.",
                      "boyd memory append \"Important Facts\" \"the deploy key is in the vault\"");
  append->add_option("section", args.section, "The section (created if missing)")
      ->required()
      ->check(not_empty)
      ->type_name("SECTION");
  append->add_option("text", args.text, "Text of the entry")->required()->type_name("TEXT");
  append
      ->add_option("--path", args.path,
                   "MEMORY.md or SOUL.md (default: the file that has the section)")
      ->type_name("FILE");
  append->footer(
      "If the section exceeds its limit, its oldest entries move to archive/. A text that is too "
      "long goes to research/, and a short entry points to it. Nothing is deleted.");
  auto* recall = verb(*m, "recall", "Find the entries that best answer a question.",
                      "boyd memory recall \"who changed the schedule in May?\" --budget 1000");
  recall->add_option("query", args.text, "The question")->type_name("QUERY");
  recall
      ->add_option("--queries", args.queries,
                   "Read many questions from a file, one {\"query\": …, \"at\": …} per line; print "
                   "one JSON object per line")
      ->check(not_empty)
      ->type_name("FILE");
  recall->add_option("--budget", args.budget, "Maximum number of tokens (default: 4000)")
      ->check(CLI::Range(std::size_t{1}, largest_budget))
      ->type_name("N");
  recall->add_option("--at", args.at, "Ignore entries after this time (10:00, 2026-11-28, …)")
      ->type_name("TIME");
  limit_option(recall);
  auto* from_file =
      verb(*m, "import", "Add dated entries to the archive; existing entries are skipped.",
           "boyd memory import notes.jsonl");
  from_file
      ->add_option("file", args.from, "File with one JSON object per line; - reads standard input")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  from_file->footer(
      "A line: {\"time\": \"2026-02-13T10:00:00Z\", \"text\": …}; optional: key, source, author, "
      "section.\nTwo entries are the same if they have the same key, or the same time, source and "
      "text.\nIf one line has an error, nothing is imported.");
  auto* compact = verb(*m, "compact",
                       "Show the entries of MEMORY.md and SOUL.md beyond their limits; --yes moves "
                       "them to archive/.",
                       "boyd memory compact --yes");
  auto* apply = verb(*m, "apply",
                     "Apply the memory policy to the texts that runs read. `memory status` shows "
                     "the changes first.",
                     "boyd memory apply");
  apply->add_flag("--yes", args.yes, "Do not ask for confirmation, except before forgetting");
  apply->add_flag("--force-forget", args.forget, "Also forget without confirmation");
  auto* undo = verb(*m, "undo", "Take back what the memory policy did to a text.",
                    "boyd memory undo docs/release.md");
  undo->add_option("text", args.text, "Path or id of the text, as in `kg stats`")
      ->required()
      ->check(not_empty)
      ->type_name("PATH");
  undo->footer("The policy may do it again: at the next `memory apply`, or by itself if "
               "memory.policy.auto names the action.");
  compact->add_flag("--yes", args.yes, "Move the entries");
  for (auto* a : {status, append, recall, from_file, compact, apply, undo})
    kernel_option(a);
}

void command_line::add_context_verbs() {
  auto* c =
      verb(app, "context",
           "Manage the files and command outputs that every agent reads (default command: ls).",
           "boyd context add @README.md '#docs'");
  auto* list =
      verb(*c, "ls", "List the references that all agents of the kernel read.", "boyd context ls");
  auto* add = verb(*c, "add", "Add references.",
                   "boyd context add @src/main.cpp:10-30 '#docs' '@!git log -5'");
  auto* rm = verb(*c, "rm", "Remove references.", "boyd context rm '#docs'");
  auto* clear = verb(*c, "clear", "Remove all references.", "boyd context clear");
  auto* cat = verb(
      *c, "cat", "Show the current content of references (default: all references of the kernel).",
      "boyd context cat @README.md --agent daily-report");
  auto* resolve =
      verb(*c, "resolve", "Show which words of a text are references, and why the others are not.",
           "boyd context resolve 'read @README.md, mail me@example.org'");
  auto* bank = verb(*c, "bank", "List the context items that proved useful and join later runs.",
                    "boyd context bank");
  for (auto* v : {list, add, rm, clear, cat, resolve, bank})
    kernel_option(v);
  for (auto* v : {cat, resolve})
    v->add_option("--agent", args.agent,
                  "Use the workspace and policy of this agent (default: the workspace that all "
                  "agents share, or the kernel's home)")
        ->type_name("ID");
  for (auto* v : {add, rm, cat}) {
    auto* option =
        v->add_option("reference", args.references, "@path, @path:10-30, #directory, @!command")
            ->type_name("REFERENCE");
    if (v != cat)
      option->required();
  }
  resolve->add_option("text", args.references, "The text")->required()->type_name("TEXT");
}

void command_line::add_release(CLI::App& cost) {
  auto* release = verb(
      cost, "release",
      "Correct an open reservation or an estimated call: return the unused part to the budgets.",
      "boyd cost release 01956c2e-4f1a-7c35 --reason \"the provider refused the key\"");
  release->add_option("id", args.id, "Id of the call or its run, or the beginning of it")
      ->required()
      ->type_name("ID");
  release->add_option("--reason", args.reason, "Reason; recorded")
      ->required()
      ->check(not_empty)
      ->type_name("TEXT");
  release->add_option("--used-tokens", args.used_tokens, "Tokens actually used (default: 0)")
      ->check(whole_number)
      ->type_name("N");
  release->add_option("--used-dollars", args.used_dollars, "Dollars actually used (default: 0)")
      ->type_name("DOLLARS");
  release->add_flag("--force", args.force,
                    "Release even while the run is active; a later report of the run counts");
}

void command_line::add_question_verbs() {
  auto* why =
      verb(app, "why", "Explain why an agent or kernel ran or did not run, and when it runs next.",
           "boyd why daily-report --at \"yesterday 10:00\"");
  why->add_option("agent", args.agent, "Name of the agent (default: the kernel)")
      ->type_name("AGENT");
  why->add_option("--at", args.at,
                  std::string("The scheduled run at this time: ") + plan::human_time_forms)
      ->type_name("TIME");
  auto* plan = verb(app, "plan",
                    "Show what a cycle would do now, without doing it. With AGENT: its context and "
                    "prompt, even if it is not due.",
                    "boyd plan daily-report --prompts");
  plan->add_option("agent", args.agent,
                   "Show the context of this agent; commands in its references are run")
      ->type_name("AGENT");
  plan->add_flag("--prompts", args.prompts, "Show the rendered prompts");
  auto* cost = verb(app, "cost", "Show token and dollar usage of models (default: today).",
                    "boyd cost --by model --from 2026-02-01");
  one_of(cost->add_option("--by", args.by, "Group by (default: agent)"),
         {"agent", "model", "day", "call"});
  cost->add_option("--from,--since", args.from,
                   "First day, in UTC (default: today; with --by day: 29 days ago)")
      ->type_name("DAY");
  cost->add_option("--to", args.to, "Last day, in UTC (default: today)")->type_name("DAY");
  cost->add_flag("--csv", args.csv, "Print comma-separated values");
  kernel_option(cost, "Only this kernel (default: all kernels)");
  add_release(*cost);
  auto* pause = verb(app, "pause", "Pause the kernel or one agent until `boyd resume`.",
                     "boyd pause daily-report --reason \"on holiday\"");
  pause->add_option("--reason", args.reason, "Shown in status and why")->type_name("TEXT");
  auto* resume = verb(app, "resume", "End a pause.", "boyd resume daily-report");
  for (auto* a : {pause, resume})
    a->add_option("agent,--agent", args.agent, "Only this agent (default: the kernel)")
        ->type_name("AGENT");
  for (auto* a : {why, plan, pause, resume})
    kernel_option(a);
}

void command_line::add_tool_verbs() {
  auto* c = verb(app, "config", "Check or show the configuration (default command: validate).",
                 "boyd config validate");
  verb(*c, "validate", "Check the configuration; list all errors with file:line:column.",
       "boyd --config boyd.yaml config validate");
  verb(*c, "show", "Show the effective configuration, with secrets redacted.", "boyd config show");
  auto* schema = verb(*c, "schema", "Print the JSON Schema for editors.",
                      "boyd config schema > boyd.schema.json");
  schema->add_flag("--markdown", args.markdown, "Print a reference in Markdown instead");
  formatter->common[schema].clear();
  auto* cleanup =
      verb(app, "cleanup", "Delete the records of runs that are no longer in the database.",
           "boyd cleanup --dry-run");
  cleanup->add_flag("--dry-run", args.dry_run, "Only show what would be deleted");
  cleanup->footer(
      "A running node does this by itself after node.retention: it deletes the records and turns "
      "of runs that are no longer in the database, then contents that no record refers to.");
  auto* doctor =
      verb(app, "doctor", "Check everything that the node needs, and show how to fix problems.",
           "boyd doctor --provider local");
  doctor->add_option("--provider", args.provider, "Test the models of this provider instead")
      ->check(not_empty)
      ->type_name("ID");
  doctor->add_flag("--providers", args.providers, "Test the models of all providers");
  doctor->add_flag("--accept-graph", args.accept,
                   "Accept a truncated log of facts (graph.jsonl) as it is now");
  doctor
      ->add_option("--model", args.model,
                   "With --provider: test this model instead of the configured one")
      ->check(not_empty)
      ->type_name("NAME");
  auto* selftest = verb(app, "selftest",
                        "Test this program on this machine, in a scratch home: its crash safety in "
                        "20 seconds, or 30 simulated days of learning.",
                        "boyd selftest --crash --seconds 60 --dir /srv/boyd");
  selftest->add_flag("--crash", args.crash,
                     "Kill cycles and busy nodes at random moments, then check what survived");
  selftest->add_flag("--learn", args.learn,
                     "Simulate 30 days: a document becomes a skill, fails and is rolled back");
  selftest->add_option("--seconds", args.seconds, "Duration in seconds (default: 20)")
      ->check(CLI::Range(std::size_t{1}, longest_selftest))
      ->type_name("N");
  selftest
      ->add_option("--dir", args.dir,
                   "Directory for the scratch home (default: next to the node's home)")
      ->check(not_empty)
      ->type_name("DIR");
  auto* version = verb(app, "version", "Print the version.", "boyd version --json");
  formatter->common[version] = json_option;
  auto* completion = verb(app, "completion", "Print a completion script for your shell.",
                          "boyd completion bash > ~/.local/share/bash-completion/completions/boyd");
  one_of(completion->add_option("shell", args.shell, "The shell")->required(),
         {"bash", "zsh", "fish"});
  formatter->common[completion].clear();
  // For the scripts of boyd completion; not in the help.
  auto* complete =
      verb(app, "complete", "Names for completion, one a line.", "boyd complete agents");
  complete->group("");
  complete->add_option("kind", args.shell, "agents, kernels, providers, servers, runs, approvals")
      ->required()
      ->type_name("KIND");
}

void command_line::add_chaos_verbs() {
  auto* c = verb(app, "chaos",
                 "Make your own node fail on purpose, to test it (default command: status).",
                 "boyd chaos inject store.apply --error --count 3");
  formatter->common[verb(*c, "ls", "List all fault points and their faults; needs no node.",
                         "boyd chaos ls")] = json_option;
  verb(*c, "status", "List the active faults of the running node and how often they occurred.",
       "boyd chaos status --json");
  verb(*c, "clear", "Remove all faults.", "boyd chaos clear");
  auto* inject = verb(*c, "inject",
                      "Add a fault to the running node; its configuration needs node.chaos: true.",
                      "boyd chaos inject git_committer.commit --delay 2s --prob 0.5 --count 10");
  auto& o = args.chaos;
  inject->add_option("point", o.point, "The fault point (see: boyd chaos ls)")
      ->required()
      ->type_name("POINT");
  inject->add_flag("--crash", o.crash, "Crash the part; it is restarted");
  inject->add_flag("--error", o.error, "Let the operation fail");
  inject->add_option("--delay", o.delay, "Delay the operation: milliseconds, or 250ms, 2s, …")
      ->type_name("TIME");
  inject->add_flag("--drop", o.drop, "Lose the operation or its answer");
  inject->add_flag("--corrupt", o.corrupt, "Change one bit of the data");
  inject->add_option("--count", o.count, "Maximum number of faults; 0: no limit")
      ->check(whole_number)
      ->type_name("N");
  inject->add_option("--prob", o.probability, "Probability of each fault")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P");
  inject->add_option("--after", o.after, "Let the first N calls succeed")
      ->check(whole_number)
      ->type_name("N");
  inject->add_option("--every", o.every, "Then every Nth call")
      ->check(counting_number)
      ->type_name("N");
  inject->add_option("--seed", o.seed, "Random seed")->check(whole_number)->type_name("N");
}

/// See cli_option::kind.
std::string kind_of(const CLI::Option& o, const CLI::App& app) {
  const auto type = o.get_type_name();
  const auto name = o.get_lnames().empty() ? o.get_name() : o.get_lnames().front();
  const auto family = app.get_parent() == nullptr ? std::string() : app.get_parent()->get_name();
  if (type == "FILE" || type == "DIR" || type == "DIRECTORY")
    return "files";
  if (name == "kernel")
    return "kernels";
  if (type == "AGENT" || name == "agent")
    return app.get_name() == "add" ? "" : "agents";
  if (name == "provider")
    return "providers";
  if (type == "SERVER")
    return "servers";
  if (type == "ID" && family == "approvals")
    return "approvals";
  const bool is_run = family == "dispatches" || family == "patches";
  return type == "AGENT|RUN" || type == "RUN" || (type == "ID" && is_run) ? "runs" : "";
}

cli_option describe(const CLI::Option& o, const CLI::App& app, const command_line& all) {
  cli_option out;
  for (const auto& n : o.get_snames())
    out.names.push_back("-" + n);
  for (const auto& n : o.get_lnames())
    out.names.push_back("--" + n);
  out.help = o.get_description();
  out.takes_value = o.get_expected_max() > 0;
  out.kind = kind_of(o, app);
  if (auto it = all.choices.find(&o); it != all.choices.end())
    out.choices = it->second;
  return out;
}

/// Two levels of verbs.
cli_verb describe(const CLI::App& app, const command_line& all) {
  cli_verb out;
  out.name = app.get_name();
  out.help = app.get_description();
  for (const auto* o : app.get_options()) {
    if (o->get_group().empty())
      continue; // no help shows it
    auto described = describe(*o, app, all);
    if (o->get_positional()) {
      out.positional_choices.insert(out.positional_choices.end(), described.choices.begin(),
                                    described.choices.end());
      if (out.positional_kind.empty())
        out.positional_kind = described.kind;
    }
    if (!described.names.empty())
      out.options.push_back(std::move(described));
  }
  for (const auto* s :
       app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); })) {
    auto described = describe(*s, all);
    if (!described.name.empty()) {
      out.verbs.push_back(std::move(described));
      continue;
    }
    // A group of options, of which one may be given.
    std::ranges::move(described.options, std::back_inserter(out.options));
  }
  return out;
}

/// The verb that a family answers to when none is given.
std::string standard_verb(const std::string& verb) {
  static const std::map<std::string, std::string> standard{
      {"actors", "actors ls"},       {"agents", "agents ls"},     {"dispatches", "dispatches ls"},
      {"state", "state show"},       {"memory", "memory status"}, {"skills", "skills ls"},
      {"config", "config validate"}, {"context", "context ls"},   {"chaos", "chaos status"},
      {"kg", "kg learned"},          {"patches", "patches ls"}};
  auto it = standard.find(verb);
  return it == standard.end() ? verb : it->second;
}

/// "boyd help dispatches ls" as "boyd dispatches ls --help".
std::vector<const char*> without_help_verb(int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (words.size() > 1 && std::string_view(words[1]) == "help") {
    words.erase(words.begin() + 1);
    words.push_back("--help");
  }
  return words;
}

} // namespace

result<cli_outcome> parse_command_line(int given_count, const char* const* given) {
  const auto words = without_help_verb(given_count, given);
  const auto argc = static_cast<int>(words.size());
  const auto* const argv = words.data();
  command_line line;
  if (auto slip = check_verbs(line.app, argc, argv))
    return fail(std::move(*slip));
  cli_outcome out;
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    out.kind = cli_outcome::kind_t::print;
    out.text = fitted(line.app.help(), help_width);
    return out;
  } catch (const CLI::CallForAllHelp&) {
    out.kind = cli_outcome::kind_t::print;
    out.text = fitted(line.app.help("", CLI::AppFormatMode::All), help_width);
    return out;
  } catch (const CLI::CallForVersion& e) {
    out.kind = cli_outcome::kind_t::print;
    out.text = std::string(e.what()) + "\n";
    return out;
  } catch (const CLI::ParseError& e) {
    auto told = usage_error(line.app, e);
    if (const auto meant = line.meant_choice(); !meant.empty())
      told.next = "did you mean " + meant + "?";
    return fail(std::move(told));
  }
  out.args = line.args;
  out.args.verb = standard_verb(out.args.verb);
  return out;
}

bool wants_json(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--json")
      return true;
  return false;
}

cli_verb describe_command_line() {
  const command_line line;
  return describe(line.app, line);
}

} // namespace boyd::app
