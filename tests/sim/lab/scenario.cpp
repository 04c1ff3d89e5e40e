#include "tests/sim/lab/scenario.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace boyd::sim {

namespace {

constexpr std::uint64_t most_more_kinds = 4;

/// A day of a node that looks after itself rarely: what it does of its own accord is the same all
/// day, and costs the time that other seeds need.
housekeeping_intervals rare() {
  housekeeping_intervals h;
  h.probe = 15s;
  h.idle_probe = 1h;
  h.queue_poll = h.queue_poll_alone = 1h;
  h.sweep = 30min;
  h.sweep_alone = 1h;
  h.clock_check = 30min;
  h.retry = 5s;
  h.rows_poll = h.repair = 20s;
  h.dispatcher_tick = 7s;
  h.retention = 12h;
  return h;
}

config::configuration configuration_of(seeded_entropy& draw, milliseconds slot) {
  config::configuration c;
  c.node_settings.max_concurrent = 1 + static_cast<int>(draw.next() % 2);
  config::kernel k;
  k.when.expression = "@every " + std::to_string(slot / 1min) + "m";
  k.when.overlap = static_cast<config::overlap_policy>(draw.next() % 3);
  k.cycle_deadline = 20min;
  k.heartbeat_url = "http://monitor.invalid/";
  const auto agents = 1 + draw.next() % 3;
  for (std::uint64_t i = 0; i < agents; ++i) {
    config::agent a;
    a.agent_id = std::string("agent-") + static_cast<char>('a' + i);
    a.prompt = "{STATE}\n{RECENT_RESULTS}\n{TIME}";
    a.priority = static_cast<int>(draw.next() % 20);
    a.timeout = 5min;
    a.retry.cap = 1min;
    config::command_executor run;
    run.argv = {"agent"};
    a.run = run;
    k.agents.push_back(std::move(a));
  }
  c.kernels.push_back(std::move(k));
  return c;
}

fault_menu menu_of(seeded_entropy& draw, int machines) {
  const auto all = all_faults();
  std::vector<fault> left(all.begin(), all.end());
  std::erase(left, fault::model_trouble); // strikes where chats are
  // What needs another node to show itself.
  if (machines == 1)
    std::erase_if(left, [](fault f) { return f == fault::lost_wakeup || f == fault::partition; });
  fault_menu menu{draw.next() % 3 == 0 ? fault::node_kill : fault::power_cut};
  std::erase(left, *menu.begin());
  const auto n = fewest_kinds + draw.next() % (most_more_kinds + 1);
  // A node that can do all its work itself tells no other one: then no word can be lost.
  const auto sure = [&] { return menu.size() - menu.count(fault::lost_wakeup); };
  while (sure() < n && !left.empty()) {
    const auto i = static_cast<std::ptrdiff_t>(draw.next() % left.size());
    menu.insert(left[static_cast<std::size_t>(i)]);
    left.erase(left.begin() + i);
  }
  return menu;
}

/// In one of three worlds the kernel has fewer permits than its node may have. Drawn apart, as all
/// that follows: the other worlds stay what they are.
void limit_kernel(std::uint64_t seed, config::kernel& k) {
  seeded_entropy draw(seed * 0x94d049bb133111ebULL);
  k.max_concurrent = draw.next() % 3 == 0 ? 1 : 0;
}

/// In one of four worlds models plan and word the outcomes.
void ask_models(std::uint64_t seed, config::configuration& c) {
  seeded_entropy draw(seed * 0x9e3779b97f4a7c15ULL);
  if (draw.next() % 4 != 0)
    return;
  config::provider p;
  p.provider_id = "model";
  p.base_url = "http://127.0.0.1:1/v1";
  p.model = "m";
  p.capabilities.stream = p.capabilities.stream_usage = draw.next() % 2 == 0;
  p.said = {true, true, true, true};
  p.prices["*"] = {.input = 1'000'000, .cached_input = 1'000'000, .output = 4'000'000};
  c.providers.push_back(p);
  auto& k = c.kernels.front();
  k.plan.type = config::planner::type_t::llm;
  k.plan.ask.provider_id = "model";
  k.plan.ask.timeout = 2min;
  k.plan.max_dispatches = 1 + draw.next() % 3;
  if (draw.next() % 3 == 0)
    k.plan.ask.budget.day.tokens = 20'000;
  if (draw.next() % 2 == 0) {
    k.reduce.type = config::reducer::type_t::llm;
    k.reduce.ask = k.plan.ask;
  }
}

config::provider model_host(const std::string& id, int port, seeded_entropy& draw) {
  config::provider p;
  p.provider_id = id;
  p.base_url = "http://127.0.0.1:" + std::to_string(port) + "/v1";
  p.model = "m";
  p.capabilities.stream = draw.next() % 3 != 0;
  p.capabilities.stream_usage = draw.next() % 4 != 0;
  p.capabilities.schema = draw.next() % 2 == 0;
  p.said = {true, true, true, true};
  p.prices["*"] = {.input = 1'000'000, .cached_input = 1'000'000, .output = 4'000'000};
  p.max_concurrent = 1 + static_cast<int>(draw.next() % 2);
  p.requests_per_minute = draw.next() % 4 == 0 ? 6 : 0;
  p.request_timeout = draw.next() % 2 == 0 ? 1min : 10min;
  p.max_retries = static_cast<int>(draw.next() % 3);
  return p;
}

void make_chat(config::agent& a, seeded_entropy& draw) {
  config::chat_executor chat;
  chat.provider_id = "chat";
  chat.system = chat_identity(a.agent_id);
  chat.max_turns = 6;
  if (draw.next() % 3 != 0) {
    chat.workspace = "/srv/" + a.agent_id;
    a.tools = {"read_file", "write_file", "list_dir"};
  }
  if (draw.next() % 3 == 0)
    chat.schema_json = R"({"type":"object","properties":{"verdict":{"type":"string"}},)"
                       R"("required":["verdict"],"additionalProperties":false})";
  if (draw.next() % 3 == 0)
    chat.fallback.push_back({"spare", "", {}});
  if (draw.next() % 3 == 0)
    chat.max_output_tokens = 1'000;
  a.prompt = "Look after your files.\n{RECENT_RESULTS}\n{TIME}";
  if (draw.next() % 3 == 0)
    a.budget.run.tokens = 3'000;
  if (draw.next() % 3 == 0)
    a.budget.day.tokens = 10'000;
  if (draw.next() % 6 == 0)
    a.budget.day.cost = 40'000;
  a.run = std::move(chat);
}

/// In one of four worlds some agents are chats. Drawn apart, too.
void talk_to_models(std::uint64_t seed, scenario& s) {
  seeded_entropy draw(seed * 0xd1342543de82ef95ULL);
  if (draw.next() % 4 != 0)
    return;
  s.configuration.providers.push_back(model_host("chat", 2, draw));
  s.configuration.providers.push_back(model_host("spare", 3, draw));
  auto& agents = s.configuration.kernels.front().agents;
  for (std::size_t i = 0; i < agents.size(); ++i)
    if (i == 0 || draw.next() % 3 == 0)
      make_chat(agents[i], draw);
  s.menu.insert(fault::model_trouble);
}

config::script_executor answers_of(seeded_entropy& draw) {
  constexpr std::array<const char*, 4> ends{"", "", "transient", "deterministic"};
  config::script_executor script;
  for (auto n = 1 + draw.next() % 4; n > 0; --n)
    script.answers.push_back({"an answer", "answered", milliseconds{draw.next() % 20'000},
                              ends[draw.next() % ends.size()]});
  return script;
}

/// In one of three worlds the kernel has senses, and some agents are scripts, are asked first
/// whether there is anything new, or have their work checked by a program. Drawn apart as well.
void look_and_check(std::uint64_t seed, config::kernel& k) {
  seeded_entropy draw(seed * 0xbf58476d1ce4e5b9ULL);
  if (draw.next() % 3 != 0)
    return;
  for (auto n = draw.next() % 3; n > 0; --n) {
    auto& sense = k.senses.emplace_back();
    sense.name = "sense-" + std::to_string(n);
    sense.argv = {machine::sense_program};
    sense.interval = draw.next() % 2 == 0 ? 0ms : milliseconds{3h};
  }
  for (std::size_t i = 0; i < k.agents.size(); ++i) {
    auto& a = k.agents[i];
    if (!std::holds_alternative<config::command_executor>(a.run))
      continue;
    a.prompt += "\n{SENSES}";
    if (i > 0 && draw.next() % 2 == 0)
      a.run = answers_of(draw);
    else if (draw.next() % 3 == 0)
      a.require.push_back({config::requirement::kind_t::command, {}, {machine::check_program}});
    if (draw.next() % 4 == 0)
      a.wake.emplace().argv = {machine::sense_program};
  }
}

/// Where no agent is a program, none can misbehave: other kinds take the place of that.
void drop_what_cannot_be(scenario& s) {
  constexpr std::array of_programs{fault::run_hangs, fault::run_fails, fault::run_late,
                                   fault::start_refused};
  constexpr std::array instead{fault::disconnect, fault::store_outage, fault::clock_step,
                               fault::reload, fault::actor_kill};
  const auto runs_program = [](const config::agent& a) {
    return std::holds_alternative<config::command_executor>(a.run);
  };
  if (std::ranges::any_of(s.configuration.kernels.front().agents, runs_program))
    return;
  const auto before = s.menu.size();
  for (const auto f : of_programs)
    s.menu.erase(f);
  for (std::size_t i = 0; i < instead.size() && s.menu.size() < before; ++i)
    s.menu.insert(instead[i]);
}

} // namespace

scenario scenario_of(std::uint64_t seed) {
  constexpr std::array slots{120min, 180min, 240min, 360min};
  // Apart from the world's own choices, which begin with the same seed.
  seeded_entropy draw(~seed);
  scenario s;
  s.seed = seed;
  s.options.machines = draw.next() % 5 == 0 ? 2 : 1;
  s.options.shared_store = s.options.machines > 1 || draw.next() % 2 == 0;
  s.options.slot = slots[draw.next() % slots.size()];
  s.options.between = 2h;
  s.options.quick_agents = true;
  s.options.fewest_kinds = fewest_kinds;
  s.options.housekeeping = rare();
  s.configuration = configuration_of(draw, s.options.slot);
  s.menu = menu_of(draw, s.options.machines);
  // Another node's work is looked for more often, so that it is found while it might still run.
  if (s.menu.contains(fault::partition))
    s.options.housekeeping.sweep = 3min;
  limit_kernel(seed, s.configuration.kernels.front());
  ask_models(seed, s.configuration);
  talk_to_models(seed, s);
  look_and_check(seed, s.configuration.kernels.front());
  drop_what_cannot_be(s);
  return s;
}

seed_report run_seed(std::uint64_t seed, int days) {
  auto s = scenario_of(seed);
  world w(seed, std::move(s.configuration), std::move(s.menu), s.options);
  w.boot();
  w.run(std::chrono::hours{24} * days);
  w.settle();
  w.take_down();
  w.note_remains();
  seed_report r;
  r.seed = seed;
  r.trace = w.trace();
  r.virtual_time = w.elapsed();
  r.messages = w.messages();
  r.cycles = w.database().all_cycles().size();
  r.dispatches = w.database().all_rows().size();
  r.chat_calls = w.chat_calls();
  r.crashes = static_cast<std::uint64_t>(w.crashes());
  for (std::size_t i = 0; i < fault_kinds; ++i)
    r.faults[i] = w.struck(static_cast<fault>(i));
  r.violations = w.violations();
  std::ranges::copy(w.events(), std::back_inserter(r.events));
  return r;
}

} // namespace boyd::sim
