#pragma once

#include "boyd/core/boxed.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace boyd {

/// Nothing: not counted.
using usage_figure = std::optional<std::int64_t>;

/// What confined the programs of a run.
struct sandbox_report {
  std::string mode;                   ///< landlock, bwrap, limits or off
  usage_figure abi{};                 ///< of Landlock
  std::vector<std::string> lacking{}; ///< what was asked for and is not enforced, and why
  std::optional<bool> in_force{};     ///< false: no program of the run began

  bool operator==(const sandbox_report&) const = default;
};

/// What a run changed in its worktree.
struct worktree_report {
  usage_figure files{};
  usage_figure added{};   ///< lines
  usage_figure removed{}; ///< lines
  bool cut = false;       ///< the patch is not whole
  bool commits = false;   ///< the run made some
  usage_figure moved{};   ///< references

  bool operator==(const worktree_report&) const = default;
};

/// One item that a run was given to read.
struct read_item {
  std::string id;
  std::string path;
  std::string type;    ///< context::item_type
  std::string from;    ///< context::origin
  std::string as;      ///< full or summary
  std::string section; ///< high, medium or low
  std::string hash;    ///< of its content, SHA-256
  usage_figure tokens{};
  bool cited = false;
  bool used = false;   ///< whatever was cited
  bool frozen = false; ///< never banked or promoted by rules
  std::string scope{}; ///< that its path begins at; empty: not told

  bool operator==(const read_item&) const = default;
};

/// What a run read, and what became of the citation contract (docs/context.md).
struct reading_report {
  std::vector<read_item> items{};
  std::optional<double> accuracy{}; ///< 0 to 1
  bool enforced = false;            ///< the contract
  bool weak = false;                ///< the run earns nothing
  std::string question{};           ///< for which entries of memory were found; empty: none were

  bool operator==(const reading_report&) const = default;
};

/// What an agent's own program tells for the log of facts.
struct told_fact {
  std::string name;
  std::string value;

  bool operator==(const told_fact&) const = default;
};

/// What an attempt used, and what it was given. The figures from `calls` to `cost_microusd` are of
/// a conversation, or of what an agent's own program tells of its own.
struct run_usage {
  std::string provider{}; ///< of the last call; of an agent's own program its adapter
  std::string model{};
  usage_figure calls{}, turns{}, tool_calls{}, denied{}; ///< requests, answers, calls of tools
  usage_figure input_tokens{}, cached_tokens{};          ///< cached ones are part of the input
  usage_figure output_tokens{}, reasoning_tokens{};      ///< reasoning is part of the output
  usage_figure cost_microusd{};
  std::string context{};         ///< exec::context_level; empty: all of it
  bool too_long = false;         ///< a shorter context may help
  usage_figure retry_after_ms{}; ///< for how long its provider, or program, wants to be left alone
  std::string session_id{};      ///< of an agent's own program, in the program's words
  usage_figure events{};         ///< of such a program
  std::vector<std::string> denials{};                           ///< names of what was denied
  usage_figure no_json_lines{}, too_long_lines{}, cut_events{}; ///< nothing for none
  std::string ended{}; ///< how it ended badly after its work was done
  usage_figure wall_ms{}, user_ms{}, system_ms{}, max_rss_kb{}, output_bytes{};
  boxed<worktree_report> worktree{};
  boxed<sandbox_report> sandbox{};
  boxed<reading_report> reading{};   ///< of a run with context
  std::vector<std::string> skills{}; ///< approved ones that the answer declares, by name
  std::vector<told_fact> told{};

  bool operator==(const run_usage&) const = default;
};

/// Calls `f(key, member)` for each member, with its name in JSON.
template <class Report, class F>
void each_member(Report& u, F f) {
  using type = std::remove_const_t<Report>;
  if constexpr (std::is_same_v<type, read_item>) {
    f("as", u.as), f("cited", u.cited), f("from", u.from), f("frozen", u.frozen);
    f("hash", u.hash), f("id", u.id), f("path", u.path), f("scope", u.scope);
    f("section", u.section);
    f("tokens", u.tokens), f("type", u.type), f("used", u.used);
  } else if constexpr (std::is_same_v<type, reading_report>) {
    f("accuracy", u.accuracy), f("enforced", u.enforced), f("items", u.items);
    f("question", u.question), f("weak", u.weak);
  } else if constexpr (std::is_same_v<type, told_fact>) {
    f("name", u.name), f("value", u.value);
  } else if constexpr (std::is_same_v<type, sandbox_report>) {
    f("abi", u.abi), f("in_force", u.in_force), f("mode", u.mode), f("not_enforced", u.lacking);
  } else if constexpr (std::is_same_v<type, worktree_report>) {
    f("added", u.added), f("commits", u.commits), f("cut", u.cut), f("files", u.files);
    f("moved", u.moved), f("removed", u.removed);
  } else {
    f("cached_tokens", u.cached_tokens), f("calls", u.calls), f("context", u.context);
    f("cost_microusd", u.cost_microusd), f("cut_events", u.cut_events), f("denials", u.denials);
    f("denied", u.denied), f("ended", u.ended), f("events", u.events);
    f("input_tokens", u.input_tokens), f("max_rss_kb", u.max_rss_kb), f("model", u.model);
    f("no_json_lines", u.no_json_lines), f("output_bytes", u.output_bytes);
    f("output_tokens", u.output_tokens), f("provider", u.provider);
    f("reading", u.reading), f("reasoning_tokens", u.reasoning_tokens);
    f("retry_after_ms", u.retry_after_ms), f("sandbox", u.sandbox), f("session_id", u.session_id),
        f("skills", u.skills), f("system_ms", u.system_ms);
    f("too_long", u.too_long), f("too_long_lines", u.too_long_lines);
    f("tool_calls", u.tool_calls), f("turns", u.turns), f("user_ms", u.user_ms);
    f("told", u.told), f("wall_ms", u.wall_ms), f("worktree", u.worktree);
  }
}

/// Calls `f(text)` for each text that may come from outside.
template <class F>
void each_text(run_usage& u, F f) {
  for (auto* text : {&u.provider, &u.model, &u.session_id, &u.context, &u.ended})
    f(*text);
  for (auto& name : u.denials)
    f(name);
  for (auto& fact : u.told)
    f(fact.value);
  if (u.sandbox)
    for (auto& what : u.sandbox->lacking)
      f(what);
  if (u.reading)
    f(u.reading->question);
  if (u.reading)
    for (auto& item : u.reading->items)
      f(item.path);
}

} // namespace boyd
