#include "boyd/faults/faulty_ports.hpp"
#include "late_line.hpp"

#include <atomic>
#include <string>
#include <utility>

namespace boyd::faults {

namespace {

/// One answer and what of it is still on its way.
class late_answer : public late_line {
 public:
  late_answer(http_events inner, point p) : inner_(std::move(inner)), point_(p) {}

  void on_head(const http_head& head) {
    const auto delay = meets();
    if (!broken_)
      pass(delay, [this, head] { inner_.on_head(head); });
  }

  void on_body(std::string_view bytes) {
    std::string changed;
    const auto delay = meets(&bytes, &changed);
    if (broken_)
      return;
    if (delay == 0ms && !is_behind())
      return inner_.on_body(bytes);
    pass(delay, [this, kept = std::string(bytes)] { inner_.on_body(kept); });
  }

  void on_end(const result<void>& transport) {
    const auto delay = meets();
    result<void> end = transport;
    if (broken_ && end)
      end = fail(errc::io_error,
                 "the connection broke (fault point " + std::string(point_.info().name) + ")");
    pass(delay, [this, end = std::move(end)] { inner_.on_end(end); });
  }

 private:
  /// Passes the point; what is to be heard may be put in the place of `bytes`.
  milliseconds meets(std::string_view* bytes = nullptr, std::string* changed = nullptr) {
    if (!any_armed() || broken_)
      return 0ms;
    const auto met = meet(point_);
    if (!met) {
      broken_ = true;
      return 0ms;
    }
    if (met->corrupts() && bytes != nullptr) {
      *changed = malformed(*bytes, met->salt);
      *bytes = *changed;
    }
    return met->delay;
  }

  http_events inner_;
  point point_;
  std::atomic<bool> broken_ = false; ///< nothing more of it comes
};

} // namespace

http_events watched(http_events events, point answer) {
  auto all = std::make_shared<late_answer>(std::move(events), answer);
  http_events out;
  out.on_head = [all](const http_head& head) { all->on_head(head); };
  out.on_body = [all](std::string_view bytes) { all->on_body(bytes); };
  out.on_end = [all](const result<void>& transport) { all->on_end(transport); };
  return out;
}

} // namespace boyd::faults
