#include "tests/sim/lab/world.hpp"

#include "messages/node.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace boyd::sim {

namespace {

constexpr std::size_t kept_events = 40;
/// A node that gave itself up, or was killed, is started again by its service manager.
constexpr milliseconds service_restart = 1s;
/// How long a world may take until nothing is under way once all faults are over.
constexpr milliseconds longest_settling = std::chrono::hours{12};

config::configuration changed(config::configuration c) {
  for (auto& k : c.kernels)
    for (auto& a : k.agents) {
      a.prompt += "\nchanged";
      a.timeout = a.timeout * 4 / 5;
    }
  return c;
}

expectations expectations_of(const config::configuration& c, const world_options& options) {
  expectations e;
  e.permits = c.node_settings.max_concurrent;
  if (const int limit = c.kernels.front().max_concurrent; limit > 0)
    e.permits = std::min(e.permits, limit);
  e.one_machine = options.machines == 1;
  e.most_chosen = c.kernels.front().plan.max_dispatches;
  return e;
}

bool has_chats(const config::configuration& c) {
  const auto chats = [](const config::agent& a) {
    return std::holds_alternative<config::chat_executor>(a.run);
  };
  return std::ranges::any_of(
      c.kernels, [&](const config::kernel& k) { return std::ranges::any_of(k.agents, chats); });
}

} // namespace

world::world(std::uint64_t seed, config::configuration configuration, fault_menu menu,
             world_options options)
    : menu_(std::move(menu)), options_(options),
      choices_(seed), configurations_{std::make_shared<const config::configuration>(configuration),
                                      std::make_shared<const config::configuration>(
                                          changed(configuration))},
      clock_(std::make_shared<test::virtual_clock>()),
      database_(std::make_shared<sim_database>(std::make_shared<machine_clock>(clock_),
                                               std::make_shared<seeded_entropy>(seed ^ 1))),
      models_(choices_) {
  for (int i = 0; i < options_.machines; ++i)
    machines_.push_back(make_machine(static_cast<std::size_t>(i)));
  // A file's database has the time of day of the machine that it is on, steps and all.
  if (!options_.shared_store)
    database_->clock = machines_.front()->shared_clock();
  inspector_ =
      std::make_unique<inspector>(*database_, machines_, expectations_of(configuration, options_));
  if (has_chats(configuration))
    chats_ = std::make_unique<chat_watch>(
        *database_, configuration, [this](const std::string& what) { inspector_->violated(what); });
  for (auto& m : machines_)
    if (chats_)
      chats_->furnish(*m);
  if (menu_.contains(fault::fault_point))
    watch_points();
  database_->audit.rescued = [this](const std::string& id, const std::string& owner) {
    // A node takes its own rows back when it starts; while it lives they are nobody else's.
    if (machines_.size() == 1)
      inspector_->violated(id + " was taken from " + owner + ", the only node, by itself");
    else if (elapsed() > troubled_until_)
      inspector_->violated(id + " was taken from " + owner + ", which lives and works");
  };
  database_->audit.lapsed = [this](const std::string& id, const std::string& owner) {
    if (elapsed() > troubled_until_)
      inspector_->violated("the lease of " + id + " ran out at " + owner +
                           ", which lives and works");
  };
}

world::~world() = default;

std::unique_ptr<machine> world::make_machine(std::size_t number) {
  machine_parts parts;
  parts.name = "node-" + std::string(1, static_cast<char>('a' + number));
  parts.clock = clock_;
  parts.database = database_;
  parts.choices = &choices_;
  parts.note = [this](std::uint64_t value) { note(value); };
  parts.behave = [this, number](const process_spec& spec) {
    auto& m = *machines_[number];
    auto program = behave(m, spec);
    inspector_->starting(m, spec, program);
    return program;
  };
  parts.answer = [this, number](const http_request& request) {
    return answer(*machines_[number], request);
  };
  parts.changed = [this, number] {
    inspector_->stepped(*machines_[number]);
    if (chats_)
      chats_->stepped(*machines_[number]);
  };
  parts.committed = [this, number] { inspector_->committed(*machines_[number]); };
  parts.tell_others = [this, number](const std::vector<store::due_agents::row>& work) {
    for (std::size_t i = 0; i < machines_.size(); ++i)
      if (i != number)
        machines_[i]->wake(work);
  };
  parts.shared_store = options_.shared_store;
  parts.housekeeping = options_.housekeeping;
  auto made = std::make_unique<machine>(std::move(parts));
  made->disk().put(machine::state_path, agents_text);
  return made;
}

/// One of three sights; now and then it fails, or never ends.
sim_program world::sense() {
  sim_program p;
  p.output = "seen: " + std::to_string(draw(3)) + "\n";
  p.duration = draw_ms(0ms, 2s);
  const auto luck = draw(20);
  p.hang = luck == 0;
  p.exit_code = luck == 1 ? 1 : 0;
  return p;
}

