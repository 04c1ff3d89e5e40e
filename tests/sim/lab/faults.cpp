#include "messages/node.hpp"
#include "tests/sim/lab/world.hpp"

#include <caf/event_based_actor.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace boyd::sim {

namespace {

constexpr std::array<std::string_view, fault_kinds> names{
    "power_cut", "node_kill",    "actor_kill",      "disk_error",    "disk_sick",
    "disk_full", "disk_reads",   "disconnect",      "in_doubt",      "store_outage",
    "partition", "slow_store",   "repository_away", "clock_step",    "lost_wakeup",
    "run_hangs", "run_fails",    "run_late",        "start_refused", "reload",
    "restart",   "part_restart", "node_stopped",    "fault_point",   "model_trouble"};

/// A fault at a point of the product.
struct point_fault {
  std::string_view point;
  faults::action what;
};

/// Messages can be late without that anybody waits.
bool is_message(const faults::point_info& p) {
  return p.group == "requests" || p.group == "workers";
}

/// What can be armed where time is virtual: nobody waits but for a message.
const std::vector<point_fault>& point_faults() {
  static const auto all = [] {
    std::vector<point_fault> some;
    for (const auto name : faults::points()) {
      const auto& row = *faults::find(name);
      for (std::size_t i = 0; i < faults::action_count; ++i) {
        const auto a = static_cast<faults::action>(i);
        const bool waits = a == faults::action::delay && !is_message(row);
        if (faults::contains(row.can, a) && !waits)
          some.push_back({name, a});
      }
    }
    return some;
  }();
  return all;
}

/// How a disk fails that is sick or full for a while.
disk_fault sickness_of(fault f) {
  return f == fault::disk_full ? disk_fault::no_space : disk_fault::io_error;
}

/// What cannot fail to have an effect.
bool at_once(fault f) {
  return f == fault::restart || f == fault::reload || f == fault::clock_step ||
         f == fault::node_stopped;
}

/// A fault that meets a machine without a node waits so long.
constexpr milliseconds service_pause = 150s;
/// What is away or sick for a while is so for this long at least.
constexpr milliseconds shortest_phase = 15s;
/// An ordered stop takes no longer than this beyond the grace of what runs.
constexpr milliseconds longest_stop = 60s;
/// Messages or changes until a node ends: within one cycle.
constexpr std::uint64_t messages_ahead = 150;
constexpr std::uint64_t changes_ahead = 40;
constexpr std::uint64_t syncs_ahead = 10;

} // namespace

std::string_view name_of(fault f) noexcept {
  return names[static_cast<std::size_t>(f)];
}

fault_menu all_faults() {
  fault_menu all;
  for (std::size_t i = 0; i < fault_kinds; ++i)
    all.insert(static_cast<fault>(i));
  return all;
}

void world::strike(fault f) {
  auto& m = *machines_[draw(machines_.size())];
  if (!m.up()) {
    // It is off, but not for long.
    if (elapsed() + service_pause < faults_until_)
      at(elapsed() + service_pause, [this, f] { strike(f); });
    return;
  }
  note(static_cast<std::uint64_t>(f));
  tell(std::string(name_of(f)) + " at " + m.name());
  ++troubles_;
  troubled_until_ = std::max(troubled_until_, elapsed() + recovery());
  await(f, m);
  remember(m);
  switch (f) {
  case fault::power_cut:
  case fault::node_kill:
  case fault::actor_kill:
  case fault::restart:
  case fault::part_restart:
  case fault::reload:
  case fault::clock_step:
  case fault::node_stopped:
    return strike_node(f, m);
  case fault::disk_error:
  case fault::disk_sick:
  case fault::disk_full:
  case fault::disk_reads:
  case fault::repository_away:
    return strike_disk(f, m);
  case fault::disconnect:
  case fault::in_doubt:
  case fault::store_outage:
  case fault::partition:
  case fault::slow_store:
  case fault::lost_wakeup:
    return strike_store(f, m);
  case fault::run_hangs:
  case fault::run_fails:
  case fault::run_late:
  case fault::start_refused:
    return strike_runs(f);
  case fault::fault_point:
    return arm_point();
  case fault::model_trouble:
    return strike_models();
  }
}

