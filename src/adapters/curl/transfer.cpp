#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "transfer_internal.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sys/socket.h>
#include <system_error>
#include <type_traits>
#include <utility>

namespace boyd::adapters::curl_detail {

namespace {

/// Of all heads of one request together.
constexpr std::size_t head_limit = 64u << 10;
/// What one read takes at most. Each waiting request has one; a page of it is touched.
constexpr long read_buffer = 16L << 10;
/// For bodies that do not fit into one write; the least that libcurl takes.
constexpr long upload_buffer = 16L << 10;
/// A peer that is gone without a word is noticed after 60 s + 9 · 15 s.
constexpr long keepalive_after_s = 60;
constexpr long keepalive_every_s = 15;
constexpr long name_cache_s = 60;
/// CURLE_TOO_LARGE, which libcurl has had since 8.6: a line of the head beyond its own limit.
constexpr int head_too_large = 100;
constexpr int first_final_status = 200;
constexpr auto write_failed = static_cast<std::size_t>(0);

std::string text_of_errno(int number) {
  return std::generic_category().message(number);
}

/// A duration as libcurl counts it; at least one, because zero is "no limit".
long whole_ms(clock::duration d) {
  return std::max<long>(1, std::chrono::ceil<milliseconds>(d).count());
}

} // namespace

transfer::transfer(http_handle handle, checked_request request, http_events events,
                   clock::time_point started)
    : handle_(handle), request_(std::move(request)), events_(std::move(events)),
      place_(request_.address.origin()), started_(started) {}

transfer::~transfer() {
  if (lib_ == nullptr)
    return;
  lib_->easy_cleanup(easy_);
  lib_->slist_free_all(headers_);
}

transfer& transfer::of(const library& lib, CURL* easy) {
  void* self = nullptr;
  lib.easy_getinfo(easy, CURLINFO_PRIVATE, &self);
  return *static_cast<transfer*>(self);
}

template <class Value>
void transfer::set(CURLoption option, Value value) {
  // The variadic function takes nothing else, and cannot tell.
  static_assert(std::is_same_v<Value, long> || std::is_same_v<Value, curl_off_t> ||
                std::is_pointer_v<Value>);
  set_all_ = lib_->easy_setopt(easy_, option, value) == CURLE_OK && set_all_;
}

void transfer::set_method() {
  const auto& method = request_.method;
  const bool has_body =
      !request_.body.empty() || method == "POST" || method == "PUT" || method == "PATCH";
  if (has_body) {
    // Not copied: the request lives as long as the handle.
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(CURLOPT_POSTFIELDS, request_.body.c_str());
  } else if (method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else {
    set(CURLOPT_HTTPGET, 1L);
  }
  if (method != (has_body ? "POST" : "GET") && method != "HEAD")
    set(CURLOPT_CUSTOMREQUEST, method.c_str());
}

void transfer::set_limits(clock::time_point now) {
  set(CURLOPT_CONNECTTIMEOUT_MS, whole_ms(connect_by() - now));
  set(CURLOPT_TIMEOUT_MS, whole_ms(started_ + request_.timeout - now));
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(request_.max_answer_bytes));
  set(CURLOPT_BUFFERSIZE, read_buffer);
  set(CURLOPT_UPLOAD_BUFFERSIZE, upload_buffer);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, keepalive_after_s);
  set(CURLOPT_TCP_KEEPINTVL, keepalive_every_s);
  set(CURLOPT_DNS_CACHE_TIMEOUT, name_cache_s);
  // A name look-up that hangs is left behind; else its request's end would block all others.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
}

result<void> transfer::prepare(const library& lib, const std::string& ca_file,
                               clock::time_point now, std::vector<http_handle>& connected) {
  if (now >= connect_by())
    return fail(timed_out());
  lib_ = &lib;
  tell_connected_ = &connected;
  easy_ = lib.easy_init();
  set_all_ = easy_ != nullptr;
  for (const auto& line : request_.headers) {
    auto* longer = set_all_ ? lib.slist_append(headers_, line.c_str()) : nullptr;
    set_all_ = longer != nullptr;
    headers_ = longer != nullptr ? longer : headers_;
  }
  if (!set_all_)
    return fail(errc::overloaded, "no memory for the request", place_);
  request_.headers = {};
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, said_.data());
  set(CURLOPT_URL, (place_ + request_.address.target).c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_PIPEWAIT, request_.address.secure ? 1L : 0L);
  set(CURLOPT_ACCEPT_ENCODING, "gzip");
  set(CURLOPT_USERAGENT, "boyd");
  set(CURLOPT_HTTPHEADER, headers_);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (request_.loopback)
    set(CURLOPT_PROXY, ""); // and not what the environment says
  if (!ca_file.empty())
    set(CURLOPT_CAINFO, ca_file.c_str());
  set_method();
  set_limits(now);
  set(CURLOPT_HEADERFUNCTION, &transfer::on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &transfer::on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_PREREQFUNCTION, &transfer::on_connected);
  set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  set(CURLOPT_OPENSOCKETFUNCTION, &transfer::open_socket);
  set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  if (!set_all_)
    return fail(errc::overloaded, "cannot prepare the request", place_);
  return {};
}

curl_socket_t transfer::open_socket(void* self, curlsocktype /*purpose*/,
                                    curl_sockaddr* address) noexcept {
  // libcurl 7.88 would leave it open to programs that are executed.
  const int fd = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  auto& t = *static_cast<transfer*>(self);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
    t.fail_with({errc::overloaded, "no connection: " + text_of_errno(errno), t.place_,
                 "raise the limit for open files"});
  return fd < 0 ? CURL_SOCKET_BAD : fd;
}

