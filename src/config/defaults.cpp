#include "passes.hpp"
#include "schema.hpp"

#include <utility>
#include <vector>

namespace boyd::config {
namespace {

tree from_json(const schema_json_t& value, mark at) {
  tree out;
  out.at = at;
  out.assumed = true;
  if (value.is_object()) {
    out.kind = tree::kind_t::map;
    for (const auto& [key, item] : value.items()) {
      out.keys.push_back({key, at});
      out.items.push_back(from_json(item, at));
    }
  } else if (value.is_array()) {
    out.kind = tree::kind_t::sequence;
    for (const auto& item : value) {
      out.items.push_back(from_json(item, at));
    }
  } else {
    out.plain = !value.is_string();
    out.text = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return out;
}

/// Some defaults mean something only beside another key, or with one kind of executor.
bool default_counts(const schema_json_t& property, const tree& t) {
  if (property.contains("x-default-with")) {
    return t.find(property.at("x-default-with").get<std::string>()) != nullptr;
  }
  if (property.contains("x-default-executor")) {
    const auto* executor = t.find("executor");
    const auto* type = executor == nullptr ? nullptr : executor->find("type");
    return type != nullptr && type->text == property.at("x-default-executor").get<std::string>();
  }
  return true;
}

void fill_map(const rules& at, tree& t) {
  for (const auto* rule : at) {
    const auto properties = rule->find("properties");
    if (properties == rule->end()) {
      continue;
    }
    for (const auto& [key, given] : properties->items()) {
      // A reference stands alone in the schema: its default is in what it names.
      const auto& property = *applicable(given, tree{}).front();
      if (t.find(key) != nullptr || !property.contains("default")) {
        continue;
      }
      if (!default_counts(property, t)) {
        continue;
      }
      t.keys.push_back({key, t.at});
      t.items.push_back(from_json(property.at("default"), t.at));
    }
  }
}

/// Puts the keys into the schema's order, as the reference has them; unnamed ones stay at the end.
void sort_keys(const rules& at, tree& t) {
  tree sorted;
  sorted.kind = t.kind;
  sorted.at = t.at;
  const auto take = [&](std::size_t i) {
    sorted.keys.push_back(std::move(t.keys[i]));
    sorted.items.push_back(std::move(t.items[i]));
  };
  std::vector<bool> taken(t.keys.size());
  for (const auto name : key_names(at)) {
    for (std::size_t i = 0; i < t.keys.size(); ++i) {
      if (!taken[i] && t.keys[i].text == name) {
        take(i);
        taken[i] = true;
      }
    }
  }
  for (std::size_t i = 0; i < t.keys.size(); ++i) {
    if (!taken[i]) {
      take(i);
    }
  }
  t = std::move(sorted);
}

void fill(const schema_json_t& rule, tree& t) {
  const auto at = applicable(rule, t);
  if (t.kind == tree::kind_t::map) {
    fill_map(at, t);
    sort_keys(at, t);
  }
  for (std::size_t i = 0; i < t.items.size(); ++i) {
    const auto* child =
        t.kind == tree::kind_t::map ? rule_of_key(at, t.keys[i].text) : rule_of_items(at);
    if (child != nullptr) {
      fill(*child, t.items[i]);
    }
  }
}

} // namespace

void fill_defaults(tree& root) {
  fill(schema_root(), root);
}

} // namespace boyd::config