std::vector<fault> world::without_effect() const {
  std::vector<fault> left;
  for (const auto f : menu_)
    if (struck_[static_cast<std::size_t>(f)] == 0)
      left.push_back(f);
  return left;
}

/// Right before a slot, where something is about to be done: waiting costs time.
void world::strike_what_is_left() {
  constexpr int most_tries = 32; // with two nodes the other one may always be first
  constexpr milliseconds before_slot = 1s;
  constexpr milliseconds busy_time = 10min;
  for (int i = 0; i < most_tries && !given_up_; ++i) {
    const auto left = without_effect();
    if (left.empty() || menu_.size() - left.size() >= options_.fewest_kinds)
      return;
    // By the clock of each machine in turn: it may have been set.
    const auto& clock = machines_[static_cast<std::size_t>(i) % machines_.size()]->clock();
    const auto since_slot = clock.now().time_since_epoch() % options_.slot;
    const auto wait = options_.slot - since_slot - before_slot;
    advance(wait.count() < 0 ? wait + options_.slot : wait);
    for (const auto f : left)
      strike(f);
    advance(busy_time);
  }
}

void world::await(fault f, machine& m) {
  if (at_once(f))
    ++struck_[static_cast<std::size_t>(f)];
  else if (auto effects = effects_of(f, m);
           effects && std::ranges::none_of(
                          awaited_, [&](const awaited& a) { return a.what == f && a.where == &m; }))
    awaited_.push_back({f, &m, effects, effects()});
}

/// What grows when a fault has its effect; nothing: it is counted where it has it.
std::function<std::uint64_t()> world::effects_of(fault f, machine& m) {
  switch (f) {
  case fault::power_cut:
  case fault::node_kill:
    return [&m, power = f == fault::power_cut] { return m.gone_so_far(power); };
  case fault::actor_kill:
    return [&m] { return static_cast<std::uint64_t>(m.kills()); };
  case fault::disk_error:
    return [&m] { return m.disk().struck_changing(); };
  case fault::disk_reads:
    return [&m] { return m.disk().struck_looking(); };
  case fault::part_restart:
    return [count = part_restarts_] { return *count; };
  case fault::disk_sick:
    return [&m] { return m.sick_calls(sickness_of(fault::disk_sick)); };
  case fault::disk_full:
    return [this, &m] {
      return m.sick_calls(sickness_of(fault::disk_full)) + database_->faults.struck.unwritten;
    };
  case fault::disconnect:
    return [&m] { return m.connection().struck.disconnected; };
  case fault::in_doubt:
    return [&m] { return m.connection().struck.in_doubt; };
  case fault::partition:
    return [&m] { return m.connection().struck.refused; };
  case fault::store_outage:
    return [this] { return database_->faults.struck.refused; };
  case fault::slow_store:
    return [&m] { return m.slowed(); };
  case fault::repository_away:
    return [&m] { return m.repositories().refused(); };
  case fault::lost_wakeup:
    return [&m] { return m.wakeups_lost(); };
  case fault::model_trouble:
    return [this] { return models_.troubled(); };
  default:
    return {};
  }
}

void world::look_for_effects() {
  look_at_point();
  std::erase_if(awaited_, [this](const awaited& a) {
    const bool met = a.effects() != a.before;
    struck_[static_cast<std::size_t>(a.what)] += met ? 1 : 0;
    return met;
  });
}

/// Until the first one is armed each point's passes are counted: what is armed is one that this
/// world has come by.
void world::watch_points() {
  std::vector<faults::arming> all;
  for (const auto point : faults::points()) {
    faults::arming a;
    a.point = std::string(point);
    const auto& can = faults::find(point)->can;
    for (std::size_t i = 0; i < faults::action_count; ++i)
      if (faults::contains(can, static_cast<faults::action>(i)))
        a.what = static_cast<faults::action>(i);
    a.delay = a.what == faults::action::delay ? 1ms : 0ms;
    a.after = std::numeric_limits<std::int64_t>::max();
    a.by = faults::origin::environment;
    all.push_back(std::move(a));
  }
  // A log of more than a hundred points that will never strike is of no use.
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  const auto armed = faults::arm(all, 0);
  spdlog::set_level(level);
  if (!armed)
    inspector_->violated("a fault that cannot be armed: " + to_string(armed.error()));
}

