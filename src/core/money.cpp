#include "boyd/core/money.hpp"

#include <charconv>
#include <limits>

namespace boyd {

namespace {

constexpr std::size_t places = 6;
constexpr std::size_t shown_places = 2;

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::int64_t> integer(std::string_view digits) {
  std::int64_t value = 0;
  const auto done = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return done.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

} // namespace

std::optional<std::int64_t> parse_dollars(std::string_view text) noexcept {
  const auto point = text.find('.');
  const auto whole_digits = text.substr(0, point);
  const auto part_digits =
      point == std::string_view::npos ? std::string_view("0") : text.substr(point + 1);
  if (!is_digits(whole_digits) || !is_digits(part_digits) || part_digits.size() > places)
    return std::nullopt;
  const auto whole = integer(whole_digits);
  auto part = integer(part_digits).value_or(0);
  for (auto n = part_digits.size(); n < places; ++n)
    part *= 10;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  if (!whole || *whole > (most - part) / dollar)
    return std::nullopt;
  return *whole * dollar + part;
}

std::string format_dollars(std::int64_t millionths) {
  const bool negative = millionths < 0;
  // The least number has no positive twin of its own type.
  const auto amount = negative ? ~static_cast<std::uint64_t>(millionths) + 1
                               : static_cast<std::uint64_t>(millionths);
  constexpr auto unit = static_cast<std::uint64_t>(dollar);
  auto part = std::to_string(amount % unit);
  part.insert(0, places - part.size(), '0');
  while (part.size() > shown_places && part.back() == '0')
    part.pop_back();
  return (negative ? "-" : "") + std::to_string(amount / unit) + "." + part;
}

} // namespace boyd
