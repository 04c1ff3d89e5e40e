#include "boyd/exec/sandbox.hpp"
#include "boyd/queue/usage_json.hpp"
#include "support/pch.hpp"

#include <algorithm>

namespace boyd::sandbox_test {

using namespace boyd;
using namespace boyd::exec;
using Catch::Matchers::Contains;

namespace {

using settings_t = config::sandbox_settings;

const sandbox_abilities new_kernel{7, true, {}, "bubblewrap is not installed", false};
const sandbox_abilities with_bubblewrap{0, true, "/usr/bin/bwrap", {}, false};
const sandbox_abilities nothing{0, false, {}, "bubblewrap is not installed", true};

struct fixture {
  process_spec process;
  settings_t settings;
  run_identity who;
  sandbox_places places;

  fixture() {
    process.argv = {"agent"};
    process.environment = {{"HOME", "/home/p"}, {"PATH", "/usr/bin:/home/p/.nvm/v20/bin"}};
    who.home = "/boyd";
    who.agent_id = "a";
    who.dispatch_id = "d";
    who.fence = 3;
    places.writable = {"/work"};
    places.hidden = {"/boyd"};
  }

  result<sandbox_report> confine(const sandbox_abilities& can) {
    return exec::confine(process, settings, can, places, who);
  }
  const sandbox_spec& spec() const { return *process.sandbox; }
  std::string variable(const std::string& name) const {
    for (const auto& [known, value] : process.environment)
      if (known == name)
        return value;
    return {};
  }
};

bool has(const std::vector<std::string>& list, const std::string& path) {
  return std::ranges::find(list, path) != list.end();
}

} // namespace

TEST_CASE("case W6: what is closed is not writable as a whole, whatever says so") {
  fixture f;
  f.places.closed = {"/boyd", "/boyd/kernel", "/boyd/kernel/default"};
  f.places.writable = {"/boyd/kernel/default", "/boyd/run/worktrees/d-3"};
  f.settings.writable = {"/boyd", "/boyd/kernel/", "/boyd/kernel/default/notes", "/work"};
  REQUIRE(f.confine(new_kernel));
  for (const auto* home : {"/boyd", "/boyd/kernel", "/boyd/kernel/", "/boyd/kernel/default"}) {
    INFO(home);
    CHECK_FALSE(has(f.spec().writable, home));
  }
  for (const auto* own : {"/boyd/run/worktrees/d-3", "/boyd/kernel/default/notes", "/work"}) {
    INFO(own);
    CHECK(has(f.spec().writable, own));
  }
}

TEST_CASE("sandbox: the kind is what the machine has, in the order that was asked for") {
  fixture f;
  SECTION("bubblewrap before Landlock") {
    auto both = new_kernel;
    both.bubblewrap = "/usr/bin/bwrap";
    CHECK(f.confine(both)->mode == "bwrap");
    CHECK(f.confine(both)->lacking.empty());
    f.settings.mode = settings_t::mode_t::required;
    CHECK(f.confine(both)->mode == "bwrap");
    f.settings.mode = settings_t::mode_t::landlock;
    CHECK(f.confine(both)->mode == "landlock");
    CHECK(f.spec().landlock_abi == 7);
    CHECK_THAT(f.confine(both)->lacking.at(0), Contains("modes, owners"));
    // Ports are bound by Landlock alone.
    f.settings = {};
    f.settings.network = settings_t::network_t::hosts;
    f.settings.hosts = {"example.org:443"};
    CHECK(f.confine(both)->mode == "landlock");
  }
  SECTION("bubblewrap without Landlock") {
    CHECK(f.confine(with_bubblewrap)->mode == "bwrap");
    CHECK(f.spec().bubblewrap == "/usr/bin/bwrap");
  }
  SECTION("bubblewrap was asked for and is not there") {
    f.settings.mode = settings_t::mode_t::bubblewrap;
    const auto report = f.confine(new_kernel);
    CHECK(report->mode == "landlock");
    CHECK_THAT(queue::to_json(*report),
               Contains(R"({"abi":7,"mode":"landlock","not_enforced":["Landlock instead of )"
                        R"(bubblewrap: bubblewrap is not installed",)"));
  }
  SECTION("neither: limits, and it says so") {
    const auto report = f.confine(nothing);
    CHECK(report->mode == "limits");
    REQUIRE(report->lacking.size() == 3);
    CHECK_THAT(report->lacking[0], Contains("files are not protected"));
    CHECK_THAT(report->lacking[1], Contains("local sockets"));
    CHECK_THAT(report->lacking[2], Contains("the process limit does not apply"));
    CHECK(f.spec().scratch.empty());
  }
  SECTION("off") {
    f.settings.mode = settings_t::mode_t::off;
    CHECK(queue::to_json(*f.confine(new_kernel)) == R"({"mode":"off"})");
    CHECK(f.process.sandbox == nullptr);
    CHECK(f.variable("TMPDIR").empty());
  }
}

TEST_CASE("sandbox: required fails closed, saying what is missing") {
  fixture f;
  f.settings.mode = settings_t::mode_t::required;
  CHECK(f.confine(new_kernel).has_value());
  CHECK(f.confine(with_bubblewrap).has_value());
  const auto refused = f.confine(nothing);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::refused);
  CHECK_THAT(refused.error().what, Contains("files are not protected"));
  auto old = new_kernel;
  old.landlock_abi = 2;
  CHECK_FALSE(f.confine(old));
  SECTION("what only a note is about does not count") {
    auto root = new_kernel;
    root.root = true;
    CHECK(f.confine(root).has_value());
  }
  SECTION("a network that cannot be closed") {
    f.settings.network = settings_t::network_t::none;
    CHECK(f.confine(new_kernel).has_value());
    f.settings.network = settings_t::network_t::hosts;
    f.settings.hosts = {"example.org:443"};
    CHECK_FALSE(f.confine(new_kernel));
  }
}