void world::arm_point() {
  constexpr milliseconds armed_for = 8h;
  constexpr std::uint64_t passes_ahead = 3;
  disarm_point();
  for (const auto& f : faults::armed())
    if (f.passes > 0)
      passed_.insert(f.what.point);
  faults::disarm(faults::origin::environment);
  std::vector<point_fault> some;
  std::ranges::copy_if(point_faults(), std::back_inserter(some),
                       [&](const point_fault& p) { return passed_.contains(p.point); });
  if (some.empty())
    return;
  const auto& chosen = some[draw(some.size())];
  faults::arming a;
  a.point = std::string(chosen.point);
  a.what = chosen.what;
  a.count = 1 + static_cast<int>(draw(2));
  a.after = static_cast<std::int64_t>(draw(passes_ahead));
  a.seed = choices_.next();
  if (a.what == faults::action::delay)
    a.delay = draw_ms(1ms, 40s);
  tell("armed: " + faults::to_text(a));
  if (auto armed = faults::arm({a}, 0); !armed)
    inspector_->violated("a fault that cannot be armed: " + to_string(armed.error()));
  point_ = a.point;
  point_struck_before_ = faults::triggered(point_);
  at(elapsed() + armed_for, [this, number = ++point_number_] {
    if (number == point_number_)
      disarm_point();
  });
}

/// It counts, and troubles a node, when it strikes. Whoever waits for what is lost gives up after
/// some minutes, or hears of it at a later look at those who are idle.
void world::look_at_point() {
  constexpr milliseconds armed_on = 15min;
  if (point_.empty())
    return;
  const auto strikes = faults::triggered(point_) - point_struck_before_;
  if (strikes == point_strikes_)
    return;
  tell("struck: " + point_);
  last_strike_ = elapsed();
  ++troubles_;
  troubled_until_ = std::max(
      troubled_until_, elapsed() + armed_on + 3 * options_.housekeeping.idle_probe + recovery());
  if (std::exchange(point_strikes_, strikes) > 0)
    return;
  ++struck_[static_cast<std::size_t>(fault::fault_point)];
  at(elapsed() + armed_on, [this, number = point_number_] {
    if (number == point_number_)
      disarm_point();
  });
}

void world::disarm_point() {
  faults::disarm(faults::origin::test);
  point_.clear();
  point_strikes_ = 0;
}

void world::strike_node(fault f, machine& m) {
  switch (f) {
  case fault::actor_kill:
    return m.kill_actor_after(draw(messages_ahead));
  case fault::restart:
    return stop_in_order(m);
  case fault::part_restart:
    return restart_part(m);
  case fault::reload:
    return reload();
  case fault::clock_step:
    return step_clock(m);
  case fault::node_stopped: {
    const auto length = draw_ms(5s, 3min);
    troubled_until_ = std::max(troubled_until_, elapsed() + length + recovery());
    m.stop();
    return at(elapsed() + length, [&m] {
      if (!m.up())
        return;
      m.go_on();
      m.system().catch_up();
    });
  }
  default: {
    const auto counted = static_cast<cut_unit>(draw(3));
    const auto ahead = counted == cut_unit::messages  ? messages_ahead
                       : counted == cut_unit::changes ? changes_ahead
                                                      : syncs_ahead;
    m.end_at(counted, draw(ahead), f == fault::power_cut);
  }
  }
}

