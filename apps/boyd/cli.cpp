#include "cli.hpp"

#include "boyd/core/text.hpp"
#include "boyd/plan/human_time.hpp"
#include "boyd_version.hpp"
#include "cli_errors.hpp"
#include "cli_explain.hpp"
#include "cli_improve.hpp"
#include "cli_knowledge.hpp"
#include "cli_skills.hpp"
#include "cli_store.hpp"
#include "cli_week.hpp"
#include "option_checks.hpp"
#include "terminal.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
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
    "  --home DIR                  The node's home\n"
    "  --config FILE               The configuration; HOME/boyd.yaml when left out\n";
constexpr const char* json_option =
    "  --json                      Print one JSON object on standard output\n";

/// Help opens with an example, then says what the verb is for; options of all verbs end it.
class example_formatter : public CLI::Formatter {
 public:
  std::map<const CLI::App*, std::string> examples;
  std::map<const CLI::App*, std::string> common; ///< lines of the options that the verb shares

  std::string make_footer(const CLI::App* app) const override {
    const auto it = common.find(app);
    auto lines = it == common.end() || it->second.empty()
                     ? std::string()
                     : "Before the verb or behind it (see: boyd --help):\n" + it->second;
    const auto own = CLI::Formatter::make_footer(app);
    if (!lines.empty() && !own.empty())
      lines += "\n";
    return lines + own;
  }

  std::string make_description(const CLI::App* app) const override {
    std::string text;
    if (auto it = examples.find(app); it != examples.end())
      text += "Example:\n  " + it->second + "\n\n";
    return text + app->get_description() + "\n";
  }
};

/// The CLI11 application and what hangs on it.
struct command_line {
  arguments args;
  std::shared_ptr<example_formatter> formatter = std::make_shared<example_formatter>();
  CLI::App app{"Boyd runs autonomous agents in a durable, auditable loop."};
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
                     const std::string& help = "Which kernel; the first one when left out") {
    a->add_option("--kernel", args.kernel, help)->type_name("ID");
  }
  void limit_option(CLI::App* a) {
    a->add_option("--limit", args.limit, "At most so many rows")
        ->check(CLI::Range(std::size_t{1}, largest_limit))
        ->type_name("N");
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
  app.set_version_flag("-V,--version", std::string("boyd ") + program_version,
                       "Print the program's version");
  formatter->examples[&app] = "boyd init && boyd cycle && boyd status";
  app.add_option("--home", args.home,
                 "The node's home; else $BOYD_HOME, $XDG_STATE_HOME/boyd, ~/.local/state/boyd")
      ->check(not_empty)
      ->type_name("DIR");
  app.add_option("--config", args.config, "The configuration; HOME/boyd.yaml when left out")
      ->check(not_empty)
      ->type_name("FILE");
  app.add_flag("--json", args.json, "Print one JSON object on standard output");
  app.add_flag("--utc", args.utc, "Show times in UTC (default: your time zone, TZ)");
  app.add_flag("--no-color", args.no_color, "No colours, as with NO_COLOR");
  app.add_flag("-v,--verbose", args.verbose, "Say more on standard error");
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
  add_week_verbs(app, args, std::bind_front(&command_line::verb, this));
  add_chaos_verbs();
}

