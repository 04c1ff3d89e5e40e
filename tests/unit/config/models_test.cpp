#include "boyd/config/redact.hpp"
#include "loading.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

namespace boyd::models_test {

using namespace boyd;
using namespace boyd::config;
using namespace boyd::config::testing;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// A valid file with this provider and a chat agent whose executor has `executor` more and which
/// itself has `lines` more (each indented by eight spaces).
std::string chat_with(const std::string& provider, const std::string& executor = {},
                      const std::string& lines = {}) {
  return "version: 1\nproviders:\n  - {provider_id: p, " + provider +
         "}\nkernels:\n  - agents:\n      - agent_id: a\n        executor: {type: chat, provider: "
         "p" +
         (executor.empty() ? "" : ", " + executor) + "}\n" + lines;
}

constexpr auto local = "preset: ollama, model: m";

configuration good(const std::string& text, const variables& environment = {}) {
  auto result = load_text(text, environment);
  INFO(texts(result));
  REQUIRE(result.value.has_value());
  return std::move(*result.value);
}

finding bad(const std::string& text, const std::string& key, const variables& environment = {}) {
  const auto result = load_text(text, environment);
  INFO(texts(result));
  INFO(key);
  CHECK_FALSE(result.value.has_value());
  const auto* found = about(result, key);
  REQUIRE(found != nullptr);
  CHECK(found->line > 0);
  CHECK_FALSE((found->expected.empty() && found->nearest.empty()));
  return *found;
}

const chat_executor& chat_of(const configuration& c) {
  return std::get<chat_executor>(c.kernels.at(0).agents.at(0).run);
}

constexpr std::string_view p0 = "providers[0].";
constexpr std::string_view a0 = "kernels[0].agents[0].";

std::string key(std::string_view before, const std::string& rest) {
  return std::string(before) + rest;
}

} // namespace

TEST_CASE("models: the schema's defaults are those of the values", "[config]") {
  const auto c = good(chat_with("base_url: 'http://localhost:1/v1', model: m"));
  provider p;
  p.provider_id = "p";
  p.base_url = "http://localhost:1/v1";
  p.model = "m";
  CHECK(c.providers == std::vector<provider>{p});
  chat_executor run;
  run.provider_id = "p";
  CHECK(chat_of(c) == run);
  const auto& a = c.kernels[0].agents[0];
  CHECK(a.budget == agent_budget{});
  CHECK(a.policy == action_policy{});
  CHECK(a.tools.empty());
  CHECK(find_provider(c, "p") == &c.providers[0]);
  CHECK(find_provider(c, "q") == nullptr);
  CHECK(name_of(a.run) == "chat");
  CHECK(c.redacted_yaml.find("tokens: 5000000") != std::string::npos);
  CHECK(good(with_agent("")).redacted_yaml.find("budget:") == std::string::npos);
}

