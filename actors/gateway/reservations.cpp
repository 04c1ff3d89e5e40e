#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/money.hpp"
#include "boyd/queue/spend.hpp"
#include "boyd/queue/transitions.hpp"
#include "src/core/json_values.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace boyd::gateway_impl {

namespace {

using outcome = store::release_spend::outcome_t;

/// Calls that an ambiguous id is answered with.
constexpr std::size_t most_calls_named = 8;
constexpr const char* list_calls = "list them with: boyd cost --by call";

/// Why a call is not settled, by its holder's row.
struct holder {
  std::string status; ///< of the dispatch or cycle; empty: not on record
  bool running = false;
  bool cycle = false;
};

std::string why_open(const holder& h) {
  const std::string what = h.cycle ? "cycle" : "run";
  if (h.running)
    return "its " + what + " is active, or its node has died; the call is settled when it ends";
  if (h.status.empty())
    return "its " + what + " no longer has a record, so its usage is unknown";
  return "its " + what + " has ended (the " + what + " is " + h.status +
         ") without reporting its usage; the call counts as the maximum";
}

json call_json(const store::spend_call& c, const holder& h) {
  json out{{"key", c.call_id},
           {"calls", 1},
           {"open_calls", c.is_open() ? 1 : 0},
           {"kernel_id", c.kernel_id},
           {"agent_id", c.agent_id},
           {"dispatch_id", c.dispatch_id},
           {"provider_id", c.provider_id},
           {"model", c.model},
           {"day", c.day},
           {"since", to_json(std::optional(c.created_at))},
           {"input_tokens", c.counts.input},
           {"cached_tokens", c.counts.cached},
           {"output_tokens", c.counts.output},
           {"reasoning_tokens", c.counts.reasoning},
           {"tokens", c.counts.tokens()},
           {"cost", format_dollars(c.counts.cost)},
           {"state", c.settled   ? "settled"
                     : c.release ? "released"
                                 : "open"},
           {"why", c.is_open() ? why_open(h) : ""},
           {"release", nullptr}};
  if (c.release)
    out["release"] = {{"at", to_json(std::optional(c.release->at))},
                      {"by", c.release->by},
                      {"reason", c.release->reason},
                      {"tokens", c.release->tokens},
                      {"cost", format_dollars(c.release->cost)}};
  return out;
}

/// The row of who holds a call: of a dispatch, or of the cycle itself.
using holder_ticket =
    std::variant<store_ticket<store::find_dispatch>, store_ticket<store::list_cycles>>;

holder_ticket ask_about(store_request& request, const store::spend_call& call) {
  const auto who = queue::holder_of(call);
  if (who.cycle_id.empty())
    return request.add(store::find_dispatch{who.dispatch_id});
  store::list_cycles one;
  one.kernel_id = call.kernel_id;
  one.include_running = true;
  one.cycle_id = who.cycle_id;
  one.limit = 1;
  return request.add(std::move(one));
}

holder read_holder(const store::spend_call& call, const holder_ticket& asked, store_reply& reply) {
  holder h;
  if (const auto* cycle = std::get_if<store_ticket<store::list_cycles>>(&asked)) {
    h.cycle = true;
    if (const auto rows = cycle->of(reply); rows && !rows->empty()) {
      h.running = rows->front().status == cycle_status::running;
      h.status = name_of(rows->front().status);
    }
  } else if (const auto row = std::get<store_ticket<store::find_dispatch>>(asked).of(reply);
             row && *row) {
    h.running =
        (*row)->status == dispatch_status::running && (*row)->fence == queue::holder_of(call).fence;
    h.status = name_of((*row)->status);
  }
  return h;
}

/// The call that an id or the beginning of one names; what is wrong is answered. Of several the
/// only open one is meant.
std::optional<store::spend_call> chosen(const exchange_ptr& x, const std::string& id,
                                        const std::vector<store::spend_call>& found) {
  const auto exact = std::ranges::find(found, id, &store::spend_call::call_id);
  if (exact != found.end())
    return *exact;
  if (found.size() == 1)
    return found.front();
  if (std::ranges::count_if(found, &store::spend_call::is_open) == 1)
    return *std::ranges::find_if(found, &store::spend_call::is_open);
  if (found.empty()) {
    x->fail_with({errc::not_found, "no such call: " + id, {}, list_calls});
    return std::nullopt;
  }
  std::string names;
  for (std::size_t i = 0; i < std::min(found.size(), most_calls_named); ++i)
    names += (i == 0 ? "" : ", ") + found[i].call_id;
  x->fail_with({errc::invalid_argument, "more than one call begins with " + id, id,
                "use the full id: " + names + (found.size() > most_calls_named ? ", …" : "")});
  return std::nullopt;
}

/// A member that may be a text, a number or a flag, as text; empty when it is missing or null.
std::string word_in(const json& body, const char* key) {
  const auto& value = part_in(body, key);
  return value.is_string() || value.is_null() ? text_in(body, key) : dump(value);
}

/// Of the body: how much of it was used. An error is answered, and nothing returned.
std::optional<store::release_spend> order_of(const exchange_ptr& x, const json& body) {
  store::release_spend op;
  op.reason = text_in(body, "reason");
  op.by = x->request.caller->name;
  op.force = word_in(body, "force") == "true";
  const auto tokens = word_in(body, "used_tokens");
  const auto* const end = tokens.data() + tokens.size();
  if (!tokens.empty() && std::from_chars(tokens.data(), end, op.used_tokens).ptr != end) {
    x->fail_with({errc::invalid_argument, "not a number of tokens: \"" + tokens + "\"",
                  "used_tokens", "use a whole number, such as 1200"});
    return std::nullopt;
  }
  const auto dollars = word_in(body, "used_cost");
  const auto cost = dollars.empty() ? std::optional<std::int64_t>(0) : parse_dollars(dollars);
  if (!cost) {
    x->fail_with({errc::invalid_argument, "not an amount of dollars: \"" + dollars + "\"",
                  "used_cost", "use a number, such as 0.25"});
    return std::nullopt;
  }
  op.used_cost = *cost;
  if (op.reason.empty() || holds_secret(*x, op.reason)) {
    x->fail_with({errc::invalid_argument,
                  op.reason.empty() ? "reason missing"
                                    : "the reason seems to contain a secret and would be recorded",
                  "reason", "add --reason with the cause of the correction"});
    return std::nullopt;
  }
  return op;
}

void answer_release(const exchange_ptr& x, const store::release_spend& op,
                    const store::release_spend::reply& r) {
  switch (r.outcome) {
  case outcome::not_found:
    return x->fail_with({errc::not_found, "no such call: " + op.call_id, {}, list_calls});
  case outcome::running:
    return x->fail_with({errc::conflict, "the call is active: " + op.call_id, op.call_id,
                         "wait until its run ends, or cancel it (boyd dispatches cancel " +
                             r.call->dispatch_id +
                             "); --force releases it now; a later report of the run counts"});
  case outcome::more:
    return x->fail_with({errc::invalid_argument,
                         "the call counts as only " + std::to_string(r.call->counts.tokens()) +
                             " tokens and " + format_dollars(r.call->counts.cost) + " dollars",
                         op.call_id, "a release can only reduce usage; use smaller values"});
  case outcome::released:
    break;
  }
  spdlog::info("cost: {} released {}: {}", op.by, op.call_id, op.reason);
  describe_calls(x, {*r.call}, [x](result<json> rows) {
    if (!rows)
      return x->fail_with(rows.error());
    x->reply("cost_release", {{"call", rows->front()}});
  });
}

} // namespace