CLI::App* command_line::verb(CLI::App& parent, const std::string& name, const std::string& help,
                             const std::string& example) {
  auto* a = parent.add_subcommand(name, help);
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
                    "Make a home: boyd.yaml, its schema, the kernels' repositories, "
                    "the database. Nothing that exists is overwritten.",
                    "boyd --home ~/node init --no-input --from config/examples/briefing.yaml");
  init->add_flag("--no-input", args.no_input, "Ask nothing");
  init->add_option("--from", args.from, "Start from this configuration")->type_name("FILE");
  init->add_option("--name", args.name, "The first kernel's name")->type_name("TEXT");
  init->add_option("--schedule", args.schedule, "The first kernel's schedule, e.g. @hourly")
      ->type_name("CRON");
  init->footer(
      "With --from the file is copied. Relative paths in a configuration start at its own "
      "folder,\nso cwd, file, inputs, workspace and store_password_file are written as absolute "
      "paths in the copy\n(also inside ${VAR:-path}); comments and everything else stay "
      "as they are. The copy is\nloaded and compared with the original: what would mean "
      "something else is refused.");
  verb(app, "node", "Run the node in the foreground until SIGTERM or SIGINT; SIGHUP reloads.",
       "boyd --home ~/node node")
      ->footer("Exit codes: 0 stopped in order, 1 failure, 4 configuration, 5 locked by another "
               "node, 6 a vital part\nfailed too often, 7 the stop took too long, 8 the watchdog "
               "found a part that does not answer.");
  auto* cycle = verb(app, "cycle", "Run one cycle now and wait for it, with or without a node.",
                     "boyd cycle --json");
  kernel_option(cycle);
  cycle->footer("Exit codes: 0 success, 3 partial success, 1 failed, 5 not admitted.");
  auto* run = verb(app, "run",
                   "Run one agent now, whatever its schedule, and show what it writes; with or "
                   "without a node.",
                   "boyd run daily-report \"only the last hour\"");
  run->add_option("agent", args.agent, "Which agent")->required()->type_name("AGENT");
  run->add_option("message", args.message, "Appended to its prompt")->type_name("MESSAGE");
  kernel_option(run);
  run->footer("Exit codes: 0 done; failed: that of its program, else 1; 5 not admitted.");
  auto* status = verb(app, "status", "The node at a glance; what needs attention comes first.",
                      "boyd status --watch");
  status->add_flag("--watch", args.watch, "Keep showing it until interrupted");
  auto* agents = verb(app, "agents", "The agents; without a verb: ls.", "boyd agents");
  kernel_option(agents);
  kernel_option(verb(*agents, "ls", "The agents: executor, limits, last result, next time.",
                     "boyd agents ls --kernel default"));
  auto* agent = verb(*agents, "show", "One agent: schedule, limits, tools and its latest runs.",
                     "boyd agents show daily-report");
  agent->add_option("agent", args.agent, "The agent")->required()->type_name("AGENT");
  kernel_option(agent);
}

void command_line::add_actor_verbs() {
  auto* a = verb(app, "actors", "The parts of the running node; without a verb: ls.",
                 "boyd actors unpark git_committer");
  verb(*a, "ls", "Every part: its state, how often it was restarted, and why.",
       "boyd actors ls --json");
  auto* restart =
      verb(*a, "restart", "Stop a part and start it anew, with those that depend on it.",
           "boyd actors restart kernel:default");
  auto* unpark = verb(*a, "unpark",
                      "Start a parked part again (one that failed too often), its failures "
                      "forgotten.",
                      "boyd actors unpark dispatcher:default/daily-report");
  for (auto* v : {restart, unpark})
    v->add_option("name", args.id, "The part, as boyd actors ls names it")
        ->required()
        ->type_name("NAME");
}

void command_line::add_dispatch_verbs() {
  auto* d = verb(app, "dispatches", "The queue; without a verb: ls.", "boyd dispatches ls");
  const auto list_options = [this](CLI::App* a) {
    kernel_option(a, "Only of this kernel; all of them when left out");
    a->add_option("--agent", args.agent, "Only of this agent")->type_name("ID");
    a->add_option("--cycle", args.cycle, "Only of this cycle")->type_name("ID");
    one_of(a->add_option("--status", args.status, "Only in this state"),
           {"pending", "running", "done", "failed", "cancelled"});
    a->add_option("--since", args.since,
                  std::string("Only created since then: ") + plan::human_time_forms)
        ->type_name("TIME");
    limit_option(a);
    a->add_option("--before", args.before, "The page after this dispatch")->type_name("ID");
  };
  list_options(verb(*d, "ls", "List dispatches, newest first.",
                    "boyd dispatches ls --status failed --limit 5"));
  const auto id = [this](CLI::App* a) {
    a->add_option("id", args.id, "A dispatch (its id or part of it), an agent, or last")
        ->required()
        ->type_name("ID");
    kernel_option(a, "Kernel of the agent (default: any)");
  };
  auto* show = verb(*d, "show", "One dispatch with its prompt, its output and its earlier runs.",
                    "boyd dispatches show 01956c2e-4f1a-7c35");
  id(show);
  show->add_option("--run", args.run, "Only the output of this run, by its number in the table")
      ->type_name("N");
  id(verb(*d, "retry",
          "Put a finished dispatch back into the queue. What it said stays readable: see show.",
          "boyd dispatches retry 01956c2e-4f1a-7c35"));
  id(verb(*d, "cancel", "Cancel a dispatch; a running one is stopped.",
          "boyd dispatches cancel 01956c2e-4f1a-7c35"));
}

