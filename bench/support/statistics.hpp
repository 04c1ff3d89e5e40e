#pragma once

#include <chrono>
#include <vector>

namespace boyd::bench {

using stopwatch_clock = std::chrono::steady_clock;

/// Seconds from `since` until now.
double seconds_since(stopwatch_clock::time_point since);

/// The value that `percent` of all values do not exceed (nearest rank); 0 for none.
double percentile(std::vector<double> values, double percent);

/// The middle value, or the mean of the two middle ones; 0 for none.
double median(std::vector<double> values);

/// The largest resident set of this process so far, in MiB.
double peak_resident_mib();

/// Processor seconds (user and system) that this process has used so far.
double processor_seconds();

/// The machine's one-minute load average; 0 when it is unknown.
double load_average();

} // namespace boyd::bench
