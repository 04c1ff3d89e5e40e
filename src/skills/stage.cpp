#include "boyd/skills/stage.hpp"

#include <algorithm>
#include <cmath>

namespace boyd::skills {

namespace {

double score_of(const context::item_statistics& s) {
  constexpr double of_confidence = 0.5;
  constexpr double of_references = 0.3;
  constexpr double of_uses = 0.2;
  constexpr double many_uses = 10;
  const auto referenced = static_cast<double>(std::max<std::int64_t>(s.referenced, 0));
  const auto uses = static_cast<double>(std::max<std::int64_t>(s.use_count, 0));
  return of_confidence * s.confidence + of_references * std::log1p(referenced) +
         of_uses * std::min(1.0, uses / many_uses);
}

bool has_statistics(const context::item_statistics& s) {
  return s.use_count > 0 || s.referenced > 0 || s.success_count > 0 || s.failure_count > 0 ||
         s.verified_useful > 0 || s.verified_not_useful > 0;
}

bool is_candidate(const context::item_statistics& s, utc_time now, const stage_rules& r) {
  return s.referenced >= r.candidate_referenced && useful_rate(s) >= r.candidate_useful_rate &&
         s.confidence >= r.candidate_confidence && s.last_used &&
         now - *s.last_used <= r.candidate_idle;
}

bool is_of_bank(const context::item_statistics& s, const stage_rules& r) {
  return s.referenced >= r.bank_referenced && s.success_count >= r.bank_success &&
         useful_rate(s) >= r.bank_useful_rate && s.confidence >= r.bank_confidence;
}

bool is_archived(const context::item_statistics& s, utc_time now, const stage_rules& r) {
  return now - s.last_used.value_or(s.created) > r.archive_idle &&
         s.confidence < r.archive_confidence && s.verified_not_useful > s.verified_useful;
}

} // namespace

std::string_view name_of(stage s) noexcept {
  switch (s) {
  case stage::archived:
    return "archived";
  case stage::bank:
    return "bank";
  case stage::skill_candidate:
    return "skill_candidate";
  case stage::context:
    break;
  }
  return "context";
}

stage_verdict stage_of(const context::item_statistics& s, utc_time now, const stage_rules& rules) {
  const auto score = score_of(s);
  if (!has_statistics(s))
    return {stage::context, "no importance or usage stats", score};
  if (is_candidate(s, now, rules))
    return {stage::skill_candidate, "frequently referenced with high verified usefulness", score};
  if (is_of_bank(s, rules))
    return {stage::bank, "stable repeated usage", score};
  if (is_archived(s, now, rules))
    return {stage::archived, "low confidence and mostly negative feedback", score};
  return {stage::context, "default", score};
}

bool is_banked(const context::item_statistics& s, const stage_rules& rules) {
  return has_statistics(s) &&
         (is_of_bank(s, rules) || is_candidate(s, s.last_used.value_or(utc_time{}), rules));
}

} // namespace boyd::skills
