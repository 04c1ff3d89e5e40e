#include "boyd/queue/approvals.hpp"

#include "actors/gateway/survey.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/tools/describe.hpp"
#include "boyd/tools/tree_print.hpp"
#include "src/core/json_values.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace boyd::gateway_impl {

namespace {

using store::approval_outcome;

constexpr std::size_t standard_page = 100;
constexpr std::size_t largest_page = 1000;
constexpr const char* list_them = "list them with: boyd approvals ls";

json row_json(const store::approval& a) {
  const auto& m = a.matter;
  return {{"approval_id", a.approval_id},
          {"kernel_id", m.kernel_id},
          {"agent_id", m.agent_id},
          {"dispatch_id", m.dispatch_id},
          {"tool", m.tool},
          {"workspace", m.workspace},
          {"state", queue::name_of(a.state)},
          {"held", a.held},
          {"reason", a.reason},
          {"hash", a.hash},
          {"contents_bound", !a.matter.before_sha256.starts_with(queue::unbound_mark)},
          {"node_id", a.node_id},
          {"created_at", to_json(std::optional(a.created_at))},
          {"expires_at", to_json(std::optional(a.expires_at))},
          {"decided_at", to_json(a.decided_at)},
          {"decided_by", a.decided_by},
          {"note", a.note},
          {"ended_at", to_json(a.ended_at)}};
}

json story_json(const store::find_approval::story& s) {
  auto out = row_json(s.row);
  out["shown"] = s.row.matter.shown;
  out["arguments_sha256"] = s.row.matter.arguments_sha256;
  out["before_sha256"] = s.row.matter.before_sha256;
  json trail = json::array();
  for (const auto& l : s.trail)
    trail.push_back({{"number", l.number},
                     {"at", to_json(std::optional(l.at))},
                     {"what", l.what},
                     {"outcome", queue::name_of(l.outcome)},
                     {"by", l.by},
                     {"detail", l.detail}});
  out["trail"] = std::move(trail);
  out["attempts"] = s.row.lines;
  return out;
}

/// The request that an id or unique prefix names; what is wrong is answered.
void find(const exchange_ptr& x, const std::string& id,
          std::function<void(store::find_approval::story&)> then) {
  ask_store(x->self, x->self->state.parts.store, store::find_approval{id},
            [x, id, then](result<store::find_approval::reply> r) {
              if (!r) {
                auto e = r.error();
                if (e.next.empty())
                  e.next = list_them;
                return x->fail_with(e);
              }
              if (!*r)
                return x->fail_with({errc::not_found, "no such approval: " + id, {}, list_them});
              then(**r);
            });
}

/// Why a decision was not taken.
error refusal(approval_outcome outcome, const std::string& id, const store::approval& row) {
  const auto conflict = [&](std::string what) {
    return error{errc::conflict, std::move(what), id, "see: boyd approvals show " + id};
  };
  switch (outcome) {
  case approval_outcome::mutated:
    return conflict("the request has changed: the hash does not match");
  case approval_outcome::expired:
    return conflict("the request expired at " + format_rfc3339(row.expires_at));
  case approval_outcome::withdrawn:
    return conflict("the request was withdrawn: its run has ended or no longer waits");
  case approval_outcome::decided:
    return conflict("already decided: " + std::string(queue::name_of(row.state)) + " by " +
                    row.decided_by);
  case approval_outcome::used:
    return conflict("already used: approved by " + row.decided_by);
  case approval_outcome::voided:
    return conflict("the request is void: the action differed from the request");
  case approval_outcome::accepted:
  case approval_outcome::refused:
  case approval_outcome::not_approved:
  case approval_outcome::not_found:
    break;
  }
  return {errc::not_found, "no such approval: " + id, {}, list_them};
}

/// An id as it came from outside, for the log.
std::string shown_id(const std::string& id) {
  constexpr std::size_t longest_id = 100;
  return tools::visible_text(cut_characters(id, longest_id));
}

/// An attempt of somebody who may not decide: refused, and a line of the request's trail.
void turn_away(const exchange_ptr& x, const std::string& id, bool approve) {
  const auto& caller = x->request.caller;
  const auto no = not_a_person(*x, id);
  const auto by = caller && !caller->name.empty() ? caller->name : std::string("an unknown user");
  spdlog::warn("approvals: {} of {} by {} was refused: {}", approve ? "approve" : "reject",
               shown_id(id), by, no.what);
  const auto& ports = x->self->state.parts.context->ports;
  store::decide_approval op;
  op.approve = approve;
  op.by = by;
  op.refused = no.what;
  op.decision_id = make_uuid_v7(ports.clock->now(), *ports.random);
  ask_store(x->self, x->self->state.parts.store, store::find_approval{id},
            [x, op, no](const result<store::find_approval::reply>& found) mutable {
              if (!found || !*found)
                return x->fail_with(no);
              op.approval_id = (*found)->row.approval_id;
              op.hash = (*found)->row.hash;
              ask_store(x->self, x->self->state.parts.store, op,
                        [x, no](const result<store::decide_approval::reply>&) {
                          x->fail_with(no); // what the trail lacks stands in the log
                        });
            });
}

void decide(const exchange_ptr& x, const std::string& id, bool approve) {
  if (!may_decide(*x))
    return turn_away(x, id, approve);
  const auto body = x->body();
  if (!body)
    return;
  store::decide_approval op;
  op.hash = text_in(*body, "hash");
  op.note = text_in(*body, "note");
  op.approve = approve;
  op.by = x->request.caller->name;
  if (holds_secret(*x, op.note)) {
    op.note.clear();
    op.refused = "the reason seems to contain a secret and would be recorded; leave the secret out";
  }
  if (op.hash.empty())
    return x->fail_with({errc::invalid_argument, "the decision has no hash", "hash",
                         "boyd approvals show " + id + " shows the hash"});
  const auto& ports = x->self->state.parts.context->ports;
  op.decision_id = make_uuid_v7(ports.clock->now(), *ports.random);
  find(x, id, [x, op](store::find_approval::story& s) mutable {
    op.approval_id = s.row.approval_id;
    ask<store::approval_change>(
        x->self, x->self->state.parts.approvals, approval_decision{{}, op},
        [x, id = op.approval_id](const result<store::approval_change>& r) {
          if (!r)
            return x->fail_with(r.error());
          if (r->outcome != approval_outcome::accepted || !r->row)
            return x->fail_with(refusal(r->outcome, id, r->row.value_or(store::approval{})));
          x->reply("approval_decision", {{"approval", row_json(*r->row)}});
        });
  });
}

} // namespace

