#include "integration/http_client/fixture.hpp"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sys/resource.h>
#include <utility>

namespace boyd::test {

struct watched::state {
  std::mutex mutex;
  std::condition_variable changed;
  http_head head;
  bool has_head = false;
  std::string body;
  std::size_t bytes = 0;
  bool keep = true;
  std::string order;
  std::optional<result<void>> end;

  void note(char what) {
    if (what != 'b' || order.empty() || order.back() != 'b')
      order += what;
    changed.notify_all();
  }
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, patience, condition);
  }
};

std::shared_ptr<watched::state> watched::make() {
  return std::make_shared<state>();
}

http_events watched::events() {
  http_events e;
  e.on_head = [s = state_](const http_head& head) {
    const std::lock_guard lock(s->mutex);
    s->head = head;
    s->has_head = true;
    s->note('h');
  };
  e.on_body = [s = state_](std::string_view bytes) {
    const std::lock_guard lock(s->mutex);
    s->bytes += bytes.size();
    if (s->keep)
      s->body += bytes;
    s->note('b');
  };
  e.on_end = [s = state_](const result<void>& r) {
    const std::lock_guard lock(s->mutex);
    s->end = r;
    s->note('e');
  };
  return e;
}

result<void> watched::wait() {
  if (!state_->wait([&] { return state_->end.has_value(); }))
    return fail(errc::bug, "the request did not end in time");
  const std::lock_guard lock(state_->mutex);
  return *state_->end;
}

bool watched::wait_for_bytes(std::size_t n) {
  return state_->wait([&] { return state_->bytes >= n; });
}

bool watched::wait_for_head() {
  return state_->wait([&] { return state_->has_head; });
}

http_head watched::head() const {
  const std::lock_guard lock(state_->mutex);
  return state_->head;
}

std::string watched::body() const {
  const std::lock_guard lock(state_->mutex);
  return state_->body;
}

std::size_t watched::bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

bool watched::ended() const {
  const std::lock_guard lock(state_->mutex);
  return state_->end.has_value();
}

std::string watched::order() const {
  const std::lock_guard lock(state_->mutex);
  return state_->order;
}

void watched::keep_no_body() {
  const std::lock_guard lock(state_->mutex);
  state_->keep = false;
}

http_request post(const std::string& url, std::string body) {
  http_request r;
  r.url = url;
  r.headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer sk-test-secret"}};
  r.body = std::move(body);
  return r;
}

http_request get(const std::string& url) {
  http_request r;
  r.method = "GET";
  r.url = url;
  return r;
}

answered call(http_client& client, http_request request) {
  watched w;
  client.start(std::move(request), w.events());
  answered a;
  a.end = w.wait();
  a.head = w.head();
  a.body = w.body();
  a.order = w.order();
  return a;
}

std::size_t threads_of_process() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

std::size_t descriptors_of_process() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t memory_of_process(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":"))
      return std::stoul(line.substr(name.size() + 1));
  return 0;
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

} // namespace boyd::test
