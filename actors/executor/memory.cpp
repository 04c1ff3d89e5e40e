#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/document.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::executing {

namespace {

/// Entries that one answer of recall has at most.
constexpr std::size_t recall_limit = 50;
constexpr std::size_t day_characters = 10;

state_request to_append(self_pointer self, const std::string& section, const std::string& text) {
  state_request request;
  request.what = append_memory{self->state.order.work->row.kernel_id, {}, section, text};
  return request;
}

std::string text_of(const state::memory_edit& e) {
  std::string text =
      (e.changed ? "remembered in " : "already remembered in ") + e.file + ", " + e.section;
  if (e.archived > 0)
    text += "; entries moved to the archive: " + std::to_string(e.archived);
  for (const auto& note : e.notes)
    text += "; full text in research/" + note;
  return text;
}

std::string text_of(const std::vector<recalled_row>& answer) {
  std::string text;
  for (const auto& [row, score] : answer) {
    if (score <= 0)
      continue; // no word of it fits
    text += "[" + format_rfc3339(row.time).substr(0, day_characters) + "] ";
    text += (row.author.empty() ? "" : row.author + ": ") + row.text;
    text += row.source.empty() ? "\n" : " (" + row.source + ")\n";
  }
  return text.empty() ? "nothing in memory about that" : text;
}

/// What is not remembered is told in the log and in the run's record; its result stands.
void note_forgotten(self_pointer self, const std::string& why) {
  const auto note = "not remembered: " + why;
  spdlog::warn("dispatch {}: {}", self->state.order.work->row.dispatch_id, note);
  note_turn(self, nlohmann::json{{"note", sanitize_utf8(note)}}.dump());
}

/// The lines that wait, and the outcome behind them.
struct keeping {
  std::vector<memory::remembered_line> lines; ///< the last one is the next
  run_outcome outcome;
};

void keep_next(self_pointer self, const std::shared_ptr<keeping>& k) {
  if (k->lines.empty())
    return finish(self, std::move(k->outcome));
  const auto line = std::move(k->lines.back());
  k->lines.pop_back();
  ask<state_reply>(self, self->state.order.services.writer(),
                   to_append(self, line.section, line.text), [self, k](result<state_reply> r) {
                     if (!r)
                       note_forgotten(self, to_string(r.error()));
                     keep_next(self, k);
                   });
}

} // namespace

bool keeps_memory(self_pointer self, run_outcome& outcome) {
  auto& s = self->state;
  // A chat has a tool for it, which its policy decides about.
  const bool is_chat = std::holds_alternative<config::chat_executor>(s.order.agent->run);
  if (std::exchange(s.has_remembered, true) || is_chat || !s.attempt ||
      outcome.failure != failure_class::none)
    return false;
  std::vector<std::string> said;
  std::size_t more = 0;
  {
    const std::lock_guard lock(s.attempt->mutex);
    said = s.attempt->core.said().remembered();
    more = s.attempt->core.said().not_remembered();
  }
  if (more > 0)
    note_forgotten(self, std::to_string(more) + " lines: a run can add only " +
                             std::to_string(exec::line_watch::most_remembered) +
                             " entries of one line of less than 64 KiB each");
  auto k = std::make_shared<keeping>();
  for (auto text = said.rbegin(); text != said.rend(); ++text)
    if (auto line = memory::read_remembered(*text))
      k->lines.push_back(std::move(*line));
    else
      note_forgotten(self, "a line without a section; use the form: " +
                               std::string(exec::line_watch::remember_prefix) +
                               " [Important Facts] TEXT");
  if (k->lines.empty())
    return false;
  k->outcome = std::move(outcome);
  keep_next(self, k);
  return true;
}

void remember(self_pointer self, const tools::remember_call& call,
              std::function<void(std::string, bool)> done) {
  ask<state_reply>(self, self->state.order.services.writer(),
                   to_append(self, call.section, call.text),
                   [done = std::move(done)](result<state_reply> r) {
                     if (!r)
                       return done("error: " + to_string(r.error()), true);
                     done(text_of(r->edits.front()), false);
                   });
}

void recall(self_pointer self, const tools::recall_call& call,
            std::function<void(std::string, bool)> done) {
  recall_memory what;
  what.kernel_id = self->state.order.work->row.kernel_id;
  what.questions.push_back({call.query, {}});
  what.budget_tokens = static_cast<std::int64_t>(call.budget_tokens);
  what.limit = recall_limit;
  knowledge_request request;
  request.what = std::move(what);
  ask<knowledge_reply>(self, self->state.order.services.knows(), std::move(request),
                       [done = std::move(done)](result<knowledge_reply> r) {
                         if (!r)
                           return done("error: " + to_string(r.error()), true);
                         done(text_of(r->answers.front()), false);
                       });
}

} // namespace boyd::executing
