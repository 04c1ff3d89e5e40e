#pragma once

#include "boyd/config/agent_cli.hpp"
#include "boyd/config/context.hpp"
#include "boyd/config/mcp.hpp"
#include "boyd/config/models.hpp"
#include "boyd/config/sandbox.hpp"
#include "boyd/context/confidence.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"
#include "boyd/memory/document.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The whole configuration as values (docs/configuration.md). Made by config::load; immutable
/// afterwards and shared by all actors.
namespace boyd::config {

/// What the next slot does while a cycle is still running.
enum class overlap_policy : std::uint8_t { skip, queue_one, cancel };

/// What becomes of slots that passed while the node was down.
enum class misfire_policy : std::uint8_t { run_once, skip, all };

/// A schedule of a kernel or an agent. `expression`: five cron fields, "@hourly" and the like, or
/// "@every 30s".
struct schedule {
  std::string expression;
  std::string tz = "UTC";
  milliseconds jitter{0};
  overlap_policy overlap = overlap_policy::skip;
  misfire_policy misfire = misfire_policy::run_once;
  /// How late a slot may start before it counts as misfired.
  milliseconds grace = 1min;

  bool operator==(const schedule&) const = default;
};

/// `executor: {type: command, …}`: any program (docs/executors.md).
struct command_executor {
  std::vector<std::string> argv;
  std::string shell; ///< instead of argv: run by /bin/sh -c, because it was asked for
  std::string cwd;   ///< absolute after loading (relative: from the configuration file's folder);
                     ///< empty: the kernel's home
  std::vector<std::string> env_pass;                    ///< names let through from the node's own
  std::vector<std::pair<std::string, std::string>> env; ///< set explicitly
  std::size_t output_bytes = limits::output_bytes;
  /// Exit codes and what they mean, e.g. {75: transient}; others: see docs/configuration.md.
  std::map<int, std::string> exit_classes;

  bool operator==(const command_executor&) const = default;
};

/// `executor: {type: script, file: answers.yaml}`: deterministic answers (docs/executors.md).
struct script_executor {
  std::string file; ///< absolute after loading; empty when `answers` are inline
  struct answer {
    std::string output;
    std::string summary;
    milliseconds delay{0};
    std::string fail; ///< a failure class name, or empty for success
    bool operator==(const answer&) const = default;
  };
  /// Used in turn, by (number of earlier runs of this agent) modulo size.
  std::vector<answer> answers;

  bool operator==(const script_executor&) const = default;
};

using executor = std::variant<command_executor, script_executor, chat_executor, agent_cli_executor>;

/// Its `type` in the configuration.
std::string_view name_of(const executor& e) noexcept;

/// One independent check (docs/planning.md, verification).
struct requirement {
  enum class kind_t : std::uint8_t {
    exit_zero,
    artifact,
    tool_action,
    no_question,
    command,
    schema
  };
  kind_t kind = kind_t::exit_zero;
  std::string argument; ///< path of the artifact or schema (relative: to the executor's cwd)
  std::vector<std::string> argv; ///< for `command`

  bool operator==(const requirement&) const = default;
};

struct retry_policy {
  int max_attempts = limits::max_attempts;
  milliseconds base = limits::retry_base; ///< full jitter: uniform in [0, min(cap, base·2ⁿ)]
  milliseconds cap = limits::retry_cap;

  bool operator==(const retry_policy&) const = default;
};

/// `wake:` unchanged → skipped(no_change). Either a command whose output is hashed, or named files.
struct wake_policy {
  std::vector<std::string> argv;
  std::vector<std::string> inputs; ///< files or directories, hashed by content
  milliseconds timeout = 10s;
  /// After repeated no-ops the check itself is made less often: at most this far apart.
  milliseconds max_backoff = 1h;

  bool operator==(const wake_policy&) const = default;
};

/// `senses:` executables whose output goes to {SENSES}.
struct sense {
  std::string name;
  std::vector<std::string> argv;
  std::string cwd;
  milliseconds interval{0}; ///< 0: at every cycle
  milliseconds timeout = 30s;
  std::size_t output_bytes = 16u << 10;

