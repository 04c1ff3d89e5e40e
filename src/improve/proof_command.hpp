#pragma once

#include "boyd/improve/finding.hpp"
#include "boyd/improve/settings.hpp"

#include <string>
#include <utility>
#include <vector>

namespace boyd::improve {

/// What proves one finding.
struct proof_command {
  std::vector<std::string> argv;
  /// BOYD_TEST, BOYD_PATH, BOYD_RULE.
  std::vector<std::pair<std::string, std::string>> environment;

  /// The scanner's proof with the finding's values in the places of {test}, {path}, {rule}; the
  /// scanner itself where there is no proof, or a value cannot be given. A value is never a part of
  /// a shell's script: what stands there are references to the environment. Pure.
  static proof_command of(const scanner_settings& s, const finding& f);

  /// The first program of `argv` that is no shell and takes a word with a placeholder as code
  /// (python -c, perl -e); empty: none.
  static std::string code_word(const std::vector<std::string>& argv);
};

} // namespace boyd::improve
