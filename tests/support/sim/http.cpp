#include "support/sim/http.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace boyd::sim {

sim_http_client::sim_http_client(std::shared_ptr<const clock_port> clock, endpoint answer)
    : clock_(std::move(clock)), answer_(std::move(answer)) {}

http_handle sim_http_client::start(http_request request, http_events events) {
  call c;
  c.answer = answer_(request);
  c.events = std::move(events);
  const auto now = clock_->steady();
  const auto comes = now + c.answer.delay;
  c.end = now + request.timeout;
  c.timed_out = c.answer.silent || comes > c.end;
  c.due = c.timed_out ? c.end : comes;
  calls_.emplace(++last_handle_, std::move(c));
  return last_handle_;
}

void sim_http_client::cancel(http_handle handle) {
  const auto found = calls_.find(handle);
  if (found == calls_.end())
    return;
  found->second.cancelled = true;
  tell(found->second, http_ending::cancelled);
  found->second.due = std::min(found->second.due, clock_->steady());
}

std::optional<steady_time> sim_http_client::next_event() const {
  std::optional<steady_time> first;
  for (const auto& [handle, c] : calls_)
    if (!first || c.due < *first)
      first = c.due;
  return first;
}

void sim_http_client::tell(call& c, http_ending how) {
  if (const auto ended = std::exchange(c.answer.ended, nullptr))
    ended(how);
}

/// In two pieces, cut anywhere.
void sim_http_client::deliver_body(const call& c) {
  if (c.events.on_head)
    c.events.on_head({c.answer.status, c.answer.headers});
  const std::string_view body = c.answer.body;
  const auto half = body.size() / 2;
  for (const auto piece : {body.substr(0, half), body.substr(half)})
    if (c.events.on_body && !piece.empty())
      c.events.on_body(piece);
}

/// The last of the call: who made it hears of its end first.
void sim_http_client::finish(call& c) {
  const auto end = [&](http_ending how, result<void> transport) {
    if (c.events.on_end)
      c.events.on_end(transport);
    tell(c, how);
  };
  if (c.cancelled)
    return end(http_ending::cancelled, fail(errc::cancelled, "the request was cancelled"));
  if (c.answer.no_connection)
    return end(http_ending::unreachable, fail(errc::io_error, "connection refused"));
  if (c.timed_out)
    return end(http_ending::timed_out, fail(errc::timed_out, "no answer in time"));
  deliver_body(c);
  if (c.answer.breaks_off)
    return end(http_ending::broken, fail(errc::io_error, "the connection broke"));
  end(http_ending::delivered, {});
}

std::size_t sim_http_client::step(steady_time now) {
  std::size_t ended = 0;
  while (ended < max_events) {
    const auto first = next_event();
    if (!first || *first > now)
      break;
    const auto found =
        std::ranges::find_if(calls_, [&](const auto& each) { return each.second.due == *first; });
    if (auto& c = found->second; c.answer.stalls && !c.timed_out && !c.cancelled) {
      c.timed_out = true;
      c.due = c.end;
      deliver_body(c);
      continue;
    }
    call c = std::move(found->second);
    calls_.erase(found);
    ++ended;
    finish(c);
  }
  return ended;
}

} // namespace boyd::sim
