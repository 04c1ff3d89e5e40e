#include "boyd/faults/points.hpp"
#include "connection_internal.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <poll.h>
#include <sys/socket.h>
#include <utility>

namespace boyd::adapters::control_detail {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

/// Holds a whole head, or a chunk's line and its neighbours.
constexpr std::size_t buffer_bytes = 32u << 10;
constexpr std::size_t read_bytes = 4096;
/// After a refusal the client may still be sending: so much is read and thrown away, so that it
/// gets to read the answer instead of a reset.
constexpr std::size_t linger_bytes = 4u << 20;
constexpr milliseconds linger_time = 1s;
/// What is asked about the faults themselves (docs/control-api.md).
constexpr std::string_view faults_path = "/api/v1/chaos";
constexpr int too_late = 408;
constexpr int head_too_large = 431;
constexpr int expectation_failed = 417;
constexpr int not_implemented = 501;
constexpr int unavailable = 503;
/// Waits that may be under way for each client that there may be: they last, and some are those of
/// clients that have left.
constexpr std::size_t waits_per_client = 4;
/// The same for all other requests.
constexpr std::size_t requests_per_client = 2;
/// Requests for /healthz and /readyz: whoever watches the node is not one in the crowd.
constexpr std::size_t most_health = 16;

http_response refusal(int status, errc code, std::string what, std::string next = {}) {
  auto response = error_response(error{code, std::move(what), "request", std::move(next)});
  response.status = status;
  return response;
}

http_response bad_request(std::string what) {
  return refusal(http_status_of(errc::invalid_argument), errc::invalid_argument, std::move(what));
}

/// One request's right to an answer, shared by the copies of `respond`.
class reply_slot {
 public:
  reply_slot(std::shared_ptr<mailbox> mail, std::weak_ptr<connection> to, std::uint64_t request,
             std::shared_ptr<void> place)
      : mail_(std::move(mail)), to_(std::move(to)), request_(request), place_(std::move(place)) {}
  reply_slot(const reply_slot&) = delete;
  reply_slot& operator=(const reply_slot&) = delete;
  ~reply_slot() {
    if (!used_)
      reply(error_response(
          error{errc::actor_down, "the part that should answer has stopped", "", "try again"}));
  }

  void reply(http_response response) {
    if (used_.exchange(true))
      return;
    place_.reset();
    if (to_.expired())
      return;
    mail_->post([to = to_, request = request_, response = std::move(response)] {
      if (const auto connection = to.lock())
        connection->answer(request, response);
    });
  }

 private:
  std::shared_ptr<mailbox> mail_;
  std::weak_ptr<connection> to_;
  std::uint64_t request_;
  std::shared_ptr<void> place_; ///< among the requests in flight
  std::atomic<bool> used_ = false;
};

} // namespace

connection::connection(connection_host& host, socket_type socket,
                       std::shared_ptr<const http_peer> peer)
    : host_(host), socket_(std::move(socket)), peer_(std::move(peer)),
      deadline_(socket_.get_executor()), late_(socket_.get_executor()), buffer_(buffer_bytes) {}

void connection::start() {
  read_head();
}

std::optional<std::chrono::steady_clock::time_point> connection::silent_since() const {
  return phase_ == phase::idle || phase_ == phase::head ? std::optional(since_) : std::nullopt;
}

void connection::shut_down() {
  stopping_ = true;
  switch (phase_) {
  case phase::handling:
    return answer(number_, error_response(error{errc::actor_down, "the node is stopping", "", ""}));
  case phase::streaming:
    return pipe_->finish();
  case phase::writing:
  case phase::closed:
    return;
  default:
    close();
  }
}

void connection::await_request() {
  if (buffer_.size() > 0)
    return read_head();
  phase_ = phase::idle;
  since_ = std::chrono::steady_clock::now();
  arm(host_.options().idle_timeout);
  socket_.async_read_some(buffer_.prepare(read_bytes),
                          [self = shared_from_this()](error_code ec, std::size_t bytes) {
                            if (self->phase_ != phase::idle)
                              return;
                            if (ec)
                              return self->close();
                            self->buffer_.commit(bytes);
                            self->read_head();
                          });
}

