#include "boyd/state/restarts.hpp"

#include "actors/node/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::node_impl {

namespace {

constexpr milliseconds record_limit = 2s;

void recorded(self_pointer self, const error* why) {
  auto& s = self->state;
  s.recording = false;
  if (why == nullptr)
    s.unrecorded.clear();
  else
    spdlog::debug("node: {} restarts are not recorded yet: {}", s.unrecorded.size(),
                  to_string(*why));
  for (const auto& then : std::exchange(s.when_recorded, {}))
    then();
}

/// One fact for each, and the oldest ones out.
store_request writing(self_pointer self, const std::map<std::string, std::string>& known) {
  auto& s = self->state;
  const auto scope = state::restarts_scope(s.context->node_id);
  store_request request;
  for (auto& e : s.unrecorded) {
    e.cause = config::redact_text(std::move(e.cause), s.configuration->secrets);
    request.add(
        store::put_fact{scope, state::restart_key(e, ++s.restarts_seen), state::render_restart(e)});
  }
  const auto sum = known.size() + s.unrecorded.size();
  auto surplus = sum > state::kept_restarts ? sum - state::kept_restarts : 0;
  for (auto it = known.begin(); it != known.end() && surplus > 0; ++it, --surplus)
    request.add(store::put_fact{scope, it->first, {}});
  return request;
}

} // namespace

void record_restarts(self_pointer self, std::function<void()> then) {
  auto& s = self->state;
  if (then)
    s.when_recorded.push_back(std::move(then));
  if (s.recording)
    return;
  auto fresh = s.context->restarts->take();
  std::ranges::move(fresh, std::back_inserter(s.unrecorded));
  if (s.unrecorded.size() > restart_log::most)
    s.unrecorded.erase(s.unrecorded.begin(),
                       s.unrecorded.end() - static_cast<std::ptrdiff_t>(restart_log::most));
  s.recording = true;
  if (s.unrecorded.empty() || s.context->passive)
    return recorded(self, nullptr);
  store_request reading;
  const auto facts = reading.add(store::get_facts{state::restarts_scope(s.context->node_id)});
  const auto store = child<store_actor>(self, "store");
  ask_past_faults<store_reply>(
      self, store, std::move(reading),
      [self, store, facts](result<store_reply> r) {
        auto known = facts.of(r);
        if (!known)
          return recorded(self, &known.error());
        ask_past_faults<store_reply>(
            self, store, writing(self, *known),
            [self](result<store_reply> written) {
              recorded(self, written ? nullptr : &written.error());
            },
            record_limit);
      },
      record_limit);
}

} // namespace boyd::node_impl