sim_program world::behave(const machine& /*m*/, const process_spec& spec) {
  if (spec.argv.front() == machine::sense_program)
    return sense();
  sim_program p;
  p.output = "did something\n";
  const auto luck = draw(20);
  const bool quick = options_.quick_agents && luck < 15;
  p.duration = quick ? draw_ms(0ms, 5s) : draw_ms(0ms, 90s);
  if (next_runs_.empty())
    return p;
  p = next_runs_.front().program;
  ++struck_[static_cast<std::size_t>(next_runs_.front().what)];
  next_runs_.pop_front();
  return p;
}

sim_http_answer world::answer(machine& m, const http_request& request) {
  if (!chats_ || !chats_->is_chat(request))
    return models_.advise(request);
  auto reply = models_.converse(request);
  note(static_cast<std::uint64_t>(reply.act));
  chats_->calling(m, request, reply);
  return std::move(reply.http);
}

void world::boot() {
  for (auto& m : machines_) {
    if (!m->up())
      start(*m);
  }
}

void world::start(machine& m) {
  tell(m.name() + " starts");
  m.boot(configurations_.front());
  just_booted_.insert(&m);
}

void world::crash() {
  auto& m = first();
  tell(m.name() + " loses its power");
  m.power_cut();
  crashed(m, true);
  end_outages();
}

void world::crashed(machine& m, bool power) {
  inspector_->crashed(m, power);
  check_left_behind(m);
  if (chats_)
    chats_->crashed(m);
  ++crashes_;
}

void world::take_down() {
  for (auto& m : machines_)
    if (m->up()) {
      m->kill_node();
      check_left_behind(*m);
    }
}

void world::check_left_behind(const machine& m) {
  if (m.left_behind() > 0)
    inspector_->violated("actors outlive the node of " + m.name());
}

void world::check_settled() {
  inspector_->settled();
  if (chats_)
    chats_->settled();
}

void world::note_remains() {
  const std::hash<std::string> hash;
  for (const auto& m : machines_)
    for (const auto& [path, text] : m->disk().snapshot()) {
      note(hash(path));
      note(hash(text));
    }
  for (const auto& [id, row] : database_->all_rows()) {
    note(hash(id + row.d.attempts_json + row.d.outcome.summary + row.d.outcome.error));
    note(static_cast<std::uint64_t>(row.d.status));
    note(static_cast<std::uint64_t>(row.d.fence));
  }
  for (const auto& [id, cycle] : database_->all_cycles()) {
    note(hash(id + cycle.error));
    note(static_cast<std::uint64_t>(cycle.duration_ms));
  }
}

bool world::shut_down() {
  auto& m = first();
  caf::anon_send(m.root(), shutdown_order{{}, configurations_.front()->node_settings.drain_grace});
  for (int i = 0; i < 120 && !m.ended(); ++i)
    m.system().advance(seconds{1});
  return m.ended();
}

int world::kills() const {
  int sum = 0;
  for (const auto& m : machines_)
    sum += m->kills();
  return sum;
}

std::uint64_t world::messages() const {
  std::uint64_t sum = 0;
  for (const auto& m : machines_)
    sum += m->handled();
  return sum;
}

milliseconds world::draw_ms(milliseconds from, milliseconds to) {
  return from + milliseconds{static_cast<std::int64_t>(
                    draw(static_cast<std::uint64_t>((to - from).count()) + 1))};
}

void world::tell(std::string what) {
  if (events_.size() >= kept_events)
    events_.pop_front();
  events_.push_back(format_duration(elapsed()) + "  " + std::move(what));
}

// -- time --------------------------------------------------------------------------------------

void world::at(milliseconds when, std::function<void()> what) {
  agenda_.push_back({when, std::move(what)});
}

void world::run_due() {
  const auto now = elapsed();
  for (std::size_t i = 0; i < agenda_.size();) {
    if (agenda_[i].at > now) {
      ++i;
      continue;
    }
    const auto what = std::move(agenda_[i].what);
    agenda_.erase(agenda_.begin() + static_cast<std::ptrdiff_t>(i));
    what();
  }
}

milliseconds world::next_moment(milliseconds end) {
  auto next = end;
  for (const auto& t : agenda_)
    next = std::min(next, t.at);
  for (auto& m : machines_)
    if (m->runs())
      if (const auto due = m->system().next_due())
        next = std::min<milliseconds>(next, *due - clock_->steady() + elapsed());
  return std::max(next, elapsed() + milliseconds{1});
}

void world::advance(milliseconds by) {
  const auto end = elapsed() + by;
  run_due();
  run_ready();
  while (elapsed() < end && !given_up_) {
    clock_->advance(next_moment(end) - elapsed());
    note(static_cast<std::uint64_t>(elapsed().count()));
    for (auto& m : machines_)
      if (m->runs())
        m->system().catch_up();
    run_due();
    run_ready();
  }
}

/// Lets every node do what it can do now, a few messages each in turn: but no longer than a node
/// may need without that time passes.
void world::run_ready() {
  const std::size_t turn = machines_.size() == 1 ? machine::most_at_once : 1 + draw(16);
  for (bool any = true; any && !given_up_;) {
    any = false;
    for (auto& m : machines_) {
      if (m->runs() && !m->gone() && m->system().run_all(turn) > 0)
        any = true;
      if (m->livelocked())
        return give_up(*m);
    }
  }
  look_for_effects();
  for (auto& m : machines_)
    if (m->up())
      look_after(*m);
}