void describe_calls(const exchange_ptr& x, std::vector<store::spend_call> calls,
                    std::function<void(result<json>)> then) {
  store_request request;
  std::vector<std::optional<holder_ticket>> asked;
  for (const auto& c : calls)
    asked.push_back(c.is_open() ? std::optional(ask_about(request, c)) : std::nullopt);
  auto told = [calls = std::move(calls), asked = std::move(asked),
               then = std::move(then)](result<store_reply> r) mutable {
    if (!r)
      return then(fail(std::move(r.error())));
    json rows = json::array();
    for (std::size_t i = 0; i < calls.size(); ++i)
      rows.push_back(
          call_json(calls[i], asked[i] ? read_holder(calls[i], *asked[i], *r) : holder{}));
    then(std::move(rows));
  };
  if (request.operations.empty())
    return told(store_reply{});
  ask<store_reply>(x->self, x->self->state.parts.store, std::move(request), std::move(told));
}

void release_cost(exchange_ptr x) {
  const auto body = x->body();
  if (!body)
    return;
  const auto id = text_in(*body, "id");
  if (!may_decide(*x))
    return x->fail_with(not_a_person(*x, id));
  if (id.size() < queue::min_id_prefix)
    return x->fail_with(
        {errc::invalid_argument,
         "the id of a call needs at least " + std::to_string(queue::min_id_prefix) + " characters",
         "id", list_calls});
  auto op = order_of(x, *body);
  if (!op)
    return;
  store::list_spend find;
  find.call_id = id;
  ask_store(x->self, x->self->state.parts.store, find,
            [x, id, op = *op](const result<store::list_spend::reply>& found) mutable {
              if (!found)
                return x->fail_with(found.error());
              const auto call = chosen(x, id, *found);
              if (!call)
                return;
              op.call_id = call->call_id;
              ask_store(x->self, x->self->state.parts.store, op,
                        [x, op](const result<store::release_spend::reply>& r) {
                          if (!r)
                            return x->fail_with(r.error());
                          answer_release(x, op, *r);
                        });
            });
}

} // namespace boyd::gateway_impl
