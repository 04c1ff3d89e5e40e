#include "bench/endpoint/slow_endpoint.hpp"

#include "support/model_answers.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace boyd::bench {

namespace {

void say(int fd, const std::string& text) {
  (void)!::write(fd, text.data(), text.size());
}

/// The gate waits for a bounded time; a busy machine may need it several times.
bool all_came(const test::gate_ptr& gate, std::size_t calls) {
  constexpr int tries = 15;
  for (int i = 0; i < tries; ++i)
    if (gate->wait_for_arrivals(calls))
      return true;
  return false;
}

void serve(int orders, int answers, std::size_t calls, std::size_t events) {
  const auto gate = test::make_gate();
  test::model_endpoint endpoint([&](const test::model_request&) {
    auto a = test::stream_answer(std::string(events * 4, 'x'), events);
    a.before_head = gate;
    return a;
  });
  endpoint.keep_no_requests();
  say(answers, endpoint.origin() + "\n");
  say(answers, all_came(gate, calls) ? "all\n" : "not all\n");
  char order = 0;
  if (::read(orders, &order, 1) == 1)
    gate->open();
  while (::read(orders, &order, 1) > 0) {
  }
}

} // namespace

slow_endpoint::slow_endpoint(std::size_t calls, std::size_t events) {
  int to_child[2] = {-1, -1};
  int from_child[2] = {-1, -1};
  if (::pipe(to_child) != 0 || ::pipe(from_child) != 0)
    return;
  child_ = ::fork();
  if (child_ == 0) {
    ::close(to_child[1]);
    ::close(from_child[0]);
    serve(to_child[0], from_child[1], calls, events);
    ::_exit(0);
  }
  ::close(to_child[0]);
  ::close(from_child[1]);
  orders_ = to_child[1];
  answers_ = from_child[0];
  origin_ = line();
}

slow_endpoint::~slow_endpoint() {
  ::close(orders_);
  ::close(answers_);
  if (child_ > 0)
    ::waitpid(child_, nullptr, 0);
}

void slow_endpoint::answer() const {
  (void)!::write(orders_, "a", 1);
}

std::string slow_endpoint::line() const {
  std::string text;
  for (char c = 0; ::read(answers_, &c, 1) == 1 && c != '\n';)
    text += c;
  return text;
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

} // namespace boyd::bench
