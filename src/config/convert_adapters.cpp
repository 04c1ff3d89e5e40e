#include "adapters.hpp"
#include "reading.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace boyd::config {
namespace {

event_condition condition_of(const std::string& at, const tree& value) {
  event_condition out;
  out.at = at;
  if (value.kind == tree::kind_t::map)
    out.part = value.items.front().text;
  else if (value.kind == tree::kind_t::sequence)
    for (const auto& item : value.items)
      out.values.push_back(json_of(item, {}).dump());
  else
    out.values.push_back(json_of(value, {}).dump());
  return out;
}

std::vector<std::pair<std::string, std::string>> pairs_of(const tree& t) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < t.items.size(); ++i)
    out.emplace_back(t.keys[i].text, t.items[i].text);
  return out;
}

std::vector<event_condition> conditions_of(const tree& t) {
  std::vector<event_condition> out;
  for (std::size_t i = 0; i < t.items.size(); ++i)
    out.push_back(condition_of(t.keys[i].text, t.items[i]));
  return out;
}

adapter_tool tool_of(const tree& t) {
  adapter_tool out;
  out.at = text(t, "at");
  out.when = conditions_of(get(t, "when"));
  out.failed = conditions_of(get(t, "failed"));
  out.called = text(t, "called");
  out.id = texts(t, "id");
  out.name = texts(t, "name");
  out.path = texts(t, "path");
  out.command = texts(t, "command");
  out.url = texts(t, "url");
  out.result = texts(t, "result");
  return out;
}

adapter_event event_of(const tree& t) {
  adapter_event out;
  out.when = conditions_of(get(t, "when"));
  out.progress = flag(t, "progress");
  out.final = flag(t, "final");
  out.failed = flag(t, "failed");
  out.failure = text(t, "failure");
  out.error = texts(t, "error");
  out.text = texts(t, "text");
  out.append = text(t, "join") == "append";
  out.clears_text = flag(t, "clears_text");
  out.session = texts(t, "session");
  out.model = texts(t, "model");
  out.cost = texts(t, "cost");
  out.turns = texts(t, "turns");
  const auto& usage = get(t, "usage");
  out.input = texts(usage, "input");
  out.cached = texts(usage, "cached");
  out.output = texts(usage, "output");
  out.reasoning = texts(usage, "reasoning");
  out.add = flag(t, "add");
  out.denials = texts(t, "denials");
  out.denial = text(t, "denial");
  out.facts = pairs_of(get(t, "facts"));
  if (const auto* tool = t.find("tool"))
    out.tool = tool_of(*tool);
  return out;
}

} // namespace

cli_adapter adapter_of(const tree& t) {
  using stdin_t = cli_adapter::stdin_t;
  using parser_t = cli_adapter::parser_t;
  using sessions_t = cli_adapter::sessions_t;
  static constexpr std::array<std::pair<std::string_view, stdin_t>, 3> inputs{
      {{"prompt", stdin_t::prompt},
       {"none", stdin_t::none},
       {"stream-json", stdin_t::stream_json}}};
  static constexpr std::array<std::pair<std::string_view, parser_t>, 3> parsers{
      {{"jsonl", parser_t::jsonl}, {"json", parser_t::json}, {"text", parser_t::text}}};
  static constexpr std::array<std::pair<std::string_view, sessions_t>, 3> sessions{
      {{"none", sessions_t::none},
       {"directory", sessions_t::directory},
       {"anywhere", sessions_t::anywhere}}};
  cli_adapter out;
  out.name = text(t, "name");
  out.tested_versions = texts(t, "tested_versions");
  for (const auto& item : get(t, "argv").items) {
    argument_group group;
    if (item.kind == tree::kind_t::scalar)
      group.push_back(item.text);
    for (const auto& part : item.items)
      group.push_back(part.text);
    out.argv.push_back(std::move(group));
  }
  out.input = choice(t, "stdin", inputs);
  out.input_json = text(t, "stdin_json");
  out.parser = choice(t, "parser", parsers);
  out.sessions = choice(t, "sessions", sessions);
  out.permissions = texts(t, "permissions");
  out.permission = text(t, "permission");
  out.env = pairs_of(get(t, "env"));
  out.writable = texts(t, "writable");
  out.readable = texts(t, "readable");
  out.own_sandbox = text(t, "sandbox") == "own";
  out.read_only = texts(t, "read_only");
  out.startup_timeout = duration(t, "startup_timeout");
  const auto& codes = get(t, "exit_codes");
  for (std::size_t i = 0; i < codes.items.size(); ++i)
    out.exit_codes.emplace(std::stoi(codes.keys[i].text), codes.items[i].text);
  for (const auto& item : get(t, "stderr").items)
    out.stderr_denials.push_back({text(item, "contains"), text(item, "denial")});
  for (const auto& item : get(t, "events").items)
    out.events.push_back(event_of(item));
  return out;
}

