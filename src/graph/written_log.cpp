#include "boyd/graph/written_log.hpp"

#include <utility>

namespace boyd::graph {

namespace {

/// Of recorders whose worker was given up: they may still write what they had begun.
constexpr std::size_t most_unfinished = 4;

} // namespace

written_log::snapshot written_log::now() const {
  const std::lock_guard lock(mutex_);
  snapshot s{ends_, {lines_.begin(), lines_.end()}, {}};
  for (const auto& [recorder, bytes] : unfinished_)
    s.unfinished.push_back(bytes);
  return s;
}

written_log::end_view written_log::end() const {
  const std::lock_guard lock(mutex_);
  end_view view{ends_, {}};
  if (!lines_.empty())
    view.last = lines_.back();
  return view;
}

written_log::segment_ends written_log::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

std::string written_log::head() const {
  const std::lock_guard lock(mutex_);
  return head_;
}

std::uint64_t written_log::opened(segment_ends ends, const std::vector<written_line>& lines,
                                  std::string head) {
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  lines_.assign(lines.begin(), lines.end());
  forget_old_lines();
  ends_ = std::move(ends);
  while (unfinished_.size() > most_unfinished)
    unfinished_.erase(unfinished_.begin());
  return ++recorder_;
}

void written_log::begin(std::uint64_t recorder, std::string bytes) {
  const std::lock_guard lock(mutex_);
  unfinished_[recorder] = std::move(bytes);
}

void written_log::wrote(std::uint64_t recorder, const std::vector<written_line>& lines) {
  const std::lock_guard lock(mutex_);
  if (recorder != recorder_ || ends_.empty() || lines.empty())
    return;
  unfinished_.erase(recorder);
  ends_.rbegin()->second = lines.back().end;
  head_ = lines.back().hash;
  lines_.insert(lines_.end(), lines.begin(), lines.end());
  forget_old_lines();
}

void written_log::forget_old_lines() {
  while (lines_.size() > known_lines)
    lines_.pop_front();
}

void written_log::goes_on_in(std::uint64_t recorder, std::uint32_t segment) {
  const std::lock_guard lock(mutex_);
  if (recorder != recorder_)
    return;
  ends_[segment] = 0;
  lines_.clear();
}

void written_log::forget() {
  const std::lock_guard lock(mutex_);
  head_.clear();
  ends_.clear();
  lines_.clear();
  unfinished_.clear();
}

} // namespace boyd::graph
