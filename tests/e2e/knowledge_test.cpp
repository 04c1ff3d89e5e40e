#include "boyd/graph/edge_log.hpp"
#include "program.hpp"
#include "support/pch.hpp"
#include "written_log.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

// Questions about the log of facts: boyd kg, boyd graph.

namespace boyd::knowledge_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// Two agents that read a file; one of them names it in its answer.
std::string yaml(const std::string& workspace) {
  return "version: 1\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: reader\n"
         "        prompt: Say what the guide says.\n"
         "        context: [\"@guide.md\", \"@other.md\"]\n"
         "        executor: {type: command, cwd: " +
         workspace +
         ", argv: [\"sh\", \"-c\", \"cat >/dev/null; echo '[Reference] file: guide.md "
         "(guide.md)'\"]}\n"
         "      - agent_id: plain\n"
         "        prompt: Do it.\n"
         "        executor: {type: command, argv: [\"true\"]}\n";
}

struct knowing_home {
  temp_dir workspace;
  home_of_boyd home{yaml(workspace.path())};

  knowing_home() {
    write_file(workspace.file("guide.md"), "Ring the bell twice before you open the gate.\n");
    write_file(workspace.file("other.md"), "Nothing of interest.\n");
    for (int i = 0; i < 2; ++i)
      REQUIRE(home.run({"cycle"}).code == 0);
  }
  json kg(std::vector<std::string> args) const {
    args.insert(args.begin(), "kg");
    args.emplace_back("--json");
    const auto ran = home.run(args);
    INFO(ran.out << ran.err);
    REQUIRE(ran.code == 0);
    return ran.json();
  }
  /// The line of the log that an answer cites.
  json cited(const json& row) const {
    const auto place = row.at("line").get<std::string>();
    const auto colon = place.find(':');
    const auto text = read_file(home.file("knowledge/" + place.substr(0, colon)));
    std::size_t at = 0;
    for (auto n = std::stoul(place.substr(colon + 1)); n > 1; --n)
      at = text.find('\n', at) + 1;
    return json::parse(text.substr(at, text.find('\n', at) - at));
  }
};

} // namespace

