#include "passes.hpp"
#include "schema.hpp"

#include <algorithm>
#include <array>

namespace boyd::config {
namespace {

constexpr std::string_view foreign_tool = "mcp__";
constexpr std::string_view command_tool = "run_command";

const tree* part(const tree& t, std::string_view key, tree::kind_t kind) {
  const auto* found = t.find(key);
  return found != nullptr && found->kind == kind ? found : nullptr;
}

/// Null also for an empty one, which says nothing.
const tree* said(const tree& t, std::string_view key) {
  const auto* found = part(t, key, tree::kind_t::scalar);
  return found == nullptr || found->unusable || found->text.empty() ? nullptr : found;
}

/// What an action can have, and whose it is.
struct matter {
  std::string_view key;
  std::string_view whose;
};
constexpr std::array<matter, 3> matters{
    {{"path", "read_file, write_file, list_dir and search_text"},
     {"command", "run_command"},
     {"host", "tools of tool servers"}}};

/// Which of `matters` the tools that `tool` names have; null: any tool.
std::string_view matter_of(const tree* tool) {
  if (tool == nullptr || tool->text == "*")
    return {};
  if (tool->text.starts_with(foreign_tool))
    return "host";
  return tool->text == command_tool ? "command" : "path";
}

/// Why no action has a path that this matches; empty: one may. Paths are relative to the workspace
/// and have plain parts by the time a rule sees them.
std::string_view never_a_path(std::string_view pattern) {
  if (pattern.starts_with('/'))
    return "never matches: paths are relative to the workspace";
  if (pattern.starts_with("./"))
    pattern.remove_prefix(2);
  if (pattern.size() > 1 && pattern.ends_with('/'))
    pattern.remove_suffix(1);
  if (pattern == ".")
    return {};
  for (std::size_t at = 0; at <= pattern.size();) {
    const auto end = std::min(pattern.find('/', at), pattern.size());
    const auto name = pattern.substr(at, end - at);
    if (name.empty() || name == "." || name == "..")
      return "never matches: paths have no \"..\", \".\" or empty parts";
    at = end + 1;
  }
  return {};
}

/// Rules that can never hold: one that denies and does nothing is taken for a wall.
class policy_checks {
 public:
  policy_checks(pass& p, const tree& root)
      : p_(p), servers_(part(root, "mcpServers", tree::kind_t::map)) {}

  void agent(const std::string& path, const tree& t) {
    const auto* open = said(t, "mcp_json");
    const bool any_server = open != nullptr && open->text == "true";
    if (const auto* tools = part(t, "tools", tree::kind_t::sequence))
      for (std::size_t i = 0; i < tools->items.size() && !any_server; ++i)
        server(child_path(path + ".tools", i), tools->items[i]);
    const auto* policy = part(t, "policy", tree::kind_t::map);
    const auto* rules =
        policy == nullptr ? nullptr : part(*policy, "rules", tree::kind_t::sequence);
    for (std::size_t i = 0; rules != nullptr && i < rules->items.size(); ++i) {
      const auto& r = rules->items[i];
      if (r.kind != tree::kind_t::map)
        continue;
      const auto at = child_path(path + ".policy.rules", i);
      rule(at, r);
      if (const auto* tool = said(r, "tool"); tool != nullptr && !any_server)
        server(child_path(at, "tool"), *tool);
    }
  }

 private:
  void rule(const std::string& path, const tree& r) {
    const auto* tool = said(r, "tool");
    auto held = matter_of(tool);
    for (const auto& [key, whose] : matters) {
      const auto* found = said(r, key);
      if (found == nullptr)
        continue;
      if (!held.empty() && held != key) {
        p_.report(found->at, child_path(path, key),
                  "this rule never matches: only " + std::string(whose) + " have a " +
                      std::string(key) +
                      (tool == nullptr ? ", and none a " + std::string(held) : ""),
                  "a separate rule for each kind of action");
        return;
      }
      held = key;
    }
    if (const auto* pattern = said(r, "path"))
      if (const auto why = never_a_path(pattern->text); !why.empty())
        p_.report(pattern->at, child_path(path, "path"), std::string(why),
                  "e.g. docs/** or **/.env");
  }

  /// A tool of a server that nobody has named.
  void server(const std::string& path, const tree& tool) {
    if (tool.kind != tree::kind_t::scalar || tool.unusable || !tool.text.starts_with(foreign_tool))
      return;
    const std::string_view rest = std::string_view(tool.text).substr(foreign_tool.size());
    const auto name = rest.substr(0, rest.find("__"));
    if (name.find('*') != std::string_view::npos ||
        (servers_ != nullptr && servers_->find(name) != nullptr))
      return;
    p_.report(tool.at, path, "mcpServers has no server " + std::string(name),
              "a server in mcpServers, or mcp_json: true to use those of the workspace");
  }

  pass& p_;
  const tree* servers_;
};

} // namespace

void check_policies(pass& p, const tree& root) {
  policy_checks checks(p, root);
  const auto* kernels = part(root, "kernels", tree::kind_t::sequence);
  for (std::size_t i = 0; kernels != nullptr && i < kernels->items.size(); ++i) {
    const auto* agents = part(kernels->items[i], "agents", tree::kind_t::sequence);
    for (std::size_t j = 0; agents != nullptr && j < agents->items.size(); ++j)
      if (agents->items[j].kind == tree::kind_t::map)
        checks.agent(child_path(child_path("kernels", i) + ".agents", j), agents->items[j]);
  }
}

} // namespace boyd::config
