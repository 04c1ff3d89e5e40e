#include "actors/state_writer/actor.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/runtime_block.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"
#include "support/telling.hpp"

#include <stdexcept>

namespace boyd::state_writer_test {

using namespace boyd;
using boyd::test::simulated_node;

namespace {

struct fixture : simulated_node {
  state_writer_actor writer =
      actors.own(spawn_state_writer(actors.system(), context, configuration));

  template <class What>
  test::asked<state_reply> ask(What what) {
    return actors.ask_now<state_reply>(writer, state_request{{}, std::move(what)});
  }

  void init() { REQUIRE(ask(init_kernel_home{"default"}).ok()); }

  part_health health() { return actors.ask_now<part_health>(writer, health_query{}).value(); }

  cycle_record cycle() const {
    cycle_record c;
    c.cycle_id = "cycle-1";
    c.kernel_id = "default";
    c.status = cycle_status::success;
    return c;
  }
};

constexpr const char* seed =
    "# Kernel State\n## identity\nTest autonomous kernel\n## recent_actions\n(none yet)\n";

} // namespace

TEST_CASE("a kernel home is made and seeded once", "[state_writer]") {
  fixture f;
  f.init();
  CHECK(f.file("STATE.md") == seed);
  f.disk->put("/boyd/kernel/default/STATE.md", "mine\n");
  f.init();
  CHECK(f.file("STATE.md") == "mine\n");
  CHECK(f.ask(read_state{"default"}).value().text == "mine\n");
}

TEST_CASE("outcomes and the runtime block are merged into what agents wrote", "[state_writer]") {
  fixture f;
  f.init();
  const std::string own = "# Mine\n\n| a | b |\n\ntext\n";
  f.disk->put("/boyd/kernel/default/STATE.md", own);
  REQUIRE(f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}}).ok());
  auto text = f.file("STATE.md");
  CHECK(state::agents_part(text) == own);
  REQUIRE(state::parse_runtime_block(text));
  CHECK(state::parse_runtime_block(text)->latest.cycle_id == "cycle-1");

  const auto now = f.actors.clock()->now();
  const render_cycle merge{{"default", now, {f.cycle()}}, {{now, "agent-a", "completed", "done"}}};
  REQUIRE(f.ask(merge).ok());
  CHECK(f.file("STATE.md").find("agent-a: completed (done)") != std::string::npos);
  CHECK(state::kernels_part(f.file("STATE.md")) == state::kernels_part(text));
  const auto once = f.file("STATE.md");
  REQUIRE(f.ask(merge).ok());
  CHECK(f.file("STATE.md") == once);
}

TEST_CASE("what somebody wrote into the runtime block is in the history before it is replaced",
          "[state_writer]") {
  fixture f;
  f.init();
  const std::string state = "/boyd/kernel/default/STATE.md";
  const auto now = f.actors.clock()->now();
  const render_cycle what{{"default", now, {f.cycle()}}, {{now, "a", "done", "ok"}}};
  REQUIRE(f.ask(what).ok());
  const auto& commits = f.repositories->commits(f.kernel_home);
  const auto before = commits.size();
  // The agents' own part needs no snapshot: the commits that follow have it.
  f.disk->put(state, "an agent's line\n" + f.file("STATE.md"));
  REQUIRE(f.ask(render_cycle{{"default", now + 1s, {f.cycle()}}, {}}).ok());
  CHECK(commits.size() == before);
  auto text = f.file("STATE.md");
  const auto end = text.find(state::block_end);
  REQUIRE(end != std::string::npos);
  f.disk->put(state, text.insert(end, "- note: in the wrong place\n"));
  REQUIRE(f.ask(what).ok());
  CHECK(f.file("STATE.md").find("wrong place") == std::string::npos);
  REQUIRE(commits.size() == before + 1);
  CHECK(commits.back().tree.at("STATE.md")->find("wrong place") != std::string::npos);
}

