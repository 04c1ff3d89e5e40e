#include "notices.hpp"

#include "boyd/core/text.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <string_view>

namespace boyd::adapters::postgres {

namespace {

/// Severities that ask nobody to do anything (PostgreSQL manual, table "Message Severity Levels").
constexpr std::string_view harmless[]{"NOTICE:", "INFO:", "LOG:", "DEBUG"};

} // namespace

void log_notice(const std::string& place, const char* text) noexcept {
  try {
    std::string line = sanitize_utf8(trim(text == nullptr ? "" : text));
    std::ranges::replace_if(
        line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    const bool calm = std::ranges::any_of(
        harmless, [&](std::string_view severity) { return line.starts_with(severity); });
    spdlog::log(calm ? spdlog::level::debug : spdlog::level::warn, "database {}: {}", place, line);
  } catch (const std::exception&) {
    // A message that cannot be logged must not end what it came beside.
  }
}

} // namespace boyd::adapters::postgres
