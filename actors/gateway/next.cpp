#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/plan/next_run.hpp"
#include "boyd/plan/quiet.hpp"
#include "boyd/ports/time_zones.hpp"

#include <algorithm>
#include <utility>
#include <vector>

/// When agents are due, by their schedules and pauses alone.
namespace boyd::gateway_impl {

namespace {

constexpr std::size_t standard_times = 5;
constexpr std::size_t most_times = 100;

/// A cycle that is to come.
struct fire {
  utc_time at{};
  const config::kernel* kernel = nullptr;
  std::vector<std::string> agents{};
  std::string quiet{};       ///< why nothing runs then after all
  json due = json::object(); ///< by agent: since when it is due, where that is earlier
};

/// An agent that is in none of the rows.
struct absent {
  const config::kernel* kernel = nullptr;
  const config::agent* agent = nullptr;
  std::optional<utc_time> at{}; ///< nothing: its schedule is over, or it is disabled
};

struct timetable {
  std::vector<pause_record> pauses; ///< of all kernels
  std::vector<fire> rows{};
  std::vector<absent> others{}; ///< none of them is paused
};

/// Without an agent: whether the whole kernel is.
bool is_paused(const timetable& all, const config::kernel& k, const std::string& agent_id = {}) {
  return std::ranges::any_of(all.pauses, [&](const pause_record& p) {
    return p.kernel_id == k.kernel_id && (p.agent_id.empty() || p.agent_id == agent_id);
  });
}

fire& row_at(std::vector<fire>& rows, const config::kernel& k, utc_time at) {
  const auto it =
      std::ranges::find_if(rows, [&](const fire& f) { return f.at == at && f.kernel == &k; });
  return it != rows.end() ? *it : rows.emplace_back(fire{at, &k});
}

/// The times of one kernel: of `only` this agent, or of all with the kernel's own.
void add_kernel(timetable& to, const config::kernel& k, const std::string& only, utc_time now,
                std::size_t count, const time_zones& zones) {
  const auto cycles = plan::schedule_rule::make(k.when, zones);
  if (!cycles)
    return;
  const auto quiet = plan::make_quiet_rules(k.quiet, zones);
  const auto every = plan::fire_times(k, nullptr, *cycles, nullptr, now, count);
  std::vector<fire> rows;
  for (const auto& t : only.empty() && !is_paused(to, k) ? every : std::vector<plan::fire_time>{})
    row_at(rows, k, t.at);
  for (const auto& a : k.agents) {
    if ((!only.empty() && a.agent_id != only) || is_paused(to, k, a.agent_id))
      continue;
    const auto own = a.when ? plan::schedule_rule::make(*a.when, zones) : cycles;
    std::vector<plan::fire_time> times;
    if (a.enabled && own)
      times = a.when ? plan::fire_times(k, &a, *cycles, &*own, now, count) : every;
    if (times.empty() || (only.empty() && (every.empty() || times.front().at > every.back().at)))
      to.others.push_back({&k, &a, times.empty() ? std::nullopt : std::optional(times.front().at)});
    for (const auto& t : times)
      if (!only.empty() || (!every.empty() && t.at <= every.back().at)) {
        auto& row = row_at(rows, k, t.at);
        row.agents.push_back(a.agent_id);
        if (t.due != t.at)
          row.due[a.agent_id] = to_json(std::optional(t.due));
      }
  }
  for (auto& row : rows)
    if (const auto hours = quiet ? plan::is_quiet(*quiet, row.at) : std::nullopt)
      row.quiet = hours->reason;
  std::ranges::move(rows, std::back_inserter(to.rows));
}

/// What is asked about.
struct next_question {
  std::vector<const config::kernel*> kernels;
  std::string only; ///< an agent; empty: all
  std::size_t count = 0;
};

/// Those that keep something that is asked about from running.
json pauses_json(const timetable& all, const next_question& q) {
  json out = json::array();
  for (const auto& p : all.pauses) {
    const auto k = std::ranges::find(q.kernels, p.kernel_id, &config::kernel::kernel_id);
    const bool is_asked =
        k != q.kernels.end() && (p.agent_id.empty() || (q.only.empty() || p.agent_id == q.only));
    // A pause outlives the agent.
    if (is_asked && (p.agent_id.empty() || config::find_agent(**k, p.agent_id) != nullptr))
      out.push_back({{"kernel_id", p.kernel_id},
                     {"agent_id", p.agent_id.empty() ? json(nullptr) : json(p.agent_id)},
                     {"reason", p.reason},
                     {"since", to_json(std::optional(p.since))}});
  }
  return out;
}

void reply_next(const exchange_ptr& x, timetable& all, const next_question& q) {
  std::ranges::stable_sort(all.rows, {}, &fire::at);
  json items = json::array();
  for (const auto& f : all.rows) {
    if (items.size() == q.count)
      break;
    items.push_back({{"at", to_json(std::optional(f.at))},
                     {"kernel_id", f.kernel->kernel_id},
                     {"agents", f.agents},
                     {"due", f.due},
                     {"quiet", f.quiet.empty() ? json(nullptr) : json(f.quiet)}});
  }
  json others = json::array();
  for (const auto& a : all.others)
    others.push_back({{"kernel_id", a.kernel->kernel_id},
                      {"agent_id", a.agent->agent_id},
                      {"enabled", a.agent->enabled},
                      {"at", to_json(a.at)}});
  x->reply("next", {{"items", std::move(items)},
                    {"others", std::move(others)},
                    {"pauses", pauses_json(all, q)},
                    {"kernels", x->configuration->kernels.size()}});
}

} // namespace

void get_next(exchange_ptr x) {
  const auto count = x->limit(standard_times, most_times);
  if (!count)
    return;
  const auto named = x->query("kernel");
  if (!named.empty() && x->kernel() == nullptr)
    return;
  next_question q{{}, x->query("agent"), *count};
  for (const auto& k : x->configuration->kernels)
    if ((named.empty() || k.kernel_id == named) &&
        (q.only.empty() || config::find_agent(k, q.only) != nullptr))
      q.kernels.push_back(&k);
  if (q.kernels.empty() && !q.only.empty())
    return refuse_agent(x, named, q.only);
  ask_store(x->self, x->self->state.parts.store, store::list_pauses{},
            [x, q = std::move(q)](result<std::vector<pause_record>> pauses) {
              if (!pauses)
                return x->fail_with(pauses.error());
              const auto& ports = x->self->state.parts.context->ports;
              timetable all{std::move(*pauses)};
              for (const auto* k : q.kernels)
                add_kernel(all, *k, q.only, ports.clock->now(), q.count, *ports.zones);
              reply_next(x, all, q);
            });
}

} // namespace boyd::gateway_impl
