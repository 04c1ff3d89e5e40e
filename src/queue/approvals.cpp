#include "boyd/queue/approvals.hpp"

#include "boyd/core/sha256.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::queue {

namespace {

using namespace store;
using json = nlohmann::json;

constexpr std::array<std::pair<approval_state, std::string_view>, 7> states{
    {{approval_state::pending, "pending"},
     {approval_state::approved, "approved"},
     {approval_state::rejected, "rejected"},
     {approval_state::expired, "expired"},
     {approval_state::withdrawn, "withdrawn"},
     {approval_state::voided, "voided"},
     {approval_state::used, "used"}}};

constexpr std::array<std::pair<approval_outcome, std::string_view>, 10> outcomes{
    {{approval_outcome::accepted, "accepted"},
     {approval_outcome::not_found, "not_found"},
     {approval_outcome::mutated, "mutated"},
     {approval_outcome::expired, "expired"},
     {approval_outcome::withdrawn, "withdrawn"},
     {approval_outcome::decided, "decided"},
     {approval_outcome::used, "used"},
     {approval_outcome::not_approved, "not_approved"},
     {approval_outcome::voided, "voided"},
     {approval_outcome::refused, "refused"}}};

template <class Value, std::size_t N>
std::string_view name_in(const std::array<std::pair<Value, std::string_view>, N>& names,
                         Value value) noexcept {
  const auto* const found = std::ranges::find(names, value, [](const auto& n) { return n.first; });
  return found == names.end() ? std::string_view() : found->second;
}

template <class Value, std::size_t N>
std::optional<Value> value_in(const std::array<std::pair<Value, std::string_view>, N>& names,
                              std::string_view name) noexcept {
  const auto* const found = std::ranges::find(names, name, [](const auto& n) { return n.second; });
  return found == names.end() ? std::nullopt : std::optional(found->first);
}

json canonical(const approval_matter& m) {
  return {{"agent_id", m.agent_id},
          {"arguments_sha256", m.arguments_sha256},
          {"before_sha256", m.before_sha256},
          {"dispatch_id", m.dispatch_id},
          {"kernel_id", m.kernel_id},
          {"shown", m.shown},
          {"tool", m.tool},
          {"version", 1},
          {"workspace", m.workspace}};
}

/// Members of an object stand in the order of their names. The texts that could be no UTF-8 are
/// hashed as bytes before they come here (the arguments) or cleaned (what is shown).
std::string hashed(const json& value) {
  return sha256_hex(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

/// Why the row cannot be decided or used any more; accepted: it can be.
approval_outcome closed_by(approval_state s) noexcept {
  switch (s) {
  case approval_state::rejected:
    return approval_outcome::decided;
  case approval_state::expired:
    return approval_outcome::expired;
  case approval_state::withdrawn:
    return approval_outcome::withdrawn;
  case approval_state::voided:
    return approval_outcome::voided;
  case approval_state::used:
    return approval_outcome::used;
  case approval_state::pending:
  case approval_state::approved:
    break;
  }
  return approval_outcome::accepted;
}

/// The row says something else than what its hash was made of: nobody may act on it.
bool is_whole(const approval& row) {
  return approval_hash(row.approval_id, row.matter, row.expires_at) == row.hash;
}

approval_step step_of(approval row, utc_time now, std::string what, approval_outcome outcome,
                      std::string by, std::string detail) {
  approval_step s;
  s.row = std::move(row);
  s.outcome = outcome;
  s.line = {++s.row.lines, now, std::move(what), outcome, std::move(by), std::move(detail)};
  return s;
}

void end(approval& row, approval_state state, utc_time now) {
  row.state = state;
  row.held = false;
  row.ended_at = now;
}

std::string agent_of(const approval_matter& m) {
  return "agent " + m.kernel_id + "/" + m.agent_id;
}

std::string run_of(std::int64_t fence) {
  return "run " + std::to_string(fence);
}

std::string mutation(const std::string& hash, const approval& row) {
  return "asked: " + row.hash + "; came: " + hash;
}

} // namespace

std::string_view name_of(approval_state s) noexcept {
  return name_in(states, s);
}

std::string_view name_of(approval_outcome o) noexcept {
  return name_in(outcomes, o);
}

std::optional<approval_state> approval_state_from(std::string_view name) noexcept {
  return value_in(states, name);
}

std::optional<approval_outcome> approval_outcome_from(std::string_view name) noexcept {
  return value_in(outcomes, name);
}

std::string approval_hash(const std::string& approval_id, const approval_matter& matter,
                          utc_time expires_at) {
  auto all = canonical(matter);
  all["approval_id"] = approval_id;
  all["expires_at"] = to_unix_ms(expires_at);
  return hashed(all);
}

std::string matter_hash(const approval_matter& matter) {
  return hashed(canonical(matter));
}

bool is_open(approval_state s) noexcept {
  return s == approval_state::pending || s == approval_state::approved;
}

bool answers_again(const approval& earlier, utc_time now) noexcept {
  if (earlier.state == approval_state::rejected)
    return true;
  return earlier.held && is_open(earlier.state) && earlier.expires_at > now;
}

approval_step begin_approval(const ask_approval& op, utc_time now) {
  approval row;
  row.approval_id = op.approval_id;
  row.matter = op.matter;
  row.created_at = now;
  row.expires_at = now + op.lives;
  row.hash = approval_hash(row.approval_id, row.matter, row.expires_at);
  row.reason = op.reason;
  row.node_id = op.node_id;
  row.fence = op.fence;
  return step_of(std::move(row), now, "ask", approval_outcome::accepted, agent_of(op.matter),
                 run_of(op.fence));
}

approval_step adopt_approval(approval row, const ask_approval& op, utc_time now) {
  if (!is_open(row.state))
    return step_of(std::move(row), now, "ask", closed_by(row.state), agent_of(op.matter),
                   run_of(op.fence));
  row.fence = op.fence;
  row.node_id = op.node_id;
  row.held = false;
  return step_of(std::move(row), now, "adopt", approval_outcome::accepted, agent_of(op.matter),
                 run_of(op.fence));
}

approval seen_at(approval row, bool run_lives, utc_time now) {
  if (!is_open(row.state))
    return row;
  if (row.expires_at <= now)
    end(row, approval_state::expired, row.expires_at);
  else if (!run_lives && !row.held)
    end(row, approval_state::withdrawn, now);
  return row;
}

std::optional<approval_step> end_approval(const approval& row, bool run_lives, utc_time now) {
  auto seen = seen_at(row, run_lives, now);
  if (seen.state == row.state)
    return std::nullopt;
  const bool late = seen.state == approval_state::expired;
  return step_of(std::move(seen), now, late ? "expire" : "withdraw", approval_outcome::accepted,
                 "boyd", late ? "expired" : "its run has ended");
}

approval_step decide_approval(approval row, bool run_lives, const store::decide_approval& op,
                              utc_time now) {
  if (!op.decision_id.empty() && op.decision_id == row.decision_id)
    return {std::move(row), {}, approval_outcome::accepted, true};
  const std::string what = op.approve ? "approve" : "reject";
  if (!op.refused.empty())
    return step_of(std::move(row), now, what, approval_outcome::refused, op.by, op.refused);
  row = seen_at(std::move(row), run_lives, now);
  auto outcome = closed_by(row.state);
  std::string detail = op.note;
  if (outcome == approval_outcome::accepted && row.state == approval_state::approved)
    outcome = approval_outcome::decided;
  if (outcome == approval_outcome::accepted && !is_whole(row)) {
    end(row, approval_state::voided, now);
    outcome = approval_outcome::mutated;
    detail = "the stored request differs";
  } else if (outcome == approval_outcome::accepted && op.hash != row.hash) {
    outcome = approval_outcome::mutated;
    detail = mutation(op.hash, row);
  }
  if (outcome == approval_outcome::accepted) {
    row.decided_at = now;
    row.decided_by = op.by;
    row.note = op.note;
    row.decision_id = op.decision_id;
    if (op.approve)
      row.state = approval_state::approved;
    else
      end(row, approval_state::rejected, now);
  }
  return step_of(std::move(row), now, what, outcome, op.by, std::move(detail));
}

approval_step use_approval(approval row, bool run_lives, const store::use_approval& op,
                           utc_time now) {
  if (!op.use_id.empty() && op.use_id == row.use_id)
    return {std::move(row), {}, approval_outcome::accepted, true};
  row = seen_at(std::move(row), run_lives, now);
  auto outcome = closed_by(row.state);
  auto detail = run_of(op.fence);
  if (outcome == approval_outcome::accepted && (op.fence != row.fence || !run_lives))
    outcome = approval_outcome::withdrawn;
  else if (outcome == approval_outcome::accepted && row.state == approval_state::pending)
    outcome = approval_outcome::not_approved;
  else if (outcome == approval_outcome::accepted && (op.hash != row.hash || !is_whole(row))) {
    detail += "; " + mutation(op.hash, row);
    end(row, approval_state::voided, now);
    outcome = approval_outcome::mutated;
  }
  if (outcome == approval_outcome::accepted) {
    end(row, approval_state::used, now);
    row.use_id = op.use_id;
  }
  const auto by = agent_of(row.matter);
  return step_of(std::move(row), now, "use", outcome, by, std::move(detail));
}

approval_step withdraw_approval(approval row, const withdraw_approvals& op, utc_time now) {
  if (op.hold)
    row.held = true;
  else
    end(row, approval_state::withdrawn, now);
  const auto by = agent_of(row.matter);
  return step_of(std::move(row), now, op.hold ? "hold" : "withdraw", approval_outcome::accepted, by,
                 op.why);
}

} // namespace boyd::queue
