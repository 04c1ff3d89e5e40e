#include "actors/store/performer.hpp"
#include "boyd/core/final_refusal.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/queue/settlement.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>

namespace boyd {

namespace {

/// Of an earlier life's refused results, whose runs may not have ended.
constexpr std::size_t most_looked_at = 256;
/// Attempts whose end is tried again with each look at the store.
constexpr std::size_t most_unended = 1'024;

#define BOYD_NAME(operation) #operation,
constexpr std::array operation_names{BOYD_STORE_OPERATIONS(BOYD_NAME)};
#undef BOYD_NAME

bool can_wait(const error& e) {
  return is_hindrance(e) || is_lock(e) || is_outage(e);
}

/// A row that runs as far as the store knows, as whoever asks is to see it.
void end_row(dispatch& row, const settlement& by, utc_time now) {
  row.status = by.to == settle_to::cancelled ? dispatch_status::cancelled : dispatch_status::failed;
  row.outcome = by.outcome;
  row.finished_at = now;
  row.lease_owner.clear();
  row.lease_expires_at.reset();
}

} // namespace

/// The database's own word is enough. Of a failure of another kind it is the result only if the
/// store takes others: one of nobody changes nothing.
bool store_session::takes_results(const std::string& node_id, const error& why, error& instead) {
  if (is_final_refusal(why))
    return true;
  settlement of_nobody;
  of_nobody.dispatch_id = "nobody";
  of_nobody.fence = 1;
  auto works = apply({store::settle{node_id, {of_nobody}}});
  if (!works)
    instead = works.error();
  return works.has_value();
}

/// Each result by itself: those that the store takes are recorded, the others are kept aside and
/// their runs ended without them.
result<store_reply> store_session::end_refused(const store_request& request) {
  all_replies replies;
  for (const auto& op : request.operations) {
    const auto* settle = std::get_if<store::settle>(&op);
    if (settle == nullptr) {
      auto one = apply({op});
      replies.push_back(one ? std::move(one->front()) : store::any_reply(one.error()));
      continue;
    }
    std::vector<settle_result> results;
    for (const auto& item : settle->items) {
      auto ended = settle_alone({settle->node_id, item});
      if (!ended && can_wait(ended.error())) {
        store_request later;
        later.operations.emplace_back(store::settle{settle->node_id, {item}});
        if (auto kept = spooled(later, ended.error()); !kept)
          return kept;
        ended = settle_result::accepted;
      }
      if (!ended)
        return fail(std::move(ended.error()));
      results.push_back(*ended);
    }
    replies.emplace_back(std::move(results));
  }
  return store_reply{std::move(replies)};
}

result<settle_result> store_session::settle_alone(const queue::node_settlement& one) {
  // Of an attempt that has ended without its result nothing else is to come.
  if (const auto known = unended_.find({one.item.dispatch_id, one.item.fence});
      known != unended_.end())
    return settle_result::accepted;
  auto replies = apply({store::settle{one.node_id, {one.item}}});
  if (replies)
    if (const auto* results = std::get_if<std::vector<settle_result>>(&replies->front()))
      return results->front();
  error why =
      replies ? error{errc::bug, "the store answered another question", {}, {}} : replies.error();
  if (const auto* said = replies ? std::get_if<error>(&replies->front()) : nullptr)
    why = *said;
  if (can_wait(why))
    return fail(std::move(why));
  return refuse(one, why);
}

/// Keeps the result aside, then ends the run. Nothing is said before the result is safe.
result<settle_result> store_session::refuse(const queue::node_settlement& one, const error& why) {
  const auto reason = to_string(why);
  if (auto kept = spool_.keep_refused(one, reason); !kept)
    return fail(std::move(kept.error()));
  ++refused_;
  why_refused_ = reason;
  refusals_changed_ = true;
  spdlog::error("store: the database refused the result of {} (fence {}); the result is stored in "
                "run/spool.jsonl.refused and the run ends without it: {}",
                one.item.dispatch_id, one.item.fence, reason);
  return end_in_place(one, reason);
}

/// `accepted` also when the store takes the run's end in no form: it has ended for this node.
result<settle_result> store_session::end_in_place(const queue::node_settlement& one,
                                                  std::string_view reason) {
  for (const bool usage : {true, false}) {
    auto instead = queue::in_place_of(one.item, reason, usage);
    auto replies = apply({store::settle{one.node_id, {instead}}});
    const auto* results =
        replies ? std::get_if<std::vector<settle_result>>(&replies->front()) : nullptr;
    if (results != nullptr) {
      unended_.erase({one.item.dispatch_id, one.item.fence});
      return results->front();
    }
    if (!replies && can_wait(replies.error()))
      break; // tried again by the probe
  }
  if (unended_.size() >= most_unended) {
    spdlog::error("store: the database refuses ends of runs; that of {} ends with its lease",
                  one.item.dispatch_id);
    return settle_result::accepted;
  }
  const bool fresh =
      unended_
          .insert_or_assign(
              {one.item.dispatch_id, one.item.fence},
              queue::node_settlement{one.node_id, queue::in_place_of(one.item, reason, false)})
          .second;
  if (fresh)
    spdlog::error("store: the database also refuses the end of {} (fence {}); the row stays "
                  "running until it accepts",
                  one.item.dispatch_id, one.item.fence);
  return settle_result::accepted;
}

/// Somebody may have removed the cause, and looked after what was kept.
void store_session::end_unended() {
  if (refused_ > 0 && !spool_.has_refused()) {
    refused_ = 0;
    why_refused_.clear();
  }
  if (!works() || unended_.empty())
    return;
  for (const auto& [key, one] : std::map(unended_)) {
    auto replies = apply({store::settle{one.node_id, {one.item}}});
    if (!replies && can_wait(replies.error()))
      return;
    if (replies && !std::holds_alternative<error>(replies->front())) {
      unended_.erase(key);
      spdlog::info("store: the run of {} has ended without its result", key.first);
    }
  }
}

/// What an earlier process kept aside: its runs are not to begin again as if nothing had come of
/// them. A row that has ended, or belongs to another attempt, stays as it is.
void store_session::find_refused() {
  const auto found = spool_.load_refused(most_looked_at);
  if (!found) {
    spdlog::warn("store: cannot read run/spool.jsonl.refused: {}", to_string(found.error()));
    return;
  }
  const bool first = refused_ == 0;
  refused_ = found->count;
  if (!first)
    return;
  for (const auto& one : found->newest)
    (void)end_in_place(one, "refused before the node started");
}

void store_session::note_refusal(const store_request& request, const error& why) {
  if (!is_refusal(why))
    return;
  for (const auto& op : request.operations) {
    if (store::is_question(op) && request.operations.size() > 1)
      continue;
    auto text = to_string(why);
    auto& known = refusals_[op.index()];
    refusals_changed_ = refusals_changed_ || known != text;
    if (known != text)
      spdlog::error("store: the database refused {}: {}", operation_names.at(op.index()), text);
    known = std::move(text);
  }
}

void store_session::note_taken(const std::vector<store::operation>& operations) {
  if (refusals_.empty())
    return;
  for (const auto& op : operations)
    if (refusals_.erase(op.index()) > 0)
      refusals_changed_ = true;
}

void store_session::show_refusals() {
  if (std::exchange(refusals_changed_, false) && works() && !locked_out_)
    show();
}

void store_session::show_ended(all_replies& replies) const {
  if (unended_.empty())
    return;
  const auto look = [this](dispatch& row) {
    const auto known = unended_.find({row.dispatch_id, row.fence});
    if (known != unended_.end() && row.status == dispatch_status::running)
      end_row(row, known->second.item, clock_.now());
  };
  for (auto& any : replies) {
    if (auto* rows = std::get_if<std::vector<dispatch>>(&any))
      std::ranges::for_each(*rows, look);
    else if (auto* row = std::get_if<std::optional<dispatch>>(&any); row && *row)
      look(**row);
  }
}

std::vector<std::string> store_session::refusals() const {
  std::vector<std::string> all;
  if (refused_ > 0)
    all.push_back("the database refused " + std::to_string(refused_) +
                  (refused_ == 1 ? " result, which is" : " results, which are") +
                  " stored in run/spool.jsonl.refused" +
                  (why_refused_.empty() ? "" : " (" + why_refused_ + ")") +
                  "; fix the cause, then move that file away");
  if (!unended_.empty())
    all.push_back(std::to_string(unended_.size()) +
                  " ended runs are still running in the database, which refuses their end");
  for (const auto& [kind, why] : refusals_)
    all.push_back("the database refuses " + std::string(operation_names.at(kind)) + ": " + why);
  return all;
}

} // namespace boyd
