#include "boyd/plan/recent_results.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>

namespace boyd::plan {
namespace {

utc_time ended_at(const dispatch& d) {
  return d.finished_at.value_or(d.created_at);
}

std::string bracket(const dispatch& d) {
  std::string text{name_of(d.status)};
  if (d.outcome.failure != failure_class::none)
    text += ", " + std::string{name_of(d.outcome.failure)};
  if (d.outcome.verification == verification_verdict::failed)
    text += ", verification failed";
  if (d.attempt > 1)
    text += ", attempt " + std::to_string(d.attempt) + "/" + std::to_string(d.max_attempts);
  return text;
}

std::string_view remark(const dispatch& d) {
  const std::string_view error = first_line(d.outcome.error);
  const std::string_view summary = first_line(d.outcome.summary);
  const bool failed = d.status != dispatch_status::done && !error.empty();
  return cut_characters(failed || summary.empty() ? error : summary,
                        limits::history_cell_characters);
}

} // namespace

std::string render_recent_results(const std::vector<dispatch>& rows, std::size_t limit) {
  std::vector<const dispatch*> ended;
  for (const dispatch& row : rows)
    if (is_final(row.status))
      ended.push_back(&row);
  std::ranges::sort(ended, [](const dispatch* a, const dispatch* b) {
    return ended_at(*a) != ended_at(*b) ? ended_at(*a) > ended_at(*b)
                                        : a->dispatch_id > b->dispatch_id;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(limit, ended.size()); ++i) {
    const dispatch& d = *ended[i];
    text += i == 0 ? "- " : "\n- ";
    text += format_rfc3339(ended_at(d)) + " " + d.agent_id + "[" + bracket(d) + "]:";
    if (const auto said = remark(d); !said.empty())
      text += " " + sanitize_utf8(said);
  }
  return text.empty() ? "(none yet)" : text;
}

} // namespace boyd::plan
