#include "loading.hpp"
#include "support/pch.hpp"

namespace boyd::load_test {

using namespace boyd::config;
using namespace boyd::config::testing;
using namespace std::chrono_literals;

namespace {

configuration good(std::string_view text, const variables& environment = {}) {
  auto result = load_text(text, environment);
  INFO(texts(result));
  REQUIRE(result.value.has_value());
  CHECK(result.findings.empty());
  return std::move(*result.value);
}

/// The finding about `key`; fails the test when the file is accepted or says nothing about it.
finding bad(std::string_view text, std::string_view key, const variables& environment = {}) {
  const auto result = load_text(text, environment);
  INFO(texts(result));
  CHECK_FALSE(result.value.has_value());
  const auto* found = about(result, key);
  INFO(key);
  REQUIRE(found != nullptr);
  CHECK(found->line > 0);
  CHECK(found->column > 0);
  CHECK_FALSE((found->expected.empty() && found->nearest.empty()));
  return *found;
}

constexpr auto spec_example = R"yaml(# yaml-language-server: $schema=./boyd.schema.json
version: 1
node:
  max_concurrent: 8              # permits for the whole node
  store: sqlite
kernels:
  - kernel_id: default
    schedule: "*/10 * * * *"
    tz: Europe/Berlin
    max_concurrent: 4            # permits of this kernel
    max_cycle_history: 5
    planner: {type: static}
    metadata: {user_id: me, channel: cli}
    agents:
      - agent_id: daily-report
        prompt: |
          Current state:
          {STATE}
          Write today's briefing.
        priority: 10
        enabled: true
        executor: {type: command, argv: ["./report.sh"], cwd: /srv/repo}
        max_concurrent: 1
        timeout: 10m
        retry: {max_attempts: 3}
        require: [exit_zero]
)yaml";

} // namespace

TEST_CASE("load: the specification's example", "[config]") {
  const auto c = good(spec_example);
  CHECK(c.version == 1);
  CHECK(c.node_settings == node{});
  REQUIRE(c.kernels.size() == 1);
  const auto* k = c.find_kernel("default");
  REQUIRE(k != nullptr);
  CHECK(k->when.expression == "*/10 * * * *");
  CHECK(k->when.tz == "Europe/Berlin");
  CHECK(k->max_concurrent == 4);
  const auto* a = find_agent(*k, "daily-report");
  REQUIRE(a != nullptr);
  CHECK(a->prompt == "Current state:\n{STATE}\nWrite today's briefing.\n");
  CHECK(a->timeout == 10min);
  CHECK(a->metadata_json == R"({"channel":"cli","user_id":"me"})");
  CHECK(a->require == std::vector<requirement>{{requirement::kind_t::exit_zero, {}, {}}});
  const auto& run = std::get<command_executor>(a->run);
  CHECK(run.argv == std::vector<std::string>{"./report.sh"});
  CHECK(run.cwd == "/srv/repo");
  CHECK(find_agent(*k, "x") == nullptr);
  CHECK(c.find_kernel("x") == nullptr);
}

TEST_CASE("load: the schema's defaults are those of the values", "[config]") {
  const auto c =
      good("version: 1\nkernels:\n  - agents:\n      - agent_id: a\n        executor: "
           "{type: script, answers: [{}]}\n        schedule: '@hourly'\n        wake: "
           "{inputs: [/x]}\n    senses: [{name: s, argv: [df]}]\n    quiet_hours: "
           "[{schedule: '@daily', length: 1h}]\nfaults: [{point: store.apply, action: error}]\n");
  kernel k;
  agent a;
  a.agent_id = "a";
  a.run = script_executor{{}, {{}}};
  a.when = schedule{.expression = "@hourly"};
  a.wake = wake_policy{};
  a.wake->inputs = {"/x"};
  k.agents = {a};
  sense s;
  s.name = "s";
  s.argv = {"df"};
  k.senses = {s};
  quiet_hours q;
  q.from.expression = "@daily";
  q.length = 1h;
  k.quiet = {q};
  CHECK(c.node_settings == node{});
  REQUIRE(c.kernels.size() == 1);
  CHECK(c.kernels.front() == k);
  CHECK(c.faults == std::vector<fault>{{"store.apply", "error", 1, 1.0, {}, 0, 1, {}}});
  const auto bare = good(with_agent(""));
  command_executor run;
  run.argv = {"date"};
  CHECK(std::get<command_executor>(bare.kernels[0].agents[0].run) == run);
  CHECK_FALSE(bare.kernels[0].agents[0].when.has_value());
}

