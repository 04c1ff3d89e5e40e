#include "verbs.hpp"

namespace boyd::app {

void add_store_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* s = verb(app, "store", "Show or change the database of this home (default command: show).",
                 "boyd store");
  verb(*s, "show", "Show the configured database and whether it belongs to this home.",
       "boyd store show");
  auto* migrate = verb(
      *s, "migrate",
      "Move all data to another database and verify it. Run again to continue an interrupted move.",
      "boyd store migrate sqlite postgres://boyd@db.example.org/boyd");
  migrate->add_option("from", args.from, "The old database, as written in node.store")
      ->required()
      ->type_name("FROM");
  migrate->add_option("to", args.to, "The new, empty database")->required()->type_name("TO");
  migrate->footer("Stop all nodes of both databases first. Afterwards set node.store to the new "
                  "database; the old one is marked as moved and can no longer be used.");
  auto* begin = verb(*s, "begin",
                     "Use the database in node.store, although it differs from the previous one.",
                     "boyd store begin --yes");
  begin->add_flag("--yes", args.yes, "Do not ask for confirmation");
  begin->footer("Pauses, budgets, queue and history of the previous database are not copied. To "
                "keep them, use: boyd store migrate");
}

} // namespace boyd::app
