#pragma once

#include "integration/control/raw_client.hpp"
#include "src/adapters/control/control_client.hpp"
#include "src/adapters/control/control_server.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::test {

using adapters::control_server;
using adapters::control_server_options;
using adapters::event_stream;
using adapters::http_request;
using adapters::http_response;

/// A server in a directory of its own.
class served {
 public:
  using responder = std::function<void(http_response)>;

  /// `tune` changes the options before the start. Without on_request the server echoes: "method
  /// path?k=v bytes=N", and holds back answers of "/hold" (see `held`).
  explicit served(const std::function<void(control_server_options&)>& tune = {});

  const std::string& path() const { return path_; }
  control_server& server() { return *server_; }
  void destroy() { server_.reset(); }
  /// Waits for request number `n` (from 1) to "/hold" and gives its responder.
  responder held(std::size_t n);
  /// Waits for stream number `n`.
  std::shared_ptr<event_stream> stream(std::size_t n);
  void let_streams_go();
  /// True when an ordinary request works.
  bool is_well();

  temp_dir dir;

 private:
  std::string path_;
  std::mutex mutex_;
  std::vector<responder> held_;
  std::vector<std::shared_ptr<event_stream>> streams_;
  event_latch requests_held_;
  event_latch streams_opened_;
  std::unique_ptr<control_server> server_;
};

/// "GET target HTTP/1.1" with a Host and the lines of `headers`.
std::string get(std::string_view target, std::string_view headers = "");

/// How often `what` occurs.
std::size_t count_of(std::string_view text, std::string_view what);

} // namespace boyd::test
