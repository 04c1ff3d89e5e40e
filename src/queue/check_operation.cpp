#include "boyd/core/day.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/queue/approvals.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/queue/transitions.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace boyd::queue {

namespace {

using namespace store;

using problem = std::optional<error>;

error wrong(std::string what) {
  return error{errc::invalid_argument, std::move(what), {}, {}};
}

/// Nesting of `[` and `{` outside strings: checked before a parser may recurse.
std::size_t json_depth(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

problem check(const open_occurrence& op) {
  if (op.slot.kernel_id.empty())
    return wrong("a slot needs a kernel_id");
  if (op.cycle &&
      (op.cycle->cycle_id.empty() || op.cycle->cycle_id != op.slot.cycle_id ||
       op.cycle->kernel_id != op.slot.kernel_id || op.cycle->scheduled_at != op.slot.scheduled_at ||
       op.slot.state != occurrence_state::open))
    return wrong("a cycle begins with its own open slot only");
  return {};
}

problem check(const close_occurrence& op) {
  if (op.state == occurrence_state::open)
    return wrong("a slot cannot be closed as open");
  return {};
}

problem check(const begin_cycle& op) {
  if (op.cycle.cycle_id.empty() || op.cycle.kernel_id.empty())
    return wrong("a cycle needs a cycle_id and a kernel_id");
  return {};
}

problem check(const finish_cycle& op) {
  if (op.cycle.cycle_id.empty() || op.cycle.kernel_id.empty())
    return wrong("a cycle needs a cycle_id and a kernel_id");
  if (op.cycle.status == cycle_status::running)
    return wrong("a cycle cannot be finished as running");
  return {};
}

problem check(const enqueue_cycle& op) {
  if (op.kernel_id.empty() || op.cycle_id.empty())
    return wrong("enqueue needs a kernel_id and a cycle_id");
  for (const auto& s : op.specs) {
    if (s.dispatch_id.empty() || s.agent_id.empty())
      return wrong("a dispatch needs a dispatch_id and an agent_id");
    if (s.kernel_id != op.kernel_id || s.cycle_id != op.cycle_id)
      return wrong("dispatch " + s.dispatch_id + " belongs to another cycle");
    if (s.max_attempts < 1)
      return wrong("dispatch " + s.dispatch_id + " needs at least one attempt");
    if (!is_metadata(s.metadata_json))
      return wrong("metadata of dispatch " + s.dispatch_id + " is not a JSON object");
  }
  return {};
}

problem check(const claim& op) {
  if (op.node_id.empty() || op.kernel_id.empty())
    return wrong("claim needs a node_id and a kernel_id");
  if (op.lease <= milliseconds{0})
    return wrong("a lease needs a length");
  return {};
}

problem check(const renew_leases& op) {
  if (op.node_id.empty() || op.lease <= milliseconds{0})
    return wrong("renewal needs a node_id and a length");
  return {};
}

problem check(const settle& op) {
  for (const auto& item : op.items)
    if (item.fence < 1)
      return wrong("settlement of " + item.dispatch_id + " carries no fence");
  return {};
}

problem check(const take_back& op) {
  if (op.node_id.empty())
    return wrong("take_back needs a node_id");
  return {};
}

problem check(const find_dispatch& op) {
  if (op.dispatch_id.size() < min_id_prefix)
    return wrong("the id of a run needs at least " + std::to_string(min_id_prefix) + " characters");
  return {};
}

problem check(const set_pause& op) {
  if (op.pause.kernel_id.empty())
    return wrong("a pause needs a kernel_id");
  return {};
}

problem check(const put_fact& op) {
  if (op.scope.empty() || op.key.empty())
    return wrong("a fact needs a scope and a key");
  return {};
}

problem check(const beat& op) {
  if (op.node_id.empty())
    return wrong("a heartbeat needs a node_id");
  return {};
}

bool may_be(const usage_counts& u) {
  const auto fits = [](std::int64_t n) { return n >= 0 && n <= most_of_a_call; };
  return fits(u.input) && fits(u.cached) && fits(u.output) && fits(u.reasoning) && fits(u.cost);
}

problem check(const reserve_spend& op) {
  if (op.call_id.empty() || op.kernel_id.empty() || op.agent_id.empty())
    return wrong("a call needs a call_id, a kernel_id and an agent_id");
  if (!may_be(op.most))
    return wrong("call " + op.call_id + " has a usage out of range");
  if (op.limits.size() > most_scopes)
    return wrong("call " + op.call_id + " has too many limits");
  std::set<std::string_view> scopes;
  for (const auto& l : op.limits)
    if (l.scope.empty() || l.tokens < 0 || l.cost < 0 || !scopes.insert(l.scope).second)
      return wrong("a limit of call " + op.call_id + " has no unique scope, or is negative");
  return {};
}

problem check(const settle_spend& op) {
  if (op.call_id.empty())
    return wrong("a call needs a call_id");
  if (!may_be(op.used))
    return wrong("call " + op.call_id + " has a usage out of range");
  return {};
}

problem check(const sum_spend& op) {
  for (const auto& day : {op.from_day, op.to_day})
    if (!day.empty() && !is_day(day))
      return wrong(day + " is not a date such as 2026-02-13");
  return {};
}

problem check(const list_spend& op) {
  for (const auto& day : {op.from_day, op.to_day})
    if (!day.empty() && !is_day(day))
      return wrong(day + " is not a date such as 2026-02-13");
  return {};
}

problem check(const release_spend& op) {
  if (op.call_id.empty() || op.by.empty() || op.reason.empty())
    return wrong("a release needs the call, the person and the reason");
  if (op.by.size() > most_approval_text || op.reason.size() > most_approval_text)
    return wrong("a text of the release is too long: at most " +
                 std::to_string(most_approval_text) + " bytes");
  if (!may_be({op.used_tokens, 0, 0, 0, op.used_cost}))
    return wrong("call " + op.call_id + " has a usage out of range");
  return {};
}

problem check(const ask_approval& op) {
  const auto& m = op.matter;
  if (op.approval_id.size() < min_id_prefix || m.kernel_id.empty() || m.agent_id.empty() ||
      m.dispatch_id.empty() || m.tool.empty() || m.arguments_sha256.empty() || op.fence < 1)
    return wrong("an approval request needs an agent and an action");
  if (op.lives < milliseconds{1} || op.lives > longest_approval)
    return wrong("request " + op.approval_id + " has no valid time limit");
  if (m.shown.size() > most_shown_bytes)
    return error{errc::limit_exceeded,
                 "the request is too long to review: " + std::to_string(m.shown.size()) +
                     " bytes of " + std::to_string(most_shown_bytes),
                 "approvals", "use smaller steps"};
  if (op.reason.size() > most_approval_text || m.tool.size() > most_approval_text ||
      m.workspace.size() > most_approval_text)
    return wrong("a text of request " + op.approval_id + " is too long");
  return {};
}

problem check(const store::decide_approval& op) {
  if (op.approval_id.empty() || op.hash.empty() || op.by.empty() || op.decision_id.empty())
    return wrong("a decision needs the hash of the request and the person");
  if (op.hash.size() > most_approval_text || op.note.size() > most_approval_text ||
      op.by.size() > most_approval_text || op.refused.size() > most_approval_text)
    return wrong("a text of the decision is too long");
  return {};
}

problem check(const store::use_approval& op) {
  if (op.approval_id.empty() || op.hash.empty() || op.use_id.empty() || op.fence < 1)
    return wrong("the use of an approval needs the action and the run");
  return {};
}

problem check(const withdraw_approvals& op) {
  if (op.dispatch_id.empty() || op.fence < 1)
    return wrong("a withdrawal needs a run");
  return {};
}

problem check(const find_approval& op) {
  if (op.approval_id.size() < min_id_prefix)
    return wrong("an approval's id needs at least " + std::to_string(min_id_prefix) +
                 " characters");
  return {};
}

/// Operations without arguments that can be wrong.
template <class T>
problem check(const T&) {
  return {};
}

} // namespace

bool is_metadata(std::string_view text) {
  if (text == "{}")
    return true;
  if (json_depth(text) > limits::json_depth || text.find("\\u0000") != std::string_view::npos)
    return false;
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && nlohmann::json::accept(text);
}

std::optional<error> check_operation(const store::operation& op) {
  return std::visit([](const auto& o) { return check(o); }, op);
}

} // namespace boyd::queue
