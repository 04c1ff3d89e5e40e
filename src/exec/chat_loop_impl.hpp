#pragma once

#include "boyd/exec/chat_loop.hpp"
#include "chat_record.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::exec {

/// A figure that a provider reports, within what can be counted.
std::int64_t counted(std::int64_t n);
/// Why a fallback is not used.
std::string left_out_because(const chat_target& t);

/// The state of a conversation, and its steps from one event to the next (chat_steps.cpp). The
/// events themselves are in chat_loop.cpp.
struct chat_loop::impl {
  enum class phase : std::uint8_t { fresh, placing, reserving, calling, waiting, acting, over };

  explicit impl(conversation all);

  conversation c;
  phase now = phase::fresh;
  std::size_t target = 0;
  std::uint64_t call = 0;
  int repeats = 0;
  bool repaired = false;             ///< an answer against the schema was returned
  bool asked_anew = false;           ///< after an empty answer
  bool corrected = false;            ///< the model was asked whether its answer can be mended
  std::optional<std::string> sound;  ///< the answer before that: it stands where no other comes
  std::vector<chat_target> left_out; ///< they take no tools
  model::chat_answer answer;         ///< whose tools are run
  std::size_t next_tool = 0;
  judgement judged; ///< of the tool that runs
  std::uint64_t step = 0;
  chat_totals totals;
  /// Of all messages and tools: as the provider counted them last, and an estimate of what came
  /// since.
  std::int64_t input_tokens = 0;
  /// The estimate of what the first call says; 0 once a provider has counted it.
  std::int64_t estimated_input = 0;
  std::int64_t output_tokens = 0; ///< that the present call may answer with
  std::unique_ptr<model::answer_reader> reader;
  bool heard = false; ///< the present call has an answer's head
  std::size_t progress = 0;
  bool acted = false; ///< a tool ended well
  std::set<std::string> warned;
  chat_outcome out;

  const chat_target& at() const { return c.targets[target]; }
  std::string call_id() const {
    return c.dispatch_id + "/" + std::to_string(c.fence) + "/" + std::to_string(call);
  }
  model::usage expected() const { return {.input = input_tokens, .output = output_tokens}; }

  /// Before a provider has counted this conversation, what it counted in others corrects the
  /// estimate. Effects: the run's budget does not allow the call that it seemed to allow.
  chat_effects correct_estimate(double input_ratio);
  /// The first count of this conversation, once.
  std::optional<model::input_count> first_count(std::int64_t counted_input);
  /// Nothing was called: the provider's tokens of this minute go back with the place.
  effect::leave_place unused_place() const;

  void say(model::message_json m) {
    input_tokens += model::estimate_tokens(m);
    c.messages.push_back(std::move(m));
  }

  chat_effects over(execution_verdict execution, failure_class failure, chat_end end,
                    std::string error) {
    now = phase::over;
    out.end = end;
    out.execution = execution;
    out.failure = failure;
    out.error = std::move(error);
    return {effect::talk_over{}};
  }
  chat_effects failed(failure_class failure, chat_end end, std::string error);
  /// With a final answer that is sound, or once more with what is to be mended in it.
  chat_effects answered();

  chat_effects start_call();
  std::string over_budget();
  std::string over_day(const store::reserve_spend::reply& r) const;
  /// Adds it to the totals; returns its cost.
  std::int64_t count(const model::usage& used);
  /// `placed`: it came of a call, not of the place for it.
  chat_effects after_trouble(const model::trouble& t, bool placed);
  std::optional<std::size_t> next_target(model::trouble_kind kind) const;
  chat_effects go_to(std::size_t next, const model::trouble& t);
  chat_effects give_up(const model::trouble& t, bool placed);
  chat_effects take(model::chat_answer a);
  chat_effects conclude(chat_effects before);
  chat_effects ask_anew(std::string_view problem, std::string_view advice);
  std::string cut_at() const;
  chat_effects act();
  judgement judge(const model::tool_call& tool) const;
  chat_effects observe(const model::tool_call& tool, const std::string& text, bool is_error);
  void warn_of(chat_effects& effects, const std::string& scope, std::int64_t used,
               std::int64_t limit);
  effect::settle_spend settlement(const model::usage& used) const;
  model::usage guess(bool sent = false) const;
  std::string cap(model::usage& used) const;
};

} // namespace boyd::exec
