#include "proxy.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <list>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace boyd::test {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_buffered = 1u << 20;
constexpr int backlog = 64;
/// How a simple query of PostgreSQL's protocol ends (manual, Message Formats) that is a COMMIT, or
/// statements sent together with it.
constexpr std::string_view commit_end = "COMMIT\0"sv;

constexpr std::string_view listen_words = "LISTEN boyd_work";

enum class traffic { pass, stall, cut };
enum class commit_cut { none, before, after };

class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

descriptor loopback_socket(sockaddr_in& address, int port) {
  address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// One direction: what was read and is not written yet.
struct flow {
  std::string bytes;

  /// False when the source has ended or failed.
  bool read_from(int fd) {
    std::array<char, 16u << 10> some;
    const auto n = ::recv(fd, some.data(), some.size(), 0);
    if (n > 0)
      bytes.append(some.data(), static_cast<std::size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }

  bool write_to(int fd) {
    if (bytes.empty())
      return true;
    const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0)
      bytes.erase(0, static_cast<std::size_t>(n));
    return n >= 0 || errno == EAGAIN || errno == EINTR;
  }
};

struct link {
  descriptor client;
  descriptor server;
  flow up;           ///< client to server
  flow down;         ///< server to client
  bool deaf = false; ///< its COMMIT went to the server; the client hears nothing any more
  bool listens = false;
  bool ended = false;
};

short wanted(const flow& in, const flow& out) {
  int events = 0;
  if (in.bytes.size() < most_buffered)
    events |= POLLIN;
  if (!out.bytes.empty())
    events |= POLLOUT;
  return static_cast<short>(events);
}

} // namespace

struct tcp_proxy::impl {
  int target = 0;
  int port = 0;
  descriptor listener;
  descriptor wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<traffic> mode{traffic::pass};
  std::atomic<commit_cut> at_commit{commit_cut::none};
  std::atomic<bool> drop_all{false};
  std::atomic<bool> stop{false};
  std::atomic<bool> mute{false};
  std::atomic<std::size_t> muted{0};
  std::atomic<std::size_t> commits{0};
  std::list<link> links;
  std::thread thread;

  void tell() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake.get(), &one, sizeof one);
  }

  void accept_one() {
    descriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client.get() < 0 || mode == traffic::cut)
      return;
    sockaddr_in address;
    auto server = loopback_socket(address, target);
    const auto* raw = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(server.get(), raw, sizeof address) != 0 && errno != EINPROGRESS)
      return;
    send_at_once(client.get());
    send_at_once(server.get());
    links.push_back({std::move(client), std::move(server), {}, {}});
  }

  /// Looks for a COMMIT in what goes up, when one is to be cut.
  void cut_commit(link& l) {
    if (at_commit == commit_cut::none || !l.up.bytes.ends_with(commit_end))
      return;
    const auto how = at_commit.exchange(commit_cut::none);
    ++commits;
    if (how == commit_cut::before)
      l.ended = true;
    else
      l.deaf = true;
  }

  void serve(link& l, const pollfd& client, const pollfd& server) {
    const auto readable = static_cast<short>(POLLIN | POLLHUP | POLLERR);
    if ((client.revents & readable) != 0) {
      l.ended = !l.up.read_from(l.client.get());
      cut_commit(l);
      l.listens = l.listens || l.up.bytes.find(listen_words) != std::string::npos;
    }
    if (!l.ended)
      l.ended = !l.up.write_to(l.server.get());
    if (!l.ended && (server.revents & readable) != 0) {
      l.ended = !l.down.read_from(l.server.get());
      // The answer to the COMMIT is here: it has been carried out, and nobody hears of it.
      l.ended = l.ended || (l.deaf && !l.down.bytes.empty());
    }
    if (l.listens && mute)
      l.down.bytes.clear();
    if (!l.deaf && !l.down.write_to(l.client.get()))
      l.ended = true;
  }

  void turn() {
    const auto now = mode.load();
    std::vector<pollfd> waits{{wake.get(), POLLIN, 0}};
    if (now != traffic::stall) {
      waits.push_back({listener.get(), POLLIN, 0});
      for (const auto& l : links) {
        waits.push_back({l.client.get(), wanted(l.up, l.down), 0});
        waits.push_back({l.server.get(), wanted(l.down, l.up), 0});
      }
    }
    if (::poll(waits.data(), waits.size(), -1) < 0)
      return;
    if (mute)
      muted = static_cast<std::size_t>(
          std::count_if(links.begin(), links.end(), [](const link& l) { return l.listens; }));
    std::uint64_t told = 0;
    [[maybe_unused]] const auto taken = ::read(wake.get(), &told, sizeof told);
    if (drop_all.exchange(false) || mode == traffic::cut)
      links.clear();
    else if (now == traffic::pass && mode == traffic::pass) {
      std::size_t at = 2;
      for (auto& l : links) {
        serve(l, waits[at], waits[at + 1]);
        at += 2;
      }
      links.remove_if([](const link& l) { return l.ended; });
    }
    if (now != traffic::stall && waits[1].revents != 0)
      accept_one();
  }

  void set(traffic t) {
    mode = t;
    tell();
  }
};

tcp_proxy::tcp_proxy(int target_port) : impl_(std::make_unique<impl>()) {
  auto& i = *impl_;
  i.target = target_port;
  sockaddr_in address;
  i.listener = loopback_socket(address, 0);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(i.listener.get(), raw, size) != 0 || ::listen(i.listener.get(), backlog) != 0 ||
      ::getsockname(i.listener.get(), raw, &size) != 0)
    throw std::runtime_error("the proxy cannot listen on loopback");
  i.port = ntohs(address.sin_port);
  i.thread = std::thread([&i] {
    while (!i.stop)
      i.turn();
  });
}

tcp_proxy::~tcp_proxy() {
  impl_->stop = true;
  impl_->tell();
  impl_->thread.join();
}

int tcp_proxy::port() const {
  return impl_->port;
}

void tcp_proxy::pass() {
  impl_->set(traffic::pass);
}

void tcp_proxy::stall() {
  impl_->set(traffic::stall);
}

void tcp_proxy::cut() {
  impl_->set(traffic::cut);
}

void tcp_proxy::drop() {
  impl_->drop_all = true;
  impl_->tell();
}

void tcp_proxy::cut_at_commit(bool forwarded) {
  impl_->at_commit = forwarded ? commit_cut::after : commit_cut::before;
}

void tcp_proxy::mute_listeners() {
  impl_->mute = true;
  impl_->tell();
}

std::size_t tcp_proxy::muted() const {
  return impl_->muted;
}

std::size_t tcp_proxy::commits_cut() const {
  return impl_->commits;
}

} // namespace boyd::test
