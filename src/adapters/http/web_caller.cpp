#include "web_caller.hpp"

#include "boyd/core/signal_stack.hpp"
#include "boyd/core/web_address.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace boyd::adapters {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int most_calls = 4;
constexpr milliseconds end_patience = 2s;
constexpr milliseconds cancel_patience = 1s;
/// How often a call looks whether it is cancelled.
constexpr milliseconds look_every = 100ms;
constexpr std::uint32_t head_bytes = 16u << 10;
constexpr unsigned http_version = 11;
constexpr unsigned good_from = 200;
constexpr unsigned good_below = 300;

/// What outlives the caller when a call cannot be cancelled.
struct calls {
  std::mutex mutex;
  std::condition_variable ended;
  int under_way = 0;
  std::atomic<bool> cancelled = false;

  bool begin() {
    const std::lock_guard lock(mutex);
    if (under_way >= most_calls)
      return false;
    ++under_way;
    return true;
  }
  void end() {
    const std::lock_guard lock(mutex);
    --under_way;
    ended.notify_all();
  }
  bool wait(milliseconds limit) {
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, limit, [&] { return under_way == 0; });
  }
};

/// One call, on its thread: each step is begun, and waited for.
class call {
 public:
  call(const calls& all, const web_address& to, milliseconds limit)
      : all_(all), to_(to), limit_(limit), stream_(io_) {}

  result<void> run() {
    error_code ec;
    tcp::resolver names(io_);
    const auto found = names.resolve(to_.host, to_.port, ec);
    if (ec)
      return failed(ec);
    stream_.expires_after(limit_);
    ec = wait([&](auto done) { stream_.async_connect(found, std::move(done)); });
    if (!ec)
      ec = to_.secure ? ask_encrypted() : ask(stream_);
    if (ec)
      return failed(ec);
    if (status_ < good_from || status_ >= good_below)
      return fail(errc::refused, "it answered with status " + std::to_string(status_),
                  to_.origin());
    return {};
  }

 private:
  template <class Begin>
  error_code wait(Begin begin) {
    std::optional<error_code> end;
    begin([&end](const error_code& ec, auto&&...) { end = ec; });
    io_.restart();
    while (!end) {
      io_.run_one_for(look_every);
      if (!end && all_.cancelled)
        stream_.close();
    }
    return *end;
  }

  template <class Stream>
  error_code ask(Stream& stream) {
    http::request<http::empty_body> question{http::verb::get, to_.target, http_version};
    const auto origin = to_.origin();
    question.set(http::field::host, origin.substr(origin.find("//") + 2));
    question.set(http::field::user_agent, "boyd");
    question.set(http::field::connection, "close");
    if (const auto ec =
            wait([&](auto done) { http::async_write(stream, question, std::move(done)); }))
      return ec;
    beast::flat_buffer buffer(head_bytes);
    http::parser<false, http::empty_body> head;
    head.header_limit(head_bytes);
    const auto ec =
        wait([&](auto done) { http::async_read_header(stream, buffer, head, std::move(done)); });
    status_ = head.get().result_int();
    return ec;
  }

  error_code ask_encrypted() {
    error_code ec;
    asio::ssl::context trusted(asio::ssl::context::tls_client);
    trusted.set_default_verify_paths(ec);
    if (ec)
      return ec;
    asio::ssl::stream<beast::tcp_stream&> stream(stream_, trusted);
    stream.set_verify_mode(asio::ssl::verify_peer, ec);
    if (!ec)
      stream.set_verify_callback(asio::ssl::host_name_verification(to_.host), ec);
    if (ec)
      return ec;
    // Which of its names the server is asked for; it has no failure that matters here.
    SSL_set_tlsext_host_name(stream.native_handle(), to_.host.c_str());
    ec = wait([&](auto done) {
      stream.async_handshake(asio::ssl::stream_base::client, std::move(done));
    });
    return ec ? ec : ask(stream);
  }

  result<void> failed(const error_code& ec) const {
    if (all_.cancelled)
      return fail(errc::cancelled, "the node ends", to_.origin());
    if (ec == beast::error::timeout)
      return fail(errc::timed_out, "no answer within " + format_duration(limit_), to_.origin());
    if (ec.category() == asio::error::get_ssl_category())
      return fail(errc::refused, "no trusted connection: " + ec.message(), to_.origin());
    return fail(errc::io_error, ec.message(), to_.origin());
  }

  const calls& all_;
  const web_address& to_;
  milliseconds limit_;
  asio::io_context io_{1};
  beast::tcp_stream stream_;
  unsigned status_ = 0;
};

class beast_caller final : public web_caller {
 public:
  ~beast_caller() override {
    if (calls_->wait(end_patience))
      return;
    calls_->cancelled = true;
    (void)calls_->wait(cancel_patience);
  }

  void get(const std::string& url, milliseconds limit,
           std::function<void(const result<void>&)> done) override {
    auto address = parse_web_address(url);
    if (!address)
      return done(fail(std::move(address.error())));
    if (!calls_->begin())
      return done(fail(errc::overloaded, "too many calls are under way", address->origin()));
    try {
      std::thread([all = calls_, to = *address, limit, done] {
        give_signal_stack();
        done(call(*all, to, limit).run());
        all->end();
      }).detach();
    } catch (const std::system_error& e) {
      calls_->end();
      done(fail(errc::overloaded, std::string("no thread for it: ") + e.what(), address->origin()));
    }
  }

 private:
  std::shared_ptr<calls> calls_ = std::make_shared<calls>();
};

} // namespace

std::shared_ptr<web_caller> make_web_caller() {
  return std::make_shared<beast_caller>();
}

} // namespace boyd::adapters
