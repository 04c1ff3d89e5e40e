#include "integration/http_client/tls_server.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <stdlib.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace boyd::test {

namespace {

constexpr long valid_for_s = 3600;
constexpr int look_ms = 20;
constexpr int patience_ms = 20'000;

void must(bool good) {
  if (!good)
    throw std::runtime_error("no TLS server on loopback");
}

void add_extension(X509* x, int id, const char* value) {
  auto* e = X509V3_EXT_conf_nid(nullptr, nullptr, id, value);
  must(e != nullptr && X509_add_ext(x, e, -1) == 1);
  X509_EXTENSION_free(e);
}

X509* certificate_of(EVP_PKEY* key) {
  auto* x = X509_new();
  must(x != nullptr && X509_set_version(x, X509_VERSION_3) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -valid_for_s);
  X509_gmtime_adj(X509_getm_notAfter(x), valid_for_s);
  X509_set_pubkey(x, key);
  auto* name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(x, name);
  add_extension(x, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(x, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  must(X509_sign(x, key, EVP_sha256()) > 0);
  return x;
}

std::string write_certificate(X509* x) {
  std::string path = "/tmp/boyd-test-ca-XXXXXX";
  const int fd = ::mkstemp(path.data());
  auto* f = fd < 0 ? nullptr : ::fdopen(fd, "w");
  must(f != nullptr && PEM_write_X509(f, x) == 1);
  must(std::fclose(f) == 0);
  return path;
}

int choose_http2(SSL* /*ssl*/, const unsigned char** out, unsigned char* size,
                 const unsigned char* offered, unsigned offered_size, void* /*self*/) {
  static constexpr std::array<unsigned char, 3> h2{2, 'h', '2'};
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, size, h2.data(), h2.size(), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// RFC 9113 §4.1, §6.
enum frame_type : unsigned char { data = 0, headers = 1, settings = 4, ping = 6 };
constexpr unsigned char end_stream = 1;
constexpr unsigned char ack = 1;
constexpr unsigned char end_headers = 4;
constexpr std::size_t frame_head = 9;
constexpr std::size_t preface_bytes = 24;

std::string frame(unsigned char type, unsigned char flags, std::uint32_t stream,
                  std::string_view payload) {
  std::string f;
  for (const unsigned shift : {16u, 8u, 0u})
    f.push_back(static_cast<char>((payload.size() >> shift) & 0xffu));
  f.push_back(static_cast<char>(type));
  f.push_back(static_cast<char>(flags));
  for (const unsigned shift : {24u, 16u, 8u, 0u})
    f.push_back(static_cast<char>((stream >> shift) & 0xffu));
  return f + std::string(payload);
}

} // namespace

struct tls_server::context {
  SSL_CTX* ssl = SSL_CTX_new(TLS_server_method());
  ~context() { SSL_CTX_free(ssl); }
};

/// One connection.
struct tls_server::session {
  SSL* ssl;
  int fd;

  session(SSL_CTX* context, int client) : ssl(SSL_new(context)), fd(client) { SSL_set_fd(ssl, fd); }
  ~session() {
    SSL_free(ssl);
    ::close(fd);
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  bool wait(const std::atomic<bool>& ending) const {
    for (int waited = 0; !ending && waited < patience_ms; waited += look_ms) {
      pollfd one{fd, POLLIN, 0};
      if (SSL_pending(ssl) > 0 || ::poll(&one, 1, look_ms) > 0)
        return true;
    }
    return false;
  }
  bool read(std::string& into, std::size_t n, const std::atomic<bool>& ending) const {
    into.assign(n, '\0');
    for (std::size_t got = 0; got < n;) {
      if (!wait(ending))
        return false;
      const int more = SSL_read(ssl, into.data() + got, static_cast<int>(n - got));
      if (more <= 0)
        return false;
      got += static_cast<std::size_t>(more);
    }
    return true;
  }
  void write(const std::string& text) const {
    (void)SSL_write(ssl, text.data(), static_cast<int>(text.size()));
  }
};

tls_server::tls_server(std::size_t open_together)
    : open_together_(open_together), context_(std::make_unique<context>()) {
  auto* key = EVP_EC_gen("P-256");
  auto* x = certificate_of(key);
  file_ = write_certificate(x);
  must(SSL_CTX_use_certificate(context_->ssl, x) == 1 &&
       SSL_CTX_use_PrivateKey(context_->ssl, key) == 1);
  X509_free(x);
  EVP_PKEY_free(key);
  if (open_together_ > 0)
    SSL_CTX_set_alpn_select_cb(context_->ssl, choose_http2, nullptr);
  listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  must(::bind(listening_, reinterpret_cast<const sockaddr*>(&at), size) == 0);
  must(::listen(listening_, SOMAXCONN) == 0);
  must(::getsockname(listening_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  port_ = ntohs(at.sin_port);
  thread_ = std::thread([this] { serve(); });
}

tls_server::~tls_server() {
  ending_ = true;
  thread_.join();
  ::close(listening_);
  ::unlink(file_.c_str());
}

std::string tls_server::origin(const std::string& host) const {
  return "https://" + host + ":" + std::to_string(port_);
}

void tls_server::serve() {
  // OpenSSL writes to a connection that the client has closed without MSG_NOSIGNAL.
  sigset_t broken_pipe;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  while (!ending_) {
    pollfd one{listening_, POLLIN, 0};
    if (::poll(&one, 1, look_ms) <= 0)
      continue;
    const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0)
      continue;
    session s(context_->ssl, fd);
    if (SSL_accept(s.ssl) == 1)
      talk(s);
  }
}

void tls_server::talk(session& s) {
  ++connections_;
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(s.ssl, &chosen, &size);
  if (size == 2)
    talk_http2(s);
  else
    talk_http1(s);
}

/// Requests without a body.
void tls_server::talk_http1(session& s) {
  std::string text;
  for (std::string byte; s.read(byte, 1, ending_); text += byte)
    if (byte == "\n" && text.ends_with("\r\n\r")) {
      ++requests_;
      s.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      text.clear();
      byte.clear();
    }
}

void tls_server::talk_http2(session& s) {
  std::vector<std::uint32_t> open;
  std::string head;
  std::string payload;
  if (!s.read(head, preface_bytes, ending_))
    return;
  s.write(frame(settings, 0, 0, {}));
  while (s.read(head, frame_head, ending_)) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
    const auto size = static_cast<std::size_t>(byte(0) << 16 | byte(1) << 8 | byte(2));
    if (!s.read(payload, size, ending_))
      return;
    const auto type = byte(3);
    const auto flags = byte(4);
    if (type == settings && flags == 0)
      s.write(frame(settings, ack, 0, {}));
    if (type == ping && flags == 0)
      s.write(frame(ping, ack, 0, payload));
    if ((type != headers && type != data) || (flags & end_stream) == 0)
      continue;
    ++requests_;
    open.push_back(
        static_cast<std::uint32_t>(byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8)));
    if (open.size() < open_together_)
      continue;
    for (const auto stream : open) {
      s.write(frame(headers, end_headers, stream, "\x88")); // RFC 7541 A: ":status: 200"
      s.write(frame(data, end_stream, stream, "ok"));
    }
    open.clear();
  }
}

} // namespace boyd::test
