#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::tools {

inline constexpr std::string_view read_file_name = "read_file";
inline constexpr std::string_view write_file_name = "write_file";
inline constexpr std::string_view list_dir_name = "list_dir";
inline constexpr std::string_view search_text_name = "search_text";
inline constexpr std::string_view run_command_name = "run_command";
inline constexpr std::string_view remember_name = "remember";
inline constexpr std::string_view recall_name = "recall";
inline constexpr std::string_view read_skill_name = "read_skill";

/// A tool as a model is told of it.
struct definition {
  std::string name;
  std::string description;
  std::string parameters_json; ///< JSON Schema of the arguments, an object

  bool operator==(const definition&) const = default;
};

/// Boyd's own tools, always in the same order: prompt caches hold from one call to the next only
/// when what comes first stays the same.
const std::vector<definition>& built_in();

/// The built-in tool of this name, or null.
const definition* find_built_in(std::string_view name);

/// The built-in tools that an agent's `tools` name (patterns), in their order.
std::vector<definition> offered(const std::vector<std::string>& patterns);

/// As the chat protocol wants them: an array of function tools; empty text for none.
std::string to_tools_json(const std::vector<definition>& definitions);

} // namespace boyd::tools
