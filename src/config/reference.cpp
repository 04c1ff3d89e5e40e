#include "boyd/config/load.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <array>
#include <utility>

namespace boyd::config {
namespace {

/// The sections in reading order: definition in the schema, heading.
constexpr auto sections = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"node", "node"},
    {"node_sandbox", "node.sandbox"},
    {"node_budget", "node.budget_day"},
    {"approvals", "approvals"},
    {"approval_notices", "approvals.notify"},
    {"provider", "providers[]"},
    {"price", "providers[].prices"},
    {"capabilities", "providers[].capabilities"},
    {"mcp_server", "mcpServers.NAME"},
    {"kernel", "kernels[]"},
    {"planner", "kernels[].planner"},
    {"reducer", "kernels[].reducer"},
    {"question_budget", "planner.budget_day, reducer.budget_day"},
    {"quiet_hours", "kernels[].quiet_hours[]"},
    {"sense", "kernels[].senses[]"},
    {"memory", "kernels[].memory"},
    {"memory_policy", "kernels[].memory.policy"},
    {"learning", "kernels[].learning"},
    {"skill_policy", "kernels[].learning.approve_when"},
    {"memory_cap", "kernels[].memory.caps[]"},
    {"agent", "kernels[].agents[]"},
    {"context", "context"},
    {"context_item", "context.items[]"},
    {"executor", "executor"},
    {"command_executor", "executor: {type: command}"},
    {"script_executor", "executor: {type: script}"},
    {"answer", "executor: {type: script} answers[]"},
    {"chat_executor", "executor: {type: chat}"},
    {"fallback", "fallback[] of executor: {type: chat}, planner, reducer"},
    {"agent_cli_executor", "executor: {type: agent_cli}"},
    {"worktree", "executor: {type: agent_cli} worktree"},
    {"adapter", "adapters[]"},
    {"adapter_line", "adapters[].stderr[]"},
    {"adapter_event", "adapters[].events[]"},
    {"adapter_usage", "adapters[].events[].usage"},
    {"adapter_tool", "adapters[].events[].tool"},
    {"policy", "policy"},
    {"policy_rule", "policy.rules[]"},
    {"sandbox", "sandbox"},
    {"approval_terms", "policy.approval"},
    {"budget", "budget"},
    {"run_budget", "budget.run"},
    {"day_budget", "budget.day"},
    {"retry", "retry"},
    {"requirement", "require[]"},
    {"wake", "wake"},
    {"after", "after"},
    {"fault", "faults[]"},
    {"improve_cycle", "executor: {type: improve}"},
    {"improve", "improve"},
    {"improve_scanner", "improve.scanners[]"},
    {"improve_hygiene", "improve.hygiene"},
    {"improve_executor", "improve.executor"},
});

/// A table cell: a bar would end it, and its text is one line.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') {
      out += "\\|";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string code(const schema_json_t& value) {
  const auto text = value.is_string() && !value.get<std::string>().empty()
                        ? value.get<std::string>()
                        : value.dump();
  return "`" + cell(text) + "`";
}

void add_rows(std::string& out, const schema_json_t& map) {
  const auto required = map.value("required", schema_json_t::array());
  const auto is_required = [&](const std::string& key) {
    for (const auto& name : required) {
      if (name == key) {
        return true;
      }
    }
    return false;
  };
  out += "| key | value | default | meaning | example |\n|---|---|---|---|---|\n";
  for (const auto& [key, given] : map.at("properties").items()) {
    const auto& rule = *applicable(given, tree{}).front();
    out += "| `" + key + "` | " + cell(describe(given)) + " | ";
    out += is_required(key)           ? "required"
           : rule.contains("default") ? code(rule.at("default"))
                                      : "–";
    out += " | " + cell(rule.value("description", std::string())) + " | ";
    out += rule.contains("examples") ? code(rule.at("examples").front()) : "";
    out += " |\n";
  }
}

