#include "fuzz/target.hpp"
#include "integration/control/raw_client.hpp"
#include "src/adapters/control/control_server.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>

namespace boyd::fuzz {
namespace {

/// A control server that answers every request with its length, and lives as long as the process.
class server {
 public:
  server() {
    adapters::control_server_options options;
    options.socket_path = path_;
    options.on_request = [](const adapters::http_request& request, auto respond) {
      require(!request.path.empty() && request.path.front() == '/', "a path begins with a slash");
      require(request.path.find('\0') == std::string::npos, "a path has no NUL");
      require(request.path.find("/../") == std::string::npos, "a path has no dots");
      require(request.body.size() <= limits::http_body_bytes, "a body is within its limit");
      respond({200, "text/plain", std::to_string(request.body.size())});
    };
    auto started = adapters::start_control_server(std::move(options));
    require(started.has_value(), "the server starts");
    server_ = std::move(*started);
  }

  const std::string& path() const { return path_; }

 private:
  test::temp_dir dir_;
  std::string path_ = dir_.file("control.sock");
  std::unique_ptr<adapters::control_server> server_;
};

/// Any bytes on the socket get well-formed answers or a closed connection, and the next client is
/// served.
void run(std::string_view input) {
  static server only;
  {
    test::raw_client client(only.path());
    client.send(input);
    client.end_of_sending();
    const auto answer = client.read_all();
    require(answer.empty() || answer.rfind("HTTP/1.", 0) == 0, "an answer is HTTP or nothing");
  }
  test::raw_client next(only.path());
  next.send("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto answer = next.read_all();
  require(answer.rfind("HTTP/1.1 200 ", 0) == 0, "the next client is served");
}

const registration registered{"http_request", run};

} // namespace
} // namespace boyd::fuzz
