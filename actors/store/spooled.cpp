#include "actors/store/performer.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/ports/clock.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd {

namespace {

/// Of one transaction, which is to be over long before anybody gives it up.
constexpr std::size_t most_group_items = 64;
constexpr std::size_t most_group_bytes = std::size_t{4} << 20;
/// After this, whoever waits for the store's worker hears of it before more is recorded.
constexpr milliseconds turn = 5s;

/// The same for what waits in the spool of a store that works: others wait meanwhile.
constexpr milliseconds late_turn = 1s;

/// Until what somebody was in the way of is tried again, and at most, after tries in vain: before
/// another node's sweep finds the row free, whose lease nobody renews any more.
constexpr milliseconds late_base = 1s;
constexpr milliseconds late_most = 2s;

using spooled_items = std::span<const queue::node_settlement>;

std::size_t bytes_of(const queue::node_settlement& s) {
  const auto& o = s.item.outcome;
  return o.output.size() + o.summary.size() + o.error.size();
}

/// How many of them make the next transaction: one at least, and `most`.
std::size_t group_of(spooled_items items, std::size_t most) {
  std::size_t bytes = 0;
  std::size_t n = 0;
  for (; n < std::min(items.size(), most); ++n) {
    bytes += bytes_of(items[n]);
    if (n > 0 && bytes > most_group_bytes)
      break;
  }
  return n;
}

bool is_taken(const store::any_reply& reply) {
  const auto* results = std::get_if<std::vector<settle_result>>(&reply);
  return results != nullptr && !results->empty() &&
         (results->front() == settle_result::accepted ||
          results->front() == settle_result::already_settled);
}

} // namespace

bool brings_results(const store_request& request) {
  const auto is_result = [](const store::operation& op) {
    return std::holds_alternative<store::settle>(op);
  };
  return std::ranges::any_of(request.operations, is_result) &&
         std::ranges::all_of(request.operations, [&](const store::operation& op) {
           return is_result(op) || std::holds_alternative<store::put_fact>(op) ||
                  store::is_question(op);
         });
}

/// What nobody can record now: the store is away, or somebody is in the way of it.
void store_session::answer_without(const some_jobs& batch, const error& why) {
  for (auto* j : batch) {
    if (!brings_results(j->request)) {
      j->reply = fail(answer_to(*j, why));
      continue;
    }
    j->reply = spooled(j->request, why);
    if (!j->reply || std::exchange(spooling_told_, true))
      continue;
    if (works())
      spdlog::warn("store: results are kept in the spool while the database is busy: {}",
                   to_string(why));
    else
      spdlog::warn(
          "store: the database is unavailable; results are kept in the spool until it is back");
  }
}

/// A fact or question that comes with results is refused by itself. Of two results of an attempt
/// the first one counts.
result<store_reply> store_session::spooled(const store_request& request, const error& why) {
  all_replies replies;
  for (const auto& op : request.operations) {
    const auto* settle = std::get_if<store::settle>(&op);
    if (settle == nullptr) {
      replies.emplace_back(why);
      continue;
    }
    std::vector<settlement> items;
    for (const auto& item : settle->items)
      if (!kept_.contains({item.dispatch_id, item.fence}))
        items.push_back(item);
    if (auto kept = spool_.append(settle->node_id, items); !kept)
      return fail(std::move(kept.error()));
    for (const auto& item : items)
      kept_.emplace(item.dispatch_id, item.fence);
    replies.emplace_back(std::vector<settle_result>(settle->items.size(), settle_result::accepted));
  }
  if (works() && !std::exchange(works_off_, true)) {
    why_late_ = why;
    late_try_ = clock_.steady() + (late_backoff_ = late_base);
  }
  if (works())
    show();
  return store_reply{std::move(replies)};
}

bool store_session::is_in_spool(const store_request& request) const {
  const auto is_kept = [&](const settlement& item) {
    return kept_.contains({item.dispatch_id, item.fence});
  };
  return std::ranges::any_of(request.operations, [&](const store::operation& op) {
    if (std::holds_alternative<store::take_back>(op))
      return !kept_.empty(); // what has a result is not to run again
    const auto* settle = std::get_if<store::settle>(&op);
    return settle != nullptr && std::ranges::any_of(settle->items, is_kept);
  });
}

/// What is recorded leaves the spool, also when the rest has to wait: the next try goes on there.
/// What somebody is in the way of waits while the store is open, and so do those behind it when a
/// turn is over.
result<void> store_session::record_spool() {
  if (spool_loaded_ && kept_.empty())
    return {};
  auto content = spool_.load();
  if (!content)
    return fail(content.error());
  // What was recorded stays in a file that could not be written anew.
  if (std::exchange(spool_loaded_, true))
    std::erase_if(content->items, [this](const queue::node_settlement& s) {
      return !kept_.contains({s.item.dispatch_id, s.item.fence});
    });
  if (content->skipped > 0)
    spdlog::error("store: skipping {} unreadable lines of the spool", content->skipped);
  put_off_.clear();
  untried_.clear();
  turn_ends_ = clock_.steady() + (works_off_ ? late_turn : turn);
  spooled_items left = content->items;
  const auto recorded = record_turn(left);
  const auto waiting = left.size() + untried_.size() + put_off_.size();
  works_off_ = recorded && waiting > 0;
  // What has not been tried by itself comes first the next time.
  auto next = std::exchange(untried_, {});
  next.insert(next.end(), left.begin(), left.end());
  const bool turned = !next.empty() && !put_off_.empty();
  next.insert(next.end(), put_off_.begin(), put_off_.end());
  keep_spooled(std::move(next), content->items.size() - waiting, turned);
  return recorded;
}

