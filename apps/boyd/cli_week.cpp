#include "cli_week.hpp"

#include "option_checks.hpp"

namespace boyd::app {

namespace {

constexpr std::size_t most_times = 100;

void add_logs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* logs = verb(app, "logs", "Show the output of a run, also while it is running.",
                    "boyd logs daily-report -f");
  logs->add_option("run", args.id, "An agent (its newest run), a dispatch, or last (default: last)")
      ->type_name("AGENT|DISPATCH");
  logs->add_flag("-f,--follow", args.follow, "Follow new output until the run ends");
  logs->add_flag("--turns", args.turns, "Show the conversation with the model and its tools");
  logs->add_option("--run", args.run, "Show an earlier run (its number in `dispatches show`)")
      ->check(counting_number)
      ->type_name("N");
  logs->add_option("--kernel", args.kernel, "Kernel of the agent (default: any)")->type_name("ID");
  logs->footer("Output of a command appears as it is written. A chat or an agent CLI answers at "
               "the end; until then, --turns shows the conversation of a chat.");
}

void add_next(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* next =
      verb(app, "next", "Show the next scheduled runs of agents.", "boyd next daily-report -n 3");
  next->add_option("agent,--agent", args.agent, "Only this agent (default: all)")
      ->type_name("AGENT");
  next->add_option("-n", args.limit, "Number of times (default: 5)")
      ->check(CLI::Range(std::size_t{1}, most_times))
      ->type_name("N");
  next->add_option("--kernel", args.kernel, "Only this kernel (default: all)")->type_name("ID");
  next->footer("This list ignores pauses, cooldowns and wake checks; `boyd agents` takes them into "
               "account.");
}

void add_backup(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* backup =
      verb(app, "backup", "Back up the home into one file, also while the node is running.",
           "boyd backup /mnt/usb/boyd-2026-11-28.tar");
  backup->add_option("file", args.file, "The file to create; it must not exist yet")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  backup->footer("The file is a tar archive that contains prompts, results and secrets of agents. "
                 "Only you can read it; keep it private. A PostgreSQL database is not included; "
                 "the command shows how to back it up.");
  auto* restore = verb(app, "restore", "Restore a home from a backup, after checking every file.",
                       "boyd --home ~/restored restore /mnt/usb/boyd-2026-11-28.tar");
  restore->add_option("file", args.file, "A backup file made by `boyd backup`")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  restore->footer(
      "The home must be missing or empty. Runs that were active during the backup run again. If "
      "the original home is still on this machine, move it away first: a second copy is refused.");
}

} // namespace

void add_week_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  add_logs(app, args, verb);
  add_next(app, args, verb);
  verb(app, "reload", "Reload boyd.yaml in the running node and show the changes.", "boyd reload")
      ->footer("If the file has errors, nothing changes. SIGHUP also reloads.");
  add_backup(app, args, verb);
}

} // namespace boyd::app
