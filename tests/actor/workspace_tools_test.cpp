#include "actors/workspace/actor.hpp"
#include "actors/workspace/performer.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/confined_files.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <condition_variable>
#include <mutex>

namespace boyd::workspace_tools_test {

using namespace boyd;

namespace {

/// Workspaces without files; reading below "/hangs" waits until it is released, as on a mount whose
/// server is gone.
class hanging_files final : public confined_files {
 public:
  result<text_part> read(const std::string& root, const std::string& path, std::uint64_t offset,
                         std::size_t) override {
    std::unique_lock lock(mutex_);
    if (root == "/hangs") {
      ++hanging_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return released_; });
    }
    const auto text = "content of " + root;
    return text_part{offset == 0 ? text : "", text.size(), path};
  }
  result<void> write(const std::string& root, const std::string&, std::string_view) override {
    if (root != "/writable")
      return fail(errc::refused, "not here");
    const std::lock_guard lock(mutex_);
    ++written_;
    return {};
  }
  result<void> write_over(const std::string& root, const std::string& path,
                          std::string_view content, const may_replace&) override {
    return write(root, path, content);
  }
  result<listing> list(const std::string&, const std::string&, std::size_t) override {
    return fail(errc::refused, "not here");
  }
  result<place> find(const std::string&, const std::string&) override {
    return fail(errc::refused, "not here");
  }
  result<walk_end> walk(const std::string&, const std::string&, const walk_limits&,
                        const wanted_file&, const visit_file&) override {
    return fail(errc::refused, "not here");
  }

  bool wait_until_hanging() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [this] { return hanging_ > 0; });
  }
  int written() {
    const std::lock_guard lock(mutex_);
    return written_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int hanging_ = 0;
  int written_ = 0;
  bool released_ = false;
};

struct answer_slot {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<result<workspace_reply>> value;

  std::optional<result<workspace_reply>> wait() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, 20s, [this] { return value.has_value(); });
    return value;
  }
};

/// Real threads: what is shown is that one of them may hang.
struct fixture {
  std::shared_ptr<hanging_files> files = std::make_shared<hanging_files>();
  std::shared_ptr<test::virtual_clock> clock = std::make_shared<test::virtual_clock>();
  std::shared_ptr<sim::sim_disk> disk = std::make_shared<sim::sim_disk>(clock.get());
  caf::actor_system_config configuration;
  caf::actor_system system{configuration};
  workspace_actor workspace;

  explicit fixture(milliseconds hangs_after = tool_hangs_after)
      : workspace(spawn_workspace(system, make_context(), hangs_after)) {}
  ~fixture() {
    files->release();
    caf::anon_send_exit(workspace, caf::exit_reason::user_shutdown);
  }

  std::shared_ptr<node_context> make_context() const {
    auto c = std::make_shared<node_context>();
    c->ports.clock = clock;
    c->ports.random = std::make_shared<sim::seeded_entropy>(1);
    c->ports.files = disk;
    c->ports.workspaces = files;
    return c;
  }

  template <class What>
  std::shared_ptr<answer_slot> ask(What what) {
    auto slot = std::make_shared<answer_slot>();
    system.spawn([slot, to = workspace, what](caf::event_based_actor* self) {
      const auto keep = [slot](result<workspace_reply> r) {
        const std::lock_guard lock(slot->mutex);
        slot->value = std::move(r);
        slot->changed.notify_all();
      };
      self->request(to, 20s, workspace_request{{}, what})
          .then([keep](result<workspace_reply>& r) { keep(r); },
                [keep](caf::error&) { keep(fail(errc::actor_down, "no answer")); });
    });
    return slot;
  }

  part_health health() {
    caf::scoped_actor self(system);
    part_health found;
    self->request(workspace, 20s, health_query{})
        .receive([&](result<part_health>& r) { found = r.value_or(part_health{}); },
                 [](caf::error&) {});
    return found;
  }

  std::shared_ptr<answer_slot> read(const std::string& root) {
    run_tool order;
    order.call = tools::read_file_call{"a"};
    order.workspace = root;
    order.permission.tools = {"*"};
    return ask(order);
  }
};

/// A workspace that another worker serves than `root`'s.
std::string served_apart_from(const std::string& root) {
  for (int i = 0;; ++i)
    if (const auto other = "/w" + std::to_string(i); tool_worker_of(other) != tool_worker_of(root))
      return other;
}

} // namespace

TEST_CASE("a workspace that hangs holds up neither prompts nor other workspaces",
          "[workspace][tools]") {
  fixture f;
  auto hanging = f.read("/hangs");
  REQUIRE(f.files->wait_until_hanging());
  auto other = f.read(served_apart_from("/hangs"))->wait();
  REQUIRE(other);
  REQUIRE(*other);
  CHECK((*other)->outcome.text.starts_with("content of /w"));
  auto prompt = f.ask(write_private_file{"/boyd/run/prompts/d.txt", "hello"})->wait();
  REQUIRE(prompt);
  CHECK(*prompt);
  {
    const std::lock_guard lock(hanging->mutex);
    CHECK_FALSE(hanging->value);
  }
  f.files->release();
  const auto late = hanging->wait();
  REQUIRE(late);
  REQUIRE(*late);
  CHECK((*late)->outcome.text == "content of /hangs");
}

