#include "integration/http/fixture.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace boyd::test {

raw_client::raw_client() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}

raw_client::raw_client(const std::string& path) : raw_client() {
  if (!connect(path))
    hang_up();
}

bool raw_client::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool raw_client::send(std::string_view text) {
  while (!text.empty()) {
    pollfd one{fd_, POLLOUT, 0};
    if (::poll(&one, 1, static_cast<int>(patience.count())) <= 0)
      return false;
    const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return false;
    if (sent > 0)
      text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void raw_client::end_of_sending() {
  ::shutdown(fd_, SHUT_WR);
}

void raw_client::hang_up() {
  if (fd_ >= 0)
    ::close(std::exchange(fd_, -1));
}

bool raw_client::read_some(std::string& into) {
  pollfd one{fd_, POLLIN, 0};
  if (::poll(&one, 1, static_cast<int>(patience.count())) <= 0) {
    into += "timeout";
    return false;
  }
  std::array<char, 65536> piece{};
  const auto got = ::recv(fd_, piece.data(), piece.size(), 0);
  if (got > 0)
    into.append(piece.data(), static_cast<std::size_t>(got));
  return got > 0;
}

std::string raw_client::read_until(std::string_view text) {
  while (got_.find(text) == std::string::npos && read_some(got_)) {
  }
  return got_;
}

std::string raw_client::read_all() {
  while (read_some(got_)) {
  }
  return got_;
}

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
