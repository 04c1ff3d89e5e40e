#pragma once

#include <cstddef>
#include <string_view>

namespace boyd {

/// The length of the ANSI escape sequence (ECMA-48: CSI, OSC and other strings, two-byte escapes)
/// at the beginning of `text`; 0 when there is none. One that does not end reaches to the line's
/// end.
std::size_t escape_at(std::string_view text) noexcept;

/// The length of what stands around tokens without a meaning: a blank, a NUL byte, a byte order
/// mark or an escape sequence. 0 when there is none.
std::size_t blank_at(std::string_view text) noexcept;

} // namespace boyd
