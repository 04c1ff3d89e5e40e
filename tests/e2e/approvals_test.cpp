#include "approvals_lab.hpp"
#include "support/postgres/server.hpp"
#include "support/telling.hpp"

#include <csignal>

namespace boyd::approvals_test {

using namespace boyd::test;
using namespace boyd::test::approvals_lab;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

TEST_CASE("approvals: an action waits for a person who sees it, and is done once",
          "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("It is done."));
  const home_of_boyd home(yaml_of(endpoint));
  busy_node n(home);
  const auto asked = n.pending();
  const std::string id = asked["approval_id"];
  CHECK(asked["tool"] == "run_command");
  CHECK_THAT(asked["reason"].get<std::string>(), Contains("programs change things"));
  CHECK(effects(home).empty());
  const auto status = home.run({"status", "--json"}).json();
  CHECK(status["approvals"]["pending"] == 1);
  CHECK(status["approvals"]["waiting_runs"] == 1);
  CHECK_THAT(status["problems"].dump(), Contains("1 action needs approval"));
  const auto shown = home.run({"approvals", "show", id.substr(0, 18)});
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Contains("echo done >> effects") && Contains("/bin/sh -c") &&
                            Contains(asked["hash"].get<std::string>()));
  CHECK_THAT(home.run({"approvals"}).out, Contains(id.substr(0, 18)) && Contains("run_command"));
  // The id is whole on a narrow screen, too: it is what the person types.
  CHECK_THAT(boyd_run({"--home", home.path(), "approvals"}, {{"COLUMNS", "80"}}).out,
             Contains("\n" + id.substr(0, 18) + "  pending"));

  const auto approved = home.run({"approvals", "approve", id, "--reason", "as agreed"});
  INFO(approved.err);
  CHECK(approved.code == 0);
  CHECK_THAT(approved.out, Contains("echo done >> effects") && Contains("approved: " + id));
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home) == "done\n");

  const auto used = approval(home, id);
  CHECK(used["state"] == "used");
  CHECK(trail(used) == lines{"ask:accepted", "approve:accepted", "use:accepted"});
  CHECK_THAT(used["decided_by"].get<std::string>(), Contains("boyd (process "));
  CHECK(used["note"] == "as agreed");
  const auto again = home.run({"approvals", "approve", id});
  CHECK(again.code == 5);
  CHECK_THAT(again.err, Contains("already used"));
  CHECK(home.run({"status", "--json"}).json()["approvals"]["pending"] == 0);

  const auto record = turns(home, asked["dispatch_id"], "approval");
  REQUIRE(record.size() == 3);
  CHECK(record[0]["what"] == "asked");
  CHECK(record[1]["what"] == "approved");
  CHECK(record[2]["what"] == "used");
  for (const auto& line : record) {
    CHECK(line["approval_id"] == id);
    CHECK(line["hash"] == asked["hash"]);
  }
  CHECK(record[2]["by"] == used["decided_by"]);
  // The model is told nothing but the result.
  CHECK_THAT(endpoint.requests().at(1).json["messages"].back()["content"].get<std::string>(),
             Contains("exit code 0"));
}

TEST_CASE("approvals: a no is told to the model, which goes on", "[e2e][approvals]") {
  model_endpoint endpoint;
  // Asked again in the same words, it has the same answer, and nobody is asked.
  endpoint.then(wants("run_command", effect))
      .then(wants("run_command", effect))
      .then(stream_answer("Then not."));
  const home_of_boyd home(yaml_of(endpoint));
  busy_node n(home);
  const auto id = n.pending_id();
  CHECK(home.run({"approvals", "reject", id, "--reason", "not today"}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home).empty());
  const auto requests = endpoint.requests();
  REQUIRE(requests.size() == 3);
  for (const auto i : {1, 2})
    CHECK_THAT(requests.at(static_cast<std::size_t>(i))
                   .json["messages"]
                   .back()["content"]
                   .get<std::string>(),
               Contains("rejected by") && Contains("not today"));
  CHECK(trail(approval(home, id)) == lines{"ask:accepted", "reject:accepted", "ask:decided"});
  CHECK(home.run({"approvals", "ls", "--all", "--json"}).json()["items"].size() == 1);
}

