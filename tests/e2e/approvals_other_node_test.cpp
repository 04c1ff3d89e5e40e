#include "approvals_lab.hpp"

/// Programs that one node started, and the words of a person that they would give another one.
namespace boyd::approvals_other_node_test {

using namespace boyd::test;
using namespace boyd::test::approvals_lab;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// What an agent without a sandbox tries on another home: each with an environment of its own, its
/// output in a file of the kernel's home.
const std::vector<std::pair<std::string, std::string>>& attempts() {
  static const std::vector<std::pair<std::string, std::string>> all{
      {"approve", "approvals approve ID --reason mine"},
      {"reject", "approvals reject ID --reason mine"},
      {"pause", "pause --reason mine"},
      {"resume", "resume"},
      {"release", "cost release ID --reason mine"},
      {"trust", "tools trust any --hash sha256:00"},
      {"forget", "tools forget any"},
      {"graph", "doctor --accept-graph"},
      {"store", "store begin --yes"},
      {"operator", "mcp --operator < messages"}};
  return all;
}

std::string thief_of(const std::string& other_home, const std::string& id) {
  std::string shell;
  for (const auto& [name, words] : attempts()) {
    auto line = words;
    if (const auto at = line.find("ID"); at != std::string::npos)
      line.replace(at, 2, id);
    for (const auto* way : {"", "setsid "})
      shell += "            (exec env -i " + std::string(way) + boyd_binary() + " --home " +
               other_home + " " + line + ") >> " + name + " 2>&1; echo \"code $?\" >> " + name +
               "\n";
  }
  return "version: 1\nkernels:\n  - kernel_id: default\n    schedule: \"0 0 1 1 *\"\n    agents:\n"
         "      - agent_id: thief\n        prompt: x\n        timeout: 120s\n"
         "        executor:\n          type: command\n          shell: |\n" +
         shell;
}

std::string messages_for(const std::string& id, const std::string& hash) {
  const json call{{"jsonrpc", "2.0"},
                  {"id", 1},
                  {"method", "tools/call"},
                  {"params", {{"name", "approve"}, {"arguments", {{"id", id}, {"hash", hash}}}}}};
  return R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
         R"("capabilities":{},"clientInfo":{"name":"t","version":"1"}}})"
         "\n" +
         call.dump() + "\n";
}

/// Runs the thief below another node's, or command's, process host; checks that all is refused.
/// `decides`: the answer to approve and reject, which look for the request first.
void try_all(const std::string& other_home, const std::string& id, const std::string& hash,
             bool with_node, const std::string& decides = "only a person can") {
  const home_of_boyd own(thief_of(other_home, id));
  write_file(own.file("kernel/default/messages"), messages_for(id, hash));
  std::unique_ptr<program> node;
  if (with_node) {
    node = std::make_unique<program>(own.node());
    REQUIRE(node->wait_for_stderr("ready: node "));
  }
  const auto cycle = own.run({"cycle"});
  INFO(cycle.out << cycle.err);
  for (const auto& [name, words] : attempts()) {
    const auto said = read_file(own.file("kernel/default/" + name));
    INFO(name << ": " << said);
    const auto refused = words.starts_with("approvals") ? decides : "only a person can";
    CHECK_THAT(said, Contains(refused));
    // Both ways, and the server's answer is no failure of the server.
    if (name != "operator")
      CHECK_THAT(said, !Contains("code 0"));
    CHECK_THAT(said.substr(said.find("code ")), Contains(refused));
  }
}

} // namespace

TEST_CASE("case R7: an agent of one node can neither decide nor change anything at another one",
          "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("ok"));
  const home_of_boyd other(yaml_of(endpoint));
  busy_node n(other);
  const auto a = n.pending();
  const std::string id = a["approval_id"];
  try_all(other.path(), id, a["hash"], GENERATE(true, false));
  const auto story = approval(other, id);
  CHECK(story["state"] == "pending");
  for (const auto& line : trail(story))
    CHECK((line == "ask:accepted" || line.ends_with(":refused")));
  CHECK(trail(story).size() == 7); // approve and reject twice, and the client of mcp
  CHECK(effects(other).empty());
  // The person still can.
  CHECK(other.run({"approvals", "reject", id}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(other).empty());
}

TEST_CASE("case R7: nor at a home on which no node runs", "[e2e][approvals]") {
  const home_of_boyd other;
  const auto try_what_is_not_there = [&] {
    try_all(other.path(), "01956c2e-4f1a-7c35-9f00-000000000000", "sha256:00", false,
            "no such approval");
  };
  try_what_is_not_there();
  CHECK_THAT(other.run({"resume", "--json"}).out, Contains("\"cleared\":false"));
  CHECK(other.run({"pause", "--reason", "a person's"}).code == 0);
  try_what_is_not_there();
  CHECK_THAT(other.run({"resume", "--json"}).out, Contains("\"cleared\":true"));
}

} // namespace boyd::approvals_other_node_test
