#pragma once

#include "boyd/ports/clock.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/queue/transitions.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

namespace boyd::test {

/// A clock that stands still until it is moved.
class still_clock final : public clock_port {
 public:
  utc_time now() const override { return now_; }
  steady_time steady() const override { return steady_time{now_.time_since_epoch()}; }
  void advance(milliseconds by) { now_ += by; }

 private:
  utc_time now_ = from_unix_ms(1'770'976'800'000);
};

/// One fresh database of one kind, and connections to it.
class store_world {
 public:
  virtual ~store_world() = default;

  virtual std::unique_ptr<dispatch_store> connect() = 0;
  /// Whether several connections may be open at a time.
  virtual bool shared() const { return true; }
  /// A time span that the test is willing to wait for: long with a movable clock, short otherwise.
  virtual milliseconds span() const { return 30s; }
  /// Lets `span` pass, then looks at `condition` until it holds.
  virtual bool after_span(const std::function<bool()>& condition) = 0;

  /// The world's own first connection, opened.
  dispatch_store& store();

 private:
  std::unique_ptr<dispatch_store> first_;
};

/// "sim", "sqlite" and, unless it is skipped, "postgres".
std::vector<std::string> store_kinds();
std::unique_ptr<store_world> make_world(const std::string& kind);

/// The reply of one operation in a batch of its own; fails the test on any error.
template <class Op>
typename Op::reply ask(dispatch_store& s, const Op& op) {
  auto replies = s.apply({store::operation{op}});
  if (!replies)
    throw std::runtime_error(to_string(replies.error()));
  REQUIRE(replies->size() == 1);
  if (const auto* e = std::get_if<error>(&replies->front()))
    throw std::runtime_error(to_string(*e));
  return std::get<typename Op::reply>(replies->front());
}

/// The error that one operation alone is answered with.
template <class Op>
errc refusal(dispatch_store& s, const Op& op) {
  auto replies = s.apply({store::operation{op}});
  REQUIRE(replies);
  const auto* e = std::get_if<error>(&replies->front());
  REQUIRE(e != nullptr);
  return e->code;
}

/// A dispatch of kernel "k" whose id sorts by `number`.
dispatch_spec spec(int number, const std::string& agent, int priority = 10,
                   const std::string& cycle = "c1");
std::string id_of(int number);
/// Enqueues the specs in their own cycle.
store::enqueue_cycle::reply enqueue(dispatch_store& s, std::vector<dispatch_spec> specs);
std::vector<claimed_dispatch> claim(dispatch_store& s, const std::string& node, std::size_t limit,
                                    const std::string& agent = "", milliseconds lease = 30s);
settle_result settle(dispatch_store& s, const claimed_dispatch& c, settle_to to,
                     milliseconds delay = 0ms, run_outcome outcome = {});
dispatch row(dispatch_store& s, const std::string& id);

} // namespace boyd::test
