#include "actors/git_committer/performer.hpp"
#include "actors/state_writer/performer.hpp"
#include "actors/store/performer.hpp"
#include "actors/store/replies.hpp"
#include "boyd/ports/repository.hpp"
#include "node_fixture.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/sqlite/store.hpp"
#include "support/pch.hpp"
#include "support/small_disk.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>
#include <fstream>

namespace boyd::real_adapters_test {

using namespace boyd;

namespace {

/// The state writer's and the git committer's workers on a real disk with real git.
struct fixture {
  test::temp_dir home;
  std::shared_ptr<test::virtual_clock> clock = std::make_shared<test::virtual_clock>();
  std::shared_ptr<node_context> context = make_context();
  configuration_ptr configuration = std::make_shared<config::configuration>();
  state_session state{context, configuration};
  repository_session repository{context, configuration};

  std::shared_ptr<node_context> make_context() const {
    auto c = std::make_shared<node_context>();
    c->ports.clock = clock;
    c->ports.random = std::make_shared<sim::seeded_entropy>(1);
    c->ports.files = adapters::make_posix_file_system();
    c->ports.repositories = adapters::make_git_repositories();
    c->home = home.path();
    return c;
  }

  template <class What>
  result<state_reply> ask(What what) {
    std::vector<job<state_request, state_reply>> batch;
    batch.emplace_back(state_request{{}, std::move(what)});
    state.perform(batch);
    return batch[0].reply;
  }

  template <class What>
  result<repository_reply> git(What what) {
    std::vector<job<repository_request, repository_reply>> batch;
    batch.emplace_back(repository_request{{}, std::move(what)});
    repository.perform(batch);
    return batch[0].reply;
  }