void command_line::add_server_verbs() {
  auto* t = verb(app, "tools", "Servers of tools (MCP) that agents use; without a verb: ls.",
                 "boyd tools ls");
  auto* list = verb(*t, "ls", "The servers, how they are and how they are talked to.",
                    "boyd tools ls --connect");
  list->add_flag("--connect", args.connect, "Start each of them, and see whether it answers");
  auto* show = verb(*t, "show", "Start one server and list its tools.", "boyd tools show files");
  auto* call = verb(*t, "call", "Call one tool, as a person: no agent's policy is asked.",
                    "boyd tools call mcp__files__read_file '{\"path\": \"notes.txt\"}'");
  call->add_option("tool", args.id, "mcp__SERVER__TOOL")->required()->type_name("TOOL");
  call->add_option("arguments", args.tool_arguments, "A JSON object")->type_name("JSON");
  auto* trust =
      verb(*t, "trust", "Let agents use a server of their workspace's .mcp.json, as it is now.",
           "boyd tools trust files");
  trust
      ->add_option("--hash", args.hash,
                   "What you have read, by the hash that show printed; without it what the command "
                   "itself prints")
      ->check(not_empty)
      ->type_name("HASH");
  auto* forget = verb(*t, "forget", "Take that back.", "boyd tools forget files");
  for (auto* v : {show, trust, forget})
    v->add_option("server", args.id, "Its name")->required()->type_name("SERVER");
  for (auto* v : {trust, forget})
    v->add_option("--path", args.path,
                  "The workspace whose .mcp.json names it; where there is only one it may be left "
                  "out")
        ->type_name("DIRECTORY");
  auto* served = verb(app, "mcp",
                      "Serve status, agents, dispatches, explain and enqueue as MCP tools on "
                      "standard input and output.",
                      "claude mcp add boyd -- boyd mcp");
  served->add_flag("--operator", args.operators,
                   "Offer approve and reject, too: for a client whose every call a person sees");
  formatter->common[served] = home_options;
}

void command_line::add_approval_verbs() {
  auto* a = verb(app, "approvals", "What agents ask people for; without a verb: ls.",
                 "boyd approvals ls");
  auto* list = verb(*a, "ls", "What waits for a person, newest first.", "boyd approvals ls --all");
  list->add_flag("--all", args.all, "What is over, too");
  kernel_option(list, "Only of this kernel; all of them when left out");
  limit_option(list);
  auto* show =
      verb(*a, "show", "What exactly would be done, and every attempt to decide or use it.",
           "boyd approvals show 01956c2e-4f1a-7c35");
  auto* approve = verb(*a, "approve", "Let it be done, once, by the run that asks.",
                       "boyd approvals approve 01956c2e-4f1a-7c35 --reason \"as agreed\"");
  auto* reject = verb(*a, "reject", "Refuse it.",
                      "boyd approvals reject 01956c2e-4f1a-7c35 --reason \"not today\"");
  for (auto* v : {show, approve, reject})
    v->add_option("id", args.id, "The approval, or the beginning of its id")
        ->required()
        ->type_name("ID");
  for (auto* v : {approve, reject}) {
    v->add_option("--hash", args.hash,
                  "What you have read, by the hash that show printed; without it what the command "
                  "itself prints")
        ->check(not_empty)
        ->type_name("HASH");
    v->add_option("--reason", args.reason, "For the record; the agent is told")->type_name("TEXT");
    v->footer(
        "Refused with exit code 5 when it is decided, used, withdrawn or expired, or when what "
        "is asked for\nhas another hash; with 1 for programs that Boyd itself started.");
  }
}

void command_line::add_state_verbs() {
  auto* s = verb(app, "state", "A kernel's files and their history; without a verb: show.",
                 "boyd state show --at 2026-02-13T10:00:00Z");
  auto* show = verb(*s, "show", "A file of the kernel, now or at an earlier time.",
                    "boyd state show --path GOAL.md");
  auto* log = verb(*s, "log", "The commits, newest first.", "boyd state log --limit 5");
  auto* diff = verb(*s, "diff",
                    "What changed between two points (FROM when TO is left out: until "
                    "now; none: the newest commit's change).",
                    "boyd state diff HEAD~2 HEAD");
  const auto path = [this](CLI::App* a) {
    a->add_option("--path", args.path, "The file; STATE.md when left out")->type_name("FILE");
  };
  for (auto* a : {show, log, diff})
    kernel_option(a);
  path(show);
  show->add_option("--at", args.at, "A time (RFC 3339), a cycle or a commit")->type_name("POINT");
  log->add_option("--path", args.path, "Only commits that touch it")->type_name("FILE");
  limit_option(log);
  diff->add_option("from", args.from, "A time, a cycle or a commit")->type_name("FROM");
  diff->add_option("to", args.to, "A time, a cycle or a commit")->type_name("TO");
}

