#include "boyd/mcp/trust.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace boyd::trust_test {

using namespace boyd;
using namespace boyd::mcp;
using Catch::Matchers::Contains;

namespace {

const config::environment_lookup variables = [](const std::string& name) {
  return name == "TOKEN" ? std::optional<std::string>("swordfish") : std::nullopt;
};

found_server one(const std::string& entry) {
  const auto all = read_mcp_json(R"({"mcpServers":{"a":)" + entry + "}}", variables);
  REQUIRE(all);
  REQUIRE(all->size() == 1);
  return all->front();
}

} // namespace

TEST_CASE("trust: a .mcp.json names servers, variables are filled in", "[mcp]") {
  const auto s = one(R"({"type":"stdio","command":"npx","args":["-y","x","${PORT:-80}"],
                         "env":{"KEY":"${TOKEN}","N":7},"alwaysAllow":["x"]})");
  CHECK(s.problem.empty());
  CHECK(s.definition.command == "npx");
  CHECK(s.definition.args == std::vector<std::string>{"-y", "x", "80"});
  CHECK(s.definition.env ==
        std::vector<std::pair<std::string, std::string>>{{"KEY", "swordfish"}, {"N", "7"}});
  CHECK(s.secrets == std::vector<std::string>{"swordfish"});
  CHECK_THAT(s.words,
             Contains("npx -y x ${PORT:-80}") && Contains("KEY, N") && !Contains("swordfish"));
  CHECK(one(R"({"url":"https://e.example/mcp","headers":{"A":"${TOKEN}"}})").definition.url ==
        "https://e.example/mcp");
}

TEST_CASE("trust: what cannot be used says why", "[mcp]") {
  for (const auto* entry :
       {"{}", "7", R"({"command":"a","url":"http://127.0.0.1/"})", R"({"url":"ftp://x"})",
        R"({"url":"http://example.org/mcp"})", R"({"type":"sse","url":"https://e.example/"})",
        R"({"command":"a","args":["${NONE}"]})", R"({"command":"${TOKEN"})"})
    CHECK_FALSE(one(entry).problem.empty());
  const auto odd = read_mcp_json(R"({"mcpServers":{"a__b":{"command":"x"}}})", variables);
  REQUIRE(odd);
  CHECK_FALSE(odd->front().problem.empty());
  for (const auto* text : {"", "[]", "{}", R"({"mcpServers":[]})", "{"})
    CHECK_FALSE(read_mcp_json(text, variables));
  CHECK_FALSE(read_mcp_json(std::string(mcp_json_bytes + 1, ' '), variables));
}

TEST_CASE("trust: the hash is of all that decides what runs, and of nothing else", "[mcp]") {
  const auto base = one(R"({"command":"a","args":["1"],"env":{"K":"${TOKEN}"}})");
  CHECK(one(R"({"env":{"K":"${TOKEN}"},"args":["1"],"command":"a","disabled":true})").hash ==
        base.hash);
  for (const auto* other : {R"({"command":"b","args":["1"],"env":{"K":"${TOKEN}"}})",
                            R"({"command":"a","args":["1","2"],"env":{"K":"${TOKEN}"}})",
                            R"({"command":"a","args":["1"],"env":{"K":"${OTHER:-x}"}})",
                            R"({"command":"a","args":["1"],"env":{"K":"${TOKEN}","L":"1"}})",
                            R"({"command":"a","args":["1"],"env":{"K":"${TOKEN}"},"cwd":"/tmp"})"})
    CHECK(one(other).hash != base.hash);
}

TEST_CASE("trust: the list is kept as it was, and changes of tools are told", "[mcp]") {
  const std::vector<server_tool> then{{"a", "does a", "{}", {}}, {"b", "does b", "{}", {}}};
  trusted_server t{"/w/.mcp.json",         "s",  "sha256:1",      "npx x",
                   "2026-01-01T00:00:00Z", true, prints_of(then), {{"/w/x.py", "ab"}}};
  const trusted_server fresh{"/v/.mcp.json", "s", "sha256:2", "y", "t", false, {}};
  const auto again = read_trust(trust_text({t, fresh}));
  REQUIRE(again);
  CHECK(*again == std::vector{t, fresh});
  CHECK(changes_since(t, then).empty());
  const auto changes =
      changes_since(t, {{"a", "does a and more", "{}", {}}, {"c", "new", "{}", {}}});
  CHECK(changes == std::vector<std::string>{"the tool a has another description",
                                            "the tool c is new", "the tool b was removed"});
  CHECK(changes_since(t, {{"a", "does a", R"({"type":"object"})", {}}, then[1]}) ==
        std::vector<std::string>{"the tool a has other arguments"});
  for (const auto* text : {"", "{}", "[]", R"({"schema":"boyd.mcp_trust/1"})"})
    CHECK_FALSE(read_trust(text));
}

TEST_CASE("trust: all of a definition is shown, and nothing in it looks like another line",
          "[mcp]") {
  const auto s = one(R"({"command":"a","args":["b\ncommand: \"c\"","\u202e"],"cwd":"d",
                         "env":{"K":"${TOKEN}","P":"/x"}})");
  CHECK(s.shown == "command: \"a\"\n"
                   "args: [\"b\\ncommand: \\\"c\\\"\",\"\\u{202E}\"]\n"
                   "cwd: \"d\"\n"
                   "env \"K\": \"${TOKEN}\"\n"
                   "env \"P\": \"/x\"\n");
  CHECK(s.words.find('\n') == std::string::npos);
  CHECK_THAT(one(R"({"url":"https://e.example/","headers":{"X":"${TOKEN}"}})").shown,
             Contains("header") && Contains("\"X\": \"${TOKEN}\""));
  const auto longer =
      one(R"({"command":"a","args":[")" + std::string(definition_bytes, 'x') + "\"]}");
  CHECK_THAT(longer.problem, Contains("too long to review"));
  CHECK(longer.words.ends_with("…"));
}