bool brings_own_sandbox(const pass& p, const tree& root, const tree& t) {
  const auto* adapter = adapter_of_executor(p, root, t);
  if (adapter == nullptr || text(*adapter, "sandbox") != "own")
    return false;
  auto words = texts(t, "args");
  words.push_back(text(t, "permission"));
  words.push_back(text(*adapter, "permission"));
  return std::ranges::none_of(texts(*adapter, "unconfined"), [&](const std::string& leaves) {
    return std::ranges::any_of(
        words, [&](const std::string& word) { return word.find(leaves) != std::string::npos; });
  });
}

agent_cli_executor improve_executor_of(const pass& p, const tree& root, const tree& t) {
  agent_cli_executor out;
  if (const auto* adapter = adapter_of_executor(p, root, t))
    out.adapter = adapter_of(*adapter);
  out.cwd = resolve(p.path, text(t, "repo"));
  const auto* part = root.find("improve");
  const auto settings = !text(t, "settings").empty()        ? resolve(p.path, text(t, "settings"))
                        : part != nullptr && !part->assumed ? p.path
                                                            : std::string();
  if (!settings.empty())
    out.args.push_back("--config=" + settings);
  for (const auto* word : {"improve", "--unattended"})
    out.args.emplace_back(word);
  out.args.push_back("--repo=" + out.cwd);
  for (const auto& [key, option] :
       {std::pair("apply", "--apply"), {"auto_commit", "--auto-commit"}, {"approve", "--approve"}})
    if (flag(t, key))
      out.args.emplace_back(option);
  out.env_pass = texts(t, "env_pass");
  out.env = pairs_of(get(t, "env"));
  out.output_bytes = size(t, "output_bytes");
  return out;
}

agent_cli_executor agent_cli_executor_of(const pass& p, const tree& root, const tree& t) {
  agent_cli_executor out;
  const auto name = text(t, "adapter");
  if (const auto* own = inline_adapter(root, name))
    out.adapter = adapter_of(*own);
  else if (const auto found = p.adapters.find(name); found != p.adapters.end())
    out.adapter = adapter_of(found->second);
  out.program = text(t, "program");
  out.model = text(t, "model");
  out.permission = text(t, "permission");
  out.args = texts(t, "args");
  out.resume = text(t, "resume") == "agent";
  out.denials_fail = text(t, "denials") != "report";
  if (const auto* worktree = t.find("worktree"))
    out.worktree =
        worktree_settings{resolve(p.path, text(*worktree, "repo")), text(*worktree, "base"),
                          texts(*worktree, "setup"), duration(*worktree, "setup_timeout")};
  if (t.find("startup_timeout") != nullptr)
    out.startup_timeout = duration(t, "startup_timeout");
  out.cwd = resolve(p.path, text(t, "cwd"));
  out.env_pass = texts(t, "env_pass");
  out.env = pairs_of(get(t, "env"));
  out.output_bytes = size(t, "output_bytes");
  return out;
}

} // namespace boyd::config