void command_line::add_memory_verbs() {
  auto* m = verb(app, "memory", "What a kernel remembers; without a verb: status.",
                 "boyd memory recall \"why did the nightly copy fail?\"");
  auto* status = verb(*m, "status", "Its files, their sections and caps, and how much is indexed.",
                      "boyd memory status --json");
  auto* append = verb(*m, "append", "Remember something: an entry of a section.",
                      "boyd memory append \"Important Facts\" \"the deploy key is in the vault\"");
  append->add_option("section", args.section, "The section; it is made when it is not there")
      ->required()
      ->check(not_empty)
      ->type_name("SECTION");
  append->add_option("text", args.text, "The entry")->required()->type_name("TEXT");
  append
      ->add_option("--path", args.path,
                   "MEMORY.md or SOUL.md; the one that has the section when left out")
      ->type_name("FILE");
  append->footer("What is then over the section's cap moves to archive/, whole; a text that is too "
                 "long goes to\nresearch/, and a short form points to it. Nothing is deleted.");
  auto* recall = verb(*m, "recall", "The entries that answer a question best.",
                      "boyd memory recall \"who changed the schedule in May?\" --budget 1000");
  recall->add_option("query", args.text, "The question")->type_name("QUERY");
  recall
      ->add_option("--queries", args.queries,
                   "Many at once: a line {\"query\": …, \"at\": …} each; one JSON object a line "
                   "is printed")
      ->check(not_empty)
      ->type_name("FILE");
  recall->add_option("--budget", args.budget, "At most so many tokens (default: 4000)")
      ->check(CLI::Range(std::size_t{1}, largest_budget))
      ->type_name("N");
  recall
      ->add_option("--at", args.at,
                   "As of this time (10:00, 2026-11-28, …): later entries are unknown")
      ->type_name("TIME");
  limit_option(recall);
  auto* from_file =
      verb(*m, "import", "Add dated entries to the archive; what is there is skipped.",
           "boyd memory import notes.jsonl");
  from_file->add_option("file", args.from, "One JSON object a line; - reads standard input")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  from_file->footer(
      "A line: {\"time\": \"2026-02-13T10:00:00Z\", \"text\": …} and perhaps key, source, "
      "author, section.\nThe same entry has the same key, or the same time, source and "
      "text. One line that cannot be read,\nand nothing is imported.");
  auto* compact =
      verb(*m, "compact",
           "Say what MEMORY.md and SOUL.md hold beyond their caps; with --yes move it to "
           "archive/.",
           "boyd memory compact --yes");
  auto* apply =
      verb(*m, "apply",
           "Do what the memory policy says of the texts that runs were given: boyd memory "
           "status shows it.",
           "boyd memory apply");
  apply->add_flag("--yes", args.yes, "Do not ask; nothing is forgotten without being asked");
  apply->add_flag("--force-forget", args.forget, "Forget without being asked, too");
  compact->add_flag("--yes", args.yes, "Move it");
  for (auto* a : {status, append, recall, from_file, compact})
    kernel_option(a);
}

void command_line::add_context_verbs() {
  auto* c =
      verb(app, "context",
           "What agents are given to read: the kernel's buffer of references; without a verb: "
           "ls.",
           "boyd context add @README.md '#docs'");
  auto* list =
      verb(*c, "ls", "The references that all agents of the kernel are given.", "boyd context ls");
  auto* add = verb(*c, "add", "Put references into the buffer.",
                   "boyd context add @src/main.cpp:10-30 '#docs' '@!git log -5'");
  auto* rm = verb(*c, "rm", "Take references out of the buffer.", "boyd context rm '#docs'");
  auto* clear = verb(*c, "clear", "Take all references out of the buffer.", "boyd context clear");
  auto* cat = verb(*c, "cat", "What references are now; those of the buffer when none is given.",
                   "boyd context cat @README.md --agent daily-report");
  auto* resolve =
      verb(*c, "resolve", "What counts as a reference in a text, and why the rest does not.",
           "boyd context resolve 'read @README.md, mail me@example.org'");
  auto* bank =
      verb(*c, "bank", "What proved useful, and joins runs that it fits.", "boyd context bank");
  for (auto* v : {list, add, rm, clear, cat, resolve, bank})
    kernel_option(v);
  for (auto* v : {cat, resolve})
    v->add_option("--agent", args.agent,
                  "In this agent's workspace, by its policy; else where all agents of the kernel "
                  "work, else in its home")
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
      "Give back to the budgets what a call did not use, as you know: of an open reservation, or "
      "of an estimate.",
      "boyd cost release 01956c2e-4f1a-7c35 --reason \"the provider refused the key\"");
  release->add_option("id", args.id, "The call or its dispatch, or the beginning of the id")
      ->required()
      ->type_name("ID");
  release->add_option("--reason", args.reason, "Why it used less; stays on record")
      ->required()
      ->check(not_empty)
      ->type_name("TEXT");
  release->add_option("--used-tokens", args.used_tokens, "Tokens that it did use (default: 0)")
      ->check(whole_number)
      ->type_name("N");
  release->add_option("--used-dollars", args.used_dollars, "Dollars that it did use (default: 0)")
      ->type_name("DOLLARS");
  release->add_flag("--force", args.force,
                    "Also while the call's run is under way; what it reports later counts");
}

