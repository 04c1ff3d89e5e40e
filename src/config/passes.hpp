#pragma once

#include "boyd/config/tree.hpp"
#include "boyd/ports/time_zones.hpp"

#include <string>
#include <string_view>
#include <vector>

/// The steps of `build`, in this order; each one adds its findings and none stops the next.
namespace boyd::config {

/// What the steps share.
struct pass {
  const std::string& path;
  std::vector<finding>& findings;
  std::vector<std::string> secrets{}; ///< values that no text may show
  std::vector<std::string> unset{};   ///< variables whose reference stayed as text

  void report(mark at, std::string key, std::string problem, std::string expected,
              std::string nearest = {}) {
    findings.push_back({path, at.line, at.column, std::move(key), std::move(problem),
                        std::move(expected), std::move(nearest)});
  }
};

/// Replaces ${VAR}, ${VAR:-default} and $${ in every scalar, once, and marks what is secret.
void expand(pass& p, tree& root, const environment_lookup& environment, unset_variables unset);

/// Checks the tree against the JSON Schema.
void validate(pass& p, const tree& root);

/// Checks what a schema cannot say: durations, schedules, zones, names, duplicates, combinations.
void check_meaning(pass& p, const tree& root, const time_zones& zones);

/// Writes the schema's defaults into a valid tree.
void fill_defaults(tree& root);

/// A valid, filled tree as values. Relative paths are resolved against the folder of `path`.
configuration convert(const std::string& path, const tree& root);

/// Shorter values are hidden where they stand, but not searched for in other texts: a secret "1"
/// would leave no text readable.
inline constexpr std::size_t secret_bytes = 4;

/// A copy in which nothing secret is left.
tree redact(tree root, const std::vector<std::string>& secrets);

/// The password inside "scheme://user:password@…" in `text`, or empty. View into `text`.
std::string_view uri_password(std::string_view text, std::size_t from = 0);

/// True for names such as API_TOKEN or db-password; not for names of files that hold one.
bool smells_secret(std::string_view name);

/// Reads "64KiB", "1MiB", "4096" and "4096B"; nothing for anything else.
std::optional<std::size_t> parse_size(std::string_view text);

/// Reads one entry of `require`: a word, "artifact PATH", or a map of one key.
result<requirement> parse_requirement(const tree& entry);

/// A value as a person sees it in a message, cut and quoted; secrets are hidden.
std::string shown(const tree& value);

} // namespace boyd::config