void connection::read_head() {
  phase_ = phase::head;
  since_ = std::chrono::steady_clock::now();
  arm(host_.options().head_timeout);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits::http_head_bytes));
  parser_->body_limit(limits::http_body_bytes);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](error_code ec, std::size_t bytes) {
                            if (self->phase_ == phase::head)
                              self->on_head(ec, bytes);
                          });
}

void connection::on_head(error_code ec, std::size_t bytes) {
  if (ec)
    return on_read_failure(ec);
  if (const auto refused = check_head(bytes))
    return reject(*refused);
  phase_ = phase::body;
  if (parser_->is_done())
    return handle();
  arm(host_.options().body_timeout);
  if (parser_->get().find(http::field::expect) == parser_->get().end())
    return read_body();
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this()](error_code failed, std::size_t) {
                      if (self->phase_ != phase::body)
                        return;
                      failed ? self->close() : self->read_body();
                    });
}

/// What Beast lets pass and we do not; reads the target.
std::optional<http_response> connection::check_head(std::size_t bytes) {
  const auto& head = parser_->get();
  const auto count = static_cast<std::size_t>(std::distance(head.begin(), head.end()));
  if (bytes > limits::http_head_bytes || count > limits::http_headers)
    return refusal(head_too_large, errc::limit_exceeded, "the head has too many headers or bytes");
  for (const auto single : {http::field::host, http::field::transfer_encoding,
                            http::field::content_length, http::field::expect})
    if (head.count(single) > 1)
      return bad_request("a header is repeated");
  // Anything but plain "chunked" would let two readers see different ends of the body.
  if (const auto coding = head.find(http::field::transfer_encoding); coding != head.end()) {
    if (head.version() < 11 || head.find(http::field::content_length) != head.end())
      return bad_request("Transfer-Encoding together with Content-Length, or in HTTP/1.0");
    if (!boost::beast::iequals(coding->value(), "chunked"))
      return refusal(not_implemented, errc::invalid_argument,
                     "only chunked transfer encoding is supported");
  }
  if (const auto expect = head.find(http::field::expect);
      expect != head.end() && !boost::beast::iequals(expect->value(), "100-continue"))
    return refusal(expectation_failed, errc::invalid_argument, "only 100-continue is supported");
  request_ = {};
  const auto target = head.target();
  if (const auto read = read_target({target.data(), target.size()}, request_); !read)
    return error_response(read.error());
  return std::nullopt;
}

void connection::read_body() {
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](error_code ec, std::size_t) {
                     if (self->phase_ != phase::body)
                       return;
                     ec ? self->on_read_failure(ec) : self->handle();
                   });
}

void connection::on_read_failure(error_code ec) {
  if (ec == http::error::end_of_stream || ec == http::error::partial_message)
    return close();
  if (ec == http::error::header_limit)
    return reject(refusal(head_too_large, errc::limit_exceeded, "the head is too large"));
  if (ec == http::error::body_limit)
    return reject(error_response(
        error{errc::limit_exceeded, "the body is too large", "request", "send at most 1 MiB"}));
  if (ec == http::error::buffer_overflow)
    return reject(refusal(head_too_large, errc::limit_exceeded, "a line is too long"));
  if (ec.category() == http::make_error_code(http::error::bad_method).category())
    return reject(bad_request("not HTTP: " + ec.message()));
  close();
}