TEST_CASE("approvals: nobody decides; the run goes on without", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("Then not."));
  const home_of_boyd home(yaml_of(endpoint, "{wait: 10ms}"));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK(cycle.code == 0);
  CHECK(effects(home).empty());
  const auto items = home.run({"approvals", "ls", "--all", "--json"}).json()["items"];
  REQUIRE(items.size() == 1);
  CHECK(items[0]["state"] == "withdrawn");
  const auto late = home.run({"approvals", "approve", items[0]["approval_id"]});
  CHECK(late.code == 5);
  CHECK_THAT(late.err, Contains("withdrawn"));
}

TEST_CASE("approvals: the run's own deadline ends the wait", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect));
  auto yaml = yaml_of(endpoint);
  const std::string limit = "timeout: 60s\n";
  yaml.replace(yaml.find(limit), limit.size(), "timeout: 1s\n        retry: {max_attempts: 1}\n");
  const home_of_boyd home(yaml);
  CHECK(home.run({"cycle"}).code == 1);
  const auto items = home.run({"approvals", "ls", "--all", "--json"}).json()["items"];
  REQUIRE(items.size() == 1);
  CHECK(items[0]["state"] == "withdrawn");
  CHECK(dispatch_row(home, items[0]["dispatch_id"])["execution"] == "timed_out");
  CHECK(effects(home).empty());
}

TEST_CASE("approvals: a run that ends leaves its request to the dispatch's next one",
          "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect))
      .then(wants("run_command", effect))
      .then(stream_answer("It is done."));
  const home_of_boyd home(yaml_of(endpoint, "{wait: 10ms, then: end}"));
  busy_node n(home);
  const auto first = n.end_of_cycle();
  CHECK(first.code == 1);
  const auto asked = n.pending();
  const std::string dispatch = asked["dispatch_id"];
  const auto failed = dispatch_row(home, dispatch);
  CHECK(failed["status"] == "failed");
  CHECK(failed["failure_class"] == "policy");
  CHECK(failed["attempt"] == 1);
  CHECK_THAT(failed["error"].get<std::string>(), Contains(asked["approval_id"].get<std::string>()));
  CHECK(asked["held"] == true);
  CHECK(home.run({"approvals", "approve", asked["approval_id"]}).code == 0);
  CHECK(effects(home).empty());
  CHECK(home.run({"dispatches", "retry", dispatch}).code == 0);
  REQUIRE(wait_until([&] { return dispatch_row(home, dispatch)["status"] == "done"; }));
  CHECK(effects(home) == "done\n");
  CHECK(trail(approval(home, asked["approval_id"])) == lines{"ask:accepted", "hold:accepted",
                                                             "approve:accepted", "adopt:accepted",
                                                             "use:accepted"});
}

TEST_CASE("case 57 approval-mutated: another action than was seen is not done",
          "[e2e][approvals]") {
  SECTION("the decision names another hash") {
    model_endpoint endpoint;
    endpoint.then(wants("run_command", effect)).then(stream_answer("ok"));
    const home_of_boyd home(yaml_of(endpoint));
    busy_node n(home);
    const auto id = n.pending_id();
    const auto other = home.run({"approvals", "approve", id, "--hash", std::string(64, 'a')});
    CHECK(other.code == 5);
    CHECK_THAT(other.err, Contains("the request has changed"));
    CHECK(promised(effects(home).empty(), "done without an approval of it"));
    CHECK(n.pending_id() == id);
    CHECK(home.run({"approvals", "reject", id}).code == 0);
    n.end_of_cycle();
    CHECK(promised(effects(home).empty(), "done without an approval of it"));
    CHECK(trail(approval(home, id)) == lines{"ask:accepted", "approve:mutated", "reject:accepted"});
  }
  SECTION("the file that would be replaced has changed since") {
    model_endpoint endpoint;
    endpoint.then(wants("write_file", R"({"path":"plan.txt","content":"mine\n"})"))
        .then(stream_answer("ok"));
    const home_of_boyd home(yaml_of(endpoint));
    write_file(home.file("kernel/default/plan.txt"), "before\n");
    busy_node n(home);
    const auto id = n.pending_id();
    write_file(home.file("kernel/default/plan.txt"), "somebody else's\n");
    CHECK(home.run({"approvals", "approve", id}).code == 0);
    CHECK(n.end_of_cycle().code == 0);
    CHECK(read_file(home.file("kernel/default/plan.txt")) == "somebody else's\n");
    const auto row = approval(home, id);
    CHECK(row["state"] == "voided");
    CHECK(trail(row) == lines{"ask:accepted", "approve:accepted", "use:mutated"});
    CHECK_THAT(endpoint.requests().at(1).json["messages"].back()["content"].get<std::string>(),
               Contains("differs from the approved one"));
  }
}

