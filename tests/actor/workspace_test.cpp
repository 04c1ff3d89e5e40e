#include "actors/planner/actor.hpp"
#include "actors/workspace/actor.hpp"
#include "actors/workspace/performer.hpp"
#include "boyd/faults/points.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

namespace boyd::workspace_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

struct fixture : simulated_node {
  workspace_actor workspace = actors.own(spawn_workspace(actors.system(), context));

  template <class What>
  test::asked<workspace_reply> ask(What what) {
    return actors.ask_now<workspace_reply>(workspace, workspace_request{{}, std::move(what)});
  }

  std::string hash(std::vector<std::string> paths) {
    auto r = ask(hash_inputs{std::move(paths)});
    REQUIRE(r.ok());
    return r.value().text;
  }
};

} // namespace

TEST_CASE("private files are made with their directory, replaced and removed", "[workspace]") {
  fixture f;
  REQUIRE(f.ask(write_private_file{"/boyd/run/prompts/d-1.txt", "hello"}).ok());
  REQUIRE(f.ask(write_private_file{"/boyd/run/prompts/d-1.txt", "again"}).ok());
  CHECK(f.ask(read_text_file{"/boyd/run/prompts/d-1.txt", 100}).value().text == "again");
  auto seen = f.ask(inspect_files{{"/boyd/run/prompts/d-1.txt", "/boyd/none", "/boyd/run"}});
  REQUIRE(seen.ok());
  REQUIRE(seen.value().files.size() == 3);
  CHECK(seen.value().files[0].kind == file_kind::regular);
  CHECK(seen.value().files[0].mode == 0600);
  CHECK(seen.value().files[1].kind == file_kind::missing);
  CHECK(seen.value().files[2].kind == file_kind::directory);
  REQUIRE(f.ask(remove_file{"/boyd/run/prompts/d-1.txt"}).ok());
  REQUIRE(f.ask(remove_file{"/boyd/run/prompts/d-1.txt"}).ok());
  auto gone = f.ask(read_text_file{"/boyd/run/prompts/d-1.txt", 100});
  CHECK(gone.why().code == errc::not_found);
}

TEST_CASE("records of thousands of runs that end at once are all written", "[workspace]") {
  fixture f;
  constexpr std::size_t runs = 4000;
  std::vector<test::asked<workspace_reply>> asked;
  for (std::size_t i = 0; i < runs; ++i)
    asked.push_back(f.actors.ask<workspace_reply>(
        f.workspace,
        workspace_request{
            {},
            append_record{"/boyd/executions/" + std::to_string(i) + "/turns-1.jsonl", "{}\n"}}));
  f.actors.run_all();
  std::size_t written = 0;
  for (auto& a : asked)
    written += a.ok() ? 1 : 0;
  CHECK(written == runs);
}

TEST_CASE("case 37 torn-tail: a record behind a torn one begins its own line", "[workspace]") {
  fixture f;
  const std::string path = "/boyd/executions/c-1/planner.jsonl";
  REQUIRE(f.ask(append_record{path, "{\"n\":1}\n{\"n\":2}\n"}).ok());
  // Killed in the middle of a write.
  f.disk->put(path, "{\"n\":1}\n{\"n\":2}\n{\"n\":3,\"wor");
  REQUIRE(f.ask(append_record{path, "{\"n\":4}\n"}).ok());
  CHECK(f.disk->read(path, 1000).value() == "{\"n\":1}\n{\"n\":2}\n{\"n\":4}\n");
  CHECK(f.disk->read(path + ".torn", 1000).value().find("\"wor") != std::string::npos);
}

TEST_CASE("fault points: a durable file is the old one or the new one, whatever step fails",
          "[workspace][faults]") {
  fixture f;
  const faults::isolation of_this_test;
  const std::string path = "/boyd/trust.json";
  REQUIRE(f.ask(write_durable_file{path, "old"}).ok());
  const auto now = [&] { return f.disk->read(path, 100).value(); };
  const std::string point = GENERATE("workspace.open", "workspace.bytes", "workspace.sync",
                                     "workspace.rename", "workspace.sync_directory");
  INFO(point);
  REQUIRE(faults::arm({{point, faults::action::error}}, 1));
  const auto refused = f.ask(write_durable_file{path, "new"});
  REQUIRE(refused.answered());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.why().code == errc::io_error);
  CHECK(now() == (point == "workspace.sync_directory" ? "new" : "old"));
  REQUIRE(faults::arm({{point, faults::action::delay, 1, 1.0, 1ms}}, 1));
  CHECK(f.ask(write_durable_file{path, "newer"}).ok());
  CHECK(now() == "newer");
  // The worker dies; its successor writes it.
  REQUIRE(faults::arm({{point, faults::action::crash}}, 1));
  const auto repeated = f.actors.ask<workspace_reply>(
      f.workspace, workspace_request{{}, write_durable_file{path, "newest"}});
  f.actors.advance(1min);
  CHECK(repeated.ok());
  CHECK(now() == "newest");
}

