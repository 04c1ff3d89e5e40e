#include "src/config/patterns.hpp"
#include "support/pch.hpp"
#include "unit/config/loading.hpp"

#include <filesystem>

namespace boyd::warnings_test {

using namespace boyd;
using namespace boyd::config;
using namespace boyd::config::testing;

namespace {

/// Warnings of a valid file, by key, as "problem; what to do".
std::map<std::string, std::string> warnings(const std::string& yaml) {
  const auto c = load_text(yaml);
  INFO(yaml << texts(c));
  REQUIRE(c.value.has_value());
  std::map<std::string, std::string> all;
  for (const auto& w : c.warnings) {
    CHECK(w.line > 0);
    all[w.key] = w.problem + "; " + w.expected;
  }
  return all;
}

/// One agent that chats with these keys.
std::string chat(const std::string& keys, const std::string& executor = {},
                 const std::string& kernel = {}, const std::string& top = {}) {
  return "version: 1\n" + top +
         "providers:\n  - {provider_id: local, base_url: 'http://127.0.0.1:1/v1', model: m}\n"
         "  - {provider_id: other, base_url: 'http://127.0.0.1:2/v1', model: m}\n"
         "kernels:\n  - kernel_id: default\n" +
         kernel + "    agents:\n      - agent_id: a\n        prompt: p\n" +
         "        require: [tool_action]\n        executor: {type: chat, provider: local" +
         executor + "}\n" + keys;
}

std::string rules(const std::string& all,
                  const std::string& tools = "[read_file, write_file, run_command]") {
  return chat("        tools: " + tools + "\n        policy: {rules: [" + all + "]}\n");
}

const std::string first_agent = "kernels[0].agents[0].";

} // namespace

TEST_CASE("warnings: a rule that another one above it keeps from being reached", "[config]") {
  const auto dead = first_agent + "policy.rules[1]";
  for (const auto& [first, later] : std::vector<std::pair<std::string, std::string>>{
           {"tool: write_file", "tool: write_file, path: 'secret/**'"},
           {"path: '**'", "tool: read_file, path: 'a/*.md'"},
           {"tool: write_file, path: 'docs/**'", "tool: write_file, path: 'docs/a/**'"},
           {"tool: run_command, command: '**'", "tool: run_command, command: 'rm *'"},
           {"tool: run_command, command: 'make *'", "tool: run_command, command: 'make clean*'"},
           {"tool: '*'", "tool: run_command"}}) {
    for (const auto& [one, other] :
         std::vector<std::pair<std::string, std::string>>{{"allow", "deny"}, {"deny", "allow"}}) {
      const auto found = warnings(rules("{" + first + ", decision: " + one + "}, {" + later +
                                        ", decision: " + other + "}"));
      INFO(first << " above " << later);
      REQUIRE(found.contains(dead));
      CHECK(found.at(dead) ==
            "this rule is never used: rule 1 (" + one +
                ") comes first and matches the same actions; the narrower rule first");
      CHECK(found.size() == 1);
    }
  }
}

TEST_CASE("warnings: a rule that may be reached, or changes nothing, has none", "[config]") {
  for (const auto* both : {"{tool: write_file, path: 'a/*', decision: allow}, "
                           "{tool: write_file, path: 'a/**', decision: deny}",
                           "{tool: write_file, path: 'a/**', decision: allow}, "
                           "{tool: write_file, decision: ask}",
                           "{tool: run_command, command: 'make *', decision: allow}, "
                           "{tool: run_command, command: 'make*', decision: deny}",
                           "{tool: read_file, decision: allow}, {decision: ask}",
                           "{tool: write_file, decision: deny}, "
                           "{tool: write_file, path: b, decision: deny}"}) {
    INFO(both);
    CHECK(warnings(rules(both)).empty());
  }
}

TEST_CASE("warnings: a rule about a tool that the agent does not have", "[config]") {
  const auto key = first_agent + "policy.rules[0].tool";
  CHECK(warnings(rules("{tool: write_file, decision: deny}", "[read_file]")).at(key) ==
        "this rule is never used: the agent does not have this tool; a tool in the agent's "
        "`tools`, or no rule");
  CHECK(warnings(rules("{decision: deny}", "[]")).contains(key));
  CHECK(warnings(rules("{tool: '*', decision: ask}", "[read_file]")).empty());
}

TEST_CASE("warnings: programs that a model drives without a sandbox", "[config]") {
  const auto key = first_agent + "sandbox.mode";
  const std::string commands = "        tools: [run_command]\n";
  const std::string off = "        sandbox: {mode: \"off\"}\n";
  CHECK(warnings(chat(commands + off)).contains(key));
  CHECK(warnings(chat(commands, {}, {}, "node: {sandbox: {mode: \"off\"}}\n")).contains(key));
  CHECK(warnings(chat(commands)).empty());
  CHECK(warnings(chat(commands + "        sandbox: {mode: auto}\n", {}, {},
                      "node: {sandbox: {mode: \"off\"}}\n"))
            .empty());
  // File tools are confined by themselves.
  CHECK(warnings(chat("        tools: [read_file, write_file]\n" + off)).empty());
  const auto cli = [&](const std::string& adapter) {
    return "version: 1\nkernels:\n  - agents:\n      - agent_id: a\n        prompt: p\n"
           "        executor: {type: agent_cli, env_pass: [GEMINI_API_KEY, OPENAI_API_KEY], "
           "adapter: " +
           adapter + "}\n" + off;
  };
  CHECK(warnings(cli("gemini")).contains(key));
  CHECK(warnings(cli("codex")).empty());
  CHECK(warnings(cli("codex, permission: danger-full-access")).contains(key));
}

TEST_CASE("warnings: a model elsewhere that has no price", "[config]") {
  const auto far = [](const std::string& prices, const std::string& executor,
                      const std::string& kernel = {}) {
    return warnings("version: 1\nproviders:\n"
                    "  - {provider_id: local, base_url: 'http://127.0.0.1:1/v1', model: m}\n"
                    "  - {provider_id: far, base_url: 'https://models.example/v1', "
                    "api_key: k0123456789, model: m" +
                    prices + "}\nkernels:\n  - kernel_id: default\n" + kernel +
                    "    agents:\n      - agent_id: a\n        executor: {type: chat, provider: " +
                    executor + "}\n");
  };
  const std::string key = "providers[1].prices";
  CHECK(far({}, "far").at(key) ==
        "no price for m: cost limits do not count it, token limits do; prices with m or "
        "\"*\" (0 if free)");
  CHECK(far({}, "local, fallback: [{provider: far}]").contains(key));
  CHECK(far({}, "local", "    planner: {type: llm, provider: far}\n").contains(key));
  CHECK(far(", prices: {n: {input: 1, output: 1}}", "far").contains(key));
  CHECK(far(", prices: {n: {input: 1, output: 1}}", "far, model: n").empty());
  CHECK(far(", prices: {'*': {input: 0, output: 0}}", "far").empty());
  CHECK(far({}, "local").empty());
}

TEST_CASE("warnings: a limit of the node's cost that an adapter does not know", "[config]") {
  const auto cli = [](const std::string& node, const std::string& adapter) {
    return warnings("version: 1\n" + node +
                    "kernels:\n  - agents:\n      - agent_id: a\n        prompt: p\n"
                    "        executor: {type: agent_cli, env_pass: [ANTHROPIC_API_KEY, "
                    "OPENAI_API_KEY], adapter: " +
                    adapter + "}\n");
  };
  const std::string limit = "node: {budget_day: {cost: 5}}\n";
  CHECK(cli(limit, "codex").contains(first_agent + "executor.adapter"));
  CHECK(cli(limit, "claude").empty());
  CHECK(cli({}, "codex").empty());
}

TEST_CASE("warnings: a limit of 0 is no limit", "[config]") {
  const auto found = warnings(chat("        budget: {run: {tokens: 0}, day: {cost: '0.00'}}\n", {},
                                   "    planner: {type: llm, provider: local, "
                                   "budget_day: {tokens: 0}}\n"));
  CHECK(found.size() == 3);
  CHECK_THAT(found.at(first_agent + "budget.run.tokens"),
             Catch::Matchers::StartsWith("0 removes the limit; it does not forbid usage"));
  CHECK(found.contains(first_agent + "budget.day.cost"));
  CHECK(found.contains("kernels[0].planner.budget_day.tokens"));
  CHECK(warnings(chat("        budget: {run: {tokens: 1, turns: 0}}\n")).empty());
}

TEST_CASE("warnings: a fallback to the model that has not served", "[config]") {
  CHECK(warnings(chat({}, ", fallback: [{provider: local}]"))
            .at(first_agent + "executor.fallback[0]") ==
        "repeats local/m, which has already failed at that point; another model or another "
        "provider");
  CHECK(warnings(chat({}, ", fallback: [{provider: other}, {provider: other, model: m}]"))
            .contains(first_agent + "executor.fallback[1]"));
  CHECK(warnings(chat({}, {},
                      "    reducer: {type: llm, provider: local, model: n, "
                      "fallback: [{provider: local, model: n}]}\n"))
            .contains("kernels[0].reducer.fallback[0]"));
  CHECK(warnings(chat({}, ", fallback: [{provider: other}, {provider: local, model: n}]")).empty());
}

TEST_CASE("warnings: a sandbox around a program that makes its own", "[config]") {
  const auto cli = [](const std::string& agent, const std::string& executor = {},
                      const std::string& node = {}) {
    return warnings(
        "version: 1\n" + node + "kernels:\n  - agents:\n      - agent_id: a\n        prompt: p\n" +
        agent + "        executor: {type: agent_cli, env_pass: [OPENAI_API_KEY], adapter: codex" +
        executor + "}\n");
  };
  const auto key = first_agent + "sandbox";
  const std::string own = "        sandbox: {mode: auto}\n";
  CHECK(cli(own).at(key) ==
        "codex's own sandbox does not work inside Boyd's, so its commands will fail; a permission "
        "that disables its own sandbox (danger-full-access), or no `sandbox` for the agent and a "
        "sandbox mode of the node other than required");
  CHECK(cli("        sandbox: {network: none}\n").contains(key));
  CHECK(cli({}, {}, "node: {sandbox: {mode: required}}\n").contains(key));
  CHECK(cli(own, ", permission: danger-full-access").empty());
  CHECK(cli(own, ", args: [--yolo]").empty());
  CHECK(cli({}).empty());
  CHECK_FALSE(cli("        sandbox: {mode: \"off\"}\n").contains(key));
}

TEST_CASE("warnings: an agent CLI that is passed no credentials", "[config]") {
  const auto cli = [](const std::string& executor, const std::string& top = {}) {
    return warnings("version: 1\n" + top +
                    "kernels:\n  - agents:\n      - agent_id: a\n        prompt: p\n"
                    "        executor: {type: agent_cli, adapter: " +
                    executor + "}\n");
  };
  const auto key = first_agent + "executor.env_pass";
  for (const std::string adapter : {"claude", "codex", "gemini", "opencode"}) {
    INFO(adapter);
    CHECK(cli(adapter).contains(key));
  }
  CHECK(cli("claude").at(key) ==
        "claude gets no credentials (for example ANTHROPIC_API_KEY); env_pass: "
        "[ANTHROPIC_API_KEY]; ignore this if this user has logged in with the program");
  CHECK(cli("claude, env_pass: [PATH, CLAUDE_CODE_OAUTH_TOKEN]").empty());
  CHECK(cli("claude, env: {ANTHROPIC_AUTH_TOKEN: x}").empty());
  CHECK(cli("claude, env_pass: [OPENAI_API_KEY]").contains(key));
  CHECK(cli("mine", "adapters: [{name: mine, argv: [x], parser: text}]\n").empty());
}

TEST_CASE("warnings: tools of servers that no rule is about", "[config]") {
  const auto tools = [](const std::string& names, const std::string& policy = {}) {
    return warnings(chat("        tools: [" + names + "]\n" + policy, {}, {},
                         "mcpServers: {files: {command: x}, docs: {command: y}}\n"));
  };
  const auto key = first_agent + "tools[1]";
  const auto rule = [](const std::string& tool) {
    return "        policy: {rules: [{tool: '" + tool + "', decision: allow}]}\n";
  };
  CHECK(tools("read_file, 'mcp__files__*'").at(key) ==
        "no rule of the agent's policy covers mcp__files__*, so every call is denied; policy: "
        "{rules: [{tool: \"mcp__files__*\", decision: ask}]}, or allow");
  CHECK(tools("'mcp__docs__x', mcp__files__read", rule("mcp__docs__*")).contains(key));
  CHECK(tools("read_file, 'mcp__files__*'", rule("mcp__files__read")).empty());
  CHECK(tools("read_file, 'mcp__files__*'", rule("*")).empty());
}

TEST_CASE("warnings: an agent that is to change something and is believed", "[config]") {
  const auto agent = [](const std::string& tools, const std::string& require) {
    return warnings(
        "version: 1\nproviders: [{provider_id: local, base_url: 'http://127.0.0.1:1/v1', "
        "model: m}]\nkernels:\n  - agents:\n      - agent_id: a\n        prompt: p\n"
        "        executor: {type: chat, provider: local}\n        tools: [" +
        tools + "]\n" + require);
  };
  const auto key = first_agent + "require";
  CHECK(agent("read_file, write_file", {}).at(key) ==
        "the agent has write_file, but a run succeeds even if it changes nothing; require: "
        "[tool_action], or a check of the result (artifact, command)");
  CHECK(agent("run_command", "        require: [no_question, exit_zero]\n").contains(key));
  CHECK(agent("write_file", "        require: [tool_action]\n").empty());
  CHECK(agent("write_file", "        require: [{artifact: x.txt}]\n").empty());
  CHECK(agent("write_file", "        require: ['artifact x.txt']\n").empty());
  CHECK(agent("write_file", "        require: [{command: [test, -e, x]}]\n").empty());
  CHECK(agent("read_file, list_dir", {}).empty());
}

TEST_CASE("warnings: an agent that is due more often than its kernel has cycles", "[config]") {
  const auto both = [](const std::string& kernel, const std::string& agent) {
    return warnings("version: 1\nkernels:\n  - kernel_id: team\n" +
                    (kernel.empty() ? "" : "    schedule: " + kernel + "\n") +
                    "    agents:\n      - agent_id: c\n        schedule: " + agent +
                    "\n        executor: {type: command, argv: [date]}\n");
  };
  const auto key = first_agent + "schedule";
  const std::string lost =
      "kernel team runs cycles only at \"*/10 * * * *\", so c runs every 10m at most; "
      "schedule: \"*/5 * * * *\" at the kernel, in line ";
  CHECK(both("'*/10 * * * *'", "'*/5 * * * *'").at(key) == lost + "4");
  // The standard schedule of kernels is the one of the schema.
  CHECK(both("", "'*/5 * * * *'").at(key) == lost + "3");
  CHECK(load_text(default_yaml()).value->kernels.at(0).when.expression == "*/10 * * * *");
  for (const auto& [kernel, agent] :
       std::vector<std::pair<std::string, std::string>>{{"'@every 1m'", "'@every 30s'"},
                                                        {"'* * * * *'", "'@every 30s'"},
                                                        {"'@daily'", "'0 9,18 * * *'"},
                                                        {"'0 7 * * mon'", "'0 7 * * mon-fri'"},
                                                        {"'*/10 * * * *'", "'*/5 8 * * *'"},
                                                        {"{at: 2026-12-01T09:00}", "'@yearly'"}}) {
    INFO(kernel << " and " << agent);
    CHECK(both(kernel, agent).contains(key));
  }
  for (const auto& [kernel, agent] : std::vector<std::pair<std::string, std::string>>{
           {"'*/10 * * * *'", "'*/10 * * * *'"},
           {"'*/10 * * * *'", "'5 * * * *'"},
           {"'*/10 9-17 * * *'", "'@hourly'"},
           {"'@hourly'", "'@every 60m'"},
           {"'@every 30s'", "'* * * * *'"},
           {"'0 0 1 1 *'", "'0 0 29 2 *'"},
           {"'@yearly'", "{at: 2026-12-01T09:00}"},
           {"{at: 2026-12-01T08:00}", "{at: 2026-12-01T09:00}"}}) {
    INFO(kernel << " and " << agent);
    CHECK(both(kernel, agent).empty());
  }
}

TEST_CASE("warnings: what Boyd itself writes has none", "[config]") {
  CHECK(load_text(default_yaml()).warnings.empty());
}

TEST_CASE("patterns: one covers another, or may meet it, and in doubt neither is said",
          "[config]") {
  pattern_comparer c(1'000'000);
  CHECK(c.covers("a/**", "a/b/*.md", pattern_text::path));
  CHECK(c.covers("**/*.md", "a/b*.md", pattern_text::path));
  CHECK(c.covers("a?c", "a?c", pattern_text::path));
  CHECK(c.covers("a?c", "abc", pattern_text::path));
  CHECK_FALSE(c.covers("a/*", "a/b/c", pattern_text::path));
  CHECK_FALSE(c.covers("a/*", "a/**", pattern_text::path));
  CHECK_FALSE(c.covers("a?c", "a*c", pattern_text::path));
  CHECK_FALSE(c.covers("abc", "ab", pattern_text::path));
  CHECK(c.covers("a *", "a b/c *", pattern_text::plain));
  CHECK(c.covers("mcp__*__*", "mcp__files__read_*", pattern_text::plain));
  CHECK(c.may_meet("mcp__*__*", "mcp__files__*"));
  CHECK(c.may_meet("*", "x"));
  CHECK(c.may_meet("a*b", "*c*b"));
  CHECK_FALSE(c.may_meet("mcp__*__*", "read_file"));
  CHECK_FALSE(c.may_meet("a*b", "a*c"));
  pattern_comparer tired(1);
  CHECK_FALSE(tired.covers("**x", "abcdefg", pattern_text::path));
  CHECK(tired.may_meet("a", "b"));
}

} // namespace boyd::warnings_test