TEST_CASE("case 57 approval-double, approval-replay: many words, one effect", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect))
      .then(wants("run_command", effect))
      .then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint));
  busy_node n(home);
  const auto id = n.pending_id();
  std::vector<std::unique_ptr<program>> people;
  for (int i = 0; i < 4; ++i)
    people.push_back(std::make_unique<program>(std::vector<std::string>{
        boyd_binary(), "--home", home.path(), "approvals", "approve", id}));
  int accepted = 0;
  for (auto& p : people)
    accepted += p->finish().code == 0 ? 1 : 0;
  CHECK(accepted == 1);
  // The same action again is another request, and the approval is used up.
  std::string second;
  REQUIRE(wait_until([&] {
    const auto items = home.run({"approvals", "ls", "--json"}).json()["items"];
    if (items.size() != 1 || items[0]["approval_id"] == id)
      return false;
    second = items[0]["approval_id"];
    return true;
  }));
  CHECK(promised(effects(home) == "done\n", "one approval, not one effect"));
  const auto replayed = home.run({"approvals", "approve", id});
  CHECK(replayed.code == 5);
  const std::string hash = approval(home, id)["hash"];
  CHECK(home.run({"approvals", "approve", second, "--hash", hash}).code == 5);
  CHECK(home.run({"approvals", "reject", second}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(promised(effects(home) == "done\n", "one approval, not one effect"));
  const auto row = approval(home, id);
  CHECK(row["trail"].size() == 7); // ask, four words, the use, the replay
  CHECK(row["attempts"] == 7);
}

TEST_CASE("case 57 approval-late: after its time it is no approval", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint, "{expires: 1s, wait: 50s}"));
  busy_node n(home);
  const auto id = n.pending_id();
  REQUIRE(wait_until([&] { return approval(home, id)["state"] == "expired"; }));
  const auto late = home.run({"approvals", "approve", id});
  CHECK(late.code == 5);
  CHECK_THAT(late.err, Contains("expired"));
  CHECK(n.end_of_cycle().code == 0);
  CHECK(promised(effects(home).empty(), "done without an approval of it"));
  const auto row = approval(home, id);
  CHECK(row["state"] == "expired");
  CHECK(row["trail"].size() == 2);
}

TEST_CASE("approvals: what Boyd started cannot decide, whatever it forks", "[e2e][approvals]") {
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("ok"));
  // The second agent looks for the request and approves it: by itself, from a child that has left
  // its session, its parent and its environment, and straight through the socket.
  const std::string thief =
      "      - agent_id: thief\n"
      "        prompt: x\n"
      "        timeout: 60s\n"
      "        executor:\n"
      "          type: command\n"
      "          shell: |\n"
      "            b=\"$BOYD_BINARY --home $BOYD_HOME approvals\"\n"
      "            until id=$($b ls --json | grep -o '\"approval_id\": *\"[^\"]*\"' | head -1 | "
      "grep -o '[0-9a-f-]\\{36\\}'); do :; done\n"
      "            $b approve $id > own 2>&1; echo $? >> own\n"
      "            mkfifo told\n"
      "            (env -i setsid sh -c \"$b approve $id > forked 2>&1; echo \\$? >> forked; echo "
      "> "
      "told\" &)\n"
      "            read x < told\n"
      "          env_pass: [BOYD_BINARY]\n";
  const home_of_boyd home(yaml_of(endpoint, "{}", {}, thief));
  program node(home.node(), {{"BOYD_BINARY", boyd_binary()}});
  REQUIRE(node.wait_for_stderr("ready: node "));
  program cycle({boyd_binary(), "--home", home.path(), "cycle"});
  const auto forked = home.file("kernel/default/forked");
  REQUIRE(wait_until([&] { return fs::exists(forked) && read_file(forked).ends_with("1\n"); }));
  const auto own = read_file(home.file("kernel/default/own"));
  CHECK_THAT(own, Contains("only a person can decide"));
  CHECK(own.ends_with("1\n"));
  CHECK_THAT(read_file(forked), Contains("only a person can decide"));
  const auto items = home.run({"approvals", "ls", "--json"}).json()["items"];
  REQUIRE(items.size() == 1);
  CHECK(items[0]["state"] == "pending");
  CHECK(effects(home).empty());
  const std::string id = items[0]["approval_id"];
  CHECK(home.run({"approvals", "reject", id}).code == 0);
  cycle.finish();
  CHECK(effects(home).empty());
  // Who tried stands in the trail, and in the log.
  const auto story = approval(home, id);
  CHECK(trail(story) ==
        lines{"ask:accepted", "approve:refused", "approve:refused", "reject:accepted"});
  CHECK_THAT(story["trail"][1]["detail"].get<std::string>(), Contains("only a person can decide"));
  CHECK_THAT(story["trail"][1]["by"].get<std::string>(), Contains("process"));
  node.signal(SIGTERM);
  CHECK_THAT(node.finish().err, Contains("approve of " + id) && Contains("only a person can"));
}

