#pragma once

#include "boyd/improve/finding.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::improve {

/// What all readers of reports share.
class report_builder {
 public:
  report_builder(finding_source from, std::string scanner, std::string root,
                 const std::vector<std::string>& secrets)
      : from_(from), scanner_(std::move(scanner)), root_(std::move(root)), secrets_(secrets) {}

  /// An empty finding of this scanner.
  finding blank() const;
  void add(finding f);
  void failed(std::string test, std::string message);
  /// Tests of `group` could not run. Their place is where the message names one.
  void broken(std::string group, std::string message);
  void passed(std::string test);
  void ran(const std::string& group) { report_.ran.insert(clean(group)); }
  /// `path` relative to the repository.
  std::string relative(std::string path) const;
  scan_report take() { return std::move(report_); }

 private:
  std::string clean(std::string_view text) const;

  finding_source from_;
  std::string scanner_;
  std::string root_;
  const std::vector<std::string>& secrets_;
  scan_report report_;
};

/// The value of a JSON text from outside; an error has its place.
result<nlohmann::json> json_of_report(std::string_view text);

/// A member as text; empty when it is missing or no text.
std::string member(const nlohmann::json& object, const char* key);

result<void> read_junit(std::string_view report, report_builder& into);
result<void> read_sarif(std::string_view report, report_builder& into);
result<void> read_eslint(std::string_view report, report_builder& into);
void read_lines(std::string_view report, report_builder& into);
void read_ctest(std::string_view report, report_builder& into);
void read_pytest(std::string_view report, report_builder& into);
void read_tap(std::string_view report, report_builder& into);
void read_go_test(std::string_view report, report_builder& into);
void read_cargo(std::string_view report, report_builder& into);

/// What stands for all tests of a scanner: its build, or that a test program ended early.
inline constexpr const char* build_group = "build";
/// What a TAP program that gave up has instead of a test.
inline constexpr const char* bail_out = "bail out";

} // namespace boyd::improve
