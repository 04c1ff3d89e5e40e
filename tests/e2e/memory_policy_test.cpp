#include "program.hpp"
#include "skills_lab.hpp"
#include "support/pch.hpp"
#include "written_log.hpp"

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// What becomes of the texts that runs were given: boyd memory status, boyd memory apply, boyd
// replay --policy.

namespace boyd::memory_policy_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// A node that has learned about two texts.
struct learned_home {
  home_of_boyd home;

  learned_home() {
    const auto log = written_log::of_two_texts();
    std::filesystem::create_directories(home.file("knowledge"));
    write_file(home.file("knowledge/graph.jsonl"), log.text);
  }
  json run(std::vector<std::string> args) const {
    args.emplace_back("--json");
    const auto ran = home.run(args);
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    return ran.json();
  }
  std::map<std::string, std::string> actions() const {
    std::map<std::string, std::string> all;
    const auto status = run({"memory", "status"});
    for (const auto& i : status.at("items")) {
      CHECK_FALSE(i.at("reason").get<std::string>().empty());
      CHECK(i.at("confidence").is_number());
      all[i.at("path")] = i.at("action");
    }
    return all;
  }
};

} // namespace

TEST_CASE("memory policy: status says what would be done, apply does it once, in one commit",
          "[memory_policy]") {
  const learned_home f;
  auto actions = f.actions();
  REQUIRE(actions.size() == 2);
  CHECK(actions.at("bad.md") == "forget");
  CHECK(actions.at("good.md") == "promote_to_skill");
  CHECK_THAT(f.home.run({"memory", "status"}).out,
             Contains("not useful 8 times") && Contains("memory apply") &&
                 Contains("becomes a skill candidate by itself") && Contains("skills approve)"));

  // Nobody agreed.
  const auto asked = f.home.run({"memory", "apply"});
  CHECK(asked.code != 0);
  CHECK_THAT(asked.err, Contains("forget 1") && Contains("--yes"));
  CHECK(f.actions() == actions);

  // Forgetting is asked for apart.
  const auto most = f.run({"memory", "apply", "--yes"});
  REQUIRE(most.at("items").size() == 1);
  CHECK(most["items"][0]["action"] == "promote_to_skill");
  CHECK(most.at("commit").is_string());
  CHECK(f.actions().at("bad.md") == "forget");
  CHECK(f.actions().at("good.md") != "promote_to_skill");
  const auto rest = f.run({"memory", "apply", "--yes", "--force-forget"});
  CHECK(f.actions().at("bad.md") == "keep");
  CHECK_THAT(f.home.run({"memory", "apply", "--yes"}).out, Contains("Nothing to do"));

  const auto facts = f.run({"kg", "query", "--from", "ctx_bad.md", "--type", "managed_by"});
  REQUIRE(facts.at("facts").size() == 1);
  CHECK(facts["facts"][0]["meta"]["action"] == "forget");
  CHECK(f.run({"kg", "query", "--type", "promoted_to"}).at("facts").size() == 1);
  const auto log = f.home.run({"state", "log"});
  CHECK_THAT(log.out, Contains("memory policy: "));
  CHECK(f.run({"kg", "verify"}).at("ok") == true);
}

TEST_CASE("memory policy: what was done to a text is taken back", "[memory_policy]") {
  const learned_home f;
  f.run({"memory", "apply", "--yes", "--force-forget"});
  REQUIRE(f.actions().at("bad.md") == "keep");
  const auto done = f.home.run({"memory", "undo", "bad.md"});
  INFO(done.err);
  CHECK(done.code == 0);
  CHECK(done.out == "undone: bad.md: it was forgotten\n");
  // The rule is what it was, but a person has said no, and nothing has happened since.
  CHECK(f.actions().at("bad.md") == "keep");
  CHECK_THAT(f.run({"memory", "status"}).dump(),
             Contains("forget was undone, and nothing has changed since"));
  CHECK_THAT(f.home.run({"memory", "apply", "--yes", "--force-forget"}).out,
             Contains("Nothing to do"));
  CHECK_THAT(f.home.run({"state", "log"}).out, Contains("memory policy: 1 action"));
  const auto facts = f.run({"kg", "query", "--from", "ctx_bad.md", "--type", "managed_by"});
  REQUIRE(facts.at("facts").size() == 2);
  std::map<std::string, json> by_action;
  for (const auto& one : facts["facts"])
    by_action[one["meta"]["action"]] = one["meta"];
  CHECK(by_action.contains("forget"));
  CHECK_FALSE(by_action.at("undo").at("by").get<std::string>().empty());
  const auto again = f.home.run({"memory", "undo", "ctx_bad.md"});
  CHECK(again.code != 0);
  CHECK_THAT(again.err, Contains("done nothing with this text: ctx_bad.md"));
  CHECK(f.run({"kg", "verify"}).at("ok") == true);
}