TEST_CASE("approvals: people are told by webhook and command, and of no arguments",
          "[e2e][approvals]") {
  model_endpoint hook([](const model_request&) { return json_answer({{"ok", true}}); });
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("ok"));
  const home_of_boyd home(yaml_of(endpoint, "{}",
                                  "approvals:\n"
                                  "  notify:\n"
                                  "    webhook: " +
                                      hook.origin() +
                                      "/hook\n"
                                      "    command: [sh, -c, \"cat > notice.part && mv "
                                      "notice.part notice.json\"]\n"));
  busy_node n(home);
  const auto asked = n.pending();
  REQUIRE(hook.wait_for_requests(1));
  REQUIRE(wait_until([&] { return fs::exists(home.file("notice.json")); }));
  const auto sent = hook.requests().front();
  CHECK(sent.method == "POST");
  CHECK(sent.path == "/hook");
  CHECK(sent.json == json::parse(read_file(home.file("notice.json"))));
  CHECK(sent.json["approval_id"] == asked["approval_id"]);
  CHECK(sent.json["tool"] == "run_command");
  CHECK_THAT(sent.body, !Contains("echo done"));
  REQUIRE(wait_until([&] {
    return home.run({"status", "--json"}).json()["approvals"]["notices_sent"] == 2;
  }));
  CHECK(home.run({"approvals", "approve", asked["approval_id"]}).code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home) == "done\n");
}

TEST_CASE("approvals: the part is restarted, the run begins anew, and asks anew",
          "[e2e][approvals]") {
  model_endpoint endpoint([](const model_request& q) {
    return q.json["messages"].back()["role"] == "tool" ? stream_answer("ok")
                                                       : wants("run_command", effect);
  });
  const home_of_boyd home(yaml_of(endpoint));
  busy_node n(home);
  const auto first = n.pending_id();
  CHECK(home.run({"actors", "restart", "approvals"}).code == 0);
  REQUIRE(wait_until([&] { return approval(home, first)["state"] == "withdrawn"; }));
  const auto second = n.pending_id();
  CHECK(second != first);
  CHECK(home.run({"approvals", "approve", first}).code == 5);
  CHECK(home.run({"approvals", "approve", second}).code == 0);
  n.end_of_cycle();
  REQUIRE(wait_until([&] {
    return home.run({"dispatches", "ls", "--json"}).json()["items"][0]["status"] == "done";
  }));
  CHECK(effects(home) == "done\n");
}

