#pragma once

#include "actors/gateway/actor.hpp"
#include "actors/supervision/helpers.hpp"
#include "boyd/core/errc.hpp"
#include "boyd/graph/edge_log.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Private to actors/gateway: routes, and what they share.
namespace boyd::gateway_impl {

using json = nlohmann::json;

using watcher = std::function<bool(const std::string&)>;

struct exchange;
struct survey;

/// Who wants a survey.
using survey_reader = std::function<void(survey&)>;

struct gateway_state {
  gateway_parts parts;
  std::vector<watcher> watchers;
  helper_pings conversations; ///< with providers, and readers of context, until their end
  /// Requests on their way. Held here, too: CAF drops an ending actor's handlers, which hold them
  /// otherwise, before its state.
  std::vector<std::shared_ptr<exchange>> open;
  std::size_t surveys = 0; ///< under way
  /// They came while enough surveys were under way: the next one is for all of them.
  std::vector<std::pair<std::shared_ptr<exchange>, survey_reader>> want_survey;
  static inline const char* name = "gateway";

  /// CAF drops promises silently: whoever still waits is told that the gateway is gone.
  ~gateway_state();
};

using gateway_part = gateway_actor::extend<caf::replies_to<ping>::with<pong>, caf::reacts_to<pong>>;

using self_pointer = gateway_part::stateful_pointer<gateway_state>;
using api_promise = caf::typed_response_promise<result<api_response>>;

/// One request on its way: who asked, what, and how to answer. Answers once.
struct exchange {
  self_pointer self;
  /// As it was when the request came: a reload does not pull it from under the answer.
  configuration_ptr configuration;
  api_request request;
  api_promise promise;
  bool answered = false;

  /// The client has left: nothing needs to be made for it.
  bool left() const { return request.gone && *request.gone; }

  /// The body gets `"schema":"boyd.<verb>/1"`.
  void reply(const std::string& verb, json body, int status = 200);
  /// Answers with what was made already for somebody else.
  void reply_as(api_response made);
  /// What `reply` answers, for another part to answer it.
  api_response response(const std::string& verb, json body, int status = 200) const;
  void fail_with(const error& e);
  /// Status 405; `allow` as in api_response.
  void refuse_method(const std::string& allow);
  /// A query parameter, or empty.
  std::string query(const std::string& key) const;
  /// The body as an object, an empty one when there is none; an error is answered, and nothing
  /// returned.
  std::optional<json> body();
  /// A query parameter as a count within [1, most]; an error is answered, and nothing returned.
  std::optional<std::size_t> limit(std::size_t standard, std::size_t most);
  /// The kernel asked for (the first when none is named); an error is answered, and null returned.
  const config::kernel* kernel();
  const config::kernel* kernel(const std::string& id);

