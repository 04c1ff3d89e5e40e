#pragma once

#include "boyd/config/agent_cli.hpp"
#include "boyd/core/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// Of one text in an event so much is kept, the rest is cut off. The answers of models are far
/// shorter, the results of their tools may not be.
inline constexpr std::size_t event_string_bytes = 768u << 10;
/// Beyond so much of an event its further texts are cut to `event_short_bytes` each.
inline constexpr std::size_t event_line_bytes = 1u << 20;
inline constexpr std::size_t event_short_bytes = 1u << 10;
/// An event that is longer after all that is counted and passed over.
inline constexpr std::size_t event_most_bytes = 2u << 20;
/// What is kept of an answer that comes in parts.
inline constexpr std::size_t event_text_bytes = 1u << 20;
/// Names, ids and errors from events are cut at this many characters.
inline constexpr std::size_t event_word_characters = 500;

/// What is told beyond these is no figure of a run, and counts as not told.
inline constexpr std::int64_t most_told_tokens = 10'000'000'000;
inline constexpr double most_told_dollars = 10'000;
/// Denials that are kept by name; the rest is counted.
inline constexpr std::size_t denial_names = 16;

/// Uses of tools that are kept, those that came first, while their words and paths have no more
/// bytes than this; more are counted.
inline constexpr std::size_t told_tools_kept = 500;
inline constexpr std::size_t told_tools_bytes = 256u << 10;
/// A command of a tool is cut at so many bytes, and ends with "…" then; a longer path, address,
/// name or id is none.
inline constexpr std::size_t tool_word_bytes = 4096;
/// What is kept of the answers of tools, together: one that does not fit any more is left out.
inline constexpr std::size_t tool_result_bytes = 256u << 10;

/// A tool that a program said it had used.
struct told_tool {
  std::string id;
  std::string name;
  std::vector<std::string> paths;
  std::string command;
  std::string url;
  std::string result;  ///< empty: not told, or not kept
  bool failed = false; ///< or denied
};

/// What a program's events told.
struct cli_report {
  bool final = false;                   ///< an event said that the work is over
  bool failed = false;                  ///< an event said that it failed
  std::optional<failure_class> failure; ///< of a failed run, when an event said so
  std::string error;                    ///< one line; the newest that was told
  std::string text;                     ///< the answer; valid UTF-8
  std::string session;                  ///< the program's own id of its session
  std::string model;
  std::int64_t cost = 0; ///< millionths of a US dollar
  std::int64_t turns = 0;
  std::int64_t input = 0; ///< tokens, cached ones included
  std::int64_t cached = 0;
  std::int64_t output = 0;
  std::int64_t reasoning = 0;
  std::vector<std::string> denials; ///< names, at most denial_names
  std::uint64_t denied = 0;
  std::map<std::string, std::string> facts; ///< of the adapter's names
  bool told_figures = false;                ///< of tokens or cost, zero included
  std::uint64_t events = 0;
  std::uint64_t moves = 0;    ///< events that show progress
  std::uint64_t no_json = 0;  ///< lines that are no JSON
  std::uint64_t too_long = 0; ///< events beyond event_most_bytes
  std::uint64_t cut = 0;      ///< events with texts that were cut
  bool text_cut = false;
  std::vector<told_tool> tools;    ///< at most told_tools_kept
  std::uint64_t tools_dropped = 0; ///< the others
  std::size_t tool_words = 0;      ///< bytes of those that are kept, without their answers
  std::size_t tool_results = 0;    ///< bytes of their answers
};

/// Reads the standard output of a program as its adapter describes it: any bytes, in any portions,
/// in bounded memory. Not thread-safe; never blocks.
class cli_reader {
 public:
  /// `adapter` must outlive the reader.
  explicit cli_reader(const config::cli_adapter& adapter) : adapter_(adapter) {}

  /// Returns whether something came that shows progress. Lines that are no events show none; those
  /// too long to look into do.
  bool append(std::string_view bytes);

  /// The standard error, which may tell of denials. Of a line the first 64 KiB are looked into.
  void complain(std::string_view bytes);

  /// Looks into a line without its end, or a document, when it is whole already. Returns whether it
  /// was an event.
  bool take_pending();

  /// The output has ended: the last line, or the document, is read. Call once, before report().
  void finish();

  const cli_report& report() const noexcept { return report_; }
  /// Whether anything came that shows progress.
  bool has_begun() const noexcept { return begun_; }

 private:
  bool take_line();
  void take_complaint();
  /// Every object in it; `progress`: whether one shows some. False: there is none.
  bool take_events(std::string_view text, bool& progress);
  bool append_lines(std::string_view bytes);
  void append_document(std::string_view bytes);
  void keep(std::string_view bytes);
  void keep_character(char c);
  void begin_line();

  const config::cli_adapter& adapter_;
  std::string complaint_; ///< the line of the standard error so far
  std::string line_;      ///< the line, or document, so far
  bool skipping_ = false; ///< it is too long
  // Where in the event it stands.
  bool in_object_ = false;
  bool in_string_ = false;
  bool cut_ = false;      ///< a text of it was cut
  bool cut_here_ = false; ///< the present one
  bool document_taken_ = false;
  std::size_t string_bytes_ = 0; ///< of the present text
  std::size_t since_escape_ = 0; ///< bytes since its last backslash
  std::size_t escape_bytes_ = 2; ///< of the escape that this one begins
  bool begun_ = false;
  cli_report report_;
};

/// `ended`: how it ended badly after its work was done; may be empty.
run_usage usage_of(const cli_report& report, const std::string& adapter,
                   milliseconds wall = milliseconds{0}, const std::string& ended = {});

} // namespace boyd::exec