void command_line::add_question_verbs() {
  auto* why = verb(app, "why", "Why did it run, or why not, and when is the next time?",
                   "boyd why daily-report --at \"yesterday 10:00\"");
  why->add_option("agent", args.agent, "About this agent; else about the kernel")
      ->type_name("AGENT");
  why->add_option("--at", args.at,
                  std::string("The scheduled run at this time: ") + plan::human_time_forms)
      ->type_name("TIME");
  auto* plan =
      verb(app, "plan",
           "What a cycle would do now (dry run); of one agent what it reads and is told, due "
           "or not.",
           "boyd plan daily-report --prompts");
  plan->add_option("agent", args.agent,
                   "Show this agent's context; commands of its references are run")
      ->type_name("AGENT");
  plan->add_flag("--prompts", args.prompts, "Show the rendered prompts");
  auto* cost =
      verb(app, "cost", "What models used up, in tokens and dollars; today's when no day is given.",
           "boyd cost --by model --from 2026-02-01");
  one_of(cost->add_option("--by", args.by, "One row for each of these; agent when left out"),
         {"agent", "model", "day", "call"});
  cost->add_option("--from", args.from, "The first day (UTC); with --by day 29 days before today")
      ->type_name("DAY");
  cost->add_option("--to", args.to, "The last day (UTC); today when left out")->type_name("DAY");
  cost->add_flag("--csv", args.csv, "Print comma-separated values");
  kernel_option(cost, "Only of this kernel; all of them when left out");
  add_release(*cost);
  auto* pause = verb(app, "pause", "Pause the kernel or one agent until resume.",
                     "boyd pause --agent daily-report --reason \"on holiday\"");
  pause->add_option("--reason", args.reason, "Shown in status and why")->type_name("TEXT");
  auto* resume = verb(app, "resume", "End a pause.", "boyd resume --agent daily-report");
  for (auto* a : {pause, resume})
    a->add_option("--agent", args.agent, "Only this agent")->type_name("ID");
  for (auto* a : {why, plan, pause, resume})
    kernel_option(a);
}

void command_line::add_tool_verbs() {
  auto* c =
      verb(app, "config", "The configuration; without a verb: validate.", "boyd config validate");
  verb(*c, "validate", "Check it: every finding at once, with file:line:column.",
       "boyd --config boyd.yaml config validate");
  verb(*c, "show", "The effective configuration, secrets redacted.", "boyd config show");
  auto* schema = verb(*c, "schema", "The JSON Schema that editors use.",
                      "boyd config schema > boyd.schema.json");
  schema->add_flag("--markdown", args.markdown, "The reference in Markdown instead");
  formatter->common[schema].clear();
  auto* cleanup = verb(app, "cleanup",
                       "Remove what ended executions have left, once their dispatches are gone.",
                       "boyd cleanup --dry-run");
  cleanup->add_flag("--dry-run", args.dry_run, "Only say what would be removed");
  cleanup->footer(
      "A node does this by itself, behind node.retention: records and turns of dispatches that are "
      "gone\nfrom its store, then the contents that no record names.");
  auto* doctor = verb(app, "doctor", "Check everything a node needs, and say what to do.",
                      "boyd doctor --provider local");
  doctor
      ->add_option("--provider", args.provider,
                   "Call the models of this provider instead: what works, what it lacks")
      ->check(not_empty)
      ->type_name("ID");
  doctor->add_flag("--providers", args.providers, "The same for all providers");
  doctor->add_flag("--accept-graph", args.accept, "Accept a cut graph.jsonl as it is now");
  doctor->add_option("--model", args.model, "With --provider: this model instead of its own")
      ->check(not_empty)
      ->type_name("NAME");
  auto* selftest = verb(app, "selftest",
                        "Try this program on this machine's disk: a scratch home, killed again and "
                        "again.",
                        "boyd selftest --crash --seconds 60 --dir /srv/boyd");
  selftest->add_flag(
      "--crash", args.crash,
      "Kill cycles, and nodes at a batch of dispatches, at random moments; look what is "
      "left");
  selftest->add_option("--seconds", args.seconds, "How long; 20 when left out")
      ->check(CLI::Range(std::size_t{1}, longest_selftest))
      ->type_name("N");
  selftest->add_option("--dir", args.dir, "Where; beside the node's home when left out")
      ->check(not_empty)
      ->type_name("DIR");
  auto* version = verb(app, "version", "The program's version.", "boyd version --json");
  formatter->common[version] = json_option;
  auto* completion = verb(app, "completion", "A completion script for your shell.",
                          "boyd completion bash > ~/.local/share/bash-completion/completions/boyd");
  one_of(completion->add_option("shell", args.shell, "The shell")->required(),
         {"bash", "zsh", "fish"});
  formatter->common[completion].clear();
}

