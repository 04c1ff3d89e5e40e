#pragma once

#include "../core/json_values.hpp"
#include "boyd/context/confidence.hpp"
#include "boyd/context/item.hpp"
#include "boyd/core/time.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Private to src/graph: values of the index as JSON. What is missing or of another type is empty.
namespace boyd::graph::detail {

using json = nlohmann::json;

inline std::optional<utc_time> time_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer()
             ? std::optional(from_unix_ms(it->get<std::int64_t>()))
             : std::nullopt;
}

inline constexpr std::array<std::pair<const char*, std::int64_t context::item_statistics::*>, 7>
    counters{{
        {"injected", &context::item_statistics::injected},
        {"used", &context::item_statistics::use_count},
        {"referenced", &context::item_statistics::referenced},
        {"success", &context::item_statistics::success_count},
        {"failure", &context::item_statistics::failure_count},
        {"useful", &context::item_statistics::verified_useful},
        {"not_useful", &context::item_statistics::verified_not_useful},
    }};

inline void put_statistics(json& j, const context::item_statistics& c) {
  j["confidence"] = c.confidence;
  if (c.success_count + c.failure_count > 0)
    j["average"] = c.average;
  j["created"] = to_unix_ms(c.created);
  for (const auto& [name, member] : counters)
    j[name] = c.*member;
  if (c.last_used)
    j["last_used"] = to_unix_ms(*c.last_used);
  if (c.changed)
    j["changed"] = to_unix_ms(*c.changed);
  if (c.policy != context::standing::open)
    j["policy"] = context::name_of(c.policy);
  if (!c.policy_hash.empty())
    j["policy_hash"] = c.policy_hash;
}

inline context::standing standing_in(const json& j, const char* key) {
  const auto name = text_in(j, key);
  for (const auto s :
       {context::standing::pinned, context::standing::shortened, context::standing::forgotten})
    if (name == context::name_of(s))
      return s;
  return context::standing::open;
}

inline context::item_statistics statistics_in(const json& j) {
  context::item_statistics c;
  for (const auto& [name, member] : counters)
    c.*member = number_in(j, name);
  c.confidence = share_in(j, "confidence");
  c.average = share_in(j, "average");
  c.created = time_in(j, "created").value_or(utc_time{});
  c.last_used = time_in(j, "last_used");
  c.changed = time_in(j, "changed");
  c.policy = standing_in(j, "policy");
  c.policy_hash = text_in(j, "policy_hash");
  return c;
}

/// Within 0 and 1, and free of what sums of tenths leave behind.
inline double stepped(double confidence, double step) {
  constexpr double steps = 1e9;
  return std::clamp(std::round((confidence + step) * steps) / steps, 0.0, 1.0);
}

/// One run with it that was verified.
inline void count_outcome(context::item_statistics& c, bool good, double step) {
  c.average = context::next_average(c, good);
  ++(good ? c.success_count : c.failure_count);
  ++(good ? c.verified_useful : c.verified_not_useful);
  c.confidence = stepped(c.confidence, step);
}

} // namespace boyd::graph::detail