int transfer::on_connected(void* self, char* /*to*/, char* /*from*/, int /*to_port*/,
                           int /*from_port*/) noexcept {
  auto& t = *static_cast<transfer*>(self);
  // libcurl would send it again when a kept connection ends without an answer. Whether the other
  // side has acted on it nobody knows.
  if (std::exchange(t.connected_, true)) {
    t.fail_with({errc::io_error, "the connection ended before an answer", t.place_, {}});
    return CURL_PREREQFUNC_ABORT;
  }
  t.tell_connected_->push_back(t.handle_);
  t.own_.reset(); // one of several addresses could not be tried
  return CURL_PREREQFUNC_OK;
}

std::size_t transfer::on_header(char* text, std::size_t /*one*/, std::size_t size,
                                void* self) noexcept {
  return static_cast<transfer*>(self)->take_header({text, size}) ? size : write_failed;
}

std::size_t transfer::on_body(char* text, std::size_t /*one*/, std::size_t size,
                              void* self) noexcept {
  return static_cast<transfer*>(self)->take_body({text, size}) ? size : write_failed;
}

/// "HTTP/1.1 200 OK", "HTTP/2 200".
void transfer::begin_answer(std::string_view line) {
  const auto blank = std::min(line.find(' '), line.size());
  line.remove_prefix(std::min(line.find_first_not_of(' ', blank), line.size()));
  head_ = {};
  (void)std::from_chars(line.data(), line.data() + line.size(), head_.status);
}

bool transfer::take_header(std::string_view line) {
  head_bytes_ += line.size();
  if (head_bytes_ > head_limit) {
    fail_with({errc::limit_exceeded,
               "the head of the answer is longer than " + std::to_string(head_limit) + " bytes",
               place_,
               {}});
    return false;
  }
  if (head_told_)
    return true; // a trailer
  if (head_.status == 0) {
    begin_answer(line);
    return true;
  }
  const auto text = trim(line);
  if (!text.empty()) {
    const auto colon = std::min(text.find(':'), text.size());
    std::string name(text.substr(0, colon));
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    head_.headers.emplace_back(std::move(name),
                               std::string(trim(text.substr(std::min(colon + 1, text.size())))));
    return true;
  }
  if (head_.status < first_final_status) {
    head_ = {}; // an interim answer; the final one follows
    return true;
  }
  head_told_ = true;
  if (events_.on_head)
    events_.on_head(head_);
  head_.headers = {};
  return true;
}

bool transfer::take_body(std::string_view bytes) {
  body_bytes_ += bytes.size();
  if (body_bytes_ > request_.max_answer_bytes) {
    fail_with({errc::limit_exceeded,
               "the answer is longer than " + std::to_string(request_.max_answer_bytes) + " bytes",
               place_,
               {}});
    return false;
  }
  if (events_.on_body)
    events_.on_body(bytes);
  return true;
}

void transfer::fail_with(error e) {
  if (!own_)
    own_ = std::move(e);
}

error transfer::timed_out() const {
  return connected_ ? error{errc::timed_out,
                            "no complete answer within " + format_duration(request_.timeout),
                            place_,
                            {}}
                    : error{errc::timed_out,
                            "no connection within " + format_duration(request_.connect_timeout),
                            place_,
                            {}};
}

/// libcurl's name for it, and what the system or TLS said. Not libcurl's free text in general: it
/// may quote what was sent.
std::string transfer::cause(CURLcode code) const {
  std::string text = lib_->easy_strerror(code);
  long number = 0;
  lib_->easy_getinfo(easy_, CURLINFO_OS_ERRNO, &number);
  const bool of_tls = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR;
  if (of_tls && said_.front() != '\0')
    text += std::string(": ") + said_.data();
  else if (number != 0 &&
           (code == CURLE_COULDNT_CONNECT || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR))
    text += ": " + text_of_errno(static_cast<int>(number));
  return sanitize_utf8(text);
}

result<void> transfer::outcome(CURLcode code) const {
  if (code == CURLE_OK && head_told_)
    return {};
  if (own_)
    return fail(*own_);
  if (static_cast<int>(code) == head_too_large)
    return fail(errc::limit_exceeded, "the head of the answer is too large", place_);
  switch (code) {
  case CURLE_OK:
    return fail(errc::parse_error, "the answer has no head", place_);
  case CURLE_OPERATION_TIMEDOUT:
    return fail(timed_out());
  case CURLE_URL_MALFORMAT:
    return fail(errc::invalid_argument, "not an address", place_);
  case CURLE_OUT_OF_MEMORY:
    return fail(errc::overloaded, "no memory for the answer", place_);
  case CURLE_FILESIZE_EXCEEDED:
    return fail(errc::limit_exceeded,
                "the answer is longer than " + std::to_string(request_.max_answer_bytes) + " bytes",
                place_);
  case CURLE_UNSUPPORTED_PROTOCOL: // "HTTP/0.9": a first line that is none
  case CURLE_WEIRD_SERVER_REPLY:
  case CURLE_BAD_CONTENT_ENCODING:
    return fail(errc::parse_error, "the answer is not HTTP: " + cause(code), place_);
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_ISSUER_ERROR:
    return fail(errc::refused, "no trusted connection: " + cause(code), place_);
  default:
    return fail(errc::io_error, cause(code), place_);
  }
}

void transfer::end(const result<void>& r) const {
  if (events_.on_end)
    events_.on_end(r);
}

} // namespace boyd::adapters::curl_detail
