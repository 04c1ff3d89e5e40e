#include "control_client.hpp"

#include "boyd/core/limits.hpp"
#include "http_text_internal.hpp"
#include "socket_place_internal.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using control_detail::owned_fd;
using control_detail::socket_place;

constexpr std::size_t read_bytes = 64u << 10;
/// How often `keep_going` is asked, and how long a full backlog is waited for.
constexpr milliseconds ask_again = 200ms;
constexpr milliseconds connect_again = 20ms;
constexpr int good_from = 200;
constexpr int good_below = 300;

steady_time steady_now() {
  return std::chrono::time_point_cast<milliseconds>(std::chrono::steady_clock::now());
}

error no_node(const std::string& path) {
  return error{errc::not_found, "no node is running", path, "start the node: boyd node"};
}

error broken(int number, const std::string& path) {
  return error{errc::io_error,
               "the connection to the node broke: " + std::generic_category().message(number), path,
               "check whether the node still runs: boyd status"};
}

/// How long to wait and who may end it.
class patience {
 public:
  patience(milliseconds timeout, const std::function<bool()>& keep_going)
      : keep_going_(keep_going), limited_(timeout != milliseconds::max()), timeout_(timeout),
        start_(steady_now()) {}

  /// Waits for `events` on `fd` (-1: only waits).
  result<void> wait(int fd, short events, milliseconds at_most = milliseconds::max()) const {
    const auto end = at_most == milliseconds::max() ? at_most : elapsed() + at_most;
    for (;;) {
      if (keep_going_ && !keep_going_())
        return fail(errc::cancelled, "stopped waiting for the node");
      const auto now = elapsed();
      if (limited_ && now >= timeout_)
        return fail(errc::timed_out, "the node did not answer in time", "",
                    "check the node: boyd status");
      if (now >= end)
        return {};
      auto turn = std::min({ask_again, end - now});
      if (limited_)
        turn = std::min(turn, timeout_ - now);
      pollfd one{fd, events, 0};
      const int ready = ::poll(&one, 1, static_cast<int>(turn.count()));
      if (ready > 0)
        return {};
      if (ready < 0 && errno != EINTR)
        return fail(broken(errno, ""));
    }
  }

 private:
  milliseconds elapsed() const { return steady_now() - start_; }

  const std::function<bool()>& keep_going_;
  bool limited_;
  milliseconds timeout_;
  steady_time start_;
};

result<owned_fd> connect_to(const std::string& path, const patience& wait) {
  const auto place = socket_place::open(path);
  if (!place && (place.error().code == errc::not_found))
    return fail(no_node(path));
  if (!place)
    return fail(place.error());
  for (;;) {
    int number = 0;
    auto fd = place->connect(number);
    if (fd) {
      const auto owner = control_detail::peer_user(fd.get());
      const auto me = static_cast<std::int64_t>(::geteuid());
      if (owner != me && owner != 0 && me != 0)
        return fail(errc::refused, "the control socket belongs to another user", path);
      return fd;
    }
    if (number == ENOENT || number == ECONNREFUSED)
      return fail(no_node(path));
    if (number != EAGAIN && number != EINTR)
      return fail(broken(number, path));
    // The node's backlog is full.
    if (auto waited = wait.wait(-1, 0, connect_again); !waited)
      return fail(waited.error());
  }
}

/// Sends all. A server that refuses stops reading, but its answer can still be read: a broken pipe
/// is no failure here.
result<void> send_all(int fd, std::string_view text, const std::string& path,
                      const patience& wait) {
  while (!text.empty()) {
    const auto sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EPIPE || errno == ECONNRESET)
      return {};
    if (errno != EAGAIN && errno != EINTR)
      return fail(broken(errno, path));
    if (auto ready = wait.wait(fd, POLLOUT); !ready)
      return fail(ready.error());
  }
  return {};
}

result<std::string> request_text(const http_request& request) {
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (request.method.empty() || !std::ranges::all_of(request.method, is_letter))
    return fail(errc::invalid_argument, "not an HTTP method: " + request.method);
  if (!request.path.starts_with('/'))
    return fail(errc::invalid_argument, "a path begins with '/': " + request.path);
  return request.method + " " + control_detail::write_target(request) +
         " HTTP/1.1\r\nHost: boyd\r\nConnection: close\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(request.body.size()) + "\r\n\r\n" + request.body;
}

/// Cuts what arrives into lines.
class line_cutter {
 public:
  line_cutter(const std::function<bool(std::string_view)>& on_line,
              const std::function<void()>& on_open)
      : on_line_(on_line), on_open_(on_open) {}

  /// The head of a good answer is there.
  void open() {
    if (!std::exchange(opened_, true) && on_open_)
      on_open_();
  }

  void take(std::string_view data) {
    while (!data.empty() && going()) {
      const auto end = data.find('\n');
      const auto piece = data.substr(0, end);
      if (rest_.size() + piece.size() > http_line_bytes) {
        too_long_ = true;
        return;
      }
      rest_ += piece;
      if (end == std::string_view::npos)
        return;
      finish();
      data.remove_prefix(end + 1);
    }
  }
  void finish() {
    if (!rest_.empty() && going())
      stopped_ = !on_line_(rest_);
    rest_.clear();
  }

  bool going() const { return !stopped_ && !too_long_; }
  bool too_long() const { return too_long_; }

 private:
  const std::function<bool(std::string_view)>& on_line_;
  const std::function<void()>& on_open_;
  std::string rest_;
  bool opened_ = false;
  bool stopped_ = false;
  bool too_long_ = false;
};

