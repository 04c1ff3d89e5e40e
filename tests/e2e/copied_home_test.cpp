#include "program.hpp"
#include "stored_home.hpp"
#include "support/pch.hpp"
#include "support/postgres/server.hpp"

#include <csignal>
#include <filesystem>

/// Two homes with one node_id do not work with one shared store.
namespace boyd::test {

namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

void copy_home(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to,
                        std::filesystem::copy_options::recursive |
                            std::filesystem::copy_options::copy_symlinks);
  std::filesystem::remove(to + "/run/control.sock");
}

} // namespace

TEST_CASE("status: a restored home is one node, and what it was before is told with its parts",
          "[store]") {
  const home_of_boyd home("version: 1\nkernels:\n  - schedule: \"0 0 1 1 *\"\n    agents:\n"
                          "      - {agent_id: a, executor: {type: command, argv: [date]}}\n");
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto node_of = [](const json& status) {
    return status.at("node").at("node_id").get<std::string>();
  };
  const auto first = node_of(home.run({"status", "--json"}).json());
  const temp_dir directory;
  const auto copy = directory.file("copy");
  copy_home(home.path(), copy);
  std::filesystem::remove(copy + "/run/node_id");
  std::filesystem::remove(copy + "/run/home");
  REQUIRE(boyd_run({"--home", copy, "cycle"}).code == 0);
  const auto status = boyd_run({"--home", copy, "status", "--json"}).json();
  REQUIRE(status.at("nodes").size() == 2);
  CHECK(node_of(status) != first);
  CHECK_THAT(boyd_run({"--home", copy, "status"}).out,
             !Contains(first) && !Contains("nodes of this database"));
  CHECK_THAT(boyd_run({"--home", copy, "status", "--parts"}).out,
             Contains("nodes of this database\n  an earlier node, last seen ") && Contains(first));
  CHECK_THAT(home.run({"status", "--parts"}).out, !Contains("an earlier node"));
}

TEST_CASE("case A6: a copied home whose node lives elsewhere is refused", "[store]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  const home_of_boyd home(stored_yaml(server->make_database()));
  const temp_dir directory;
  const auto copy = directory.file("copy");
  REQUIRE(home.run({"cycle"}).code == 0);
  copy_home(home.path(), copy);
  const auto as_copy = [&](const std::vector<std::string>& command) {
    std::vector<std::string> args{"--home", copy};
    args.insert(args.end(), command.begin(), command.end());
    return boyd_run(args);
  };

  SECTION("while the node of the first one runs") {
    program node(home.node());
    REQUIRE(node.wait_for_stderr("ready"));
    const auto refused = as_copy({"cycle"});
    CHECK(refused.code == 4);
    CHECK_THAT(refused.err,
               Contains("belongs to the home " + home.path()) && Contains("run/node_id"));
    // What only looks is not kept out.
    CHECK(as_copy({"dispatches"}).code == 0);
    node.signal(SIGTERM);
    CHECK(node.finish().code == 0);
  }
  SECTION("when it has worked since the copy was made") {
    REQUIRE(home.run({"cycle"}).code == 0);
    const auto refused = as_copy({"node"});
    CHECK(refused.code == 4);
    CHECK_THAT(refused.err, Contains("after this home was copied"));
    // With an id of its own it is another node.
    std::filesystem::remove(copy + "/run/node_id");
    std::filesystem::remove(copy + "/run/home");
    CHECK(as_copy({"cycle"}).code == 0);
    CHECK(home.run({"cycle"}).code == 0);
  }
  SECTION("a backup put back in its place is the same home") {
    REQUIRE(home.run({"cycle"}).code == 0);
    const auto path = home.path();
    std::filesystem::remove_all(path);
    copy_home(copy, path);
    CHECK(home.run({"cycle"}).code == 0);
  }
  SECTION("and a person can say that the other one is gone for good") {
    REQUIRE(home.run({"cycle"}).code == 0);
    REQUIRE(as_copy({"cycle"}).code == 4);
    CHECK(as_copy({"store", "begin", "--yes"}).code == 0);
    CHECK(as_copy({"cycle"}).code == 0);
    // Now the first one is the copy.
    CHECK(home.run({"cycle"}).code == 4);
  }
}

TEST_CASE("case A6: nor do two homes with one node stand side by side on the embedded store",
          "[store]") {
  const home_of_boyd home("version: 1\nkernels: [{agents: []}]\n");
  const temp_dir directory;
  const auto copy = directory.file("copy");
  REQUIRE(home.run({"cycle"}).code == 0);
  copy_home(home.path(), copy);
  const auto told = copy + " is a copy of " + home.path() +
                    ", which still exists; two nodes must not have the same id";
  const auto refused = boyd_run({"--home", copy, "cycle"});
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err,
             Contains("boyd: " + told +
                      "\n  next: to use this copy beside the original:\n      rm " + copy +
                      "/run/node_id\n    if you moved the home here:\n      rm " + home.path() +
                      "/run/node_id\n"));
  // The log of a node in the background has whole lines, whatever the terminal's width.
  CHECK(boyd_run({"--home", copy, "node", "--background"}, {{"COLUMNS", "80"}}).code == 4);
  CHECK_THAT(read_file(copy + "/run/node.log"), Contains("boyd: " + told + "\n"));
  const auto background = boyd_run({"--home", copy, "node", "--background"});
  CHECK(background.code == 4);
  CHECK_THAT(background.err, Contains("\n        rm " + copy + "/run/node_id\n") &&
                                 Contains("the node did not start; the reason is above (log: "));
  const auto status = boyd_run({"--home", copy, "status"});
  CHECK(status.code == 0);
  CHECK_THAT(status.out, Contains("  ! " + told + "\n    next: ") &&
                             Contains("\n        rm " + copy + "/run/node_id\n"));
  CHECK(boyd_run({"--home", copy, "status", "--json"}).json()["problems"][0] == told);
  CHECK_THAT(home.run({"status"}).out, !Contains("is a copy"));
  const auto examined = boyd_run({"--home", copy, "doctor"});
  CHECK(examined.code == 1);
  CHECK_THAT(examined.out, Contains("\nfail  identity: " + told + "\n") &&
                               Contains("\n          rm " + copy + "/run/node_id\n"));
  const auto original = home.run({"doctor"});
  INFO(original.out);
  CHECK(original.code == 0);
  CHECK_THAT(original.out, !Contains("identity"));
  SECTION("with an id of its own it is another node") {
    std::filesystem::remove(copy + "/run/node_id");
    CHECK(boyd_run({"--home", copy, "cycle"}).code == 0);
    CHECK(home.run({"cycle"}).code == 0);
  }
  SECTION("a home that was moved is the same node") {
    std::filesystem::rename(home.path(), directory.file("away"));
    std::filesystem::remove(directory.file("away") + "/run/node_id");
    CHECK(boyd_run({"--home", copy, "cycle"}).code == 0);
    CHECK(boyd_run({"--home", copy, "cycle"}).code == 0);
  }
}

} // namespace boyd::test