  bool operator==(const sense&) const = default;
};

/// Agents of the same cycle that one waits for.
struct predecessors {
  std::vector<std::string> agents; ///< empty: it waits for nobody
  bool need_success = true;        ///< it is skipped when one of them is not done

  bool operator==(const predecessors&) const = default;
};

struct agent {
  std::string agent_id;
  std::string prompt;
  int priority = 10;
  bool enabled = true;
  executor run = script_executor{};
  int max_concurrent = 1;
  milliseconds timeout = limits::run_timeout;
  milliseconds no_output_timeout{0}; ///< 0: off
  milliseconds cooldown{0};          ///< least time between two dispatches
  retry_policy retry;
  std::optional<schedule> when; ///< an agent may run less often than its kernel
  std::vector<requirement> require;
  std::optional<wake_policy> wake;
  predecessors after;
  context_settings reads;
  std::vector<std::string> tools; ///< names or patterns (mcp__files__*) that a chat may use
  bool mcp_json = false; ///< servers of .mcp.json in its workspace, once a person trusts them
  action_policy policy;
  agent_budget budget;
  sandbox_settings sandbox;         ///< the node's with the agent's own keys over it
  std::string metadata_json = "{}"; ///< kernel metadata with the agent's own keys over it

  bool operator==(const agent&) const = default;
};

/// A recurring pause: from each fire time of `from` for `length`.
struct quiet_hours {
  schedule from;
  milliseconds length{0};
  std::string reason = "quiet hours";

  bool operator==(const quiet_hours&) const = default;
};

/// A model that the kernel asks on its own behalf.
struct adviser {
  std::string provider_id;
  std::string model;                    ///< empty: the provider's
  std::vector<model_fallback> fallback; ///< who is asked when the provider does not serve
  milliseconds timeout = 1min;          ///< of one question, repetitions and fallbacks included
  std::int64_t max_output_tokens = 2000;
  std::string instructions; ///< the operator's, after Boyd's own
  agent_budget budget;      ///< of one question, and of a day; the node's holds besides

  bool operator==(const adviser&) const = default;
};

/// How a cycle decides which agents run (docs/planning.md).
struct planner {
  enum class type_t : std::uint8_t { fixed, llm }; ///< `static`, `llm`
  type_t type = type_t::fixed;
  adviser ask;                    ///< with `llm`
  std::size_t max_dispatches = 5; ///< of one cycle, that a model may choose
  milliseconds cooldown{0};       ///< least time between two questions; the static plan between

  bool operator==(const planner&) const = default;
};

/// Who words the lines of `## recent_actions` (docs/state-and-history.md).
struct reducer {
  enum class type_t : std::uint8_t { rules, llm };
  type_t type = type_t::rules;
  adviser ask; ///< with `llm`

  bool operator==(const reducer&) const = default;
};

/// What a kernel remembers (docs/memory.md).
struct memory_settings {
  std::int64_t budget_tokens = 4000;                  ///< of {MEMORY}
  int warm_days = 30;                                 ///< that daily notes stay in notes/
  std::size_t recall = 5;                             ///< entries that a run is given, at most
  memory::section_caps caps = memory::default_caps(); ///< of SOUL.md and MEMORY.md
  /// Decisions of the memory policy that the node carries out after a cycle, by their names.
  std::vector<std::string> policy_auto;

  bool operator==(const memory_settings&) const = default;
};

/// What becomes of context that proves useful (docs/skills.md).
struct learning_settings {
  std::size_t bank = 5;                 ///< items of the bank that a run is given, at most
  std::size_t skills = 3;               ///< skills whose whole text a run is given, at most
  std::int64_t skill_tokens = 1500;     ///< of these texts together
  std::int64_t bank_item_tokens = 2000; ///< an item of the bank with more is not given
  std::vector<context::item_type> types{context::item_type::file,
                                        context::item_type::directory}; ///< that are banked
  /// A candidate that is better than both becomes a skill by itself.
  struct policy {
    double confidence = 0.9;
    double success_rate = 0.8;

