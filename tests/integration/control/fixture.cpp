#include "integration/control/fixture.hpp"

#include <algorithm>

namespace boyd::test {

served::served(const std::function<void(control_server_options&)>& tune) {
  path_ = dir.file("run/control.sock");
  control_server_options options;
  options.on_request = [this](const http_request& request, responder respond) {
    if (request.path == "/hold") {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(respond));
      return requests_held_.signal();
    }
    std::string text = request.method + " " + request.path;
    for (const auto& [key, value] : request.query)
      text += "?" + key + "=" + value;
    respond({200, "text/plain", text + " bytes=" + std::to_string(request.body.size())});
  };
  options.on_stream = [this](const http_request&, std::shared_ptr<event_stream> stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(std::move(stream));
    streams_opened_.signal();
  };
  options.socket_path = path_;
  if (tune)
    tune(options);
  path_ = options.socket_path;
  auto started = adapters::start_control_server(std::move(options));
  if (!started)
    FAIL(to_string(started.error()));
  server_ = std::move(*started);
}

served::responder served::held(std::size_t n) {
  REQUIRE(requests_held_.wait(n));
  const std::lock_guard lock(mutex_);
  return held_.at(n - 1);
}

std::shared_ptr<event_stream> served::stream(std::size_t n) {
  REQUIRE(streams_opened_.wait(n));
  const std::lock_guard lock(mutex_);
  return streams_.at(n - 1);
}

void served::let_streams_go() {
  const std::lock_guard lock(mutex_);
  streams_.clear();
}

bool served::is_well() {
  const auto answer = adapters::control_call(path_, {"GET", "/well", {}, ""}, patience);
  return answer && answer->status == 200 && answer->body == "GET /well bytes=0";
}

std::string get(std::string_view target, std::string_view headers) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n";
}

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + what.size()))
    ++count;
  return count;
}

} // namespace boyd::test