TEST_CASE("a worker that hangs is given up, and its place is taken", "[workspace][tools]") {
  fixture f(1s);
  const auto same = [&] {
    for (int i = 0;; ++i)
      if (const auto other = "/w" + std::to_string(i);
          tool_worker_of(other) == tool_worker_of("/hangs"))
        return other;
  }();
  auto hanging = f.read("/hangs");
  REQUIRE(f.files->wait_until_hanging());
  auto behind = f.read(same); // waits for the worker that hangs
  const auto gone = hanging->wait();
  REQUIRE(gone);
  REQUIRE_FALSE(*gone);
  CHECK(gone->error().code == errc::timed_out);
  const auto served = behind->wait();
  REQUIRE(served);
  REQUIRE(*served);
  CHECK((*served)->outcome.text == "content of " + same);
  // The workspace is refused at once, others go on, and the status names it.
  const auto refused = f.read("/hangs")->wait();
  REQUIRE(refused);
  REQUIRE_FALSE(*refused);
  CHECK(refused->error().what == "the file system of the workspace does not answer");
  const auto health = f.health();
  CHECK_FALSE(health.ok);
  CHECK(health.reason.find("1 of 8 spare") != std::string::npos);
  CHECK(health.reason.find("/hangs") != std::string::npos);
  // It answers again.
  f.files->release();
  CHECK(test::wait_until([&] { return f.health().ok; }));
  const auto again = f.read("/hangs")->wait();
  REQUIRE(again);
  REQUIRE(*again);
  CHECK((*again)->outcome.text == "content of /hangs");
}

TEST_CASE("what goes wrong in a tool is the model's to hear", "[workspace][tools]") {
  fixture f;
  run_tool order;
  order.call = tools::write_file_call{"a", "b"};
  order.workspace = "/w";
  const auto refused = f.ask(order)->wait();
  REQUIRE(refused);
  REQUIRE(*refused);
  CHECK((*refused)->outcome.is_error);
  CHECK((*refused)->outcome.text == "error: not here");
}

TEST_CASE("a call whose run is over is not carried out any more", "[workspace][tools]") {
  fixture f;
  const auto over = std::make_shared<std::atomic<bool>>(false);
  run_tool order;
  order.call = tools::write_file_call{"a", "b"};
  order.workspace = "/writable";
  order.permission.tools = {"*"};
  order.over = over;
  const auto taken = f.ask(order)->wait();
  REQUIRE(taken);
  REQUIRE(*taken);
  CHECK(f.files->written() == 1);
  *over = true;
  const auto late = f.ask(order)->wait();
  REQUIRE(late);
  REQUIRE_FALSE(*late);
  CHECK(late->error().code == errc::cancelled);
  CHECK(f.files->written() == 1);
}

TEST_CASE("a node without file tools says so", "[workspace][tools]") {
  test::simulated_node node;
  auto workspace = node.actors.own(spawn_workspace(node.actors.system(), node.context));
  run_tool order;
  order.workspace = "/w";
  const auto none =
      node.actors.ask_now<workspace_reply>(workspace, workspace_request{{}, std::move(order)});
  CHECK(none.why().code == errc::refused);
}

TEST_CASE("fault points: a file tool that fails is told to the model; late or after a crash it is "
          "carried out",
          "[workspace][tools][faults]") {
  fixture f;
  struct disarmed {
    ~disarmed() { faults::disarm(); }
  } const at_the_end;
  const std::string point = GENERATE("file_tools.read", "file_tools.write");
  run_tool order;
  order.workspace = "/writable";
  order.permission.tools = {"*"};
  if (point == "file_tools.read")
    order.call = tools::read_file_call{"a"};
  else
    order.call = tools::write_file_call{"a", "b"};
  const auto outcome_of = [&](faults::action what, milliseconds delay = 0ms) {
    REQUIRE(faults::arm({{point, what, 1, 1.0, delay}}, 1));
    const auto answer = f.ask(order)->wait();
    REQUIRE(answer);
    REQUIRE(*answer);
    return (*answer)->outcome;
  };
  const auto failed = outcome_of(faults::action::error);
  CHECK(failed.is_error);
  CHECK(failed.text.find("fault point " + point) != std::string::npos);
  CHECK(f.files->written() == 0);
  CHECK_FALSE(outcome_of(faults::action::delay, 10ms).is_error);
  // The worker dies before the call: its successor makes it.
  CHECK_FALSE(outcome_of(faults::action::crash).is_error);
  CHECK(f.files->written() == (point == "file_tools.write" ? 2 : 0));
}

} // namespace boyd::workspace_tools_test
