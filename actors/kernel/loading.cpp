#include "actors/kernel/state.hpp"
#include "actors/librarian/core.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/plan/slots.hpp"
#include "boyd/plan/system_prompt.hpp"
#include "boyd/ports/time_zones.hpp"
#include "boyd/state/files_of_kernel.hpp"
#include "boyd/state/runtime_block.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <utility>

namespace boyd::kernel_impl {

namespace {

/// Rows of the ledger and of cycles that are read at start, of this node and of any: far more than
/// one life leaves open.
constexpr std::size_t ledger_rows = 500;
constexpr std::size_t cycle_rows = 50;

std::string fact_scope(self_pointer self) {
  return "kernel:" + self->state.settings->kernel_id;
}

/// When this kernel was first seen; kept, so that a restart does not forget missed slots.
void take_since(self_pointer self, const std::map<std::string, std::string>& facts) {
  auto& s = self->state;
  s.since = now_of(self);
  if (auto it = facts.find("since"); it != facts.end()) {
    std::int64_t ms = 0;
    const auto& text = it->second;
    if (std::from_chars(text.data(), text.data() + text.size(), ms).ec == std::errc{})
      s.since = from_unix_ms(ms);
    return;
  }
  if (s.parts.context->passive)
    return;
  ask_store(self, s.parts.store,
            store::put_fact{fact_scope(self), "since", std::to_string(to_unix_ms(s.since))},
            [](result<store::ok>) {
              // Written again by the next start when it was lost.
            });
}

/// What an earlier life left to be done; the next record tells why.
void take_effects(self_pointer self, const std::map<std::string, std::string>& facts) {
  auto& s = self->state;
  s.effects.load(effects::read_effects(facts));
  s.carried = effects::behind_of(s.effects.open());
}

/// What is newest in the ledger, of all nodes and of this one: while it was away, others may have
/// run any number of cycles on the same database.
struct ledger {
  std::vector<occurrence> slots;
  std::vector<cycle_record> cycles;
  std::vector<occurrence> own_slots;
  std::vector<cycle_record> own_cycles;
  std::map<std::string, std::string> single_runs; ///< single_scope