TEST_CASE("memory policy: a write that fails, at whatever step, leaves all or nothing",
          "[memory_policy]") {
  const std::string point = GENERATE("graph_recorder.append", "graph_recorder.bytes",
                                     "graph_recorder.sync", "git_committer.commit");
  INFO(point);
  const learned_home f;
  const auto before = f.actions();
  const auto plain = read_file(f.home.file("boyd.yaml"));
  f.home.write_configuration(plain + "faults:\n  - {point: " + point + ", action: error}\n");
  program node(f.home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  (void)f.home.run({"memory", "apply", "--yes", "--force-forget"});
  const auto after = f.actions();
  CHECK((after == before ||
         (after.at("bad.md") == "keep" && after.at("good.md") != "promote_to_skill")));
  f.run({"memory", "apply", "--yes", "--force-forget"});
  CHECK(f.actions().at("bad.md") == "keep");
  node.signal(SIGTERM);
  REQUIRE(node.finish().code == 0);
  CHECK(f.run({"kg", "verify"}).at("ok") == true);
}

TEST_CASE("memory policy: what the configuration names, the node does after a cycle, once",
          "[memory_policy]") {
  const std::string kernel = "    memory: {policy: {auto: [summarize]}}\n";
  const skills_lab::learning_home h(kernel);
  h.say("Nothing.");
  h.cycles(9);
  CHECK(h.facts("managed_by").empty());
  h.cycles(1);
  const auto done = h.facts("managed_by");
  REQUIRE(done.size() == 1);
  CHECK(done[0]["meta"]["action"] == "summarize");
  CHECK(done[0]["meta"]["path"] == "docs/release.md");
  CHECK(done[0]["meta"]["by"] == "policy of the kernel (memory.policy.auto)");
  CHECK_THAT(h.prompt(), !Contains("shown as a summary"));
  h.cycles(2);
  CHECK(h.facts("managed_by").size() == 1);
  const auto stats = h.home.run({"memory", "status", "--json"}).json();
  CHECK(stats["items"][0]["reason"] == "summarize was done already");
  CHECK(h.home.run({"kg", "verify", "--json"}).json()["ok"] == true);
}

TEST_CASE("memory policy: a run takes nothing back", "[memory_policy]") {
  const skills_lab::learning_home h("    memory: {policy: {auto: [summarize]}}\n");
  h.say("Nothing.");
  h.cycles(10);
  REQUIRE(h.facts("managed_by").size() == 1);
  h.more(boyd_binary() + " --home " + h.home.path() +
         " memory undo docs/release.md >> said.txt 2>&1\n");
  program node(h.home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  h.cycles(1);
  node.signal(SIGTERM);
  REQUIRE(node.finish().code == 0);
  CHECK_THAT(read_file(h.repo.file("said.txt")), Contains("only a person can decide"));
  CHECK(h.facts("managed_by").size() == 1);
  // A person can.
  CHECK(h.home.run({"memory", "undo", "docs/release.md"}).code == 0);
  CHECK(h.facts("managed_by").size() == 2);
}

TEST_CASE("memory policy: nothing is done by itself that the configuration does not name",
          "[memory_policy]") {
  const skills_lab::learning_home h;
  h.say("Nothing.");
  h.cycles(10);
  CHECK(h.facts("managed_by").empty());
  h.home.write_configuration(
      skills_lab::yaml_of(h.repo.path(), "    memory: {policy: {auto: [forget]}}\n"));
  const auto refused = h.home.run({"config", "validate"});
  CHECK(refused.code != 0);
  CHECK_THAT(refused.out + refused.err, Contains("forget") && Contains("summarize"));
}

TEST_CASE("replay --policy: other numbers over the history, told as differences",
          "[memory_policy]") {
  const learned_home f;
  const auto policy = f.home.file("policy.yaml");
  write_file(policy, "{}\n");
  CHECK(f.run({"replay", "--policy", policy}).at("differences").empty());
  CHECK_THAT(f.home.run({"replay", "--policy", policy}).out,
             Contains("no differences in 76 facts"));
  write_file(policy, "stages:\n  bank_referenced: 20\n  candidate_referenced: 25\n");
  const auto other = f.run({"replay", "--policy", policy}).at("differences");
  std::map<std::string, json> by_what;
  for (const auto& d : other) {
    CHECK(d.at("path") == "good.md");
    by_what[d.at("what")] = d;
  }
  CHECK(by_what.at("bank").at("now") == "2026-01-13T00:00:00Z");
  CHECK(by_what.at("bank").at("then") == "2026-01-30T00:00:00Z");
  CHECK(by_what.at("candidate").at("then") == "2026-02-04T00:00:00Z");
  write_file(policy, "stages:\n  bank_refrenced: 20\n");
  const auto slip = f.home.run({"replay", "--policy", policy});
  CHECK(slip.code != 0);
  CHECK_THAT(slip.err, Contains("policy.yaml:2:3") && Contains("bank_referenced"));
  CHECK(f.home.run({"replay"}).code != 0);
}

TEST_CASE("replay --policy: runs that a planner would not have wanted, and what they were given",
          "[memory_policy]") {
  const skills_lab::learning_home h;
  h.cycles(3);
  const auto policy = h.repo.file("policy.yaml");
  write_file(policy, "planner: {least_minutes: 600}\n");
  const auto body = h.home.run({"replay", "--policy", policy, "--json"}).json();
  std::map<std::string, json> by_what;
  for (const auto& d : body["differences"])
    by_what[d["what"].get<std::string>()] = d;
  CHECK(by_what.at("runs")["path"] == "default/keeper");
  CHECK(by_what.at("runs")["now"] == "3");
  CHECK(by_what.at("runs")["then"] == "1");
  CHECK(by_what.at("given")["path"] == "docs/release.md");
  CHECK(by_what.at("given")["then"] == "1");
  CHECK(by_what.at("bank")["then"] == "never");
  CHECK_THAT(h.home.run({"replay", "--policy", policy}).out, Contains("TEXT OR AGENT"));
}

} // namespace boyd::memory_policy_test
