#include "wakeup.hpp"

#include "boyd/core/text.hpp"
#include "boyd/queue/transitions.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace boyd::adapters::postgres {

namespace {

/// NOTIFY takes less than 8,000 bytes.
constexpr std::size_t most_payload = 7900;
constexpr char separator = '\t';
constexpr std::size_t fields_of_a_row = 3;

template <class Number>
bool read(std::string_view text, Number& into) {
  const auto* end = text.data() + text.size();
  const auto r = std::from_chars(text.data(), end, into);
  return r.ec == std::errc{} && r.ptr == end;
}

} // namespace

void wakeup::add(wakeup other) {
  kernels.merge(other.kernels);
  for (const auto& row : other.rows)
    queue::add_due(rows, row);
}

std::vector<std::string> payloads_of(const wakeup& w, std::string_view spoken_by) {
  std::set<std::string> all = w.kernels;
  for (const auto& row : w.rows)
    all.insert(row.kernel_id);
  std::vector<std::string> payloads;
  for (const auto& kernel : all) {
    const auto bare = std::string(spoken_by) + kernel;
    auto whole = bare;
    std::size_t told = 0;
    bool readable = !w.kernels.contains(kernel);
    for (const auto& row : w.rows) {
      if (row.kernel_id != kernel)
        continue;
      ++told;
      readable = readable && row.agent_id.find(separator) == std::string::npos;
      whole += separator + row.agent_id + separator + std::to_string(row.priority) + separator +
               std::to_string(row.count);
    }
    payloads.push_back(readable && told <= queue::most_told && whole.size() <= most_payload ? whole
                                                                                            : bare);
  }
  return payloads;
}

std::optional<std::vector<store::due_agents::row>> rows_of(std::string_view payload) {
  const auto space = payload.find(' ');
  if (space == std::string_view::npos)
    return std::nullopt;
  const auto parts = split(payload.substr(space + 1), separator);
  const auto rows = (parts.size() - 1) / fields_of_a_row;
  if (rows == 0 || rows > queue::most_told || parts.size() != 1 + rows * fields_of_a_row)
    return std::nullopt;
  std::vector<store::due_agents::row> all;
  for (std::size_t i = 1; i < parts.size(); i += fields_of_a_row) {
    store::due_agents::row row{std::string(parts[0]), std::string(parts[i]), 0, 0};
    if (!read(parts[i + 1], row.priority) || !read(parts[i + 2], row.count) || row.count == 0)
      return std::nullopt;
    row.count = std::min(row.count, queue::due_count_cap);
    all.push_back(std::move(row));
  }
  return all;
}

} // namespace boyd::adapters::postgres