TEST_CASE("load: every key arrives where it belongs", "[config]") {
  const auto c = good(R"yaml(version: 1
node: {max_concurrent: 2, store: "postgres://b@db/boyd", store_password_file: pw, retention: 1d,
  lease: 1m, lease_renewal: 5s, drain_grace: 9s, log_level: debug}
kernels:
  - kernel_id: k
    name: Kay
    schedule: "@every 30s"
    tz: Europe/Berlin
    jitter: 3s
    overlap: queue_one
    misfire: all
    grace: 2m
    max_concurrent: 3
    max_cycle_history: 7
    recent_actions: 9
    cycle_deadline: 30m
    system_prompt: sys
    author_name: n
    author_email: e@x
    auto_commit: false
    quiet_hours: [{schedule: "0 22 * * *", length: 8h, reason: night}]
    senses: [{name: disk, argv: [df, -h], cwd: rel, interval: 1h, timeout: 5s, output_bytes: 1KiB}]
    metadata: {a: 1, b: two, n: {x: [true, null, 1.5]}}
    agents:
      - agent_id: x
        priority: -3
        enabled: false
        max_concurrent: 4
        timeout: 1m
        no_output_timeout: 2s
        cooldown: 3h
        retry: {max_attempts: 5, base: 2s, cap: 1m}
        schedule: "0 8 * * mon"
        jitter: 1s
        metadata: {b: 2, c: 3}
        require:
          - artifact out.md
          - {artifact: other.md}
          - {command: [make, check]}
          - command make test
          - schema: s.json
          - no_question
        wake: {argv: [git, rev-parse, HEAD], timeout: 1s, max_backoff: 2h}
        executor:
          type: command
          shell: "date | cat"
          cwd: ./sub/../work
          env: {PORT: 8080, LANG: C, ON: true}
          env_pass: [SSH_AUTH_SOCK]
          output_bytes: 2MiB
          exit_classes: {75: transient, "2": policy}
      - agent_id: y
        executor:
          type: script
          answers: [{output: o, summary: s, delay: 1s, fail: flaky}]
      - {agent_id: z, executor: {type: script, file: answers.yaml}}
)yaml");
  CHECK(c.node_settings ==
        node{2, "postgres://b@db/boyd", "/etc/boyd/pw", 24h, 1min, 5s, 9s, "debug", {}});
  const auto& k = c.kernels.at(0);
  CHECK(k.when == schedule{"@every 30s", "Europe/Berlin", 3s, overlap_policy::queue_one,
                           misfire_policy::all, 2min});
  CHECK(k.cycle_deadline == 30min);
  CHECK_FALSE(k.auto_commit);
  CHECK(k.quiet.at(0).from.tz == "Europe/Berlin");
  CHECK(k.quiet.at(0).reason == "night");
  CHECK(k.senses.at(0) == sense{"disk", {"df", "-h"}, "/etc/boyd/rel", 1h, 5s, 1024});
  CHECK(k.metadata_json == R"({"a":1,"b":"two","n":{"x":[true,null,1.5]}})");
  const auto& a = k.agents.at(0);
  CHECK(a.retry == retry_policy{5, 2s, 1min});
  CHECK(a.when == schedule{"0 8 * * mon", "Europe/Berlin", 1s});
  CHECK(a.metadata_json == R"({"a":1,"b":2,"c":3,"n":{"x":[true,null,1.5]}})");
  using kind = requirement::kind_t;
  CHECK(a.require == std::vector<requirement>{{kind::artifact, "out.md", {}},
                                              {kind::artifact, "other.md", {}},
                                              {kind::command, {}, {"make", "check"}},
                                              {kind::command, {}, {"make", "test"}},
                                              {kind::schema, "s.json", {}},
                                              {kind::no_question, {}, {}}});
  CHECK(a.wake == wake_policy{{"git", "rev-parse", "HEAD"}, {}, 1s, 2h});
  command_executor run;
  run.shell = "date | cat";
  run.cwd = "/etc/boyd/work";
  run.env_pass = {"SSH_AUTH_SOCK"};
  run.env = {{"PORT", "8080"}, {"LANG", "C"}, {"ON", "true"}};
  run.output_bytes = 2u << 20;
  run.exit_classes = {{75, "transient"}, {2, "policy"}};
  CHECK(std::get<command_executor>(a.run) == run);
  CHECK(std::get<script_executor>(k.agents.at(1).run) ==
        script_executor{{}, {{"o", "s", 1s, "flaky"}}});
  CHECK(std::get<script_executor>(k.agents.at(2).run).file == "/etc/boyd/answers.yaml");
}

