#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Private to src/memory: code points.
namespace boyd::memory::detail {

/// Scripts that are written without blanks between words (bench/context, "CJK").
bool is_cjk(char32_t c) noexcept;

/// Reads the code point at `at` and moves `at` behind it; U+FFFD and one byte on for what is none.
char32_t next_code_point(std::string_view utf8, std::size_t& at) noexcept;

void append_utf8(std::string& to, char32_t c);

} // namespace boyd::memory::detail