TEST_CASE("sandbox: what a program may reach") {
  fixture f;
  f.settings.readable = {"/data"};
  f.places.writable.emplace_back("~/.claude/");
  f.places.writable.emplace_back("relative");
  REQUIRE(f.confine(new_kernel));
  const auto& s = f.spec();
  CHECK(has(s.writable, "/work"));
  CHECK(has(s.writable, "/home/p/.claude/"));
  CHECK_FALSE(has(s.writable, "relative"));
  CHECK(has(s.writable, "/dev/null"));
  CHECK(has(s.readable, "/usr"));
  CHECK(has(s.readable, "/data"));
  CHECK(has(s.readable, "/home/p/.gitconfig"));
  CHECK(has(s.readable, "/home/p/.nvm/v20")); // beside its bin
  CHECK_FALSE(has(s.readable, "/home/p"));
  CHECK_FALSE(has(s.readable, "/"));
  CHECK(s.hidden == std::vector<std::string>{"/boyd"});
  CHECK(s.scratch == "/boyd/run/tmp/d-3");
  CHECK(f.variable("TMPDIR") == s.scratch);
  CHECK(f.variable("XDG_CACHE_HOME") == s.scratch + "/cache");
  CHECK_FALSE(s.unix_sockets);
  CHECK(s.limits.file_size == std::uint64_t{8} << 30);
  CHECK(s.limits.memory == 0);
  CHECK(s.network);
}

TEST_CASE("sandbox: a person's own directories are not opened for the sake of a program") {
  for (const std::string path : {"/home/p/bin", "/home/p/.local/bin", "/home/p/.cargo/bin"}) {
    fixture f;
    f.process.environment[1].second = path;
    REQUIRE(f.confine(new_kernel));
    CHECK(has(f.spec().readable, path));
    CHECK_FALSE(has(f.spec().readable, path.substr(0, path.rfind('/'))));
  }
  fixture f;
  f.process.argv = {"/opt/x/node_modules/.bin/agent"};
  REQUIRE(f.confine(new_kernel));
  CHECK(has(f.spec().readable, "/opt/x/node_modules/.bin/agent"));
  CHECK(has(f.spec().readable, "/opt/x/node_modules"));
}

TEST_CASE("sandbox: what is hidden is all that grants power") {
  config::configuration c;
  c.path = "/etc/boyd/boyd.yaml";
  c.node_settings.store_password_file = "/secrets/db";
  c.providers.emplace_back().api_key_file = "/secrets/key";
  c.providers.emplace_back();
  const auto hidden = hidden_from_agents(c, "/boyd");
  for (const char* path : {"/boyd", "/etc/boyd/boyd.yaml", "/secrets/db", "/secrets/key"})
    CHECK(has(hidden, path));
  CHECK_FALSE(has(hidden, ""));
}

TEST_CASE("case R4: who cannot keep a repository from being written says so") {
  fixture f;
  f.places.writable = {"/boyd/kernel/k"};
  config::configuration c;
  c.kernels.emplace_back().kernel_id = "k";
  f.places.read_only = read_only_for_agents(c, "/boyd");
  REQUIRE(f.places.read_only ==
          std::vector<std::string>{"/boyd/kernel/k/.git", "/boyd/kernel/k/context"});
  auto can = new_kernel;
  CHECK_THAT(queue::to_json(*f.confine(can)), Contains("/boyd/kernel/k/.git can be written"));
  can.own_mounts = true;
  CHECK_THAT(queue::to_json(*f.confine(can)), !Contains(".git"));
  CHECK(f.spec().own_mounts);
  CHECK_THAT(queue::to_json(*f.confine(with_bubblewrap)), !Contains(".git"));
  CHECK(f.spec().read_only == f.places.read_only);
  f.places.writable = {"/boyd/kernel/other"};
  CHECK_THAT(queue::to_json(*f.confine(new_kernel)), !Contains(".git"));
}

TEST_CASE("sandbox: one line about a machine") {
  CHECK(describe(new_kernel) == "Landlock ABI 7, seccomp, bubblewrap is not installed; modes, "
                                "owners and times of other files can be changed");
  CHECK(describe(nothing) == "no Landlock, no seccomp, bubblewrap is not installed; running as "
                             "root: the process limit does not apply (sandbox.processes)");
}

} // namespace boyd::sandbox_test
