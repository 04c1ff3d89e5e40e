#include "actors/workspace/performer.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/repository.hpp"
#include "boyd/tools/policy.hpp"

#include <utility>

namespace boyd {

namespace {

/// Workspaces whose repositories are remembered.
constexpr std::size_t most_projects = 1000;

/// Nobody is asked while a run's context is read: what a person would have to allow is not read.
std::optional<std::string> forbidden(const config::action_policy& policy, const std::string& tool,
                                     const std::string& where) {
  const auto decision = tools::decide_by_rules({tool, where, {}, false, {}}, policy);
  if (!decision || decision->what == config::policy_decision::allow)
    return std::nullopt;
  return decision->what == config::policy_decision::ask
             ? "the agent's policy requires approval: " + decision->reason
             : "denied by the agent's policy: " + decision->reason;
}

} // namespace

/// Its first commit does not change; that it has become a repository is seen by the next node.
std::optional<git_project> workspace_session::project_of(const std::string& absolute) {
  const auto& repositories = context_->ports.repositories;
  if (!repositories)
    return std::nullopt;
  const auto known = projects_.find(absolute);
  if (known != projects_.end())
    return known->second;
  if (projects_.size() >= most_projects)
    projects_.clear();
  return projects_[absolute] = repositories->project_of(absolute);
}

result<workspace_reply> workspace_session::carry_out(const read_items& what) {
  const auto& ports = context_->ports;
  if (!ports.workspaces)
    return fail(errc::refused, "file tools are not available here", what.workspace);
  context::reading_order order;
  order.root = what.workspace;
  order.scope = what.scope;
  order.references = what.references;
  order.forbids = [&policy = what.policy](const std::string& tool, const std::string& where) {
    return forbidden(policy, tool, where);
  };
  order.project_of = [this](const std::string& absolute) { return project_of(absolute); };
  order.hide = [&secrets = what.secrets](std::string text) {
    return config::redact_text(std::move(text), secrets);
  };
  order.changed = [&files = *ports.files](const std::string& absolute) {
    const auto info = files.stat(absolute);
    return info ? info->modified : utc_time{};
  };
  workspace_reply reply;
  if (what.text)
    reply.fates = context::judge_candidates(*what.text, order, *ports.workspaces);
  else
    reply.items = context::read_references(order, *ports.workspaces);
  return reply;
}

} // namespace boyd
