#pragma once

#include "arguments.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/plan/human_time.hpp"
#include "json_view.hpp"
#include "terminal.hpp"

#include <string>

/// Times on the command line: in the user's zone, with --utc and in JSON in UTC. One thread.
namespace boyd::app {

/// Before anything is read or shown.
void choose_time_view(const arguments& args);

/// "2026-02-13 11:00:00 CET" of a member that is an RFC 3339 time; "-" when there is none.
std::string moment_of(const json& object, const char* key);

/// The same for a column of a table: brief on a screen ("3 min ago"), as moment_of where rows have
/// no width (a pipe).
std::string brief_moment_of(const json& object, const char* key, const terminal& t);

/// "in 5 min" of such a member, or its day and time; "-" when there is none.
std::string distance_of(const json& object, const char* key);

/// "11:00:00" of such a member, without its day.
std::string clock_of(const json& object, const char* key);

/// How long it took from one member to the other, or has taken until now while the second is
/// missing: "2.4 s"; empty without the first.
std::string time_between(const json& object, const char* from, const char* to);

/// A text of the node with its times as moment_of shows them: "2026-02-13T10:00:00Z", and
/// "10:00:00Z", which is today's.
std::string in_user_zone(const std::string& text);

/// The same for a column of a table: on a screen "10:00", of another day "2026-02-14 10:00".
std::string with_brief_times(const std::string& text, const terminal& t);

/// The command line with its times as the API takes them: RFC 3339 in UTC, days as dates. What
/// `boyd state` takes may also be an id, and then stays. Error `invalid_argument`, with the option.
result<arguments> with_times_read(arguments args);

} // namespace boyd::app
