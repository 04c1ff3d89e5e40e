#pragma once

#include "boyd/context/confidence.hpp"
#include "boyd/context/item.hpp"
#include "boyd/context/wanted.hpp"
#include "boyd/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::context {

/// Sections of a prompt, by importance; never mixed.
enum class section : std::uint8_t { high, medium, low };

std::string_view name_of(section s) noexcept;
section section_of(double importance) noexcept;

enum class shown_as : std::uint8_t {
  full,
  summary,
  left_out,
  failed, ///< it could not be read
};

std::string_view name_of(shown_as s) noexcept;

/// An item that may be shown.
struct offered_item {
  std::string id;
  std::string path; ///< as it is shown, with a range of lines
  item_type type = item_type::file;
  semantic about = semantic::other;
  origin from = origin::declared;
  std::string content;
  std::string content_hash; ///< SHA-256 of `content`, hexadecimal; empty: nothing was read
  std::string failure;      ///< why there is no content; empty: there is
  std::string summary{};    ///< a model's, to be shown where the content does not fit; may be empty
  double score = 0;         ///< what it is worth to this run; the higher the better
  double importance = 0;    ///< 0 to 1
  utc_time time{};          ///< of its content
  bool required = false;    ///< a run does not begin without it
  bool frozen = false;      ///< never banked, promoted or changed by rules
  standing policy = standing::open; ///< what a memory policy says of it
  std::string scope{};              ///< that its path begins at; empty: not known

  bool operator==(const offered_item&) const = default;
};

/// What an item is worth (docs/context.md): sets `importance` by what the log of facts says of its
/// id, and the `score` of what was not found by a question; what the log says nothing of is new.
using statistics_of = std::function<std::optional<item_statistics>(const std::string& id)>;
void rate(std::vector<offered_item>& items, const statistics_of& known, utc_time now,
          const confidence_rule& rule = {});

/// What became of an offered item.
struct placed_item {
  std::size_t offered = 0; ///< its index among the offered ones
  std::string key;         ///< "C1"; empty when it is not shown
  shown_as as = shown_as::full;
  context::section where = section::low;
  std::int64_t tokens = 0;  ///< as it is shown, its heading included; 0 when it is not
  std::int64_t whole = 0;   ///< its content's
  std::string reason;       ///< why it is not shown in full
  std::string summary;      ///< what is shown instead of the content; empty otherwise
  bool is_by_model = false; ///< a model worded the summary
};

enum class order : std::uint8_t {
  ranked, ///< best first
  recent, ///< newest first
  all,    ///< as they were offered
};

/// How much an attempt may read; smaller after failures of size or time.
enum class depth : std::uint8_t { full, focused, minimal };

struct block_options {
  std::int64_t budget_tokens = 8000; ///< of all items with their headings; the report comes on top
  order strategy = order::ranked;
  depth level = depth::full;
};

/// The tokens of an attempt: all of the budget, half of it, a quarter.
std::int64_t budget_of(const block_options& o) noexcept;

/// What the lines of the report may take where the items have this budget: a quarter, at least 256.
std::int64_t report_tokens(std::int64_t budget) noexcept;

/// The part of a prompt that shows items.
struct context_block {
  std::string text;                ///< empty when nothing was offered
  std::int64_t tokens = 0;         ///< of `text`
  std::int64_t budget_tokens = 0;  ///< in force
  std::vector<placed_item> placed; ///< every offered item once, shown ones first, in their order
};

/// Sorts the items into sections, fits them to the budget and writes them down with a report that
/// names every item that is not shown in full, and why; where that would take more than
/// report_tokens, it counts them by folder (`placed` has each of them). Over the budget first the
/// least important are summarized, then the least important are left out; declared ones go last.
/// Where that leaves room, what was left out comes back, then what was summarized is whole again,
/// the most important first. Pure and deterministic; ties break by time, newest first, then by
/// path. Control characters of paths and reasons are shown as `?`: neither can end its line.
context_block make_block(const std::vector<offered_item>& offered, const block_options& options);

/// The tokens of a summary of a text with so many; 0: it is too short to be summarized.
std::int64_t summary_tokens(std::int64_t whole);

/// A shorter text: the head, the headings or declarations, and the tail. Deterministic.
std::string summarize(std::string_view content, semantic about, std::int64_t target_tokens);

/// `content` in a fence that nothing in it can close.
std::string in_fence(std::string_view content);

} // namespace boyd::context
