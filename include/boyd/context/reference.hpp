#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What an agent is given to read (docs/context.md). Pure; files are read by whoever owns a port
/// for them.
namespace boyd::context {

enum class reference_kind : std::uint8_t {
  file,      ///< @path, @path:10-30
  directory, ///< #dir
  command,   ///< @!command args
};

/// Something to read, as it is named.
struct reference {
  reference_kind kind = reference_kind::file;
  std::string target; ///< a path as it was written, or a command line
  int first_line = 0; ///< from 1; 0: the whole file
  int last_line = 0;  ///< the same; 0 with a first line: up to the end

  bool operator==(const reference&) const = default;
};

/// As it is written in a list: "@src/a.cpp:10-30", quoted where it has to be.
std::string to_text(const reference& r);

/// Reads one entry of an agent's `context:` list, where everything is a reference; a path without a
/// sign is a file. `invalid_argument` says what is wrong with it.
result<reference> parse_declared(std::string_view entry);

/// Whether a piece of text is a reference.
enum class reference_verdict : std::uint8_t {
  reference,
  if_it_exists, ///< a plain word: a reference when something of this name is there
  text,
};

/// A place in a text that looks like a reference.
struct candidate {
  std::size_t offset = 0; ///< of its sign, bytes
  std::size_t length = 0;
  reference_verdict verdict = reference_verdict::text;
  reference what;     ///< but for `text`
  std::string reason; ///< why it is text; empty otherwise
};

/// Every @ and # of a prompt template or message that could begin a reference, in order. Code spans
/// and fences, headings, e-mail addresses, decorators, `#include`, `#123` and what a backslash
/// stands before are text.
std::vector<candidate> find_candidates(std::string_view text);

/// The words of a command line, as a shell would read its quotes and backslashes. No shell runs it:
/// `invalid_argument` for what only a shell would understand (| & ; < > ( ) $ ` * ? outside of
/// quotes, ~ at the beginning of a word), for a quotation mark that is not closed, and for a line
/// without words.
result<std::vector<std::string>> words_of_command(std::string_view line);

/// `text` with a backslash before each sign that would begin a reference, or that has one already:
/// unescape_signs gives it back, and nothing in it is a reference.
std::string escape_signs(std::string_view text);

/// `text` without the backslashes of `\@` and `\#`, outside of code.
std::string unescape_signs(std::string_view text);

} // namespace boyd::context
