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

using spooled_items = std::span<const queue::node_settlement>;

std::size_t bytes_of(const queue::node_settlement& s) {
  const auto& o = s.item.outcome;
  return o.output.size() + o.summary.size() + o.error.size();
}

/// How many of them make the next transaction, one at least.
std::size_t group_of(spooled_items items) {
  std::size_t bytes = 0;
  std::size_t n = 0;
  for (; n < std::min(items.size(), most_group_items); ++n) {
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

/// What is recorded leaves the spool, also when the rest has to wait: the next try goes on there.
result<void> store_session::record_spool() {
  if (spool_loaded_ && spooled_ == 0)
    return {};
  auto content = spool_.load();
  if (!content)
    return fail(content.error());
  spool_loaded_ = true;
  spooled_ = content->items.size();
  if (content->skipped > 0)
    spdlog::error("store: {} lines of the spool cannot be read and are left out", content->skipped);
  const auto begun = clock_.steady();
  auto recorded = result<void>{};
  spooled_items left = content->items;
  while (recorded && !left.empty()) {
    const auto next = left.first(group_of(left));
    recorded = record_some(next);
    if (recorded)
      left = left.subspan(next.size());
    if (recorded && !left.empty() && clock_.steady() - begun >= turn)
      recorded = fail(errc::store_unavailable,
                      std::to_string(left.size()) +
                          " results that were kept while it was away are still to be recorded");
  }
  const auto done = spooled_ - left.size();
  if (done == 0)
    return recorded;
  spdlog::info("store: {} spooled results are recorded, {} are left", done, left.size());
  backoff_ = milliseconds{0};
  if (auto kept = spool_.rewrite({left.begin(), left.end()}); !kept)
    return kept;
  spooled_ = left.size();
  return recorded;
}

/// In one transaction, or, when the store takes it for wrong, in halves: one result that it does
/// not take must not keep the others out. That one is set aside; its dispatch runs again when its
/// lease is over.
result<void> store_session::record_some(spooled_items some) {
  std::vector<store::operation> batch;
  for (const auto& s : some)
    batch.emplace_back(store::settle{s.node_id, {s.item}});
  const auto replies = apply(batch);
  if (replies) {
    for (std::size_t i = 0; i < replies->values.size(); ++i)
      if (!is_taken(replies->values[i]))
        spdlog::warn("store: a spooled result came too late and was refused: {}",
                     some[i].item.dispatch_id);
    return {};
  }
  if (!is_refusal(replies.error()))
    return fail(replies.error());
  if (some.size() == 1) {
    // It is the result only if the store takes others: one of nobody changes nothing.
    settlement of_nobody;
    of_nobody.dispatch_id = "nobody";
    if (const auto works = apply({store::settle{some[0].node_id, {of_nobody}}}); !works)
      return fail(works.error());
    spdlog::error("store: the spooled result of {} cannot be recorded and goes to "
                  "run/spool.jsonl.refused: {}",
                  some[0].item.dispatch_id, to_string(replies.error()));
    spool_.set_aside(some[0]);
    return {};
  }
  if (auto first = record_some(some.first(some.size() / 2)); !first)
    return first;
  return record_some(some.subspan(some.size() / 2));
}

} // namespace boyd
