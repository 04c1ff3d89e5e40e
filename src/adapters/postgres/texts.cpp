#include "boyd/core/text.hpp"
#include "session.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace boyd::adapters::postgres {

namespace {

/// What a byte means to the two text formats that are written here.
enum class byte_kind : std::uint8_t { plain, special, beyond_ascii };

constexpr std::array<byte_kind, 256> kinds_of(std::string_view special) {
  std::array<byte_kind, 256> kinds{};
  constexpr std::size_t first_beyond = 0x80;
  for (std::size_t i = first_beyond; i < kinds.size(); ++i)
    kinds[i] = byte_kind::beyond_ascii;
  kinds[0] = byte_kind::beyond_ascii; // sanitize_utf8 replaces it: no text holds it
  for (const char c : special)
    kinds[static_cast<unsigned char>(c)] = byte_kind::special;
  return kinds;
}

constexpr auto in_array = kinds_of("\"\\");
constexpr auto in_copy = kinds_of("\\\t\n\r");

/// The worst byte kind of a text.
byte_kind worst(std::string_view text, const std::array<byte_kind, 256>& kinds) {
  auto found = byte_kind::plain;
  for (const char c : text)
    found = std::max(found, kinds[static_cast<unsigned char>(c)]);
  return found;
}

/// Appends `text` with a backslash before each special byte; `as` says what follows it.
template <class As>
void append(std::string& to, std::string_view text, const std::array<byte_kind, 256>& kinds,
            As as) {
  const auto kind = worst(text, kinds);
  if (kind == byte_kind::plain) {
    to += text;
    return;
  }
  const auto escape = [&](std::string_view clean) {
    for (const char c : clean) {
      if (kinds[static_cast<unsigned char>(c)] == byte_kind::special) {
        to += '\\';
        to += as(c);
      } else {
        to += c;
      }
    }
  };
  if (kind == byte_kind::special)
    escape(text);
  else
    escape(sanitize_utf8(text));
}

void append(std::string& to, std::int64_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  to.append(digits.data(), end);
}

} // namespace

void array::separate() {
  if (!empty_)
    body_ += ',';
  empty_ = false;
}

array& array::add(std::string_view text) {
  separate();
  body_ += '"';
  append(body_, text, in_array, [](char c) { return c; });
  body_ += '"';
  return *this;
}

array& array::add(std::int64_t number) {
  separate();
  append(body_, number);
  return *this;
}

array& array::add(const std::optional<utc_time>& t) {
  if (t)
    return add(to_unix_ms(*t));
  separate();
  body_ += "NULL";
  return *this;
}

array& array::add_unless(std::string_view nothing, std::string_view text) {
  if (text != nothing)
    return add(text);
  return add(std::optional<utc_time>{});
}

std::vector<std::string> members_of(std::string_view literal) {
  std::vector<std::string> out;
  std::string* current = nullptr;
  bool quoted = false;
  for (std::size_t i = 1; i + 1 < literal.size(); ++i) {
    const char c = literal[i];
    if (c == ',' && !quoted) {
      current = nullptr;
      continue;
    }
    if (current == nullptr)
      current = &out.emplace_back();
    if (c == '"')
      quoted = !quoted;
    else
      *current += c == '\\' ? literal[++i] : c;
  }
  return out;
}

void copy_rows::separate() {
  if (!fresh_)
    text_ += '\t';
  fresh_ = false;
}

copy_rows& copy_rows::add(std::string_view text) {
  separate();
  append(text_, text, in_copy, [](char c) {
    return c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c;
  });
  return *this;
}

copy_rows& copy_rows::add(std::int64_t number) {
  separate();
  append(text_, number);
  return *this;
}

copy_rows& copy_rows::add(const std::optional<utc_time>& t) {
  return t ? add(to_unix_ms(*t)) : add_null();
}

copy_rows& copy_rows::add_unless(std::string_view nothing, std::string_view text) {
  return text == nothing ? add_null() : add(text);
}

copy_rows& copy_rows::add_null() {
  separate();
  text_ += "\\N";
  return *this;
}

void copy_rows::end_row() {
  text_ += '\n';
  fresh_ = true;
  ++rows_;
}

std::vector<std::optional<std::string>> fields_of(std::string_view line) {
  std::vector<std::optional<std::string>> out;
  for (const auto raw : split(line, '\t')) {
    if (raw == "\\N") {
      out.emplace_back();
      continue;
    }
    auto& text = *out.emplace_back(std::string{});
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        text += raw[i];
        continue;
      }
      const char c = raw[++i];
      text += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

std::vector<std::string_view> lines_of(const copy_rows& rows) {
  return split(std::string_view{rows.text()}.substr(0, rows.text().size() - 1), '\n');
}

} // namespace boyd::adapters::postgres
