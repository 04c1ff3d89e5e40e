#include "bench/support/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <sys/resource.h>

namespace boyd::bench {

double seconds_since(stopwatch_clock::time_point since) {
  return std::chrono::duration<double>(stopwatch_clock::now() - since).count();
}

double percentile(std::vector<double> values, double percent) {
  if (values.empty())
    return 0;
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100.0 * count)));
  return values[std::min(rank, values.size()) - 1];
}

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double peak_resident_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double kib_per_mib = 1024;
  return static_cast<double>(usage.ru_maxrss) / kib_per_mib;
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  constexpr double micro = 1e-6;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * micro;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double load_average() {
  double minute = 0;
  return ::getloadavg(&minute, 1) == 1 ? minute : 0;
}

} // namespace boyd::bench
