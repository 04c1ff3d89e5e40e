#pragma once

#include "boyd/config/agent_cli.hpp"
#include "boyd/core/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// Longest line of events that is looked into; longer ones are counted and passed over. The answers
/// of models are far shorter, the results of their tools may not be.
inline constexpr std::size_t event_line_bytes = 1u << 20;
/// Longest output of a program that prints one JSON value.
inline constexpr std::size_t event_document_bytes = 4u << 20;
/// What is kept of an answer that comes in parts.
inline constexpr std::size_t event_text_bytes = 1u << 20;
/// Names, ids and errors from events are cut at this many characters.
inline constexpr std::size_t event_word_characters = 500;
/// Denials that are kept by name; the rest is counted.
inline constexpr std::size_t denial_names = 16;

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
  std::uint64_t events = 0;
  std::uint64_t no_json = 0;  ///< lines that are no JSON
  std::uint64_t too_long = 0; ///< lines beyond event_line_bytes, or a document that was cut
  bool text_cut = false;
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

  /// The output has ended: the last line, or the document, is read. Call once, before report().
  void finish();

  const cli_report& report() const noexcept { return report_; }
  /// Whether anything came that shows progress.
  bool has_begun() const noexcept { return begun_; }

 private:
  bool take_line();
  bool take_event(std::string_view text);
  bool append_lines(std::string_view bytes);
  void append_document(std::string_view bytes);

  const config::cli_adapter& adapter_;
  std::string line_;      ///< the line, or document, so far
  bool skipping_ = false; ///< it is too long
  bool begun_ = false;
  cli_report report_;
};

/// The usage of a run as JSON, with the keys of a conversation's.
std::string usage_json_of(const cli_report& report, const std::string& adapter,
                          milliseconds wall = milliseconds{0});

} // namespace boyd::exec
