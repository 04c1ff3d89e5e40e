#include "boyd/faults/points.hpp"

#include "boyd/core/text.hpp"

#include <spdlog/spdlog.h>

#include <array>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>

namespace boyd::faults {

namespace detail {
std::atomic<int> armed_sets{0};
} // namespace detail

namespace {

/// A drawn seed can be given again everywhere, in a configuration and in JSON, too.
constexpr std::uint64_t most_drawn = 0xffff'ffff;

/// An armed fault and its own stream of chance: what else is armed does not change it.
struct live_fault {
  std::size_t index = 0;
  armed_fault state;
  std::mt19937_64 random;
};

struct registry {
  std::mutex mutex;
  std::condition_variable changed; ///< something was disarmed: delays end
  std::uint64_t disarmings = 0;
  std::vector<live_fault> faults;
  std::array<std::uint64_t, detail::catalogue.size()> triggered{};
  bool counted = false; ///< in armed_sets
};

thread_local registry* own = nullptr;

registry& all() {
  static registry of_process;
  return own == nullptr ? of_process : *own;
}

void refresh(registry& r) {
  const bool any = std::ranges::any_of(r.faults, [](const auto& f) { return !f.state.spent; });
  if (std::exchange(r.counted, any) != any)
    detail::armed_sets.fetch_add(any ? 1 : -1, std::memory_order_relaxed);
}

/// Whether this pass is one that the fault waits for.
bool is_due(live_fault& f) {
  const auto& a = f.state.what;
  const auto pass = static_cast<std::int64_t>(++f.state.passes);
  if (pass <= a.after || (pass - a.after - 1) % a.every != 0)
    return false;
  return std::uniform_real_distribution<double>{}(f.random) < a.probability;
}

struct strike_of {
  arming what;
  std::uint64_t salt = 0;
  std::uint64_t number = 0; ///< of its fault's, from 1 on
};

/// A fault without end must not fill the log: beyond the first ones, each doubling is told.
bool is_told(std::uint64_t number) {
  constexpr std::uint64_t first_ones = 32;
  return number <= first_ones || std::has_single_bit(number);
}

/// The fault that strikes at this pass, counted down. Every fault of the point sees the pass.
std::optional<strike_of> strike(registry& r, point p) {
  std::optional<strike_of> struck;
  for (auto& f : r.faults) {
    if (f.index != p.index() || f.state.spent || !is_due(f) || struck)
      continue;
    ++f.state.strikes;
    ++r.triggered[f.index];
    f.state.spent =
        f.state.what.count > 0 && f.state.strikes >= static_cast<std::uint64_t>(f.state.what.count);
    struck = strike_of{f.state.what, f.random(), f.state.strikes};
  }
  if (struck)
    refresh(r);
  return struck;
}

} // namespace

struct isolation::impl {
  registry faults;
  registry* before = own;
};

isolation::isolation() : impl_(std::make_unique<impl>()) {
  own = &impl_->faults;
}

isolation::~isolation() {
  disarm();
  own = impl_->before;
}

const std::vector<std::string_view>& points() {
  static const auto names = [] {
    std::vector<std::string_view> all_names;
    all_names.reserve(detail::catalogue.size());
    for (const auto& row : detail::catalogue)
      all_names.push_back(row.name);
    return all_names;
  }();
  return names;
}

const point_info* find(std::string_view point) noexcept {
  const auto i = detail::index_of(point);
  return i == detail::catalogue.size() ? nullptr : &detail::catalogue[i];
}

result<void> arm(const std::vector<arming>& faults, std::uint64_t seed) {
  for (const auto& f : faults)
    if (auto sound = check(f); !sound)
      return sound;
  auto& r = all();
  const std::lock_guard lock(r.mutex);
  std::mt19937_64 seeds(seed);
  for (const auto& f : faults) {
    live_fault live;
    live.index = detail::index_of(f.point);
    live.state.what = f;
    // Told, so that what it decides can be had again.
    if (!f.seed)
      live.state.what.seed = seeds() & most_drawn;
    live.random.seed(*live.state.what.seed);
    spdlog::warn("fault point {}: armed by {}: {}", f.point, name_of(f.by),
                 to_text(live.state.what));
    r.faults.push_back(std::move(live));
  }
  refresh(r);
  return {};
}

void disarm() {
  auto& r = all();
  const std::lock_guard lock(r.mutex);
  r.faults.clear();
  ++r.disarmings;
  r.changed.notify_all();
  refresh(r);
}

std::size_t disarm(origin by) {
  auto& r = all();
  const std::lock_guard lock(r.mutex);
  const auto ended =
      std::erase_if(r.faults, [by](const live_fault& f) { return f.state.what.by == by; });
  ++r.disarmings;
  r.changed.notify_all();
  refresh(r);
  return ended;
}

std::vector<armed_fault> armed() {
  auto& r = all();
  const std::lock_guard lock(r.mutex);
  std::vector<armed_fault> out;
  out.reserve(r.faults.size());
  for (const auto& f : r.faults)
    out.push_back(f.state);
  return out;
}

std::uint64_t triggered(std::string_view point) {
  const auto i = detail::index_of(point);
  auto& r = all();
  const std::lock_guard lock(r.mutex);
  return i == detail::catalogue.size() ? 0 : r.triggered[i];
}

void wait(milliseconds delay) {
  wait(delay, disarmings());
}

void wait(milliseconds delay, std::uint64_t since) {
  auto& r = all();
  std::unique_lock lock(r.mutex);
  r.changed.wait_for(lock, delay, [&r, since] { return r.disarmings != since; });
}

std::uint64_t disarmings() {
  auto& r = all();
  const std::lock_guard lock(r.mutex);
  return r.disarmings;
}

namespace {

std::string with_flipped(std::string_view bytes, std::size_t at, unsigned bit) {
  std::string out(bytes);
  if (!out.empty()) {
    auto& byte = out[at % out.size()];
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << bit));
  }
  return out;
}

} // namespace

std::string malformed(std::string_view bytes, std::uint64_t salt) {
  constexpr unsigned highest_bit = 7;
  return with_flipped(bytes, salt, highest_bit);
}

std::string damaged(std::string_view bytes, std::uint64_t salt) {
  constexpr unsigned bits = 8;
  return with_flipped(bytes, salt / bits, static_cast<unsigned>(salt % bits));
}

result<effect> detail::meet_armed(point p) {
  auto& r = all();
  std::optional<strike_of> struck;
  {
    const std::lock_guard lock(r.mutex);
    struck = strike(r, p);
  }
  if (!struck)
    return effect{};
  const auto name = std::string(p.info().name);
  if (is_told(struck->number))
    spdlog::warn("fault point {}: strikes: {} ({})", name, name_of(struck->what.what),
                 struck->number);
  switch (struck->what.what) {
  case action::crash:
    throw std::runtime_error("fault point " + name + ": crash");
  case action::error:
    return fail(errc::injected, "fault point " + name + ": error", {},
                "remove the fault with: boyd chaos clear, or change faults: in the configuration");
  case action::delay:
  case action::drop:
  case action::corrupt:
    break;
  }
  return effect{struck->what.what, struck->what.delay, struck->salt};
}

result<void> detail::pass_armed(point p) {
  auto met = meet_armed(p);
  if (!met)
    return fail(std::move(met.error()));
  if (met->what == action::delay)
    wait(met->delay);
  return {};
}

} // namespace boyd::faults
