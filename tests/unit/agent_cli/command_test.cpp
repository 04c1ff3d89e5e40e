#include "boyd/exec/cli_command.hpp"
#include "support.hpp"

#include <nlohmann/json.hpp>

namespace boyd::command_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;

namespace {

exec::run_identity someone() {
  exec::run_identity who;
  who.home = "/home/boyd";
  who.kernel_home = "/home/boyd/kernel/default";
  who.kernel_id = "default";
  who.cycle_id = "c1";
  who.agent_id = "a";
  who.dispatch_id = "d1";
  who.session_id = "kernel-a-d1-1";
  return who;
}

result<exec::command_plan> build(const config::agent_cli_executor& cli, exec::cli_run run) {
  return exec::build_agent_command(cli, std::move(run), someone(),
                                   [](const std::string&) { return std::nullopt; });
}

std::string variable(const exec::command_plan& plan, const std::string& name) {
  for (const auto& [key, value] : plan.process.environment)
    if (key == name)
      return value;
  return "(none)";
}

using argv = std::vector<std::string>;

} // namespace

TEST_CASE("claude: the exact call", "[agent_cli]") {
  auto cli = built_in("claude");
  auto plan = build(cli, {.prompt = "-p is no flag here", .session = {}, .directory = {}});
  REQUIRE(plan);
  CHECK(plan->process.argv == argv{"claude", "-p", "--output-format=stream-json", "--verbose"});
  CHECK(plan->process.input == "-p is no flag here");
  CHECK_FALSE(plan->prompt);
  CHECK(plan->process.cwd == "/home/boyd/kernel/default");
  CHECK(variable(*plan, "DISABLE_AUTOUPDATER") == "1");
  CHECK(variable(*plan, "BOYD_AGENT_ID") == "a");
  cli.model = "sonnet";
  cli.permission = "acceptEdits";
  cli.args = {"--max-turns=5", "x"};
  cli.program = "/opt/claude";
  cli.env = {{"DISABLE_AUTOUPDATER", "0"}};
  plan = build(cli, {.prompt = "p", .session = "-rf", .directory = "/srv/tree"});
  REQUIRE(plan);
  CHECK(plan->process.argv == argv{"/opt/claude", "-p", "--output-format=stream-json", "--verbose",
                                   "--model=sonnet", "--permission-mode=acceptEdits",
                                   "--resume=-rf", "--max-turns=5", "x"});
  CHECK(plan->process.cwd == "/srv/tree");
  CHECK(variable(*plan, "DISABLE_AUTOUPDATER") == "0");
}

TEST_CASE("codex: a group goes together, and a value never becomes a flag", "[agent_cli]") {
  const auto cli = built_in("codex");
  auto plan = build(cli, {.prompt = "p", .session = {}, .directory = {}});
  REQUIRE(plan);
  CHECK(plan->process.argv ==
        argv{"codex", "exec", "--json", "--color=never", "--skip-git-repo-check",
             "--config=sandbox_workspace_write.exclude_slash_tmp=true",
             "--config=sandbox_workspace_write.exclude_tmpdir_env_var=true", "-"});
  plan = build(cli, {.prompt = "p", .session = "01a2", .directory = {}});
  REQUIRE(plan);
  CHECK(plan->process.argv == argv{"codex", "exec", "--json", "--color=never",
                                   "--skip-git-repo-check",
                                   "--config=sandbox_workspace_write.exclude_slash_tmp=true",
                                   "--config=sandbox_workspace_write.exclude_tmpdir_env_var=true",
                                   "resume", "01a2", "-"});
  const auto refused = build(cli, {.prompt = "p", .session = "--yolo", .directory = {}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::invalid_configuration);
  CHECK(refused.error().what.find("would be read as a flag") != std::string::npos);
}

TEST_CASE("gemini, goose, opencode: the exact calls", "[agent_cli]") {
  auto gemini = built_in("gemini");
  gemini.permission = "auto_edit";
  CHECK(build(gemini, {.prompt = "p", .session = "s", .directory = {}})->process.argv ==
        argv{"gemini", "--output-format=stream-json", "--approval-mode=auto_edit", "--skip-trust",
             "--resume=s"});
  gemini.permission.clear();
  CHECK(build(gemini, {.prompt = "p", .session = {}, .directory = {}})->process.argv ==
        argv{"gemini", "--output-format=stream-json"});
  auto goose = built_in("goose");
  auto plan = build(goose, {.prompt = "p", .session = {}, .directory = {}});
  CHECK(plan->process.argv ==
        argv{"goose", "run", "--no-session", "--quiet", "--output-format=stream-json", "-i", "-"});
  CHECK(variable(*plan, "GOOSE_MODE") == "(none)");
  goose.permission = "smart_approve";
  CHECK(variable(*build(goose, {.prompt = "p", .session = {}, .directory = {}}), "GOOSE_MODE") ==
        "smart_approve");
  auto opencode = built_in("opencode");
  opencode.permission = "auto";
  opencode.model = "local/m";
  CHECK(build(opencode, {.prompt = "p", .session = {}, .directory = {}})->process.argv ==
        argv{"opencode", "run", "--format=json", "--model=local/m", "--auto"});
}

TEST_CASE("the prompt as JSON, and as a file", "[agent_cli]") {
  const auto text = R"(adapters:
  - name: mine
    argv: [mine, "--dir={workspace}"]
    stdin: stream-json
    stdin_json: '{"type":"user","n":1,"content":["{prompt}","x"]}'
    events: [{when: {/type: end}, final: true}]
  - name: files
    argv: [mine, "{prompt_file}"]
    stdin: none
    events: [{when: {/type: end}, final: true}]
)";
  const auto mine =
      executor_of(load_text(with_executor("{type: agent_cli, adapter: mine, cwd: /srv/x}", text)));
  const auto plan = build(mine, {.prompt = "say \"hi\"\n", .session = {}, .directory = {}});
  REQUIRE(plan);
  CHECK(plan->process.argv == argv{"mine", "--dir=/srv/x"});
  CHECK(nlohmann::json::parse(plan->process.input) ==
        nlohmann::json::parse(R"({"type":"user","n":1,"content":["say \"hi\"\n","x"]})"));
  const auto files =
      executor_of(load_text(with_executor("{type: agent_cli, adapter: files}", text)));
  const auto by_file = build(files, {.prompt = "p", .session = {}, .directory = {}});
  REQUIRE(by_file);
  CHECK(by_file->process.input.empty());
  REQUIRE(by_file->prompt);
  CHECK(by_file->prompt->content == "p");
  CHECK(by_file->process.argv == argv{"mine", by_file->prompt->path});
}

} // namespace boyd::command_test
