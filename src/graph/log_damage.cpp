#include "boyd/graph/log_damage.hpp"

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

result<bool> log_has_end(segment_files& files, const std::vector<segment>& segments,
                         const std::string& head) {
  const auto tail = read_tail(files, segments, end_looked_at);
  if (tail && has_line(tail->text, head))
    return true;
  return log_has_line(files, head);
}

} // namespace

result<std::string> log_damage(segment_files& files, const std::optional<anchor>& expected,
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
  if (!expected || expected->head == genesis)
    return text;
  const auto has_end = log_has_end(files, *segments, expected->head);
  if (!has_end && has_end.error().code != errc::corrupt)
    return fail(has_end.error());
  if (!has_end)
    add(has_end.error().what);
  else if (!*has_end && segments->empty())
    add("graph.jsonl is missing");
  else if (!*has_end)
    add("its end, as commit " + expected->commit.substr(0, digits_of_commit) + " of kernel " +
        expected->kernel_id + " names it, was cut off or changed");
  return text;
}

} // namespace boyd::graph