void connection::handle() {
  auto& message = parser_->get();
  const auto method = message.method_string();
  head_only_ = message.method() == http::verb::head;
  request_.method = head_only_ ? "GET" : std::string(method.data(), method.size());
  request_.body = std::move(message.body());
  about_faults_ = request_.path.starts_with(faults_path);
  keep_alive_ = parser_->keep_alive();
  chunked_ = message.version() >= 11;
  parser_.reset();
  phase_ = phase::handling;
  ++number_;
  disarm();
  // Its order, if it is one, was given; a question that nobody waits for is none.
  if (request_.method == "GET" && has_left(socket_.native_handle()))
    return close();
  const auto& options = host_.options();
  if (options.on_stream && !head_only_ && request_.method == "GET" && request_.path == events_path)
    return open_stream(std::exchange(request_, {}));
  const auto wait = request_.query.find("wait");
  const bool waits = wait != request_.query.end() && wait->second == "1";
  const bool health = request_.path == "/healthz" || request_.path == "/readyz";
  auto place = take_place(waits, health);
  if (!place) {
    auto full = error_response(error{errc::overloaded, "too many requests in progress",
                                     request_.path, "try again in a second"});
    full.status = unavailable;
    full.retry_after = 1;
    return write(full, keep_alive_ && !stopping_ ? after_answer::keep : after_answer::close);
  }
  if (const auto limit = health ? options.health_timeout : options.answer_timeout;
      !waits && limit > 0ms)
    arm(limit);
  watch_peer();
  call_handler(std::exchange(request_, {}), std::move(place));
}

/// A place among the requests in flight, held as long as the result lives; null: all are taken.
/// Connections do not bound them: a client may leave long before its request is answered.
std::shared_ptr<void> connection::take_place(bool waits, bool health) {
  const auto all = host_.in_flight();
  auto* const count = health ? &all->health : waits ? &all->waiting : &all->quick;
  const auto clients = host_.options().max_connections;
  const auto most =
      health ? most_health : clients * (waits ? waits_per_client : requests_per_client);
  if (count->fetch_add(1) >= most) {
    count->fetch_sub(1);
    return nullptr;
  }
  return std::shared_ptr<void>(count, [all](std::atomic<std::size_t>* taken) { --*taken; });
}

void connection::call_handler(http_request request, std::shared_ptr<void> place) {
  request.peer = peer_;
  gone_ = std::make_shared<std::atomic<bool>>(false);
  request.gone = gone_;
  const auto slot =
      std::make_shared<reply_slot>(host_.mail(), weak_from_this(), number_, std::move(place));
  std::string what;
  try {
    host_.options().on_request(
        std::move(request), [slot](http_response response) { slot->reply(std::move(response)); });
    return;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "unknown exception";
  }
  spdlog::error("a request's handler threw: {}", what);
  slot->reply(error_response(error{errc::bug, "the request's handler failed: " + what, "", ""}));
}

/// Only the peer's leaving is waited for, not data: a request that follows stays in the socket, and
/// a client that has only shut down its sending side still gets its answer.
void connection::watch_peer() {
  socket_.async_wait(
      socket_type::wait_error, [self = shared_from_this(), request = number_](error_code ec) {
        const bool waiting = self->phase_ == phase::handling || self->phase_ == phase::streaming;
        if (!ec && waiting && request == self->number_)
          self->close();
      });
}

void connection::answer(std::uint64_t request, const http_response& response) {
  if (phase_ != phase::handling || request != number_)
    return;
  const auto met = about_faults_ ? result<faults::effect>{} : faults::meet("control.reply");
  if (met && met->drops())
    return close();
  if (!met || met->delay <= 0ms)
    return deliver(request, response);
  late_.expires_after(met->delay);
  late_.async_wait([self = shared_from_this(), request, response](error_code ec) {
    if (!ec)
      self->deliver(request, response);
  });
}

void connection::deliver(std::uint64_t request, const http_response& response) {
  if (phase_ != phase::handling || request != number_)
    return;
  if (has_left(socket_.native_handle()))
    return close();
  error_code ignored;
  socket_.cancel(ignored);
  write(response, keep_alive_ && !stopping_ ? after_answer::keep : after_answer::close);
}

void connection::write(const http_response& response, after_answer after) {
  phase_ = phase::writing;
  arm(host_.options().write_timeout);
  out_ = write_answer(response, after, head_only_);
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this(), after](error_code ec, std::size_t) {
                      if (self->phase_ == phase::writing)
                        self->on_written(ec, after);
                    });
}

