#include "boyd/config/tree.hpp"
#include "passes.hpp"

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

} // namespace

result<tree> build_improve(const std::string& path, parsed source,
                           const environment_lookup& environment, const time_zones& zones) {
  if (!source.value)
    return failed(path, source.findings);
  auto& root = *source.value;
  pass p{path, source.findings};
  expand(p, root, environment, unset_variables::are_errors);
  if (root.kind == tree::kind_t::map && root.find("kernels") == nullptr) {
    root.keys.push_back({"kernels", root.at});
    root.items.push_back(idle_kernels());
  }
  apply_presets(p, root, environment);
  validate(p, root);
  check_meaning(p, root, zones);
  if (!source.findings.empty())
    return failed(path, source.findings);
  if (root.find("improve") == nullptr) {
    root.keys.push_back({"improve", root.at});
    root.items.emplace_back();
    root.items.back().kind = tree::kind_t::map;
    root.items.back().at = root.at;
  }
  fill_defaults(root);
  return *root.find("improve");
}

} // namespace boyd::config
