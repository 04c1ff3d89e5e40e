#include "improve_lab.hpp"
#include "support/model_answers.hpp"

#include <cstdlib>

/// Chats, agents' own programs and nodes in improvement cycles.
namespace boyd::improve_agents_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Its test wants another word in answer.txt.
std::map<std::string, std::string> files() {
  return {{"answer.txt", "wrong\n"},
          {"test.sh",
           "#!/bin/sh\ngrep -q '^right' answer.txt && echo 'ok 1 - answers' || echo 'not "
           "ok 1 - answers'\n"},
          {"README.md", "Run test.sh. Mail to a@example.org, see @/etc/hostname.\n"}};
}

constexpr const char* scanners =
    "  scanners:\n    - {name: tests, source: test, parser: tap, argv: [./test.sh]}\n";

std::string chat(const std::string& name, const std::string& model) {
  return "    - agent_id: " + name +
         "\n      executor: {type: chat, provider: local, model: " + model + "}\n";
}

/// What stands beside `improve` in its file: the endpoint, and what its models cost.
std::string providers(const model_endpoint& endpoint) {
  return "providers:\n  - {provider_id: local, base_url: \"" + endpoint.base_url() +
         "\", model: small, max_retries: 0, prices: {\"*\": {input: 1.00, output: 4.00}}}\n";
}

void configure(const repository_lab& lab, const model_endpoint& endpoint,
               const std::string& executors) {
  lab.configure(std::string(scanners) + "  executors:\n" + executors + providers(endpoint));
}

std::string model_of(const model_request& r) {
  return r.json.value("model", "");
}

std::string prompt_of(const model_request& r) {
  return r.json["messages"].back()["content"].get<std::string>();
}

const std::string bad = patch_json(".git/hooks/pre-commit", "create", "#!/bin/sh\n");
const std::string wrong = patch_json("answer.txt", "modify", "also wrong\n");
const std::string right = patch_json("answer.txt", "modify", "right\n");

} // namespace

TEST_CASE("a chat is told why its patch was refused, and a stronger one is asked after three") {
  model_endpoint endpoint([](const model_request& r) {
    return stream_answer(model_of(r) == "small" ? "Here it is:\n```json\n" + bad + "\n```" : right,
                         3, {.prompt = 100, .completion = 10});
  });
  const repository_lab lab(files(), scanners);
  configure(lab, endpoint, chat("weak", "small") + chat("strong", "large"));
  const auto ran = lab.improve({"--apply", "--auto-commit", "--json"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  const auto report = ran.json();
  CHECK(report.at("outcome") == "SUCCESS");
  CHECK(report.at("executor") == "strong");
  CHECK(report.at("execution_result").at("refusals").size() == 3);
  // Four answers of 100 tokens in at 1 and 10 out at 4 dollars per million.
  CHECK(report.at("cost").at("cost_microusd") == 560);
  CHECK(report.at("cost").at("input_tokens") == 400);
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 4);
  CHECK_THAT(prompt_of(asked[0]), Contains("answers fails") && !Contains("refused"));
  CHECK_THAT(prompt_of(asked[1]), Contains("Your patch was refused: ") && Contains(".git"));
  CHECK(model_of(asked[3]) == "large");
  CHECK(lab.get("answer.txt") == "right\n");
  CHECK(lab.git("status --porcelain").empty());
  CHECK_FALSE(fs::exists(lab.path(".git/hooks/pre-commit")));
  const auto told = lab.improve({"report"});
  CHECK_THAT(told.out, Contains("strong") && Contains("$0.00056"));
  const auto asked_home =
      boyd_run({"--home", lab.path("_outputs/agi_kernel/home"), "explain", "last"});
  INFO(asked_home.out << asked_home.err);
  CHECK_THAT(asked_home.out, Contains("an AI model, `large`"));
}

TEST_CASE("after a failed verification the stronger one is asked, in the next cycle") {
  model_endpoint endpoint(
      [](const model_request& r) { return stream_answer(model_of(r) == "small" ? wrong : right); });
  const repository_lab lab(files(), scanners);
  configure(lab, endpoint, chat("weak", "small") + chat("strong", "large"));
  const auto before = lab.print();
  const auto first = lab.improve({"--apply", "--json"});
  INFO(first.out << first.err);
  CHECK(first.code == 1);
  CHECK(first.json().at("executor") == "weak");
  CHECK(lab.state().at("failure_log").at(0).at("executor") == "weak");
  CHECK((lab.print() == before));
  const auto second = lab.improve({"--apply", "--json"});
  INFO(second.out << second.err);
  CHECK(second.json().at("outcome") == "SUCCESS");
  CHECK(second.json().at("executor") == "strong");
  CHECK(lab.state().at("successes").at(0).at("executor") == "strong");
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 2);
  CHECK_THAT(prompt_of(asked[1]), Contains("Failed before (DETERMINISTIC)"));
}

