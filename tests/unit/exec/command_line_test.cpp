#include "boyd/exec/command_line.hpp"
#include "boyd/exec/requirements.hpp"
#include "boyd/exec/script.hpp"
#include "support/pch.hpp"

#include <algorithm>

namespace boyd::command_line_test {

using namespace boyd;
using namespace boyd::exec;

namespace {

run_identity someone() {
  return {.home = "/home/boyd",
          .kernel_home = "/home/boyd/kernel/default",
          .kernel_id = "default",
          .cycle_id = "c1",
          .agent_id = "daily-report",
          .dispatch_id = "d1",
          .attempt = 2,
          .fence = 5,
          .session_id = make_session_id("daily-report", "d1")};
}

std::optional<std::string> node_environment(const std::string& name) {
  const std::map<std::string, std::string> values = {
      {"PATH", "/bin"},    {"HOME", "/root"}, {"LC_TIME", "C"},
      {"SECRET_KEY", "k"}, {"WANTED", "w"},   {"BOYD_AGENT_ID", "outer"},
  };
  const auto found = values.find(name);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::string value_of(const process_spec& spec, const std::string& name) {
  for (const auto& [key, value] : spec.environment)
    if (key == name)
      return value;
  return "(unset)";
}

} // namespace

TEST_CASE("the environment is an allowlist, then env_pass, then env, then Boyd's own") {
  config::command_executor command;
  command.argv = {"report"};
  command.env_pass = {"WANTED", "MISSING"};
  command.env = {{"EXTRA", "e"}, {"HOME", "/other"}, {"BOYD_ATTEMPT", "99"}};
  const auto plan = build_command(command, "the prompt", someone(), node_environment);
  REQUIRE(plan.has_value());
  const auto& spec = plan->process;
  CHECK(value_of(spec, "PATH") == "/bin");
  CHECK(value_of(spec, "HOME") == "/other");
  CHECK(value_of(spec, "LC_TIME") == "C");
  CHECK(value_of(spec, "WANTED") == "w");
  CHECK(value_of(spec, "MISSING") == "(unset)");
  CHECK(value_of(spec, "SECRET_KEY") == "(unset)");
  CHECK(value_of(spec, "EXTRA") == "e");
  CHECK(value_of(spec, "BOYD_AGENT_ID") == "daily-report");
  CHECK(value_of(spec, "BOYD_ATTEMPT") == "2");
  CHECK(value_of(spec, "BOYD_FENCE") == "5");
  CHECK(value_of(spec, "BOYD_HOME") == "/home/boyd");
  CHECK(value_of(spec, "BOYD_SESSION_ID") == "kernel-daily-report-d1");
  CHECK(std::is_sorted(spec.environment.begin(), spec.environment.end()));
  CHECK(spec.input == "the prompt");
  CHECK(spec.cwd == "/home/boyd/kernel/default");
  CHECK_FALSE(plan->prompt.has_value());
  command.env = {{"A=B", "x"}};
  CHECK(build_command(command, "", someone(), node_environment).error().code ==
        errc::invalid_configuration);
}

TEST_CASE("placeholders in argv are replaced once; the prompt goes to a file when asked") {
  config::command_executor command;
  command.argv = {"tool", "--in={prompt_file}", "{agent_id}/{unknown}/{attempt}", "{{home}}"};
  command.cwd = "/srv";
  const auto plan = build_command(command, "-rf {agent_id}", someone(), node_environment);
  REQUIRE(plan.has_value());
  CHECK(plan->process.argv == std::vector<std::string>{"tool",
                                                       "--in=/home/boyd/run/prompts/d1-2.txt",
                                                       "daily-report/{unknown}/2", "{/home/boyd}"});
  CHECK(plan->process.input.empty());
  CHECK(plan->process.cwd == "/srv");
  REQUIRE(plan->prompt.has_value());
  CHECK(plan->prompt->path == "/home/boyd/run/prompts/d1-2.txt");
  CHECK(plan->prompt->content == "-rf {agent_id}");
}

TEST_CASE("a value that begins with a dash is refused; a shell is used only when asked for") {
  config::command_executor command;
  command.argv = {"tool", "{cycle_id}"};
  auto who = someone();
  who.cycle_id = "--force";
  CHECK(build_command(command, "", who, node_environment).error().code == errc::invalid_argument);
  command.argv.clear();
  CHECK(build_command(command, "", someone(), node_environment).error().code ==
        errc::invalid_configuration);
  command.shell = "echo {agent_id} $BOYD_AGENT_ID";
  const auto plan = build_command(command, "p", who, node_environment);
  REQUIRE(plan.has_value());
  CHECK(plan->process.argv ==
        std::vector<std::string>{"/bin/sh", "-c", "echo {agent_id} $BOYD_AGENT_ID"});
}

TEST_CASE("questions") {
  for (const auto* text : {"Shall I?", "**Continue?**", "Really (yes/no?)", "続けますか？",
                           "Let me know how to go on.", "Should I delete them"})
    CHECK_FALSE(check_no_question(text).passed);
  for (const auto* text : {"", "Done.", "Answered the question: what changed? Nothing."})
    CHECK(check_no_question(text).passed);
}

TEST_CASE("artifacts") {
  const utc_time start = from_unix_ms(1'000'000);
  file_info good{.kind = file_kind::regular, .size = 1, .modified = start};
  CHECK(check_artifact("x", good, start).passed);
  CHECK(check_artifact("x", good, start + artifact_clock_slack).passed);
  CHECK_FALSE(check_artifact("x", good, start + artifact_clock_slack + 1ms).passed);
  auto bad = good;
  bad.size = 0;
  CHECK(check_artifact("x", bad, start).text == "artifact x: is empty");
  bad = good;
  bad.kind = file_kind::symlink;
  CHECK(check_artifact("x", bad, start).text == "artifact x: is not a regular file");
  CHECK_FALSE(check_artifact("x", fail(errc::io_error, "EIO"), start).passed);
}

TEST_CASE("schemas: what validates passes, hostile input fails and nothing more") {
  const result<std::string> schema = std::string(
      R"({"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]})");
  CHECK(check_schema("s", schema, "{\"n\":2}", "").passed);
  CHECK(check_schema("s", schema, "text\n{\"n\":2}", "{\"n\":2}").passed);
  CHECK_FALSE(check_schema("s", schema, "{\"n\":0}", "").passed);
  CHECK(check_schema("s", schema, "plain", "plain").text ==
        "schema s: the output is not valid JSON");
  CHECK_FALSE(check_schema("s", schema, std::string(100'000, '['), "").passed);
  CHECK_FALSE(check_schema("s", std::string("{"), "{}", "").passed);
  CHECK_FALSE(check_schema("s", std::string(R"({"$ref":"http://x/y.json"})"), "{}", "").passed);
  CHECK_FALSE(check_schema("s", std::string(R"({"type":12})"), "{}", "").passed);
}

TEST_CASE("scripts: an array or lines") {
  auto answers = parse_script(R"([{"output":"a","delay":"250ms"},{"fail":"transient"}])", "f");
  REQUIRE(answers.has_value());
  REQUIRE(answers->size() == 2);
  CHECK(answers->at(0).delay == 250ms);
  CHECK(pick_answer(*answers, 0)->output == "a");
  CHECK(pick_answer(*answers, 3)->fail == "transient");
  CHECK(pick_answer({}, 3) == nullptr);
  answers = parse_script("# comment\n\n{\"summary\":\"s\",\"delay\":5}\n", "f");
  REQUIRE(answers.has_value());
  CHECK(answers->at(0).summary == "s");
  CHECK(answers->at(0).delay == 5ms);
  const auto where = [](const std::string& text) { return parse_script(text, "f").error().where; };
  CHECK(where("{}\n{\"outptu\":\"x\"}") == "f:2");
  CHECK(where("{\"fail\":\"bad\"}") == "f:1");
  CHECK(where("[{\"delay\":-1}]") == "f");
  CHECK(where("{\"delay\":\"soon\"}") == "f:1");
  CHECK_FALSE(parse_script(std::string(200'000, '['), "f").has_value());
  CHECK_FALSE(parse_script(std::string(max_script_bytes + 1, ' '), "f").has_value());
}

} // namespace boyd::command_line_test
