#include "json_mender.hpp"

#include "ansi.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace boyd {
namespace {

constexpr std::size_t escape_bytes = 6; // \uXXXX
/// Private characters of plane 15 stand for halves of surrogate pairs and for bytes.
constexpr char32_t half_base = 0xF0000;
constexpr char32_t byte_base = 0xFE000;
constexpr char32_t first_half = 0xD800;
constexpr char32_t first_low = 0xDC00;
constexpr char32_t last_half = 0xDFFF;

std::string utf8_of(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x10000)
    return {byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

/// The private character of four bytes at the beginning of `text`; nothing when there is none.
std::optional<char32_t> stand_in_at(std::string_view text) {
  if (text.size() < 4 || text[0] != '\xF3' || (text[1] != '\xBD' && text[1] != '\xBE'))
    return std::nullopt;
  char32_t c = static_cast<unsigned char>(text[0]) & 0x07;
  for (std::size_t i = 1; i < 4; ++i)
    c = (c << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
  const bool is_half = c >= half_base + first_half && c <= half_base + last_half;
  const bool is_byte = c >= byte_base + 0x80 && c <= byte_base + 0xFF;
  return is_half || is_byte ? std::optional(c) : std::nullopt;
}

/// The value of an escape \uXXXX at the beginning of `text`; nothing when there is none.
std::optional<unsigned> unit_at(std::string_view text) {
  if (text.size() < escape_bytes || text[0] != '\\' || text[1] != 'u')
    return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(2, 4)) {
    const bool digit = c >= '0' && c <= '9';
    const char letter = static_cast<char>(c | 0x20);
    if (!digit && (letter < 'a' || letter > 'f'))
      return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit ? c - '0' : letter - 'a' + 10);
  }
  return value;
}

bool is_half(unsigned unit) {
  return unit >= first_half && unit <= last_half;
}

bool is_low(std::optional<unsigned> unit) {
  return unit && *unit >= first_low && *unit <= last_half;
}

} // namespace

bool json_mender::run() {
  while (at_ < text_.size()) {
    const auto before = out_.text.size();
    if (!token())
      return false;
    out_.end = at_;
    if (depth_ == 0 && out_.text.size() > before)
      return true;
  }
  return false;
}

/// One token, or what stands between two. False: a string without an end.
bool json_mender::token() {
  const auto rest = text_.substr(at_);
  if (const auto blank = blank_at(rest); blank > 0) {
    out_.mended =
        out_.mended || std::string_view(" \t\r\n").find(rest[0]) == std::string_view::npos;
    at_ += blank;
    return true;
  }
  const char c = rest[0];
  if (c == '"')
    return string();
  if (c == '{' || c == '[')
    ++depth_;
  else if ((c == '}' || c == ']') && depth_ > 0)
    --depth_;
  else if (word() || number())
    return true;
  keep(1);
  return true;
}

bool json_mender::string() {
  const auto begin = out_.text.size() + 1;
  keep(1);
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      end_string(begin);
      keep(1);
      return true;
    }
    if (c == '\\')
      escape();
    else
      character();
  }
  return false;
}

void json_mender::escape() {
  const auto rest = text_.substr(at_);
  if (const auto unit = unit_at(rest))
    return unicode_escape(*unit);
  if (rest.size() > 1 && std::string_view("\"\\/bfnrt").find(rest[1]) != std::string_view::npos)
    return keep(2);
  replace(1, "\\\\");
}

void json_mender::unicode_escape(unsigned unit) {
  const bool is_high = is_half(unit) && !is_low(unit);
  if (is_high && is_low(unit_at(text_.substr(at_ + escape_bytes))))
    keep(2 * escape_bytes);
  else if (is_half(unit))
    replace_half(escape_bytes, half_base + unit);
  else
    keep(escape_bytes);
}

