#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace boyd::app {

/// The options of `boyd chaos inject`.
struct chaos_options {
  std::string point;
  bool crash = false;
  bool error = false;
  bool drop = false;
  bool corrupt = false;
  std::string delay; ///< a duration, or milliseconds; empty: another action
  int count = 1;     ///< 0: without end
  double probability = 1.0;
  std::int64_t after = 0;
  std::int64_t every = 1;
  std::string seed; ///< empty: the node draws one
};

/// The options of `boyd explain` and `boyd replay`.
struct record_options {
  bool context = false;
  bool lifecycle = false;
  bool facts = true; ///< --kg
  bool graph = false;
  bool strict = false;
  bool diff = false;
  bool prompt = false;
  bool reevaluate = false;
  std::string executor; ///< a provider
};

/// The options of `boyd improve`.
struct improve_options {
  std::string repo = "."; ///< --repo
  std::string approved;   ///< --approved
  std::string task;       ///< of retry
  std::string interval = "300s";
  std::size_t max_cycles = 0; ///< --max-cycles; 0: without end
  bool dry_run = false;
  bool apply = false;
  bool once = false;
  bool loop = false;
  bool resume = false;
  bool approve = false;
  bool auto_commit = false;
  bool unattended = false; ///< run by a node: events on standard output, an open cycle goes on
};

/// The options of `boyd agents add` besides its schedule, provider, model and command.
struct agent_options {
  std::string prompt;
  std::string prompt_file;
  std::string shell;
  std::string adapter;
  std::string worktree; ///< a repository
  std::string cwd;
  std::string timeout;
  bool disabled = false;
};

/// The command line after parsing; an option that was not given is empty or zero.
struct arguments {
  std::string verb; ///< "cycle", "dispatches show", …

  // everywhere
  std::string home;   ///< --home; see home_of
  std::string config; ///< --config
  bool json = false;
  bool no_color = false;
  bool verbose = false;
  bool quiet = false; ///< --quiet: results and errors only
  bool utc = false;   ///< --utc: times for people in UTC

  // of single verbs
  std::string id;                     ///< of a dispatch, an approval or a call
  std::string run;                    ///< --attempt of a run
  std::string agent;                  ///< --agent, or the positional of why
  std::string kernel;                 ///< --kernel
  std::string cycle;                  ///< --cycle
  std::string status;                 ///< --status
  std::string at;                     ///< --at
  std::string from;                   ///< state diff FROM; init --from FILE; cost --from DAY
  std::string to;                     ///< state diff TO; cost --to DAY
  std::string by;                     ///< cost --by
  std::string used_tokens{};          ///< cost release --used-tokens
  std::string used_dollars{};         ///< cost release --used-dollars
  std::string path;                   ///< --path
  std::string before;                 ///< --before
  std::string reason;                 ///< --reason
  std::string hash{};                 ///< approvals approve|reject, tools trust --hash
  std::vector<std::string> message{}; ///< run AGENT MESSAGE…, agents add NAME COMMAND…
  std::string tool_arguments{};       ///< tools call TOOL ARGUMENTS
  std::string section{};              ///< memory append SECTION
  std::string text{};                 ///< memory append TEXT, memory recall QUERY
  std::string queries{};              ///< memory recall --queries
  std::size_t budget = 4000;          ///< memory recall --budget
  std::string shell;                  ///< completion SHELL, complete KIND
  /// context add|rm|cat REFERENCE…; the words of context resolve TEXT
  std::vector<std::string> references{};
  std::string provider;    ///< doctor --provider
  std::string model;       ///< doctor --model
  std::string name;        ///< init --name
  std::string type{};      ///< kg query --type
  std::string since{};     ///< kg learned --since, kg query --since
  std::string around{};    ///< graph --around
  std::size_t depth = 2;   ///< graph --depth
  std::string policy{};    ///< replay --policy
  bool forget = false;     ///< memory apply --force-forget
  std::string format{};    ///< graph: mermaid, dot or text
  std::string schedule;    ///< init, agents add --schedule
  std::string file{};      ///< backup, restore FILE
  std::string timeout{};   ///< stop --timeout
  bool background = false; ///< node --background
  bool now = false;        ///< stop --now
  bool check = false;      ///< restore --check
  std::size_t limit = 0;
  bool follow = false; ///< logs -f
  bool turns = false;  ///< logs --turns
  bool no_input = false;
  bool dry_run = false; ///< cleanup --dry-run
  bool yes = false;     ///< store begin --yes
  bool watch = false;
  bool parts = false; ///< status --parts
  bool prompts = false;
  bool markdown = false;
  bool csv = false;         ///< cost --csv
  bool force = false;       ///< cost release --force
  bool replace = false;     ///< skills draft --replace
  bool all = false;         ///< approvals ls --all
  bool connect = false;     ///< tools ls --connect
  bool operators = false;   ///< mcp --operator
  bool providers = false;   ///< doctor --providers
  bool accept = false;      ///< doctor --accept-graph
  bool crash = false;       ///< selftest --crash
  bool learn = false;       ///< selftest --learn
  std::size_t seconds = 20; ///< selftest --seconds
  std::string dir{};        ///< selftest --dir
  chaos_options chaos;
  record_options record;
  improve_options improve;
  agent_options new_agent{};
};

} // namespace boyd::app
