#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace boyd::sim {

/// How a call ended at the endpoint's side.
enum class http_ending : std::uint8_t { delivered, broken, timed_out, cancelled, unreachable };

/// How a simulated endpoint answers one request.
struct sim_http_answer {
  int status = 200;
  http_headers headers{};
  std::string body{};
  milliseconds delay{0};      ///< until the head comes; the body comes with it
  bool breaks_off = false;    ///< the connection breaks after the body
  bool no_connection = false; ///< it cannot be made at all
  bool silent = false;        ///< nothing ever comes: the request's time-out ends it
  bool stalls = false;        ///< after the body nothing comes, not even the end: as `silent`
  /// Told once, before the caller is; not when the node dies.
  std::function<void(http_ending)> ended{};
};

/// An HTTP client under virtual time: nothing happens but in start(), cancel() and step(). Events
/// are delivered from step() alone, in the order of their time, then of their handle.
/// Single-threaded.
class sim_http_client final : public http_client {
 public:
  using endpoint = std::function<sim_http_answer(const http_request&)>;

  /// `answer` is asked at each start.
  sim_http_client(std::shared_ptr<const clock_port> clock, endpoint answer);

  http_handle start(http_request request, http_events events) override;
  void cancel(http_handle handle) override;
  std::size_t running() const override { return calls_.size(); }

  /// The time of the next event, if there will be one.
  std::optional<steady_time> next_event() const;
  /// Delivers everything that is due at `now`, bounded; returns how many requests ended.
  std::size_t step(steady_time now);
  /// The node dies: no request is left, no event is made.
  void crash() { calls_.clear(); }

  std::size_t started() const noexcept { return last_handle_; }

  static constexpr std::size_t max_events = 100'000;

 private:
  struct call {
    http_events events;
    sim_http_answer answer;
    steady_time due{};
    steady_time end{}; ///< of its time
    bool timed_out = false;
    bool cancelled = false;
  };

  static void tell(call& c, http_ending how);
  static void deliver_body(const call& c);
  static void finish(call& c);

  std::shared_ptr<const clock_port> clock_;
  endpoint answer_;
  std::map<http_handle, call> calls_;
  http_handle last_handle_ = 0;
};

} // namespace boyd::sim