TEST_CASE("approvals: a word to another node of the database reaches the run", "[e2e][approvals]") {
  auto* server = shared_postgres();
  if (server == nullptr)
    return;
  model_endpoint endpoint;
  endpoint.then(wants("run_command", effect)).then(stream_answer("It is done."));
  const auto yaml = yaml_of(endpoint, "{}", "node: {store: \"" + server->make_database() + "\"}\n");
  const home_of_boyd home(yaml);
  const home_of_boyd elsewhere(yaml);
  busy_node n(home);
  const auto id = n.pending_id();
  program other(elsewhere.node());
  REQUIRE(other.wait_for_stderr("ready: node "));
  CHECK(elsewhere.run({"status", "--json"}).json()["approvals"]["pending"] == 1);
  const auto approved = elsewhere.run({"approvals", "approve", id});
  INFO(approved.err);
  CHECK(approved.code == 0);
  CHECK(n.end_of_cycle().code == 0);
  CHECK(effects(home) == "done\n");
  CHECK(effects(elsewhere).empty());
  CHECK(home.run({"approvals", "approve", id}).code == 5);
}

TEST_CASE("case 57 approval-late: killed between the yes and its use, nothing is done",
          "[e2e][approvals]") {
  model_endpoint endpoint([](const model_request& q) {
    return q.json["messages"].back()["role"] == "tool"
               ? stream_answer("ok")
               : wants("write_file", R"({"path":"plan.txt","content":"mine\n"})");
  });
  const home_of_boyd home(yaml_of(endpoint, "{}", "node: {chaos: true}\n"));
  const auto written = home.file("kernel/default/plan.txt");
  std::string first;
  {
    busy_node n(home);
    first = n.pending_id();
    // What is about to be replaced is looked at once more before the use: that look takes its time.
    CHECK(
        home.run({"chaos", "inject", "workspace.request", "--delay", "60s", "--count", "0"}).code ==
        0);
    CHECK(home.run({"approvals", "approve", first}).code == 0);
    CHECK(approval(home, first)["state"] == "approved");
    n.node.signal(SIGKILL);
    n.node.finish();
    n.cycle->finish();
  }
  CHECK_FALSE(fs::exists(written));
  busy_node n(home);
  const auto second = n.pending_id();
  CHECK(second != first);
  CHECK(approval(home, first)["state"] == "withdrawn");
  CHECK(trail(approval(home, first)) ==
        lines{"ask:accepted", "approve:accepted", "withdraw:accepted"});
  CHECK(home.run({"approvals", "reject", second}).code == 0);
  CHECK(home.run({"approvals", "reject", n.pending_id()}).code == 0); // of the new cycle
  CHECK(n.end_of_cycle().code == 0);
  CHECK_FALSE(fs::exists(written));
}

TEST_CASE("approvals: a node that is killed leaves nothing that could be used",
          "[e2e][approvals]") {
  // One request for each run of the dispatch, then the end, which the first run does not live to
  // see.
  const auto killed = make_gate();
  model_endpoint endpoint([killed](const model_request& q) {
    if (q.json["messages"].back()["role"] != "tool")
      return wants("run_command", effect);
    auto last = stream_answer("ok");
    last.before_head = killed;
    return last;
  });
  const home_of_boyd home(yaml_of(endpoint));
  std::string first;
  const bool approved = GENERATE(false, true);
  {
    busy_node n(home);
    first = n.pending_id();
    if (approved)
      CHECK(home.run({"approvals", "approve", first}).code == 0);
    n.node.signal(SIGKILL);
    n.node.finish();
    n.cycle->finish();
    killed->open();
  }
  const auto before = effects(home);
  CHECK((before.empty() || (approved && before == "done\n")));
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto state_of_first = [&] { return approval(home, first)["state"].get<std::string>(); };
  REQUIRE(
      wait_until([&] { return state_of_first() == "withdrawn" || state_of_first() == "used"; }));
  CHECK(home.run({"approvals", "approve", first}).code == 5);
  // The dispatch runs again, and asks again; a person says no this time.
  std::string second;
  REQUIRE(wait_until([&] {
    const auto items = home.run({"approvals", "ls", "--json"}).json()["items"];
    if (items.size() != 1 || items[0]["state"] != "pending")
      return false;
    second = items[0]["approval_id"];
    return true;
  }));
  CHECK(second != first);
  CHECK(home.run({"approvals", "reject", second}).code == 0);
  REQUIRE(wait_until([&] {
    return home.run({"dispatches", "ls", "--json"}).json()["items"][0]["status"] == "done";
  }));
  CHECK(effects(home) == before);
}

} // namespace boyd::approvals_test
