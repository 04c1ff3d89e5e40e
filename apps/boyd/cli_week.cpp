#include "cli_week.hpp"

#include "option_checks.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_times = 100;

void add_logs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* logs = verb(app, "logs", "Show what a run wrote, also while it is running.",
                    "boyd logs daily-report -f");
  logs->add_option("run", args.id, "An agent (its newest run), a dispatch, or last (default: last)")
      ->type_name("AGENT|DISPATCH");
  logs->add_flag("-f,--follow", args.follow, "Keep showing new output until the run ends");
  logs->add_flag("--turns", args.turns, "Show the conversation with the model and its tools");
  logs->add_option("--run", args.run, "An earlier run, by its number in `dispatches show`")
      ->check(counting_number)
      ->type_name("N");
  logs->add_option("--kernel", args.kernel, "Kernel of the agent (default: any)")->type_name("ID");
  logs->footer("A command's output is shown as it is written. A chat or an agent CLI answers at\n"
               "its end; until then --turns shows what a chat has said and done.");
}

void add_next(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* next = verb(app, "next", "Show when agents are due next, by their schedules.",
                    "boyd next daily-report -n 3");
  next->add_option("agent,--agent", args.agent, "Only this agent (default: all)")
      ->type_name("AGENT");
  next->add_option("-n", args.limit, "Number of times (default: 5)")
      ->check(CLI::Range(std::size_t{1}, most_times))
      ->type_name("N");
  next->add_option("--kernel", args.kernel, "Only this kernel (default: all)")->type_name("ID");
  next->footer("Pauses, cooldowns and wake checks are not looked at; boyd agents shows when an\n"
               "agent will run, as far as that is known.");
}

void add_backup(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* backup = verb(app, "backup", "Copy the home into one file, also while the node runs.",
                      "boyd backup /mnt/usb/boyd-2026-11-28.tar");
  backup->add_option("file", args.file, "The file to make; it must not exist")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  backup->footer("The file is a tar archive with prompts, results and secrets of agents in it: it\n"
                 "is readable for you alone, keep it so. A database in PostgreSQL is not in it;\n"
                 "the command says what to do.");
  auto* restore = verb(app, "restore", "Make a home from a backup; every file is checked first.",
                       "boyd --home ~/restored restore /mnt/usb/boyd-2026-11-28.tar");
  restore->add_option("file", args.file, "A file that boyd backup made")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  restore->footer("The home must be missing or empty. What ran when the backup was made runs\n"
                  "again. While the original home stands on this machine, a copy of it is\n"
                  "refused: move the original away first.");
}

} // namespace

void add_week_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  add_logs(app, args, verb);
  add_next(app, args, verb);
  verb(app, "reload", "Make the running node read boyd.yaml again, and show what changed.",
       "boyd reload")
      ->footer("A file with errors changes nothing. SIGHUP does the same.");
  add_backup(app, args, verb);
}

} // namespace boyd::app
