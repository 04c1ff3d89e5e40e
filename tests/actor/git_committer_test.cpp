#include "actors/git_committer/actor.hpp"
#include "actors/state_writer/actor.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

#include <stdexcept>

namespace boyd::git_committer_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

struct fixture : simulated_node {
  state_writer_actor writer =
      actors.own(spawn_state_writer(actors.system(), context, configuration));
  git_committer_actor committer =
      actors.own(spawn_git_committer(actors.system(), context, configuration));

  fixture() {
    auto made = actors.ask_now<state_reply>(writer, state_request{{}, init_kernel_home{"default"}});
    REQUIRE(made.ok());
  }

  template <class What>
  test::asked<repository_reply> ask(What what) {
    return actors.ask_now<repository_reply>(committer, repository_request{{}, std::move(what)});
  }

  test::asked<repository_reply> commit(const std::string& message, const std::string& cycle) {
    return ask(commit_boundary{"default", message, {{"Boyd-Cycle", cycle}, {"Boyd-Node", "n"}}});
  }

  std::vector<std::string> subjects() {
    std::vector<std::string> all;
    for (const auto& c : repositories->commits(kernel_home))
      all.push_back(c.info.subject);
    return all;
  }

  part_health health() { return actors.ask_now<part_health>(committer, health_query{}).value(); }
};

} // namespace

TEST_CASE("cycle boundaries are commits with trailers, empty when nothing changed",
          "[git_committer]") {
  fixture f;
  auto first = f.commit("pre-cycle c1", "c1");
  REQUIRE(first.ok());
  REQUIRE(first.value().commit);
  auto second = f.commit("cycle c1: success", "c1");
  REQUIRE(second.ok());
  REQUIRE(second.value().commit);
  CHECK(f.ask(query_diff{"default", *first.value().commit, *second.value().commit})
            .value()
            .text.empty());
  const auto history = f.ask(query_history{"default", "", 10});
  REQUIRE(history.ok());
  REQUIRE(history.value().commits.size() == 2);
  const auto& newest = history.value().commits.front();
  CHECK(newest.subject == "cycle c1: success");
  CHECK(newest.trailers ==
        std::vector<std::pair<std::string, std::string>>{{"Boyd-Cycle", "c1"}, {"Boyd-Node", "n"}});
  CHECK_FALSE(f.ask(commit_boundary{"default", "x", {{"Signed-off-by", "me"}}}).ok());
}

TEST_CASE("both commits of a cycle are made in one step; the first has the block of HEAD",
          "[git_committer]") {
  fixture f;
  cycle_record cycle;
  cycle.cycle_id = "c1";
  const auto render = [&] {
    return f.actors
        .ask_now<state_reply>(
            f.writer,
            state_request{{}, render_cycle{{"default", f.actors.clock()->now(), {cycle}}, {}}})
        .ok();
  };
  const auto commits = [&](const std::string& id) {
    return f.ask(commit_cycle{{"default", "cycle " + id + ": success", {{"Boyd-Cycle", id}}},
                              "pre-cycle " + id});
  };
  REQUIRE(render());
  const auto first = commits("c1");
  REQUIRE(first.ok());
  REQUIRE(first.value().commit);
  CHECK(commits("c1").value().commit == first.value().commit);
  const auto old = f.ask(query_file_at{"default", "STATE.md", "c1"}).value().text;
  cycle.cycle_id = "c2";
  REQUIRE(render());
  f.disk->put("/boyd/kernel/default/notes.md", "an agent's");
  REQUIRE(commits("c2").ok());
  CHECK(f.subjects() == std::vector<std::string>{"pre-cycle c1", "cycle c1: success",
                                                 "pre-cycle c2", "cycle c2: success"});
  const auto& all = f.repositories->commits(f.kernel_home);
  CHECK(all[0].tree.at("STATE.md")->find("KERNEL_RUNTIME") == std::string::npos);
  CHECK(*all[2].tree.at("STATE.md") == old);
  CHECK(all[2].tree.count("notes.md") == 1);
  CHECK(*all[3].tree.at("STATE.md") != old);
}

TEST_CASE("the past is read by cycle", "[git_committer]") {
  fixture f;
  f.disk->put("/boyd/kernel/default/STATE.md", "one\n");
  REQUIRE(f.commit("cycle c1: success", "c1").ok());
  f.disk->put("/boyd/kernel/default/STATE.md", "two\n");
  REQUIRE(f.commit("cycle c2: success", "c2").ok());
  CHECK(f.ask(query_file_at{"default", "STATE.md", "c1"}).value().text == "one\n");
  CHECK(f.ask(query_file_at{"default", "STATE.md", "c2"}).value().text == "two\n");
  CHECK(f.ask(query_diff{"default", "c1", "c2"}).ok());
  CHECK_FALSE(f.ask(query_file_at{"default", "STATE.md", "c9"}).ok());
}

