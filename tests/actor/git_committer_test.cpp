#include "actors/git_committer/actor.hpp"
#include "actors/state_writer/actor.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

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

  part_health health() { return actors.ask_now<part_health>(committer, health_query{}).value(); }
};

} // namespace

TEST_CASE("cycle boundaries are commits with trailers; nothing changed, no commit",
          "[git_committer]") {
  fixture f;
  auto first = f.commit("cycle c1: success", "c1");
  REQUIRE(first.ok());
  REQUIRE(first.value().commit);
  auto second = f.commit("cycle c2: success", "c2");
  REQUIRE(second.ok());
  CHECK_FALSE(second.value().commit);
  const auto history = f.ask(query_history{"default", "", 10});
  REQUIRE(history.ok());
  REQUIRE_FALSE(history.value().commits.empty());
  const auto& newest = history.value().commits.front();
  CHECK(newest.subject == "cycle c1: success");
  CHECK(newest.trailers ==
        std::vector<std::pair<std::string, std::string>>{{"Boyd-Cycle", "c1"}, {"Boyd-Node", "n"}});
  CHECK_FALSE(f.ask(commit_boundary{"default", "x", {{"Signed-off-by", "me"}}}).ok());
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
