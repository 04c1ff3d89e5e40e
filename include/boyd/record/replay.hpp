#pragma once

#include "boyd/record/execution.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// An execution once more, from its record and the contents that it names (docs/explain.md). Pure:
/// whoever calls it owns the files.
namespace boyd::record {

/// What is kept under a hash; `not_found` when nothing is.
using content_source = std::function<result<std::string>(const std::string& hash)>;

/// A text that was put together again.
struct rebuilt_text {
  std::string name; ///< system message, tools, prompt or answer
  std::int64_t fence = 0;
  bool recorded = false; ///< false: the record is older than what is kept of texts
  bool same = false;     ///< byte for byte
  std::string text;      ///< what came of it
};

/// A byte that differs, or a content without which nothing can be said.
struct replay_problem {
  std::string where;  ///< "prompt of attempt 2", "README.md", "explanation"
  std::string what;   ///< missing, damaged, differs or not recorded
  std::string hash;   ///< of the content, or of the whole text
  std::string detail; ///< for a person

  bool operator==(const replay_problem&) const = default;
};

struct replay_report {
  std::vector<rebuilt_text> texts; ///< in the order of the attempts
  std::string explanation;         ///< rendered anew
  bool explanation_recorded = false;
  bool explanation_same = false;
  /// What is on record is as another version wrote it, and this one finds other words for it.
  bool words_differ = false;
  std::size_t contents = 0; ///< different ones that the record names
  /// What tools said, by its hash; without those that are missing.
  std::map<std::string, std::string> results;
  std::vector<replay_problem> problems;

  /// Every byte is as it was, and every content is there.
  bool holds() const { return problems.empty(); }
};

/// `stored`: explain.md as it stands beside the record; nothing: there is none. `seal`: of the
/// record's text. `version`: of this program, which seals what it writes.
replay_report replay(const execution& e, const content_source& contents,
                     const std::optional<std::string>& stored, seal_state seal,
                     const std::string& version);

/// Where two texts part, in a few lines; empty: they do not.
std::string first_difference(const std::string& recorded, const std::string& now);

} // namespace boyd::record
