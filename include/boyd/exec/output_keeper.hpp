#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::exec {

/// Keeps the head and the tail of a stream in bounded memory and counts the rest. Not thread-safe.
class output_keeper {
 public:
  /// `cap`: bytes kept, half of them from the beginning and half from the end. Memory used is at
  /// most 1.5 times that.
  explicit output_keeper(std::size_t cap);

  void append(std::string_view bytes);

  /// Bytes seen so far.
  std::uint64_t total() const noexcept { return total_; }

  /// What is kept when at most `limit` bytes may be shown (never more than `cap`).
  struct view {
    std::string text; ///< valid UTF-8; a line "… N bytes not kept …" where bytes are missing
    std::uint64_t cut = 0; ///< bytes that are missing
  };
  view render(std::size_t limit) const;

  /// Kept bytes, of which the first one was byte `begin` of the stream.
  struct piece {
    std::uint64_t begin = 0;
    std::string bytes;
    bool is_cut_behind = false; ///< the byte behind them is not kept
  };
  /// The first kept bytes from byte `offset` on, at most `limit`. Empty: there are none.
  piece since(std::uint64_t offset, std::size_t limit) const;

  /// The line that says how many bytes are missing, with its line breaks.
  struct cut_mark {
    std::size_t begin = std::string_view::npos; ///< npos: there is none
    std::size_t size = 0;
  };
  /// The first one in `text`.
  static cut_mark find_cut(std::string_view text) noexcept;

 private:
  std::size_t half_;
  std::uint64_t total_ = 0;
  std::string head_;
  std::string tail_; ///< the newest bytes after the head; trimmed when twice as long as needed
};

/// Finds in a stream, line by line and in bounded memory, what a summary is made of. Lines longer
/// than `line_bytes` are cut. Not thread-safe.
class line_watch {
 public:
  static constexpr std::size_t line_bytes = 64u << 10;
  /// A line with this prefix declares the run's summary; the last one wins.
  static constexpr std::string_view summary_prefix = "BOYD_SUMMARY:";
  /// A line with this prefix is to be remembered: `BOYD_REMEMBER: [Section] text`.
  static constexpr std::string_view remember_prefix = "BOYD_REMEMBER:";
  /// So many of them are taken.
  static constexpr std::size_t most_remembered = 32;

  void append(std::string_view bytes);
  /// Ends the last line. Call once, before reading.
  void finish();

  const std::string& first() const noexcept { return first_; } ///< first non-blank line, trimmed
  const std::string& last() const noexcept { return last_; }   ///< last non-blank line, trimmed
  /// The last line that is more than a fence or other marks, trimmed.
  const std::string& last_words() const noexcept { return last_words_; }
  const std::string& declared() const noexcept { return declared_; } ///< text after the prefix
  /// The texts after remember_prefix, in their order.
  const std::vector<std::string>& remembered() const noexcept { return remembered_; }
  /// Lines with it that were too many, or too long.
  std::size_t not_remembered() const noexcept { return not_remembered_; }

 private:
  void take_line();

  std::string line_;
  std::string first_;
  std::string last_;
  std::string last_words_;
  std::string declared_;
  std::vector<std::string> remembered_;
  std::size_t not_remembered_ = 0;
};

} // namespace boyd::exec
