#include "boyd/core/text.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"
#include "boyd/tools/perform.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <algorithm>

namespace boyd::call_test {

using namespace boyd;
using namespace boyd::tools;

namespace {

std::string complaint(std::string_view tool, std::string_view arguments) {
  const auto call = read_call(tool, arguments);
  return call ? "none" : call.error().what;
}

template <class Call>
Call file(std::string_view tool, std::string_view arguments) {
  const auto call = read_call(tool, arguments);
  REQUIRE(call);
  return std::get<Call>(std::get<file_call>(*call));
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the built-in tools, in their fixed order, and no goal tool", "[tools]") {
  std::vector<std::string> names;
  for (const auto& d : built_in())
    names.push_back(d.name);
  // Another order would cost every agent its prompt cache.
  CHECK(names == std::vector<std::string>{"read_file", "write_file", "list_dir", "search_text",
                                          "run_command", "remember", "recall", "read_skill"});
  CHECK(find_built_in("kernel_goal") == nullptr);
  for (const auto& d : built_in()) {
    CHECK(d.name != "kernel_goal");
    CHECK_FALSE(mentions(d.name, "approve"));
    CHECK_FALSE(mentions(d.name, "goal"));
    const auto schema = nlohmann::json::parse(d.parameters_json);
    CHECK(schema["type"] == "object");
    CHECK(schema["additionalProperties"] == false);
  }
  CHECK(complaint("kernel_goal", "{}").starts_with("unknown built-in tool \"kernel_goal\""));
}

TEST_CASE("an agent is offered the tools that its patterns name, in the same order", "[tools]") {
  CHECK(offered({}).empty());
  CHECK(to_tools_json({}).empty());
  const auto some = offered({"write_file", "read_f*"});
  REQUIRE(some.size() == 2);
  CHECK(some[0].name == "read_file");
  const auto json = nlohmann::json::parse(to_tools_json(offered({"*"})));
  REQUIRE(json.size() == 8);
  CHECK(json[1]["type"] == "function");
  CHECK(json[1]["function"]["name"] == "write_file");
  CHECK(json[1]["function"]["parameters"]["required"] ==
        nlohmann::json::array({"path", "content"}));
  CHECK(to_tools_json(offered({"*"})) == to_tools_json(built_in()));
}

TEST_CASE("well-formed arguments are read", "[tools][call]") {
  const auto all = file<read_file_call>(
      "read_file", R"({"path":"a","offset":3,"limit":10.0,"line_numbers":true})");
  CHECK(all == read_file_call{"a", 3, 10, 0, true});
  CHECK(file<list_dir_call>("list_dir", "").path == ".");
  CHECK(file<list_dir_call>("list_dir", " null ").path == ".");
  CHECK(file<list_dir_call>("list_dir", R"({"path":null})").path == ".");
  CHECK(file<write_file_call>("write_file", R"({"path":"x","content":""})").content.empty());
  CHECK(file<search_text_call>("search_text", R"({"query":"a","ignore_case":true})").ignore_case);
  const auto run = read_call("run_command", R"({"argv":["ls","-l"],"timeout_seconds":5})");
  REQUIRE(run);
  CHECK(std::get<run_command_call>(*run) == run_command_call{{"ls", "-l"}, "", ".", 5});
}

TEST_CASE("case 53 llm-garbage: what is wrong with arguments is said, with what was expected",
          "[tools][call]") {
  CHECK(complaint("read_file", "{}") == "read_file: path is missing");
  CHECK(complaint("read_file", R"({"path":7})") == "read_file: path must be a string, not 7");
  CHECK(complaint("read_file", R"({"path":["a"]})") ==
        "read_file: path must be a string, not an array");
  CHECK(complaint("read_file", R"({"path":"a","offset":0})") ==
        "read_file: offset must be an integer from 1 to 1099511627776, not 0");
  CHECK(complaint("read_file", R"({"path":"a","offset":-1})").ends_with("not -1"));
  CHECK(complaint("read_file", R"({"path":"a","offset":1e300})").ends_with("not 1e+300"));
  CHECK(complaint("read_file", R"({"path":"a","limit":"ten"})").ends_with("the string \"ten\""));
  CHECK(complaint("read_file", R"({"path":"a","line_numbers":"yes"})") ==
        "read_file: line_numbers must be true or false, not the string \"yes\"");
  CHECK(complaint("write_file", R"({"path":"a","content":"b","append":true})") ==
        "write_file: unknown argument \"append\"; arguments: path content");
  CHECK(complaint("search_text", R"({"query":""})") == "search_text: query is empty");
  CHECK(complaint("run_command", "{}") == "run_command: use either argv or command");
  CHECK(complaint("run_command", R"({"argv":["a"],"command":"b"})") ==
        "run_command: use either argv or command");
  CHECK(mentions(complaint("run_command", R"({"argv":[1]})"), "an array of strings, not 1"));
  CHECK(mentions(complaint("run_command", R"({"argv":[]})"), "array of 1 to"));
  CHECK(mentions(complaint("run_command", R"({"argv":["a\u0000b"]})"), "NUL"));
  CHECK(mentions(complaint("run_command", R"({"argv":[""]})"), "program"));
  for (const auto* broken : {"[]", "7", "\"path\"", "{", "{\"path\":}", "{\"path\":\"\xFF\"}",
                             "{\"path\":\"\\ud800\"}", "{'path':'a'}"}) {
    INFO(broken);
    CHECK(mentions(complaint("read_file", broken), "must be one JSON object"));
  }
}

TEST_CASE("case 53 deep-json, huge: refused before they cost anything", "[tools][call]") {
  CHECK(mentions(complaint("read_file", std::string(100'000, '[')), "nested too deeply"));
  CHECK(mentions(complaint("read_file", R"({"path":)" + std::string(100'000, '[') +
                                            std::string(100'000, ']') + "}"),
                 "nested too deeply"));
  CHECK(mentions(complaint("write_file", std::string(argument_bytes + 1, ' ')), "longer than"));
  CHECK(mentions(complaint("read_file", R"({"path":")" + std::string(10'000, 'x') + "\"}"),
                 "at most 4095 bytes, not a string of 10000 bytes"));
  const std::string long_name(1000, 'n');
  CHECK(complaint("list_dir", "{\"" + long_name + "\":1}").size() < 200);
  CHECK(complaint(long_name, "{}").size() < 300);
}

TEST_CASE("any bytes are a call or a complaint", "[tools][call]") {
  CHECK(rc::check("call", [](const std::string& bytes) {
    for (const auto& d : built_in()) {
      const auto call = read_call(d.name, bytes);
      // RC_ASSERT may evaluate both sides of ||.
      RC_ASSERT((call.has_value() || !call.error().what.empty()));
    }
  }));
}

TEST_CASE("an action is what the policy can judge", "[tools][call]") {
  const auto action_for = [](std::string_view tool, std::string_view arguments) {
    return action_of(read_call(tool, arguments).value(), "/srv/repo");
  };
  CHECK(action_for("read_file", R"({"path":"./a/../b"})")->path == "b");
  CHECK(action_for("read_file", R"({"path":"/srv/repo/b"})")->path == "b");
  CHECK(action_for("list_dir", "{}")->path == ".");
  CHECK(action_for("write_file", R"({"path":"../b","content":""})").error().code == errc::refused);
  CHECK(action_for("read_file", R"({"path":"@results/x.txt"})")->path == "@results/x.txt");
  CHECK_FALSE(action_for("read_file", R"({"path":"@results/../../x"})"));
  CHECK(action_for("run_command", R"({"argv":["a","b"]})")->command == "a b");
  CHECK(action_for("run_command", R"({"argv":["a","b c","","d'e"]})")->command ==
        R"(a 'b c' '' 'd'\''e')");
  CHECK_FALSE(action_for("run_command", R"({"argv":["a"],"cwd":"./x/.."})")->elsewhere);
  CHECK(action_for("run_command", R"({"argv":["a"],"cwd":"x"})")->elsewhere);
  CHECK_FALSE(action_for("run_command", R"({"argv":["a"]})")->shell);
  CHECK(action_for("run_command", R"({"command":"a"})")->shell);
  CHECK_FALSE(action_for("run_command", R"({"command":"a","cwd":"/etc"})"));
}

TEST_CASE("a command is made of its call and nothing else", "[tools][call]") {
  const auto make = [](std::string_view arguments, milliseconds most) {
    const auto call = read_call("run_command", arguments);
    return command_of(std::get<run_command_call>(*call), "/srv/repo", {{"PATH", "/bin"}}, most);
  };
  const auto shell = make(R"({"command":"ls | wc","cwd":"src"})", 1h);
  REQUIRE(shell);
  CHECK(shell->process.argv == std::vector<std::string>{"/bin/sh", "-c", "ls | wc"});
  CHECK(shell->process.cwd == "/srv/repo/src");
  CHECK(shell->process.environment.size() == 1);
  CHECK(shell->timeout == 120s);
  const auto plain = make(R"({"argv":["ls"]})", 7s);
  CHECK(plain->process.argv == std::vector<std::string>{"ls"});
  CHECK(plain->process.cwd == "/srv/repo");
  CHECK(plain->timeout == 7s);
  CHECK(make(R"({"argv":["ls"]})", -1s)->timeout == 1ms);
  process_exit end;
  end.exit_code = 3;
  CHECK(command_text(end, "out\xFF", false) == "exit code 3\nout\xEF\xBF\xBD");
  end.signal = 9;
  CHECK(command_text(end, "", false) == "killed by signal 9\n");
  CHECK(mentions(command_text(end, "", true), "timed out"));
  end.started = false;
  end.start_error = "no such file";
  CHECK(command_text(end, "", false) == "not started: no such file\n");
}

} // namespace boyd::call_test
