#include "loading.hpp"
#include "support/pch.hpp"

namespace boyd::mcp_test {

using namespace boyd;
using namespace boyd::config;
using namespace boyd::config::testing;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

std::string servers(const std::string& entries, const std::string& agent = {}) {
  return "version: 1\nmcpServers:\n" + entries +
         "providers:\n  - {provider_id: p, preset: ollama, model: m}\n"
         "kernels:\n  - agents:\n      - agent_id: a\n        executor: {type: chat, provider: "
         "p}\n" +
         agent;
}

configuration good(const std::string& text, const variables& environment = {}) {
  auto result = load_text(text, environment);
  INFO(texts(result));
  REQUIRE(result.value.has_value());
  return std::move(*result.value);
}

void bad(const std::string& entries, const std::string& key) {
  const auto result = load_text(servers(entries));
  INFO(texts(result));
  INFO(key);
  CHECK_FALSE(result.value.has_value());
  const auto* found = about(result, key);
  REQUIRE(found != nullptr);
  CHECK(found->line > 0);
}

} // namespace

TEST_CASE("mcpServers: every key arrives where it belongs", "[config]") {
  const auto c = good(servers(R"(  files:
    type: stdio
    command: ./bin/server
    args: ["-y", 7, "{workspace}"]
    env: {API_TOKEN: "${TOKEN}", PLAIN: text}
    env_pass: [SSH_AUTH_SOCK]
    cwd: "{workspace}/sub"
    optional: true
    start_timeout: 5s
    call_timeout: 1m
    idle_timeout: 1h
  web: {url: "http://127.0.0.1:1/mcp", headers: {Authorization: "Bearer ${TOKEN}", X: y}}
)",
                              "        mcp_json: true\n        tools: [\"mcp__files__*\"]\n"),
                      {{"TOKEN", "swordfish-4711"}});
  REQUIRE(c.mcp_servers.size() == 2);
  const auto* files = find_mcp_server(c, "files");
  REQUIRE(files != nullptr);
  CHECK(files->command == "/etc/boyd/bin/server");
  CHECK(files->args == std::vector<std::string>{"-y", "7", "{workspace}"});
  CHECK(files->env == std::vector<std::pair<std::string, std::string>>{
                          {"API_TOKEN", "swordfish-4711"}, {"PLAIN", "text"}});
  CHECK(files->env_pass == std::vector<std::string>{"SSH_AUTH_SOCK"});
  CHECK(files->cwd == "{workspace}/sub");
  CHECK(files->optional);
  CHECK(files->start_timeout == 5s);
  CHECK(files->call_timeout == 1min);
  CHECK(files->idle_timeout == 1h);
  const auto* web = find_mcp_server(c, "web");
  REQUIRE(web != nullptr);
  CHECK(web->headers.size() == 2);
  // What is not said is what the values have by themselves.
  mcp_server plain;
  plain.name = "web";
  plain.url = web->url;
  plain.headers = web->headers;
  CHECK(*web == plain);
  CHECK(c.kernels[0].agents[0].mcp_json);
  CHECK(find_mcp_server(c, "none") == nullptr);
  CHECK_FALSE(good(servers("  a: {command: x}\n")).kernels[0].agents[0].mcp_json);
  // Secrets are redacted wherever the configuration is shown.
  CHECK(c.redacted_yaml.find("swordfish") == std::string::npos);
  CHECK(std::find(c.secrets.begin(), c.secrets.end(), "swordfish-4711") != c.secrets.end());
}

TEST_CASE("mcpServers: what is wrong is found", "[config]") {
  bad("  a__b: {command: x}\n", "mcpServers.a__b");
  bad("  -a: {command: x}\n", "mcpServers.-a");
  bad("  a: {args: [x]}\n", "mcpServers.a");
  bad("  a: {command: x, url: \"http://127.0.0.1/\"}\n", "mcpServers.a");
  bad("  a: {url: \"ftp://x\"}\n", "mcpServers.a.url");
  bad("  a: {url: \"http://example.org/mcp\"}\n", "mcpServers.a.url");
  bad("  a: {type: sse, url: \"https://example.org/sse\"}\n", "mcpServers.a.type");
  bad("  a: {type: http, command: x}\n", "mcpServers.a.type");
  bad("  a: {type: stdio, url: \"https://example.org/\"}\n", "mcpServers.a.type");
  bad("  a: {command: x, headers: {A: b}}\n", "mcpServers.a.headers");
  bad("  a: {url: \"https://example.org/\", env: {A: b}}\n", "mcpServers.a.env");
  bad("  a: {url: \"https://example.org/\", headers: {Mcp-Session-Id: b}}\n",
      "mcpServers.a.headers.Mcp-Session-Id");
  bad("  a: {command: x, comand: y}\n", "mcpServers.a.comand");
  good(servers("  a: {url: \"http://example.org/mcp\", allow_plain_http: true}\n"));
  good(servers("  a: {type: streamable-http, url: \"https://example.org/mcp\"}\n"));
}

TEST_CASE("mcpServers: names", "[config]") {
  for (const auto* name : {"a", "files", "a_b", "a-b-1", "A9"})
    CHECK(is_mcp_name(name));
  for (const auto* name : {"", "_a", "a_", "a__b", "a b", "a.b", "-a", "ä"})
    CHECK_FALSE(is_mcp_name(name));
  CHECK(is_mcp_name(std::string(mcp_name_bytes, 'x')));
  CHECK_FALSE(is_mcp_name(std::string(mcp_name_bytes + 1, 'x')));
}

} // namespace boyd::mcp_test