TEST_CASE("fault points: a record and its explanation fit together, whatever step fails of what "
          "joins them",
          "[workspace][faults]") {
  fixture f;
  const faults::isolation of_this_test;
  begin_record begun{"d-1", "k", "c", "a", {}, {}};
  begun.begun.fence = 1;
  begun.begun.version = "1";
  REQUIRE(f.ask(begun).ok());
  record::attempt_end end;
  end.fence = 1;
  REQUIRE(f.ask(end_record{begun, end, {}}).ok());
  record::execution_facts told;
  told.dispatch_id = "d-1";
  told.stage_changes = {{"ctx_1", "a.md", "context", "bank", "stable"}};
  told.evidence = {{"ctx_1", "exec_d-1", "used_in", "graph.jsonl:3"}};
  const auto holds = [&] {
    const auto r = f.ask(replay_execution{"d-1"});
    REQUIRE(r.ok());
    return r.value().replay->holds();
  };
  REQUIRE(holds());
  const std::string point = GENERATE("workspace.open", "workspace.bytes", "workspace.sync",
                                     "workspace.rename", "workspace.sync_directory");
  const int after = GENERATE(0, 1);
  INFO(point << " after " << after);
  faults::arming hit{point, faults::action::error, 1};
  hit.after = after;
  REQUIRE(faults::arm({hit}, 1));
  const bool hindered = !f.ask(add_evidence{{told}}).ok();
  CHECK((hindered || after > 0));
  CHECK(holds());
  // Once more, as its effect is.
  REQUIRE(f.ask(add_evidence{{told}}).ok());
  CHECK(holds());
  const auto text = f.disk->read("/boyd/executions/d-1/explain.md", 100'000).value();
  CHECK(text.find("context → bank: `a.md`") != text.npos);
  // A run of a flood has no record, and gets none.
  told.dispatch_id = "d-2";
  REQUIRE(f.ask(add_evidence{{told}}).ok());
  CHECK_FALSE(f.disk->read("/boyd/executions/d-2/record.json", 100).has_value());
}

TEST_CASE("fault points: the record of a run has whole lines, also when its repair fails",
          "[workspace][faults]") {
  fixture f;
  const faults::isolation of_this_test;
  const std::string path = "/boyd/executions/d/turns-1.jsonl";
  REQUIRE(f.ask(append_record{path, "{\"n\":1}\n"}).ok());
  f.disk->put(path, "{\"n\":1}\n{\"n\":2,\"wor"); // killed in the middle of a write
  const auto what = GENERATE(faults::action::error, faults::action::crash);
  REQUIRE(faults::arm({{"workspace.repair", what}}, 1));
  const auto hindered = f.actors.ask<workspace_reply>(
      f.workspace, workspace_request{{}, append_record{path, "{}\n"}});
  f.actors.advance(1min);
  REQUIRE(hindered.answered());
  CHECK(faults::triggered("workspace.repair") == 1);
  CHECK(hindered.ok() == (what == faults::action::crash));
  CHECK(f.ask(append_record{path, "{\"n\":3}\n"}).ok());
  const auto text = f.disk->read(path, 1000).value();
  CHECK(text == (hindered.ok() ? "{\"n\":1}\n{}\n{\"n\":3}\n" : "{\"n\":1}\n{\"n\":3}\n"));
}

TEST_CASE(
    "case 34 eio-fsync: a record whose sync failed is not acknowledged, and what follows it is "
    "whole",
    "[workspace]") {
  fixture f;
  const std::string path = "/boyd/executions/c-1/turns-1.jsonl";
  REQUIRE(f.ask(append_record{path, "{\"n\":1}\n"}).ok());
  f.disk->fail_next(sim::disk_op::sync, sim::disk_fault::io_error, 2, "turns-1.jsonl");
  CHECK_FALSE(f.ask(append_record{path, "{\"n\":2}\n"}).ok());
  CHECK_FALSE(f.ask(append_record{path, "{\"n\":3}\n"}).ok());
  REQUIRE(f.ask(append_record{path, "{\"n\":4}\n"}).ok());
  f.disk->crash(*f.context->ports.random);
  const auto kept = f.disk->read(path, 1000).value();
  CHECK(kept.starts_with("{\"n\":1}\n"));
  CHECK(kept.ends_with("{\"n\":4}\n"));
}

TEST_CASE("reading is capped and paths are absolute", "[workspace]") {
  fixture f;
  f.disk->put("/data/big", std::string(101, 'x'));
  CHECK(f.ask(read_text_file{"/data/big", 100}).why().code == errc::limit_exceeded);
  CHECK(f.ask(read_text_file{"data/big", 100}).why().code == errc::invalid_argument);
  CHECK(f.ask(write_private_file{"x", ""}).why().code == errc::invalid_argument);
  CHECK_FALSE(f.ask(read_text_file{"/data", 100}).ok());
}

TEST_CASE("a link at a private file's path is replaced, not followed", "[workspace]") {
  fixture f;
  f.disk->put_symlink("/boyd/run/prompt");
  REQUIRE(f.ask(write_private_file{"/boyd/run/prompt", "secret"}).ok());
  CHECK(f.disk->stat("/boyd/run/prompt")->kind == file_kind::regular);
}

TEST_CASE("the hash of inputs follows names and contents only", "[workspace]") {
  fixture f;
  f.disk->put("/in/a/1", "one");
  f.disk->put("/in/a/2", "two");
  f.disk->put("/in/b", "three");
  const auto before = f.hash({"/in/a", "/in/b", "/in/none"});
  CHECK(f.hash({"/in/none", "/in/b", "/in/a"}) == before);
  CHECK(f.hash({"/in/a", "/in/b"}) != before);
  f.disk->put("/in/a/2", "TWO");
  CHECK(f.hash({"/in/a", "/in/b", "/in/none"}) != before);
  f.disk->put("/in/a/2", "two");
  CHECK(f.hash({"/in/a", "/in/b", "/in/none"}) == before);
  f.disk->put("/in/a/3", "");
  CHECK(f.hash({"/in/a", "/in/b", "/in/none"}) != before);
  REQUIRE(f.disk->unlink("/in/a/3"));
  f.disk->put("/in/none", "here");
  CHECK(f.hash({"/in/a", "/in/b", "/in/none"}) != before);
}

TEST_CASE("too many inputs are refused", "[workspace]") {
  fixture f;
  for (std::size_t i = 0; i < hashed_files; ++i)
    f.disk->put("/many/" + std::to_string(i), "");
  CHECK(f.ask(hash_inputs{{"/many"}}).why().code == errc::limit_exceeded);
}

TEST_CASE("a disk without room is told and recovers", "[workspace]") {
  fixture f;
  f.disk->fail_next(sim::disk_op::write, sim::disk_fault::no_space, 1);
  CHECK_FALSE(f.ask(write_private_file{"/boyd/run/p", "x"}).ok());
  CHECK_FALSE(f.actors.ask_now<part_health>(f.workspace, health_query{}).value().ok);
  CHECK(f.disk->stat("/boyd/run/p")->kind == file_kind::missing);
  CHECK(f.ask(write_private_file{"/boyd/run/p", "x"}).ok());
  CHECK(f.actors.ask_now<part_health>(f.workspace, health_query{}).value().ok);
}

TEST_CASE("a disk that has healed is found out without a write", "[workspace]") {
  fixture f;
  f.disk->set_fault_plan([](const sim::disk_call& c) {
    return c.op == sim::disk_op::write ? sim::disk_fault::io_error : sim::disk_fault::none;
  });
  const auto ok = [&] {
    return f.actors.ask_now<part_health>(f.workspace, health_query{}).value().ok;
  };
  CHECK_FALSE(f.ask(write_private_file{"/boyd/run/deep/p", "x"}).ok());
  f.actors.advance(5s);
  CHECK_FALSE(ok()); // looked at, and still sick
  f.disk->clear_faults();
  f.actors.advance(2s);
  CHECK(ok());
  for (const auto& [path, text] : f.disk->snapshot())
    CHECK(path.find("probe") == std::string::npos);
}

TEST_CASE("the planner decides about every agent", "[planner]") {
  simulated_node node;
  config::agent agent;
  agent.agent_id = "a";
  agent.prompt = "Now: {TIME}";
  node.kernel().agents.push_back(agent);
  agent.agent_id = "b";
  agent.enabled = false;
  node.kernel().agents.push_back(agent);
  // Whom it asks: nobody, the plan is the static one.
  auto planner = node.actors.own(spawn_planner(node.actors.system(), {node.context, {}, {}, {}}));
  plan_request request;
  request.configuration = node.configuration;
  request.kernel_id = "default";
  request.input.cycle_id = "c";
  request.input.now = node.actors.clock()->now();
  request.input.make_id = [] { return "id"; };
  auto plan = node.actors.ask_now<plan::plan_output>(planner, request);
  REQUIRE(plan.ok());
  CHECK(plan.value().specs.size() == 1);
  CHECK(plan.value().decisions.size() == 2);
  request.kernel_id = "nobody";
  auto none = node.actors.ask_now<plan::plan_output>(planner, request);
  REQUIRE(none.answered());
  CHECK(none.why().code == errc::not_found);
}

} // namespace boyd::workspace_test
