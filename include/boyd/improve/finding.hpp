#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::improve {

/// Where a finding comes from (docs/improve.md).
enum class finding_source : std::uint8_t { lint, test, hygiene };

std::string_view name_of(finding_source s) noexcept;

/// How a report is written.
enum class report_format : std::uint8_t {
  sarif,   ///< SARIF 2.1.0
  lines,   ///< file:line[:column]: [error|warning:] text [rule]
  junit,   ///< JUnit XML
  ctest,   ///< what `ctest` prints
  pytest,  ///< what `pytest -rA` prints
  tap,     ///< Test Anything Protocol, 12 to 14
  go_test, ///< `go test -json`
  eslint,  ///< `eslint --format json`
  cargo,   ///< what `cargo test` prints
  exit,    ///< nothing: an exit code other than 0 is the only finding
};

/// One thing that a scanner found.
struct finding {
  finding_source from = finding_source::lint;
  std::string scanner; ///< its name; "hygiene" for Boyd's own
  std::string rule;    ///< the linter's, or Boyd's; empty for tests
  std::string path;    ///< relative to the repository; empty: none is named
  int line = 0;        ///< from 1; 0: the file as a whole
  std::string test;    ///< name of a failed test
  std::string message;
  std::string text;        ///< the line that is meant, without blanks around it; may be empty
  bool is_warning = false; ///< less than an error
  std::string unfixable{}; ///< why no change of files can settle it; empty: one can
  /// `test` names a file, package or program whose tests could not run, not one test.
  bool is_group = false;
  std::string file_hash{}; ///< SHA-256 of the file `path`; empty: it could not be read
};

/// What one run of a scanner told.
struct scan_report {
  std::vector<finding> findings;
  std::vector<std::string> passed; ///< tests that it says have passed
  std::set<std::string> ran;       ///< groups (finding::is_group) of which something ran
  std::size_t more = 0;            ///< findings beyond `most_findings`, counted only
};

/// Findings that are kept of one run.
inline constexpr std::size_t most_findings = 2000;
/// Longest report that is read, bytes.
inline constexpr std::size_t report_bytes = std::size_t{16} << 20;

/// Reads a report. `root` is taken from the beginning of absolute paths. What is around the lines
/// of a report that is lines is passed over; an empty report of such a form has no findings.
/// `parse_error` for a form that is one document (SARIF, JUnit, ESLint) and cannot be read, with
/// the line where that is known. `exit` has nothing to read. What is taken from it shows none of
/// `secrets` and nothing that looks like one (config::redact_text). Pure; any bytes.
result<scan_report> read_report(report_format form, finding_source from, const std::string& scanner,
                                const std::string& root, std::string_view report,
                                const std::vector<std::string>& secrets = {});

/// The same for every finding of the same thing, in every cycle: neither its line, nor numbers in
/// its message, nor its place in the report matter. Several alike are numbered in the order of
/// their lines. In the order of `findings`.
std::vector<std::string> ids_of(const std::vector<finding>& findings);

} // namespace boyd::improve
