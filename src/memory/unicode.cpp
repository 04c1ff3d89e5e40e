#include "unicode.hpp"

#include <algorithm>
#include <array>
#include <utf8proc.h>

namespace boyd::memory::detail {

namespace {

struct range {
  char32_t first;
  char32_t last;
};

constexpr std::array cjk_ranges{
    range{0x1100, 0x11FF}, range{0x2E80, 0x303E}, range{0x3041, 0x33FF},  range{0x3400, 0x4DBF},
    range{0x4E00, 0x9FFF}, range{0xA960, 0xA97F}, range{0xAC00, 0xD7FF},  range{0xF900, 0xFAFF},
    range{0xFE30, 0xFE4F}, range{0xFF00, 0xFFEF}, range{0x20000, 0x3FFFF}};

constexpr char32_t replacement = 0xFFFD;

} // namespace

bool is_cjk(char32_t c) noexcept {
  return c >= cjk_ranges.front().first &&
         std::ranges::any_of(cjk_ranges, [c](range r) { return r.first <= c && c <= r.last; });
}

char32_t next_code_point(std::string_view utf8, std::size_t& at) noexcept {
  utf8proc_int32_t c = 0;
  const auto used =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data() + at), // NOLINT
                       static_cast<utf8proc_ssize_t>(utf8.size() - at), &c);
  if (used <= 0) {
    ++at;
    return replacement;
  }
  at += static_cast<std::size_t>(used);
  return static_cast<char32_t>(c);
}

void append_utf8(std::string& to, char32_t c) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
  to.append(bytes.begin(), bytes.begin() + n);
}

} // namespace boyd::memory::detail
