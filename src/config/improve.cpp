#include "boyd/config/redact.hpp"
#include "boyd/config/tree.hpp"
#include "passes.hpp"

#include <optional>
#include <utility>

namespace boyd::config {

namespace {

constexpr std::size_t told_findings = 20;

tree text_tree(std::string text) {
  tree out;
  out.text = std::move(text);
  return out;
}

tree map_tree(std::string key, tree value) {
  tree out;
  out.kind = tree::kind_t::map;
  out.keys.push_back({std::move(key), value.at});
  out.items.push_back(std::move(value));
  return out;
}

tree list_tree(tree item) {
  tree out;
  out.kind = tree::kind_t::sequence;
  out.items.push_back(std::move(item));
  return out;
}

/// A kernel that does nothing, so that one schema and one set of checks hold for all files.
tree idle_kernels() {
  auto executor = map_tree("type", text_tree("command"));
  executor.keys.push_back({"argv", {}});
  executor.items.push_back(list_tree(text_tree("true")));
  auto agent = map_tree("executor", std::move(executor));
  agent.keys.push_back({"agent_id", {}});
  agent.items.push_back(text_tree("idle"));
  return list_tree(map_tree("agents", list_tree(std::move(agent))));
}

tl::unexpected<error> failed(const std::string& path, const std::vector<finding>& findings) {
  std::string all;
  for (std::size_t i = 0; i < findings.size() && i < told_findings; ++i)
    all += (all.empty() ? "" : "\n") + findings[i].text();
  if (findings.size() > told_findings)
    all += "\nand " + std::to_string(findings.size() - told_findings) + " more";
  return fail(errc::invalid_configuration, std::move(all), path, "see docs/configuration.md");
}

void put(tree& map, std::string key, tree value) {
  if (auto* there = map.find(key)) {
    *there = std::move(value);
    return;
  }
  map.keys.push_back({std::move(key), value.at});
  map.items.push_back(std::move(value));
}

std::optional<tree> take_out(tree& map, std::string_view key) {
  for (std::size_t i = 0; i < map.keys.size(); ++i)
    if (map.keys[i].text == key) {
      auto value = std::move(map.items[i]);
      map.keys.erase(map.keys.begin() + static_cast<std::ptrdiff_t>(i));
      map.items.erase(map.items.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
  return std::nullopt;
}

tree empty_map(mark at) {
  tree out;
  out.kind = tree::kind_t::map;
  out.at = at;
  return out;
}

/// What is the same for all that answer tasks: they work on the repository, and who asks them
/// repeats what failed.
void settle(tree& agent, const std::string& repository) {
  if (agent.find("retry") == nullptr)
    put(agent, "retry", map_tree("max_attempts", text_tree("1")));
  auto* executor = agent.find("executor");
  const auto* type = executor == nullptr ? nullptr : executor->find("type");
  if (type == nullptr || executor->kind != tree::kind_t::map)
    return; // the schema tells it
  if (type->text == "chat" && executor->find("workspace") == nullptr)
    put(*executor, "workspace", text_tree(repository));
  if (type->text == "agent_cli" && executor->find("worktree") == nullptr)
    put(*executor, "worktree", map_tree("repo", text_tree(repository)));
  if (type->text == "command" && executor->find("cwd") == nullptr)
    put(*executor, "cwd", text_tree(repository));
}

} // namespace

parsed proposers_of(parsed source, const std::string& repository) {
  if (!source.value || source.value->kind != tree::kind_t::map)
    return source;
  auto& root = *source.value;
  auto part = take_out(root, "improve");
  auto agents = part ? take_out(*part, "executors") : std::nullopt;
  if (!agents) {
    agents.emplace();
    agents->kind = tree::kind_t::sequence;
  }
  for (auto& agent : agents->items)
    settle(agent, repository);
  auto kernel = map_tree("kernel_id", text_tree(std::string(proposers_kernel)));
  put(kernel, "auto_commit", text_tree("false"));
  put(kernel, "agents", std::move(*agents));
  put(root, "kernels", list_tree(std::move(kernel)));
  take_out(root, "faults");
  if (auto* node = root.find("node"))
    for (const auto* key : {"store", "store_password_file"})
      take_out(*node, key);
  return source;
}

result<tree> build_improve(const std::string& path, parsed source,
                           const environment_lookup& environment, const time_zones& zones,
                           std::vector<std::string>* secrets) {
  if (!source.value)
    return failed(path, source.findings);
  auto& root = *source.value;
  pass p{path, source.findings};
  // What agents need of the environment is looked for when they are asked.
  auto own = take_out(root, "improve");
  auto agents = own ? take_out(*own, "executors") : std::nullopt;
  auto part = map_tree("improve", own ? std::move(*own) : empty_map(root.at));
  expand(p, part, environment, unset_variables::are_errors);
  p.lenient = true;
  if (agents)
    put(root, "executors", std::move(*agents));
  expand(p, root, environment, unset_variables::stay_as_text);
  if (agents = take_out(root, "executors"); agents)
    put(part.items.front(), "executors", std::move(*agents));
  put(root, "improve", std::move(part.items.front()));
  if (root.kind == tree::kind_t::map && root.find("kernels") == nullptr) {
    root.keys.push_back({"kernels", root.at});
    root.items.push_back(idle_kernels());
  }
  apply_presets(p, root, environment);
  validate(p, root);
  check_meaning(p, root, zones);
  if (!source.findings.empty())
    return failed(path, source.findings);
  if (secrets != nullptr)
    *secrets = with_secrets({}, p.secrets);
  fill_defaults(root);
  return *root.find("improve");
}

} // namespace boyd::config