bool may_decide(const exchange& x) {
  return x.request.caller && x.request.caller->barred.empty();
}

bool holds_secret(const exchange& x, const std::string& note) {
  return config::redact_text(note, x.self->state.parts.configuration->secrets) != note;
}

error not_a_person(const exchange& x, const std::string& where) {
  const auto& caller = x.request.caller;
  return {errc::refused,
          "only a person can decide: " +
              (caller ? caller->barred : std::string("the caller is unknown")),
          where, "run the command in your own shell, not in a program started by Boyd"};
}

void list_approvals(exchange_ptr x) {
  store::list_approvals op;
  op.kernel_id = x->query("kernel");
  const auto state = x->query("state");
  if (!state.empty() && state != "open" && state != "all")
    return x->fail_with(
        {errc::invalid_argument, "state cannot be " + state, "state", "open or all"});
  op.open = state != "all";
  const auto limit = x->limit(standard_page, largest_page);
  if (!limit)
    return;
  op.limit = *limit + 1; // one more tells whether there are more
  ask_store(x->self, x->self->state.parts.store, op,
            [x, limit = *limit](const result<store::list_approvals::reply>& r) {
              if (!r)
                return x->fail_with(r.error());
              json items = json::array();
              for (const auto& row : *r)
                if (items.size() < limit)
                  items.push_back(row_json(row));
              x->reply("approvals", {{"items", std::move(items)}, {"more", r->size() > limit}});
            });
}

void show_approval(exchange_ptr x, const std::string& id) {
  find(x, id, [x](store::find_approval::story& s) {
    x->reply("approval", {{"approval", story_json(s)}});
  });
}

void approve(exchange_ptr x, const std::string& id) {
  decide(x, id, true);
}

void reject(exchange_ptr x, const std::string& id) {
  decide(x, id, false);
}

json approvals_json(const survey& all) {
  std::size_t pending = 0;
  for (const auto& row : all.open_approvals)
    pending += row.state == store::approval_state::pending ? 1 : 0;
  const auto& s = all.approvals;
  return {{"pending", all.store_problem.empty() ? json(pending) : json(nullptr)},
          {"waiting_runs", s.waiting_runs},
          {"notices_sent", s.notices_sent},
          {"notices_failed", s.notices_failed},
          {"last_notice_error", s.last_notice_error}};
}

std::vector<std::string> approval_problems(const survey& all) {
  std::vector<std::string> lines;
  std::size_t pending = 0;
  const store::approval* soonest = nullptr;
  for (const auto& row : all.open_approvals) {
    if (row.state != store::approval_state::pending)
      continue;
    ++pending;
    if (soonest == nullptr || row.expires_at < soonest->expires_at)
      soonest = &row;
  }
  if (soonest != nullptr)
    lines.push_back(
        (pending == 1 ? std::string("1 action needs") : std::to_string(pending) + " actions need") +
        " approval: boyd approvals ls (the first expires at " +
        format_rfc3339(soonest->expires_at) + ")");
  if (!all.approvals.last_notice_error.empty())
    lines.push_back("cannot send the notice of an approval request: " +
                    all.approvals.last_notice_error);
  return lines;
}

} // namespace boyd::gateway_impl
