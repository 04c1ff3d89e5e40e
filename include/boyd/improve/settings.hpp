#pragma once

#include "boyd/config/tree.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/improve/cycle_core.hpp"
#include "boyd/improve/finding.hpp"
#include "boyd/improve/hygiene.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// The configuration at a repository's top, where no other is named.
inline constexpr std::string_view settings_file = "boyd-improve.yaml";

/// A command that finds something.
struct scanner_settings {
  std::string name;
  finding_source source = finding_source::test;
  report_format parser = report_format::exit;
  std::vector<std::string> argv;
  std::string report;             ///< file below the repository; empty: what it prints
  std::vector<std::string> proof; ///< argv for one finding; empty: `argv`
  milliseconds timeout{600'000};
  std::vector<std::string> build{}; ///< argv of what runs before each time; may be empty
  bool is_detected = false;         ///< nobody configured it
};

struct executor_settings {
  enum class kind_t : std::uint8_t { none, command, script };
  kind_t kind = kind_t::none;
  std::vector<std::string> argv; ///< of `command`
  std::string file;              ///< of `script`: absolute
  milliseconds timeout{600'000};
};

struct improve_settings {
  std::string outputs = "_outputs/agi_kernel"; ///< below the repository
  std::string logs = "_logs/autonomy/agi_kernel";
  std::vector<scanner_settings> scanners;
  hygiene_settings hygiene;
  std::vector<std::vector<std::string>> gate; ///< empty: every scanner again
  milliseconds gate_timeout{1'800'000};
  std::vector<std::string> protect;
  std::vector<std::string> may_change; ///< patterns: protected by default, but open
  bool may_change_tests = false;
  executor_settings executor;
  /// Instead of `executor`: agents, from the weakest to the strongest.
  std::vector<proposer> executors;
  std::string file; ///< the configuration, absolute; empty: there is none
  /// Values that no text may show, as config::redact_text takes them.
  std::vector<std::string> secrets{};
};

/// The tree that config::load_improve gives. `path` is the file's, absolute. Errors
/// (`invalid_configuration`) have file:line:column: `outputs` or `logs` outside of the repository,
/// keys that do not belong to the executor's type, two scanners or executors of one name.
result<improve_settings> read_settings(const config::tree& improve, const std::string& path);

/// What a repository without configuration is looked at with.
struct detection {
  std::vector<scanner_settings> scanners;
  std::vector<std::string> advice; ///< sentences: what to write, where nothing was found
};

/// `has` says whether a file or directory is there, by its path from the repository's top;
/// `text_of` gives the beginning of a file, or nothing. pytest, ctest, npm test, go test, cargo
/// test. Pure.
detection detect_scanners(const std::function<bool(const std::string& path)>& has,
                          const std::function<std::string(const std::string& path)>& text_of,
                          const std::vector<listed_file>& files,
                          const std::vector<std::string>& build_directories);

/// How long a scanner that was found by itself may take in a dry run, which builds nothing either.
inline constexpr milliseconds detected_timeout{30'000};

} // namespace boyd::improve
