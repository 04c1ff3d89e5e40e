#include "boyd/graph/log_damage.hpp"

#include <set>
#include <utility>

namespace boyd::graph {

namespace {

/// The line that the newest commit names is hardly ever further from the end.
constexpr std::size_t end_looked_at = std::size_t{1} << 20;
constexpr std::size_t digits_of_commit = 12;

/// "graph.jsonl is missing"
std::string missing_segments(const std::vector<segment>& segments) {
  std::string first;
  std::uint64_t missing = 0;
  std::uint64_t next = 1;
  for (const auto& s : segments) {
    if (s.number > next && first.empty())
      first = segment{static_cast<std::uint32_t>(next), false}.name();
    missing += s.number - next;
    next = std::uint64_t{s.number} + 1;
  }
  if (missing == 0)
    return {};
  return missing == 1
             ? first + " is missing"
             : first + " and other segments are missing, " + std::to_string(missing) + " in all";
}

result<std::set<std::string>> missing_ends(segment_files& files,
                                           const std::vector<segment>& segments,
                                           std::set<std::string> heads) {
  if (const auto tail = read_tail(files, segments, end_looked_at))
    heads = heads_not_in(tail->text, std::move(heads));
  if (heads.empty())
    return heads;
  return missing_heads(files, std::move(heads));
}

} // namespace

result<std::string> log_damage(segment_files& files, const std::vector<anchor>& expected,
                               std::uint64_t missing_facts) {
  const auto segments = files.list();
  if (!segments)
    return fail(segments.error());
  auto text = missing_segments(*segments);
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  if (missing_facts > 0)
    add(missing_facts == 1
            ? "1 fact is missing between its lines"
            : std::to_string(missing_facts) + " facts are missing between its lines");
  const auto missing = missing_ends(files, *segments, heads_of(expected));
  if (!missing && missing.error().code != errc::corrupt)
    return fail(missing.error());
  if (!missing)
    add(missing.error().what);
  else if (!missing->empty() && segments->empty())
    add("graph.jsonl is missing");
  else
    for (const auto& a : expected)
      if (missing->contains(a.head))
        add("its end, as commit " + a.commit.substr(0, digits_of_commit) + " of kernel " +
            a.kernel_id + " names it, was cut off or changed");
  return text;
}

} // namespace boyd::graph
