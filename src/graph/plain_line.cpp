#include "plain_line_internal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>

namespace boyd::graph {

namespace {

/// More members than this are read as JSON.
constexpr std::size_t most_members = 16;
/// Decimal fractions beyond these are read as JSON.
constexpr std::size_t most_fraction_digits = 12;
constexpr std::uint64_t most_whole_part = 1000;
/// Every number of so many digits fits 63 bits.
constexpr std::size_t most_digits = 18;

/// Takes a line apart from its front. A member that returns false has found something that is not
/// plain.
class scanner {
 public:
  explicit scanner(std::string_view text) : rest_(text) {}

  bool skip(std::string_view literal) {
    if (!rest_.starts_with(literal))
      return false;
    rest_.remove_prefix(literal.size());
    return true;
  }

  /// A text, without its quotes.
  bool text(std::string_view& into) {
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (!skip("\""))
      return false;
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_plain);
    into = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(into.size());
    return skip("\"");
  }

  template <class Number>
  bool number(Number& into) {
    const auto end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    if (end == 0 || end > most_digits || (rest_.front() == '0' && end > 1))
      return false;
    std::from_chars(rest_.data(), rest_.data() + end, into);
    rest_.remove_prefix(end);
    return true;
  }

  /// A text, a number that is not negative, a truth value or null.
  bool value() {
    std::string_view text_value;
    if (rest_.starts_with('"'))
      return text(text_value);
    if (skip("true") || skip("false") || skip("null"))
      return true;
    std::uint64_t digits = 0;
    if (!number(digits))
      return false;
    if (!skip("."))
      return true;
    // As a JSON writer puts it: no zero at its end but the only one, and not more digits than a
    // number of this kind keeps.
    const auto end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const auto fraction = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return end > 0 && end <= most_fraction_digits && digits < most_whole_part &&
           (fraction.back() != '0' || fraction == "0");
  }

  /// An object of such values, whose keys differ.
  bool object(std::string_view& into) {
    const auto all = rest_;
    std::array<std::string_view, most_members> keys;
    std::size_t count = 0;
    if (!skip("{"))
      return false;
    for (bool more = !skip("}"); more; more = !skip("}")) {
      const auto known = keys.begin() + static_cast<std::ptrdiff_t>(count);
      if (count == most_members || (count > 0 && !skip(",")) || !text(keys[count]) ||
          std::find(keys.begin(), known, keys[count]) != known || !skip(":") || !value())
        return false;
      ++count;
    }
    into = all.substr(0, all.size() - rest_.size());
    return true;
  }

  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool is_plain_digest(std::string_view text) {
  return text.size() == genesis.size() &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace

std::optional<logged_edge> read_plain_line(std::string_view line) {
  std::string_view from;
  std::string_view to;
  std::string_view type;
  std::string_view meta;
  std::string_view prev;
  std::string_view crc;
  std::int64_t timestamp = 0;
  std::uint64_t seq = 0;
  scanner s(line);
  const bool plain = line.size() <= max_line_bytes && s.skip("{\"from\":") && s.text(from) &&
                     s.skip(",\"to\":") && s.text(to) && s.skip(",\"type\":") && s.text(type) &&
                     s.skip(",\"timestamp\":") && s.number(timestamp) && s.skip(",\"meta\":") &&
                     s.object(meta) && s.skip(",\"seq\":") && s.number(seq) &&
                     s.skip(",\"prev\":") && s.text(prev) &&
                     (!s.skip(",\"crc\":") || s.text(crc)) && s.skip("}") && s.is_at_end();
  if (!plain || from.empty() || to.empty() || type.empty() || seq == 0 || !is_plain_digest(prev))
    return std::nullopt;
  logged_edge read;
  read.fact = {std::string(from), std::string(to), std::string(type), from_unix_ms(timestamp),
               std::string(meta)};
  read.seq = seq;
  read.prev = prev;
  return read;
}

} // namespace boyd::graph
