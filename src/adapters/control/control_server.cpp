#include "control_server.hpp"

#include "../signals_blocked.hpp"
#include "boyd/core/signal_stack.hpp"
#include "boyd/faults/points.hpp"
#include "connection_internal.hpp"
#include "mailbox_internal.hpp"
#include "socket_place_internal.hpp"

#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <set>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace boyd::adapters {

namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;
using control_detail::connection;
using control_detail::listening_socket;
using control_detail::mailbox;
using control_detail::owned_fd;

/// Accepted in one go, before others have their turn.
constexpr int accept_batch = 16;
/// When the process is out of descriptors, trying at once again would only burn a processor.
constexpr milliseconds accept_pause = 100ms;
constexpr int unavailable = 503;
/// A client that has been silent for so long gives way to a new one when all places are taken.
constexpr milliseconds silence_borne = 1s;

class server final : public control_server, public control_detail::connection_host {
 public:
  server(control_server_options chosen, listening_socket listening)
      : options_(std::move(chosen)), listening_(std::move(listening)), acceptor_(io_), pause_(io_),
        grace_(io_), file_look_(io_), mail_(std::make_shared<mailbox>(io_)) {
    acceptor_.assign(stream_protocol(), listening_.fd.release());
    await_client();
    look_after_file();
    const signals_blocked quiet;
    thread_ = std::thread([this] { run(); });
    ::pthread_setname_np(thread_.native_handle(), "boyd-http");
  }
  ~server() override { server::stop(); }
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  void stop() override;

 private:
  const control_server_options& options() const override { return options_; }
  const std::shared_ptr<mailbox>& mail() const override { return mail_; }
  const std::shared_ptr<control_detail::requests_in_flight>& in_flight() const override {
    return in_flight_;
  }
  void forget(const std::shared_ptr<connection>& gone) override;

  void run();
  void await_client();
  void accept_clients();
  void note_accepting(bool now, int why = 0);
  void look_after_file();
  void make_file_anew();
  void welcome(owned_fd client);
  bool make_room();
  void begin_stop();

  control_server_options options_;
  listening_socket listening_;
  asio::io_context io_{1};
  stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  asio::steady_timer grace_;
  asio::steady_timer file_look_;
  std::shared_ptr<mailbox> mail_;
  std::shared_ptr<control_detail::requests_in_flight> in_flight_ =
      std::make_shared<control_detail::requests_in_flight>();
  std::set<std::shared_ptr<connection>> connections_;
  bool stopping_ = false;
  bool file_failed_ = false; ///< the file could not be made anew, and that was told
  bool accepting_ = true;    ///< false while the system gives no descriptor for a client
  std::mutex stop_mutex_;
  std::thread thread_;
};

void server::run() {
  give_signal_stack();
  const auto keep_running =
      asio::require(io_.get_executor(), asio::execution::outstanding_work.tracked);
  while (!io_.stopped()) {
    try {
      io_.run();
    } catch (const std::exception& e) {
      spdlog::error("control socket: {}", e.what());
    }
  }
  const auto open = connections_;
  for (const auto& one : open)
    one->close();
}

void server::await_client() {
  acceptor_.async_wait(stream_protocol::acceptor::wait_read, [this](error_code ec) {
    if (!ec && !stopping_)
      accept_clients();
  });
}

