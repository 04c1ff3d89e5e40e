#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Fuzz targets: functions that take any bytes and end the process when a rule is broken. The same
/// targets run under libFuzzer (scripts/fuzz) and, on the committed corpus, in the suite.
namespace boyd::fuzz {

/// One target. `run` must be deterministic, must not keep state that a later input could see, and
/// calls `require` for each rule.
struct target {
  std::string_view name; ///< of its corpus directory, too
  void (*run)(std::string_view input);
};

/// All targets, by name. Filled before main.
const std::vector<target>& targets();

/// The target of that name, or null.
const target* find_target(std::string_view name);

/// Registers a target at load time.
struct registration {
  registration(std::string_view name, void (*run)(std::string_view));
};

/// What a broken rule does with its text; aborts unless replaced. The suite replaces it by one that
/// throws, so that the input can be named.
using failure_handler = std::function<void(const std::string& rule)>;
void on_failure(failure_handler handler);

/// A rule of the target that runs.
void require(bool holds, std::string_view rule);

/// Takes numbers off the front of an input and leaves the rest as text.
class reader {
 public:
  explicit reader(std::string_view input) : rest_(input) {}

  /// The next byte; 0 at the end.
  std::uint8_t byte();
  /// The next four bytes, little endian; missing ones are 0.
  std::uint32_t word();
  /// All up to the next line break (which is taken), or the rest.
  std::string_view line();
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

} // namespace boyd::fuzz
