#pragma once

#include <cstddef>
#include <string_view>

/// What the search for secrets by shape knows about characters.
namespace boyd::config {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
constexpr bool is_letter_or_digit(char c) {
  return is_digit(c) || is_upper(c) || is_lower(c);
}
constexpr char lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
/// base64url (RFC 4648 §5), which most keys are made of.
constexpr bool is_key_character(char c) {
  return is_letter_or_digit(c) || c == '_' || c == '-';
}
constexpr bool is_base64(char c) {
  return is_letter_or_digit(c) || c == '+' || c == '/' || c == '=';
}
/// What a password or a key in an assignment may hold: no quote, bracket, comma or backslash, so
/// that what is around it stays whole.
constexpr bool is_value_character(char c) {
  return is_letter_or_digit(c) ||
         std::string_view("_-+/=.~!@#$%^*?").find(c) != std::string_view::npos;
}

/// The end of the run of characters of one kind around a place. Asked from left to right; each run
/// is walked once, however often it is asked for.
template <bool (*Belongs)(char)>
class run_finder {
 public:
  explicit run_finder(std::string_view text) : text_(text) {}

  std::size_t end_from(std::size_t at) {
    if (at < begin_ || at >= end_) {
      begin_ = at;
      end_ = at;
      while (end_ < text_.size() && Belongs(text_[end_]))
        ++end_;
    }
    return end_;
  }

 private:
  std::string_view text_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// Whether a word may begin at `at`: not in the middle of another one. The last character of an
/// escape (`\n`, `\u001b`, `%20`, a colour of a terminal) is not part of a word.
bool begins_word(std::string_view text, std::size_t at);

/// Of a secret that is whole, or of the part of one that a cut has left.
enum class least { whole, part };

/// Whether a person would not have written this: letters and digits mixed without order. Names,
/// words, numbers, times and versions are not.
bool looks_random(std::string_view text, least measure = least::whole);

/// So many different characters that it is no placeholder ("xxxxxxxx").
bool is_varied(std::string_view text, std::size_t different);

/// Whether a value with this name is a secret: "DB_PASSWORD", "x-api-key", "SecretAccessKey".
bool names_secret(std::string_view name);

/// RFC 9562 §4.
bool is_uuid(std::string_view text);

} // namespace boyd::config
