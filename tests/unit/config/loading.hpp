#pragma once

#include "boyd/config/load.hpp"
#include "boyd/config/tree.hpp"
#include "src/adapters/tz/zones.hpp"
#include "src/adapters/yaml/yaml.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// Helpers of the config room's tests.
namespace boyd::config::testing {

using variables = std::map<std::string, std::string>;

inline load_result load_text(std::string_view text, const variables& environment = {},
                             const std::string& path = "/etc/boyd/boyd.yaml") {
  static const auto zones = adapters::make_time_zones();
  return load(
      path, text,
      [&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      *zones);
}

/// All findings as text, one a line.
inline std::string texts(const load_result& r) {
  std::string out;
  for (const auto& f : r.findings) {
    out += f.text() + "\n";
  }
  return out;
}

/// The finding about `key`, or null.
inline const finding* about(const load_result& r, std::string_view key) {
  const auto found = std::find_if(r.findings.begin(), r.findings.end(),
                                  [&](const finding& f) { return f.key == key; });
  return found == r.findings.end() ? nullptr : &*found;
}

/// The text of a file of the source tree.
inline std::string source_file(const std::string& name) {
  const auto* root = std::getenv("BOYD_SOURCE_DIR");
  std::ifstream in((root == nullptr ? std::string(".") : std::string(root)) + "/" + name);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A valid file whose one agent has `lines` more keys (each indented by eight spaces).
inline std::string with_agent(const std::string& lines) {
  return "version: 1\nkernels:\n  - agents:\n      - agent_id: a\n        executor: {type: "
         "command, "
         "argv: [date]}\n" +
         lines;
}

} // namespace boyd::config::testing
