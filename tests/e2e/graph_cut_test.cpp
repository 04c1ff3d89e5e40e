#include "boyd/graph/edge_log.hpp"
#include "program.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

// A knowledge graph whose end is gone, though a commit names it.

namespace boyd::graph_cut_test {

using namespace boyd::test;
using Catch::Matchers::Contains;

namespace {

constexpr const char* one_agent = R"(version: 1
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: good
        prompt: work
        executor: {type: command, argv: ["true"]}
)";

constexpr const char* cut = "the end of the log was cut off or changed";

std::string graph_of(const home_of_boyd& home) {
  return home.file("knowledge/graph.jsonl");
}

/// Takes the newest `lines` away.
void cut_lines(const std::string& path, int lines) {
  auto text = read_file(path);
  for (int i = 0; i < lines; ++i)
    text.erase(text.rfind('\n', text.size() - 2) + 1);
  write_file(path, text);
}

/// status, doctor, the check of the log and questions say it, or do not.
void check_told(const home_of_boyd& home, bool told) {
  const auto status = home.run({"status"});
  const auto doctor = home.run({"doctor"});
  INFO(status.out << doctor.out);
  CHECK((status.out.find(cut) != std::string::npos) == told);
  CHECK((doctor.out.find("boyd doctor --accept-graph") != std::string::npos) == told);
  // That what is left fits together is no contradiction.
  if (told && doctor.out.find("hash chain whole") != std::string::npos)
    CHECK_THAT(doctor.out, Contains("knowledge graph: apart from what is missing: "));
  const auto verified = home.run({"kg", "verify"});
  INFO(verified.out);
  CHECK(verified.code == (told ? 1 : 0));
  CHECK((verified.out.find(cut) != std::string::npos) == told);
  const auto stats = home.run({"kg", "stats", "--json"}).json();
  INFO(stats.dump());
  CHECK(stats.at("damage").get<std::string>().empty() != told);
}

} // namespace

TEST_CASE("case R9: a cut graph.jsonl is told, also after the next cycle, until it is accepted",
          "[e2e]") {
  const home_of_boyd home(one_agent);
  for (int i = 0; i < 3; ++i)
    REQUIRE(home.run({"cycle"}).code == 0);
  check_told(home, false);
  const auto whole = read_file(graph_of(home));
  SECTION("some lines") {
    cut_lines(graph_of(home), 1);
  }
  SECTION("all but one") {
    cut_lines(graph_of(home), 5);
  }
  SECTION("all lines") {
    write_file(graph_of(home), "");
  }
  SECTION("the file") {
    std::filesystem::remove(graph_of(home));
  }
  // Doctor alone sees it first: nobody has opened the log yet.
  CHECK(home.run({"doctor"}).code == 1);
  check_told(home, true);
  REQUIRE(home.run({"cycle"}).code == 0);
  check_told(home, true);
  REQUIRE(home.run({"cycle"}).code == 0);
  check_told(home, true);
  const auto accepted = home.run({"doctor", "--accept-graph"});
  INFO(accepted.out << accepted.err);
  CHECK(accepted.code == 0);
  check_told(home, false);
  REQUIRE(home.run({"cycle"}).code == 0);
  check_told(home, false);
  // Another cut is another one.
  cut_lines(graph_of(home), 1);
  check_told(home, true);
}

TEST_CASE("case R9: a graph.jsonl that is put back is whole again", "[e2e]") {
  const home_of_boyd home(one_agent);
  for (int i = 0; i < 2; ++i)
    REQUIRE(home.run({"cycle"}).code == 0);
  const auto whole = read_file(graph_of(home));
  cut_lines(graph_of(home), 2);
  check_told(home, true);
  write_file(graph_of(home), whole);
  check_told(home, false);
}

TEST_CASE("case R9: a cut that is accepted at once is not told by the next cycle", "[e2e]") {
  const home_of_boyd home(one_agent);
  for (int i = 0; i < 2; ++i)
    REQUIRE(home.run({"cycle"}).code == 0);
  cut_lines(graph_of(home), 1);
  CHECK(home.run({"doctor", "--accept-graph"}).code == 0);
  check_told(home, false);
  REQUIRE(home.run({"cycle"}).code == 0);
  check_told(home, false);
}