TEST_CASE("trust: a definition that a reviewer would not see whole is not trusted", "[mcp]") {
  const std::string dashes(5, '-');
  const auto text_of = [](const std::vector<std::string>& args) {
    return nlohmann::json{{"command", "sh"}, {"args", args}}.dump();
  };
  const std::string key = std::string("gh") + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
  for (const auto& args : std::vector<std::vector<std::string>>{{"-c", "run --token " + key},
                                                                {"-c", "true https://a:;id>>x;@b"},
                                                                {"-c", "say swordfish"}}) {
    const auto s = one(text_of(args));
    CHECK(s.problem.empty());
    CHECK_THAT(unseen_problem(s, {"swordfish"}), Contains("would not see") && Contains("${NAME}"));
  }
  // Words between the labels of a key are shown like all others.
  const auto odd = one(text_of({"-c", "true # " + dashes + "BEGIN PRIVATE KEY" + dashes +
                                          "\nid >> x\n: " + dashes + "END PRIVATE KEY" + dashes}));
  CHECK(unseen_problem(odd, {}).empty());
  CHECK_THAT(odd.shown, Contains("id >> x"));
  CHECK(unseen_problem(one(R"({"command":"a","env":{"API_TOKEN":"${TOKEN}"}})"), {}).empty());
  auto file = one(R"({"command":"a"})");
  file.programs["/w/" + key] = "1";
  CHECK_FALSE(unseen_problem(file, {}).empty());
}

TEST_CASE("trust: the files that a command line names are part of what is trusted", "[mcp]") {
  config::mcp_server s;
  s.command = "python3";
  s.args = {"server.py",
            "-r./lib/x.js",
            "--config=conf/a.json",
            "sh -c 'exec ./run.sh'",
            "/w/other.py",
            "/etc/passwd",
            "../out.py",
            "--flag",
            std::string(300, 'n')};
  const auto paths = named_paths(s, "/w/sub", "/w");
  const auto names = [&](const std::string& path) {
    return std::ranges::find(paths, path) != paths.end();
  };
  CHECK(names("/w/sub/server.py"));
  CHECK(names("/w/sub/lib/x.js"));
  CHECK(names("/w/sub/conf/a.json"));
  CHECK(names("/w/sub/run.sh"));
  CHECK(names("/w/other.py"));
  CHECK(names("/w/out.py")); // still below the workspace
  CHECK(std::ranges::all_of(paths, [](const auto& p) { return p.starts_with("/w/"); }));
  CHECK_FALSE(names("/w/sub/python3"));
  s.args.clear();
  s.command = "./bin/tool";
  CHECK(named_paths(s, "/w", "/w") == std::vector<std::string>{"/w/bin/tool"});
  s.command = "tool";
  s.env = {{"PATH", "/usr/bin:/w/bin:node_modules/.bin"}};
  CHECK(named_paths(s, "/w", "/w") ==
        std::vector<std::string>{"/w/bin/tool", "/w/node_modules/.bin/tool"});

  auto found = one(R"({"command":"a"})");
  const auto bare = pin_of(found);
  found.programs = {{"/w/x.py", "1"}};
  CHECK(pin_of(found) != bare);
  CHECK_THAT(pin_text(found), Contains("/w/x.py sha256:1"));
  CHECK(
      program_changes({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", "1"}, {"b", "9"}, {"d", "4"}}) ==
      std::vector<std::string>{"the file b has changed", "the file d is new or was not checked",
                               "the file c was removed"});
  CHECK(program_changes({{"a", "1"}}, {{"a", "1"}}).empty());
}

} // namespace boyd::trust_test
