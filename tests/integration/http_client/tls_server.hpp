#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

namespace boyd::test {

/// A TLS server on loopback with a certificate of its own for "localhost" and 127.0.0.1, valid for
/// an hour. It answers each request with "ok" and takes one connection after the other. With
/// HTTP/2 (RFC 9113; as much of it as this needs) it answers only when so many requests are open on
/// one connection.
class tls_server {
 public:
  /// `open_together` 0: HTTP/1.1 only.
  explicit tls_server(std::size_t open_together = 0);
  ~tls_server();
  tls_server(const tls_server&) = delete;
  tls_server& operator=(const tls_server&) = delete;

  /// "https://HOST:PORT".
  std::string origin(const std::string& host = "localhost") const;
  /// A file with the certificate; removed at the end.
  const std::string& certificate_file() const { return file_; }
  /// Connections whose handshake came through.
  std::size_t connections() const { return connections_; }
  std::size_t requests() const { return requests_; }

 private:
  struct session;
  struct context;

  void serve();
  void talk(session& s);
  void talk_http1(session& s);
  void talk_http2(session& s);

  const std::size_t open_together_;
  std::unique_ptr<context> context_;
  std::string file_;
  int listening_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::size_t> requests_ = 0;
  std::thread thread_;
};

} // namespace boyd::test
