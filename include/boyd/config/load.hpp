#pragma once

#include "boyd/config/configuration.hpp"
#include "boyd/core/result.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd {
class time_zones;
}

namespace boyd::config {

/// One finding about a configuration file. `where()` is "file:line:column".
struct finding {
  std::string file;
  int line = 0;         ///< from 1; 0: the file as a whole
  int column = 0;       ///< from 1
  std::string key;      ///< dotted path, e.g. kernels[0].agents[2].timeout
  std::string problem;  ///< what is wrong
  std::string expected; ///< what would be right
  std::string nearest;  ///< the nearest valid key; may be empty

  std::string where() const;
  /// "boyd.yaml:12:7: kernels[0].agents[0].pririty: unknown key; did you mean priority?"
  std::string text() const;
};

/// Looks up an environment variable; nothing when unset.
using environment_lookup = std::function<std::optional<std::string>(const std::string&)>;

/// What becomes of a ${VAR} without a default whose variable is not set.
enum class unset_variables : std::uint8_t {
  are_errors,
  stay_as_text, ///< for commands that run nothing: the reference stands for its value
};

/// Reads a file that the configuration names, by its absolute path. Blocking.
using file_reader = std::function<result<std::string>(const std::string& path)>;

/// The outcome: a configuration, or every finding at once.
struct load_result {
  std::optional<configuration> value; ///< set only when `findings` is empty
  std::vector<finding> findings;
  /// What is valid and almost surely not what was meant, in the order of the file: a rule that is
  /// never reached, a limit of 0, a fallback to the same model. Only with a `value`.
  std::vector<finding> warnings{};
  /// Variables whose reference stayed as text, each once, in the order of the file.
  std::vector<std::string> unset{};
};

/// Parses, expands ${VAR}, ${VAR:-default} and $${, validates as a whole and converts `text` (the
/// content of `path`). Hostile input (alias bombs, over 1 MiB, depth, NUL, duplicate keys) is
/// refused with its line. Pure but for `environment` and `files`, which reads the files of
/// `schema_file` and, to know what to redact, of `api_key_file`; without it the first are findings.
/// `path` should be absolute: relative paths inside are resolved against its folder. Defined with
/// the YAML adapter: link boyd_adapters_yaml.
load_result load(const std::string& path, std::string_view text,
                 const environment_lookup& environment, const time_zones& zones,
                 unset_variables unset = unset_variables::are_errors,
                 const file_reader& files = {});

/// Reads a script executor's file: a list of answers in YAML (so JSON too), under the same caps and
/// rules as inline `answers`, but without ${…} expansion. Error `parse_error`: the first finding,
/// with its place, and how many more there are.
result<std::vector<script_executor::answer>> load_answers(const std::string& path,
                                                          std::string_view text);

/// The JSON Schema (draft 7) that `load` itself validates by; pretty-printed.
const std::string& schema_json();

/// The configuration reference in Markdown, generated from the schema.
std::string reference_markdown();

/// A commented boyd.yaml that works offline; what `boyd init` writes.
std::string default_yaml();

} // namespace boyd::config
