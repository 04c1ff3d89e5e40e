#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Money is counted in millionths of a US dollar, never in floating point.
namespace boyd {

inline constexpr std::int64_t dollar = 1'000'000;

/// Reads "2.50", "3" and "0.000001" exactly; nothing for a sign, an exponent, more than six digits
/// after the point, or what does not fit.
std::optional<std::int64_t> parse_dollars(std::string_view text) noexcept;

/// "2.50", "0.000125", "-1.00": all digits that count, at least two after the point.
std::string format_dollars(std::int64_t millionths);

} // namespace boyd
