#pragma once

#include "boyd/config/models.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/run_usage.hpp"
#include "boyd/core/verdict.hpp"
#include "boyd/model/chat.hpp"
#include "boyd/model/trouble.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace boyd::exec {

/// Where a conversation may be led: an endpoint, its model, its key.
struct chat_target {
  config::provider provider;
  std::string model;
  std::string key; ///< empty: none
  std::vector<std::string>
      on; ///< troubles that lead here from the target before (config::model_fallback)
};

/// What is to become of a tool call, decided before anything happens (docs/executors.md,
/// governance).
struct judgement {
  config::policy_decision decision = config::policy_decision::deny;
  std::string reason;
};

/// One conversation with a model: its words, its tools, its limits.
struct conversation {
  std::vector<chat_target> targets; ///< the first is tried first; at least one
  std::vector<model::message_json> messages;
  std::string tools_json; ///< empty: none
  std::string schema_json;
  std::optional<double> temperature;
  std::int64_t max_output_tokens = 0;
  int max_turns = limits::model_turns;
  config::budget_limit budget; ///< of this run; `wall` is the attempt's timeout's business
  /// The day's budgets that each call is taken from (store::reserve_spend).
  std::vector<store::reserve_spend::limit> scopes;
  std::string dispatch_id;
  std::string kernel_id;
  std::string agent_id;
  std::int64_t fence = 0;
  /// Pure; called once per tool call, in order.
  std::function<judgement(const model::tool_call&)> judge;
  /// For the waits between repetitions: uniform in [0, 1).
  std::function<double()> unit;
  /// What the model is told of its final answer, so that it may give a better one; empty: nothing.
  /// Asked once; may be null. The first answer stands where no other comes.
  std::function<std::string(const std::string& answer)> correct;
  std::string context_level = "full"; ///< for the record: full, focused or minimal
  /// Whether a call that is refused its place is tried again later where no other target takes it.
  bool waits_for_provider = true;
};

using model::assumed_output_tokens;

namespace effect {

/// Asks the provider's governor for a place; the answer comes back through on_place.
struct ask_place {
  std::uint64_t call = 0;
  std::string provider_id;
  std::int64_t tokens = 0; ///< that the call may use
  std::string model;
  int turn = 1; ///< that the call is for
};

/// Nobody waits for the place of this call any more, or it is given back without a word.
struct drop_place {
  std::uint64_t call = 0;
  std::string provider_id;
};

/// The call ended: the governor's place is free.
struct leave_place {
  std::uint64_t call = 0;
  std::string provider_id;
  std::int64_t tokens = 0;
  std::optional<model::trouble> trouble;
  std::optional<model::input_count> counted{}; ///< of a conversation's first answer
};

/// Takes the call from the day's budgets; the answer comes back through on_reserved.
struct reserve {
  std::uint64_t call = 0;
  store::reserve_spend what;
};

/// Nothing comes back.
struct settle_spend {
  store::settle_spend what;
};

/// http_client::start; its events come back through on_head, on_body and on_call_end.
struct call_model {
  std::uint64_t call = 0;
  http_request request;
};

struct cancel_call {
  std::uint64_t call = 0;
};

/// Calls on_repeat(call) at `at` or later.
struct wait_repeat {
  std::uint64_t call = 0;
  milliseconds delay{0};
};

/// A tool call that was allowed; the answer comes back through on_tool_result.
struct run_tool {
  std::uint64_t step = 0; ///< grows with every tool call of the conversation
  model::tool_call call;
};

/// A person is to decide; the answer comes back through on_approval.
struct ask_person {
  std::uint64_t step = 0;
  model::tool_call call;
  std::string reason; ///< why a person is asked
};

/// Ends a tool that is under way, or withdraws a question.
struct stop_step {
  std::uint64_t step = 0;
};

/// A line of the turn record: one JSON object.
struct note_turn {
  std::string json;
};

/// For the log: a budget is used up to four fifths, or a target was left for the next.
struct warn {
  std::string text;
};

/// The conversation is over; always the last effect, exactly once.
struct talk_over {};

} // namespace effect

using chat_effect =
    std::variant<effect::ask_place, effect::drop_place, effect::leave_place, effect::reserve,
                 effect::settle_spend, effect::call_model, effect::cancel_call, effect::wait_repeat,
                 effect::run_tool, effect::ask_person, effect::stop_step, effect::note_turn,
                 effect::warn, effect::talk_over>;
using chat_effects = std::vector<chat_effect>;