TEST_CASE("a repository that is taken away degrades and recovers without a restart",
          "[git_committer]") {
  fixture f;
  REQUIRE(f.commit("cycle c1: success", "c1").ok());
  f.repositories->set_available(f.kernel_home, false);
  f.disk->put("/boyd/kernel/default/STATE.md", "two\n");
  auto refused = f.commit("cycle c2: success", "c2");
  REQUIRE(refused.answered());
  CHECK(refused.why().code == errc::repository_unavailable);
  CHECK_FALSE(f.health().ok);
  CHECK(f.health().reason.find("kernel default: ") == 0);
  f.repositories->set_available(f.kernel_home, true);
  f.actors.advance(40s);
  CHECK(f.health().ok);
  REQUIRE(f.commit("cycle c3: success", "c3").value().commit);
}

TEST_CASE("a mass deletion is refused and stays visible", "[git_committer]") {
  fixture f;
  for (const char c : {'a', 'b', 'c', 'd'})
    f.disk->put(std::string("/boyd/kernel/default/") + c, "x");
  REQUIRE(f.commit("cycle c1: success", "c1").ok());
  for (const char c : {'a', 'b', 'c', 'd'})
    REQUIRE(f.disk->unlink(std::string("/boyd/kernel/default/") + c));
  auto refused = f.commit("cycle c2: success", "c2");
  REQUIRE(refused.answered());
  CHECK(refused.why().code == errc::refused);
  f.actors.advance(40s);
  CHECK_FALSE(f.health().ok);
  f.disk->put("/boyd/kernel/default/a", "y");
  f.disk->put("/boyd/kernel/default/b", "y");
  f.disk->put("/boyd/kernel/default/c", "y");
  REQUIRE(f.commit("cycle c3: success", "c3").ok());
  CHECK(f.health().ok);
}

TEST_CASE("packing is tried every few minutes and only when nobody waits", "[git_committer]") {
  fixture f;
  REQUIRE(f.commit("cycle c1: success", "c1").ok());
  auto packs = std::make_shared<int>(0);
  f.repositories->set_fault_hook([packs](sim::git_op op, const std::string&) {
    if (op == sim::git_op::pack)
      ++*packs;
    return std::optional<error>{};
  });
  f.actors.advance(4min);
  CHECK(*packs == 0);
  CHECK(f.health().ok);
}

TEST_CASE("a boundary of an earlier life is looked for further back", "[git_committer]") {
  fixture f;
  const auto first = f.commit("cycle c1: success", "c1").value().commit;
  REQUIRE(f.commit("pre-cycle c2", "c2").ok());
  f.disk->put("/boyd/kernel/default/STATE.md", "written since\n");
  auto again = commit_boundary{"default", "cycle c1: success", {{"Boyd-Cycle", "c1"}}, true};
  CHECK(f.ask(again).value().commit == first);
  // What the earlier life wrote behind it does not lie about until the next cycle.
  CHECK(f.subjects() ==
        std::vector<std::string>{"cycle c1: success", "pre-cycle c2", "auto: pre-write snapshot"});
  CHECK(f.ask(again).value().commit == first);
  CHECK(f.subjects().size() == 3);
  again.trailers = {{"Boyd-Cycle", "c3"}};
  again.message = "cycle c3: success";
  CHECK(f.ask(again).value().commit != first);
  CHECK(f.subjects().size() == 4);
}

TEST_CASE("a worker that dies in a commit makes it once, whether or not HEAD had moved",
          "[git_committer]") {
  const auto point = GENERATE(sim::git_op::changes, sim::git_op::commit, sim::git_op::commit_moved);
  fixture f;
  REQUIRE(f.commit("pre-cycle c1", "c1").ok());
  f.disk->put("/boyd/kernel/default/STATE.md", "two\n");
  auto dies = std::make_shared<bool>(true);
  f.repositories->set_fault_hook([dies, point](sim::git_op op, const std::string&) {
    if (op == point && std::exchange(*dies, false))
      throw std::runtime_error("the worker dies here");
    return std::optional<error>{};
  });
  auto commit = f.commit("cycle c1: success", "c1");
  f.actors.advance(5s);
  REQUIRE_FALSE(*dies);
  REQUIRE(commit.ok());
  CHECK(commit.value().commit == f.repositories->commits(f.kernel_home).back().info.hash);
  CHECK(f.subjects() == std::vector<std::string>{"pre-cycle c1", "cycle c1: success"});
  CHECK(f.health().worker_restarts == 1);
}

TEST_CASE("a committer that is killed between any two messages is followed by one that makes the "
          "commit once",
          "[git_committer]") {
  constexpr int most = 12;
  for (int messages = 0; messages < most; ++messages) {
    fixture f;
    auto interrupted = f.actors.ask<repository_reply>(
        f.committer,
        repository_request{{}, commit_boundary{"default", "pre-cycle c1", {{"Boyd-Cycle", "c1"}}}});
    for (int i = 0; i < messages; ++i)
      f.actors.run_one();
    f.actors.kill(f.committer);
    f.actors.run_all();
    INFO("killed after " << messages << " messages");
    REQUIRE((interrupted.answered() || interrupted.failed()));
    f.committer = f.actors.own(spawn_git_committer(f.actors.system(), f.context, f.configuration));
    REQUIRE(f.ask(commit_boundary{"default", "pre-cycle c1", {{"Boyd-Cycle", "c1"}}, true}).ok());
    CHECK(f.subjects() == std::vector<std::string>{"pre-cycle c1"});
  }
}

} // namespace boyd::git_committer_test
