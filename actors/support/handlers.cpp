#include "actors/support/handlers.hpp"

#include <caf/deep_to_string.hpp>
#include <caf/make_message.hpp>
#include <caf/to_string.hpp>
#include <spdlog/spdlog.h>

#include <cstdint>

namespace boyd {

std::string text_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  } catch (...) {
    return "exception that is not a std::exception";
  }
}

std::string text_of(const caf::error& reason) {
  // One without a code has no context to look into: who quits without being asked to.
  if (!reason)
    return "it stopped by itself";
  if (reason.context().size() == 1 && reason.context().match_element<std::string>(0))
    return reason.context().get_as<std::string>(0);
  if (reason.category() == caf::atom("exit"))
    return "exit: " + to_string(static_cast<caf::exit_reason>(reason.code()));
  if (reason.category() == caf::atom("system"))
    return "actor error: " + to_string(static_cast<caf::sec>(reason.code()));
  return "exit with code " + std::to_string(reason.code());
}

caf::error crash_error(const std::string& text) {
  return caf::make_error(caf::sec::runtime_error, text);
}

namespace {

constexpr std::uint8_t exhausted = 1;

auto own_category() {
  return caf::atom("boyd");
}

} // namespace

caf::error exhausted_error(const std::string& text) {
  return {exhausted, own_category(), caf::make_message(text)};
}

bool is_exhausted(const caf::error& reason) {
  return reason.category() == own_category() && reason.code() == exhausted;
}

void log_dropped(const char* actor, const std::string& what) {
  spdlog::warn("{}: dropped: {}", actor, what);
}

} // namespace boyd