/// The seed has failed: a message begets another one while time stands still, for ever.
void world::give_up(machine& m) {
  given_up_ = true;
  inspector_->violated(m.name() + " handled " + std::to_string(m.handled_at_once()) +
                       " messages at " + format_duration(elapsed()) +
                       " and there was no end; the newest ones: " + m.busy_with());
  tell(m.name() + " is taken away: its actors let no time pass");
  m.kill_node();
}

void world::look_after(machine& m) {
  if (m.gone())
    return reboot(m, m.gone_by_power());
  if (m.ended())
    return reboot(m, false);
  m.tell_if_changed();
  if (just_booted_.erase(&m) > 0)
    inspector_->booted(m);
  else if (elapsed() > troubled_until_ && m.runs())
    inspector_->idle(m, elapsed());
  if (chats_ && elapsed() > troubled_until_)
    chats_->quiet(m, elapsed());
  else if (chats_)
    chats_->disturbed(loses_words());
}

/// What is sent, and not asked, may not arrive: the settlement of a call is.
bool world::loses_words() const {
  const auto loses = [](const store_faults& f) {
    return f.unavailable || f.disconnect_before > 0 || f.disconnect_in_commit > 0 ||
           f.refuse_writes;
  };
  return point_strikes_ > 0 || loses(database_->faults) ||
         std::ranges::any_of(machines_, [&](const auto& m) { return loses(m->connection()); });
}

void world::reboot(machine& m, bool power) {
  tell(m.name() + (power ? " loses its power" : " ends"));
  if (power)
    m.power_cut();
  else
    m.kill_node();
  crashed(m, power);
  boot_in(m, power ? draw_ms(0ms, 2min) : service_restart);
}

void world::boot_in(machine& m, milliseconds delay) {
  troubled_until_ = std::max(troubled_until_, elapsed() + delay + recovery());
  at(elapsed() + delay, [this, &m] {
    if (!m.up())
      start(m);
  });
}

// -- scripts -------------------------------------------------------------------------------------

void world::run(milliseconds time) {
  faults_until_ = elapsed() + time;
  for (auto& e : plan(time))
    at(e.at, std::move(e.what));
  advance(time);
  strike_what_is_left();
}

std::vector<world::timed> world::plan(milliseconds time) {
  std::vector<timed> events;
  const std::vector<fault> kinds(menu_.begin(), menu_.end());
  if (kinds.empty())
    return events;
  // Each kind once, if there is time, then at random.
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(time / options_.between, 1));
  const std::size_t first = draw(kinds.size());
  const auto slots = std::max<std::int64_t>(time / options_.slot, 1);
  for (std::size_t i = 0; i < std::max(n, kinds.size()); ++i) {
    const auto f = kinds[i < kinds.size() ? (first + i) % kinds.size() : draw(kinds.size())];
    auto when = draw_ms(1ms, time);
    // Most of the time is idle, where little can go wrong.
    if (draw(4) != 0)
      when = first_slot() +
             options_.slot * static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(slots))) +
             draw_ms(0ms, draw(2) == 0 ? 100s : 10s) - draw_ms(0ms, 5s);
    events.push_back(
        {elapsed() + std::clamp(when, milliseconds{1}, time), [this, f] { strike(f); }});
  }
  return events;
}

/// `@every` counts from the epoch on.
milliseconds world::first_slot() const {
  const auto since_slot = test::virtual_clock::start.time_since_epoch() % options_.slot;
  return since_slot.count() == 0 ? milliseconds{0} : options_.slot - since_slot;
}

void world::calm(milliseconds time) {
  end_outages();
  advance(time);
}

bool world::busy() const {
  for (const auto& m : machines_)
    if (!m->up())
      return true;
  for (const auto& [id, row] : database_->all_rows())
    if (!is_final(row.d.status))
      return true;
  for (const auto& [key, o] : database_->all_slots())
    if (o.state == occurrence_state::open)
      return true;
  return false;
}

void world::settle() {
  end_outages();
  advance(5min);
  // What was lost between two parts may be noticed only when an idle one is looked at.
  if (const auto noticed = last_strike_ + options_.housekeeping.idle_probe;
      last_strike_ > milliseconds{0} && noticed > elapsed())
    advance(noticed - elapsed());
  const auto end = elapsed() + longest_settling;
  do {
    while (busy() && elapsed() < end && !given_up_)
      advance(1min);
    advance(5s); // a slot's end comes after its commit, and one more look repairs the rest
  } while (busy() && elapsed() < end && !given_up_);
  if (!given_up_)
    check_settled();
}

void world::end_outages() {
  database_->faults.end();
  disarm_point();
  next_runs_.clear();
  models_.trouble(std::nullopt);
  for (auto& m : machines_) {
    m->mend();
    m->disarm();
    m->go_on();
  }
}

} // namespace boyd::sim
