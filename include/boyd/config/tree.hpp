#pragma once

#include "boyd/config/load.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::config {

/// A place in the text; both from 1.
struct mark {
  int line = 0;
  int column = 0;

  bool operator==(const mark&) const = default;
};

/// A parsed document before it means anything: what a parser of text hands to `build`. Scalars
/// keep their text, because ${VAR} is expanded before a plain scalar gets its type. Values own
/// their children; depth and size are bounded by the parser, so recursion over a tree is safe.
struct tree {
  enum class kind_t : std::uint8_t { scalar, sequence, map };
  struct key_t {
    std::string text;
    mark at;
  };

  kind_t kind = kind_t::scalar;
  std::string text;        ///< of a scalar
  bool plain = true;       ///< a scalar without quotes: may be a number, true, false or null
  bool expanded = false;   ///< text came (partly) from ${…}
  bool unusable = false;   ///< its ${…} failed and has been reported
  bool secret = false;     ///< never to be shown
  bool assumed = false;    ///< not in the file: a default, or from a preset
  std::vector<key_t> keys; ///< of a map, in the order of the file; keys[i] belongs to items[i]
  std::vector<tree> items; ///< of a sequence or map
  mark at;

  /// The value under `key` of a map, or null. The pointer lives as long as the tree is unchanged.
  const tree* find(std::string_view key) const noexcept;
  tree* find(std::string_view key) noexcept;
};

/// What a parser of text returns: a tree, findings, or both (a duplicate key leaves the first).
struct parsed {
  std::optional<tree> value;
  std::vector<finding> findings;
};

/// Turns a tree into text in the form of the configuration file.
using tree_writer = std::function<std::string(const tree&)>;

/// The parser of text behind `parsed`, for what the configuration is not alone in.
using tree_parser = std::function<parsed(const std::string& path, std::string_view text)>;

/// The half of `load` that knows nothing of YAML: expands, validates and converts. `write` makes
/// configuration::redacted_yaml. Findings of the parser come out together with its own, in the
/// order of the file. `path` should be absolute: relative paths inside are resolved against its
/// folder. Threads: any. Never throws but for memory.
load_result build(const std::string& path, parsed source, const environment_lookup& environment,
                  const time_zones& zones, const tree_writer& write,
                  unset_variables unset = unset_variables::are_errors,
                  const file_reader& files = {}, const tree_parser& parse = {});

/// The same half of `load_answers`.
result<std::vector<script_executor::answer>> build_answers(const std::string& path, parsed source);

/// The part `improve` of a configuration file, checked with the file as a whole, with its defaults.
/// A file for it alone needs no `kernels`. Error `invalid_configuration`: the findings, a line
/// each. `secrets`: gets the file's, as redact_text takes them; may be null.
result<tree> build_improve(const std::string& path, parsed source,
                           const environment_lookup& environment, const time_zones& zones,
                           std::vector<std::string>* secrets = nullptr);

/// The same of a text. Defined with the YAML adapter: link boyd_adapters_yaml.
result<tree> load_improve(const std::string& path, std::string_view text,
                          const environment_lookup& environment, const time_zones& zones,
                          std::vector<std::string>* secrets = nullptr);

/// The kernel of the agents that answer tasks of an improvement cycle.
inline constexpr std::string_view proposers_kernel = "improve";

/// The document of a node of these agents alone (`improve.executors`), in a home of its own: where
/// they say nothing else they work on `repository` (absolute), agent CLIs in a worktree of it.
parsed proposers_of(parsed source, const std::string& repository);

/// The configuration of that node. Defined with the YAML adapter: link boyd_adapters_yaml.
load_result load_proposers(const std::string& path, std::string_view text,
                           const environment_lookup& environment, const time_zones& zones,
                           const file_reader& files, const std::string& repository);

} // namespace boyd::config