void command_line::add_chaos_verbs() {
  auto* c =
      verb(app, "chaos", "Let things go wrong on purpose, in a trial; without a verb: status.",
           "boyd chaos inject store.apply --error --count 3");
  formatter->common[verb(*c, "ls", "Every fault point and what it can do; needs no node.",
                         "boyd chaos ls")] = json_option;
  verb(*c, "status", "What is armed in the running node, and how often it struck.",
       "boyd chaos status --json");
  verb(*c, "clear", "End all faults, whoever armed them.", "boyd chaos clear");
  auto* inject = verb(
      *c, "inject", "Arm a fault in the running node, when its configuration has node.chaos: true.",
      "boyd chaos inject git_committer.commit --delay 2s --prob 0.5 --count 10");
  auto& o = args.chaos;
  inject->add_option("point", o.point, "The fault point; boyd chaos ls shows them")
      ->required()
      ->type_name("POINT");
  inject->add_flag("--crash", o.crash, "The part dies and is restarted");
  inject->add_flag("--error", o.error, "The operation fails");
  inject->add_option("--delay", o.delay, "It comes later: milliseconds, or 250ms, 2s, …")
      ->type_name("TIME");
  inject->add_flag("--drop", o.drop, "It, or its answer, is lost");
  inject->add_flag("--corrupt", o.corrupt, "One bit of it changes");
  inject->add_option("--count", o.count, "At most so often; 0: without end")
      ->check(whole_number)
      ->type_name("N");
  inject->add_option("--prob", o.probability, "How likely it is each time")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P");
  inject->add_option("--after", o.after, "So many times it goes well first")
      ->check(whole_number)
      ->type_name("N");
  inject->add_option("--every", o.every, "From then on each time, each second time, …")
      ->check(counting_number)
      ->type_name("N");
  inject->add_option("--seed", o.seed, "Decides what chance decides")
      ->check(whole_number)
      ->type_name("N");
}

cli_option describe(const CLI::Option& o, const command_line& all) {
  cli_option out;
  for (const auto& n : o.get_snames())
    out.names.push_back("-" + n);
  for (const auto& n : o.get_lnames())
    out.names.push_back("--" + n);
  out.help = o.get_description();
  out.takes_value = o.get_expected_max() > 0;
  out.is_path = o.get_type_name() == "FILE" || o.get_type_name() == "DIR";
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
    auto described = describe(*o, all);
    if (o->get_positional())
      out.positional_choices.insert(out.positional_choices.end(), described.choices.begin(),
                                    described.choices.end());
    else
      out.options.push_back(std::move(described));
  }
  for (const auto* s : app.get_subcommands([](const CLI::App*) { return true; }))
    out.verbs.push_back(describe(*s, all));
  return out;
}

/// The verb that a family answers to when none is given.
std::string standard_verb(const std::string& verb) {
  static const std::map<std::string, std::string> standard{
      {"actors", "actors ls"},       {"agents", "agents ls"},     {"dispatches", "dispatches ls"},
      {"state", "state show"},       {"memory", "memory status"}, {"skills", "skills ls"},
      {"config", "config validate"}, {"context", "context ls"},   {"chaos", "chaos status"},
      {"kg", "kg learned"}};
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
    return fail(usage_error(line.app, e));
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
