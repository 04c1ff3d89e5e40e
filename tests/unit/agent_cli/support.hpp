#pragma once

#include "boyd/config/load.hpp"
#include "boyd/exec/cli_reader.hpp"
#include "src/adapters/tz/zones.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

/// Helpers of the tests of agent CLIs.
namespace boyd::agent_cli_testing {

inline config::load_result load_text(const std::string& text,
                                     const std::map<std::string, std::string>& files = {}) {
  static const auto zones = adapters::make_time_zones();
  return config::load(
      "/etc/boyd/boyd.yaml", text, [](const std::string&) { return std::nullopt; }, *zones,
      config::unset_variables::are_errors,
      [files](const std::string& path) -> result<std::string> {
        const auto found = files.find(path);
        if (found == files.end())
          return fail(errc::not_found, "no such file", path);
        return found->second;
      });
}

/// A file whose one agent has this executor, with `more` at the top level.
inline std::string with_executor(const std::string& executor, const std::string& more = {}) {
  return "version: 1\n" + more +
         "kernels:\n  - agents:\n      - agent_id: a\n        executor: " + executor + "\n";
}

inline config::agent_cli_executor executor_of(const config::load_result& r) {
  for (const auto& f : r.findings)
    UNSCOPED_INFO(f.text());
  REQUIRE(r.value);
  return std::get<config::agent_cli_executor>(r.value->kernels.front().agents.front().run);
}

inline config::agent_cli_executor built_in(const std::string& name) {
  return executor_of(load_text(with_executor("{type: agent_cli, adapter: " + name + "}")));
}

/// The text of a file of the source tree.
inline std::string source_file(const std::string& name) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  REQUIRE(top != nullptr);
  std::ifstream in(std::string(top) + "/" + name, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A recorded transcript.
inline std::string transcript(const std::string& name) {
  return source_file("tests/data/agent_cli/" + name + ".jsonl");
}

/// What the reader makes of a whole output, given in portions of `step` bytes.
inline exec::cli_report read_all(const config::cli_adapter& adapter, std::string_view text,
                                 std::size_t step = 7) {
  exec::cli_reader reader(adapter);
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size())))
    reader.append(text.substr(0, step));
  reader.finish();
  return reader.report();
}

} // namespace boyd::agent_cli_testing
