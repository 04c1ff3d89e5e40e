#pragma once

#include "boyd/config/tree.hpp"
#include "boyd/ports/time_zones.hpp"

#include <map>
#include <optional>
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
  bool lenient = false;               ///< nothing will be run: what is not set may be missing
  file_reader files{};                ///< may be empty
  std::map<std::string, std::string> texts{}; ///< what files said, by absolute path
  tree_parser parse{};                        ///< for files of adapters; may be empty
  std::map<std::string, tree> adapters{}; ///< built in or from files, filled, by their `adapter`

  void report(mark at, std::string key, std::string problem, std::string expected,
              std::string nearest = {}) {
    findings.push_back({path, at.line, at.column, std::move(key), std::move(problem),
                        std::move(expected), std::move(nearest)});
  }
};

/// Replaces ${VAR}, ${VAR:-default} and $${ in every scalar, once, and marks what is secret.
void expand(pass& p, tree& root, const environment_lookup& environment, unset_variables unset);

/// Puts what an agent's `prompt_file` says in its place, as `prompt`; ${…} in it is not expanded.
void read_prompt_files(pass& p, tree& root);

/// Writes what a provider's preset says where the file says nothing.
void apply_presets(pass& p, tree& root, const environment_lookup& environment);

/// The presets as a table in Markdown.
std::string presets_markdown();

/// The variable in which a preset looks for the key; empty for none and for what is no preset.
std::string_view key_variable(std::string_view preset);

/// Checks the tree against the JSON Schema.
void validate(pass& p, const tree& root);

/// Checks what a schema cannot say: durations, schedules, zones, names, duplicates, combinations.
void check_meaning(pass& p, const tree& root, const time_zones& zones);

/// The part of check_meaning that looks at several values of one map.
void check_combinations(pass& p, const tree& root);

/// The part of check_meaning about providers and who uses them. Reads the files of `schema_file`.
void check_models(pass& p, const tree& root);

/// Whether the provider of that tree is on this machine, and whether it says what `model` costs.
bool is_loopback(const tree& provider);
bool has_price(const tree& provider, std::string_view model);

/// The part of check_meaning about servers of tools.
void check_mcp(pass& p, const tree& root);

/// The part of check_meaning about rules that can never hold, and tools of servers that are not
/// there.
void check_policies(pass& p, const tree& root);

/// What is valid and still almost surely wrong, in a tree without any finding: warnings.
void find_doubts(pass& p, const tree& root);

/// Why `text` is no name of a tool, or, with `pattern`, no pattern for one; with a suggestion in
/// `next` where there is one.
result<void> check_tool(std::string_view text, bool pattern);

/// Writes the schema's defaults into a valid tree.
void fill_defaults(tree& root);

/// A valid, filled tree as values. Relative paths are resolved against the folder of the file.
configuration convert(const pass& p, const tree& root);

/// `path` from the folder of the configuration file; an empty one stays empty.
std::string resolve(const std::string& configuration_path, const std::string& path);

/// Shorter values are hidden where they stand, but not searched for in other texts: a secret "1"
/// would leave no text readable.
inline constexpr std::size_t secret_bytes = 4;

/// A copy in which nothing secret is left.
tree redact(tree root, const std::vector<std::string>& secrets);

/// The password inside "scheme://user:password@…" in `text`, or empty. View into `text`.
std::string_view uri_password(std::string_view text, std::size_t from = 0);

/// True for names such as API_TOKEN or db-password; not for names of files that hold one.
bool smells_secret(std::string_view name);

/// True for names of HTTP headers such as Authorization, beyond what smells_secret says.
bool smells_secret_header(std::string_view name);

/// True for a number of tokens under a name such as max_tokens, which is no secret.
bool is_count(std::string_view name, std::string_view text);

/// Reads "64KiB", "1MiB", "4096" and "4096B"; nothing for anything else.
std::optional<std::size_t> parse_size(std::string_view text);

/// Reads one entry of `require`: a word, "artifact PATH", or a map of one key.
result<requirement> parse_requirement(const tree& entry);

/// A value as a person sees it in a message, cut and quoted; secrets are hidden.
std::string shown(const tree& value);

} // namespace boyd::config
