#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace boyd::faults {

namespace {

constexpr std::array<std::string_view, action_count> action_names{"crash", "error", "delay", "drop",
                                                                  "corrupt"};
constexpr std::array<std::string_view, 4> origin_names{"the configuration", "BOYD_FAULTS",
                                                       "boyd chaos", "a test"};

constexpr std::string_view example = "such as store.apply=error,count=3,after=5;executor.run=crash";

tl::unexpected<error> bad(std::string what, std::string_view expected = example) {
  return fail(errc::invalid_argument, std::move(what), "BOYD_FAULTS", std::string(expected));
}

template <class Number>
result<Number> number(std::string_view key, std::string_view text) {
  Number n{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (failed != std::errc{} || end != text.data() + text.size())
    return bad(std::string(key) + " is not a number: " + std::string(text));
  return n;
}

template <class Number, class Field>
result<void> read(std::string_view key, std::string_view text, Field& to) {
  auto n = number<Number>(key, text);
  if (!n)
    return fail(std::move(n.error()));
  to = *n;
  return {};
}

result<void> read_word(arming& a, std::string_view word) {
  const auto eq = word.find('=');
  if (eq == std::string_view::npos)
    return bad("\"" + std::string(word) + "\" has no value");
  const auto key = trim(word.substr(0, eq));
  const auto value = trim(word.substr(eq + 1));
  if (key == "count") {
    auto read_count = read<int>(key, value, a.count);
    a.count = count_of_strikes(a.count);
    return read_count;
  }
  if (key == "probability" || key == "prob")
    return read<double>(key, value, a.probability);
  if (key == "after")
    return read<std::int64_t>(key, value, a.after);
  if (key == "every")
    return read<std::int64_t>(key, value, a.every);
  if (key == "seed")
    return read<std::uint64_t>(key, value, a.seed);
  if (key == "delay") {
    auto d = parse_duration(value);
    if (!d)
      return bad("delay: " + d.error().what, "a duration such as 250ms");
    a.delay = *d;
    return {};
  }
  const auto near = nearest(key, {"count", "probability", "after", "every", "seed", "delay"});
  return bad("\"" + std::string(key) + "\" is not known",
             near.empty() ? "count, probability, after, every, seed or delay"
                          : "did you mean " + std::string(near) + "?");
}

result<arming> read_fault(std::string_view text) {
  arming a;
  a.by = origin::environment;
  bool first = true;
  for (const auto word : split(text, ',')) {
    if (!std::exchange(first, false)) {
      if (auto read = read_word(a, trim(word)); !read)
        return fail(std::move(read.error()));
      continue;
    }
    const auto eq = word.find('=');
    a.point = std::string(trim(word.substr(0, eq)));
    const auto name = eq == std::string_view::npos ? std::string_view{} : trim(word.substr(eq + 1));
    const auto what = action_of(name);
    if (find(a.point) != nullptr && !what) {
      const auto near =
          nearest(name, std::vector<std::string_view>(action_names.begin(), action_names.end()));
      return bad("\"" + std::string(name) + "\" is not an action",
                 near.empty() ? to_text(find(a.point)->can)
                              : "did you mean " + std::string(near) + "?");
    }
    a.what = what.value_or(action::error);
  }
  if (auto sound = check(a); !sound)
    return fail(std::move(sound.error()));
  return a;
}

} // namespace

std::string_view name_of(action a) noexcept {
  return action_names[static_cast<std::size_t>(a)];
}

std::optional<action> action_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(action_names, name);
  if (found == action_names.end())
    return std::nullopt;
  return static_cast<action>(found - action_names.begin());
}

std::string_view name_of(origin o) noexcept {
  return origin_names[static_cast<std::size_t>(o)];
}

std::string to_text(action_set all) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < action_count; ++i)
    if (contains(all, static_cast<action>(i)))
      names.push_back(action_names[i]);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += std::string(i == 0                  ? ""
                        : i + 1 == names.size() ? " or "
                                                : ", ") +
            std::string(names[i]);
  return text;
}

std::string to_text(const arming& a) {
  std::string text = a.point + " " + std::string(name_of(a.what));
  if (a.what == action::delay)
    text += " " + format_duration(a.delay);
  text += a.count < 0    ? ", forever"
          : a.count == 1 ? ", once"
                         : ", " + std::to_string(a.count) + " times";
  if (a.after > 0)
    text += ", after " + std::to_string(a.after);
  if (a.every > 1)
    text += ", every " + std::to_string(a.every) + ".";
  if (a.probability < 1.0) {
    auto digits = std::to_string(a.probability);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += ", probability " + digits;
  }
  if (a.seed && (a.probability < 1.0 || a.what == action::corrupt))
    text += ", seed " + std::to_string(*a.seed);
  return text;
}

result<void> check(const arming& a) {
  const auto* row = find(a.point);
  if (row == nullptr) {
    const auto near = nearest(a.point, points());
    return fail(errc::not_found, "no such fault point: " + a.point, "faults",
                near.empty() ? std::string("list them with: boyd chaos ls")
                             : "did you mean " + std::string(near) + "?");
  }
  if (!contains(row->can, a.what))
    return fail(errc::refused, a.point + " does not support " + std::string(name_of(a.what)),
                "faults", "supported: " + to_text(row->can));
  if (a.what == action::delay && a.delay <= milliseconds{0})
    return fail(errc::invalid_argument, "delay missing: without it the fault does nothing",
                "faults", "add a delay, such as 250ms");
  if (a.what != action::delay && a.delay > milliseconds{0})
    return fail(errc::invalid_argument,
                "a delay has no effect with " + std::string(name_of(a.what)), "faults",
                "remove the delay");
  if (a.count == 0 || !(a.probability >= 0.0 && a.probability <= 1.0) || a.after < 0 || a.every < 1)
    return fail(errc::invalid_argument, "invalid number for " + a.point, "faults",
                "use count at least 1 (or 0 for forever), probability 0 to 1, after at least 0, "
                "every at least 1");
  return {};
}

result<std::vector<arming>> parse(std::string_view words) {
  std::vector<arming> all;
  for (const auto text : split(words, ';')) {
    if (trim(text).empty())
      continue;
    auto a = read_fault(trim(text));
    if (!a)
      return fail(std::move(a.error()));
    all.push_back(std::move(*a));
  }
  return all;
}

} // namespace boyd::faults
