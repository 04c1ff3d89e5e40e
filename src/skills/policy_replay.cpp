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

policy_replay::policy_replay(const policy_numbers& numbers, std::optional<utc_time> since)
    : numbers_(numbers), since_(since),
      fold_(begin(since ? graph::learning_rules{} : numbers.learning)), is_since_(!since) {}

graph::learner policy_replay::begin(const graph::learning_rules& rules) {
  graph::learner fold(rules, [this](index_area area, const std::string& key) {
    const auto& values = index_[area];
    const auto it = values.find(key);
    return result<std::optional<std::string>>(it == values.end() ? std::nullopt
                                                                 : std::optional(it->second));
  });
  for (const auto& [key, value] : index_[index_area::open_runs])
    fold.resume_run(key, value);
  return fold;
}

result<void> policy_replay::take(const graph::edge& fact, std::uint64_t line) {
  if (!is_since_ && fact.timestamp >= *since_) {
    keep_changes();
    fold_ = begin(numbers_.learning);
    is_since_ = true;
  }
  // What was promoted under the numbers in force is history; what would be is asked of the rules.
  if (fact.type == "promoted_to")
    return {};
  if (fact.type == "decided_by") {
    take_decision(fact);
    return {};
  }
  if (left_out_.contains(fact.from) || left_out_.contains(fact.to))
    return {};
  if (fact.type == "resulted_in")
    return take_end(fact, line);
  if (fact.type == "used_in") {
    if (!is_given(fact))
      return {};
    ++results_.items[fact.from].given;
    open_runs_[fact.to].push_back(fact.from);
  }
  touched_.insert(fact.type == "supports" ? fact.to : fact.from);
  return fold_.take(fact, line);
}

void policy_replay::take_decision(const graph::edge& decision) {
  const auto meta = nlohmann::json::parse(decision.meta_json, nullptr, false);
  if (!meta.is_object() || text_in(meta, "kind") == "reevaluation")
    return;
  // Kernels may have agents of one name. Older facts do not say the kernel.
  const auto kernel = text_in(meta, "kernel");
  const auto agent = (kernel.empty() ? std::string() : kernel + "/") + text_in(meta, "agent");
  if (std::exchange(cycle_, decision.to) != decision.to)
    runs_of_cycle_ = 0;
  const auto& rules = numbers_.plan;
  const auto latest = latest_runs_.find(agent);
  const bool is_too_soon = latest != latest_runs_.end() && rules.least_pause > milliseconds{0} &&
                           decision.timestamp - latest->second < rules.least_pause;
  const bool is_too_many = rules.most_runs > 0 && runs_of_cycle_ >= rules.most_runs;
  auto& runs = results_.runs[agent];
  if (is_since_ && (is_too_soon || is_too_many)) {
    left_out_.insert(decision.from);
    return;
  }
  ++runs;
  ++runs_of_cycle_;
  latest_runs_[agent] = decision.timestamp;
}

bool policy_replay::is_given(const graph::edge& use) {
  // Most are not, and are not parsed.
  if (use.meta_json.find("\"bank\"") == std::string::npos)
    return true;
  const auto meta = nlohmann::json::parse(use.meta_json, nullptr, false);
  return !meta.is_object() || text_in(meta, "from") != "bank" || banked_.contains(use.from);
}

result<void> policy_replay::take_end(const graph::edge& end, std::uint64_t line) {
  const auto run = open_runs_.extract(end.from);
  const auto items = run.empty() ? std::vector<std::string>{} : run.mapped();
  std::set<std::string> scopes;
  for (const auto& id : items)
    if (const auto* item = fold_.at_hand(id))
      scopes.insert(item->scope);
  for (const auto& scope : scopes)
    if (const auto bank = banks_.find(scope); bank != banks_.end())
      for (const auto& id : bank->second)
        if (std::ranges::find(items, id) == items.end())
          ++results_.items[id].open;
  if (auto taken = fold_.take(end, line); !taken)
    return taken;
  for (const auto& id : std::exchange(touched_, {}))
    look_at(id, end.timestamp);
  for (const auto& id : items)
    look_at(id, end.timestamp);
  if (++unkept_ >= runs_at_once)
    keep_changes();
  return {};
}

void policy_replay::look_at(const std::string& id, utc_time at) {
  const auto* item = fold_.at_hand(id);
  if (item == nullptr)
    return;
  auto& o = results_.items[id];
  const auto where = stage_of(item->counts, at, numbers_.stages).where;
  if (!item->frozen && where >= stage::bank && !o.banked)
    o.banked = at;
  if (!item->frozen && where == stage::skill_candidate && !o.candidate)
    o.candidate = at;
  const bool is_in = is_banked(item->counts, numbers_.stages) && !item->frozen &&
                     !item->scope.empty() && item->counts.policy != context::standing::forgotten;
  const auto known = banked_.find(id);
  if (is_in == (known != banked_.end()))
    return;
  if (is_in) {
    banked_[id] = item->scope;
    banks_[item->scope].insert(id);
  } else {
    banks_[known->second].erase(id);
    banked_.erase(known);
  }
}

void policy_replay::keep_changes() {
  unkept_ = 0;
  for (auto& c : fold_.take_changes()) {
    auto& values = index_[c.area];
    if (c.value)
      values[c.key] = std::move(*c.value);
    else
      values.erase(c.key);
  }
  fold_.take_questions();
}

policy_results policy_replay::finish(utc_time now) {
  keep_changes();
  for (const auto& [id, text] : index_[index_area::items]) {
    const auto item = graph::read_learned_item(text);
    if (!item)
      continue;
    auto& o = results_.items[id];
    o.path = item->path;
    o.where = stage_of(item->counts, now, numbers_.stages).where;
    o.confidence = item->counts.confidence;
    o.action = decide({id, *item, o.candidate.has_value()}, now, numbers_.memory).action;
  }
  return std::move(results_);
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
