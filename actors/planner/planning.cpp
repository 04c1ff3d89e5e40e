#include "actors/planner/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/model/chat.hpp"

#include <algorithm>
#include <utility>

namespace boyd::planning {

namespace {

using promise_t = caf::typed_response_promise<result<plan::plan_output>>;

/// Of any question, however little is left of its cycle.
constexpr milliseconds least_limit = 1s;

void reply(self_pointer self, const std::string& kernel_id, const result<plan::plan_output>& what) {
  auto& plans = self->state.plans;
  const auto at = plans.find(kernel_id);
  if (at == plans.end())
    return;
  auto waiting = std::move(at->second.waiting);
  plans.erase(at);
  for (auto& promise : waiting)
    answer<plan::plan_output>(promise, what);
}

/// The plan that a record leads to now.
plan::plan_output plan_of(const plan_question& q, plan::plan_record& record) {
  if (record.asked.fell_back == plan::fallback_reason::none) {
    auto chosen = plan::follow(*q.kernel, q.fixed, record.wishes);
    record.dropped = std::move(chosen.dropped);
    return std::move(chosen.plan);
  }
  auto out = q.fixed;
  if (record.asked.fell_back != plan::fallback_reason::cooldown)
    out.problem = plan::say(record);
  return out;
}

/// On record first, then the answer.
void conclude(self_pointer self, plan_question& q, plan::plan_record record) {
  auto out = plan_of(q, record);
  q.row = {std::string(plan::planner_voice), false, "planner", plan::to_json(record)};
  q.end = [self, kernel = q.kernel->kernel_id, out = std::move(out)] { reply(self, kernel, out); };
  keep_record(self, q.number);
}

void on_advice(self_pointer self, const std::string& kernel_id, const advice_reply& r) {
  auto& q = self->state.plans.at(kernel_id);
  if (r.facts.fell_back == plan::fallback_reason::stopped)
    return reply(self, kernel_id,
                 fail(errc::cancelled, "the caller no longer waits for this plan", kernel_id));
  plan::plan_record record;
  record.asked = r.facts;
  record.asked_at = q.input.now;
  if (r.facts.fell_back == plan::fallback_reason::none) {
    auto wishes = plan::read_wishes(r.answer, q.configuration->secrets);
    if (wishes) {
      record.wishes = std::move(*wishes);
    } else {
      record.asked.fell_back = plan::fallback_reason::bad_answer;
      record.asked.why = wishes.error().what;
    }
  }
  conclude(self, q, std::move(record));
}

void put(self_pointer self, plan_question& q) {
  const auto& settings = q.kernel->plan.ask;
  std::vector<model::message_json> messages{
      model::system_message(plan::planner_instructions(*q.kernel)),
      model::user_message(
          plan::planner_question(*q.kernel, q.input, q.fixed, q.configuration->secrets))};
  put_question(
      self, q, settings, plan::planner_voice, std::move(messages), plan::planner_schema(), q.limit,
      [self, kernel = q.kernel->kernel_id](const advice_reply& r) { on_advice(self, kernel, r); });
}

/// What an earlier life, or an earlier cycle, has on record.
void take_records(self_pointer self, plan_question& q, const store::list_decisions::reply& of_cycle,
                  const store::list_decisions::reply& newest) {
  if (!of_cycle.empty())
    if (auto record = plan::read_plan_record(of_cycle.front().decision.detail)) {
      const auto out = plan_of(q, *record);
      return reply(self, q.kernel->kernel_id, out);
    }
  if (!newest.empty())
    if (const auto earlier = plan::read_plan_record(newest.front().decision.detail))
      q.asked_at = earlier->asked_at;
  const auto& settings = q.kernel->plan;
  const auto next = q.asked_at + settings.cooldown;
  // A time ahead of the clock came from a clock that was wrong, and is not waited for.
  if (settings.cooldown.count() > 0 && q.asked_at <= q.input.now && next > q.input.now) {
    plan::plan_record record;
    record.asked_at = q.asked_at;
    record.asked.fell_back = plan::fallback_reason::cooldown;
    record.asked.why = "the next question is at " + format_rfc3339(next);
    return conclude(self, q, std::move(record));
  }
  put(self, q);
}

void look_up(self_pointer self, const plan_question& q) {
  const auto& kernel = q.kernel->kernel_id;
  const std::string voice(plan::planner_voice);
  store_request request;
  const auto cycles = request.add(store::list_decisions{kernel, voice, q.cycle_id, {}, 1});
  const auto any = request.add(store::list_decisions{kernel, voice, {}, {}, 1});
  ask<store_reply>(self, self->state.parts.store, std::move(request),
                   [self, kernel, number = q.number, cycles, any](result<store_reply> r) {
                     auto* found = find_question(self, number);
                     if (found == nullptr)
                       return;
                     const auto of_cycle = cycles.of(r);
                     const auto newest = any.of(r);
                     if (!of_cycle || !newest)
                       return reply(self, kernel,
                                    fail(errc::store_unavailable,
                                         "cannot check whether a model has already been asked: " +
                                             (of_cycle ? newest.error() : of_cycle.error()).what,
                                         kernel));
                     take_records(self, self->state.plans.at(kernel), *of_cycle, *newest);
                   });
}

} // namespace

promise_t plan_with_model(self_pointer self, plan_request& request, const config::kernel& kernel) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<plan::plan_output>>();
  auto fixed = plan::plan_static(kernel, request.input);
  if (fixed.specs.empty()) { // there is nothing to choose from
    answer<plan::plan_output>(promise, std::move(fixed));
    return promise;
  }
  if (const auto same = s.plans.find(kernel.kernel_id);
      same != s.plans.end() && same->second.cycle_id == request.input.cycle_id) {
    same->second.waiting.push_back(promise);
    return promise;
  }
  stop_plan(self, kernel.kernel_id);
  auto& q = s.plans[kernel.kernel_id];
  q.number = ++s.questions;
  q.configuration = request.configuration;
  q.kernel = &kernel;
  q.cycle_id = request.input.cycle_id;
  q.limit = std::max(std::min(kernel.plan.ask.timeout, request.time_left / 2), least_limit);
  q.input = std::move(request.input);
  q.fixed = std::move(fixed);
  q.waiting.push_back(promise);
  look_up(self, q);
  return promise;
}

void stop_plan(self_pointer self, const std::string& kernel_id) {
  const auto at = self->state.plans.find(kernel_id);
  if (at == self->state.plans.end())
    return;
  if (at->second.conversation)
    self->send(at->second.conversation, stop_conversation{});
  reply(self, kernel_id,
        fail(errc::cancelled, "the caller no longer waits for this plan", kernel_id));
}

} // namespace boyd::planning
