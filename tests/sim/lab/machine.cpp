#include "tests/sim/lab/machine.hpp"

#include "boyd/ports/time_zones.hpp"
#include "boyd/queue/due_work.hpp"
#include "messages/node.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/sim/workspaces.hpp"

#include <caf/detail/pretty_type_name.hpp>
#include <caf/scheduled_actor.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace boyd::sim {

namespace {

/// So many messages before the limit are looked at: enough to see who keeps whom busy.
constexpr std::uint64_t looked_at = 1'000;
/// So many kinds of them are told.
constexpr std::size_t told_kinds = 8;

/// "kernel got boyd::kernel_tick": the job that is about to run, and its next message.
std::string describe(caf::resumable& job) {
  auto* actor = dynamic_cast<caf::local_actor*>(&job);
  if (actor == nullptr)
    return "a job that is no actor";
  std::string text = std::string(actor->name()) + " (actor " + std::to_string(actor->id()) + ")";
  auto* mail = actor->peek_at_next_mailbox_element();
  if (mail == nullptr)
    return text + " with no mail";
  text += " got";
  const auto& content = mail->content();
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto* type = content.type(i).second;
    text += " " + (type == nullptr ? std::string("a message of CAF")
                                   : caf::detail::pretty_type_name(*type));
  }
  return text;
}

} // namespace

/// A node's connection: ends with its machine, and is slow when it is told to be.
class gated_store final : public dispatch_store {
 public:
  gated_store(machine& owner, std::unique_ptr<dispatch_store> inner)
      : owner_(owner), inner_(std::move(inner)) {}

