#pragma once

#include "arguments.hpp"
#include "boyd/core/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::app {

enum class colour { none, good, bad, warn, faint, bold };

/// The colour of a dispatch's, cycle's or part's state.
colour colour_of_status(std::string_view status) noexcept;

/// How one output stream is to be written: colours only on a terminal and without NO_COLOR.
struct terminal {
  bool is_tty = false;
  bool colours = false;
  bool rewrites = false; ///< a line may be written over: a terminal that knows how, not a quiet one
  std::size_t width = 80; ///< columns: COLUMNS, else the terminal's, else 80 (a pipe: no limit)

  /// False for a pipe, whose rows may be of any length.
  bool has_width() const noexcept;

  /// `text` in that colour, when this terminal shows colours.
  std::string paint(colour c, std::string_view text) const;
};

/// Of standard output and of standard error.
terminal terminal_of_stdout(const arguments& args);
terminal terminal_of_stderr(const arguments& args);

/// Rows of cells, aligned by characters, not bytes. No row is wider than the terminal: columns that
/// may be dropped are, then the widest ones are cut, and the last one gets what is left. Control
/// characters in cells are shown as blanks.
class table {
 public:
  explicit table(std::vector<std::string> heads) { add(std::move(heads)); }

  struct cell {
    std::string text;
    colour paint = colour::none;
    // A row is written as a list of texts, some of them painted.
    cell(std::string t, colour c = colour::none) // NOLINT(google-explicit-constructor)
        : text(std::move(t)), paint(c) {}
    cell(const char* t) : text(t) {} // NOLINT(google-explicit-constructor)
  };

  void add(std::vector<std::string> texts);
  void add_cells(std::vector<cell> cells);
  /// Columns that are left out, the first one first, while the last column would have less than
  /// `room` characters on the screen.
  void drop_when_narrow(std::vector<std::string> heads, std::size_t room = 24);
  std::size_t rows() const { return rows_.size() - 1; }

  /// The whole table, each line ended; heads are faint.
  std::string render(const terminal& t, std::string_view indent = "") const;

 private:
  std::vector<std::size_t> widths() const;
  /// Characters by which a row is too wide for the last column to have its room.
  std::size_t excess(const std::vector<std::size_t>& widths, const terminal& t,
                     std::size_t indent) const;
  /// The table without what does not fit.
  table narrowed(const terminal& t, std::size_t indent) const;
  std::string drawn(const terminal& t, std::string_view indent) const;

  std::vector<std::vector<cell>> rows_;
  std::vector<std::string> droppable_;
  std::size_t room_ = 24; ///< characters of the last column
};

/// One line without control characters (agents' text must not move the cursor), at most
/// `characters`, with an ellipsis when it was cut.
std::string one_line(std::string_view text, std::size_t characters);

/// As one_line, but what is cut is in the middle: paths differ at their ends.
std::string cut_in_middle(std::string_view text, std::size_t characters);

/// `text`, one line, broken between words so that no line is wider than `width` characters where
/// words allow it; further lines begin with `indent` blanks.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// `text` of several lines for that terminal: none wider than it where words allow it; what goes on
/// stands two characters further in. A pipe gets it as it is.
std::string folded(std::string_view text, const terminal& t);

/// Help as the parser of the command line writes it, no line wider than `width` where words allow
/// it. What goes on stands under the text that it belongs to.
std::string fitted(std::string_view help, std::size_t width);

/// `text` safe for a terminal: control characters but line breaks and tabs are taken out.
std::string printable(std::string_view text);

/// `text` as one word of a shell command, quoted where it has to be.
std::string shell_word(std::string_view text);

/// `text`, a sentence that may end with a command ("…: boyd VERB …"), behind `indent` blanks. Where
/// the terminal is too narrow for it, the command has a line of its own and is not broken: it is
/// copied. Of a text of several lines the further ones stand deeper, and those that begin with a
/// blank are commands, which are not broken. The last line has no end.
std::string hint_lines(std::string_view text, std::size_t indent, const terminal& t);

/// "boyd: what (where)\n  next: …" on standard error.
void print_error(const error& e);

/// "boyd: text" on standard error: what is no error, but should be known.
void print_note(std::string_view text);

/// As print_error, and with `json` the error object on standard output. Returns the exit code.
int report(error e, bool json);

/// The error object of the API.
std::string error_json(const error& e);

/// Writes to standard output; the end of a pipe's reader is not an error.
void print(std::string_view text);

/// True when the reader of standard output, a pipe, went away before all was written.
bool output_is_unread() noexcept;

/// False when the reader of standard output, a pipe, has gone away: for somebody who will write
/// again, and then counts as one who could not. Asks the system.
bool output_has_reader() noexcept;

} // namespace boyd::app
