#pragma once

#include <string>
#include <string_view>

namespace boyd::state {

/// Which bytes of a STATE.md are ours, and which are the agents' (docs/state-and-history.md).
///
/// *Marker*: a line that consists of the START or END marker alone (trailing blanks and a carriage
/// return are allowed, leading ones are not), outside fenced code. Fences are CommonMark's (``` or
/// ~~~, at most three leading spaces); a fence that is never closed protects nothing, because
/// otherwise a forgotten ``` would hide the block for ever. A marker within a line or within fenced
/// code is the agents' text.
///
/// *Ours* are:
/// 1. a closed block: START, END and all between, when no other marker is between. But a block that
///    begins with `## kernel_runtime` and then departs from the rendering's grammar (headings,
///    `- key: value`, table rows, blank lines) is a half block that lost its END and swallowed what
///    follows up to a stray END: then rule 2 and 3 hold.
/// 2. a half block: a START that is not closed, and directly after it only lines in the strict
/// order
///    and form of the rendering (known keys, valid rows). The first other line is the agents'.
/// 3. a stray END line.
///
/// Everything else is the agents' and stays byte for byte. The new block takes the place of the
/// first closed block, else of the first half block, else it is appended after one separating line
/// break. Other blocks and strays are removed.

/// What a fault of the file system has done to a STATE.md, as words; empty: nothing that can be
/// known. Nobody writes an empty one, or one of NUL bytes alone; a sector's worth of them (512
/// bytes) stands where something was never written. Fewer are the agents' text.
std::string damage_of(std::string_view file_text);

/// `file_text` with exactly one runtime block, `block_text` (as render_runtime_block makes it),
/// whose line ends are all of one kind (LF or CRLF): that of the standing block's first line, else
/// the one that most lines of the file have. Idempotent. agents_part is the same before and after.
std::string replace_runtime_block(std::string_view file_text, std::string_view block_text);

/// The agents' bytes: `file_text` without what is ours. The one line break before a block that ends
/// the file belongs to the block, because replace_runtime_block puts it there.
std::string agents_part(std::string_view file_text);

/// The bytes of `file_text` that are ours, one after the other; empty: none.
std::string kernels_part(std::string_view file_text);

/// `file_text` with the closed block that `other` has, or without one when `other` has none. A file
/// without a block stays as it is, and so does one in which that block would be none. agents_part
/// is the same before and after.
std::string with_block_of(std::string_view file_text, std::string_view other);

} // namespace boyd::state