TEST_CASE("files of the kernel home are read and written; unchanged snapshots are not",
          "[state_writer]") {
  fixture f;
  f.init();
  REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win\n"}}}).ok());
  auto read = f.ask(read_kernel_files{"default", {"GOAL.md", "SOUL.md"}});
  REQUIRE(read.ok());
  CHECK(read.value().files == std::map<std::string, std::string>{{"GOAL.md", "win\n"}});
  CHECK_FALSE(f.ask(read_kernel_files{"default", {"../../secret"}}).ok());
  CHECK_FALSE(f.ask(read_state{"../default"}).ok());
}

TEST_CASE("a missing home degrades, is not made anew, and recovers by itself", "[state_writer]") {
  fixture f;
  f.init();
  f.disk->put("/boyd/kernel/default/STATE.md", "mine\n");
  f.files->take_away(f.kernel_home);
  auto block = f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}});
  REQUIRE(block.answered());
  REQUIRE_FALSE(block.ok());
  CHECK(block.why().code == errc::io_error);
  CHECK_FALSE(f.health().ok);
  CHECK(f.health().reason.find("kernel default: state directory is missing") == 0);
  CHECK_FALSE(f.files->made_hidden);
  f.files->give_back();
  f.actors.advance(3s);
  CHECK(f.health().ok);
  CHECK(f.ask(read_state{"default"}).value().text == "mine\n");
}

TEST_CASE("a home that disappears while nothing is asked is noticed", "[state_writer]") {
  fixture f;
  f.init();
  f.files->take_away(f.kernel_home);
  f.actors.advance(3s);
  CHECK_FALSE(f.health().ok);
}

TEST_CASE("case 39 both-copies-bad: the newest sound commit, else a refusal that says what to run",
          "[state_writer]") {
  fixture f;
  f.init();
  const std::string state = "/boyd/kernel/default/STATE.md";
  const std::string holes = "preci" + std::string(512, '\0');
  const bool emptied = GENERATE(true, false);
  INFO((emptied ? "emptied" : "with holes"));
  SECTION("a commit has it") {
    f.disk->put(state, "precious\n");
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win\n"}}}).ok());
    // A damaged text that got into the history is passed over.
    f.disk->put(state, holes);
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win more\n"}}}).ok());
    f.disk->put(state, emptied ? "" : holes);
    f.disk->put(state + ".bak", emptied ? holes : "");
    CHECK(f.ask(read_state{"default"}).value().text == "precious\n");
    CHECK(f.file("STATE.md") == "precious\n");
    CHECK(f.file("STATE.md.bak") == "precious\n");
    test::tell_figure(
        std::string("case 39: both copies bad (STATE.md ") +
        (emptied ? "emptied, its backup with holes" : "with holes, its backup empty") +
        "): restored from the commit before the newest, which has holes, too");
  }
  SECTION("nothing has it") {
    f.disk->put(state, emptied ? "" : holes);
    f.disk->put(state + ".bak", emptied ? holes : "");
    const auto read = f.ask(read_state{"default"});
    REQUIRE(read.answered());
    REQUIRE_FALSE(read.ok());
    CHECK(read.why().code == errc::corrupt);
    CHECK(read.why().next.find("rm '/boyd/kernel/default/STATE.md'") != std::string::npos);
    CHECK(f.file("STATE.md") == (emptied ? "" : holes));
  }
}

TEST_CASE("case 38 zero-byte-state, case 39 both-copies-bad: an emptied STATE.md is restored",
          "[state_writer]") {
  fixture f;
  f.init();
  f.disk->put("/boyd/kernel/default/STATE.md", "precious\n");
  SECTION("from its backup") {
    f.disk->put("/boyd/kernel/default/STATE.md.bak", "precious\n");
    f.disk->put("/boyd/kernel/default/STATE.md", "");
    CHECK(f.ask(read_state{"default"}).value().text == "precious\n");
  }
  SECTION("from the last commit") {
    // The pre-write snapshot has committed what stood there.
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win\n"}}}).ok());
    (void)f.disk->unlink("/boyd/kernel/default/STATE.md.bak");
    f.disk->put("/boyd/kernel/default/STATE.md", "");
    CHECK(f.ask(read_state{"default"}).value().text == "precious\n");
  }
  CHECK(f.file("STATE.md") == "precious\n");
  const auto told = f.health().last_error;
  CHECK(told.find("restored") != std::string::npos);
  test::tell_figure("case 38: " + told);
}