constexpr std::string_view introduction =
    "# Configuration reference\n"
    "\n"
    "Generated from `config/boyd.schema.json`; do not edit. To generate it again:\n"
    "\n"
    "```sh\n"
    "boyd config schema --markdown > docs/configuration.md\n"
    "```\n"
    "\n"
    "The configuration is one YAML file, `boyd.yaml`. Boyd checks all of it before anything "
    "starts, and reports all errors\n"
    "at once, with file, line, column, key, what was expected and the nearest valid key. Unknown "
    "keys are errors.\n"
    "\n"
    "**Warnings** of `boyd config validate` (on stderr, and under `warnings` with `--json`) "
    "leave the file valid and the\n"
    "exit code 0. They name settings that are probably mistakes:\n"
    "\n"
    "* a rule of a `policy` that can never apply, because another decision above it comes first, "
    "or because the agent does\n"
    "  not have its tools\n"
    "* programs driven by a model with the sandbox `off`\n"
    "* a limit of `0` tokens or dollars that removes a default limit\n"
    "* a `fallback` to the model that has just failed\n"
    "* Boyd's sandbox around a program that makes its own\n"
    "* an agent CLI that gets no credentials\n"
    "* tools of tool servers that no rule covers\n"
    "* a chat that may write or run programs but proves nothing (`require: [tool_action]`)\n"
    "\n"
    "**Environment.** `${VAR}` is replaced in values; an unset variable is an error. "
    "`${VAR:-default}` gives a default for\n"
    "an unset or empty one. `$${` is a literal `${`. Replacement happens after the file was "
    "parsed, so a value cannot add\n"
    "keys.\n"
    "\n"
    "**Redaction.** Values of variables and keys whose names contain KEY, TOKEN, SECRET, "
    "PASSWORD, PASS or CREDENTIAL are\n"
    "redacted in what Boyd writes and shows, if they have at least 4 characters. Only the "
    "database keeps prompts and\n"
    "metadata unredacted, because they must run again ([operations](operations.md#security)).\n"
    "\n"
    "**Durations** are `250ms`, `30s`, `10m`, `1h30m`, `7d`, or `0`. **Sizes** are `4096`, "
    "`64KiB`, `1MiB`, `1GiB`.\n"
    "**Money** is in US dollars, `2.50` or `\"2.50\"`, read exactly, with at most six digits "
    "after the point. **Relative\n"
    "paths** start at the folder of the configuration file.\n"
    "\n"
    "**Schedules** have five fields: minute, hour, day of month, month, weekday (0 and 7 are "
    "Sunday). Each is `*`, a\n"
    "number, a name (`jan`, `mon`), a range `a-b`, a step `*/n` or a list `a,b`. If both day "
    "fields are restricted, one\n"
    "match is enough. `@hourly @daily @midnight @weekly @monthly @yearly @annually` and `@every "
    "30s` (at least 1s) work\n"
    "too. `{at: 2026-12-01T09:00}` is one time, in the zone `tz` (or `…T09:00:00Z`). If the node "
    "was "
    "down at that time,\n"
    "a kernel follows `misfire`, and an agent runs in the next cycle.\n"
    "\n"
    "**Limits.** At most 1 MiB, 64 levels and 100000 values (aliases counted in full); one "
    "document; no duplicate keys; no\n"
    "tabs as indentation; UTF-8 without a byte order mark.\n"
    "\n";

constexpr std::string_view presets_introduction =
    "\n"
    "**Presets** supply what is not given. The key's variable is used automatically only if "
    "`base_url` is the preset's own;\n"
    "`boyd config show` shows the key, redacted. What a preset cannot do is `false` in "
    "`capabilities`.\n"
    "\n";

} // namespace

std::string reference_markdown() {
  std::string out(introduction);
  out += "## The file\n\n";
  add_rows(out, schema_root());
  for (const auto& [name, heading] : sections) {
    const auto& rule = schema_root().at("definitions").at(std::string(name));
    out +=
        "\n## " + std::string(heading) + "\n\n" + rule.value("description", std::string()) + "\n\n";
    add_rows(out, rule);
    if (name == "provider") {
      out += presets_introduction;
      out += presets_markdown();
    }
  }
  return out;
}

} // namespace boyd::config