TEST_CASE("load: a finding says where, what and the nearest key", "[config]") {
  const auto f = bad(with_agent("        pririty: 3\n"), "kernels[0].agents[0].pririty");
  CHECK(f.text() == "/etc/boyd/boyd.yaml:6:9: kernels[0].agents[0].pririty: unknown key; did you "
                    "mean priority?");
  CHECK(bad(with_agent("        priority: high\n"), "kernels[0].agents[0].priority").text() ==
        "/etc/boyd/boyd.yaml:6:19: kernels[0].agents[0].priority: \"high\" is of the wrong type; "
        "expected an integer from -1000000 to 1000000");
  CHECK(bad("version: 1\nkernels:\n  - overlap: skp\n", "kernels[0].overlap").nearest == "skip");
  CHECK(bad("version: 1\nkernels:\n  - tz: Europe/Berlni\n", "kernels[0].tz").nearest ==
        "Europe/Berlin");
  CHECK(bad("version: 1\nkernels:\n  - schedule: 61 * * * *\n", "kernels[0].schedule")
            .problem.find("minute") != std::string::npos);
}

TEST_CASE("load: all findings at once, in the order of the file", "[config]") {
  const auto result =
      load_text("version: 2\nnode: {max_concurent: 1, lease: soon}\nkernels:\n"
                "  - planner: {type: model}\n    bogus: 1\n    pogus: 2\n    agents:\n"
                "      - agent_id: a b\n      - {agent_id: c, executor: {type: command}}\n"
                "      - {agent_id: c, executor: {type: command, argv: [x], shell: x}}\n");
  for (const auto* key : {"version", "node.max_concurent", "node.lease", "kernels[0].planner.type",
                          "kernels[0].bogus", "kernels[0].pogus", "kernels[0].agents[0].agent_id",
                          "kernels[0].agents[0].executor", "kernels[0].agents[1].executor",
                          "kernels[0].agents[2].agent_id", "kernels[0].agents[2].executor.shell"}) {
    INFO(key);
    CHECK(about(result, key) != nullptr);
  }
  CHECK(std::is_sorted(result.findings.begin(), result.findings.end(),
                       [](const auto& x, const auto& y) {
                         return std::pair(x.line, x.column) < std::pair(y.line, y.column);
                       }));
}