/// Takes from `left` what is recorded or put off. While somebody is in the way of some, the others
/// are recorded in small groups: each that fails costs a wait.
result<void> store_session::record_turn(spooled_items& left) {
  if (!works_off_)
    group_ = most_group_items;
  while (!left.empty()) {
    const auto next = left.first(group_of(left, group_));
    const auto before = put_off_.size();
    if (auto recorded = record_some(next); !recorded) {
      put_off_.resize(before); // all of the group are left
      untried_.clear();
      return recorded;
    }
    left = left.subspan(next.size());
    const bool whole = put_off_.size() == before && untried_.empty();
    group_ = whole ? std::min(2 * group_, most_group_items) : 1;
    if (left.empty() || clock_.steady() < turn_ends_)
      continue;
    if (works_off_ || !put_off_.empty() || !untried_.empty())
      break;
    return fail(errc::store_unavailable,
                std::to_string(left.size()) +
                    " results from the time without the database are not recorded yet");
  }
  return {};
}

/// `left` is what of the spool is not recorded yet.
void store_session::keep_spooled(std::vector<queue::node_settlement> left, std::size_t recorded,
                                 bool turned) {
  kept_.clear();
  for (const auto& s : left)
    kept_.emplace(s.item.dispatch_id, s.item.fence);
  const bool goes_on = recorded > 0 || late_backoff_ == milliseconds{0};
  late_backoff_ = left.empty() ? milliseconds{0}
                  : goes_on    ? late_base
                               : std::min<milliseconds>(late_backoff_ * 2, late_most);
  late_try_ = clock_.steady() + late_backoff_;
  if (recorded == 0 && !turned)
    return;
  if (recorded > 0) {
    spdlog::info("store: {} spooled results recorded, {} left", recorded, left.size());
    backoff_ = milliseconds{0};
  }
  // Its disk is not the store's. What stays in it is recorded already, and is so once however often
  // it is told: also by the next process, which does not know that it is.
  if (auto kept = spool_.rewrite(left); !kept)
    spdlog::warn("store: cannot remove recorded results from the spool: {}",
                 to_string(kept.error()));
}

/// What could not be recorded when the store was opened, or since.
void store_session::record_late() {
  if (!works() || !works_off_ || clock_.steady() < late_try_)
    return;
  if (auto recorded = record_spool(); !recorded)
    lost(recorded.error());
  else
    show();
}

/// In one transaction, or, when the store takes it for wrong or somebody is in its way, in halves:
/// one result that it does not take must not keep the others out. One for wrong is set aside, and
/// its run ended without it. One that somebody is in the way of waits.
result<void> store_session::record_some(spooled_items some) {
  std::vector<store::operation> batch;
  for (const auto& s : some)
    batch.emplace_back(store::settle{s.node_id, {s.item}});
  const auto replies = apply(batch);
  if (replies) {
    for (std::size_t i = 0; i < replies->size(); ++i)
      if (!is_taken((*replies)[i]))
        spdlog::warn("store: a spooled result came too late and was refused: {}",
                     some[i].item.dispatch_id);
    return {};
  }
  const auto& why = replies.error();
  if (is_lock(why)) { // of nothing less than the whole database
    for (const auto& s : some)
      put_off(s, why);
    return {};
  }
  if (!is_refusal(why) && !is_hindrance(why))
    return fail(why);
  if (some.size() == 1 && is_hindrance(why)) {
    put_off(some[0], why);
    return {};
  }
  if (some.size() == 1)
    return set_aside(some[0], why);
  for (const auto half : {some.first(some.size() / 2), some.subspan(some.size() / 2)}) {
    if (clock_.steady() >= turn_ends_) {
      why_late_ = why;
      untried_.insert(untried_.end(), half.begin(), half.end());
    } else if (auto recorded = record_some(half); !recorded) {
      return recorded;
    }
  }
  return {};
}

void store_session::put_off(const queue::node_settlement& hindered, const error& why) {
  why_late_ = why;
  put_off_.push_back(hindered);
}

result<void> store_session::set_aside(const queue::node_settlement& refused, const error& why) {
  error instead = why;
  if (!takes_results(refused.node_id, why, instead)) {
    if (!is_hindrance(instead) && !is_lock(instead))
      return fail(std::move(instead));
    put_off(refused, instead);
    return {};
  }
  auto ended = refuse(refused, why);
  if (ended)
    return {};
  if (is_outage(ended.error()) && ended.error().code != errc::no_space &&
      ended.error().code != errc::io_error)
    return fail(std::move(ended.error()));
  put_off(refused, ended.error());
  return {};
}

} // namespace boyd
