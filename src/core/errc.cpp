#include "boyd/core/errc.hpp"

namespace boyd {

error_category category_of(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
  case errc::not_found:
  case errc::already_exists:
  case errc::parse_error:
  case errc::limit_exceeded:
  case errc::corrupt:
  case errc::refused:
    return error_category::permanent;
  case errc::invalid_configuration:
    return error_category::config;
  case errc::stale_fence:
  case errc::conflict:
    return error_category::conflict;
  case errc::overloaded:
    return error_category::overloaded;
  case errc::locked:
  case errc::timed_out:
  case errc::store_unavailable:
  case errc::commit_in_doubt:
  case errc::repository_unavailable:
  case errc::io_error:
  case errc::no_space:
  case errc::actor_down:
  case errc::spawn_failed:
  case errc::injected:
    return error_category::transient;
  case errc::cancelled:
    return error_category::cancelled;
  case errc::bug:
    return error_category::bug;
  }
  // A value that this build does not know came from a newer one or from broken memory.
  return error_category::bug;
}

std::string_view name_of(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
    return "invalid_argument";
  case errc::not_found:
    return "not_found";
  case errc::already_exists:
    return "already_exists";
  case errc::parse_error:
    return "parse_error";
  case errc::invalid_configuration:
    return "invalid_configuration";
  case errc::limit_exceeded:
    return "limit_exceeded";
  case errc::stale_fence:
    return "stale_fence";
  case errc::conflict:
    return "conflict";
  case errc::locked:
    return "locked";
  case errc::overloaded:
    return "overloaded";
  case errc::timed_out:
    return "timed_out";
  case errc::store_unavailable:
    return "store_unavailable";
  case errc::commit_in_doubt:
    return "commit_in_doubt";
  case errc::repository_unavailable:
    return "repository_unavailable";
  case errc::io_error:
    return "io_error";
  case errc::no_space:
    return "no_space";
  case errc::actor_down:
    return "actor_down";
  case errc::spawn_failed:
    return "spawn_failed";
  case errc::corrupt:
    return "corrupt";
  case errc::refused:
    return "refused";
  case errc::cancelled:
    return "cancelled";
  case errc::injected:
    return "injected";
  case errc::bug:
    return "bug";
  }
  return "unknown";
}

std::string_view name_of(error_category category) noexcept {
  switch (category) {
  case error_category::transient:
    return "transient";
  case error_category::overloaded:
    return "overloaded";
  case error_category::conflict:
    return "conflict";
  case error_category::permanent:
    return "permanent";
  case error_category::config:
    return "config";
  case error_category::cancelled:
    return "cancelled";
  case error_category::bug:
    return "bug";
  }
  return "unknown";
}

int http_status_of(errc code) noexcept {
  switch (code) {
  case errc::invalid_argument:
  case errc::parse_error:
  case errc::invalid_configuration:
    return 400;
  case errc::refused:
    return 403;
  case errc::not_found:
    return 404;
  case errc::conflict:
  case errc::already_exists:
  case errc::locked:
  case errc::stale_fence:
  case errc::cancelled:
    return 409;
  case errc::limit_exceeded:
    return 413;
  case errc::overloaded:
    return 429;
  case errc::bug:
  case errc::corrupt:
  case errc::injected:
    return 500;
  default:
    return 503;
  }
}

} // namespace boyd