/// Our own accept4: Asio's leaves the descriptor open in child processes.
void server::accept_clients() {
  for (int i = 0; i < accept_batch; ++i) {
    // Not twice in a row: a fault without end must be possible to end over this very socket.
    const bool refused = accepting_ && !faults::pass("control.accept");
    owned_fd client(refused ? -1
                            : ::accept4(acceptor_.native_handle(), nullptr, nullptr,
                                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int why = refused ? EMFILE : errno;
    if (client) {
      try {
        welcome(std::move(client));
      } catch (const std::exception& e) {
        spdlog::error("control socket: cannot accept a client: {}", e.what());
      }
      continue;
    }
    if (why == EINTR || why == ECONNABORTED)
      continue;
    if (why == EAGAIN || why == EWOULDBLOCK) {
      // Nobody waits, and there was a descriptor for one; a single client taken says less.
      note_accepting(true);
      break;
    }
    note_accepting(false, why);
    pause_.expires_after(accept_pause);
    pause_.async_wait([this](error_code ec) {
      if (!ec && !stopping_)
        accept_clients();
    });
    return;
  }
  await_client();
}

/// One line at each end of a shortage: it is tried again ten times a second.
void server::note_accepting(bool now, int why) {
  if (now == accepting_)
    return;
  accepting_ = now;
  if (now)
    spdlog::info("control socket: accepting clients again");
  else
    spdlog::warn("control socket: cannot accept clients: {}; trying again",
                 std::generic_category().message(why));
}

/// Without its file nobody can reach the node, and nothing else would tell.
void server::look_after_file() {
  file_look_.expires_after(options_.file_check);
  file_look_.async_wait([this](error_code ec) {
    if (ec || stopping_)
      return;
    if (listening_.is_lost())
      make_file_anew();
    look_after_file();
  });
}

void server::make_file_anew() {
  auto fresh = control_detail::listen_at(options_.socket_path);
  error_code failed;
  if (fresh) {
    acceptor_.close(failed);
    acceptor_.assign(stream_protocol(), fresh->fd.get(), failed);
  }
  if (!fresh || failed) {
    if (fresh)
      fresh->remove_file();
    if (!std::exchange(file_failed_, true))
      spdlog::error(
          "control socket: the file is gone and cannot be created again: {}; trying again",
          fresh ? failed.message() : to_string(fresh.error()));
    return;
  }
  fresh->fd.release();
  listening_ = std::move(*fresh);
  file_failed_ = false;
  spdlog::warn("control socket: the file was gone and has been created again: {}",
               options_.socket_path);
  await_client();
}

/// Ends the connection whose client has been silent the longest; false when none has been for long
/// enough.
bool server::make_room() {
  std::shared_ptr<connection> longest;
  for (const auto& one : connections_)
    if (one->silent_since() && (!longest || *one->silent_since() < *longest->silent_since()))
      longest = one;
  if (!longest || std::chrono::steady_clock::now() - *longest->silent_since() < silence_borne)
    return false;
  longest->close();
  return true;
}

void server::welcome(owned_fd client) {
  const auto [user, pid] = control_detail::peer_of(client.get());
  if (user != 0 && user != static_cast<std::int64_t>(::geteuid())) {
    const error why{errc::refused, "the control socket is only for its owner", "",
                    "run as the node's user"};
    return control_detail::send_at_once(client.get(), error_response(why));
  }
  if (connections_.size() >= options_.max_connections && !make_room()) {
    auto full = error_response(
        error{errc::overloaded, "too many clients on the control socket", "", "try again"});
    full.status = unavailable;
    full.retry_after = 1;
    return control_detail::send_at_once(client.get(), full);
  }
  stream_protocol::socket socket(io_);
  error_code failed;
  socket.assign(stream_protocol(), client.get(), failed);
  if (failed) {
    spdlog::warn("control socket: cannot accept a client: {}", failed.message());
    return;
  }
  const int client_descriptor = client.release();
  std::shared_ptr<const http_peer> peer;
  if (control_detail::has_left(client_descriptor))
    peer = std::make_shared<const http_peer>(
        http_peer{"a client that has left", "the client has left"});
  else if (options_.look_at_peer)
    peer = std::make_shared<const http_peer>(options_.look_at_peer(pid, user));
  const auto fresh = std::make_shared<connection>(*this, std::move(socket), std::move(peer));
  connections_.insert(fresh);
  fresh->start();
}

void server::forget(const std::shared_ptr<connection>& gone) {
  connections_.erase(gone);
  if (stopping_ && connections_.empty())
    io_.stop();
}

void server::begin_stop() {
  stopping_ = true;
  listening_.remove_file();
  file_look_.cancel();
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  const auto open = connections_; // they leave the set while they close
  for (const auto& one : open)
    one->shut_down();
  if (connections_.empty())
    return io_.stop();
  grace_.expires_after(http_stop_grace);
  grace_.async_wait([this](error_code) { io_.stop(); });
}

void server::stop() {
  if (std::this_thread::get_id() == thread_.get_id()) {
    spdlog::critical("control socket: stop() was called on the server's own thread");
    return;
  }
  const std::lock_guard lock(stop_mutex_);
  if (!thread_.joinable())
    return;
  mail_->post([this] { begin_stop(); });
  thread_.join();
  mail_->close();
}

} // namespace

result<std::unique_ptr<control_server>> start_control_server(control_server_options options) {
  if (!options.on_request)
    return fail(errc::invalid_argument, "a control server needs a handler", options.socket_path);
  auto listening = control_detail::listen_at(options.socket_path);
  if (!listening)
    return fail(listening.error());
  try {
    return std::make_unique<server>(std::move(options), std::move(*listening));
  } catch (const std::exception& e) {
    return fail(errc::io_error, std::string("cannot serve the control socket: ") + e.what());
  }
}

} // namespace boyd::adapters