  result<void> open() override { return owner_.gone_ ? gone() : inner_->open(); }

  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    if (owner_.slow_batches_ > 0) {
      --owner_.slow_batches_;
      ++owner_.slowed_;
      owner_.parts_.clock->advance(owner_.slow_by_);
    }
    if (owner_.gone_ || owner_.counts(cut_unit::changes))
      return fail(gone().error());
    auto replies = inner_->apply(batch);
    owner_.parts_.note(batch.size() + (replies ? 0 : 1000));
    // The transaction took place; whether the node hears of it is another matter.
    if (owner_.counts(cut_unit::changes))
      return fail(gone().error());
    if (replies && std::ranges::any_of(batch, [this](const auto& op) { return leaves_work(op); }))
      owner_.parts_.tell_others(new_work(batch));
    return replies;
  }

  void tidy() override { inner_->tidy(); }
  void tell_migrations(migration_step before) override {
    inner_->tell_migrations(std::move(before));
  }
  result<std::vector<std::string>> concerns() override { return inner_->concerns(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  /// For another node: what was claimed with its enqueue is none.
  bool leaves_work(const store::operation& op) const {
    const auto& rows = owner_.parts_.database->all_rows();
    const auto waits = [&](const std::string& id) {
      const auto row = rows.find(id);
      return row != rows.end() && row->second.d.status == dispatch_status::pending;
    };
    if (const auto* enqueued = std::get_if<store::enqueue_cycle>(&op))
      return std::ranges::any_of(enqueued->specs, waits, &dispatch_spec::dispatch_id);
    const auto* settled = std::get_if<store::settle>(&op);
    return settled != nullptr &&
           std::ranges::any_of(settled->items, waits, &settlement::dispatch_id);
  }

  /// The rows of such a batch, each agent once, as PostgreSQL's adapter tells them; empty: the
  /// others have to ask.
  std::vector<store::due_agents::row> new_work(const std::vector<store::operation>& batch) const {
    const auto& rows = owner_.parts_.database->all_rows();
    std::vector<store::due_agents::row> told;
    for (const auto& op : batch) {
      const auto* enqueued = std::get_if<store::enqueue_cycle>(&op);
      if (enqueued == nullptr && leaves_work(op))
        return {};
      for (const auto& s : enqueued == nullptr ? std::vector<dispatch_spec>{} : enqueued->specs) {
        const auto row = rows.find(s.dispatch_id);
        if (row == rows.end() || row->second.d.status != dispatch_status::pending)
          continue;
        if (s.delay.count() > 0)
          return {};
        queue::add_due(told, {s.kernel_id, s.agent_id, s.priority, 1});
      }
    }
    return told;
  }

  static result<void> gone() { return fail(errc::store_unavailable, "the machine is off", "sim"); }

  machine& owner_;
  std::unique_ptr<dispatch_store> inner_;
};

class machine::wakeup final : public wakeup_source {
 public:
  wakeup(machine& owner, wake_function wake) : owner_(owner) {
    owner_.waker_ = std::move(wake);
    owner_.woken_by_ = this;
  }
  /// A store that was started anew listens before the one before it has gone.
  ~wakeup() override {
    if (owner_.woken_by_ == this)
      owner_.waker_ = nullptr;
  }

 private:
  machine& owner_;
};

machine::machine(machine_parts parts)
    : parts_(std::move(parts)), clock_(std::make_shared<machine_clock>(parts_.clock)),
      disk_(std::make_shared<sim_disk>(clock_.get())),
      repositories_(std::make_shared<sim_repositories>(*disk_)),
      processes_(std::make_shared<sim_process_runner>(clock_)),
      models_(std::make_shared<sim_http_client>(clock_, [this](const http_request& r) {
        // A monitor that is away: no cycle may care.
        const bool monitor = r.url.starts_with("http://monitor.");
        return monitor || !parts_.answer ? sim_http_answer{.no_connection = true}
                                         : parts_.answer(r);
      })) {
  (void)disk_->make_directories(std::string(home) + "/run");
  for (const char* name : {agent_program, check_program, sense_program})
    processes_->define(name,
                       [this](const process_spec& s, std::size_t) { return parts_.behave(s); });
}

machine::~machine() {
  if (up())
    end_life();
}

std::shared_ptr<node_context> machine::make_context() {
  // Reading the zones is work, and they are the same for everybody.
  static const std::shared_ptr<const time_zones> zones = adapters::make_time_zones();
  auto context = std::make_shared<node_context>();
  context->ports.clock = clock_;
  context->ports.random = std::make_shared<seeded_entropy>(parts_.choices->next());
  context->ports.files = disk_;
  context->ports.repositories = repositories_;
  context->ports.processes = processes_;
  context->ports.workspaces = std::make_shared<disk_workspaces>(disk_);
  context->ports.zones = zones;
  context->ports.http = models_;
  context->ports.make_store = [this] {
    return std::make_unique<gated_store>(*this, make_sim_store(parts_.database, &connection_));
  };
  if (parts_.shared_store)
    context->ports.listen = [this](wake_function wake) {
      return std::make_unique<wakeup>(*this, std::move(wake));
    };
  context->home = home;
  context->node_id = parts_.name;
  context->host = "simulated";
  context->pid = 1;
  context->version = "simulated";
  context->started_at = clock_->now();
  context->environment = [](const std::string&) { return std::optional<std::string>{}; };
  context->detached_workers = false;
  context->shared_store = parts_.shared_store;
  context->housekeeping = parts_.housekeeping;
  return context;
}

void machine::boot(configuration_ptr configuration) {
  ++lives_;
  system_ = std::make_unique<test::deterministic_system>(parts_.clock);
  system_->choose_by([this](std::size_t n) {
    tell_if_changed();
    (void)counts(cut_unit::messages);
    if (kill_in_ > 0 && --kill_in_ == 0 && !kill_some_actor())
      kill_in_ = 1; // at the next message
    const auto i = n < 2 ? 0 : parts_.choices->next() % n;
    parts_.note(i);
    count_at_once(static_cast<std::size_t>(i));
    return static_cast<std::size_t>(i);
  });
  system_->outside = [this] {
    return processes_->step(clock_->steady()) + models_->step(clock_->steady());
  };
  system_->next_outside = [this] { return next_outside(); };
  install_plans();
  root_ = spawn_root(system_->system(), make_context(), std::move(configuration));
  system_->own(root_);
  caf::anon_send(root_, start_claiming{});
}

/// When a program or a model does something by itself.
std::optional<steady_time> machine::next_outside() const {
  const auto program = processes_->next_event();
  const auto model = models_->next_event();
  return program && model ? std::min(*program, *model) : program ? program : model;
}

void machine::install_plans() {
  disk_->set_fault_plan([this](const disk_call& call) {
    const bool changes = call.op == disk_op::write || call.op == disk_op::sync ||
                         call.op == disk_op::truncate || call.op == disk_op::rewrite ||
                         call.op == disk_op::rename || call.op == disk_op::unlink ||
                         call.op == disk_op::sync_directory;
    changed_ = changed_ || changes;
    if (gone_ || (changes && counts(cut_unit::changes)) ||
        (call.op == disk_op::sync && counts(cut_unit::syncs)))
      return disk_fault::io_error;
    if (!changes || !sickness_)
      return disk_fault::none;
    ++sick_calls_[static_cast<std::size_t>(*sickness_)];
    return *sickness_;
  });
  repositories_->set_fault_hook([this](git_op op, const std::string& path) -> std::optional<error> {
    const bool changes = op == git_op::commit || op == git_op::commit_moved;
    changed_ = changed_ || changes;
    if (gone_ || (changes && counts(cut_unit::changes)))
      return error{errc::repository_unavailable, "the machine is off", path, {}};
    if (op == git_op::commit_moved)
      parts_.committed();
    return std::nullopt;
  });
}

void machine::end_life() {
  // The outside stops first, so that what the dying actors still try comes to nothing.
  gone_ = true;
  disarm();
  processes_->crash();
  models_->crash();
  repositories_->crash();
  root_ = nullptr;
  handled_ += system_->handled();
  system_->shut_down();
  const auto left = system_->system().registry().running();
  left_behind_ += left;
  if (left == 0)
    system_.reset();
  else
    (void)system_.release(); // its destructor would wait for them for ever
  at_once_ = 0;
  busy_.clear();
  waker_ = nullptr;
  processes_->crash();
  models_->crash();
  mend();
  gone_ = power_ = stopped_ = false;
}

void machine::power_cut() {
  if (!gone_)
    disk_->crash(*parts_.choices);
  end_life();
}

void machine::kill_node() {
  disk_->kill_process();
  end_life();
}

void machine::end_at(cut_unit counted, std::uint64_t n, bool power) {
  counted_ = counted;
  left_ = n;
  power_ = power;
}

/// One more unit; true when the node is gone.
bool machine::counts(cut_unit what) {
  if (gone_ || counted_ != what)
    return gone_;
  if (left_-- > 0)
    return false;
  gone_ = true;
  ++ends_[power_ ? 1 : 0];
  counted_.reset();
  system_->halt();
  // Now, before the call that is under way can do or undo anything.
  if (power_)
    disk_->crash(*parts_.choices);
  else
    disk_->kill_process();
  return true;
}

void machine::count_at_once(std::size_t next) {
  if (const auto now = clock_->steady(); now != moment_) {
    moment_ = now;
    at_once_ = 0;
  }
  // A node that is being taken down has no system any more.
  if (++at_once_ + looked_at > most_at_once && system_ && next < system_->scheduler().jobs.size())
    ++busy_[describe(*system_->scheduler().jobs[next])];
}

std::string machine::busy_with() const {
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [what, n] : busy_)
    sorted.emplace_back(n, what);
  std::ranges::sort(sorted, std::greater{});
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), told_kinds); ++i)
    text += (i == 0 ? "" : "; ") + std::to_string(sorted[i].first) + " times: " + sorted[i].second;
  return text;
}

