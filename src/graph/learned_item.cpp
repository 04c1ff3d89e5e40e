#include "boyd/graph/learned.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <system_error>
#include <utility>

/// An item as the index has it. All of them are read for some questions, and each is written with
/// every save: one number or text behind the other, a text with its length, which a reader of JSON
/// would need ten times as long for.
namespace boyd::graph {

namespace {

constexpr char behind_each = ' ';

class field_writer {
 public:
  void put(const std::string& text) {
    put(static_cast<std::int64_t>(text.size()));
    to_ += text;
  }
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void put(Number n) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr;
    to_.append(digits.data(), end);
    to_ += behind_each;
  }
  void put(const std::optional<utc_time>& t) {
    put(static_cast<std::int64_t>(t ? 1 : 0));
    if (t)
      put(to_unix_ms(*t));
  }
  void put(const std::vector<std::string>& texts) {
    put(static_cast<std::int64_t>(texts.size()));
    for (const auto& t : texts)
      put(t);
  }

  std::string take() { return std::move(to_); }

 private:
  std::string to_;
};

/// What is not as it was written makes all that follows empty, and is told.
class field_reader {
 public:
  explicit field_reader(std::string_view from) : left_(from) {}

  bool is_whole() const { return is_sound_ && left_.empty(); }

  void get(std::string& text) {
    const auto size = number();
    if (size < 0 || static_cast<std::uint64_t>(size) > left_.size()) {
      is_sound_ = false;
      return;
    }
    text = left_.substr(0, static_cast<std::size_t>(size));
    left_.remove_prefix(static_cast<std::size_t>(size));
  }
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void get(Number& n) {
    const auto* const end = left_.data() + left_.size();
    const auto read = std::from_chars(left_.data(), end, n);
    if (!is_sound_ || read.ec != std::errc{} || read.ptr == end || *read.ptr != behind_each) {
      is_sound_ = false;
      n = 0;
      return;
    }
    left_.remove_prefix(static_cast<std::size_t>(read.ptr - left_.data()) + 1);
  }
  void get(std::optional<utc_time>& t) {
    if (number() != 0)
      t = from_unix_ms(number());
  }
  void get(std::vector<std::string>& texts) {
    for (auto n = number(); n > 0 && is_sound_; --n)
      get(texts.emplace_back());
  }
  std::int64_t number() {
    std::int64_t n = 0;
    get(n);
    return n;
  }

 private:
  std::string_view left_;
  bool is_sound_ = true;
};

/// The one of these with this number; else the first.
template <class Enum, std::size_t Size>
Enum numbered(std::int64_t n, const std::array<Enum, Size>& all) {
  const auto it = std::ranges::find(all, n, [](Enum e) { return static_cast<std::int64_t>(e); });
  return it == all.end() ? all.front() : *it;
}

} // namespace

std::string to_text(const learned_item& item) {
  const auto& c = item.counts;
  field_writer to;
  to.put(item.path);
  to.put(static_cast<std::int64_t>(item.type));
  to.put(item.hash);
  to.put(static_cast<std::int64_t>(item.frozen ? 1 : 0));
  to.put(item.scope);
  to.put(item.kernels);
  to.put(item.referenced_by);
  to.put(item.stage);
  for (const auto n : {c.injected, c.use_count, c.referenced, c.success_count, c.failure_count,
                       c.verified_useful, c.verified_not_useful, to_unix_ms(c.created)})
    to.put(n);
  to.put(c.confidence);
  to.put(c.average);
  to.put(c.last_used);
  to.put(c.changed);
  to.put(static_cast<std::int64_t>(c.policy));
  to.put(static_cast<std::int64_t>(item.undone));
  to.put(c.policy_hash);
  return to.take();
}

std::optional<learned_item> read_learned_item(std::string_view text) {
  using context::item_type;
  using context::standing;
  field_reader from(text);
  learned_item item;
  auto& c = item.counts;
  from.get(item.path);
  item.type = numbered(from.number(), std::array{item_type::file, item_type::directory,
                                                 item_type::runtime, item_type::generated});
  from.get(item.hash);
  item.frozen = from.number() != 0;
  from.get(item.scope);
  from.get(item.kernels);
  from.get(item.referenced_by);
  from.get(item.stage);
  for (auto* n : {&c.injected, &c.use_count, &c.referenced, &c.success_count, &c.failure_count,
                  &c.verified_useful, &c.verified_not_useful})
    from.get(*n);
  c.created = from_unix_ms(from.number());
  from.get(c.confidence);
  from.get(c.average);
  from.get(c.last_used);
  from.get(c.changed);
  constexpr std::array standings{standing::open, standing::pinned, standing::shortened,
                                 standing::forgotten};
  c.policy = numbered(from.number(), standings);
  item.undone = numbered(from.number(), standings);
  from.get(c.policy_hash);
  return from.is_whole() ? std::optional(std::move(item)) : std::nullopt;
}

} // namespace boyd::graph
