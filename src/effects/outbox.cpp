#include "boyd/effects/outbox.hpp"

#include "boyd/core/invariant.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace boyd::effects {

void outbox::load(std::vector<effect> all) {
  open_ = std::move(all);
  changes_.clear();
  if (!open_.empty())
    last_number_ = std::max(last_number_, open_.back().number);
  is_cut_ = open_.size() > most_open;
  open_.resize(std::min(open_.size(), most_open));
}

void outbox::number(std::vector<effect>& fresh) const {
  auto next = last_number_;
  for (auto& e : fresh)
    e.number = ++next;
}

void outbox::add(std::vector<effect> fresh) {
  if (!fresh.empty())
    last_number_ = std::max(last_number_, fresh.back().number);
  for (const auto& e : fresh)
    invariant(std::ranges::find(open_, e.number, &effect::number) == open_.end(),
              "outbox: each effect has a number of its own");
  for (auto& e : fresh)
    if (!is_cut_ && open_.size() < most_open)
      open_.push_back(std::move(e));
    else
      is_cut_ = true;
}

const effect* outbox::first(effect_kind kind) const {
  const auto it = std::ranges::find(open_, kind, &effect::kind);
  return it == open_.end() ? nullptr : &*it;
}

void outbox::done(std::uint64_t number) {
  if (std::erase_if(open_, [&](const effect& e) { return e.number == number; }) > 0)
    changes_[key_of(number)] = {};
}

void outbox::failed(std::uint64_t number, const std::string& why) {
  const auto it = std::ranges::find(open_, number, &effect::number);
  if (it == open_.end() || it->behind == why)
    return;
  it->behind = why;
  note(*it);
}

void outbox::again(std::vector<effect> lost) {
  // One that is open anyway keeps its outcomes.
  std::erase_if(lost, [this](const effect& l) {
    return std::ranges::any_of(
        open_, [&](const effect& e) { return e.kind == l.kind && e.cycle_id == l.cycle_id; });
  });
  if (lost.empty())
    return;
  const auto others = std::stable_partition(
      open_.begin(), open_.end(), [](const effect& e) { return e.kind != effect_kind::history; });
  std::vector<effect> later(std::make_move_iterator(others), std::make_move_iterator(open_.end()));
  open_.erase(others, open_.end());
  for (const auto& e : later)
    changes_[key_of(e.number)] = {};
  for (auto* list : {&lost, &later})
    for (auto& e : *list)
      e.number = ++last_number_;
  for (auto* list : {&lost, &later})
    for (auto& e : *list) {
      note(e);
      open_.push_back(std::move(e));
    }
}

void outbox::saved(const std::map<std::string, std::string>& changes) {
  for (const auto& [key, text] : changes)
    if (const auto it = changes_.find(key); it != changes_.end() && it->second == text)
      changes_.erase(it);
}

void outbox::note(const effect& e) {
  changes_[key_of(e.number)] = text_of(e);
}

} // namespace boyd::effects
