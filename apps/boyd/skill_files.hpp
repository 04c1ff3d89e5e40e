#pragma once

#include "boyd/core/result.hpp"
#include "boyd/skills/document.hpp"

#include <string>
#include <vector>

/// SKILL.md files that a person names on the command line. Blocking.
namespace boyd::app {

/// The SKILL.md that a path names: the file, or that of the folder; else those of all folders below
/// it, in their order (8 folders deep). `not_found` where there is none.
result<std::vector<std::string>> skill_files(const std::string& path);

/// Its bytes; `-`: standard input. `limit_exceeded` for more than a skill may have.
result<std::string> read_skill_text(const std::string& path);

/// What is wrong with a file (skills::parse_document); the name of its folder counts.
result<std::vector<skills::finding>> validate_file(const std::string& path);

/// What a person should see in it (skills::scan_document).
result<std::vector<skills::finding>> scan_file(const std::string& path);

/// Writes DIR/NAME/SKILL.md, which must not be there, and returns its path.
result<std::string> write_skill(const std::string& dir, const std::string& name,
                                const std::string& text);

} // namespace boyd::app