/// The calls of a model as the actor sees them that carries them out: events in, effects out; no
/// clock, no I/O. Late events (of a call that is not the present one) change nothing. Not
/// thread-safe.
class dialogue {
 public:
  virtual ~dialogue() = default;

  virtual chat_effects begin() = 0;
  /// `why` empty: granted. `input_ratio`: what the model counts for an estimated token.
  virtual chat_effects on_place(std::uint64_t /*call*/,
                                const std::optional<model::trouble>& /*why*/,
                                double /*input_ratio*/) {
    return {};
  }
  virtual chat_effects on_reserved(std::uint64_t call,
                                   const result<store::reserve_spend::reply>& r) = 0;
  virtual void on_head(std::uint64_t call, const http_head& head) = 0;
  virtual void on_body(std::uint64_t call, std::string_view bytes) = 0;
  virtual chat_effects on_call_end(std::uint64_t call, const result<void>& transport) = 0;
  virtual chat_effects on_repeat(std::uint64_t /*call*/) { return {}; }
  /// Ends it from outside: what is under way is stopped, what was used is settled, or stays
  /// reserved. No talk_over.
  virtual chat_effects stop(const std::string& /*why*/) { return {}; }
};

/// What a conversation ended with.
enum class chat_end : std::uint8_t {
  none,       ///< it goes on, or was stopped
  answered,   ///< by the schema, where there is one
  refusal,    ///< the model declined
  bad_answer, ///< cut off, against the schema, or never final
  trouble,    ///< of a call; chat_outcome::trouble says which
  no_place,   ///< the provider takes no call; chat_outcome::trouble says why
  budget,     ///< no budget for another call
  store,      ///< the budgets cannot be read
  unapproved, ///< an action waits for a person
};

/// How a conversation ended.
struct chat_outcome {
  execution_verdict execution = execution_verdict::none;
  failure_class failure = failure_class::none;
  std::string text;      ///< the final answer; of a failed one what there was
  std::string error;     ///< why it failed; empty on success
  bool too_long = false; ///< a shorter context may help
  chat_end end = chat_end::none;
  std::optional<model::trouble_kind> trouble;
};

/// A conversation as a state machine: think → act → observe until the model answers without wanting
/// a tool. (event, now) → effects; no clock, no I/O. Late events (of a call or step that is not the
/// present one) change nothing. Not thread-safe.
///
/// Each call of a model: a place at the governor, then the budgets, then the request; troubles that
/// pass are tried again as model::wait_before_repeat says, then at the next target whose `on` names
/// them; a refused place leads there at once. Targets without tools are left out where there are
/// any. An empty answer is asked for once more. Tool calls of one answer run one after another, in
/// order; a denied one is answered with the reason, and the model goes on. An answer against the
/// schema is returned once with the finding; one that follows it, once with its correction.
class chat_loop final : public dialogue {
 public:
  explicit chat_loop(conversation c);
  ~chat_loop() override;
  chat_loop(chat_loop&&) noexcept;
  chat_loop& operator=(chat_loop&&) noexcept;

  chat_effects begin() override;
  chat_effects on_place(std::uint64_t call, const std::optional<model::trouble>& why,
                        double input_ratio) override;
  chat_effects on_reserved(std::uint64_t call,
                           const result<store::reserve_spend::reply>& r) override;
  void on_head(std::uint64_t call, const http_head& head) override;
  void on_body(std::uint64_t call, std::string_view bytes) override;
  chat_effects on_call_end(std::uint64_t call, const result<void>& transport) override;
  chat_effects on_repeat(std::uint64_t call) override;
  chat_effects on_tool_result(std::uint64_t step, const std::string& text, bool is_error);
  chat_effects on_approval(std::uint64_t step, bool approved, const std::string& reason);
  /// Nobody decided, and the run is not to go on without: it ends, and is not tried again.
  chat_effects on_no_approval(std::uint64_t step, const std::string& reason);
  chat_effects stop(const std::string& why) override;

  bool over() const;
  const chat_outcome& outcome() const;
  /// Grows with everything that comes from the model or a tool.
  std::size_t progress() const;
  /// Waiting for somebody else than the model: a place, a repetition, a tool or a person.
  bool waits_for_others() const;
  /// In the provider's queue, where the calls of others keep it.
  bool waits_for_place() const;
  /// What it does or waits for, in words; empty: nothing.
  std::string doing() const;
  /// A tool was used, and it ended well.
  bool acted() const;
  /// Calls, turns, tokens, cost and who was asked, so far.
  run_usage usage() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace boyd::exec