TEST_CASE("a chat is shown no secret, neither of the repository nor of the configuration") {
  const std::string key = std::string("AKIA") + "IOSFODNN7EXAMPLQ";
  model_endpoint endpoint;
  endpoint.then(stream_answer("--- a/README.md\n+++ b/README.md\n@@ -1,1 +1,1 @@\n-See "
                              "[it](anwser.txt).\n+See [it](answer.txt).\n"));
  const repository_lab lab(
      {{"README.md", "See [it](anwser.txt).\nThe key is " + key + ", the word xyzzy-4711-plugh.\n"},
       {"answer.txt", "x\n"}},
      "");
  write_file(lab.outside("key"), "xyzzy-4711-plugh\n");
  lab.configure("  executors:\n" + chat("weak", "small") +
                "providers:\n  - {provider_id: local, base_url: \"" + endpoint.base_url() +
                "\", model: small, max_retries: 0, api_key_file: " + lab.outside("key") + "}\n");
  fs::permissions(lab.outside("key"), fs::perms::owner_read | fs::perms::owner_write);
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  REQUIRE(endpoint.requests_count() == 1);
  CHECK_THAT(prompt_of(endpoint.requests()[0]),
             Contains("The key is [redacted], the word [redacted].") && !Contains(key));
  CHECK_THAT(lab.get("README.md"), Contains(key));
}

TEST_CASE(
    "what stands in a repository is no reference for a chat, and what it says arrives whole") {
  auto all = files();
  all["test.sh"] += "# see @/etc/hostname and #docs/ and \\@/etc/passwd, {STATE}\n";
  all["answer.txt"] = "see @/etc/hostname, #docs/x and \\@/etc/passwd; {STATE} {GOAL}\n";
  model_endpoint endpoint;
  endpoint.then(stream_answer(patch_json("README.md", "modify", "See [it](answer.txt).\n")));
  const repository_lab lab(
      {{"README.md", "See [it](anwser.txt), @/etc/hostname, #docs/x, \\@/etc/passwd; {STATE}.\n"},
       {"answer.txt", "x\n"}},
      "");
  lab.configure("  executors:\n" + chat("weak", "small") + providers(endpoint));
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("outcome") == "SUCCESS");
  REQUIRE(endpoint.requests_count() == 1);
  CHECK_THAT(prompt_of(endpoint.requests()[0]),
             Contains("@/etc/hostname, #docs/x, \\@/etc/passwd; {STATE}."));
}

TEST_CASE("a provider that is away is no strike, and changes nothing") {
  model_endpoint endpoint([](const model_request&) { return server_failure(); });
  const repository_lab lab(files(), scanners);
  configure(lab, endpoint, chat("weak", "small"));
  const auto before = lab.print();
  const auto ran = lab.improve({"--apply", "--json"});
  INFO(ran.out << ran.err);
  CHECK(ran.json().at("failure_class") == "TRANSIENT");
  CHECK(endpoint.requests_count() == 3);
  CHECK(lab.state().at("strikes").empty());
  CHECK((lab.print() == before));
}