TEST_CASE("kg: every statement cites its line, with a node and without", "[knowledge]") {
  const knowing_home f;
  const auto trace = f.kg({"trace", "reader"});
  REQUIRE(trace.at("contexts").size() == 2);
  for (const auto& c : trace.at("contexts")) {
    const auto fact = f.cited(c);
    CHECK(fact.at("type") == "used_in");
    CHECK(fact.at("from") == c.at("id"));
    CHECK(fact.at("to") == trace.at("execution"));
    CHECK(c.at("cited") == (c.at("path") == "guide.md"));
  }
  CHECK(f.cited(trace.at("outcome")).at("type") == "resulted_in");
  CHECK(trace.at("skills").empty());
  CHECK(trace.at("promotions").empty());

  const auto stats = f.kg({"stats"});
  REQUIRE(stats.at("items").size() == 2);
  CHECK(stats["items"][0]["path"] == "guide.md");
  CHECK(stats["items"][0]["used"] == 2);
  CHECK(stats["items"][0]["validated"] == 2);
  CHECK(stats["items"][0]["stage"] == "context");
  CHECK(stats["items"][1]["used"] == 0);
  CHECK(stats["items"][1]["last_used"].is_null());

  CHECK_THAT(f.home.run({"kg", "why", "reader"}).out,
             Contains("guide.md") && Contains("graph.jsonl:") &&
                 Contains("It read 1 more item, but did not use it."));
  CHECK_THAT(f.home.run({"kg"}).out, Contains("4 runs: 4 succeeded, 0 failed."));
  CHECK(f.kg({"query", "--type", "decided_by"}).at("facts").size() == 4);
  CHECK_THAT(f.home.run({"kg", "findings"}).out, Contains("Nothing to review"));
  const auto unknown = f.home.run({"kg", "why", "nobody"});
  CHECK(unknown.code == 1);
  CHECK_THAT(unknown.err, Contains("nobody") && Contains("next: "));

  program node(f.home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  CHECK(f.kg({"trace", "reader"}) == trace);
  CHECK(f.kg({"stats"}) == stats);
  CHECK(f.kg({"verify"}).at("ok") == true);
}

TEST_CASE("kg verify: a log that was changed, cut or lost is named", "[knowledge]") {
  const knowing_home f;
  const auto log = f.home.file("knowledge/graph.jsonl");
  const auto sound = read_file(log);
  const auto whole = f.kg({"verify"});
  CHECK(whole.at("ok") == true);
  CHECK(whole.at("segments") == 1);
  CHECK(whole.at("facts") == std::count(sound.begin(), sound.end(), '\n'));
  const auto last = "graph.jsonl:" + std::to_string(std::count(sound.begin(), sound.end(), '\n'));
  CHECK(whole.at("confirmed").at("line") == last);
  CHECK(whole.at("unconfirmed") == 0);
  CHECK(whole.at("not_proved").is_null());
  CHECK_THAT(f.home.run({"kg", "verify"}).out,
             Contains("nothing was changed or removed; confirmed up to " + last + " by commit ") &&
                 !Contains("not in a commit"));
  const auto fails_with = [&](const std::string& text, const std::string& words) {
    write_file(log, text);
    const auto ran = f.home.run({"kg", "verify"});
    INFO(ran.out << ran.err);
    CHECK(ran.code == 1);
    CHECK_THAT(ran.out, Contains(words));
  };
  // A file without lines keeps none.
  const auto empty = f.home.file("knowledge/graph.foreign-x-line-5.jsonl");
  write_file(empty, "");
  CHECK(f.kg({"verify"}).at("ok") == true);
  write_file(empty, "{}\n");
  CHECK_THAT(f.home.run({"kg", "verify"}).out, Contains("foreign: 1 line (3 bytes)"));
  std::filesystem::remove(empty);
  auto changed = sound;
  changed.replace(changed.find("guide.md"), 8, "other.md");
  fails_with(changed, "graph.jsonl:");
  fails_with(sound.substr(0, sound.rfind('\n', sound.size() - 2) + 1), "head_missing");
  fails_with(sound.substr(sound.find('\n') + 1), "graph.jsonl:1: removed");
  std::filesystem::remove(log);
  CHECK(f.home.run({"kg", "verify"}).code == 1);
}

TEST_CASE("kg verify: lines of a version without seals are not called proved", "[knowledge]") {
  const temp_dir workspace;
  write_file(workspace.file("guide.md"), "Ring the bell.\n");
  write_file(workspace.file("other.md"), "Nothing.\n");
  const home_of_boyd home(yaml(workspace.path()));
  const auto log = written_log::of_two_texts();
  const auto lines = std::count(log.text.begin(), log.text.end(), '\n');
  std::filesystem::create_directories(home.file("knowledge"));
  write_file(home.file("knowledge/graph.jsonl"), log.text);
  const auto words = "lines 1–" + std::to_string(lines) +
                     " were written by an older version without seals: they are not proved";
  const auto before = home.run({"kg", "verify"});
  CHECK(before.code == 0);
  CHECK_THAT(before.out, Contains(words) && !Contains("nothing was changed"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto after = home.run({"kg", "verify"});
  CHECK(after.code == 0);
  CHECK_THAT(after.out, Contains(words + "; of the newer ones nothing was changed or removed; "
                                         "confirmed up to graph.jsonl:"));
  const auto verified = home.run({"kg", "verify", "--json"}).json();
  CHECK(verified.at("not_proved").at("lines") == lines);
  CHECK(verified.at("not_proved").at("until") == "graph.jsonl:" + std::to_string(lines));
}

TEST_CASE("kg verify: facts behind the newest commit are not called confirmed", "[knowledge]") {
  const knowing_home f;
  const auto log = f.home.file("knowledge/graph.jsonl");
  auto text = read_file(log);
  const auto confirmed = f.kg({"verify"}).at("confirmed");
  const auto begin = text.rfind('\n', text.size() - 2) + 1;
  auto chain = graph::edge_chain::resume(text.substr(begin, text.size() - 1 - begin)).value();
  for (int newer = 1; newer <= 2; ++newer) {
    const auto to = "decision_" + std::to_string(newer);
    text +=
        chain.append({"ctx_1", to, "managed_by", utc_time{milliseconds{1}}, "{}"}).value() + "\n";
    write_file(log, text);
    const auto verified = f.kg({"verify"});
    CHECK(verified.at("ok") == true);
    CHECK(verified.at("confirmed") == confirmed);
    CHECK(verified.at("unconfirmed") == newer);
    CHECK_THAT(f.home.run({"kg", "verify"}).out,
               Contains("confirmed up to " + confirmed.at("line").get<std::string>() +
                        " by commit " + confirmed.at("commit").get<std::string>().substr(0, 12)) &&
                   Contains(newer == 1 ? "; 1 newer fact is not in a commit yet"
                                       : "; 2 newer facts are not in a commit yet"));
  }
  REQUIRE(f.home.run({"cycle"}).code == 0);
  CHECK(f.kg({"verify"}).at("unconfirmed") == 0);
  CHECK(f.kg({"verify"}).at("confirmed") != confirmed);
}

TEST_CASE("kg: a log in several segments, one of them compressed, answers the same",
          "[knowledge]") {
  const knowing_home f;
  const auto before = f.kg({"stats"});
  const auto log = f.home.file("knowledge/graph.jsonl");
  const auto text = read_file(log);
  const auto half = text.find('\n', text.size() / 2) + 1;
  write_file(log, text.substr(0, half));
  write_file(f.home.file("knowledge/graph-000002.jsonl"), text.substr(half));
  REQUIRE(std::system(("zstd -q --rm '" + log + "'").c_str()) == 0);
  CHECK(f.kg({"stats"}) == before);
  CHECK(f.kg({"verify"}).at("segments") == 2);
  CHECK(f.kg({"verify"}).at("ok") == true);
  REQUIRE(f.home.run({"cycle"}).code == 0);
  CHECK(f.kg({"verify"}).at("ok") == true);
  CHECK(f.kg({"stats"}).at("items")[0]["used"] == 3);
  CHECK(f.cited(f.kg({"trace", "last"}).at("outcome")).at("type") == "resulted_in");
  CHECK_FALSE(std::filesystem::exists(log));
  // What the index knows of it is answered; that it is gone is said.
  CHECK(f.kg({"stats"}).at("damage") == "");
  std::filesystem::remove(log + ".zst");
  CHECK(f.kg({"stats"}).at("damage") == "graph.jsonl is missing");
}

TEST_CASE("kg: every question says what the log lacks", "[knowledge]") {
  const knowing_home f;
  const auto log = f.home.file("knowledge/graph.jsonl");
  const auto sound = read_file(log);
  const std::vector<std::vector<std::string>> questions{{"kg"},
                                                        {"kg", "stats"},
                                                        {"kg", "trace", "reader"},
                                                        {"kg", "why", "reader"},
                                                        {"kg", "query"},
                                                        {"kg", "findings"},
                                                        {"kg", "learned"},
                                                        {"kg", "lineage", "none"},
                                                        {"graph"},
                                                        {"graph", "--dot"},
                                                        {"memory", "status"},
                                                        {"skills", "ls"},
                                                        {"context", "bank"},
                                                        {"skills", "review"}};
  const auto check_all = [&](const std::string& damage) {
    for (const auto& question : questions) {
      const auto ran = f.home.run(question);
      INFO(ran.out << ran.err);
      const auto said = ran.out + ran.err;
      if (damage.empty())
        CHECK_THAT(said, !Contains("not whole"));
      else
        CHECK_THAT(said, Contains("not whole") && Contains(damage));
    }
  };
  check_all({});
  // A line in the middle; the last one; all.
  const auto second = sound.find('\n') + 1;
  write_file(log, sound.substr(0, second) + sound.substr(sound.find('\n', second) + 1));
  check_all("1 fact is missing between its lines");
  write_file(log, sound.substr(0, sound.rfind('\n', sound.size() - 2) + 1));
  check_all("was cut off or changed");
  std::filesystem::remove(log);
  check_all("graph.jsonl is missing");
  CHECK_THAT(f.home.run({"kg", "stats"}).out, !Contains("No run has read"));
  CHECK_THAT(f.home.run({"context", "bank"}).out, !Contains("has proved useful"));
  write_file(log, sound);
  check_all({});
  // A running node says it, too.
  program node(f.home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  check_all({});
  (void)f.home.run({"status"}); // its recorder has opened the log by now
  std::filesystem::remove(log);
  check_all("graph.jsonl is missing");
}

TEST_CASE("kg: every question says how many damaged lines it left out", "[knowledge]") {
  const knowing_home f;
  const auto log = f.home.file("knowledge/graph.jsonl");
  auto text = read_file(log);
  const auto lines = std::to_string(std::count(text.begin(), text.end(), '\n'));
  text.replace(text.find("guide.md"), 8, "other.md");
  write_file(log, text);
  for (const auto* file : {"index.db", "index.db-wal", "index.db-shm"})
    std::filesystem::remove(f.home.file(std::string("knowledge/") + file));
  for (const std::vector<std::string>& question :
       std::vector<std::vector<std::string>>{{"kg"},
                                             {"kg", "stats"},
                                             {"graph", "--text"},
                                             {"graph", "--dot"},
                                             {"graph", "--mermaid"},
                                             {"memory", "status"},
                                             {"skills", "ls"},
                                             {"context", "bank"}}) {
    const auto ran = f.home.run(question);
    INFO(ran.out << ran.err);
    CHECK(ran.code == 0);
    CHECK_THAT(question.front() == "graph" ? ran.err : ran.out,
               Contains("1 damaged line (of " + lines + ") was left out"));
  }
}

TEST_CASE("kg: sources that a run was never given are told of", "[knowledge]") {
  const temp_dir workspace;
  auto text = yaml(workspace.path());
  const std::string answer = "(guide.md)'";
  text.insert(text.find(answer) + answer.size(), "; echo '[Reference] file: x.txt (x.txt)'");
  const home_of_boyd home(text);
  write_file(workspace.file("guide.md"), "Ring the bell twice before you open the gate.\n");
  write_file(workspace.file("other.md"), "Nothing of interest.\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  for (const auto* question : {"trace", "why"})
    CHECK_THAT(home.run({"kg", question, "reader"}).out,
               Contains("It also cited 1 source that it was never given: ") && Contains("x.txt"));
  CHECK_THAT(home.run({"kg", "why", "plain"}).out, !Contains("never given"));
}

TEST_CASE("kg: of an agent that has not run that is said", "[knowledge]") {
  const temp_dir workspace;
  const home_of_boyd home(yaml(workspace.path()));
  for (const auto* question : {"trace", "why"}) {
    const auto ran = home.run({"kg", question, "reader"});
    CHECK(ran.code == 1);
    CHECK_THAT(ran.err, Contains("the agent reader has not run yet") && Contains(" run reader"));
  }
}

TEST_CASE("a command tells once, and in words, what is wrong with the log", "[knowledge]") {
  const knowing_home f;
  const auto log = f.home.file("knowledge/graph.jsonl");
  auto text = read_file(log);
  text.replace(text.find("guide.md"), 8, "other.md");
  write_file(log, text);
  const auto told = f.home.run({"status"}).err;
  INFO(told);
  const auto at = told.find("is changed (wrong checksum)");
  REQUIRE(at != std::string::npos);
  CHECK(told.find("is changed (wrong checksum)", at + 1) == std::string::npos);
  CHECK_THAT(told, Contains("boyd: graph_recorder: ") && !Contains("Z error "));
}

TEST_CASE("graph: pictures of the facts", "[knowledge]") {
  const knowing_home f;
  const auto execution = f.kg({"trace", "reader"}).at("execution").get<std::string>();
  const auto picture =
      f.home.run({"graph", "--around", execution, "--depth", "1", "--json"}).json();
  CHECK(picture.at("nodes").size() == 5); // itself, two contexts, decision, outcome
  CHECK(picture.at("edges").size() == 4);
  CHECK_THAT(f.home.run({"graph", "--mermaid"}).out,
             Contains("graph TD\n") && Contains("guide.md"));
  CHECK_THAT(f.home.run({"graph", "--dot"}).out, Contains("rankdir=LR") && Contains("shape=box"));
  CHECK_THAT(f.home.run({"graph"}).out, Contains("[Nodes]\n") && Contains("[Edges]\n"));
  CHECK(f.home.run({"graph", "--around", "ctx_unknown"}).code == 1);
  for (const auto* name : {"guide.md", "reader"})
    CHECK_THAT(f.home.run({"graph", "--around", name}).out, Contains("guide.md"));
  CHECK(f.home.run({"graph", "--dot", "--mermaid"}).code == 2);
}

} // namespace boyd::knowledge_test
