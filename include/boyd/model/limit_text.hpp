#pragma once

#include "boyd/core/time.hpp"
#include "boyd/ports/time_zones.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Texts of programs and providers about a limit of use: "You've hit your limit · resets 3am
/// (Europe/Berlin)". Pure functions of any bytes; at most the last 8 KiB of a text are read.
namespace boyd::model {

/// A moment as a text names it. Exactly one of `wait`, `at` and `clock` says when.
struct told_time {
  /// A time of day, perhaps with a day.
  struct civil {
    std::optional<int> year;
    std::optional<unsigned> month; ///< with `day`; 1 to 12
    std::optional<unsigned> day;
    std::optional<unsigned> weekday; ///< 0: Sunday; without `day` only
    bool tomorrow = false;
    milliseconds of_day{0};
    std::string zone; ///< an IANA name; empty: `offset`, else the machine's zone
    std::optional<milliseconds> offset{}; ///< east of UTC

    bool operator==(const civil&) const = default;
  };

  std::optional<milliseconds> wait; ///< from now on
  std::optional<utc_time> at;
  std::optional<civil> clock;

  bool operator==(const told_time&) const = default;
};

struct told_limit {
  enum class kind_t : std::uint8_t {
    use,    ///< passes by itself
    credit, ///< money is missing, and no time is told at which that changes
  };
  kind_t kind = kind_t::use;
  std::optional<told_time> until;
};

/// What a text of an error says about a limit of use; nothing when it says of none. A limit of
/// another kind (the length of a context, turns, memory) is none, and neither is a mention of one
/// without a word that it was reached.
std::optional<told_limit> find_limit(std::string_view text);

/// Whether a whole answer is the notice of a limit, in the place of work: one short line that
/// begins as such notices do.
bool is_limit_notice(std::string_view answer);

/// The time behind "try again", "resets", "Retry-After" and the like; the first that can be read.
std::optional<told_time> find_time(std::string_view text);

/// How long it is from `now` to the time that was told; nothing when that is over, or cannot be
/// read without `zones`. Of two meanings the later one: it is not before the time told. A time of
/// day without a zone is one of the machine's zone; null: of UTC.
std::optional<milliseconds> wait_until(const told_time& told, utc_time now,
                                       const time_zones* zones);

} // namespace boyd::model
