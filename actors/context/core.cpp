#include "actors/context/core.hpp"

#include "boyd/context/reading.hpp"
#include "boyd/memory/tokens.hpp"
#include "boyd/plan/agent_prompt.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/policy.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace boyd {

namespace {

std::string directory_of(const config::executor& run) {
  if (const auto* chat = std::get_if<config::chat_executor>(&run))
    return chat->workspace;
  if (const auto* command = std::get_if<config::command_executor>(&run))
    return command->cwd;
  const auto* cli = std::get_if<config::agent_cli_executor>(&run);
  if (cli == nullptr)
    return {};
  return cli->worktree ? cli->worktree->repo : cli->cwd;
}

bool is_configured(const std::string& line, const std::vector<context::wanted>& references) {
  return std::ranges::any_of(references, [&](const context::wanted& w) {
    return w.configured && w.what.kind == context::reference_kind::command && w.what.target == line;
  });
}

/// Why the command may not run; empty: it may.
std::string forbidden(const std::vector<std::string>& argv, bool configured,
                      const config::agent& agent, const std::string& root) {
  const auto action = tools::action_of(tools::run_command_call{argv, {}}, root);
  if (!action)
    return action.error().what;
  if (!configured) {
    const auto decision = tools::decide(*action, agent.policy, agent.tools);
    return decision.what == config::policy_decision::allow
               ? std::string()
               : "a command outside the configuration needs a rule of the agent's policy that "
                 "allows it: " +
                     decision.reason;
  }
  const auto decision = tools::decide_by_rules(*action, agent.policy);
  if (!decision || decision->what == config::policy_decision::allow)
    return {};
  return (decision->what == config::policy_decision::ask ? "the agent's policy requires approval: "
                                                         : "denied by the agent's policy: ") +
         decision->reason;
}

} // namespace

std::string reading_root(const config::agent& agent, const std::string& kernel_home) {
  if (!agent.reads.workspace.empty())
    return agent.reads.workspace;
  auto directory = directory_of(agent.run);
  return directory.empty() ? kernel_home : directory;
}

std::string reading_scope(const std::string& root, const std::string& kernel_home,
                          const std::string& kernel_id) {
  return root == kernel_home ? context::scope_of_kernel(kernel_id) : std::string();
}

std::vector<context::wanted> references_of_run(const config::context_settings& settings,
                                               std::string_view metadata_json) {
  auto all = settings.items;
  if (metadata_json.find("boyd_context") == metadata_json.npos)
    return all;
  const auto metadata = nlohmann::json::parse(metadata_json, nullptr, false);
  if (!metadata.is_object() || !metadata.contains("boyd_context"))
    return all;
  auto more = context::read_wanted(metadata["boyd_context"].dump());
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return all;
}

std::string question_of_run(const config::agent& agent, std::string_view metadata_json) {
  if (metadata_json.find("boyd_question") != metadata_json.npos) {
    const auto metadata = nlohmann::json::parse(metadata_json, nullptr, false);
    const auto it = metadata.is_object() ? metadata.find("boyd_question") : metadata.end();
    if (metadata.is_object() && it != metadata.end() && it->is_string())
      return it->get<std::string>();
  }
  return plan::question_in(agent.prompt);
}

std::size_t recalled_entries(const config::configuration& configuration,
                             const std::string& kernel_id, const config::agent& agent) {
  const auto* kernel = configuration.find_kernel(kernel_id);
  return kernel == nullptr || std::holds_alternative<config::script_executor>(agent.run)
             ? 0
             : kernel->memory.recall;
}

std::optional<config::learning_settings> learning_of(const config::configuration& configuration,
                                                     const std::string& kernel_id,
                                                     const config::agent& agent) {
  const auto* kernel = configuration.find_kernel(kernel_id);
  if (kernel == nullptr || std::holds_alternative<config::script_executor>(agent.run) ||
      (kernel->learning.bank == 0 && kernel->learning.skills == 0))
    return std::nullopt;
  return kernel->learning;
}

context::confidence_rule ranking_of(const config::configuration& configuration,
                                    const std::string& kernel_id, const std::string& dispatch_id) {
  const auto* kernel = configuration.find_kernel(kernel_id);
  return {kernel == nullptr ? context::learning_method::linear : kernel->learning.method,
          context::seed_of(dispatch_id)};
}

void keep_banked(std::vector<context::offered_item>& items, const std::vector<banked_item>& bank,
                 const std::optional<config::learning_settings>& settings) {
  const auto most = settings ? settings->bank : 0;
  const auto tokens = settings ? settings->bank_item_tokens : 0;
  std::size_t kept = 0;
  std::erase_if(items, [&](context::offered_item& i) {
    if (i.from != context::origin::bank)
      return false;
    const auto known = std::ranges::find(bank, i.id, &banked_item::id);
    if (known == bank.end() || !i.failure.empty() || i.frozen || kept == most ||
        memory::estimate_tokens(i.content) > tokens)
      return true;
    i.score = known->score;
    ++kept;
    return false;
  });
}

std::vector<context_command> commands_to_run(std::vector<context::offered_item>& items,
                                             const std::vector<context::wanted>& references,
                                             const config::agent& agent, const std::string& root) {
  std::vector<context_command> all;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto& item = items[i];
    if (item.type != context::item_type::runtime || !item.failure.empty())
      continue;
    auto argv = context::words_of_command(item.path);
    if (!argv) {
      item.failure = argv.error().what;
      continue;
    }
    item.failure = forbidden(*argv, is_configured(item.path, references), agent, root);
    if (item.failure.empty() && all.size() == context_commands)
      item.failure =
          "more than " + std::to_string(context_commands) + " commands in the context of a run";
    if (item.failure.empty())
      all.push_back({i, std::move(*argv)});
  }
  return all;
}

std::string missing_items(const std::vector<context::offered_item>& items) {
  std::string all;
  for (const auto& i : items)
    if (i.required && !i.failure.empty())
      all += (all.empty() ? "" : "; ") + i.path + ": " + i.failure;
  return all;
}

} // namespace boyd
