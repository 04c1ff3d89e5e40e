#include "boyd/graph/inspector.hpp"
#include "boyd/graph/learned_skills.hpp"
#include "boyd/graph/picture.hpp"
#include "inspector_internal.hpp"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

namespace boyd::graph {

namespace {

/// A node that is in every run would fill the picture alone.
constexpr std::size_t most_facts_of_node = 200;
/// Of each node that leads no further, what is looked at for edges between them.
constexpr std::size_t most_facts_at_rim = 50;

/// Of a context; anything else has no path and no score.
result<picture_node> node_of_item(const inspection& in, const std::string& id) {
  const auto item = in.source.item(id);
  if (!item)
    return fail(item.error());
  return picture_node{id, *item && !(*item)->path.empty() ? (*item)->path : id,
                      *item ? rounded(context::importance((*item)->counts, in.now)) : 0};
}

/// The score is that of `boyd skills`.
result<picture_node> node_of_skill(const inspection& in, const std::string& id) {
  const auto text = in.source.value(index_area::skills, id);
  if (!text)
    return fail(text.error());
  const auto skill = *text ? read_learned_skill(**text) : std::nullopt;
  return picture_node{id, id, skill ? rounded(context::importance(skill->counts, in.now)) : 0};
}

/// Gathers nodes and, between them, edges.
class gatherer {
 public:
  explicit gatherer(std::size_t most_nodes) : most_nodes_(most_nodes) {}

  /// False: there is no room for the node.
  bool add(const std::string& id) {
    if (known_.contains(id))
      return true;
    if (order_.size() == most_nodes_) {
      cut_ = true;
      return false;
    }
    known_.insert(id);
    order_.push_back(id);
    return true;
  }
  /// Repeated lines count once.
  void add(const cited_fact& f) {
    if (lines_.insert(f.line).second)
      ++edges_[{f.fact.from, f.fact.to, f.fact.type}];
  }
  void cut() { cut_ = true; }
  bool knows(const std::string& id) const { return known_.contains(id); }

  result<picture> finish(const inspection& in) const {
    picture p;
    p.cut = cut_;
    for (const auto& id : order_) {
      auto node = names_in_skill_id(id) ? node_of_skill(in, id) : node_of_item(in, id);
      if (!node)
        return fail(std::move(node.error()));
      p.nodes.push_back(std::move(*node));
    }
    for (const auto& [names, weight] : edges_) {
      const auto& [from, to, type] = names;
      if (known_.contains(from) && known_.contains(to))
        p.edges.push_back({from, to, type, weight});
    }
    return p;
  }

 private:
  std::size_t most_nodes_;
  std::vector<std::string> order_;
  std::set<std::string> known_;
  std::set<std::uint64_t> lines_;
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> edges_;
  bool cut_ = false;
};

result<void> gather_around(const inspection& in, const std::string& around, int depth,
                           gatherer& all) {
  std::deque<std::pair<std::string, int>> open{{around, 0}};
  std::vector<std::string> rim; // nodes that lead no further
  all.add(around);
  while (!open.empty()) {
    const auto [id, distance] = open.front();
    open.pop_front();
    if (distance == depth && distance > 0) {
      rim.push_back(id);
      continue;
    }
    const auto facts = in.source.facts_of(id, most_facts_of_node);
    if (!facts)
      return fail(facts.error());
    if (facts->size() == most_facts_of_node)
      all.cut();
    for (const auto& f : *facts) {
      const auto& other = f.fact.from == id ? f.fact.to : f.fact.from;
      const bool is_new = !all.knows(other);
      if (distance < depth && all.add(other) && is_new)
        open.emplace_back(other, distance + 1);
      all.add(f);
    }
  }
  const auto between = in.source.facts_between(rim, most_facts_at_rim);
  if (!between)
    return fail(between.error());
  for (const auto& f : *between)
    all.add(f);
  return {};
}

} // namespace

result<std::string> neighbourhood(const inspection& in, const std::string& around, int depth,
                                  std::size_t most_nodes) {
  gatherer all(most_nodes);
  if (!around.empty()) {
    const auto node = find_node(in, around);
    if (!node)
      return fail(node.error());
    if (auto done = gather_around(in, *node, depth, all); !done)
      return fail(std::move(done.error()));
  } else {
    const auto read = in.source.backwards([&](const cited_fact& f) {
      const bool fits = all.add(f.fact.from) && all.add(f.fact.to);
      if (fits)
        all.add(f);
      return fits;
    });
    if (!read)
      return fail(read.error());
  }
  const auto p = all.finish(in);
  if (!p)
    return fail(p.error());
  auto answer = json::parse(to_json(*p), nullptr, false);
  tell_left_out(in, answer);
  return dump(answer);
}

} // namespace boyd::graph