TEST_CASE("a removed STATE.md is restored, and seeded only when nothing has it", "[state_writer]") {
  fixture f;
  f.init();
  const std::string state = "/boyd/kernel/default/STATE.md";
  f.disk->put(state, "precious\n");
  std::string expected = "precious\n";
  std::string said = "was missing and was restored from ";
  SECTION("from its backup") {
    f.disk->put(state + ".bak", "precious\n");
    said += "its backup";
  }
  SECTION("from the newest commit that has it, when the backup is gone, too") {
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win\n"}}}).ok());
    (void)f.disk->unlink(state + ".bak");
    (void)f.disk->unlink(state);
    // The snapshot before this write commits the removal.
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win more\n"}}}).ok());
    said += "commit ";
  }
  SECTION("from the newest commit, when the backup is damaged") {
    REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "win\n"}}}).ok());
    f.disk->put(state + ".bak", "");
    said += "commit ";
  }
  SECTION("not when there is neither") {
    (void)f.disk->unlink(state + ".bak");
    expected = seed;
    said.clear();
  }
  const auto commits = f.repositories->commits(f.kernel_home).size();
  (void)f.disk->unlink(state);
  CHECK(f.ask(read_state{"default"}).value().text == expected);
  CHECK(f.file("STATE.md") == expected);
  CHECK(f.file("STATE.md.bak") == expected);
  CHECK(f.repositories->commits(f.kernel_home).size() == commits);
  const auto last_error = f.health().last_error;
  CHECK((said.empty() ? last_error.empty() : last_error.find(said) != std::string::npos));
}

TEST_CASE("a removed STATE.md is not seeded while its backup cannot be read", "[state_writer]") {
  fixture f;
  f.init();
  const std::string state = "/boyd/kernel/default/STATE.md";
  f.disk->put(state + ".bak", "precious\n");
  (void)f.disk->unlink(state);
  f.disk->fail_next(sim::disk_op::read, sim::disk_fault::io_error, 100, "STATE.md.bak");
  const auto read = f.ask(read_state{"default"});
  REQUIRE(read.answered());
  REQUIRE_FALSE(read.ok());
  CHECK(read.why().code == errc::io_error);
  CHECK(f.file("STATE.md").empty());
  CHECK(f.file("STATE.md.bak") == "precious\n");
  f.disk->clear_faults();
  CHECK(f.ask(read_state{"default"}).value().text == "precious\n");
}

TEST_CASE("a removed STATE.md is restored by whatever writes it first", "[state_writer]") {
  fixture f;
  f.init();
  const std::string state = "/boyd/kernel/default/STATE.md";
  f.disk->put(state, "precious\n");
  REQUIRE(f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}}).ok());
  (void)f.disk->unlink(state);
  const auto next = GENERATE(0, 1, 2);
  if (next == 0)
    f.init();
  else if (next == 1)
    REQUIRE(f.ask(render_cycle{{"default", f.actors.clock()->now(), {f.cycle()}},
                               {{f.actors.clock()->now(), "a", "done", "ok"}}})
                .ok());
  else
    REQUIRE(f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}}).ok());
  CHECK(f.file("STATE.md").find("precious\n") == 0);
  CHECK(f.file("STATE.md.bak").find("precious\n") == 0);
}