 private:
  api_response composed(int status, json body, const std::string& allow = {}) const;
  void respond(api_response response);
};

using exchange_ptr = std::shared_ptr<exchange>;

/// `not_found`, with the nearest name that there is; of any kernel when `kernel_id` is empty.
/// naming.cpp
error no_such_agent(const exchange& x, const std::string& kernel_id, const std::string& name);
/// Answers that; of an agent that the node has not read yet, that it has not. naming.cpp
void refuse_agent(const exchange_ptr& x, const std::string& kernel_id, const std::string& name);
/// True when `kernel` or `agent` of the query names nothing that is configured: that is answered,
/// as refuse_agent does. naming.cpp
bool refuse_unknown_filter(const exchange_ptr& x);

using dispatch_reader = std::function<void(const dispatch&)>;

/// The dispatch that a person names: by its id or a part of it (queue/dispatch_ids.hpp), by `last`,
/// or by an agent, whose newest one it then is; `kernel` of the query narrows the last two. What is
/// wrong is answered. naming.cpp
void find_dispatch(const exchange_ptr& x, const std::string& name, const dispatch_reader& then);

/// What `last` names: of the newest runs the one that began last, of the kernel of the query or of
/// all, without its bodies. `otherwise` is called where none has begun.
void find_last_begun(const exchange_ptr& x, const dispatch_reader& then,
                     std::function<void()> otherwise);

/// Answers that nothing has this id: with the runs that begin so, where it is the beginning of a
/// short id, else with `otherwise`.
void fail_as_unknown(const exchange_ptr& x, const std::string& id, const error& otherwise);

json to_json(const std::optional<utc_time>& t);
json to_json(const cycle_record& c);
json to_json(const dispatch& d, bool with_bodies);
json to_json(const agent_decision& d);
/// "agent-a[done]: completed | agent-b[failed]: …", as in STATE.md.
std::string summary_line(const cycle_record& c);
json error_body(const error& e);

// routes, by file
void get_status(exchange_ptr x);                             // status.cpp
void get_agents(exchange_ptr x);                             // agents.cpp
void get_next(exchange_ptr x);                               // next.cpp
void show_logs(exchange_ptr x, const std::string& id);       // logs.cpp
void get_ready(exchange_ptr x);                              // status.cpp
void list_dispatches(exchange_ptr x);                        // queue.cpp
void show_dispatch(exchange_ptr x, const std::string& id);   // queue.cpp
void retry_dispatch(exchange_ptr x, const std::string& id);  // queue.cpp
void cancel_dispatch(exchange_ptr x, const std::string& id); // queue.cpp
void list_cycles(exchange_ptr x);                            // cycles.cpp
void show_cycle(exchange_ptr x, const std::string& id);      // cycles.cpp
void trigger(exchange_ptr x);                                // cycles.cpp
void run_agent(exchange_ptr x, const std::string& id);       // cycles.cpp
void pause(exchange_ptr x);                                  // cycles.cpp
void resume(exchange_ptr x);                                 // cycles.cpp
void get_why(exchange_ptr x);                                // cycles.cpp
void get_plan(exchange_ptr x);                               // plan.cpp
void list_context(exchange_ptr x);                           // context.cpp
void change_context(exchange_ptr x);                         // context.cpp
void read_context_of(exchange_ptr x);                        // context.cpp
void resolve_context(exchange_ptr x);                        // context.cpp
void clean_up(exchange_ptr x);                               // cleanup.cpp
void explain_run(exchange_ptr x, const std::string& id);     // explain.cpp
void replay_run(exchange_ptr x, const std::string& id);      // explain.cpp
void reevaluate(exchange_ptr x, const std::string& id);      // reevaluate.cpp
void get_cost(exchange_ptr x);                               // cost.cpp
void release_cost(exchange_ptr x);                           // reservations.cpp
void list_providers(exchange_ptr x);                         // providers.cpp
void probe_provider(exchange_ptr x, const std::string& id);  // providers.cpp
void list_approvals(exchange_ptr x);                         // approvals.cpp
void show_approval(exchange_ptr x, const std::string& id);   // approvals.cpp
void approve(exchange_ptr x, const std::string& id);         // approvals.cpp
void reject(exchange_ptr x, const std::string& id);          // approvals.cpp
void list_tools(exchange_ptr x);                             // tools.cpp
void call_tool(exchange_ptr x);                              // tools.cpp
void trust_tools(exchange_ptr x);                            // tools.cpp
void forget_tools(exchange_ptr x);                           // tools.cpp
void get_state(exchange_ptr x);                              // history.cpp
void get_state_log(exchange_ptr x);                          // history.cpp
void get_state_diff(exchange_ptr x);                         // history.cpp
void get_memory(exchange_ptr x);                             // memory.cpp
void recall(exchange_ptr x);                                 // memory.cpp
void append_to_memory(exchange_ptr x);                       // memory.cpp
void import_to_memory(exchange_ptr x);                       // memory.cpp
void compact_memory_files(exchange_ptr x);                   // memory.cpp
void record_improvement(exchange_ptr x);                     // improvements.cpp
void get_knowledge(exchange_ptr x);                          // knowledge.cpp
/// A question about the log, once the index has all of it. Errors are answered; those of the
/// question itself by `otherwise`, where it is given.
void ask_about_log(const exchange_ptr& x, knowledge_request question,
                   std::function<void(knowledge_reply&)> then,
                   std::function<void(const error&)> otherwise = {}); // knowledge.cpp
/// `body` with what the log lacks: `damage`, `left_out` of `lines`.
json with_losses(json body, const knowledge_reply& r); // knowledge.cpp
/// Facts that a person's request has made, and behind them a commit of the kernel's home that names
/// them as the end of the log (`Boyd-Graph-Head`). Without facts an error is answered; without the
/// commit `then` gets null: a later one confirms them.
void record_and_commit(const exchange_ptr& x, const std::string& kernel_id,
                       const std::string& subject, const std::string& decision_id,
                       std::vector<graph::edge> facts,
                       std::function<void(json commit)> then); // knowledge.cpp
void judge_memory_items(exchange_ptr x);                       // memory_policy.cpp
void apply_memory_policy(exchange_ptr x);                      // memory_policy.cpp
void undo_memory_policy(exchange_ptr x);                       // memory_policy.cpp
void replay_with_policy(exchange_ptr x);                       // memory_policy.cpp
void list_skills(exchange_ptr x);                              // skills.cpp
void show_skill(exchange_ptr x, const std::string& id);        // skills.cpp
void approve_skill(exchange_ptr x, const std::string& id);     // skills.cpp
void reject_skill(exchange_ptr x, const std::string& id);      // skills.cpp
void defer_skill(exchange_ptr x, const std::string& id);       // skills.cpp
void enable_skill(exchange_ptr x, const std::string& id);      // skills.cpp
void disable_skill(exchange_ptr x, const std::string& id);     // skills.cpp
void import_skill(exchange_ptr x);                             // skill_texts.cpp
void draft_skill(exchange_ptr x, const std::string& id);       // skill_texts.cpp
void list_bank(exchange_ptr x);                                // skill_texts.cpp
void roll_back_skill(exchange_ptr x, const std::string& id);   // skills.cpp
void get_actors(exchange_ptr x);                               // status.cpp
void restart_actor(exchange_ptr x, const std::string& name);   // actors.cpp
void unpark_actor(exchange_ptr x, const std::string& name);    // actors.cpp
void get_chaos(exchange_ptr x);                                // chaos.cpp
void inject_fault(exchange_ptr x);                             // chaos.cpp
void clear_faults(exchange_ptr x);                             // chaos.cpp

/// Only a person decides: not the node's own children, and nobody of whom nothing is known.
bool may_decide(const exchange& x); // approvals.cpp
/// Whether a text for the record holds what looks like a secret.
bool holds_secret(const exchange& x, const std::string& note); // approvals.cpp
/// What one who may not decide is answered. approvals.cpp
error not_a_person(const exchange& x, const std::string& where);

/// Calls as a person reads them, with the reason why each open one still holds its reservation.
/// `then` is called once; without an answer of the store with its error. reservations.cpp
void describe_calls(const exchange_ptr& x, std::vector<store::spend_call> calls,
                    std::function<void(result<json>)> then);

/// The faults that are armed in this process, or were, as rows.
json armed_faults(); // chaos.cpp

/// When the kernel was first seen, as it keeps it in its facts; it has not been seen before `now`
/// else.
utc_time since_of(const store::get_facts::reply& facts, utc_time now); // plan.cpp

} // namespace boyd::gateway_impl
