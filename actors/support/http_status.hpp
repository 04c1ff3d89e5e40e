#pragma once

#include "boyd/ports/http_client.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace boyd {

/// Events of a request whose answer counts by its status alone. `done` is called once, on the
/// client's thread, with an empty text for a status of 2xx, else with the reason; it must not
/// block.
inline http_events by_status(std::function<void(const std::string& why)> done) {
  constexpr int hundred = 100;
  constexpr int success = 2;
  auto status = std::make_shared<int>(0);
  http_events events;
  events.on_head = [status](const http_head& head) { *status = head.status; };
  events.on_body = [](std::string_view) {
    // the status says it all
  };
  events.on_end = [status, done = std::move(done)](const result<void>& end) {
    if (*status != 0)
      done(*status / hundred == success ? "" : "the answer has status " + std::to_string(*status));
    else
      done(end ? "no answer" : to_string(end.error()));
  };
  return events;
}

} // namespace boyd
