#include "fuzz/target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace boyd::fuzz {
namespace {

std::vector<target>& registered() {
  static std::vector<target> all;
  return all;
}

failure_handler& handler() {
  static failure_handler present = [](const std::string& rule) {
    std::fprintf(stderr, "broken rule: %s\n", rule.c_str());
    std::abort();
  };
  return present;
}

} // namespace

const std::vector<target>& targets() {
  std::sort(registered().begin(), registered().end(),
            [](const target& a, const target& b) { return a.name < b.name; });
  return registered();
}

const target* find_target(std::string_view name) {
  const auto& all = targets();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const target& t) { return t.name == name; });
  return it == all.end() ? nullptr : &*it;
}

registration::registration(std::string_view name, void (*run)(std::string_view)) {
  registered().push_back({name, run});
}

void on_failure(failure_handler replacement) {
  handler() = std::move(replacement);
}

void require(bool holds, std::string_view rule) {
  if (!holds)
    handler()(std::string(rule));
}

std::uint8_t reader::byte() {
  if (rest_.empty())
    return 0;
  const auto first = static_cast<std::uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return first;
}

std::uint32_t reader::word() {
  std::uint32_t value = 0;
  for (unsigned shift = 0; shift < 32; shift += 8)
    value |= std::uint32_t{byte()} << shift;
  return value;
}

std::string_view reader::line() {
  const auto end = rest_.find('\n');
  const auto text = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  return text;
}

} // namespace boyd::fuzz
