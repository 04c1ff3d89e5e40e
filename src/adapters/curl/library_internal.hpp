#pragma once

#include "boyd/core/result.hpp"

// The checks of types are macros, which would call libcurl by its name.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

namespace boyd::adapters::curl_detail {

/// The functions of libcurl that are used. It is not linked but loaded with the first request: with
/// the libraries behind it it costs an idle node more than half a mebibyte (ADR 16).
struct library {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_version_info) version_info = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_setopt) multi_setopt = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_socket_action) multi_socket_action = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
};

/// Loads libcurl, once for the process; it is never unloaded. Error: `io_error` when it is not
/// there or too old; then the next call tries again. Blocks for some milliseconds. Threads: any.
result<const library*> load_library();

} // namespace boyd::adapters::curl_detail