TEST_CASE("case R9: the line that any kernel's newest commit names must be there", "[e2e]") {
  const home_of_boyd home(std::string(one_agent) + R"(  - kernel_id: second
    schedule: "0 0 1 1 *"
    agents:
      - agent_id: other
        prompt: work
        executor: {type: command, argv: ["true"]}
)");
  REQUIRE(home.run({"cycle", "--kernel", "default"}).code == 0);
  REQUIRE(home.run({"cycle", "--kernel", "second"}).code == 0);
  // As if its commit were the older one: times say nothing about the order.
  const auto amend = "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git -C '" +
                     home.file("kernel/second") +
                     "' -c user.name=a -c user.email=a@b commit -q --amend --no-edit --allow-empty "
                     "--date=2020-01-01T00:00:00Z";
  REQUIRE(std::system(amend.c_str()) == 0); // NOLINT(cert-env33-c)
  const auto whole = home.run({"kg", "verify", "--json"});
  REQUIRE(whole.code == 0);
  CHECK(whole.json().at("confirmed").at("kernel_id") == "second");
  CHECK(whole.json().at("unconfirmed") == 0);
  cut_lines(graph_of(home), 1);
  const auto verified = home.run({"kg", "verify"});
  INFO(verified.out);
  CHECK(verified.code == 1);
  CHECK_THAT(verified.out, Contains("of kernel second names") && Contains(cut));
  check_told(home, true);
}

TEST_CASE("kg verify: what another program appends is not affirmed while the node runs", "[e2e]") {
  const home_of_boyd home(one_agent);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  REQUIRE(home.run({"cycle"}).code == 0);
  CHECK(home.run({"kg", "verify"}).code == 0);
  const auto log = read_file(graph_of(home));
  const auto begin = log.rfind('\n', log.size() - 2) + 1;
  auto chain = graph::edge_chain::resume(log.substr(begin, log.size() - 1 - begin)).value();
  const auto line = chain.append({"ctx_1", "decision_1", "managed_by", utc_time{}, "{}"}).value();
  write_file(graph_of(home), log + line + "\n");
  const auto verified = home.run({"kg", "verify"});
  INFO(verified.out << verified.err);
  CHECK(verified.code == 1);
  const auto place = "graph.jsonl:" + std::to_string(std::count(log.begin(), log.end(), '\n') + 1);
  CHECK_THAT(verified.out, Contains(place + ": foreign: ") && !Contains("nothing was changed"));
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

TEST_CASE("kg verify: a log that is a symbolic link is named, and nobody is told to take it in",
          "[e2e]") {
  const home_of_boyd home(one_agent);
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto elsewhere = home.file("elsewhere.jsonl");
  std::filesystem::rename(graph_of(home), elsewhere);
  std::filesystem::create_symlink(elsewhere, graph_of(home));
  const auto verified = home.run({"kg", "verify"});
  INFO(verified.out << verified.err);
  CHECK(verified.code == 1);
  CHECK_THAT(verified.out, Contains("graph.jsonl: linked: ") && Contains("from a backup"));
  const auto before = read_file(elsewhere);
  const auto ran = home.run({"cycle"});
  INFO(ran.out << ran.err);
  CHECK_THAT(ran.out + ran.err,
             Contains("the log is a symbolic link") && !Contains("with its target"));
  CHECK(read_file(elsewhere) == before);
}

TEST_CASE("case R9: a running node tells of a cut, before and after its next cycle", "[e2e]") {
  const home_of_boyd home(one_agent);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready"));
  for (int i = 0; i < 2; ++i)
    REQUIRE(home.run({"cycle"}).code == 0);
  check_told(home, false);
  // What a node tells of its parts is as they were at the question before.
  const auto tells = [&](bool told) {
    return wait_until(
        [&] { return (home.run({"status"}).out.find(cut) != std::string::npos) == told; });
  };
  cut_lines(graph_of(home), 1);
  CHECK(tells(true));
  check_told(home, true);
  home.run({"cycle"});
  check_told(home, true);
  CHECK(home.run({"doctor", "--accept-graph"}).code == 0);
  CHECK(tells(false));
  check_told(home, false);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
}

} // namespace boyd::graph_cut_test
