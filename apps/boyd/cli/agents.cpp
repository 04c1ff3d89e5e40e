#include "option_checks.hpp"
#include "verbs.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_times = 100;

void add_logs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* logs = verb(app, "logs", "Show the output of a run, also while it is running.",
                    "boyd logs daily-report -f");
  logs->add_option("run", args.id,
                   "An agent (its newest run), the id of a run, or last: the run that began last "
                   "(default)")
      ->type_name("AGENT|RUN");
  logs->add_flag("-f,--follow", args.follow, "Follow new output until the run ends");
  logs->add_flag("--turns", args.turns, "Show the conversation with the model and its tools");
  add_attempt_option(*logs, args, "Show an earlier attempt (its number in `dispatches show`)");
  logs->add_option("--kernel", args.kernel, "Kernel of the agent (default: any)")->type_name("ID");
  logs->footer("Output of a command appears as it is written. A chat or an agent CLI answers at "
               "the end; until then, --turns shows the conversation of a chat.");
}

void add_next(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* next =
      verb(app, "next", "Show the next scheduled runs of agents.", "boyd next daily-report -n 3");
  next->add_option("agent,--agent", args.agent, "Only this agent (default: all)")
      ->type_name("AGENT");
  next->add_option("-n,--limit", args.limit, "Number of times (default: 5)")
      ->check(CLI::Range(std::size_t{1}, most_times))
      ->type_name("N");
  next->add_option("--kernel", args.kernel, "Only this kernel (default: all)")->type_name("ID");
  next->footer("This list ignores pauses, cooldowns and wake checks; `boyd agents` takes them into "
               "account.");
}

void add_patches(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* patches =
      verb(app, "patches",
           "Review and apply the changes that agents made in git worktrees (default command: "
           "ls).",
           "boyd patches ls");
  patches->require_subcommand(0, 1);
  verb(*patches, "ls", "List patches that are not applied yet, newest first.",
       "boyd patches ls --all")
      ->add_flag("--all", args.all, "Also show applied patches");
  auto* show = verb(*patches, "show", "Show a patch.", "boyd patches show coder");
  auto* apply = verb(*patches, "apply", "Apply a patch to the files of its repository.",
                     "boyd patches apply coder");
  apply->footer(
      "Either all files change or none. If a file has changed in the same place since the run "
      "began, nothing is applied and the exit code is 5. Nothing is staged or committed.");
  auto* discard = verb(*patches, "discard", "Delete a patch.", "boyd patches discard 6a2f9d41");
  discard->add_flag("--yes", args.yes, "Do not ask for confirmation");
  for (auto* v : {show, apply, discard}) {
    v->add_option("id", args.id,
                  "A run (its id, or the short id in tables), an agent, or last: the newest patch")
        ->required()
        ->check(not_empty)
        ->type_name("ID");
    add_attempt_option(*v, args, "Which attempt of the run (default: the newest open one)");
  }
}

} // namespace

void add_attempt_option(CLI::App& verb, arguments& args, const std::string& help) {
  auto* now = verb.add_option("--attempt", args.run, help)->check(counting_number)->type_name("N");
  verb.add_option("--run", args.run)->check(counting_number)->group("")->excludes(now);
}

void add_agent_edits(CLI::App& agents, arguments& args, const verb_maker& verb) {
  auto& o = args.new_agent;
  auto* add = verb(agents, "add", "Add an agent to boyd.yaml; asks for missing values.",
                   "boyd agents add report --schedule @daily -- ./report.sh --brief");
  add->add_option("agent", args.agent, "Name of the agent")->type_name("NAME");
  add->add_option("command", args.message, "The program to run, with its arguments")
      ->type_name("COMMAND");
  auto* prompt = add->add_option("--prompt", o.prompt, "Prompt of the agent")->type_name("TEXT");
  add->add_option("--prompt-file", o.prompt_file, "File with the prompt")
      ->type_name("FILE")
      ->excludes(prompt);
  auto* shell =
      add->add_option("--shell", o.shell, "Run this line with /bin/sh instead of a program")
          ->type_name("LINE");
  auto* chat = add->add_option("--provider", args.provider, "Make it a chat with this provider")
                   ->type_name("NAME")
                   ->excludes(shell);
  add->add_option("--adapter", o.adapter, "Make it an agent CLI: claude, codex, …")
      ->type_name("NAME")
      ->excludes(shell)
      ->excludes(chat);
  add->add_option("--model", args.model, "Model of a chat or an agent CLI")->type_name("NAME");
  add->add_option("--worktree", o.worktree,
                  "Let the agent CLI work in git worktrees of this repository")
      ->type_name("DIR");
  add->add_option("--cwd", o.cwd, "Working directory (default: the kernel's home)")
      ->type_name("DIR");
  add->add_option("--schedule", args.schedule,
                  "When it is due; it runs in the next cycle of its kernel, never more often than "
                  "the kernel (default: in every cycle)")
      ->type_name("CRON");
  add->add_option("--timeout", o.timeout, "Limit for a single attempt, such as 10m")
      ->type_name("TIME");
  add->add_flag("--disabled", o.disabled, "Add it disabled");
  add->add_flag("--no-input", args.no_input, "Do not ask questions");
  auto* rm = verb(agents, "rm", "Remove an agent from boyd.yaml.", "boyd agents rm report");
  rm->add_option("agent", args.agent, "Name of the agent (list: boyd agents)")
      ->required()
      ->type_name("AGENT");
  rm->add_flag("--yes", args.yes, "Do not ask for confirmation");
  for (auto* v : {add, rm}) {
    v->add_option("--kernel", args.kernel, "Kernel of the agent (default: the first kernel)")
        ->type_name("ID");
    v->footer("Comments and the order of the file stay. Nothing is written if the file would have "
              "errors. A running node takes the change with: boyd reload");
  }
}

void add_run_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  add_logs(app, args, verb);
  add_next(app, args, verb);
  add_patches(app, args, verb);
}

} // namespace boyd::app
