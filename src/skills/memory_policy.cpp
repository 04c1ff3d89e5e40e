#include "boyd/skills/memory_policy.hpp"

#include "boyd/context/item.hpp"
#include "boyd/skills/skill.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace boyd::skills {

namespace {

using json = nlohmann::json;

/// So many digits as a reader sees.
double rounded(double share) {
  constexpr double steps = 1e4;
  return std::round(share * steps) / steps;
}

std::string counted(std::int64_t n, const char* one, const char* more) {
  return std::to_string(n) + " " + (n == 1 ? one : more);
}

milliseconds idle_of(const context::item_statistics& c, utc_time now) {
  return now - c.last_used.value_or(c.created);
}

bool is_noisy(const context::item_statistics& c, const memory_rules& rules) {
  return c.injected >= rules.noisy_injected &&
         static_cast<double>(c.use_count) < rules.noisy_share * static_cast<double>(c.injected);
}

std::string days(milliseconds idle) {
  return std::to_string(idle / std::chrono::hours{24}) + " days";
}

/// The first rule that holds, with its reason.
std::pair<memory_action, std::string> first_rule(const policy_item& i, double importance,
                                                 utc_time now, const memory_rules& rules) {
  const auto& c = i.item.counts;
  if (c.referenced >= rules.promote_referenced && c.verified_useful >= rules.promote_useful &&
      importance > rules.promote_importance && !i.has_candidate)
    return {memory_action::promote_to_skill, "cited " + counted(c.referenced, "time", "times") +
                                                 ", useful " +
                                                 counted(c.verified_useful, "time", "times")};
  if (c.verified_not_useful >= rules.forget_not_useful && importance < rules.forget_importance &&
      idle_of(c, now) > rules.forget_idle)
    return {memory_action::forget, "not useful " + counted(c.verified_not_useful, "time", "times") +
                                       ", not used for " + days(idle_of(c, now))};
  if (importance < rules.archive_importance)
    return {memory_action::archive, "of low importance"};
  if (is_noisy(c, rules))
    return {memory_action::summarize, "given to " + counted(c.injected, "run", "runs") +
                                          ", used by " + std::to_string(c.use_count)};
  if (c.referenced > rules.reinforce_referenced && importance > rules.reinforce_importance)
    return {memory_action::reinforce,
            "cited " + counted(c.referenced, "time", "times") + ", of high importance"};
  return {memory_action::keep, "no rule asks for more"};
}

/// What the log says of an item to which this was done; open: the log keeps it apart.
context::standing standing_after(memory_action action) {
  switch (action) {
  case memory_action::reinforce:
    return context::standing::pinned;
  case memory_action::forget:
    return context::standing::forgotten;
  case memory_action::archive:
  case memory_action::summarize:
    return context::standing::shortened;
  case memory_action::keep:
  case memory_action::promote_to_skill:
  case memory_action::undo:
    break;
  }
  return context::standing::open;
}

} // namespace

std::string_view name_of(memory_action a) noexcept {
  switch (a) {
  case memory_action::keep:
    return "keep";
  case memory_action::promote_to_skill:
    return "promote_to_skill";
  case memory_action::forget:
    return "forget";
  case memory_action::archive:
    return "archive";
  case memory_action::summarize:
    return "summarize";
  case memory_action::reinforce:
    return "reinforce";
  case memory_action::undo:
    return "undo";
  }
  return "keep";
}

policy_decision decide(const policy_item& i, utc_time now, const memory_rules& rules) {
  const auto importance = context::importance(i.item.counts, now);
  policy_decision d{i.id, i.item.path, memory_action::keep, {}, rounded(importance)};
  if (i.item.frozen) {
    d.reason = "frozen: nothing changes it by itself";
    return d;
  }
  std::tie(d.action, d.reason) = first_rule(i, importance, now, rules);
  const auto wanted = standing_after(d.action);
  const bool is_done = wanted != context::standing::open && wanted == i.item.counts.policy;
  const bool is_undone = wanted != context::standing::open && wanted == i.item.undone;
  if (is_done || is_undone) {
    d.reason = std::string(name_of(d.action)) +
               (is_done ? " was done already" : " was undone, and nothing has changed since");
    d.action = memory_action::keep;
  } else if (d.action == memory_action::forget || d.action == memory_action::archive) {
    d.confidence = rounded(1 - importance);
  }
  return d;
}

std::vector<policy_decision> decide_all(const std::vector<policy_item>& items, utc_time now,
                                        const memory_rules& rules) {
  std::vector<policy_decision> all;
  all.reserve(items.size());
  for (const auto& i : items)
    all.push_back(decide(i, now, rules));
  std::ranges::sort(all, [](const policy_decision& a, const policy_decision& b) {
    return std::tie(a.path, a.id) < std::tie(b.path, b.id);
  });
  return all;
}

std::vector<policy_decision> undone(const std::vector<policy_item>& items,
                                    const std::string& name) {
  std::vector<policy_decision> all;
  for (const auto& i : items)
    if ((i.id == name || i.item.path == name) && i.item.counts.policy != context::standing::open)
      all.push_back({i.id, i.item.path, memory_action::undo,
                     "it was " + std::string(context::name_of(i.item.counts.policy)), 1});
  return all;
}

std::vector<graph::edge> facts_of(const std::vector<policy_decision>& decisions,
                                  const std::vector<policy_item>& items,
                                  const std::string& decision_id, const std::string& kernel_id,
                                  const std::string& by, utc_time at) {
  const auto acts = [](const policy_decision& d) { return d.action != memory_action::keep; };
  const auto count = std::ranges::count_if(decisions, acts);
  std::vector<graph::edge> facts;
  for (const auto& d : decisions) {
    if (!acts(d))
      continue;
    json meta{{"action", name_of(d.action)}, {"reason", d.reason},  {"by", by},
              {"confidence", d.confidence},  {"kernel", kernel_id}, {"path", d.path},
              {"part", facts.size() + 1},    {"of", count},         {"decision", decision_id}};
    auto to = decision_id;
    const char* type = "managed_by";
    if (d.action == memory_action::reinforce) {
      to = d.id;
      type = "reinforces";
      meta["fence"] = to_unix_ms(at); // of one item each decision has its own
    } else if (d.action == memory_action::promote_to_skill) {
      to = candidate_id(d.id);
      type = "promoted_to";
      const auto i = std::ranges::find(items, d.id, &policy_item::id);
      meta["fence"] = to_unix_ms(at); // else one that a crash has cut would stand in its way
      meta["scope"] = i->item.scope;
      meta["use_count"] = i->item.counts.use_count;
      meta["referenced"] = i->item.counts.referenced;
    }
    facts.push_back(
        {d.id, to, type, at, meta.dump(-1, ' ', false, json::error_handler_t::replace)});
  }
  return facts;
}

} // namespace boyd::skills
