#include "boyd/state/owed.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace boyd::state {

using nlohmann::json;

namespace {

std::optional<owed_commits> read_one(const json& entry) {
  if (!entry.is_object())
    return std::nullopt;
  const auto id = entry.find("cycle_id");
  const auto status = entry.find("status");
  const auto ended = entry.find("ended");
  const auto before = entry.find("before");
  if (id == entry.end() || !id->is_string() || status == entry.end() || !status->is_string() ||
      ended == entry.end() || !ended->is_number_integer() || before == entry.end() ||
      !before->is_boolean())
    return std::nullopt;
  const auto known = cycle_status_from(status->get<std::string>());
  if (!known || id->get<std::string>().empty())
    return std::nullopt;
  return owed_commits{id->get<std::string>(), *known, from_unix_ms(ended->get<std::int64_t>()),
                      before->get<bool>()};
}

} // namespace

std::string owed_scope(std::string_view kernel_id) {
  return "owed:" + std::string(kernel_id);
}

std::string render_owed(const std::vector<owed_commits>& owed) {
  if (owed.empty())
    return {};
  auto all = json::array();
  for (const auto& o : owed)
    all.push_back({{"cycle_id", o.cycle_id},
                   {"status", name_of(o.status)},
                   {"ended", to_unix_ms(o.ended)},
                   {"before", o.before}});
  return all.dump();
}

std::vector<owed_commits> parse_owed(std::string_view text) {
  std::vector<owed_commits> owed;
  const auto kept = json::parse(text, nullptr, false);
  if (!kept.is_array())
    return owed;
  for (const auto& entry : kept)
    if (auto one = read_one(entry))
      add_owed(owed, std::move(*one));
  return owed;
}

std::size_t add_owed(std::vector<owed_commits>& owed, owed_commits cycle) {
  std::erase_if(owed, [&](const owed_commits& o) { return o.cycle_id == cycle.cycle_id; });
  owed.push_back(std::move(cycle));
  const auto too_many = owed.size() - std::min(owed.size(), most_owed);
  owed.erase(owed.begin(), owed.begin() + static_cast<std::ptrdiff_t>(too_many));
  return too_many;
}

} // namespace boyd::state