void connection::on_written(error_code ec, after_answer after) {
  out_ = {};
  if (ec || stopping_ || after == after_answer::close)
    return close();
  await_request();
}

void connection::reject(const http_response& response) {
  phase_ = phase::lingering;
  arm(linger_time);
  out_ = write_answer(response, after_answer::close, false);
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this()](error_code ec, std::size_t) {
                      if (self->phase_ != phase::lingering)
                        return;
                      error_code failed = ec;
                      if (!failed)
                        self->socket_.shutdown(socket_type::shutdown_send, failed);
                      failed ? self->close() : self->linger(linger_bytes);
                    });
}

void connection::linger(std::size_t allowance) {
  socket_.async_read_some(asio::buffer(discarded_), [self = shared_from_this(),
                                                     allowance](error_code ec, std::size_t bytes) {
    if (self->phase_ != phase::lingering)
      return;
    ec || bytes >= allowance ? self->close() : self->linger(allowance - bytes);
  });
}

void connection::open_stream(const http_request& request) {
  phase_ = phase::streaming;
  const auto tell = [mail = host_.mail(), to = weak_from_this()](void (connection::*what)()) {
    return [mail, to, what] {
      mail->post([to, what] {
        if (const auto self = to.lock())
          ((*self).*what)();
      });
    };
  };
  pipe_ = std::make_shared<stream_pipe>(
      stream_pipe::wishes{tell(&connection::pump), tell(&connection::close)});
  watch_peer();
  write_stream(write_stream_head(chunked_), false);
  try {
    host_.options().on_stream(request, make_stream_handle(pipe_));
  } catch (const std::exception& e) {
    spdlog::error("a stream's handler threw: {}", e.what());
    close();
  }
}

void connection::pump() {
  if (phase_ != phase::streaming || stream_busy_)
    return;
  const auto next = pipe_->take();
  if (!next.data.empty())
    write_stream(chunked_ ? write_chunk(next.data) : next.data, false);
  else if (next.ended)
    write_stream(chunked_ ? std::string(last_chunk) : std::string(), true);
}

void connection::write_stream(std::string text, bool last) {
  stream_busy_ = true;
  out_ = std::move(text);
  arm(host_.options().write_timeout);
  asio::async_write(socket_, asio::buffer(out_),
                    [self = shared_from_this(), last](error_code ec, std::size_t) {
                      if (self->phase_ != phase::streaming)
                        return;
                      self->stream_busy_ = false;
                      self->disarm();
                      ec || last ? self->close() : self->pump();
                    });
}

void connection::arm(milliseconds limit) {
  deadline_.expires_after(limit);
  deadline_.async_wait([weak = weak_from_this(), armed = ++armed_](error_code ec) {
    const auto self = ec ? nullptr : weak.lock();
    if (self && armed == self->armed_)
      self->on_deadline();
  });
}

void connection::disarm() {
  ++armed_;
  deadline_.cancel();
}

void connection::on_deadline() {
  switch (phase_) {
  case phase::head:
  case phase::body:
    send_at_once(socket_.native_handle(),
                 refusal(too_late, errc::timed_out, "the request did not arrive in time"));
    return close();
  case phase::handling:
    return answer(number_, error_response(error{errc::timed_out, "no answer in time", "",
                                                "ask again later; see boyd status"}));
  default:
    close();
  }
}

void connection::close() {
  if (phase_ == phase::closed)
    return;
  const auto self = shared_from_this();
  phase_ = phase::closed;
  if (gone_)
    *gone_ = true;
  disarm();
  late_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (pipe_)
    pipe_->close();
  host_.forget(self);
}

bool has_left(int fd) {
  pollfd state{fd, 0, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

void send_at_once(int fd, const http_response& response) {
  const auto text = write_answer(response, after_answer::close, false);
  // A client that cannot take so little now does without.
  [[maybe_unused]] const auto sent =
      ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

} // namespace boyd::adapters::control_detail
