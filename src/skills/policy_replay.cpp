#include "boyd/skills/policy_replay.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/text.hpp"
#include "boyd/graph/links.hpp"
#include "boyd/skills/skill.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

namespace boyd::skills {

namespace {

constexpr double most_number = 1'000'000;
/// Changes of so many runs are kept by the fold.
constexpr std::size_t runs_at_once = 5'000;
/// Decisions without a reason of their own are alike: so many are kept as read.
constexpr std::size_t most_metas = 1'000;

/// A number of a policy file, and where it goes.
struct named_number {
  std::string_view section;
  std::string_view name;
  bool is_share; ///< 0 to 1; else a whole number, of days where the name says so
  std::function<void(policy_numbers&, double)> put;
};

std::int64_t whole(double n) {
  return static_cast<std::int64_t>(n);
}

milliseconds days(double n) {
  return std::chrono::hours{24} * whole(n);
}

const std::vector<named_number>& known_numbers() {
  using p = policy_numbers;
  static const std::vector<named_number> all{
      {"planner", "most_runs", false, [](p& n, double v) { n.plan.most_runs = whole(v); }},
      {"planner", "least_minutes", false,
       [](p& n, double v) { n.plan.least_pause = std::chrono::minutes{whole(v)}; }},
      {"learning", "success_step", true, [](p& n, double v) { n.learning.success_step = v; }},
      {"learning", "failure_step", true, [](p& n, double v) { n.learning.failure_step = v; }},
      {"learning", "least_accuracy", true, [](p& n, double v) { n.learning.least_accuracy = v; }},
      {"stages", "candidate_referenced", false,
       [](p& n, double v) { n.stages.candidate_referenced = whole(v); }},
      {"stages", "candidate_useful_rate", true,
       [](p& n, double v) { n.stages.candidate_useful_rate = v; }},
      {"stages", "candidate_confidence", true,
       [](p& n, double v) { n.stages.candidate_confidence = v; }},
      {"stages", "candidate_idle_days", false,
       [](p& n, double v) { n.stages.candidate_idle = days(v); }},
      {"stages", "bank_referenced", false,
       [](p& n, double v) { n.stages.bank_referenced = whole(v); }},
      {"stages", "bank_success", false, [](p& n, double v) { n.stages.bank_success = whole(v); }},
      {"stages", "bank_useful_rate", true, [](p& n, double v) { n.stages.bank_useful_rate = v; }},
      {"stages", "bank_confidence", true, [](p& n, double v) { n.stages.bank_confidence = v; }},
      {"stages", "archive_idle_days", false,
       [](p& n, double v) { n.stages.archive_idle = days(v); }},
      {"stages", "archive_confidence", true,
       [](p& n, double v) { n.stages.archive_confidence = v; }},
      {"memory", "promote_referenced", false,
       [](p& n, double v) { n.memory.promote_referenced = whole(v); }},
      {"memory", "promote_useful", false,
       [](p& n, double v) { n.memory.promote_useful = whole(v); }},
      {"memory", "promote_importance", true,
       [](p& n, double v) { n.memory.promote_importance = v; }},
      {"memory", "forget_not_useful", false,
       [](p& n, double v) { n.memory.forget_not_useful = whole(v); }},
      {"memory", "forget_importance", true, [](p& n, double v) { n.memory.forget_importance = v; }},
      {"memory", "forget_idle_days", false, [](p& n, double v) { n.memory.forget_idle = days(v); }},
      {"memory", "archive_importance", true,
       [](p& n, double v) { n.memory.archive_importance = v; }},
      {"memory", "noisy_injected", false,
       [](p& n, double v) { n.memory.noisy_injected = whole(v); }},
      {"memory", "noisy_share", true, [](p& n, double v) { n.memory.noisy_share = v; }},
      {"memory", "reinforce_referenced", false,
       [](p& n, double v) { n.memory.reinforce_referenced = whole(v); }},
      {"memory", "reinforce_importance", true,
       [](p& n, double v) { n.memory.reinforce_importance = v; }}};
  return all;
}

error wrong(const std::string& path, const config::mark& at, std::string what, std::string next) {
  return {errc::invalid_configuration, std::move(what),
          path + ":" + std::to_string(at.line) + ":" + std::to_string(at.column), std::move(next)};
}

std::string nearest_of(std::string_view word, const std::vector<std::string_view>& names) {
  const auto found = nearest(word, names);
  if (!found.empty())
    return "did you mean " + std::string(found) + "?";
  std::string all;
  for (const auto name : names)
    all += (all.empty() ? "write one of: " : ", ") + std::string(name);
  return all;
}

result<double> number_of(const config::tree& value, const named_number& n,
                         const std::string& path) {
  double v = 0;
  const auto* const end = value.text.data() + value.text.size();
  const auto read = std::from_chars(value.text.data(), end, v);
  const bool is_number = value.kind == config::tree::kind_t::scalar && value.plain &&
                         read.ec == std::errc{} && read.ptr == end;
  const auto most = n.is_share ? 1.0 : most_number;
  if (!is_number || v < 0 || v > most || (!n.is_share && v != std::floor(v)))
    return fail(wrong(path, value.at,
                      std::string(n.name) +
                          (n.is_share ? " is not a number from 0 to 1" : " is not a whole number"),
                      n.is_share ? "write for example 0.7" : "write for example 5"));
  return v;
}

result<void> read_section(const config::tree& section, std::string_view name,
                          const std::string& path, policy_numbers& to) {
  if (section.kind != config::tree::kind_t::map)
    return fail(wrong(path, section.at, std::string(name) + " is not a map of numbers", {}));
  std::vector<std::string_view> names;
  for (const auto& n : known_numbers())
    if (n.section == name)
      names.push_back(n.name);
  for (std::size_t i = 0; i < section.keys.size(); ++i) {
    const auto& key = section.keys[i];
    const auto n = std::ranges::find_if(known_numbers(), [&](const named_number& known) {
      return known.section == name && known.name == key.text;
    });
    if (n == known_numbers().end())
      return fail(wrong(path, key.at, "unknown number: " + key.text, nearest_of(key.text, names)));
    const auto v = number_of(section.items[i], *n, path);
    if (!v)
      return fail(v.error());
    n->put(to, *v);
  }
  return {};
}

std::string moment(const std::optional<utc_time>& t) {
  return t ? format_rfc3339(*t) : "never";
}

/// "0.75", whatever the sums have left behind.
std::string share_text(double v) {
  constexpr double steps = 1000;
  auto text = std::to_string(std::round(v * steps) / steps);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text + "0" : text;
}

} // namespace

result<policy_numbers> read_policy_numbers(const config::tree& file, const std::string& path) {
  policy_numbers numbers;
  if (file.kind != config::tree::kind_t::map)
    return fail(wrong(path, file.at, "a policy is a map",
                      "begin it with one of: planner, learning, stages, memory"));
  for (std::size_t i = 0; i < file.keys.size(); ++i) {
    const auto& key = file.keys[i];
    const std::vector<std::string_view> sections{"planner", "learning", "stages", "memory"};
    if (std::ranges::find(sections, key.text) == sections.end())
      return fail(wrong(path, key.at, "unknown part of a policy: " + key.text,
                        nearest_of(key.text, sections)));
    if (auto read = read_section(file.items[i], key.text, path, numbers); !read)
      return fail(std::move(read.error()));
  }
  return numbers;
}

policy_replay::policy_replay(const policy_numbers& numbers)
    : numbers_(numbers), fold_(numbers.learning, [](index_area, const std::string&) {
        return result<std::optional<std::string>>(std::nullopt); // all that it knows is at hand
      }) {}

void policy_replay::change(const policy_numbers& numbers, utc_time at) {
  numbers_ = numbers;
  fold_.change_rules(numbers.learning);
  for (auto& item : items_)
    look_at(item, at);
}

std::size_t policy_replay::place_of(const std::string& id) {
  const auto [known, fresh] = places_.try_emplace(id, items_.size());
  if (fresh)
    items_.emplace_back().id = id;
  return known->second;
}

void policy_replay::touch(std::size_t place) {
  if (!std::exchange(items_[place].touched, true))
    touched_.push_back(place);
}

/// What was promoted, pinned, archived or forgotten under the numbers in force is no input: what
/// would be is asked of the rules.
result<void> policy_replay::take(const graph::edge& fact, std::uint64_t line) {
  if (fact.type == "decided_by") {
    take_decision(fact);
    return {};
  }
  if (!left_out_.empty() && (left_out_.contains(fact.from) || left_out_.contains(fact.to)))
    return {};
  if (fact.type == "resulted_in")
    return take_end(fact, line);
  if (fact.type == "used_in") {
    if (!is_given(fact))
      return {};
    const auto place = place_of(fact.from);
    ++items_[place].outcome.given;
    open_runs_[fact.to].push_back(place);
    touch(place);
    return fold_.take(fact, line);
  }
  if (fact.type != "supports" || !fact.to.starts_with("ctx_"))
    return {};
  touch(place_of(fact.to));
  return fold_.take(fact, line);
}

const std::string& policy_replay::agent_of(const graph::edge& decision) {
  if (const auto known = agents_.find(decision.meta_json); known != agents_.end())
    return known->second;
  if (agents_.size() >= most_metas)
    agents_.clear();
  auto& agent = agents_[decision.meta_json];
  const auto meta = nlohmann::json::parse(decision.meta_json, nullptr, false);
  if (!meta.is_object() || text_in(meta, "kind") == "reevaluation")
    return agent;
  // Kernels may have agents of one name. Older facts do not say the kernel.
  const auto kernel = text_in(meta, "kernel");
  agent = (kernel.empty() ? std::string() : kernel + "/") + text_in(meta, "agent");
  return agent;
}

void policy_replay::take_decision(const graph::edge& decision) {
  const auto& agent = agent_of(decision);
  if (agent.empty())
    return;
  if (std::exchange(cycle_, decision.to) != decision.to)
    runs_of_cycle_ = 0;
  const auto& rules = numbers_.plan;
  const auto latest = latest_runs_.find(agent);
  const bool is_too_soon = latest != latest_runs_.end() && rules.least_pause > milliseconds{0} &&
                           decision.timestamp - latest->second < rules.least_pause;
  const bool is_too_many = rules.most_runs > 0 && runs_of_cycle_ >= rules.most_runs;
  auto& runs = runs_[agent];
  if (is_too_soon || is_too_many) {
    left_out_.insert(decision.from);
    return;
  }
  ++runs;
  ++runs_of_cycle_;
  latest_runs_[agent] = decision.timestamp;
}

bool policy_replay::is_given(const graph::edge& use) const {
  // Most are not from the bank, and are not parsed.
  if (use.meta_json.find("\"bank\"") == std::string::npos)
    return true;
  const auto meta = nlohmann::json::parse(use.meta_json, nullptr, false);
  if (!meta.is_object() || text_in(meta, "from") != "bank")
    return true;
  const auto known = places_.find(use.from);
  return known != places_.end() && items_[known->second].banked;
}

result<void> policy_replay::take_end(const graph::edge& end, std::uint64_t line) {
  auto run = open_runs_.extract(end.from);
  auto given = run.empty() ? std::vector<std::size_t>{} : std::move(run.mapped());
  std::ranges::sort(given);
  given.erase(std::unique(given.begin(), given.end()), given.end());
  count_open(given);
  if (auto taken = fold_.take(end, line); !taken)
    return taken;
  for (const auto place : given)
    touch(place);
  for (const auto place : std::exchange(touched_, {})) {
    items_[place].touched = false;
    look_at(items_[place], end.timestamp);
  }
  if (++unkept_ >= runs_at_once) {
    unkept_ = 0;
    fold_.drop_changes();
  }
  return {};
}

/// Not item by item of a bank, which may be large: by how many runs of its scope end while an item
/// stands in it.
void policy_replay::count_open(const std::vector<std::size_t>& given) {
  std::vector<std::string> scopes;
  for (const auto place : given)
    if (const auto* item = fold_.at_hand(items_[place].id);
        item != nullptr && std::ranges::find(scopes, item->scope) == scopes.end())
      scopes.push_back(item->scope);
  for (const auto& scope : scopes)
    ++ended_[scope];
  for (const auto place : given)
    if (auto& item = items_[place];
        item.banked && std::ranges::find(scopes, item.scope) != scopes.end())
      --item.outcome.open;
}

void policy_replay::look_at(followed_item& item, utc_time at) {
  const auto* learned = fold_.at_hand(item.id);
  if (learned == nullptr)
    return;
  auto& o = item.outcome;
  const auto where = stage_of(learned->counts, at, numbers_.stages).where;
  if (!learned->frozen && where >= stage::bank && !o.banked)
    o.banked = at;
  if (!learned->frozen && where == stage::skill_candidate && !o.candidate)
    o.candidate = at;
  const bool is_in =
      is_banked(learned->counts, numbers_.stages) && !learned->frozen && !learned->scope.empty();
  if (is_in == item.banked)
    return;
  if (is_in)
    enter_bank(item, learned->scope);
  else
    leave_bank(item);
}

void policy_replay::enter_bank(followed_item& item, const std::string& scope) {
  item.banked = true;
  item.scope = scope;
  item.ended_before = ended_[scope];
}

void policy_replay::leave_bank(followed_item& item) {
  item.banked = false;
  item.outcome.open += ended_[item.scope] - item.ended_before;
}

policy_results policy_replay::finish(utc_time now) {
  policy_results results;
  results.runs = std::move(runs_);
  for (auto& item : items_) {
    const auto* learned = fold_.at_hand(item.id);
    if (learned == nullptr)
      continue;
    if (item.banked)
      leave_bank(item);
    auto& o = item.outcome;
    o.path = learned->path;
    o.where = stage_of(learned->counts, now, numbers_.stages).where;
    o.confidence = learned->counts.confidence;
    o.action = decide({item.id, *learned, o.candidate.has_value()}, now, numbers_.memory).action;
    results.items.emplace(item.id, std::move(o));
  }
  return results;
}

policy_comparison::policy_comparison(const policy_numbers& others, std::optional<utc_time> since)
    : others_(others), since_(since) {
  const policy_numbers usual;
  teaches_otherwise_ = others.plan != usual.plan || others.learning != usual.learning ||
                       others.stages != usual.stages;
}

result<void> policy_comparison::take(const graph::edge& fact, std::uint64_t line) {
  if (!then_ && teaches_otherwise_ && (!since_ || fact.timestamp >= *since_)) {
    then_ = now_;
    then_->change(others_, since_.value_or(fact.timestamp));
  }
  if (auto taken = now_.take(fact, line); !taken || !then_)
    return taken;
  return then_->take(fact, line);
}

policy_comparison::both policy_comparison::finish(utc_time now) {
  if (!then_) {
    then_ = now_;
    then_->change(others_, since_.value_or(now));
  }
  return {now_.finish(now), then_->finish(now)};
}

std::vector<policy_difference> differences(const policy_results& now, const policy_results& then) {
  std::vector<policy_difference> agents;
  for (const auto& [agent, runs] : now.runs)
    if (const auto it = then.runs.find(agent); it != then.runs.end() && it->second != runs)
      agents.push_back({graph::agent_node(agent), agent, "runs", std::to_string(runs),
                        std::to_string(it->second)});
  std::vector<policy_difference> all;
  for (const auto& [id, a] : now.items) {
    const auto it = then.items.find(id);
    static const policy_outcome nothing;
    const auto& b = it == then.items.end() ? nothing : it->second;
    const auto tell = [&, &key = id, &before = a](const char* what, std::string x, std::string y) {
      if (x != y)
        all.push_back({key, before.path, what, std::move(x), std::move(y)});
    };
    tell("given", std::to_string(a.given), std::to_string(b.given));
    tell("open", std::to_string(a.open), std::to_string(b.open));
    tell("stage", std::string(name_of(a.where)), std::string(name_of(b.where)));
    tell("bank", moment(a.banked), moment(b.banked));
    tell("candidate", moment(a.candidate), moment(b.candidate));
    tell("memory", std::string(name_of(a.action)), std::string(name_of(b.action)));
    tell("confidence", share_text(a.confidence), share_text(b.confidence));
  }
  std::ranges::stable_sort(all, [](const policy_difference& x, const policy_difference& y) {
    return std::tie(x.path, x.id) < std::tie(y.path, y.id);
  });
  agents.insert(agents.end(), std::make_move_iterator(all.begin()),
                std::make_move_iterator(all.end()));
  return agents;
}

} // namespace boyd::skills