void json_mender::character() {
  const auto rest = text_.substr(at_);
  const auto byte = static_cast<unsigned char>(rest[0]);
  if (byte < ' ')
    return replace(1, fmt::format("\\u{:04x}", static_cast<unsigned>(byte)));
  if (byte < 0x80) {
    const auto plain = std::ranges::find_if(
        rest, [](char c) { return static_cast<signed char>(c) < ' ' || c == '"' || c == '\\'; });
    return keep(static_cast<std::size_t>(plain - rest.begin()));
  }
  // A private character that stands for something else must not be made by its sender.
  if (options_.is_piece && stand_in_at(rest))
    return replace(4, replacement_character);
  const auto length = utf8_length(rest);
  if (length > 0)
    return keep(length);
  replace_half(1, byte_base + byte);
}

/// Cuts a string that is too long where neither a character nor an escape is split.
void json_mender::end_string(std::size_t begin) {
  const auto size = out_.text.size() - begin;
  if (size <= options_.string_bytes)
    return;
  std::size_t end = begin;
  while (true) {
    const auto rest = std::string_view(out_.text).substr(end);
    std::size_t step = 1;
    if (rest[0] == '\\')
      step = rest[1] != 'u' ? 2 : is_half(*unit_at(rest)) ? 2 * escape_bytes : escape_bytes;
    else
      step = std::max<std::size_t>(utf8_length(rest), 1);
    if (end - begin + step > options_.string_bytes)
      break;
    end += step;
  }
  const auto cut = out_.text.size() - end;
  out_.text.resize(end);
  out_.text += fmt::format("… [{} bytes cut]", cut);
  out_.cut += cut;
  out_.mended = true;
}

/// Numbers that JSON has no words for.
bool json_mender::word() {
  static constexpr std::array<std::string_view, 9> none{
      "-Infinity", "Infinity", "-infinity", "infinity", "-NaN", "NaN", "nan", "-inf", "inf"};
  const auto rest = text_.substr(at_);
  for (const auto name : none) {
    if (!rest.starts_with(name))
      continue;
    const char next = rest.size() > name.size() ? rest[name.size()] : ' ';
    if ((next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z'))
      return false;
    replace(name.size(), "null");
    return true;
  }
  return false;
}

/// A number, and other words without quotes as they are: the parser refuses what is none.
bool json_mender::number() {
  const auto rest = text_.substr(at_);
  const auto end =
      rest.find_first_not_of("0123456789+-.eEabcdfghijklmnopqrstuvwxyzABCDFGHIJKLMNOPQRSTUVWXYZ_");
  const auto size = std::min(end, rest.size());
  if (size == 0)
    return false;
  const std::string word(rest.substr(0, size));
  const bool is_number = word.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (is_number && std::isinf(std::strtod(word.c_str(), nullptr)))
    replace(size, "null");
  else
    keep(size);
  return true;
}

void json_mender::keep(std::size_t bytes) {
  out_.text += text_.substr(at_, bytes);
  at_ += bytes;
}

void json_mender::replace(std::size_t bytes, std::string_view by) {
  out_.text += by;
  out_.mended = true;
  at_ += bytes;
}

void json_mender::replace_half(std::size_t bytes, char32_t stand_in) {
  replace(bytes, options_.is_piece ? utf8_of(stand_in) : std::string(replacement_character));
}

void join_pieces(std::string& text) {
  if (text.find('\xF3') == std::string::npos)
    return;
  std::string out;
  std::string bytes; // of stand-ins that follow one another
  char32_t high = 0; // a half that waits for the other
  const auto end_run = [&] {
    out += sanitize_utf8(bytes);
    bytes.clear();
    if (high != 0)
      out += replacement_character;
    high = 0;
  };
  for (std::string_view rest = text; !rest.empty();) {
    const auto c = stand_in_at(rest);
    if (!c) {
      end_run();
      out += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    rest.remove_prefix(4);
    if (*c >= byte_base) {
      if (high != 0)
        end_run();
      bytes += static_cast<char>(*c - byte_base);
      continue;
    }
    const char32_t unit = *c - half_base;
    if (high != 0 && unit >= first_low) {
      out += utf8_of(0x10000 + ((high - first_half) << 10) + (unit - first_low));
      high = 0;
      continue;
    }
    end_run();
    if (unit >= first_low)
      out += replacement_character;
    else
      high = unit;
  }
  end_run();
  text = std::move(out);
}

} // namespace boyd
