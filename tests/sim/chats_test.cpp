#include "support/pch.hpp"
#include "support/sim/workspaces.hpp"
#include "tests/sim/fixture.hpp"
#include "tests/sim/lab/scenario.hpp"
#include "tests/sim/lab/world.hpp"

#include <array>
#include <memory>
#include <variant>

namespace boyd::chats_test {

using namespace boyd;
using namespace boyd::sim;

namespace {

bool is_of_chats(const scenario& s) {
  return s.menu.contains(fault::model_trouble);
}

/// What became of the chats of some worlds.
struct endings {
  std::array<std::uint64_t, model_acts> acts{};
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t again = 0;       ///< more than one attempt
  std::size_t over_budget = 0; ///< ended by a budget
  std::size_t files = 0;       ///< written by models, at the end

  void add(world& w, const config::configuration& c) {
    for (std::size_t i = 0; i < model_acts; ++i)
      acts[i] += w.model_answers()[i];
    for (const auto& a : c.kernels.front().agents) {
      const auto* chat = std::get_if<config::chat_executor>(&a.run);
      if (chat == nullptr)
        continue;
      for (const auto& [id, row] : w.database().all_rows())
        add(row.d, a.agent_id);
      for (const auto name : model_files)
        files += w.disk().look(chat->workspace + "/" + std::string(name)).content != nullptr;
    }
  }

