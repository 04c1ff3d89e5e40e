#include "tests/sim/world.hpp"

#include "boyd/graph/edge_log.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/runtime_block.hpp"
#include "messages/node.hpp"
#include "src/adapters/tz/zones.hpp"

#include <caf/scheduled_actor.hpp>

#include <algorithm>
#include <utility>

namespace boyd::sim {

namespace {

constexpr const char* home = "/home/boyd";
constexpr const char* kernel_home = "/home/boyd/kernel/default";
constexpr const char* agents_text = "## plans\nThe agents' own words: | table | <!-- note -->\n";
constexpr std::size_t file_cap = 64u << 20;
constexpr std::uint64_t full_check_every = 16;

} // namespace

world::world(std::uint64_t seed, config::configuration configuration, fault_menu menu)
    : seed_(seed),
      configuration_(std::make_shared<config::configuration>(std::move(configuration))),
      menu_(menu), choices_(seed), clock_(std::make_shared<world_clock>()),
      disk_(std::make_shared<sim_disk>(clock_.get())),
      database_(std::make_shared<sim_database>(clock_, std::make_shared<seeded_entropy>(seed ^ 1))),
      repositories_(std::make_shared<sim_repositories>(*disk_)),
      processes_(std::make_shared<sim_process_runner>(clock_)) {
  (void)disk_->make_directories(std::string(home) + "/run");
  processes_->define("agent", [this](const process_spec&, std::size_t) {
    sim_program p;
    p.output = "did something\n";
    p.duration = milliseconds{static_cast<std::int64_t>(choices_.next() % 90'000)};
    if (menu_.process_faults) {
      const auto luck = choices_.next() % 20;
      p.exit_code = luck == 0 ? 1 : luck == 1 ? 75 : 0;
      p.hang = luck == 2;
      p.ignore_term = luck == 2 && choices_.next() % 2 == 0;
    }
    return p;
  });
}

world::~world() {
  if (system_)
    crash();
}

void world::boot() {
  system_ = std::make_unique<test::deterministic_system>();
  clock_->begin_life(system_->clock());
  system_->choose_by([this](std::size_t n) {
    const auto i = n < 2 ? 0 : choices_.next() % n;
    note(i);
    return static_cast<std::size_t>(i);
  });
  system_->outside = [this] { return processes_->step(clock_->steady()); };
  system_->next_outside = [this] { return processes_->next_event(); };
  auto context = std::make_shared<node_context>();
  context->ports.clock = clock_;
  context->ports.random = std::make_shared<seeded_entropy>(choices_.next());
  context->ports.files = disk_;
  context->ports.repositories = repositories_;
  context->ports.processes = processes_;
  context->ports.zones = adapters::make_time_zones();
  context->ports.make_store = [db = database_] { return make_sim_store(db); };
  context->home = home;
  context->node_id = "node-a";
  context->host = "simulated";
  context->pid = 1;
  context->version = "simulated";
  context->started_at = clock_->now();
  context->environment = [](const std::string&) { return std::optional<std::string>{}; };
  context->detached_workers = false;
  context->shared_store = true;
  root_ = spawn_root(system_->system(), context, configuration_);
  system_->own(root_);
  caf::anon_send(root_, start_claiming{});
  // A person has written into STATE.md before the first cycle; nobody may touch these bytes.
  if (crashes_ == 0 && !disk_->snapshot().contains(std::string(kernel_home) + "/STATE.md"))
    disk_->put(std::string(kernel_home) + "/STATE.md", agents_text);
}

void world::crash() {
  // The outside stops first, so that what the dying actors still try comes to nothing.
  processes_->crash();
  disk_->crash(choices_);
  disk_->set_fault_plan([](const disk_call&) { return disk_fault::io_error; });
  database_->faults = {};
  database_->faults.unavailable = true;
  repositories_->crash();
  root_ = nullptr;
  system_.reset();
  clock_->end_life();
  processes_->crash();
  disk_->clear_faults();
  disk_->set_fault_plan({});
  end_outages();
  ++crashes_;
}

bool world::shut_down() {
  caf::anon_send(root_, shutdown_order{{}, configuration_->node_settings.drain_grace});
  for (int i = 0; i < 120 && !test::deterministic_system::ended(root_); ++i)
    system_->advance(seconds{1});
  return test::deterministic_system::ended(root_);
}

void world::note(std::uint64_t value) {
  trace_ = (trace_ ^ value) * 0x100000001b3ULL;
}

void world::advance(milliseconds by) {
  system_->advance(by);
  note(static_cast<std::uint64_t>(clock_->elapsed().count()));
  // A node that gave up (its intensity is spent) is restarted, as a service manager does.
  if (test::deterministic_system::ended(root_)) {
    crash();
    boot();
  }
  check();
}

void world::run(milliseconds time) {
  const auto end = clock_->elapsed() + time;
  while (clock_->elapsed() < end) {
    draw_faults();
    advance(milliseconds{static_cast<std::int64_t>(1 + choices_.next() % 60'000)});
  }
}

void world::calm(milliseconds time) {
  end_outages();
  const auto end = clock_->elapsed() + time;
  while (clock_->elapsed() < end)
    advance(seconds{30});
}

void world::end_outages() {
  database_->faults = {};
  disk_->clear_faults();
  disk_->set_capacity(std::nullopt);
  repositories_->set_available(kernel_home, true);
}

void world::draw_faults() {
  const auto roll = choices_.next() % 100;
  note(roll);
  if (roll == 99 && menu_.node_crashes) {
    // An operator stops the node in the middle of its work and starts it again.
    end_outages();
    if (!shut_down())
      violated("the node did not shut down in time");
    crash();
    boot();
  } else if (roll < 2 && menu_.node_crashes) {
    // In the middle of things: a few messages into the next moment.
    for (std::uint64_t n = choices_.next() % 200; n > 0 && system_->run_one(); --n) {
    }
    crash();
    boot();
  } else if (roll < 6 && menu_.actor_crashes) {
    kill_some_actor();
  } else if (roll < 10 && menu_.disk_faults) {
    constexpr disk_fault kinds[] = {disk_fault::io_error, disk_fault::no_space,
                                    disk_fault::short_write};
    constexpr disk_op ops[] = {disk_op::write, disk_op::sync, disk_op::rename, disk_op::open,
                               disk_op::sync_directory};
    disk_->fail_next(ops[choices_.next() % 5], kinds[choices_.next() % 3], 1 + choices_.next() % 3);
  } else if (roll < 14 && menu_.store_faults) {
    database_->faults.disconnect_before = choices_.unit() * 0.2;
    database_->faults.disconnect_in_commit = choices_.unit() * 0.2;
    database_->faults.unavailable = choices_.next() % 4 == 0;
  } else if (roll < 17 && menu_.repository_faults) {
    repositories_->set_available(kernel_home, false);
  } else if (roll < 20 && menu_.process_faults) {
    processes_->fail_next_starts(1 + choices_.next() % 3, 11);
  } else if (roll < 60) {
    end_outages();
  }
}

void world::kill_some_actor() {
  auto& jobs = system_->scheduler().jobs;
  if (jobs.empty())
    system_->advance(milliseconds{static_cast<std::int64_t>(choices_.next() % 2'000)});
  if (jobs.empty())
    return;
  auto* victim = dynamic_cast<caf::scheduled_actor*>(jobs[choices_.next() % jobs.size()]);
  if (victim == nullptr || victim->address() == root_.address())
    return;
  ++kills_;
  victim->eq_impl(caf::make_message_id(caf::message_priority::high), nullptr, nullptr,
                  caf::exit_msg{victim->address(), caf::exit_reason::kill});
}

void world::violated(const std::string& what) {
  if (std::ranges::find(violations_, what) == violations_.end() && violations_.size() < 20)
    violations_.push_back("after " + format_duration(clock_->elapsed()) + ": " + what);
}

std::string world::state_file() const {
  auto text = disk_->read(std::string(kernel_home) + "/STATE.md", file_cap);
  return text ? *text : std::string{};
}

void world::check() {
  if (static_cast<int>(processes_->running()) > configuration_->node_settings.max_concurrent)
    violated("more processes than permits");
  // A copy of all rows at every step would cost more than the node itself.
  if (++steps_ % full_check_every == 0)
    check_rows();
}

void world::check_rows() {
  for (const auto& [key, times] : database_->settled())
    if (times > 1)
      violated("settled twice under one fence: " + key.first);
  const auto rows = database_->rows();
  for (const auto& [id, row] : rows)
    known_rows_.insert(id);
  for (const auto& id : known_rows_)
    if (!rows.contains(id))
      violated("a dispatch was lost: " + id);
  const auto cycles = database_->cycles();
  for (const auto& [id, c] : cycles)
    if (c.status != cycle_status::running)
      recorded_cycles_.insert(id);
  for (const auto& id : recorded_cycles_)
    if (!cycles.contains(id) || cycles.at(id).status == cycle_status::running)
      violated("a recorded cycle was lost: " + id);
  // A read that a planned disk fault hits says nothing about the file.
  const auto text = state_file();
  if (!text.empty() && state::agents_part(text).find(agents_text) == std::string::npos)
    violated("the agents' part of STATE.md is damaged");
}

void world::check_settled() {
  check_rows();
  if (state_file().empty())
    violated("STATE.md is gone");
  for (const auto& [id, row] : database_->rows())
    if (!is_final(row.d.status))
      violated("not final after the calm: " + id + " " + std::string(name_of(row.d.status)));
  std::optional<cycle_record> latest;
  for (const auto& [id, c] : database_->cycles()) {
    if (c.status == cycle_status::running)
      violated("a cycle was never recorded: " + id);
    else if (!latest || c.started_at > latest->started_at)
      latest = c;
  }
  const auto block = state::parse_runtime_block(state_file());
  if (!latest)
    violated("no cycle ran");
  else if (!block || block->latest.cycle_id != latest->cycle_id ||
           block->latest.status != latest->status)
    violated("STATE.md does not show the latest cycle");
  for (const auto& o : database_->occurrences())
    if (o.state == occurrence_state::open)
      violated("a slot was never ended: " + format_rfc3339(o.scheduled_at));
  auto log = disk_->read(std::string(home) + "/knowledge/graph.jsonl", file_cap);
  if (log && !graph::verify(*log).problems.empty())
    violated("the graph's chain is broken");
}

} // namespace boyd::sim