TEST_CASE("case 35 enospc-state: a full disk degrades until a write succeeds", "[state_writer]") {
  fixture f;
  f.init();
  f.disk->set_fault_plan([](const sim::disk_call& c) {
    return c.op == sim::disk_op::write ? sim::disk_fault::no_space : sim::disk_fault::none;
  });
  const auto before = f.file("STATE.md");
  auto write = f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}});
  REQUIRE(write.answered());
  CHECK_FALSE(write.ok());
  CHECK(f.file("STATE.md") == before);
  CHECK_FALSE(f.health().ok);
  f.disk->clear_faults();
  REQUIRE(f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}}).ok());
  CHECK(f.health().ok);
}

TEST_CASE("a repository that is taken away costs history only", "[state_writer]") {
  fixture f;
  f.init();
  f.repositories->set_available(f.kernel_home, false);
  REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "a\n"}}}).ok());
  REQUIRE(f.ask(write_kernel_files{"default", {{"GOAL.md", "b\n"}}}).ok());
  CHECK(f.file("GOAL.md") == "b\n");
  CHECK_FALSE(f.health().ok);
  CHECK(f.health().reason.find("kernel default: history is off") == 0);
  f.repositories->set_available(f.kernel_home, true);
  f.actors.advance(40s);
  CHECK(f.health().ok);
}

namespace {

constexpr const char* agents_words = "# Mine\n\nthe agents' words\n";

/// What must hold after a write was cut short and made again.
void check_whole(fixture& f) {
  f.init(); // a start: leftovers go
  const auto text = f.file("STATE.md");
  CHECK(state::agents_part(text) == agents_words);
  const auto block = state::parse_runtime_block(text);
  REQUIRE(block);
  CHECK(block->latest.cycle_id == "cycle-1");
  for (const auto& [path, bytes] : f.disk->snapshot())
    CHECK(path.find(".boyd-tmp-") == std::string::npos);
}

} // namespace

TEST_CASE("a worker that dies at any call of a write makes it again, whole", "[state_writer]") {
  bool all = false;
  int point = 0;
  for (; !all && point < 200; ++point) {
    fixture f;
    f.init();
    f.disk->put("/boyd/kernel/default/STATE.md", agents_words);
    auto calls = std::make_shared<int>(0);
    f.disk->set_fault_plan([calls, point](const sim::disk_call&) {
      if ((*calls)++ == point)
        throw std::runtime_error("the worker dies here");
      return sim::disk_fault::none;
    });
    auto block = f.ask(write_runtime_block{"default", f.actors.clock()->now(), {f.cycle()}});
    f.actors.advance(5s);
    all = *calls <= point;
    f.disk->clear_faults();
    f.actors.advance(5s); // it may have died in a probe just now
    INFO("died at call " << point);
    REQUIRE(block.ok());
    CHECK(f.health().worker_restarts == (all ? 0 : 1));
    check_whole(f);
  }
  CHECK(all);
  CHECK(point > 10);
}

TEST_CASE("a writer that is killed between any two messages leaves the old text or the new one",
          "[state_writer]") {
  constexpr int most = 12;
  for (int messages = 0; messages < most; ++messages) {
    fixture f;
    f.init();
    f.disk->put("/boyd/kernel/default/STATE.md", agents_words);
    const write_runtime_block what{"default", f.actors.clock()->now(), {f.cycle()}};
    auto interrupted = f.actors.ask<state_reply>(f.writer, state_request{{}, what});
    for (int i = 0; i < messages; ++i)
      f.actors.run_one();
    f.actors.kill(f.writer);
    f.actors.run_all();
    INFO("killed after " << messages << " messages");
    REQUIRE((interrupted.answered() || interrupted.failed()));
    CHECK(state::agents_part(f.file("STATE.md")) == agents_words);
    f.writer = f.actors.own(spawn_state_writer(f.actors.system(), f.context, f.configuration));
    REQUIRE(f.ask(what).ok());
    check_whole(f);
  }
}

} // namespace boyd::state_writer_test