 private:
  void add(const dispatch& d, const std::string& agent_id) {
    if (d.agent_id != agent_id)
      return;
    done += d.status == dispatch_status::done;
    failed += d.status == dispatch_status::failed;
    again += d.attempt > 1;
    over_budget += d.outcome.error.find("budget") != std::string::npos;
  }
};

} // namespace

TEST_CASE("chats work, fail and are cut off under all faults, and their budgets and files hold",
          "[sim][chat]") {
  const quiet no_log;
  constexpr int worlds = 40;
  endings all;
  int seen = 0;
  for (std::uint64_t seed = 1; seen < worlds; ++seed) {
    auto s = scenario_of(seed);
    if (!is_of_chats(s))
      continue;
    ++seen;
    const auto configuration = s.configuration;
    world w(seed, std::move(s.configuration), std::move(s.menu), s.options);
    w.boot();
    w.run(std::chrono::hours{24});
    w.settle();
    INFO("replay: boyd-sim --first " << seed << " --seeds 1 --verbose");
    INFO(joined(w.violations()));
    CHECK(w.violations().empty());
    CHECK(w.chat_calls() > 0);
    all.add(w, configuration);
  }
  // The worlds have what they are for.
  for (std::size_t i = 0; i < model_acts; ++i) {
    INFO(name_of(static_cast<model_act>(i)));
    CHECK(all.acts[i] > 0);
  }
  CHECK(all.done > 0);
  CHECK(all.failed > 0);
  CHECK(all.again > 0);
  CHECK(all.over_budget > 0);
  CHECK(all.files > 0);
}

TEST_CASE("a torn file in a chat's workspace, and one that is gone, are found after a crash",
          "[sim][chat]") {
  const quiet no_log;
  auto c = half_hourly({"a"}, "work");
  c.providers.emplace_back();
  c.providers.back().provider_id = "chat";
  c.providers.back().base_url = "http://127.0.0.1:2/v1";
  c.providers.back().model = "m";
  config::chat_executor chat;
  chat.provider_id = "chat";
  chat.system = chat_identity("a");
  chat.workspace = "/srv/a";
  auto& agent = c.kernels.front().agents.front();
  agent.run = chat;
  agent.tools = {"write_file"};
  world w(3, c, {});
  w.boot();
  w.calm(std::chrono::hours{24});
  const std::string path = "/srv/a/notes.md";
  REQUIRE(w.disk().look(path).content != nullptr);
  std::string wanted;
  SECTION("as it was left") {}
  SECTION("torn") {
    w.disk().put(path, whole_text(5).substr(0, 20));
    wanted = "torn";
  }
  SECTION("gone") {
    REQUIRE(w.disk().unlink(path));
    REQUIRE(w.disk().sync_directory(chat.workspace));
    wanted = "gone after a crash";
  }
  w.crash();
  INFO(joined(w.violations()));
  CHECK(w.violations().size() == (wanted.empty() ? 0 : 1));
  CHECK(joined(w.violations()).find(wanted) != std::string::npos);
}

TEST_CASE("what models write is known from what is torn", "[sim][chat]") {
  for (const std::uint64_t serial : {1u, 39u, 40u, 12'345u}) {
    const auto text = whole_text(serial);
    CHECK(serial_of(text) == serial);
    CHECK_FALSE(serial_of(text.substr(0, text.size() - 1)));
    CHECK_FALSE(serial_of(text + '\0'));
    auto zeroed = text;
    zeroed[zeroed.size() - 2] = '\0';
    CHECK_FALSE(serial_of(zeroed));
  }
  CHECK_FALSE(serial_of(""));
}

TEST_CASE("a simulated workspace holds the old file or the new one, whatever breaks",
          "[sim][chat]") {
  const std::string root = "/srv/a";
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto disk = std::make_shared<sim_disk>();
    disk_workspaces workspaces(disk);
    seeded_entropy draw(seed);
    REQUIRE(disk->make_directories(root));
    REQUIRE(workspaces.write(root, "log/notes.md", whole_text(1)));
    const auto before = disk->calls();
    const auto fails_at = before + draw.next() % 10;
    disk->set_fault_plan([&](const disk_call& call) {
      return call.number == fails_at ? disk_fault::io_error : disk_fault::none;
    });
    const auto written = workspaces.write(root, "log/notes.md", whole_text(2));
    disk->clear_faults();
    disk->crash(draw);
    const auto read = workspaces.read(root, "log/notes.md", 0, 10'000);
    REQUIRE(read);
    const auto serial = serial_of(read->text);
    REQUIRE(serial);
    CHECK((*serial == 2 || (!written && *serial == 1)));
  }
}

TEST_CASE("a simulated workspace: what leads out, what is not there, what stands there",
          "[sim][chat]") {
  auto disk = std::make_shared<sim_disk>();
  disk_workspaces workspaces(disk);
  REQUIRE(disk->make_directories("/srv/a"));
  const auto code = [](const auto& outcome) { return outcome ? errc::bug : outcome.error().code; };
  CHECK(code(workspaces.write("/srv/a", "../b", "x")) == errc::refused);
  CHECK(code(workspaces.write("/srv/a", ".git/config", "x")) == errc::refused);
  CHECK(code(workspaces.read("/srv/a", "b", 0, 1)) == errc::not_found);
  REQUIRE(workspaces.write("/srv/a", "d/b", "text"));
  CHECK(code(workspaces.write("/srv/a", "d", "x")) == errc::invalid_argument);
  CHECK(code(workspaces.read("/srv/a", "d", 0, 1)) == errc::invalid_argument);
  CHECK(workspaces.read("/srv/a", "d/b", 1, 2)->text == "ex");
  CHECK(workspaces.find("/srv/a", "d")->kind == file_kind::directory);
  CHECK(workspaces.list("/srv/a", ".", 10)->entries.front().name == "d");
  const auto is = [](const std::string& wanted) {
    return [wanted](const std::string* now) { return now != nullptr && *now == wanted; };
  };
  CHECK(code(workspaces.write_over("/srv/a", "d/b", "new", is("other"))) == errc::conflict);
  CHECK(workspaces.write_over("/srv/a", "d/b", "new", is("text")));
  std::vector<std::string> seen;
  const auto end = workspaces.walk(
      "/srv/a", ".", {}, [](const std::string&) { return true; },
      [&](const std::string& where, std::string_view text) {
        seen.push_back(where + "=" + std::string(text));
        return true;
      });
  REQUIRE(end);
  CHECK(end->files == 1);
  CHECK(seen == std::vector<std::string>{"d/b=new"}); // no temporary file is left
}

} // namespace boyd::chats_test
