#include "option_checks.hpp"
#include "verbs.hpp"

namespace boyd::app {

void add_node_verbs(CLI::App& app, arguments& args, const verb_maker& verb) {
  auto* node =
      verb(app, "node",
           "Run the node: it follows the schedules until it is stopped (Ctrl-C, SIGTERM or "
           "`boyd stop`).",
           "boyd --home ~/node node --background");
  node->add_flag("-d,--background", args.background,
                 "Start the node in the background: return when it answers. Its log is "
                 "HOME/run/node.log");
  node->footer("SIGHUP reloads boyd.yaml. Exit codes: 0 stopped normally, 1 failure, 4 "
               "configuration error, 5 home in use by another node, 6 a vital part failed too "
               "often, 7 stopping took too long, 8 a part stopped responding.");
  auto* stop = verb(app, "stop", "Stop the running node of this home, and wait until it has ended.",
                    "boyd stop --timeout 1m");
  stop->add_option("--timeout", args.timeout,
                   "Wait no longer than this, such as 30s; the node continues to stop (default: "
                   "wait until it has ended)")
      ->check(not_empty)
      ->type_name("TIME");
  stop->add_flag("--now", args.now,
                 "Cancel running attempts at once; they run again after the next start");
  stop->footer(
      "Running attempts may take node.drain_grace (30 s) to finish; then they are cancelled "
      "and returned to the queue. Programs that Boyd itself started cannot stop the node.");
  verb(app, "reload", "Reload boyd.yaml in the running node and show the changes.", "boyd reload")
      ->footer("If the file has errors, nothing changes. SIGHUP also reloads.");
}

} // namespace boyd::app