TEST_CASE("load: what a schema cannot say", "[config]") {
  bad("version: 1\nkernels: [{kernel_id: a}, {kernel_id: a}]", "kernels[1].kernel_id");
  bad("version: 1\nkernels: [{}, {}]", "kernels[1].kernel_id");
  bad("version: 1\nkernels: [{kernel_id: ../a}]", "kernels[0].kernel_id");
  bad("version: 1\nkernels: []", "kernels");
  bad("version: 1\nnode: {lease: 10s, lease_renewal: 6s}\nkernels: [{}]", "node.lease_renewal");
  bad("version: 1\nnode: {store: mysql://x}\nkernels: [{}]", "node.store");
  bad("version: 1\nkernels:\n  - schedule: 0 0 31 2 *", "kernels[0].schedule");
  const std::string agent = "kernels[0].agents[0].";
  bad(with_agent("        timeout: 10\n"), agent + "timeout");
  bad(with_agent("        timeout: 0\n"), agent + "timeout");
  bad(with_agent("        jitter: 1s\n"), agent + "jitter");
  bad(with_agent("        require: [tool_action]\n"), agent + "require[0]");
  bad(with_agent("        require: [exit_zro]\n"), agent + "require[0]");
  bad(with_agent("        require: [{artifact: x, schema: y}]\n"), agent + "require[0]");
  bad(with_agent("        require: [artifact]\n"), agent + "require[0]");
  bad(with_agent("        require: [\"command a | b\"]\n"), agent + "require[0]");
  bad(with_agent("        wake: {}\n"), agent + "wake");
  bad(with_agent("        metadata:\n"), agent + "metadata");
  bad(with_agent("        enabled: yes\n"), agent + "enabled");
  bad(with_agent("        cooldown: 99999d\n"), agent + "cooldown");
  CHECK(bad("version: 1\nkernels: [{planner: {type: lmm}}]", "kernels[0].planner.type").nearest ==
        "llm");
  const auto executor = [&](const std::string& rest, const std::string& key) {
    bad("version: 1\nkernels:\n  - agents: [{agent_id: a, executor: {" + rest + "}}]\n",
        agent + "executor" + key);
  };
  executor("type: shell", ".type");
  executor("type: command", "");
  executor("argv: [x]", ".type");
  executor("type: command, argv: [x], answers: []", ".answers");
  executor("type: command, argv: [x], cwd: ~/x", ".cwd");
  executor("type: command, argv: [x], env: {A-B: c}", ".env.A-B");
  executor("type: command, argv: [x], exit_classes: {256: flaky}", ".exit_classes.256");
  executor("type: command, argv: [x], exit_classes: {0: flaky}", ".exit_classes.0");
  executor("type: command, argv: [x], output_bytes: 1TB", ".output_bytes");
  executor("type: command, argv: [x], output_bytes: 1GiB", ".output_bytes");
  executor("type: command, argv: [[x]]", ".argv[0]");
  executor("type: script, answers: [{fail: maybe}]", ".answers[0].fail");
}