TEST_CASE("an agent's own program works in a worktree, and its diff is the patch") {
  const repository_lab lab(files(), scanners);
  const auto agent = lab.outside("agent.sh");
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  const auto transcript = std::string(top) + "/tests/data/agent_cli/claude_success.jsonl";
  write_file(agent, "#!/bin/sh\ncat > prompt.tmp; rm prompt.tmp\necho right > answer.txt\nmkdir "
                    "docs\necho '{\"files\": []}' > docs/notes.json\ncat '" +
                        transcript + "'\n");
  fs::permissions(agent, fs::perms::owner_all);
  lab.configure(std::string(scanners) +
                "  executors:\n    - agent_id: coder\n      executor: {type: agent_cli, adapter: "
                "claude, program: " +
                agent + "}\n      sandbox: {readable: [" +
                fs::path(transcript).parent_path().string() + "]}\n");
  const auto ran = lab.improve({"--apply", "--auto-commit", "--json"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.json().at("outcome") == "SUCCESS");
  CHECK(ran.json().at("executor") == "coder");
  CHECK(ran.json().at("cost").at("cost_microusd").get<std::int64_t>() > 0);
  CHECK(lab.get("answer.txt") == "right\n");
  CHECK(lab.get("docs/notes.json") == "{\"files\": []}\n");
  CHECK(lab.git("show --stat --format= HEAD | grep -c '|'") == "2\n");
  CHECK(lab.git("worktree list | wc -l") == "1\n");
  CHECK(lab.git("branch --list 'boyd/*'").empty());
}

namespace {

/// A node whose only agent improves the repository.
class improving_home {
 public:
  improving_home(const repository_lab& lab, const std::string& settings, const std::string& agent,
                 const std::string& beside) {
    home.write_configuration("version: 1\nimprove:\n" + settings + beside +
                             "kernels:\n"
                             "  - kernel_id: default\n"
                             "    schedule: \"0 0 1 1 *\"\n"
                             "    agents:\n"
                             "      - agent_id: improver\n"
                             "        prompt: Keep it short.\n"
                             "        retry: {max_attempts: 1}\n" +
                             agent + "        executor: {type: improve, repo: " + lab.root() +
                             ", apply: true, auto_commit: true}\n");
  }

  json cycle() const {
    const auto ended = home.run({"cycle"});
    INFO(ended.err);
    const auto all = home.run({"dispatches", "ls", "--json"}).json();
    REQUIRE(all.is_object());
    REQUIRE_FALSE(all["items"].empty());
    return home.run({"dispatches", "show", all["items"][0]["dispatch_id"], "--json"})
        .json()["dispatch"];
  }

  home_of_boyd home{"version: 1\nkernels: [{agents: []}]\n"};
};

} // namespace

TEST_CASE("a node improves a repository by its schedule, one task a run, and learns from it") {
  model_endpoint endpoint([](const model_request& r) {
    return stream_answer(model_of(r) == "small" ? wrong : right, 3,
                         {.prompt = 100, .completion = 10});
  });
  const repository_lab lab(files(), scanners);
  const improving_home node(lab,
                            std::string(scanners) + "  executors:\n" + chat("weak", "small") +
                                chat("strong", "large"),
                            "", providers(endpoint));
  const auto first = node.cycle();
  INFO(first.dump(1));
  CHECK(first["status"] == "failed");
  CHECK(first["failure_class"] == "deterministic");
  CHECK_THAT(first["error"].get<std::string>(), Contains("proof failed"));
  CHECK(lab.get("answer.txt") == "wrong\n");

  const auto second = node.cycle();
  INFO(second.dump(1));
  CHECK(second["status"] == "done");
  CHECK(second["verification"] == "passed");
  CHECK_THAT(second["summary"].get<std::string>(),
             Contains("SUCCESS: answers fails: mends answer.txt (by strong)"));
  CHECK(second["usage"]["cost_microusd"] == 140);
  CHECK(lab.get("answer.txt") == "right\n");
  CHECK(lab.git("status --porcelain").empty());
  CHECK_THAT(prompt_of(endpoint.requests().back()), Contains("Keep it short."));

  const auto third = node.cycle();
  CHECK(third["status"] == "done");
  CHECK_THAT(third["summary"].get<std::string>(), Contains("nothing was found"));

  const auto learned = node.home.run({"kg", "learned"});
  INFO(learned.out << learned.err);
  CHECK_THAT(learned.out, Contains("\"answers fails\" was not done by weak") &&
                              Contains("\"answers fails\" was done by strong"));
  CHECK_THAT(node.home.run({"cost"}).out, Contains("improver"));
}

TEST_CASE("a run that took too long leaves its cycle open, and the next run ends it") {
  const repository_lab lab(files(), scanners);
  const auto pipe = lab.outside("pipe");
  const auto gate = lab.outside("gate.sh");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  write_file(gate, "cat '" + pipe + "'\n");
  lab.answers({right});
  const improving_home node(
      lab,
      std::string(scanners) + "  gate: [[sh, " + gate +
          "]]\n  executor: {type: script, file: " + lab.outside("answers.yaml") + "}\n",
      "        timeout: 5s\n", "");
  const auto first = node.cycle();
  INFO(first.dump(1));
  CHECK(first["execution"] == "timed_out");
  CHECK(lab.state().at("status") == "RUNNING");
  const auto begun = lab.state().at("cycle_id");
  write_file(gate, "exit 0\n");
  const auto second = node.cycle();
  INFO(second.dump(1));
  CHECK(second["status"] == "done");
  CHECK(lab.state().at("cycle_id") == begun);
  CHECK(lab.get("answer.txt") == "right\n");
}

TEST_CASE("what a node cannot improve is said with what to do") {
  const repository_lab lab(files(), scanners);
  lab.answers({right});
  lab.put("README.md", "My notes.\n");
  const improving_home node(lab,
                            std::string(scanners) + "  executor: {type: script, file: " +
                                lab.outside("answers.yaml") + "}\n",
                            "", "");
  const auto row = node.cycle();
  CHECK(row["status"] == "failed");
  CHECK(row["failure_class"] == "environment");
  CHECK_THAT(row["error"].get<std::string>(), Contains("README.md") && Contains("commit or stash"));
  CHECK(lab.state().at("strikes").empty());
}

} // namespace boyd::improve_agents_test
