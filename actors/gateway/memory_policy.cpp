#include "boyd/skills/memory_policy.hpp"

#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"
#include "boyd/skills/agreed.hpp"
#include "boyd/skills/policy_replay.hpp"
#include "src/core/json_values.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// The memory policy (docs/memory.md), and the history under other numbers (docs/explain.md).
namespace boyd::gateway_impl {

namespace {

using skills::memory_action;

/// Less than the minute within which a request is answered that does not say `wait=1`.
constexpr milliseconds limit_of_replay = 45s;

json item_json(const skills::policy_decision& d) {
  return {{"id", d.id},
          {"path", d.path},
          {"action", skills::name_of(d.action)},
          {"reason", d.reason},
          {"confidence", d.confidence}};
}

json items_json(const std::vector<skills::policy_decision>& decisions) {
  json items = json::array();
  for (const auto& d : decisions)
    items.push_back(item_json(d));
  return items;
}

json changed_json(const std::vector<skills::changed_decision>& changed) {
  json all = json::array();
  for (const auto& c : changed)
    all.push_back({{"id", c.id}, {"path", c.path}, {"shown", c.shown}, {"now", c.now}});
  return all;
}

/// What is done, and the answer about it.
struct applying {
  exchange_ptr x;
  const config::kernel* kernel = nullptr;
  std::vector<skills::policy_decision> done;
  std::vector<skills::changed_decision> refused;
  std::string decision_id;
};

using applying_ptr = std::shared_ptr<applying>;

void tell_applied(const applying_ptr& a, json commit) {
  a->x->reply("memory_policy", {{"kernel_id", a->kernel->kernel_id},
                                {"decision", a->decision_id},
                                {"applied", true},
                                {"commit", std::move(commit)},
                                {"refused", changed_json(a->refused)},
                                {"items", items_json(a->done)}});
}

/// What is done is done by its facts, which belong together. One commit has all that it changed.
void record_done(const applying_ptr& a, const std::vector<skills::policy_item>& items) {
  const auto& x = a->x;
  const auto& ports = x->self->state.parts.context->ports;
  const auto now = ports.clock->now();
  a->decision_id = make_uuid_v7(now, *ports.random);
  auto facts = skills::facts_of(a->done, items, "decision_" + a->decision_id, a->kernel->kernel_id,
                                x->request.caller->name, now);
  record_and_commit(x, a->kernel->kernel_id,
                    "memory policy: " + std::to_string(a->done.size()) +
                        (a->done.size() == 1 ? " action" : " actions"),
                    a->decision_id, std::move(facts),
                    [a](json commit) { tell_applied(a, std::move(commit)); });
}

/// Turn by turn to the end of the history, as long as somebody waits for it.
void replay_on(const exchange_ptr& x, const replay_policy& what, request_end until) {
  ask_about_log(x, {{}, what}, [x, what, until](knowledge_reply& r) {
    if (r.goes_on && x->left())
      return x->fail_with({errc::cancelled, "nobody waits for the replay any more", {}, {}});
    if (r.goes_on && x->query("wait") != "1" && x->self->clock().now() >= until)
      return x->fail_with(
          {errc::timed_out,
           "the replay has come to line " + std::to_string(r.lines) + " of " +
               std::to_string(r.lines_of) + " within " + format_duration(limit_of_replay),
           "replay",
           "wait for its end with wait=1; with `since` what was before that time is read once, not "
           "twice"});
    if (r.goes_on)
      return replay_on(x, what, until);
    json rows = json::array();
    for (const auto& d : r.differences)
      rows.push_back(
          {{"id", d.id}, {"path", d.path}, {"what", d.what}, {"now", d.now}, {"then", d.then}});
    x->reply("policy_replay",
             {{"facts", r.looked_at}, {"left_out", r.left_out}, {"differences", std::move(rows)}});
  });
}

/// A number of a policy as it came, in the form that the file has.
config::tree tree_of(const json& value) {
  config::tree t;
  if (value.is_object()) {
    t.kind = config::tree::kind_t::map;
    for (const auto& [key, member] : value.items()) {
      t.keys.push_back({key, {}});
      t.items.push_back(tree_of(member));
    }
  } else {
    t.text = value.is_string() ? value.get<std::string>() : value.dump();
    t.plain = !value.is_string();
  }
  return t;
}

/// What a person wants of a kernel's memory.
struct policy_wish {
  json body;
  const config::kernel* kernel = nullptr;
};

/// Only a person's; what is wrong with it is answered, and nothing returned.
std::optional<policy_wish> wish_of(const exchange_ptr& x) {
  if (!may_decide(*x)) {
    x->fail_with(not_a_person(*x, "memory policy"));
    return std::nullopt;
  }
  auto body = x->body();
  if (!body)
    return std::nullopt;
  const auto* kernel = x->kernel(text_in(*body, "kernel"));
  if (kernel == nullptr)
    return std::nullopt;
  return policy_wish{std::move(*body), kernel};
}

} // namespace

void judge_memory_items(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  ask_about_log(x, {{}, judge_memory{kernel->kernel_id}}, [x, kernel](knowledge_reply& r) {
    x->reply("memory_policy", with_losses({{"kernel_id", kernel->kernel_id},
                                           {"applied", false},
                                           {"items", items_json(r.decisions)}},
                                          r));
  });
}

void apply_memory_policy(exchange_ptr x) {
  const auto wish = wish_of(x);
  if (!wish)
    return;
  const auto& listed = part_in(wish->body, "shown");
  if (!listed.is_array())
    return x->fail_with({errc::invalid_argument, "the body does not say what was shown", "shown",
                         "write {\"shown\": [{\"id\": \"ctx_…\", \"action\": \"archive\"}]}, of "
                         "what GET /api/v1/memory/policy has answered"});
  std::vector<skills::shown_decision> shown;
  for (const auto& s : listed)
    shown.push_back({text_in(s, "id"), text_in(s, "action")});
  const auto* kernel = wish->kernel;
  ask_about_log(x, {{}, judge_memory{kernel->kernel_id}}, [x, kernel, shown](knowledge_reply& r) {
    auto a = std::make_shared<applying>();
    a->x = x;
    a->kernel = kernel;
    auto agreed = skills::agreed(shown, r.decisions);
    a->done = std::move(agreed.done);
    a->refused = std::move(agreed.changed);
    if (a->done.empty())
      return tell_applied(a, nullptr);
    record_done(a, r.judged);
  });
}

void undo_memory_policy(exchange_ptr x) {
  const auto wish = wish_of(x);
  if (!wish)
    return;
  const auto* kernel = wish->kernel;
  const auto name = text_in(wish->body, "item");
  ask_about_log(x, {{}, judge_memory{kernel->kernel_id}}, [x, kernel, name](knowledge_reply& r) {
    auto a = std::make_shared<applying>();
    a->x = x;
    a->kernel = kernel;
    a->done = skills::undone(r.judged, name);
    if (a->done.empty())
      return x->fail_with(
          {errc::not_found, "the memory policy has done nothing with this text: " + name, "item",
           "use a path or id that is pinned, shortened or forgotten: boyd kg stats"});
    record_done(a, r.judged);
  });
}

void replay_with_policy(exchange_ptr x) {
  const auto body = x->body();
  if (!body)
    return;
  const auto policy = body->find("policy");
  const auto numbers = skills::read_policy_numbers(
      tree_of(policy == body->end() ? json::object() : *policy), "policy");
  if (!numbers)
    return x->fail_with(numbers.error());
  std::optional<utc_time> since;
  if (const auto text = text_in(*body, "since"); !text.empty()) {
    const auto time = parse_rfc3339(text);
    if (!time)
      return x->fail_with({errc::invalid_argument, "not a time: since: " + text, "since",
                           "use RFC 3339, for example 2026-02-13T10:00:00Z"});
    since = *time;
  }
  const auto& ports = x->self->state.parts.context->ports;
  replay_on(x, {*numbers, since, make_uuid_v7(ports.clock->now(), *ports.random)},
            x->self->clock().now() + limit_of_replay);
}

} // namespace boyd::gateway_impl