bool machine::ended() const {
  return up() && test::deterministic_system::ended(root_);
}

void machine::slow_store(std::size_t batches, milliseconds each) {
  slow_batches_ = batches;
  slow_by_ = each;
}

void machine::wake(const std::vector<store::due_agents::row>& work) {
  if (!waker_)
    return;
  if (wakeups_to_lose_ == 0)
    return waker_(work);
  --wakeups_to_lose_;
  ++wakeups_lost_;
}

void machine::mend() {
  sickness_.reset();
  disk_->clear_faults();
  disk_->set_capacity(std::nullopt);
  repositories_->set_available(kernel_home, true);
  processes_->fail_next_starts(0, 0);
  connection_.end();
  slow_batches_ = wakeups_to_lose_ = 0;
  if (up())
    install_plans();
}

bool machine::kill_some_actor() {
  auto& jobs = system_->scheduler().jobs;
  if (jobs.empty())
    return false;
  auto* victim = dynamic_cast<caf::scheduled_actor*>(jobs[parts_.choices->next() % jobs.size()]);
  if (victim == nullptr || victim->address() == root_.address())
    return false;
  ++kills_;
  victim->eq_impl(caf::make_message_id(caf::message_priority::high), nullptr, nullptr,
                  caf::exit_msg{victim->address(), caf::exit_reason::kill});
  return true;
}

} // namespace boyd::sim
