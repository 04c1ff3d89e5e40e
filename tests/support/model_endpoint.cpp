#include "support/model_endpoint.hpp"

#include "support/wait.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <deque>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>

namespace boyd::test {

namespace {

using clock = std::chrono::steady_clock;
using headers = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t read_bytes = 64u << 10;
constexpr int events_at_once = 256;
constexpr int backlog = 4096;
/// Then the others have their turn.
constexpr int steps_at_once = 64;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

std::string header_of(const headers& all, std::string_view name) {
  const auto found = std::ranges::find_if(all, [&](auto& h) { return h.first == name; });
  return found == all.end() ? "" : found->second;
}

std::string hexadecimal(std::size_t n) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n, 16).ptr;
  return {digits.data(), end};
}

/// The request line and headers; nullopt when they are none.
std::optional<model_request> parse_head(std::string_view head) {
  model_request r;
  const auto line_end = head.find("\r\n");
  const auto line = head.substr(0, line_end);
  const auto first = line.find(' ');
  const auto second = line.rfind(' ');
  if (first == std::string_view::npos || second <= first)
    return std::nullopt;
  r.method = std::string(line.substr(0, first));
  r.path = std::string(line.substr(first + 1, second - first - 1));
  for (auto at = line_end + 2; at < head.size();) {
    const auto end = std::min(head.find("\r\n", at), head.size());
    const auto one = head.substr(at, end - at);
    const auto colon = std::min(one.find(':'), one.size());
    auto value = one.substr(std::min(colon + 1, one.size()));
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    r.headers.emplace_back(lower(one.substr(0, colon)), std::string(value));
    at = end + 2;
  }
  return r;
}

bool is_stream(const model_answer& a) {
  return header_of(a.headers, "content-type").starts_with("text/event-stream");
}

std::optional<std::size_t> length_of(const model_answer& a) {
  std::size_t sum = 0;
  for (const auto& s : a.steps) {
    if (const auto* b = std::get_if<model_answer::bytes>(&s))
      sum += b->text.size();
    else if (const auto* d = std::get_if<model_answer::drip>(&s))
      sum += d->text.size();
    else if (const auto* r = std::get_if<model_answer::repeat>(&s)) {
      if (r->times == 0)
        return std::nullopt;
      sum += r->text.size() * r->times;
    }
  }
  return sum;
}

std::string head_of(const model_answer& a) {
  auto text = "HTTP/1.1 " + std::to_string(a.status) + " Said\r\n";
  for (const auto& [name, value] : a.headers)
    text += name + ": " + value + "\r\n";
  if (a.end == framing::chunked)
    text += "transfer-encoding: chunked\r\n";
  else if (a.end == framing::until_close)
    text += "connection: close\r\n";
  else
    text += "content-length: " + std::to_string(length_of(a).value_or(0)) + "\r\n";
  return text + "\r\n";
}

/// One connection and what it is at.
struct peer {
  int fd = -1;
  std::size_t number = 0;
  std::string in;
  std::string out;
  std::size_t sent = 0; ///< of `out`
  bool wants_write = false;
  std::optional<model_answer> answer;
  bool head_sent = false;
  std::size_t step = 0;
  std::size_t done = 0; ///< of the step: bytes dripped, repetitions
  bool at_gate = false; ///< has said that it arrived
  clock::time_point due{};
  bool waits_for_time = false;
  bool continued = false; ///< 100 Continue was said
};

} // namespace

std::string model_request::header(std::string_view name) const {
  return header_of(headers, name);
}

class model_endpoint::server {
 public:
  explicit server(model_handler handler) : handler_(std::move(handler)) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(listening_, reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
        ::listen(listening_, backlog) != 0 ||
        ::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("no endpoint on loopback");
    port_ = ntohs(at.sin_port);
    epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch(EPOLL_CTL_ADD, listening_, EPOLLIN);
    watch(EPOLL_CTL_ADD, wake_, EPOLLIN);
    thread_ = std::thread([this] { run(); });
  }

