#include "boyd/graph/inspector.hpp"
#include "boyd/graph/links.hpp"
#include "inspector_internal.hpp"

#include <algorithm>
#include <array>
#include <utility>

/// The names by which people call nodes.
namespace boyd::graph {

namespace {

using namespace std::string_view_literals;

constexpr std::array kinds{"ctx_"sv,       "exec_"sv,     "skill_"sv,
                           "candidate_"sv, "decision_"sv, "outcome_"sv};
/// Of the beginning of an id, behind its kind.
constexpr std::size_t least_beginning = 4;
constexpr std::size_t items_at_once = 1000;
constexpr std::size_t most_items = 100'000;

result<bool> has_facts(const inspection& in, const std::string& node) {
  const auto facts = in.source.facts_of(node, 1);
  if (!facts)
    return fail(facts.error());
  return !facts->empty();
}

/// Contexts with this path, of whatever workspace.
result<std::set<std::string>> items_at(const inspection& in, const std::string& path) {
  std::set<std::string> found;
  std::string from;
  for (std::size_t seen = 0; seen < most_items;) {
    const auto some = in.source.some(index_area::items, from, items_at_once);
    if (!some)
      return fail(some.error());
    for (const auto& [id, value] : *some) {
      if (value.find(path) == value.npos)
        continue;
      if (const auto item = read_learned_item(value); item && item->path == path)
        found.insert(id);
    }
    if (some->size() < items_at_once)
      break;
    seen += some->size();
    from = some->back().first + '\x01';
  }
  return found;
}

/// Nodes whose ids begin so; two are enough.
result<std::set<std::string>> beginning_with(const inspection& in, const std::string& text) {
  std::set<std::string> found;
  for (const auto area : {index_area::items, index_area::skills, index_area::candidates}) {
    const auto some = in.source.some(area, text, 2);
    if (!some)
      return fail(some.error());
    for (const auto& entry : *some)
      if (entry.first.starts_with(text))
        found.insert(entry.first);
  }
  if (!found.empty())
    return found;
  std::uint64_t looked_at = 0;
  const auto read = in.source.backwards([&](const cited_fact& f) {
    for (const auto* id : {&f.fact.from, &f.fact.to})
      if (id->starts_with(text))
        found.insert(*id);
    return found.size() < 2 && ++looked_at < most_lines_looked_at;
  });
  if (!read)
    return fail(read.error());
  return found;
}

result<std::string> only_one(const std::set<std::string>& found, const std::string& text) {
  if (found.size() > 1)
    return fail(errc::conflict, "more than one node has this name", text,
                "use an id: " + *found.begin() + " or " + *found.rbegin());
  return *found.begin();
}

} // namespace

result<std::string> find_node(const inspection& in, const std::string& text) {
  for (const auto& id : {text, "exec_" + text, "skill_" + text}) {
    const auto there = has_facts(in, id);
    if (!there)
      return fail(there.error());
    if (*there)
      return id;
  }
  const auto skills = skills_called(in, text);
  if (!skills)
    return fail(skills.error());
  if (!skills->empty())
    return only_one(*skills, text);
  const auto runs = in.source.facts_of(agent_node(text), 1);
  if (!runs)
    return fail(runs.error());
  if (!runs->empty())
    return runs->front().fact.from;
  const auto items = items_at(in, text);
  if (!items)
    return fail(items.error());
  if (!items->empty())
    return only_one(*items, text);
  const auto kind = std::ranges::find_if(kinds, [&](auto one) { return text.starts_with(one); });
  if (kind != kinds.end() && text.size() >= kind->size() + least_beginning) {
    const auto found = beginning_with(in, text);
    if (!found)
      return fail(found.error());
    if (!found->empty())
      return only_one(*found, text);
  } else if (kind == kinds.end()) {
    auto run = find_execution(in, text);
    if (run || run.error().code != errc::not_found)
      return run;
  }
  return fail(
      errc::not_found, "no facts about this node", text,
      "use the path of a context, an agent, a skill, or an id or its beginning, as `boyd kg "
      "stats --json` and `boyd kg query --json` give them");
}

} // namespace boyd::graph
