#pragma once

#include "boyd/ports/http_client.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace boyd::adapters {

struct http_client_options {
  /// Requests under way at once; more are refused with `overloaded`.
  std::size_t most_requests = 16'384;
  /// A file of certificates (PEM) to trust instead of the system's authorities; empty: those.
  std::string ca_file;
};

/// The real HTTP client, on libcurl: HTTP/1.1, over TLS also HTTP/2; connections are kept and used
/// again. One thread for all requests, which begins with the first one; until then the client is a
/// few hundred bytes, and libcurl is not even loaded (see ADR 16). After two minutes without a
/// request all but the sleeping thread is given back.
///
/// * A proxy is used when the environment names one, as libcurl reads it (`http_proxy`,
///   `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`); never for loopback, whatever the environment says.
/// * Answers may come packed (gzip); the limit counts what they unpack to. Heads, with those of
///   interim answers and trailers, are bounded as well (`limit_exceeded`).
/// * Names are looked up by libcurl's threads: one at a time per scheme, host and port, because
///   requests to the same place wait until the first one is connected. The number of such threads
///   is bounded by the number of places, which the configuration names.
/// * When the process is out of descriptors a request ends with `overloaded`.
/// * Nothing is repeated: not even a request on a kept connection that proves dead (`io_error`).
/// * Errors name scheme, host and port, never path, headers or body.
///
/// The destructor ends what is under way with `cancelled` and joins the thread; it must not be
/// called from a callback. A name look-up, which nobody can cancel, is left behind.
std::shared_ptr<http_client> make_http_client(http_client_options options = {});

} // namespace boyd::adapters
