#include "support/sim/http.hpp"

#include <algorithm>
#include <utility>

namespace boyd::sim {

sim_http_client::sim_http_client(std::shared_ptr<const clock_port> clock, endpoint answer)
    : clock_(std::move(clock)), answer_(std::move(answer)) {}

http_handle sim_http_client::start(http_request request, http_events events) {
  call c;
  c.answer = answer_(request);
  c.events = std::move(events);
  const auto now = clock_->steady();
  const auto end = now + request.timeout;
  const auto comes = now + c.answer.delay;
  c.timed_out = c.answer.silent || comes > end;
  c.due = c.timed_out ? end : comes;
  calls_.emplace(++last_handle_, std::move(c));
  return last_handle_;
}

void sim_http_client::cancel(http_handle handle) {
  const auto found = calls_.find(handle);
  if (found == calls_.end())
    return;
  found->second.cancelled = true;
  found->second.due = std::min(found->second.due, clock_->steady());
}

std::optional<steady_time> sim_http_client::next_event() const {
  std::optional<steady_time> first;
  for (const auto& [handle, c] : calls_)
    if (!first || c.due < *first)
      first = c.due;
  return first;
}

std::size_t sim_http_client::step(steady_time now) {
  std::size_t ended = 0;
  while (ended < max_events) {
    const auto first = next_event();
    if (!first || *first > now)
      break;
    const auto found =
        std::ranges::find_if(calls_, [&](const auto& each) { return each.second.due == *first; });
    const call c = std::move(found->second);
    calls_.erase(found);
    ++ended;
    const auto end = [&](result<void> how) {
      if (c.events.on_end)
        c.events.on_end(how);
    };
    if (c.cancelled) {
      end(fail(errc::cancelled, "the request was cancelled"));
    } else if (c.answer.no_connection) {
      end(fail(errc::io_error, "connection refused"));
    } else if (c.timed_out) {
      end(fail(errc::timed_out, "no answer in time"));
    } else {
      if (c.events.on_head)
        c.events.on_head({c.answer.status, c.answer.headers});
      if (c.events.on_body && !c.answer.body.empty())
        c.events.on_body(c.answer.body);
      end(c.answer.breaks_off ? result<void>(fail(errc::io_error, "the connection broke"))
                              : result<void>{});
    }
  }
  return ended;
}

} // namespace boyd::sim
