#pragma once

#include "boyd/record/execution.hpp"

#include <string>

/// What an execution was, for a person (docs/explain.md). Pure: the record alone says it.
namespace boyd::record {

/// What the explanation shows. Without `context` and `lifecycle` it shows every section; with one
/// of them, or both, the summary and theirs.
struct explain_options {
  bool context = false;   ///< what was read, how it changed, what was cited
  bool lifecycle = false; ///< what to do with it
  bool facts = true;      ///< what stands in the log of facts
  bool graph = false;     ///< these as a picture, in Mermaid
};

/// Markdown. The same record and options give the same bytes. Texts from outside are shown as code
/// on one line, so that none of them can pass for a section; a long one says how much is missing.
std::string explain(const execution& e, const explain_options& options = {});

/// What became of the last attempt: done, failed, or unfinished.
enum class fate : std::uint8_t { done, failed, unfinished };
fate fate_of(const execution& e);
std::string_view name_of(fate f) noexcept;

/// What to do with an item that a run was given, and why.
struct advice {
  std::string path;
  std::string action;    ///< keep, archive, remove or enhance
  std::string relevance; ///< of the item to this run: high, medium, low or unknown
  std::string quality;   ///< of the runs that used it: good, mixed, poor or unknown
  std::string trend;     ///< of its use: rising, steady, falling, unused or unknown
  std::string reason;
  std::string key; ///< "C2"; empty: it was not shown

  bool operator==(const advice&) const = default;
};

/// For each item of the last attempt, in the order of its snapshot; results of tools are left out.
std::vector<advice> advise(const execution& e);

} // namespace boyd::record
