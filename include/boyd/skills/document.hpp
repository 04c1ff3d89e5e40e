#pragma once

#include "boyd/config/tree.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// SKILL.md as the Agent Skills format has it: front matter in YAML, then Markdown. Pure.
namespace boyd::skills {

inline constexpr std::size_t most_document_bytes = std::size_t{256} << 10;
inline constexpr std::size_t most_name_characters = 64;
inline constexpr std::size_t most_description_characters = 1024;
inline constexpr std::size_t most_compatibility_characters = 500;

struct document {
  std::string name;
  std::string description;
  std::string license{};       ///< empty: not given
  std::string compatibility{}; ///< empty: not given
  std::string allowed_tools{}; ///< separated by blanks; empty: not given
  /// Texts alone; what is nested stays in the file and is not looked at.
  std::map<std::string, std::string> metadata{};
  std::string body{}; ///< the Markdown behind the front matter

  bool operator==(const document&) const = default;
};

/// Something about a SKILL.md.
struct finding {
  int line = 0; ///< from 1
  std::string problem;
  std::string next;     ///< what to do
  bool is_error = true; ///< false: worth a look, and no reason to refuse it

  bool operator==(const finding&) const = default;
};

struct parsed_document {
  std::optional<document> value; ///< set only when no finding is an error
  std::vector<finding> findings; ///< in the order of their lines
};

/// Lower-case letters, digits and single hyphens between them, at most 64.
bool is_skill_name(std::string_view name) noexcept;

/// A name made of a path or title: "docs/Release Notes.md" gives "release-notes"; "skill" where
/// nothing is left.
std::string name_of_path(std::string_view path);

/// Reads and checks a SKILL.md. `yaml`: the parser that the configuration is read with. `folder`:
/// the name of its folder, which the skill's must equal; empty: it is not looked at.
parsed_document parse_document(std::string_view text, const config::tree_parser& yaml,
                               std::string_view folder = {});

/// parse_document(render_document(d)) gives d back, but for line breaks around the body.
std::string render_document(const document& d);

/// What a person should see before they approve: characters that are not shown, HTML comments,
/// commands that fetch something and run it, secrets. By line. `secrets` as in config::redact_text.
std::vector<finding> scan_document(std::string_view text, const std::vector<std::string>& secrets);

/// Where a text has what looks like a secret, which no approved skill may hold: what
/// config::redact_text takes out, and beyond it private keys, what stands behind Bearer, and values
/// that are named a password, a token or a key. Placeholders and variables are none. By line; the
/// first ones, where there are very many. Empty: config::redact_text leaves the text as it is.
std::vector<finding> secrets_in(std::string_view text, const std::vector<std::string>& secrets);

/// "line 7", "lines 7, 9", "lines 1, 2, 3, 4, 5 and 3 more".
std::string lines_of(const std::vector<finding>& found);

/// "line 7: PROBLEM; NEXT".
std::string to_text(const finding& f);

} // namespace boyd::skills
