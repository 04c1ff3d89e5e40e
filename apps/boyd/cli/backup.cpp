#include "option_checks.hpp"
#include "verbs.hpp"

namespace boyd::app {

void add_backup_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* backup =
      verb(app, "backup", "Back up the home into one file, also while the node is running.",
           "boyd backup /mnt/usb/boyd-2026-11-28.tar");
  backup->add_option("file", args.file, "The file to create; it must not exist yet")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  backup->footer("The file is a tar archive that contains prompts, results and secrets of agents. "
                 "Only you can read it; keep it private. A PostgreSQL database is not included; "
                 "the command shows how to back it up. To check it and see what "
                 "is in it: boyd restore --check FILE");
  auto* restore = verb(app, "restore", "Restore a home from a backup, after checking every file.",
                       "boyd --home ~/restored restore /mnt/usb/boyd-2026-11-28.tar");
  restore->add_option("file", args.file, "A backup file made by `boyd backup`")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  restore->add_flag("--check", args.check,
                    "Only check the backup and show what is in it; restore nothing");
  restore->footer(
      "The home must be missing or empty. Runs that were active during the backup run again. If "
      "the original home is still on this machine, no node starts from the copy until one of the "
      "two has another node id; restore shows the commands.");
}

} // namespace boyd::app
