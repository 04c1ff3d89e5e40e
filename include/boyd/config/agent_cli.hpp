#pragma once

#include "boyd/core/limits.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Agents with a command line of their own (claude, codex, …) as values of the configuration. How
/// one is called and what its output means is data: config/adapters/*.yaml, docs/agent-clis.md.
namespace boyd::config {

/// A place in a JSON value (RFC 6901), checked.
using json_place = std::string;

/// Holds for a value that has, at `at`, one of `values`, or, when there are none, a text that
/// contains `part`.
struct event_condition {
  json_place at;
  std::vector<std::string> values; ///< scalars as JSON texts: `"result"`, `true`, `429`
  std::string part;

  bool operator==(const event_condition&) const = default;
};

/// How an event tells of the tools that the program used. The places are inside of each.
struct adapter_tool {
  json_place at;                       ///< of one, or of a list; empty: the event
  std::vector<event_condition> when;   ///< all hold for a use of a tool
  std::vector<event_condition> failed; ///< one holds: it failed, or was denied
  std::string called;                  ///< the tool's name, where none is told
  std::vector<json_place> id;          ///< what is told of the same one belongs together
  std::vector<json_place> name;
  std::vector<json_place> path; ///< a file or directory, or a list of them
  std::vector<json_place> command;
  std::vector<json_place> url;
  std::vector<json_place> result; ///< a text, or a list of blocks with texts

  bool operator==(const adapter_tool&) const = default;
};

/// What one kind of event means. Of several places the first that is there counts; the numbers of
/// tokens at several places are added up.
struct adapter_event {
  std::vector<event_condition> when; ///< all hold; empty: every event
  bool progress = true;
  bool final = false;
  bool failed = false;
  std::string failure; ///< the failure class of a failed run; empty: not said
  std::vector<json_place> error;
  std::vector<json_place> text;
  bool append = false; ///< the text goes on with the one before
  bool clears_text = false;
  std::vector<json_place> session;
  std::vector<json_place> model;
  std::vector<json_place> cost; ///< in US dollars
  std::vector<json_place> turns;
  std::vector<json_place> input; ///< tokens, cached ones included
  std::vector<json_place> cached;
  std::vector<json_place> output;
  std::vector<json_place> reasoning;
  bool add = false; ///< numbers are added to those before; else they replace them
  std::vector<json_place> denials;
  json_place denial;                                     ///< inside each of `denials`
  std::vector<std::pair<std::string, json_place>> facts; ///< by name, for the log of facts
  std::optional<adapter_tool> tool;

  bool operator==(const adapter_event&) const = default;
};

/// A line of the standard error that says that something was denied.
struct denial_line {
  std::string contains;
  std::string denial; ///< its name

  bool operator==(const denial_line&) const = default;
};

/// An argument, or several that go together: left out whole when a placeholder in it is empty.
using argument_group = std::vector<std::string>;

struct cli_adapter {
  enum class stdin_t : std::uint8_t { prompt, none, stream_json };
  enum class parser_t : std::uint8_t { jsonl, json, text };
  /// Where a session of the program can be gone on with.
  enum class sessions_t : std::uint8_t { none, directory, anywhere };

  std::string name;
  std::vector<std::string> tested_versions;
  std::vector<argument_group> argv;
  stdin_t input = stdin_t::prompt;
  std::string input_json; ///< for stream_json: each string `{prompt}` becomes the prompt
  parser_t parser = parser_t::jsonl;
  sessions_t sessions = sessions_t::none;
  std::vector<std::string> permissions; ///< what the program knows; empty: nothing
  std::string permission;               ///< for executors that give none
  std::vector<std::pair<std::string, std::string>> env;
  /// What the program needs in a sandbox besides its directory; `~/` is the home directory.
  std::vector<std::string> writable;
  std::vector<std::string> readable;
  bool own_sandbox = false;           ///< it confines its commands itself
  std::vector<std::string> read_only; ///< permissions with which it writes nothing
  milliseconds startup_timeout{0};    ///< 0: off
  std::map<int, std::string> exit_codes;
  std::vector<denial_line> stderr_denials;
  std::vector<adapter_event> events;

  bool operator==(const cli_adapter&) const = default;
};

/// Each run in a git worktree of its own.
struct worktree_settings {
  std::string repo; ///< absolute after loading
  std::string base = "HEAD";
  std::vector<std::string> setup{}; ///< runs in it before the agent does; empty: nothing
  milliseconds setup_timeout = 10min;

  bool operator==(const worktree_settings&) const = default;
};

/// `executor: {type: agent_cli, …}`.
struct agent_cli_executor {
  cli_adapter adapter;
  std::string program; ///< instead of the adapter's; may be empty
  std::string model;
  std::string permission; ///< empty: the adapter's
  std::vector<std::string> args;
  bool resume = false; ///< go on with the session of the agent's run before, on this machine
  bool denials_fail = true;
  std::optional<worktree_settings> worktree;
  std::optional<milliseconds> startup_timeout; ///< instead of the adapter's
  std::string cwd;                             ///< absolute after loading; empty: the kernel's home
  std::vector<std::string> env_pass;
  std::vector<std::pair<std::string, std::string>> env;
  std::size_t output_bytes = limits::output_bytes;

  bool operator==(const agent_cli_executor&) const = default;
};

} // namespace boyd::config