void world::stop_in_order(machine& m) {
  // What is away cannot be waited for; an operator's stop is judged on a sound machine.
  database_->faults.end();
  disarm_point();
  m.mend();
  m.go_on();
  const auto grace = configurations_.front()->node_settings.drain_grace;
  caf::anon_send(m.root(), shutdown_order{{}, grace});
  // What strikes meanwhile may make it last longer; the order itself is no such trouble.
  at(elapsed() + grace + longest_stop, [this, &m, life = m.lives(), troubles = troubles_] {
    if (m.up() && m.lives() == life && troubles_ == troubles)
      inspector_->violated(m.name() + " did not shut down in time");
  });
}

/// One of the tree's parts, agents' dispatchers more often than the others: they hold runs.
void world::restart_part(machine& m) {
  constexpr std::array<std::string_view, 19> parts{"store",
                                                   "permits",
                                                   "governor",
                                                   "workspace",
                                                   "state_writer",
                                                   "git_committer",
                                                   "approvals",
                                                   "mcp",
                                                   "dispatchers",
                                                   "librarian",
                                                   "graph_recorder",
                                                   "knowledge",
                                                   "inspector",
                                                   "planner",
                                                   "retention",
                                                   "gateway",
                                                   "",
                                                   "",
                                                   ""};
  const auto& kernel = configurations_.front()->kernels.front();
  std::string name(parts[draw(parts.size())]);
  if (name.empty())
    name = draw(3) == 0 ? "kernel:" + kernel.kernel_id
                        : "dispatcher:" + kernel.kernel_id + "/" +
                              kernel.agents[draw(kernel.agents.size())].agent_id;
  tell("restart of " + name);
  // Who is ended in the middle of a call does not settle it: it stays counted as the most.
  if (chats_)
    chats_->disturbed(true);
  m.system().own(m.system().system().spawn(
      [root = m.root(), name, count = part_restarts_](caf::event_based_actor* self) {
        constexpr milliseconds patience = 1min;
        self->request(root, patience, actor_order{{}, actor_verb::restart, name})
            .then([count](const result<actor_order_reply>& r) { *count += r ? 1 : 0; },
                  [](const caf::error&) {});
      }));
}

void world::reload() {
  std::swap(configurations_[0], configurations_[1]);
  for (auto& m : machines_)
    if (m->up())
      caf::anon_send(m->root(), reload_order{{}, configurations_.front()});
}

void world::step_clock(machine& m) {
  const milliseconds by = draw(2) == 0 ? draw_ms(1s, 1h) : -draw_ms(1s, 1h);
  tell("its clock is set by " + format_duration(by));
  m.clock().jump(by);
}

void world::strike_disk(fault f, machine& m) {
  if (f != fault::repository_away)
    inspector_->disk_struck(m);
  switch (f) {
  case fault::disk_error: {
    constexpr std::array kinds{disk_fault::io_error, disk_fault::no_space, disk_fault::short_write};
    constexpr std::array ops{disk_op::write, disk_op::sync, disk_op::rename, disk_op::open,
                             disk_op::sync_directory};
    return m.disk().fail_next(ops[draw(ops.size())], kinds[draw(kinds.size())], 1 + draw(3));
  }
  case fault::disk_reads: {
    constexpr std::array ops{disk_op::read, disk_op::list, disk_op::stat, disk_op::size};
    return m.disk().fail_next(ops[draw(ops.size())], disk_fault::io_error, 1 + draw(3));
  }
  case fault::repository_away:
    m.repositories().set_available(machine::kernel_home, false);
    return at(elapsed() + draw_ms(shortest_phase, 5min),
              [&m] { m.repositories().set_available(machine::kernel_home, true); });
  default:
    m.sicken(sickness_of(f));
    // A file's database is on this disk, too; what it has can be read.
    if (f == fault::disk_full && !options_.shared_store)
      database_->faults.refuse_writes = errc::no_space;
    return at(elapsed() + draw_ms(shortest_phase, 5min), [this, f, &m] {
      m.sicken(std::nullopt);
      if (f == fault::disk_full)
        database_->faults.refuse_writes.reset();
    });
  }
}