/// Reads one answer; with `lines`, the body of a good one goes there instead.
class answer_reader {
 public:
  answer_reader(int fd, const std::string& path, const patience& wait, line_cutter* lines)
      : fd_(fd), path_(path), wait_(wait), lines_(lines) {
    parser_.header_limit(static_cast<std::uint32_t>(limits::http_head_bytes));
    parser_.body_limit(lines == nullptr ? http_answer_bytes : std::uint64_t{1} << 62);
    take_chunk_ = [this](std::uint64_t, boost::beast::string_view data, error_code&) {
      auto& body = parser_.get().body();
      if (lines_ != nullptr && is_good())
        lines_->take({data.data(), data.size()});
      else
        body.append(data.data(), data.size());
      return data.size();
    };
    parser_.on_chunk_body(take_chunk_);
  }
  answer_reader(const answer_reader&) = delete;
  answer_reader& operator=(const answer_reader&) = delete;

  result<http_response> read() {
    while (!parser_.is_done() && (lines_ == nullptr || lines_->going())) {
      if (auto more = parse(); !more)
        return fail(more.error());
      if (parser_.is_done() || (lines_ != nullptr && !lines_->going()))
        break;
      if (parser_.get().body().size() > http_answer_bytes)
        return fail(errc::limit_exceeded, "the node's answer is too large", path_);
      if (auto filled = fill(); !filled)
        return fail(filled.error());
    }
    auto& message = parser_.get();
    const auto type = message[http::field::content_type];
    return http_response{static_cast<int>(message.result_int()),
                         std::string(type.data(), type.size()), std::move(message.body())};
  }

 private:
  bool is_good() const {
    const auto status = static_cast<int>(parser_.get().result_int());
    return status >= good_from && status < good_below;
  }

  result<void> parse() {
    while (!pending_.empty() && !parser_.is_done()) {
      error_code ec;
      const auto used = parser_.put(boost::asio::buffer(pending_), ec);
      pending_.erase(0, used);
      if (lines_ != nullptr && parser_.is_header_done() && is_good())
        lines_->open();
      if (ec == http::error::need_more)
        return {};
      if (ec == http::error::body_limit)
        return fail(errc::limit_exceeded, "the node's answer is too large", path_);
      if (ec)
        return fail(errc::parse_error, "the node's answer is not HTTP: " + ec.message(), path_);
      if (used == 0)
        return {};
    }
    return {};
  }

  result<void> fill() {
    if (pending_.size() > 2 * read_bytes)
      return fail(errc::parse_error, "the node's answer is not HTTP: a line is too long", path_);
    for (;;) {
      if (auto ready = wait_.wait(fd_, POLLIN); !ready)
        return fail(ready.error());
      const auto got = ::recv(fd_, piece_.data(), piece_.size(), MSG_DONTWAIT);
      if (got > 0) {
        pending_.append(piece_.data(), static_cast<std::size_t>(got));
        return {};
      }
      if (got < 0 && (errno == EAGAIN || errno == EINTR))
        continue;
      error_code ec;
      if (got == 0 && parser_.is_header_done())
        parser_.put_eof(ec);
      if (got == 0 && parser_.is_done())
        return {};
      return fail(broken(got < 0 ? errno : ECONNRESET, path_));
    }
  }

  int fd_;
  const std::string& path_;
  const patience& wait_;
  line_cutter* lines_;
  http::response_parser<http::string_body> parser_;
  std::function<std::size_t(std::uint64_t, boost::beast::string_view, error_code&)> take_chunk_;
  std::string pending_;
  std::array<char, read_bytes> piece_{};
};

result<http_response> exchange(const std::string& path, const http_request& request,
                               const patience& wait, line_cutter* lines) {
  const auto text = request_text(request);
  if (!text)
    return fail(text.error());
  const auto fd = connect_to(path, wait);
  if (!fd)
    return fail(fd.error());
  if (auto sent = send_all(fd->get(), *text, path, wait); !sent)
    return fail(sent.error());
  const auto reader = std::make_unique<answer_reader>(fd->get(), path, wait, lines);
  return reader->read();
}

/// `exchange` with the libraries' exceptions caught.
result<http_response> guarded_exchange(const std::string& path, const http_request& request,
                                       const patience& wait, line_cutter* lines) {
  try {
    return exchange(path, request, wait, lines);
  } catch (const std::exception& e) {
    return fail(errc::io_error, std::string("cannot ask the node: ") + e.what(), path);
  }
}

} // namespace

result<http_response> control_call(const std::string& socket_path, const http_request& request,
                                   milliseconds timeout, const std::function<bool()>& keep_going) {
  return guarded_exchange(socket_path, request, patience(timeout, keep_going), nullptr);
}

result<void> control_stream(const std::string& socket_path, const http_request& request,
                            const std::function<bool(std::string_view line)>& on_line,
                            const std::function<bool()>& keep_going,
                            const std::function<void()>& on_open) {
  line_cutter lines(on_line, on_open);
  auto answer =
      guarded_exchange(socket_path, request, patience(milliseconds::max(), keep_going), &lines);
  if (lines.too_long())
    return fail(errc::limit_exceeded, "a line of the node's events is too long", socket_path);
  if (!answer && answer.error().code == errc::cancelled)
    return {};
  if (!answer)
    return fail(answer.error());
  if (answer->status < good_from || answer->status >= good_below)
    return fail(error_of(*answer));
  lines.take(answer->body); // a body that was not chunked
  lines.finish();
  return {};
}

} // namespace boyd::adapters
