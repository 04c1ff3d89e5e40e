#include "boyd/improve/patch.hpp"

#include <array>

/// Characters that nobody sees, and that change what is seen.
namespace boyd::improve {

namespace {

struct hidden_character {
  std::size_t size = 0; ///< bytes; 0: what stands there is none
  unsigned code = 0;
};

bool is_mark_of_direction(unsigned code) {
  return code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// At the beginning of `text`.
hidden_character hidden_at(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const auto first = byte(0);
  const auto second = byte(1);
  if (first == '\r' && second == '\n')
    return {};
  if ((first < 0x20 && first != '\t' && first != '\n') || first == 0x7F)
    return {1, first};
  if (first == 0xC2 && second >= 0x80 && second < 0xA0)
    return {2, second};
  if (first == 0xD8 && second == 0x9C)
    return {2, 0x061C};
  if (first != 0xE2 || (second != 0x80 && second != 0x81) || text.size() < 3)
    return {};
  const auto code = 0x2000U + ((second & 0x3FU) << 6U) + (byte(2) & 0x3FU);
  return is_mark_of_direction(code) ? hidden_character{3, code} : hidden_character{};
}

} // namespace

std::map<unsigned, std::size_t> hidden_in(std::string_view text) {
  std::map<unsigned, std::size_t> all;
  for (std::size_t i = 0; i < text.size();) {
    const auto h = hidden_at(text.substr(i));
    if (h.size > 0)
      ++all[h.code];
    i += h.size > 0 ? h.size : 1;
  }
  return all;
}

std::string name_of_character(unsigned code) {
  std::string name = "U+";
  for (const auto shift : std::array{12U, 8U, 4U, 0U})
    name += "0123456789ABCDEF"[(code >> shift) & 15U];
  return name;
}

std::string with_hidden_shown(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto h = hidden_at(text.substr(i));
    if (h.size > 0)
      out += "<" + name_of_character(h.code) + ">";
    else
      out += text[i];
    i += h.size > 0 ? h.size : 1;
  }
  return out;
}

} // namespace boyd::improve