void world::break_connections(machine& m, double before, double in_commit, milliseconds length) {
  constexpr double refused = 0.3; // what broke in its commit stays in doubt
  constexpr int most_triggers = 3;
  m.connection().disconnect_before = before;
  m.connection().disconnect_in_commit = in_commit;
  m.connection().refuse_open = refused;
  troubled_until_ = std::max(troubled_until_, elapsed() + length + recovery());
  for (auto n = draw(most_triggers + 1); n > 0; --n)
    at(elapsed() + draw_ms(0ms, length), [this, &m] { trigger(m); });
  at(elapsed() + length, [&m] {
    m.connection().disconnect_before = 0;
    m.connection().disconnect_in_commit = 0;
    m.connection().refuse_open = 0;
  });
}

/// Somebody asks for a cycle.
void world::trigger(machine& m) {
  if (!m.runs())
    return;
  tell("a cycle is asked for on " + m.name());
  api_request order;
  order.method = "POST";
  order.path = "/api/v1/cycles";
  caf::anon_send(m.root(), std::move(order));
}

/// Somebody tells the node something; its answer is an acknowledgement.
void world::remember(machine& m) {
  if (!m.runs())
    return;
  const auto text = "remembered " + std::to_string(++remembered_) + ".";
  api_request order;
  order.method = "POST";
  order.path = "/api/v1/memory/append";
  order.body = R"({"section":"Important Facts","text":")" + text + "\"}";
  const auto person = [this, &m, text, order](caf::event_based_actor* self) {
    self->request(m.root(), std::chrono::minutes{1}, order)
        .then(
            [this, &m, text](const result<api_response>& r) {
              if (r && r->status == 200)
                inspector_->remembered(m, text);
            },
            [](caf::error&) {
              // nop: nobody has acknowledged it
            });
  };
  m.system().own(m.system().system().spawn(person));
}

void world::take_away(store_faults& from, milliseconds length) {
  from.unavailable = true;
  troubled_until_ = std::max(troubled_until_, elapsed() + length + recovery());
  at(elapsed() + length, [&from] { from.unavailable = false; });
}

void world::strike_store(fault f, machine& m) {
  constexpr double often = 0.4;
  switch (f) {
  case fault::disconnect:
    return break_connections(m, choices_.unit() * often, 0, draw_ms(shortest_phase, 5min));
  case fault::in_doubt:
    return break_connections(m, 0, choices_.unit() * often, draw_ms(shortest_phase, 5min));
  case fault::store_outage:
    return take_away(database_->faults, draw_ms(shortest_phase, 6min));
  case fault::partition:
    // At least so long that the other one finds the lost leases.
    return take_away(m.connection(), options_.housekeeping.sweep + draw_ms(1min, 10min));
  case fault::lost_wakeup:
    return m.lose_wakeups(1 + draw(3));
  default: {
    const auto each = draw_ms(100ms, 40s);
    const auto n = 1 + draw(4);
    troubled_until_ = std::max(troubled_until_, elapsed() + options_.slot + recovery());
    return m.slow_store(n, each);
  }
  }
}

void world::strike_models() {
  const auto act = models_.draw_trouble();
  tell("models: " + std::string(name_of(act)));
  models_.trouble(act);
  at(elapsed() + draw_ms(10s, 15min), [this] { models_.trouble(std::nullopt); });
}

void world::strike_runs(fault f) {
  const auto program = draw_odd_run(f);
  for (auto n = 1 + draw(4); n > 0; --n)
    next_runs_.push_back({f, program});
}

sim_program world::draw_odd_run(fault f) {
  sim_program p;
  p.output = "did something\n";
  p.duration = draw_ms(0ms, 20s);
  switch (f) {
  case fault::run_hangs:
    p.hang = true;
    p.ignore_term = draw(2) == 0;
    break;
  case fault::run_fails:
    p.exit_code = draw(2) == 0 ? 1 : 75; // 75: worth another attempt
    break;
  case fault::run_late:
    // Ends well within the grace after SIGTERM, which it does not heed.
    p.duration = configurations_.front()->kernels.front().agents.front().timeout + 2s;
    p.ignore_term = true;
    break;
  default:
    p.start_errno = draw(2) == 0 ? EAGAIN : ENOENT;
  }
  return p;
}

} // namespace boyd::sim
