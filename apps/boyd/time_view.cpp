#include "time_view.hpp"

#include "boyd/core/day.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/time_zones.hpp"
#include "home.hpp"

#include <memory>
#include <optional>
#include <regex>
#include <utility>

namespace boyd::app {

namespace {

bool in_utc = false;
/// Of "2026-02-13".
constexpr std::size_t date_characters = 10;

/// Read once, by whoever needs it first: it takes the system's database.
const time_zone& zone() {
  static const auto chosen = [] {
    const auto zones = local_ports().zones;
    auto found = in_utc ? zones->find("UTC").value_or(nullptr) : zones->local();
    return found ? found : zones->find("UTC").value();
  }();
  return *chosen;
}

utc_time now() {
  return local_ports().clock->now();
}

std::optional<utc_time> time_of(const json& object, const char* key) {
  const auto t = parse_rfc3339(text_of(object, key));
  return t ? std::optional(*t) : std::nullopt;
}

} // namespace

void choose_time_view(const arguments& args) {
  in_utc = args.utc;
}

std::string moment_of(const json& object, const char* key) {
  const auto t = time_of(object, key);
  return t ? plan::show_time(*t, zone()) : "-";
}

std::string brief_moment_of(const json& object, const char* key, const terminal& t) {
  const auto moment = time_of(object, key);
  if (!moment)
    return "-";
  return t.has_width() ? plan::show_time_briefly(*moment, now(), zone())
                       : plan::show_time(*moment, zone());
}

std::string distance_of(const json& object, const char* key) {
  const auto t = time_of(object, key);
  return t ? plan::show_time_briefly(*t, now(), zone()) : "-";
}

std::string clock_of(const json& object, const char* key) {
  constexpr std::size_t begin = date_characters + 1;
  constexpr std::size_t size = 8;
  const auto text = moment_of(object, key);
  return text.size() < begin + size ? "" : text.substr(begin, size);
}

std::string time_between(const json& object, const char* from, const char* to) {
  const auto first = time_of(object, from);
  return first ? plan::show_length(time_of(object, to).value_or(now()) - *first) : std::string{};
}

namespace {

std::string as_it_is(std::string shown) {
  return shown;
}

/// Of what show_time writes: the minute, with its day where that is not today.
std::string briefly(std::string shown) {
  constexpr std::size_t minute_characters = 16;
  const bool is_today =
      shown.substr(0, date_characters) == plan::show_time(now(), zone()).substr(0, date_characters);
  return shown.substr(0, minute_characters).substr(is_today ? date_characters + 1 : 0);
}

/// `text` with its times as `show` makes them of what show_time writes.
std::string with_times(const std::string& text, std::string (*show)(std::string)) {
  const auto today = format_rfc3339(now()).substr(0, date_characters + 1);
  static const std::regex pattern(R"((\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(\.\d+)?Z)");
  std::string out;
  auto rest = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    const auto& found = *it;
    const bool is_clock = !found[1].matched;
    const auto t = parse_rfc3339(is_clock ? today + found.str() : found.str());
    out.append(rest, found[0].first);
    const auto shown = t ? plan::show_time(*t, zone()) : found.str();
    out += t && is_clock ? shown.substr(date_characters + 1) : t ? show(shown) : shown;
    rest = found[0].second;
  }
  return out.append(rest, text.cend());
}

} // namespace

std::string in_user_zone(const std::string& text) {
  return with_times(text, as_it_is);
}

std::string with_brief_times(const std::string& text, const terminal& t) {
  return with_times(text, t.has_width() ? briefly : as_it_is);
}

namespace {

/// Which end of what a text means: a time that something is looked at counts to its end.
enum class edge : std::uint8_t { first, last };

/// Error: what stands behind `option` is no time.
result<void> read_time(std::string& text, const char* option, edge wanted) {
  if (text.empty())
    return {};
  const auto span = plan::parse_human_time(text, now(), zone());
  if (!span)
    return fail(errc::invalid_argument, option + (": " + span.error().what), {}, span.error().next);
  text = format_rfc3339(wanted == edge::first ? span->first : span->last, true);
  return {};
}

/// "10:00" is the latest one that has begun: before ten, the one of yesterday.
void tell_of_yesterday(const std::string& written, const std::string& read) {
  const auto t = parse_rfc3339(read);
  const auto day = [](utc_time moment) {
    return plan::show_time(moment, zone()).substr(0, date_characters);
  };
  const bool is_clock = written.find(':') != std::string::npos &&
                        written.find_first_not_of("0123456789: ") == std::string::npos;
  if (is_clock && t && day(*t) != day(now()))
    print_note(written + " of today is still to come; this is about " + day(*t) + " " + written);
}

/// A day means its last cycle, today the latest one; a moment that has begun is not to come, and a
/// minute stays whole.
void read_begun(std::string& text, const std::string& written) {
  constexpr auto nearly_a_day = std::chrono::hours{22};
  const auto span = plan::parse_human_time(written, now(), zone());
  if (!span || span->first > now())
    return;
  if (span->last - span->first > nearly_a_day)
    print_note(written + " has no time, so this is about the last cycle of it");
  if (span->last > now() && span->last - span->first > std::chrono::minutes{1})
    text = format_rfc3339(now(), true);
}

/// The day of the user's calendar.
result<void> read_day(std::string& text, const char* option) {
  if (text.empty() || is_day(text))
    return {};
  const auto span = plan::parse_human_time(text, now(), zone());
  if (!span)
    return fail(errc::invalid_argument, option + (": not a date: \"" + text + "\""), {},
                "use a day such as 2026-11-28, yesterday or monday");
  text = plan::show_time(span->first, zone()).substr(0, date_characters);
  return {};
}

} // namespace

result<arguments> with_times_read(arguments args) {
  auto done = read_time(args.since, "--since", edge::first);
  if (args.verb == "why" || args.verb == "memory recall") {
    const auto written = args.at;
    if (done)
      done = read_time(args.at, "--at", edge::last);
    if (done && args.verb == "why") {
      tell_of_yesterday(written, args.at);
      read_begun(args.at, written);
    }
  } else if (args.verb == "cost") {
    if (done)
      done = read_day(args.from, "--from");
    if (done)
      done = read_day(args.to, "--to");
  } else if (args.verb.starts_with("state ")) {
    for (auto* point : {&args.at, &args.from, &args.to})
      static_cast<void>(read_time(*point, "", edge::last)); // else it is an id
  }
  if (!done)
    return fail(std::move(done.error()));
  return args;
}

} // namespace boyd::app
