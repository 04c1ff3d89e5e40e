#include "cli_store.hpp"

namespace boyd::app {

void add_store_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* s = verb(app, "store", "The database that this home works with; without a verb: show.",
                 "boyd store");
  verb(*s, "show", "The store that node.store names, and whether it is this home's.",
       "boyd store show");
  auto* migrate = verb(*s, "migrate",
                       "Move everything from one store to another, checked; a move that was "
                       "interrupted goes on.",
                       "boyd store migrate sqlite postgres://boyd@db.example.org/boyd");
  migrate->add_option("from", args.from, "The old store, as node.store names it")
      ->required()
      ->type_name("FROM");
  migrate->add_option("to", args.to, "The new one, which is empty")->required()->type_name("TO");
  migrate->footer("No node may use either store meanwhile. Afterwards the old store says where its "
                  "content went,\nand is not used any more; set node.store to the new one.");
  auto* begin = verb(*s, "begin",
                     "Go on with the store that node.store names, although it is another one than "
                     "before.",
                     "boyd store begin --yes");
  begin->add_flag("--yes", args.yes, "Do not ask");
  begin->footer("Pauses, budgets, queue and history of the earlier store are not in it. To take "
                "them along: boyd store migrate.");
}

} // namespace boyd::app
