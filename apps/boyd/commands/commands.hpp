#pragma once

#include "../arguments.hpp"

/// One function per verb: does it, prints, returns the exit code.
namespace boyd::app {

int run_init(const arguments& args);
int run_node(const arguments& args);
int run_node_in_background(const arguments& args); ///< node --background
int run_stop(const arguments& args);
int run_cycle(const arguments& args);
int run_agent(const arguments& args); ///< run AGENT [MESSAGE…]
int run_status(const arguments& args);
int run_agents(const arguments& args);      ///< ls, show
int run_agents_edit(const arguments& args); ///< agents add, rm
int run_logs(const arguments& args);
int run_next(const arguments& args);
int run_reload(const arguments& args);
int run_patches(const arguments& args); ///< ls, show, apply, discard
int run_backup(const arguments& args);
int run_restore(const arguments& args);
int run_actors(const arguments& args);     ///< ls, restart, unpark
int run_dispatches(const arguments& args); ///< ls, show, retry, cancel
int run_approvals(const arguments& args);  ///< ls, show, approve, reject
int run_tools(const arguments& args);      ///< ls, show, call, trust, forget
int run_mcp(const arguments& args);        ///< serves until its standard input ends
int run_store(const arguments& args);      ///< show, begin, migrate
int run_state(const arguments& args);      ///< show, log, diff
int run_memory(const arguments& args);     ///< status, append, recall, import, compact
int run_skills(const arguments& args);     ///< ls, show, review, approve, reject, defer, …
int run_context(const arguments& args);    ///< ls, add, rm, clear, cat, resolve
int run_improve(const arguments& args);    ///< a cycle on a repository, or several; report
int run_cleanup(const arguments& args);
int run_kg(const arguments& args); ///< trace, why, stats, lineage, findings, learned, query, verify
int run_graph(const arguments& args);
int run_why(const arguments& args);
int run_explain(const arguments& args);
int run_replay(const arguments& args);
int run_plan(const arguments& args);
int run_cost(const arguments& args);
int run_pause(const arguments& args);
int run_resume(const arguments& args);
int run_config(const arguments& args); ///< validate, show, schema
int run_chaos(const arguments& args);  ///< ls, inject, clear, status
int run_doctor(const arguments& args);
int run_doctor_providers(const arguments& args); ///< doctor --provider, --providers
int run_selftest(const arguments& args);
int run_version(const arguments& args);
int run_completion(const arguments& args);
int run_complete(const arguments& args); ///< names for the scripts of run_completion

} // namespace boyd::app
