#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

/// The examples with models, as their first lines say how to try them, on an endpoint of the test.

namespace {

std::string source_directory() {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  return top;
}

/// The home of one example.
class example_home {
 public:
  example_home(const std::string& example, std::map<std::string, std::string> environment)
      : environment_(std::move(environment)) {
    const auto made =
        run({"init", "--no-input", "--from", source_directory() + "/config/examples/" + example});
    INFO(made.err);
    REQUIRE(made.code == 0);
  }

  std::string file(const std::string& name) const { return directory_.file("home/" + name); }

  finished run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"--home", directory_.file("home")});
    return boyd_run(args, environment_);
  }

  json dispatch_of(const std::string& agent) const {
    const auto all = run({"dispatches", "ls", "--agent", agent, "--json"}).json();
    REQUIRE(all["items"].size() == 1);
    const std::string id = all["items"][0]["dispatch_id"];
    return run({"dispatches", "show", id, "--json"}).json()["dispatch"];
  }

 private:
  temp_dir directory_;
  std::map<std::string, std::string> environment_;
};

} // namespace

TEST_CASE("the example of Ollama keeps its page", "[e2e][examples]") {
  model_endpoint endpoint;
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "a", "write_file", R"({"path":"GOAL.md","content":"Rest."})")
                .tool_call(1, "b", "write_file", R"({"path":"notes/today.md","content":"Sow.\n"})")
                .finish("tool_calls")
                .usage()
                .done())
      .then(stream_answer("The page is up to date."));
  const example_home home("ollama.yaml", {{"OLLAMA_URL", endpoint.base_url()}});
  write_file(home.file("kernel/default/GOAL.md"), "Plan a garden.\n");
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  REQUIRE(cycle.code == 0);
  CHECK(read_file(home.file("kernel/default/notes/today.md")) == "Sow.\n");
  CHECK(read_file(home.file("kernel/default/GOAL.md")) == "Plan a garden.\n");
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 2);
  CHECK(asked[0].json["tools"].size() == 4);
  CHECK_THAT(asked[0].json["messages"][0]["content"].get<std::string>(),
             Contains("Plan a garden."));
  CHECK(home.dispatch_of("keeper")["verification"] == "passed");
}

TEST_CASE("the example of a team goes on with its fallback, under its policy", "[e2e][examples]") {
  model_endpoint main([](const model_request&) { return quota_exceeded(); });
  model_endpoint spare([](const model_request& r) {
    if (r.json.contains("response_format"))
      return stream_answer(R"({"verdict":"green","reasons":["the disk has room"]})");
    if (r.json["messages"].back()["role"] == "tool")
      return stream_answer("The report is written.");
    return chat_stream()
        .role()
        .tool_call(0, "a", "write_file", R"({"path":"notes/report.md","content":"All green.\n"})")
        .tool_call(1, "b", "run_command", R"({"command":"wc -c notes/report.md"})")
        .tool_call(2, "c", "run_command", R"({"command":"rm -r notes"})")
        .finish("tool_calls")
        .usage()
        .done();
  });
  const example_home home("team.yaml",
                          {{"TEAM_MODEL_URL", main.base_url()}, {"OLLAMA_URL", spare.base_url()}});
  const auto cycle = home.run({"cycle"});
  INFO(cycle.out << cycle.err);
  REQUIRE(cycle.code == 0);
  CHECK(main.requests_count() == 2); // each run tries the first choice once, then stays
  CHECK(read_file(home.file("kernel/default/notes/report.md")) == "All green.\n");
  for (const auto* agent : {"facts", "rules", "analyst", "editor"})
    CHECK(home.dispatch_of(agent)["status"] == "done");
  std::string turns;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home.file("executions")))
    if (entry.is_regular_file())
      turns += read_file(entry.path());
  CHECK_THAT(turns, Contains(R"("decision":"deny")"));
  CHECK(std::filesystem::exists(home.file("kernel/default/notes/facts.txt")));
  const auto cost = home.run({"cost", "--by", "model", "--json"}).json();
  REQUIRE(cost["items"].size() == 2);
  CHECK(std::ranges::any_of(cost["items"],
                            [](const json& row) { return row["key"] == "spare/qwen3:8b"; }));
}
