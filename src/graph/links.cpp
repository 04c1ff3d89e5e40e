#include "boyd/graph/links.hpp"

#include "fact_meta_internal.hpp"

#include <algorithm>
#include <utility>

namespace boyd::graph {

std::uint64_t node_hash(std::string_view id) noexcept {
  constexpr std::uint64_t basis = 14695981039346656037U;
  constexpr std::uint64_t prime = 1099511628211U;
  auto hash = basis;
  for (const char c : id)
    hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  return hash;
}

bool is_rare(std::string_view type) noexcept {
  return type != "used_in" && type != "resulted_in" && type != "decided_by";
}

std::string type_node(std::string_view type) {
  return "type:" + std::string(type);
}

std::string agent_node(std::string_view agent) {
  return "agent:" + std::string(agent);
}

std::string short_node(std::string_view characters) {
  return "short:" + std::string(characters);
}

std::vector<std::string> further_nodes(const edge& fact) {
  if (is_rare(fact.type))
    return {type_node(fact.type)};
  if (fact.type != "resulted_in")
    return {};
  std::vector<std::string> nodes;
  if (const auto agent = fact_meta(fact.meta_json).text("agent"); !agent.empty())
    nodes.push_back(agent_node(agent));
  const auto group = std::string_view(fact.from).substr(fact.from.rfind('-') + 1);
  if (group.size() >= short_id_characters && group.size() < fact.from.size())
    nodes.push_back(short_node(group.substr(0, short_id_characters)));
  return nodes;
}

bool is_found_by(const edge& fact, std::string_view node) {
  if (fact.from == node || fact.to == node)
    return true;
  const auto further = further_nodes(fact);
  return std::ranges::find(further, node) != further.end();
}

void link_collector::resume(std::vector<fact_link> fresh, std::uint64_t lines) {
  anew_from_ = lines + 1;
  block_ = std::move(fresh);
  known_ = block_.size();
  marks_.clear();
  full_.clear();
  has_full_ = false;
}

void link_collector::begin_line(const line_mark& at) {
  if (at.begins_segment || at.line % lines_between_marks == 1)
    marks_.push_back(at);
}

void link_collector::take(const edge& fact, std::uint64_t line) {
  block_.push_back({node_hash(fact.from), line});
  if (fact.to != fact.from)
    block_.push_back({node_hash(fact.to), line});
  for (const auto& node : further_nodes(fact))
    block_.push_back({node_hash(node), line});
}

void link_collector::end_block() {
  std::ranges::sort(block_);
  if (full_.empty())
    full_.swap(block_);
  else
    full_.insert(full_.end(), block_.begin(), block_.end());
  has_full_ = true;
  block_.clear();
  known_ = 0;
}

link_changes link_collector::take_changes() {
  link_changes changes;
  changes.anew_from = std::exchange(anew_from_, std::nullopt);
  changes.marks = std::exchange(marks_, {});
  if (std::exchange(has_full_, false))
    changes.full = std::exchange(full_, {});
  changes.fresh.assign(block_.begin() + static_cast<std::ptrdiff_t>(known_), block_.end());
  known_ = block_.size();
  return changes;
}

} // namespace boyd::graph
