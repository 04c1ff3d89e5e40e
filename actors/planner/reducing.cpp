#include "actors/planner/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/model/chat.hpp"

#include <utility>

namespace boyd::planning {

namespace {

using promise_t = caf::typed_response_promise<result<reduction>>;

void reply(self_pointer self, const std::string& kernel_id, const reduction& what) {
  auto& all = self->state.reductions;
  const auto at = all.find(kernel_id);
  if (at == all.end())
    return;
  auto waiting = std::move(at->second.waiting);
  all.erase(at);
  for (auto& promise : waiting)
    answer<reduction>(promise, what);
}

reduction reduction_of(const plan::reduce_record& record) {
  if (record.asked.fell_back == plan::fallback_reason::none)
    return {record.lines, {}};
  return {{}, plan::say(record)};
}

void on_advice(self_pointer self, const std::string& kernel_id, const advice_reply& r) {
  auto& q = self->state.reductions.at(kernel_id);
  plan::reduce_record record;
  record.asked = r.facts;
  if (r.facts.fell_back == plan::fallback_reason::none)
    if (auto taken = plan::take_lines(r.answer, q.outcomes, q.configuration->secrets, record);
        !taken) {
      record.asked.fell_back = plan::fallback_reason::bad_answer;
      record.asked.why = taken.error().what;
    }
  q.row = {std::string(plan::reducer_voice), false, "planner", plan::to_json(record)};
  q.end = [self, kernel_id, out = reduction_of(record)] { reply(self, kernel_id, out); };
  keep_record(self, q.number);
}

void put(self_pointer self, reduce_question& q) {
  const auto& settings = q.kernel->reduce;
  std::vector<model::message_json> messages{
      model::system_message(plan::reducer_instructions(settings)),
      model::user_message(plan::reducer_question(q.outcomes, q.configuration->secrets))};
  put_question(
      self, q, settings.ask, plan::reducer_voice, std::move(messages), plan::reducer_schema(),
      settings.ask.timeout,
      [self, kernel = q.kernel->kernel_id](const advice_reply& r) { on_advice(self, kernel, r); });
}

void look_up(self_pointer self, const reduce_question& q) {
  store::list_decisions op;
  op.kernel_id = q.kernel->kernel_id;
  op.agent_id = plan::reducer_voice;
  op.cycle_id = q.cycle_id;
  op.limit = 1;
  ask_store(self, self->state.parts.store, std::move(op),
            [self, number = q.number](const result<store::list_decisions::reply>& rows) {
              auto* found = find_question(self, number);
              if (found == nullptr)
                return;
              const auto& kernel = found->kernel->kernel_id;
              if (!rows)
                return reply(self, std::string(kernel),
                             {{},
                              "recent_actions was written without a model: cannot check whether a "
                              "model has already been asked: " +
                                  to_string(rows.error())});
              if (!rows->empty())
                if (const auto record = plan::read_reduce_record(rows->front().decision.detail))
                  return reply(self, std::string(kernel), reduction_of(*record));
              put(self, self->state.reductions.at(kernel));
            });
}

} // namespace

promise_t reduce_with_model(self_pointer self, reduce_request& request) {
  auto& s = self->state;
  auto promise = self->make_response_promise<result<reduction>>();
  const auto* kernel =
      request.configuration ? request.configuration->find_kernel(request.kernel_id) : nullptr;
  if (kernel == nullptr) {
    answer<reduction>(
        promise, fail(errc::not_found, "no such kernel in the configuration", request.kernel_id));
    return promise;
  }
  if (kernel->reduce.type != config::reducer::type_t::llm || request.outcomes.empty()) {
    answer<reduction>(promise, reduction{});
    return promise;
  }
  if (const auto same = s.reductions.find(request.kernel_id);
      same != s.reductions.end() && same->second.cycle_id == request.cycle_id) {
    same->second.waiting.push_back(promise);
    return promise;
  }
  stop_reduction(self, request.kernel_id);
  auto& q = s.reductions[request.kernel_id];
  q.number = ++s.questions;
  q.configuration = request.configuration;
  q.kernel = kernel;
  q.cycle_id = request.cycle_id;
  q.outcomes = std::move(request.outcomes);
  q.waiting.push_back(promise);
  look_up(self, q);
  return promise;
}

void stop_reduction(self_pointer self, const std::string& kernel_id) {
  const auto at = self->state.reductions.find(kernel_id);
  if (at == self->state.reductions.end())
    return;
  if (at->second.conversation)
    self->send(at->second.conversation, stop_conversation{});
  reply(self, kernel_id, {{}, "recent_actions was written without a model: the caller has ended"});
}

} // namespace boyd::planning