  std::optional<plan::single_run> single_run_of(const std::string& cycle_id) const {
    const auto it = single_runs.find(cycle_id);
    return it == single_runs.end() ? std::nullopt : plan::read_single_run(it->second);
  }
};

/// Slots that an earlier life of this node opened and did not bring to an end. Returns the cycles
/// of those that began.
std::set<std::string> take_open_slots(self_pointer self, const ledger& read) {
  auto& s = self->state;
  s.last_slot = plan::last_scheduled(read.slots);
  std::set<std::string> begun;
  for (auto it = read.own_slots.rbegin(); it != read.own_slots.rend(); ++it) {
    if (it->state != occurrence_state::open)
      continue;
    const auto cycle =
        std::ranges::find(read.own_cycles, it->scheduled_at, &cycle_record::scheduled_at);
    if (cycle == read.own_cycles.end())
      s.admitted.push_back({*it, it->cycle_id, {}, read.single_run_of(it->cycle_id)});
    else
      begun.insert(cycle->cycle_id);
  }
  return begun;
}

/// The store lists cycles in the order in which they began, which their times need not have: a
/// clock may have been set back between them.
void take_cycles(self_pointer self, const ledger& read) {
  auto& s = self->state;
  const auto runs = [](const cycle_record& c) { return c.status == cycle_status::running; };
  const auto open = take_open_slots(self, read);
  s.has_run = !std::ranges::all_of(read.own_cycles, runs);
  // The row of one that does not run stands; edges, STATE.md or commits may not.
  const auto left_over = [&](const cycle_record& c) {
    return c.node_id == s.parts.context->node_id && (runs(c) || open.contains(c.cycle_id));
  };
  // The latest one that is recorded to its end: a cycle that is resumed tells of everything that
  // ended since then, and whoever awaits it waits for its end.
  const auto latest = std::ranges::find_if(read.cycles, [&](const cycle_record& c) {
    return !runs(c) && (s.parts.context->passive || !left_over(c));
  });
  if (latest != read.cycles.end())
    s.latest = *latest;
  const auto becomes_latest = [&](const cycle_record& c) {
    return std::find_if(read.cycles.begin(), latest, [&](const cycle_record& each) {
             return each.cycle_id == c.cycle_id;
           }) != latest;
  };
  // In the order in which they began: what one leaves is what the next one finds.
  for (auto c = read.own_cycles.rbegin(); c != read.own_cycles.rend(); ++c) {
    if (!left_over(*c))
      continue;
    const auto slot = std::ranges::find(read.own_slots, c->scheduled_at, &occurrence::scheduled_at);
    const bool by_hand = slot != read.own_slots.end() && slot->trigger != plan::schedule_trigger;
    s.to_resume.push_back({*c, becomes_latest(*c), by_hand, read.single_run_of(c->cycle_id)});
  }
}

/// The row is the truth; the block, and its commit, may have failed before the last life ended.
void compare_rendering(self_pointer self) {
  auto& s = self->state;
  ask<state_reply>(self, s.parts.state_writer, state_request{{}, read_state{s.settings->kernel_id}},
                   [self](result<state_reply> r) {
                     auto& st = self->state;
                     if (!st.latest || st.cycle || st.resuming || st.following || is_behind(self))
                       return;
                     const auto block = r ? state::parse_runtime_block(r->text) : std::nullopt;
                     // Another node's cycle as well: this one's files tell of it, and it may have
                     // ended between the block and the commit.
                     if (block && block->latest.cycle_id == st.latest->cycle_id &&
                         block->latest.status == st.latest->status)
                       return commit_latest(self, *st.latest);
                     st.shows_latest = false;
                     repair_latest(self);
                   });
}

void end_snapshots(self_pointer self) {
  self->state.writing_snapshots = false;
  release_act(self);
}

/// INIT.md and SYSTEM_PROMPT.md, unless they say the same already.
void write_changed_snapshots(self_pointer self, const std::map<std::string, std::string>& files) {
  auto& s = self->state;
  const auto& c = *s.parts.context;
  auto text_of = [&](const char* name) {
    auto it = files.find(name);
    return it == files.end() ? std::string{} : it->second;
  };
  plan::system_prompt_parts parts;
  // Before they are joined: a cut there may not leave a part of a secret.
  const auto& secrets = s.parts.configuration->secrets;
  parts.instructions = config::redact_text(s.settings->system_prompt, secrets);
  parts.identity = config::redact_text(text_of("SOUL.md"), secrets);
  parts.goal = config::redact_text(text_of("GOAL.md"), secrets);
  const std::map<std::string, std::string> wanted{
      {"INIT.md", state::render_init({s.settings->kernel_id, c.node_id, c.version, c.started_at,
                                      s.parts.configuration->redacted_yaml})},
      {"SYSTEM_PROMPT.md",
       state::render_system_prompt({s.settings->kernel_id, c.version, c.started_at,
                                    plan::make_system_prompt(parts).text})}};
  write_kernel_files write{s.settings->kernel_id, {}};
  for (const auto& [name, text] : wanted)
    if (!state::same_snapshot(text_of(name.c_str()), text))
      write.files[name] = text;
  if (write.files.empty())
    return end_snapshots(self);
  ask<state_reply>(self, s.parts.state_writer, state_request{{}, std::move(write)},
                   [self](result<state_reply> r) {
                     if (!r)
                       spdlog::warn("kernel {}: cannot write INIT.md: {}",
                                    self->state.settings->kernel_id, to_string(r.error()));
                     end_snapshots(self);
                   });
}

void write_snapshots(self_pointer self) {
  auto& s = self->state;
  s.writing_snapshots = true;
  read_kernel_files read{s.settings->kernel_id,
                         {"GOAL.md", "SOUL.md", "INIT.md", "SYSTEM_PROMPT.md"}};
  ask<state_reply>(self, s.parts.state_writer, state_request{{}, std::move(read)},
                   [self](result<state_reply> r) {
                     auto files = r ? std::move(r->files) : std::map<std::string, std::string>{};
                     if (r)
                       for (const auto& p : note_unreadable(r->unreadable, files))
                         spdlog::warn("kernel {}: {}", self->state.settings->kernel_id, p);
                     write_changed_snapshots(self, files);
                   });
}

void go(self_pointer self) {
  auto& s = self->state;
  s.loaded = true;
  s.problem.clear();
  for (auto& t : std::exchange(s.triggers, {}))
    admit_trigger(self, std::move(t.trigger), std::move(t.promise));
  for (auto& [id, promises] : std::exchange(s.waiters, {}))
    for (auto& promise : promises)
      await(self, id, std::move(promise));
  if (s.parts.context->passive)
    return;
  const auto begin = [self] {
    start_next(self);
    self->state.tried_effects = false;
    look(self);
    compare_rendering(self);
    if (is_behind(self))
      repair_later(self);
  };
  s.tried_effects = true;
  if (is_behind(self))
    follow(self, {}, {}, begin);
  else
    begin();
}

/// The home comes after the rows and before the first cycle. Without it cycles go on, degraded.
void prepare_home(self_pointer self) {
  auto& s = self->state;
  if (s.parts.context->passive)
    return go(self);
  ask<state_reply>(self, s.parts.state_writer,
                   state_request{{}, init_kernel_home{s.settings->kernel_id, s.has_run}},
                   [self](result<state_reply> r) {
                     if (!r) {
                       self->state.carried.push_back("kernel home: " + to_string(r.error()));
                       spdlog::error("kernel {}: {}", self->state.settings->kernel_id,
                                     to_string(r.error()));
                     } else {
                       write_snapshots(self);
                     }
                     go(self);
                   });
}

} // namespace

namespace {

/// Tried again soon. Whoever waits for a cycle is told why now: it may ask again, and a damaged
/// database does not heal.
void load_later(self_pointer self, const error& why) {
  auto& s = self->state;
  s.problem = to_string(why);
  for (auto& t : std::exchange(s.triggers, {}))
    answer<trigger_reply>(t.promise, fail(error(why)));
  self->delayed_send(self, s.parts.context->housekeeping.retry, load_tick{});
}

} // namespace

void load(self_pointer self) {
  auto& s = self->state;
  if (auto passed = faults::pass("kernel.load"); !passed)
    return load_later(self, passed.error());
  const auto& node_id = s.parts.context->node_id;
  store_request request;
  const auto& kernel_id = s.settings->kernel_id;
  const auto slots_asked = request.add(store::list_occurrences{kernel_id, {}, ledger_rows});
  const auto cycles_asked = request.add(store::list_cycles{kernel_id, true, cycle_rows});
  const auto facts_asked = request.add(store::get_facts{fact_scope(self)});
  const auto effects_asked = request.add(effects_query(self));
  const auto own_slots_asked =
      request.add(store::list_occurrences{kernel_id, {}, ledger_rows, node_id});
  const auto own_cycles_asked =
      request.add(store::list_cycles{kernel_id, true, cycle_rows, {}, node_id});
  const auto single_asked = request.add(store::get_facts{single_scope(self)});
  ask<store_reply>(self, s.parts.store, std::move(request), [=](result<store_reply> r) {
    if (!r)
      return load_later(self, r.error());
    auto rows = slots_asked.of(*r);
    auto cycles = cycles_asked.of(*r);
    auto facts = facts_asked.of(*r);
    auto open = effects_asked.of(*r);
    auto own_rows = own_slots_asked.of(*r);
    auto own_cycles = own_cycles_asked.of(*r);
    auto single = single_asked.of(*r);
    if (!rows || !cycles || !facts || !open || !own_rows || !own_cycles || !single)
      return load_later(self,
                        {errc::store_unavailable, "cannot read the cycles and slots", {}, {}});
    take_since(self, *facts);
    take_effects(self, *open);
    take_cycles(self, {std::move(*rows), std::move(*cycles), std::move(*own_rows),
                       std::move(*own_cycles), std::move(*single)});
    prepare_home(self);
  });
}

result<void> read_settings(self_pointer self, const configuration_ptr& configuration) {
  auto& s = self->state;
  const auto* kernel = configuration->find_kernel(s.parts.kernel_id);
  if (kernel == nullptr)
    return fail(errc::not_found, "no such kernel: " + s.parts.kernel_id);
  const auto& zones = *s.parts.context->ports.zones;
  auto rule = plan::schedule_rule::make(kernel->when, zones);
  if (!rule)
    return fail(rule.error());
  auto quiet = plan::make_quiet_rules(kernel->quiet, zones);
  if (!quiet)
    return fail(quiet.error());
  std::map<std::string, plan::schedule_rule> agents;
  for (const auto& a : kernel->agents) {
    if (!a.when)
      continue;
    auto own = plan::schedule_rule::make(*a.when, zones);
    if (!own)
      return fail(own.error());
    agents.emplace(a.agent_id, std::move(*own));
  }
  s.parts.configuration = configuration;
  s.settings = kernel;
  s.rule = std::move(*rule);
  s.quiet = std::move(*quiet);
  s.agent_rules = std::move(agents);
  return {};
}

} // namespace boyd::kernel_impl