TEST_CASE("load: environment", "[config]") {
  const auto prompt = [](const std::string& value, const variables& environment) {
    return good(with_agent("        prompt: " + value + "\n"), environment)
        .kernels[0]
        .agents[0]
        .prompt;
  };
  CHECK(prompt("a ${X} b", {{"X", "1"}}) == "a 1 b");
  CHECK(prompt("${X}", {{"X", "12"}}) == "12");
  CHECK(prompt("${X:-d e}", {}) == "d e");
  CHECK(prompt("${X:-d}", {{"X", ""}}) == "d");
  CHECK(prompt("\"${X:-}\"", {}).empty());
  CHECK(prompt("$${X} $X $", {{"X", "1"}}) == "${X} $X $");
  CHECK(prompt("${X}", {{"X", "${Y}"}, {"Y", "no"}}) == "${Y}");
  CHECK(prompt("${X}", {{"X", "a: [b\n- c"}}) == "a: [b\n- c");
  const auto number = with_agent("        priority: ${P}\n");
  CHECK(good(number, {{"P", "42"}}).kernels[0].agents[0].priority == 42);
  bad(number, "kernels[0].agents[0].priority", {{"P", "x"}});
  const auto unset = bad(with_agent("        prompt: hi ${NOPE}\n"), "kernels[0].agents[0].prompt");
  CHECK(unset.line == 6);
  CHECK(unset.problem.find("NOPE") != std::string::npos);
  bad(with_agent("        prompt: ${\n"), "kernels[0].agents[0].prompt");
  bad(with_agent("        prompt: ${1A}\n"), "kernels[0].agents[0].prompt");
  bad(with_agent("        prompt: ${X}\n"), "kernels[0].agents[0].prompt", {{"X", "\xff"}});
  bad(with_agent("        prompt: \"" +
                 [] {
                   std::string out;
                   for (int i = 0; i < 200; ++i) {
                     out += "${X}";
                   }
                   return out;
                 }() +
                 "\"\n"),
      "kernels[0].agents[0].prompt", {{"X", std::string(100'000, 'x')}});
}

TEST_CASE("load: every wrong reference of one value is told, each once", "[config]") {
  const auto r = load_text(
      with_agent("        prompt: \"${ONE} ${9x} ${SET} ${TWO} ${ONE} ${open\"\n"), {{"SET", "s"}});
  CHECK_FALSE(r.value);
  REQUIRE(r.findings.size() == 1);
  const auto& f = r.findings.front();
  CHECK(f.key == "kernels[0].agents[0].prompt");
  CHECK(f.line == 6);
  CHECK(f.problem == "the environment variable ONE is not set; a ${ that is not ${VARIABLE} or "
                     "${VARIABLE:-default}; the environment variable TWO is not set");
  CHECK(f.expected.find("${ONE:-default}") != std::string::npos);
  CHECK(f.expected.find("${TWO:-default}") != std::string::npos);
}

TEST_CASE("load: secrets are collected and redacted", "[config]") {
  const auto c = good(R"yaml(version: 1
node: {store: "postgres://b@db/boyd", store_password_file: /etc/pw}
kernels:
  - metadata: {api_token: "tok-literal", greeting: "contains env-secret-1 inside"}
    agents:
      - agent_id: a
        prompt: "Authorization ${SERVICE_KEY}"
        executor:
          type: command
          argv: [curl, "https://u:uri-pass@host/x"]
          env: {DB_PASSWORD: "literal-pw", SHORT_KEY: "ab", PLAIN: visible, MY_TOKEN: "${OTHER}"}
)yaml",
                      {{"SERVICE_KEY", "env-secret-1"}, {"OTHER", "env-secret-2"}});
  const auto& run = std::get<command_executor>(c.kernels[0].agents[0].run);
  CHECK(run.env.at(0).second == "literal-pw");
  CHECK(run.argv.at(1) == "https://u:uri-pass@host/x");
  for (const auto* secret :
       {"tok-literal", "env-secret-1", "env-secret-2", "literal-pw", "uri-pass"}) {
    INFO(secret);
    CHECK(std::count(c.secrets.begin(), c.secrets.end(), secret) == 1);
    CHECK(c.redacted_yaml.find(secret) == std::string::npos);
  }
  CHECK(std::count(c.secrets.begin(), c.secrets.end(), "ab") == 0);
  CHECK(c.redacted_yaml.find("SHORT_KEY: \"[redacted]\"") != std::string::npos);
  CHECK(c.redacted_yaml.find("visible") != std::string::npos);
  CHECK(c.redacted_yaml.find("/etc/pw") != std::string::npos);
}

TEST_CASE("load: no finding shows a secret", "[config]") {
  const auto uri =
      load_text("version: 1\nnode: {store: \"postgres://u:hunter22@h/db\"}\nkernels: [{}]\n");
  REQUIRE(about(uri, "node.store") != nullptr);
  CHECK(about(uri, "node.store")->expected.find("PGPASSWORD") != std::string::npos);
  CHECK(texts(uri).find("hunter22") == std::string::npos);
  const auto query = load_text(
      "version: 1\nnode: {store: \"postgres://h/db?password=hunter22\"}\nkernels: [{}]\n");
  REQUIRE(about(query, "node.store") != nullptr);
  CHECK(texts(query).find("hunter22") == std::string::npos);
  const auto wrong = load_text(with_agent("        timeout: ${MY_KEY}\n        schedule: "
                                          "${MY_KEY}\n        tz: ${MY_KEY}\n        overlap: "
                                          "${MY_KEY}\n        priority: ${MY_KEY}\n"),
                               {{"MY_KEY", "hunter22"}});
  CHECK(wrong.findings.size() == 5);
  CHECK(texts(wrong).find("hunter22") == std::string::npos);
}

TEST_CASE("load: the redacted form is a configuration with the same meaning", "[config]") {
  for (const auto& text : {std::string(spec_example), default_yaml()}) {
    const auto first = good(text);
    const auto second = good(first.redacted_yaml);
    CHECK(second.kernels == first.kernels);
    CHECK(second.node_settings == first.node_settings);
    CHECK(second.redacted_yaml == first.redacted_yaml);
  }
}

TEST_CASE("load: what is no YAML is said in words", "[config]") {
  const auto said = [](const std::string& line) {
    const auto result =
        load_text("version: 1\nkernels:\n  - kernel_id: a\n" + line + "\n    agents: []\n");
    REQUIRE(result.findings.size() == 1);
    return std::to_string(result.findings[0].line) + ": " + result.findings[0].problem +
           result.findings[0].expected;
  };
  CHECK(said("    context: @rules.md") ==
        "4: a value cannot begin with @: put it in quotes: \"@rules.md\"");
  CHECK(said("    context: [x, @rules.md, y]") ==
        "4: a value cannot begin with @: put it in quotes: \"@rules.md\"");
  CHECK(said("    context: [rules.md, #docs]") ==
        "4: # begins a comment, so the list does not end: put the value in quotes: \"#docs\"");
  CHECK(said("    name: @hunter2") == "4: a value cannot begin with @: put it in quotes: \"@…\"");
  CHECK(said("    context: [rules.md") == "5: a bracket before this place is not closed");
  CHECK(said("     name: b") == "4: line 4 is indented differently from the lines around it");
  CHECK(said("   name: b") == "4: line 4 is indented differently from the lines around it");
  CHECK(said("    name: b: c") == "4: a value with \": \" in it must stand in quotes");
}

TEST_CASE("load: what ships is valid", "[config]") {
  const auto c = good(default_yaml());
  REQUIRE(c.kernels.size() == 1);
  CHECK(c.kernels[0].agents.size() >= 2);
  good(source_file("config/examples/asking.yaml"));
  good(source_file("config/examples/context.yaml"));
  good(source_file("config/examples/improve.yaml"));
  good(source_file("config/examples/learning.yaml"));
  good(source_file("config/examples/mcp.yaml"));
  good(source_file("config/examples/minimal.yaml"));
  good(source_file("config/examples/ollama.yaml"));
  good(source_file("config/examples/planned.yaml"));
  good(source_file("config/examples/team.yaml"), {{"OPENAI_API_KEY", "k-1"}});
}

TEST_CASE("load: one node can be given ten thousand runs that wait for a model", "[config]") {
  const auto loaded = load_text(R"yaml(version: 1
node: {max_concurrent: 10000}
providers:
  - {provider_id: slow, base_url: "http://127.0.0.1:1/v1", model: m, max_concurrent: 10000}
kernels:
  - max_concurrent: 10000
    agents:
      - {agent_id: a, max_concurrent: 10000, executor: {type: chat, provider: slow}}
)yaml");
  INFO(texts(loaded));
  REQUIRE(loaded.value);
  CHECK(loaded.value->node_settings.max_concurrent == 10'000);
  CHECK(loaded.value->kernels.at(0).max_concurrent == 10'000);
  CHECK(loaded.value->kernels.at(0).agents.at(0).max_concurrent == 10'000);
}

TEST_CASE("load: a script's file of answers", "[config]") {
  const auto answers = load_answers("s.yaml", "- {output: 'a ${X}', delay: 1s}\n- {fail: flaky}\n");
  REQUIRE(answers.has_value());
  CHECK(*answers ==
        std::vector<script_executor::answer>{{"a ${X}", "", 1s, ""}, {"", "", 0s, "flaky"}});
  CHECK(load_answers("s.json", "[{\"output\": \"x\"}]").has_value());
  const auto wrong = load_answers("s.yaml", "- {output: a}\n- {outptu: b}\n");
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().where == "s.yaml:2:4");
  CHECK(wrong.error().what == "answers[1].outptu: unknown key; did you mean output?");
  for (const auto* text : {"", ",", "a: b", "[]", "- x", "- {fail: maybe}"}) {
    INFO(text);
    CHECK_FALSE(load_answers("s.yaml", text).has_value());
  }
}

TEST_CASE("a command that only asks keeps references to unset variables as text") {
  static const auto zones = boyd::adapters::make_time_zones();
  const auto lenient = [&](const std::string& text) {
    return load(
        "/etc/boyd.yaml", text, [](const std::string&) { return std::nullopt; }, *zones,
        unset_variables::stay_as_text);
  };
  const auto loaded =
      lenient(with_agent("        prompt: \"${FIRST} and ${SECOND:-two}, ${FIRST}, ${THIRD}\"\n"));
  REQUIRE(loaded.value);
  CHECK(loaded.value->kernels[0].agents[0].prompt == "${FIRST} and two, ${FIRST}, ${THIRD}");
  CHECK(loaded.unset == std::vector<std::string>{"FIRST", "THIRD"});
  CHECK_FALSE(lenient(with_agent("        prompt: \"${FIRST} ${\"\n")).value);
  CHECK(load_text(with_agent("        prompt: \"${FIRST}\"\n")).unset.empty());
}

} // namespace boyd::load_test