TEST_CASE("models: every key arrives where it belongs", "[config]") {
  const auto c = good(R"yaml(version: 1
node: {budget_day: {tokens: 7, cost: 8.000001}}
providers:
  - provider_id: main
    base_url: https://models.example.org/v1/
    api: chat
    api_key: ${MAIN_KEY}
    model: big
    headers: {X-Team: ops, X-Port: 8080}
    prices:
      big: {input: "2.50", cached_input: 1.25, output: 10}
      "*": {input: 0.000001, output: "0"}
    capabilities: {tools: true, schema: false, stream: false, stream_usage: false}
    max_concurrent: 9
    requests_per_minute: 60
    tokens_per_minute: 200000
    connect_timeout: 3s
    request_timeout: 2m
    max_retries: 0
  - {provider_id: spare, preset: vllm, api_key_file: keys/spare, model: small}
kernels:
  - agents:
      - agent_id: a
        executor:
          type: chat
          provider: main
          model: big
          workspace: work
          system: be brief
          temperature: 0.2
          max_output_tokens: 4000
          max_turns: 3
          schema: {type: object, required: [verdict]}
          fallback:
            - {provider: spare}
            - {provider: main, model: other, on: [quota, not_found]}
          output_bytes: 64KiB
        tools: [read_file, run_command, mcp__files__*]
        mcp_json: true
        policy:
          rules:
            - {tool: write_file, path: "docs/**", decision: allow, reason: ours}
            - {tool: run_command, command: make *, decision: ask}
            - {host: "*.example.org", decision: deny}
          actions_per_minute: 30
          approval: {expires: 2h, wait: 30m, then: end}
        budget:
          run: {tokens: 1, cost: "0.50", turns: 2, wall: 5m}
          day: {tokens: 3, cost: 4}
        require: [tool_action]
)yaml",
                      {{"MAIN_KEY", "k-main-1"}});
  CHECK(c.node_settings.budget_day == budget_limit{.tokens = 7, .cost = 8'000'001});
  provider main;
  main.provider_id = "main";
  main.base_url = "https://models.example.org/v1";
  main.api_key = "k-main-1";
  main.model = "big";
  main.headers = {{"X-Team", "ops"}, {"X-Port", "8080"}};
  main.prices = {{"big", {2'500'000, 1'250'000, 10'000'000}}, {"*", {1, 1, 0}}};
  main.capabilities = {true, false, false, false};
  main.said = {true, true, true, true};
  main.max_concurrent = 9;
  main.requests_per_minute = 60;
  main.tokens_per_minute = 200'000;
  main.connect_timeout = 3s;
  main.request_timeout = 2min;
  main.max_retries = 0;
  REQUIRE(c.providers.size() == 2);
  CHECK(c.providers[0] == main);
  CHECK(c.providers[1].preset == "vllm");
  CHECK(c.providers[1].base_url == "http://127.0.0.1:8000/v1");
  CHECK(c.providers[1].api_key_file == "/etc/boyd/keys/spare");
  chat_executor run;
  run.provider_id = "main";
  run.model = "big";
  run.workspace = "/etc/boyd/work";
  run.system = "be brief";
  run.temperature = 0.2;
  run.max_output_tokens = 4000;
  run.max_turns = 3;
  run.schema_json = R"({"required":["verdict"],"type":"object"})";
  run.fallback = {{"spare", "", {}}, {"main", "other", {"quota", "not_found"}}};
  run.output_bytes = 64u << 10;
  CHECK(chat_of(c) == run);
  const auto& a = c.kernels[0].agents[0];
  CHECK(a.tools == std::vector<std::string>{"read_file", "run_command", "mcp__files__*"});
  using d = policy_decision;
  CHECK(a.policy.rules ==
        std::vector<policy_rule>{{"write_file", "docs/**", "", "", d::allow, "ours"},
                                 {"run_command", "", "make *", "", d::ask, ""},
                                 {"*", "", "", "*.example.org", d::deny, ""}});
  CHECK(a.policy.actions_per_minute == 30);
  CHECK(a.policy.approval == approval_terms{2h, 30min, true});
  CHECK(a.budget.run == budget_limit{1, 500'000, 2, 5min});
  CHECK(a.budget.day == budget_limit{.tokens = 3, .cost = 4'000'000});
  CHECK(good(c.redacted_yaml).kernels == c.kernels);
}

TEST_CASE("models: a preset stands for what is not given", "[config]") {
  const variables environment{{"OPENAI_API_KEY", "k-openai-1"}, {"ANTHROPIC_API_KEY", "k-ant-1"}};
  const auto c = good(chat_with("preset: openai, model: m"), environment);
  CHECK(c.providers[0].base_url == "https://api.openai.com/v1");
  CHECK(c.providers[0].api_key == "k-openai-1");
  CHECK(c.redacted_yaml.find("api_key: \"[redacted]\"") != std::string::npos);
  CHECK(std::count(c.secrets.begin(), c.secrets.end(), "k-openai-1") == 1);
  const auto other = good(chat_with("preset: openai, model: m, api_key: '${MINE}'"),
                          {{"OPENAI_API_KEY", "k-openai-1"}, {"MINE", "k-mine-1"}});
  CHECK(other.providers[0].api_key == "k-mine-1");
  CHECK(other.redacted_yaml.find("k-mine-1") == std::string::npos);
  const auto schema = good(chat_with("preset: anthropic, model: m"), environment);
  CHECK_FALSE(schema.providers[0].capabilities.schema);
  CHECK(schema.providers[0].capabilities.tools);
  CHECK(good(chat_with("preset: anthropic, model: m, capabilities: {schema: true, tools: false}"),
             environment)
            .providers[0]
            .capabilities == model_capabilities{false, true, true, true});
  // What was found out may take the place of what only the preset says.
  CHECK(schema.providers[0].said == model_capabilities{false, false, false, false});
  CHECK(good(chat_with("preset: anthropic, model: m, capabilities: {tools: false}"), environment)
            .providers[0]
            .said == model_capabilities{true, false, false, false});
  // Known by name does not mean sent to any address.
  const auto moved =
      good(chat_with("preset: openai, model: m, base_url: 'http://127.0.0.1:9/v1'"), environment);
  CHECK(moved.providers[0].api_key.empty());
  bad(chat_with("preset: openai, model: m, base_url: 'https://x.example.org/v1'"),
      key(p0, "api_key"), environment);
  for (const auto* preset : {"ollama", "vllm", "llamacpp", "lmstudio"}) {
    INFO(preset);
    CHECK(good(chat_with(std::string("model: m, preset: ") + preset))
              .providers[0]
              .base_url.starts_with("http://127.0.0.1:"));
  }
  CHECK(bad(chat_with("preset: opnai, model: m"), key(p0, "preset")).nearest == "openai");
}

TEST_CASE("models: what an endpoint needs", "[config]") {
  CHECK_THAT(bad(chat_with("preset: openai, model: m"), key(p0, "api_key")).expected,
             Contains("OPENAI_API_KEY"));
  CHECK_THAT(bad(chat_with("base_url: 'https://h/v1', model: m"), key(p0, "api_key")).text(),
             Contains("no API key for https://h:443"));
  bad(chat_with("base_url: 'https://h/v1', model: m, api_key: ''"), key(p0, "api_key"));
  bad(chat_with("model: m"), key(p0, "base_url"));
  bad(chat_with("model: m, base_url: 'ftp://h/v1'"), key(p0, "base_url"));
  bad(chat_with("model: m, base_url: 'https://u:pw@h/v1'"), key(p0, "base_url"));
  bad(chat_with("model: m, base_url: 'https://h/v1?api-version=2', api_key: k"),
      key(p0, "base_url"));
  bad(chat_with("model: m, base_url: 'http://h/v1', api_key: k"), key(p0, "base_url"));
  good(chat_with("model: m, base_url: 'http://h/v1', api_key: k, allow_plain_http: true"));
  good(chat_with("model: m, base_url: 'http://[::1]:9/v1'"));
  good(chat_with("model: m, base_url: 'https://h/v1', headers: {authorization: 'Basic abcdef'}"));
  bad(chat_with("model: m, base_url: 'https://h/v1', api_key: k, headers: {Authorization: x}"),
      key(p0, "headers.Authorization"));
  bad(chat_with("model: m, base_url: 'https://h/v1', api_key: k, api_key_file: f"),
      key(p0, "api_key_file"));
  bad(chat_with("preset: ollama, model: m, api: responses"), key(p0, "api"));
  bad(chat_with("preset: ollama, model: 'a b'"), key(p0, "model"));
  bad(chat_with("preset: ollama, model: m, headers: {Content-Length: 3}"),
      key(p0, "headers.Content-Length"));
  bad(chat_with("preset: ollama, model: m, headers: {'a b': 3}"), key(p0, "headers.a b"));
  bad(chat_with("preset: ollama, model: m, headers: {A: 1, a: 2}"), key(p0, "headers.a"));
  bad(chat_with("preset: ollama, model: m, headers: {A: \"1\\r\\nB: 2\"}"), key(p0, "headers.A"));
  bad(chat_with("preset: ollama, model: m, api_key: \"${K}\""), key(p0, "api_key"),
      {{"K", "abcd\nefgh"}});
  bad(chat_with("preset: ollama, model: m, max_concurrent: 0"), key(p0, "max_concurrent"));
  bad(chat_with("preset: ollama, model: m}\n  - {provider_id: p, preset: vllm"),
      "providers[1].provider_id");
}

TEST_CASE("models: money is read exactly", "[config]") {
  const auto price = [](const std::string& text) {
    return good(
               chat_with("preset: ollama, model: m, prices: {m: {input: " + text + ", output: 1}}"))
        .providers[0]
        .prices.at("m")
        .input;
  };
  CHECK(price("0.1") == 100'000);
  CHECK(price("0.3") == 300'000);
  CHECK(price("1.005") == 1'005'000);
  CHECK(price("\"0.075\"") == 75'000);
  CHECK(price("1000000") == 1'000'000'000'000);
  CHECK(price("0.000001") == 1);
  for (const auto* text : {"1e-3", "-1", "'1,5'", "$1", "0.0000001", "1000000.01", "''", "~",
                           "true", "[1]", "0x10", "99999999999999999999999"}) {
    INFO(text);
    bad(chat_with("preset: ollama, model: m, prices: {m: {input: " + std::string(text) +
                  ", output: 1}}"),
        key(p0, "prices.m.input"));
  }
  bad(chat_with("preset: ollama, model: m, prices: {m: {input: 1}}"), key(p0, "prices.m.output"));
}

TEST_CASE("models: an executor names a provider and a model that are there", "[config]") {
  const auto f =
      bad(chat_with("preset: ollama, model: m, provider_id: main"), key(p0, "provider_id"));
  CHECK(f.line == 3);
  const auto wrong = bad("version: 1\nproviders: [{provider_id: main, preset: ollama, model: m}]\n"
                         "kernels:\n  - agents:\n      - agent_id: a\n        executor:\n"
                         "          type: chat\n          provider: mian\n",
                         key(a0, "executor.provider"));
  CHECK(wrong.text() ==
        "/etc/boyd/boyd.yaml:8:21: kernels[0].agents[0].executor.provider: \"mian\" "
        "is not a provider; did you mean main?");
  CHECK_THAT(
      bad("version: 1\nkernels:\n  - agents: [{agent_id: a, executor: {type: chat, provider: "
          "x}}]\n",
          key(a0, "executor.provider"))
          .expected,
      Contains("an entry in providers"));
  bad(chat_with("preset: ollama"), key(a0, "executor.model"));
  good(chat_with("preset: ollama", "model: m"));
  bad(chat_with(local, "fallback: [{provider: q}]"), key(a0, "executor.fallback[0].provider"));
  bad(chat_with(local, "fallback: [{provider: p, on: [tired]}]"),
      key(a0, "executor.fallback[0].on[0]"));
  bad(chat_with(local, "temperature: 3"), key(a0, "executor.temperature"));
  bad(chat_with(local, "max_turns: 0"), key(a0, "executor.max_turns"));
  bad(chat_with(local, "argv: [x]"), key(a0, "executor.argv"));
}

TEST_CASE("models: tools and rules are known ones", "[config]") {
  const auto tools = [](const std::string& list) {
    return chat_with(local, {}, "        tools: " + list + "\n");
  };
  good(tools("[read_file, write_file, list_dir, search_text, run_command, mcp__*__*]"));
  CHECK(bad(tools("[raed_file]"), key(a0, "tools[0]")).nearest == "read_file");
  for (const auto* tool :
       {"'*'", "mcp__", "mcp__a", "mcp__a__", "mcp____b", "'mcp__a__b c'", "bash", "''", "12"}) {
    INFO(tool);
    bad(tools("[" + std::string(tool) + "]"), key(a0, "tools[0]"));
  }
  for (const auto* tool : {"kernel_goal", "mcp__x__kernel_goal"})
    CHECK_THAT(bad(tools("[" + std::string(tool) + "]"), key(a0, "tools[0]")).text(),
               Contains("no tool may be called kernel_goal"));
  bad(chat_with("preset: ollama, model: m, capabilities: {tools: false}", {},
                "        tools: [read_file]\n"),
      key(a0, "tools"));
  // A run that needs them would have to leave it out.
  const auto with_plain = [](const std::string& lines) {
    return chat_with(std::string(local) + "}\n  - {provider_id: plain, preset: ollama, model: m, "
                                          "capabilities: {tools: false}",
                     "fallback: [{provider: plain, on: [quota, unauthorized, bad_answer]}]", lines);
  };
  good(with_plain(""));
  CHECK_THAT(bad(with_plain("        tools: [read_file]\n"), key(a0, "tools")).text(),
             Contains("plain do not support tools, but it is a fallback"));
  const auto rule = [](const std::string& text) {
    return chat_with(local, {}, "        policy: {rules: [{" + text + "}]}\n");
  };
  good(rule("decision: ask"));
  bad(rule("tool: raed_file, decision: ask"), key(a0, "policy.rules[0].tool"));
  bad(rule("tool: read_file"), key(a0, "policy.rules[0].decision"));
  CHECK(bad(rule("decision: alow"), key(a0, "policy.rules[0].decision")).nearest == "allow");
}

TEST_CASE("models: a rule that can never hold is a finding", "[config]") {
  const auto rule = [](const std::string& text) {
    return chat_with(local, {}, "        policy: {rules: [{decision: deny, " + text + "}]}\n");
  };
  for (const auto* held :
       {"path: 'docs/**'", "path: ./docs/", "path: .", "path: '**/.env'", "command: 'rm *'",
        "host: '*.example.org'", "tool: read_file, path: x", "tool: run_command, command: make",
        "tool: 'mcp__*__*', host: h", "tool: '*', path: '@results/*'", "tool: run_command"})
    good(rule(held));
  const auto r0 = "policy.rules[0].";
  for (const auto* path : {"/etc/**", "../x", "a/../b", "a//b", "a/./b", "'..'"}) {
    INFO(path);
    bad(rule("path: " + std::string(path)), key(a0, r0 + std::string("path")));
  }
  for (const auto& [text, at] : std::vector<std::pair<std::string, std::string>>{
           {"tool: run_command, path: 'secret/**'", "path"},
           {"tool: read_file, command: cat", "command"},
           {"tool: write_file, host: h", "host"},
           {"tool: 'mcp__*__*', path: 'secret/**'", "path"},
           {"path: a, command: b", "command"},
           {"host: a, path: b", "host"}}) {
    INFO(text);
    CHECK_THAT(bad(rule(text), key(a0, r0 + at)).text(), Contains("never matches"));
  }
}

TEST_CASE("models: tools of a server are those of one that is there", "[config]") {
  const auto with = [](const std::string& agent, const std::string& top = {}) {
    return chat_with(local, {}, agent) + top;
  };
  const std::string servers = "mcpServers: {files: {command: x}}\n";
  good(with("        tools: [mcp__files__read]\n", servers));
  good(with("        tools: [mcp__none__read]\n        mcp_json: true\n", servers));
  CHECK_THAT(bad(with("        tools: [mcp__none__read]\n", servers), key(a0, "tools[0]")).text(),
             Contains("mcpServers has no server none"));
  bad(with("        tools: [mcp__files__read]\n"), key(a0, "tools[0]"));
  bad(with("        policy: {rules: [{tool: mcp__none__x, decision: deny}]}\n", servers),
      key(a0, "policy.rules[0].tool"));
}

TEST_CASE("models: what a program or a script cannot have is a finding", "[config]") {
  bad(with_agent("        tools: [read_file]\n"), key(a0, "tools"));
  bad(with_agent("        policy: {rules: [{decision: deny}]}\n"), key(a0, "policy"));
  bad(with_agent("        budget: {run: {tokens: 1}}\n"), key(a0, "budget"));
}

TEST_CASE("models: a limit of cost that is asked for needs prices", "[config]") {
  const std::string remote = "base_url: 'https://h/v1', api_key: k, model: m";
  const std::string budget = "        budget: {run: {cost: 1}}\n";
  good(chat_with(remote));
  CHECK_THAT(bad(chat_with(remote, {}, budget), key(a0, "budget.run.cost")).text(),
             Contains("provider p has no price for m"));
  bad(chat_with(remote, {}, "        budget: {day: {cost: 1}}\n"), key(a0, "budget.day.cost"));
  good(chat_with(remote, {}, "        budget: {run: {cost: 0}}\n"));
  // What runs here is free where a preset says so; behind any other address may be a proxy.
  const std::string here = "base_url: 'http://127.0.0.1:1/v1', model: m";
  good(chat_with(local, {}, budget));
  good(chat_with(here));
  bad(chat_with(here, {}, budget), key(a0, "budget.run.cost"));
  good(chat_with(local + std::string(", base_url: 'http://127.0.0.1:1/v1'"), {}, budget));
  bad(chat_with(local + std::string(", base_url: 'https://h/v1', api_key: k"), {}, budget),
      key(a0, "budget.run.cost"));
  good(chat_with(here + ", prices: {'*': {input: 0, output: 0}}", {}, budget));
  bad("node: {budget_day: {cost: 5}}\n" + chat_with(here), "node.budget_day.cost");
  good(chat_with(remote + ", prices: {m: {input: 1, output: 2}}", {}, budget));
  good(chat_with(remote + ", prices: {'*': {input: 1, output: 2}}", {}, budget));
  bad(chat_with(remote + ", prices: {m: {input: 1, output: 2}}", "model: n", budget),
      key(a0, "budget.run.cost"));
  bad(chat_with(remote + ", prices: {m: {input: 1, output: 2}}",
                "fallback: [{provider: p, model: n}]", budget),
      key(a0, "budget.run.cost"));
  bad("node: {budget_day: {cost: 5}}\n" + chat_with(remote), "node.budget_day.cost");
  bad(chat_with(local, {}, "        budget: {run: {cost: lots}}\n"), key(a0, "budget.run.cost"));
  bad(chat_with(local, {}, "        budget: {run: {tokens: 1.5}}\n"), key(a0, "budget.run.tokens"));
}

TEST_CASE("models: secrets of providers are redacted wherever they come from", "[config]") {
  const auto c =
      good(R"yaml(version: 1
providers:
  - provider_id: p
    base_url: https://h/v1
    api_key: literal-key-1
    model: m
    headers: {X-Api-Key: header-key-1, Cookie: cookie-key-1, X-Team: "${TEAM_SECRET}"}
    tokens_per_minute: ${MAX_TOKENS}
  - {provider_id: q, base_url: "https://h/v1", model: m, headers: {Authorization: "Bearer bearer-1"}}
kernels:
  - agents:
      - agent_id: a
        prompt: hello bearer-1
        executor:
          type: chat
          provider: p
          max_output_tokens: ${LIMIT}
        budget:
          run:
            tokens: ${LIMIT}
)yaml",
           {{"TEAM_SECRET", "team-key-1"}, {"MAX_TOKENS", "123456"}, {"LIMIT", "654321"}});
  for (const auto* secret :
       {"literal-key-1", "header-key-1", "cookie-key-1", "team-key-1", "bearer-1"}) {
    INFO(secret);
    CHECK(c.redacted_yaml.find(secret) == std::string::npos);
    CHECK(redact_text(std::string("x ") + secret + " y", c.secrets).find(secret) ==
          std::string::npos);
  }
  // A number of tokens is not one.
  CHECK(c.providers[0].tokens_per_minute == 123'456);
  CHECK(c.redacted_yaml.find("123456") != std::string::npos);
  CHECK(chat_of(c).max_output_tokens == 654'321);
  CHECK(c.kernels[0].agents[0].budget.run.tokens == 654'321);
  CHECK(c.redacted_yaml.find("654321") != std::string::npos);
}

TEST_CASE("models: files that the configuration names are read with it", "[config]") {
  static const auto zones = adapters::make_time_zones();
  const auto with_files = [&](const std::string& text, const variables& files) {
    return load(
        "/etc/boyd/boyd.yaml", text, [](const std::string&) { return std::nullopt; }, *zones,
        unset_variables::are_errors,
        [&](const std::string& path) -> result<std::string> {
          const auto found = files.find(path);
          if (found == files.end())
            return fail(errc::not_found, "no such file", path);
          return found->second;
        });
  };
  const auto text = chat_with("base_url: 'https://h/v1', model: m, api_key_file: key",
                              "schema_file: answer.json");
  const auto loaded = with_files(text, {{"/etc/boyd/answer.json", "{ \"type\" :\n\"object\" }"},
                                        {"/etc/boyd/key", "file-key-1\n"}});
  INFO(texts(loaded));
  REQUIRE(loaded.value);
  CHECK(chat_of(*loaded.value).schema_json == R"({"type":"object"})");
  CHECK(loaded.value->providers[0].api_key_file == "/etc/boyd/key");
  CHECK(std::count(loaded.value->secrets.begin(), loaded.value->secrets.end(), "file-key-1") == 1);
  const auto where = key(a0, "executor.schema_file");
  CHECK(about(with_files(text, {}), where) != nullptr);
  CHECK(about(load_text(text), where) != nullptr);
  std::string deep(200, '[');
  for (const auto& content : {std::string("[1]"), std::string("{"), std::string(""), deep,
                              "{\"a\":" + deep + std::string(200, ']') + "}", std::string("{}x")}) {
    INFO(content);
    CHECK(about(with_files(text, {{"/etc/boyd/answer.json", content}}), where) != nullptr);
  }
  CHECK(about(with_files(chat_with(local, "schema: {}, schema_file: x"), {{"/etc/boyd/x", "{}"}}),
              where) != nullptr);
}

TEST_CASE("models: a command that only asks needs no keys", "[config]") {
  static const auto zones = adapters::make_time_zones();
  const auto loaded = load(
      "/etc/boyd/boyd.yaml", chat_with("preset: openai, model: m"),
      [](const std::string&) { return std::nullopt; }, *zones, unset_variables::stay_as_text);
  INFO(texts(loaded));
  REQUIRE(loaded.value);
  CHECK(loaded.unset == std::vector<std::string>{"OPENAI_API_KEY"});
}

TEST_CASE("secrets that come later are kept as those of the configuration", "[config]") {
  CHECK(with_secrets({"longer-secret"}, {"two\nlines", "abc", "longer-secret"}) ==
        std::vector<std::string>{"longer-secret", "two\nlines", "lines"});
}

} // namespace boyd::models_test