    bool operator==(const policy&) const = default;
  };
  std::optional<policy> approves{}; ///< nothing: a person decides about each
  context::learning_method method = context::learning_method::linear; ///< that ranks items

  bool operator==(const learning_settings&) const = default;
};

struct kernel {
  std::string kernel_id = "default";
  std::string name; ///< for the seeded STATE.md; kernel_id when empty
  schedule when{.expression = "*/10 * * * *"};
  int max_concurrent = 0; ///< permits of this kernel; 0: only the node's
  std::size_t max_cycle_history = limits::max_cycle_history;
  std::size_t recent_actions = limits::recent_actions;
  milliseconds cycle_deadline = limits::longest_cycle;
  bool ends_with_slot = true; ///< a cycle is recorded when the next slot of the schedule is due
  planner plan;
  reducer reduce;
  std::string system_prompt;
  std::string author_name = "boyd";
  std::string author_email = "kernel@boyd.local";
  bool auto_commit = true;
  std::vector<std::string> protected_files; ///< names in its home that agents do not write
  std::string metadata_json = "{}";
  std::vector<quiet_hours> quiet;
  std::string heartbeat_url; ///< called after each cycle; empty: nobody is
  std::vector<sense> senses;
  memory_settings memory;
  learning_settings learning;
  std::vector<agent> agents;

  bool operator==(const kernel&) const = default;
};

/// A fault point armed by configuration (docs/reliability.md).
struct fault {
  std::string point;
  std::string action; ///< crash | error | delay | drop | corrupt
  int count = 1;
  double probability = 1.0;
  milliseconds delay{0};
  std::int64_t after = 0;
  std::int64_t every = 1;
  std::optional<std::uint64_t> seed;

  bool operator==(const fault&) const = default;
};

struct node {
  int max_concurrent = 8;
  /// "sqlite", or a postgres:// URI without its password.
  std::string store = "sqlite";
  std::string store_password_file;
  milliseconds retention = limits::retention;
  milliseconds lease = limits::lease;
  milliseconds lease_renewal = limits::lease_renewal;
  milliseconds drain_grace = limits::drain_grace;
  std::string log_level = "info";
  sandbox_settings sandbox;
  /// Of all agents together, per day; all 0: no limit of its own.
  budget_limit budget_day{.tokens = limits::node_day_tokens, .cost = limits::node_day_cost};
  bool chaos = false; ///< `boyd chaos` may arm faults in this node

  bool operator==(const node&) const = default;
};

/// Who is told that a person is asked (`approvals.notify`).
struct approval_notices {
  std::string webhook;              ///< an address for a POST with JSON; empty: none
  std::vector<std::string> command; ///< gets the same JSON on its standard input; empty: none
  std::string command_cwd;          ///< absolute: the configuration file's folder

  bool operator==(const approval_notices&) const = default;
};

struct configuration {
  int version = 1;
  node node_settings;
  approval_notices notices;
  std::vector<provider> providers;
  std::vector<mcp_server> mcp_servers; ///< by name
  std::vector<kernel> kernels;
  std::vector<fault> faults;

  /// Where it was read from; for messages.
  std::string path;
  /// The effective configuration as YAML with secrets redacted: what INIT.md shows.
  std::string redacted_yaml;
  /// Values that came from ${…} and must be redacted wherever text is written.
  std::vector<std::string> secrets;

  /// The kernel with this id, or null.
  const kernel* find_kernel(const std::string& kernel_id) const noexcept;
};

/// The provider with this id, or null.
const provider* find_provider(const configuration& c, const std::string& provider_id) noexcept;

/// The server of tools with this name, or null.
const mcp_server* find_mcp_server(const configuration& c, std::string_view name) noexcept;

/// The agent with this id, or null.
const agent* find_agent(const kernel& k, const std::string& agent_id) noexcept;

} // namespace boyd::config
