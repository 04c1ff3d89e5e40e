#include "boyd/faults/faulty_ports.hpp"
#include "late_line.hpp"

#include <string>
#include <utility>

namespace boyd::faults {

namespace {

/// One process and what of it is still on its way.
class late_process : public late_line {
 public:
  late_process(process_events inner, const process_points& points)
      : inner_(std::move(inner)), points_(points) {}

  void on_output(output_stream stream, std::string_view bytes) {
    const auto met = any_armed() ? meet(points_.output) : result<effect>{};
    if (met && met->drops())
      return;
    if (met && met->corrupts())
      return pass(0ms, [this, stream, changed = malformed(bytes, met->salt)] {
        inner_.on_output(stream, changed);
      });
    const auto delay = met ? met->delay : 0ms;
    if (delay == 0ms && !is_behind())
      return inner_.on_output(stream, bytes);
    pass(delay, [this, stream, kept = std::string(bytes)] { inner_.on_output(stream, kept); });
  }

  void on_exit(const process_exit& e) {
    const auto met = any_armed() ? meet(points_.exit) : result<effect>{};
    if (met && met->drops())
      return;
    pass(met ? met->delay : 0ms, [this, e] { inner_.on_exit(e); });
  }

 private:
  process_events inner_;
  process_points points_;
};

} // namespace

process_events watched(process_events events, const process_points& points) {
  auto all = std::make_shared<late_process>(std::move(events), points);
  process_events out;
  out.on_output = [all](output_stream stream, std::string_view bytes) {
    all->on_output(stream, bytes);
  };
  out.on_exit = [all](const process_exit& e) { all->on_exit(e); };
  return out;
}

} // namespace boyd::faults
