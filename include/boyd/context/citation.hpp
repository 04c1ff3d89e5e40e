#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What an answer declares to have used, and what it used (docs/context.md). Pure.
namespace boyd::context {

/// An item as the answer could cite it.
struct citable {
  std::string key; ///< "C2"; empty: a tool said it, and it is cited by its path or names
  std::string id;
  std::string path;    ///< with a range of lines, as it was shown
  std::string content; ///< as it was shown; for the check of its use
  /// What else means it: its absolute path; of a tool's result the path, address or command.
  std::vector<std::string> names{};
};

/// One citation of an answer.
struct citation {
  std::string text;                ///< as it stands there
  std::optional<std::size_t> item; ///< index of the citable one; nothing: invented

  bool operator==(const citation&) const = default;
};

/// The answer without each whole copy of a text that was shown: who prints its prompt again says
/// nothing of what it used. White space at the ends of `shown` does not count; a part of it stays.
std::string without_echo(std::string_view answer, std::string_view shown);

/// The citations of an answer, each item and each invented text once, in the order of their first
/// places: lines `[Reference] file: NAME (PATH)`, keys `[C2]` and `[C1, C3]`, and JSON
/// `"used_context": [...]` with keys, ids, paths or names.
std::vector<citation> find_citations(std::string_view answer, const std::vector<citable>& items);

/// Indices of the items that an answer uses, whatever it cites: it shares at least three runs of
/// five words with the item that stand nowhere else in the prompt, or an action read, wrote or
/// named its path. `rest_of_prompt`: the prompt without the items.
std::vector<std::size_t> find_used(std::string_view answer, std::string_view rest_of_prompt,
                                   const std::vector<citable>& items,
                                   const std::vector<std::string>& paths_of_actions);

/// What became of the contract.
struct citation_report {
  std::vector<std::size_t> valid;    ///< items that were cited
  std::vector<std::string> invented; ///< texts of citations without an item
  std::vector<std::size_t> uncited;  ///< items that were used and not cited
  std::optional<double> accuracy;    ///< 0 to 1; nothing when nothing was cited and nothing used

  /// Context was used without being cited, or a citation was invented.
  bool is_weak() const { return !invented.empty() || !uncited.empty(); }
};

citation_report judge_citations(const std::vector<citation>& citations,
                                const std::vector<std::size_t>& used);

/// What a chat is told once, so that it may correct itself; empty: there is nothing to correct.
std::string correction_of(const citation_report& report, const std::vector<citable>& items);

} // namespace boyd::context