  std::string kernel_home() const { return home.file("kernel/default"); }
};

} // namespace

TEST_CASE("a cycle's files and commits on a real disk with real git", "[real]") {
  fixture f;
  REQUIRE(f.ask(init_kernel_home{"default"}));
  CHECK(f.state.health().ok);
  REQUIRE(f.git(commit_boundary{"default", "pre-cycle c1", {{"Boyd-Cycle", "c1"}}})->commit);
  cycle_record cycle;
  cycle.cycle_id = "c1";
  cycle.status = cycle_status::success;
  REQUIRE(f.ask(write_runtime_block{"default", f.clock->now(), {cycle}}));
  REQUIRE(f.git(commit_boundary{"default", "cycle c1: success", {{"Boyd-Cycle", "c1"}}})->commit);
  const auto history = f.git(query_history{"default", "STATE.md", 10});
  REQUIRE(history);
  CHECK(history->commits.size() == 2);
  const auto text = f.git(query_file_at{"default", "STATE.md", "c1"});
  REQUIRE(text);
  CHECK(text->text == f.ask(read_state{"default"})->text);

  SECTION("an emptied STATE.md comes back") {
    std::filesystem::resize_file(f.kernel_home() + "/STATE.md", 0);
    CHECK(f.ask(read_state{"default"})->text == text->text);
  }
  SECTION("the directory is taken away and given back") {
    std::filesystem::rename(f.kernel_home(), f.home.file("away"));
    CHECK_FALSE(f.ask(write_runtime_block{"default", f.clock->now(), {cycle}}));
    CHECK_FALSE(f.git(commit_boundary{"default", "cycle c2: success", {}}));
    CHECK_FALSE(f.state.health().ok);
    CHECK_FALSE(f.repository.health().ok);
    CHECK_FALSE(std::filesystem::exists(f.kernel_home()));
    std::filesystem::rename(f.home.file("away"), f.kernel_home());
    f.clock->advance(1min);
    f.state.probe();
    f.repository.probe();
    CHECK(f.state.health().ok);
    CHECK(f.repository.health().ok);
    CHECK(f.ask(read_state{"default"})->text == text->text);
  }
  SECTION("the repository is taken away and given back") {
    std::filesystem::rename(f.kernel_home() + "/.git", f.home.file("git"));
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win\n"}}}));
    CHECK_FALSE(f.git(commit_boundary{"default", "cycle c2: success", {}}));
    CHECK_FALSE(f.repository.health().ok);
    std::filesystem::rename(f.home.file("git"), f.kernel_home() + "/.git");
    f.clock->advance(1min);
    f.state.probe();
    f.repository.probe();
    CHECK(f.state.health().ok);
    CHECK(f.repository.health().ok);
    CHECK(f.git(commit_boundary{"default", "cycle c3: success", {}})->commit);
  }
}

TEST_CASE("a symbolic link in a kernel's home is named as such, and never read through", "[real]") {
  fixture f;
  REQUIRE(f.ask(init_kernel_home{"default"}));
  const auto secret = f.home.file("secret");
  std::ofstream(secret) << "outside of the kernel's home\n";
  std::filesystem::create_symlink(secret, f.kernel_home() + "/GOAL.md");
  const auto goal = f.ask(read_kernel_files{"default", {"GOAL.md"}});
  REQUIRE(goal);
  CHECK(goal->files.empty());
  const auto& why = goal->unreadable.at("GOAL.md");
  CHECK(why.code == errc::refused);
  CHECK(to_string(why).find("GOAL.md: this is a symbolic link") != std::string::npos);
  // Neither as the state nor as its backup, whether or not anything is behind it.
  const auto state = f.kernel_home() + "/STATE.md";
  cycle_record cycle;
  cycle.cycle_id = "c1";
  for (const auto& target : {secret, f.home.file("nowhere")}) {
    std::filesystem::remove(state);
    std::filesystem::create_symlink(target, state);
    CHECK(f.ask(read_state{"default"}).error().code == errc::refused);
    const auto merged = f.ask(render_cycle{{"default", f.clock->now(), {cycle}}, {}, 5});
    REQUIRE_FALSE(merged);
    CHECK(merged.error().code == errc::refused);
    CHECK(to_string(merged.error()).find("a symbolic link") != std::string::npos);
    CHECK_FALSE(merged.error().next.empty());
  }
  std::filesystem::remove(state);
  std::filesystem::remove(state + ".bak");
  std::filesystem::create_symlink(secret, state + ".bak");
  CHECK(f.ask(read_state{"default"}).error().code == errc::refused);
  CHECK_FALSE(std::filesystem::exists(state));
  std::filesystem::remove(state + ".bak");
  REQUIRE(f.ask(read_state{"default"}));
}

TEST_CASE("case 35 enospc-wal: a database on a full disk is read, is degraded for as long as it is "
          "full, and goes on",
          "[real]") {
  const auto disk = test::small_disk::mount(std::size_t{6} << 20);
  if (!disk)
    return;
  const auto clock = std::make_shared<test::virtual_clock>();
  adapters::sqlite_options options;
  options.path = disk->file("boyd.db");
  options.clock = clock;
  store_session session(
      adapters::make_sqlite_store(options),
      queue::settlement_spool(adapters::make_posix_file_system(), disk->file("spool.jsonl")),
      *clock);
  const auto ask = [&](store::operation op) {
    std::vector<job<store_request, store_reply>> batch;
    batch.emplace_back(store_request{});
    batch[0].request.operations.push_back(std::move(op));
    session.perform(batch);
    return std::move(batch[0].reply);
  };
  REQUIRE(ask(store::put_fact{"s", "before", "one"}));
  disk->fill();
  const auto big = ask(store::put_fact{"s", "big", std::string(std::size_t{512} << 10, 'x')});
  REQUIRE_FALSE(big);
  CHECK(big.error().code == errc::no_space);
  for (int second = 0; second < 20; ++second) {
    clock->advance(1s);
    session.probe();
    REQUIRE_FALSE(session.health().ok);
    REQUIRE_FALSE(ask(store::put_fact{"s", "small", "two"}));
    const auto facts = ask(store::get_facts{"s"});
    REQUIRE(facts);
    REQUIRE(std::get<store::get_facts::reply>(store_replies::of(*facts)[0]) ==
            store::get_facts::reply{{"before", "one"}});
  }
  disk->make_room();
  clock->advance(1s);
  session.probe();
  CHECK(session.health().ok);
  REQUIRE(ask(store::put_fact{"s", "small", "two"}));
  CHECK(
      std::get<store::get_facts::reply>(store_replies::of(*ask(store::get_facts{"store:proof"}))[0])
          .empty());
}

} // namespace boyd::real_adapters_test