  ~server() {
    ending_ = true;
    wake();
    thread_.join();
    for (const auto& g : gates_)
      g->forget(id_);
    for (const auto& [fd, p] : peers_)
      ::close(fd);
    ::close(listening_);
    ::close(epoll_);
    ::close(wake_);
  }
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  model_handler handler_;
  std::deque<model_answer> script_;
  std::vector<model_request> requests_;
  std::size_t requests_count_ = 0;
  bool keep_ = true;
  std::size_t made_ = 0;
  std::size_t open_ = 0;
  std::uint16_t port_ = 0;

 private:
  using peer_map = std::unordered_map<int, peer>;

  void watch(int what, int fd, std::uint32_t events) const {
    epoll_event e{};
    e.events = events;
    e.data.fd = fd;
    (void)::epoll_ctl(epoll_, what, fd, &e);
  }

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
  }

  void run() {
    std::array<epoll_event, events_at_once> events{};
    while (!ending_) {
      const int n = ::epoll_wait(epoll_, events.data(), events_at_once, until_due());
      for (int i = 0; i < n; ++i)
        attend(events.at(static_cast<std::size_t>(i)));
      if (woken_ || timed_ > 0)
        go_on_with_all();
    }
  }

  /// For epoll_wait: until the next drop of what drips.
  int until_due() const {
    constexpr int tick_ms = 2;
    return timed_ > 0 ? tick_ms : -1;
  }

  void attend(const epoll_event& e) {
    const int fd = e.data.fd;
    if (fd == wake_) {
      std::uint64_t n = 0;
      (void)!::read(wake_, &n, sizeof n);
      woken_ = true;
      return;
    }
    if (fd == listening_)
      return accept_all();
    const auto found = peers_.find(fd);
    if (found == peers_.end())
      return;
    auto& p = found->second;
    if ((e.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && !receive(p))
      return close_peer(fd, false);
    go_on(p);
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0)
        return;
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      auto& p = peers_[fd];
      p = peer{};
      p.fd = fd;
      const std::lock_guard lock(mutex_);
      p.number = made_++;
      ++open_;
      changed_.notify_all();
      watch(EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP);
    }
  }

  /// False when the client is gone.
  static bool receive(peer& p) {
    std::array<char, read_bytes> part; // NOLINT(*-init): recv() fills it
    for (;;) {
      const auto n = ::recv(p.fd, part.data(), part.size(), 0);
      if (n < 0)
        return errno == EAGAIN || errno == EINTR;
      if (n == 0)
        return false;
      p.in.append(part.data(), static_cast<std::size_t>(n));
    }
  }

  void close_peer(int fd, bool reset) {
    auto& p = peers_.at(fd);
    if (p.waits_for_time)
      --timed_;
    if (reset) {
      const linger now{1, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    ::close(fd);
    peers_.erase(fd);
    const std::lock_guard lock(mutex_);
    --open_;
    changed_.notify_all();
  }

  void go_on_with_all() {
    woken_ = false;
    std::vector<int> all;
    for (const auto& [fd, p] : peers_)
      if (p.answer)
        all.push_back(fd);
    for (const int fd : all)
      if (const auto found = peers_.find(fd); found != peers_.end())
        go_on(found->second);
  }

  /// Takes requests, does steps and sends, until something must be waited for. May end `p`.
  void go_on(peer& p) {
    for (int steps = 0;; ++steps) {
      if (!flush(p))
        return;
      if (p.sent < p.out.size())
        return; // epoll says when there is room
      if (steps == steps_at_once) {
        p.wants_write = true;
        return watch(EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLRDHUP | EPOLLOUT);
      }
      if (!p.answer && !next_request(p))
        return;
      const auto more = next_step(p);
      if (more == outcome::wait)
        return;
      if (more != outcome::on)
        return close_peer(p.fd, more == outcome::reset);
    }
  }

  /// False when the client is gone; then `p` is no more.
  bool flush(peer& p) {
    while (p.sent < p.out.size()) {
      const auto n = ::send(p.fd, p.out.data() + p.sent, p.out.size() - p.sent, MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN && errno != EINTR) {
        close_peer(p.fd, false);
        return false;
      }
      if (n < 0)
        break;
      p.sent += static_cast<std::size_t>(n);
    }
    const bool waits = p.sent < p.out.size();
    if (!waits) {
      p.out.clear();
      p.sent = 0;
    }
    if (waits != p.wants_write) {
      p.wants_write = waits;
      watch(EPOLL_CTL_MOD, p.fd, EPOLLIN | EPOLLRDHUP | (waits ? EPOLLOUT : 0u));
    }
    return true;
  }

  bool next_request(peer& p) {
    const auto end = p.in.find("\r\n\r\n");
    if (end == std::string::npos)
      return false;
    auto request = parse_head(std::string_view(p.in).substr(0, end));
    const auto body = end + 4;
    std::size_t length = 0;
    if (request) {
      const auto text = request->header("content-length");
      std::from_chars(text.data(), text.data() + text.size(), length);
      if (!request->header("expect").empty() && !p.continued) {
        p.continued = true;
        p.out += "HTTP/1.1 100 Continue\r\n\r\n";
        if (!flush(p))
          return false;
      }
      if (p.in.size() < body + length)
        return false;
      request->body = p.in.substr(body, length);
      request->json = nlohmann::json::parse(request->body, nullptr, false);
      request->connection = p.number;
    }
    p.in.erase(0, body + length);
    p.in.shrink_to_fit();
    p.answer = request ? answer_to(std::move(*request)) : model_answer{400, {}, {}, {}, {}};
    if (p.answer->end == framing::automatic)
      p.answer->end =
          is_stream(*p.answer) || !length_of(*p.answer) ? framing::chunked : framing::length;
    p.head_sent = p.answer->end == framing::raw;
    p.step = p.done = 0;
    p.at_gate = p.continued = false;
    return true;
  }

  model_answer answer_to(model_request request) {
    model_handler handler;
    {
      const std::lock_guard lock(mutex_);
      request.number = requests_count_;
      handler = handler_;
    }
    auto answer = handler ? handler(request) : scripted(request);
    const std::lock_guard lock(mutex_);
    ++requests_count_;
    if (keep_)
      requests_.push_back(std::move(request));
    changed_.notify_all();
    return answer;
  }

  model_answer scripted(const model_request& request) {
    model_answer a;
    a.header("content-type", "application/json");
    const auto path = std::string_view(request.path).substr(0, request.path.find('?'));
    if (request.method == "GET" && path.ends_with("/models"))
      return a.send(R"({"object":"list","data":[{"id":"test-model","object":"model"}]})");
    const std::lock_guard lock(mutex_);
    if (script_.empty()) {
      a.status = 500;
      return a.send(R"({"error":{"message":"the script has ended","type":"server_error"}})");
    }
    a = std::move(script_.front());
    script_.pop_front();
    return a;
  }

  enum class outcome { on, wait, close, reset };

  outcome pass_gate(peer& p, const gate_ptr& g) {
    if (!p.at_gate) {
      p.at_gate = true;
      g->listen(id_, [this] { wake(); });
      if (std::ranges::find(gates_, g) == gates_.end())
        gates_.push_back(g);
      g->arrive();
    }
    if (!g->try_pass())
      return outcome::wait;
    p.at_gate = false;
    return outcome::on;
  }

  void put(peer& p, std::string_view text) {
    if (text.empty())
      return;
    if (p.answer->end == framing::chunked)
      p.out += hexadecimal(text.size()) + "\r\n";
    p.out += text;
    if (p.answer->end == framing::chunked)
      p.out += "\r\n";
  }

  outcome next_step(peer& p) {
    auto& a = *p.answer;
    if (!p.head_sent) {
      if (a.before_head && pass_gate(p, a.before_head) == outcome::wait)
        return outcome::wait;
      p.head_sent = true;
      p.out += head_of(a);
      return outcome::on;
    }
    if (p.step == a.steps.size()) {
      if (a.end == framing::raw || a.end == framing::until_close)
        return outcome::close;
      if (a.end == framing::chunked)
        p.out += "0\r\n\r\n";
      p.answer.reset();
      return outcome::on;
    }
    return std::visit([&](const auto& s) { return act(p, s); }, a.steps[p.step]);
  }

  outcome act(peer& p, const model_answer::bytes& s) {
    put(p, s.text);
    return next(p);
  }
  outcome act(peer& p, const model_answer::wait_at& s) {
    return pass_gate(p, s.at) == outcome::on ? next(p) : outcome::wait;
  }
  outcome act(peer& p, const model_answer::repeat& s) {
    put(p, s.text);
    ++p.done;
    return s.times != 0 && p.done >= s.times ? next(p) : outcome::on;
  }
  outcome act(peer& p, const model_answer::drip& s) {
    const auto now = clock::now();
    if (p.waits_for_time && now < p.due)
      return outcome::wait;
    put(p, std::string_view(s.text).substr(p.done, s.piece));
    p.done += s.piece;
    const bool more = p.done < s.text.size();
    if (more != p.waits_for_time)
      more ? ++timed_ : --timed_;
    p.waits_for_time = more;
    p.due = now + s.every;
    return more ? outcome::on : next(p);
  }
  static outcome act(peer& /*p*/, const model_answer::drop& s) {
    return s.reset ? outcome::reset : outcome::close;
  }
  static outcome next(peer& p) {
    ++p.step;
    p.done = 0;
    return outcome::on;
  }

  inline static std::atomic<std::size_t> next_id_ = 1;
  const std::size_t id_ = next_id_++;
  int listening_ = -1;
  int epoll_ = -1;
  int wake_ = -1;
  std::atomic<bool> ending_ = false;
  std::vector<gate_ptr> gates_; ///< these four: the thread alone
  peer_map peers_;
  bool woken_ = false;
  int timed_ = 0; ///< peers that wait for time
  std::thread thread_;
};

model_endpoint::model_endpoint(model_handler handler)
    : server_(std::make_unique<server>(std::move(handler))) {}

model_endpoint::~model_endpoint() = default;

std::string model_endpoint::origin() const {
  return "http://127.0.0.1:" + std::to_string(server_->port_);
}

std::string model_endpoint::base_url() const {
  return origin() + "/v1";
}

void model_endpoint::handle_with(model_handler handler) {
  const std::lock_guard lock(server_->mutex_);
  server_->handler_ = std::move(handler);
}

model_endpoint& model_endpoint::then(model_answer answer) {
  const std::lock_guard lock(server_->mutex_);
  server_->script_.push_back(std::move(answer));
  return *this;
}

std::vector<model_request> model_endpoint::requests() const {
  const std::lock_guard lock(server_->mutex_);
  return server_->requests_;
}

std::size_t model_endpoint::requests_count() const {
  const std::lock_guard lock(server_->mutex_);
  return server_->requests_count_;
}

bool model_endpoint::wait_for_requests(std::size_t n) const {
  std::unique_lock lock(server_->mutex_);
  return server_->changed_.wait_for(lock, patience, [&] { return server_->requests_count_ >= n; });
}

std::size_t model_endpoint::connections_made() const {
  const std::lock_guard lock(server_->mutex_);
  return server_->made_;
}

std::size_t model_endpoint::connections_open() const {
  const std::lock_guard lock(server_->mutex_);
  return server_->open_;
}

bool model_endpoint::wait_for_open_connections(std::size_t n) const {
  std::unique_lock lock(server_->mutex_);
  return server_->changed_.wait_for(lock, patience, [&] { return server_->open_ == n; });
}

void model_endpoint::keep_no_requests() {
  const std::lock_guard lock(server_->mutex_);
  server_->keep_ = false;
}

} // namespace boyd::test
