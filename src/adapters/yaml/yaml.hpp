#pragma once

#include "boyd/config/tree.hpp"

#include <cstddef>
#include <string>
#include <string_view>

/// YAML text from outside, under caps (FAULTS "Debian's parsers fall to tiny inputs", case 60).
/// boyd::config::load is defined with this adapter: who calls it links boyd_adapters_yaml.
namespace boyd::adapters {

/// One line longer than this is no configuration.
inline constexpr std::size_t yaml_line_bytes = 64u << 10;
/// Keys longer than this are refused.
inline constexpr std::size_t yaml_key_bytes = 256;
/// Nodes and bytes after aliases are replaced by what they name.
inline constexpr std::size_t yaml_nodes = 100'000;
inline constexpr std::size_t yaml_expanded_bytes = 4u << 20;
/// Findings collected before the parser gives up.
inline constexpr std::size_t yaml_findings = 100;

/// Parses exactly one document. Refused with their line: more than limits::config_bytes, deeper
/// than limits::json_depth, too many nodes after alias expansion, NUL, byte order marks, text that
/// is not UTF-8, long lines, tabs as indentation, keys that are duplicate or no scalars, tags other
/// than the standard scalar ones, a second document. `path` goes into the findings only.
config::parsed parse_yaml(const std::string& path, std::string_view text);

/// Writes a tree as block YAML that parse_yaml reads back to the same texts and kinds.
std::string emit_yaml(const config::tree& t);

} // namespace boyd::adapters
