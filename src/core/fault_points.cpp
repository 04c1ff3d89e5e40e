#include "boyd/core/fault_points.hpp"

#include "boyd/core/text.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>

namespace boyd::faults {

namespace detail {
std::atomic<bool> armed{false};
} // namespace detail

namespace {

struct registry {
  std::mutex mutex;
  std::condition_variable never; ///< waited on by delays; nobody notifies it
  std::vector<arming> faults;
  std::mt19937_64 random;
  std::map<std::string, std::uint64_t, std::less<>> triggered;
};

registry& all() {
  static registry r;
  return r;
}

/// The fault that strikes at this pass, counted down.
std::optional<arming> strike(registry& r, std::string_view point) {
  for (auto& f : r.faults) {
    if (f.point != point || f.count == 0)
      continue;
    if (std::uniform_real_distribution<double>{}(r.random) >= f.probability)
      continue;
    if (f.count > 0)
      --f.count;
    ++r.triggered[std::string(point)];
    return f;
  }
  return std::nullopt;
}

} // namespace

const std::vector<std::string_view>& points() {
  static const std::vector<std::string_view> names{
      "dispatcher.claim", "executor.run",     "git_committer.commit", "graph_recorder.append",
      "kernel.step",      "librarian.gather", "planner.plan",         "state_writer.write",
      "store.apply",      "store.open"};
  return names;
}

result<void> arm(const std::vector<arming>& faults, std::uint64_t seed) {
  for (const auto& f : faults) {
    if (std::ranges::find(points(), f.point) != points().end())
      continue;
    const auto near = nearest(f.point, points());
    return fail(errc::not_found, "no such fault point: " + f.point, "faults",
                near.empty() ? std::string("known: dispatcher.claim, executor.run, …")
                             : "did you mean " + std::string(near) + "?");
  }
  auto& r = all();
  std::lock_guard lock(r.mutex);
  r.random.seed(seed);
  r.faults.insert(r.faults.end(), faults.begin(), faults.end());
  detail::armed.store(!r.faults.empty(), std::memory_order_relaxed);
  return {};
}

void disarm() {
  auto& r = all();
  std::lock_guard lock(r.mutex);
  r.faults.clear();
  detail::armed.store(false, std::memory_order_relaxed);
}

std::uint64_t triggered(std::string_view point) {
  auto& r = all();
  std::lock_guard lock(r.mutex);
  auto it = r.triggered.find(point);
  return it == r.triggered.end() ? 0 : it->second;
}

result<void> detail::pass(std::string_view point) {
  auto& r = all();
  std::unique_lock lock(r.mutex);
  const auto fault = strike(r, point);
  if (!fault)
    return {};
  spdlog::warn("fault point {}: strikes", point);
  switch (fault->what) {
  case action::crash:
    throw std::runtime_error("fault point " + std::string(point) + ": crash");
  case action::delay:
    r.never.wait_for(lock, fault->delay);
    return {};
  case action::error:
    break;
  }
  return fail(errc::injected, "fault point " + std::string(point) + ": error", {},
              "disarm it in the configuration (faults:)");
}

} // namespace boyd::faults
