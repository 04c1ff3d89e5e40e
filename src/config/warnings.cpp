#include "adapters.hpp"
#include "boyd/config/cron.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/time.hpp"
#include "passes.hpp"
#include "patterns.hpp"
#include "schema.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

namespace boyd::config {
namespace {

/// Comparisons of patterns in one file: beyond them no rule is said to be dead.
constexpr std::size_t most_steps = 4'000'000;
/// Of a kernel that says nothing about it: the schema's default.
constexpr std::string_view standard_schedule = "*/10 * * * *";
constexpr std::string_view command_tool = "run_command";
constexpr std::array<std::string_view, 2> writing_tools{"write_file", command_tool};

const tree* part(const tree* t, std::string_view key, tree::kind_t kind) {
  const auto* found = t == nullptr ? nullptr : t->find(key);
  return found != nullptr && found->kind == kind ? found : nullptr;
}
const tree* list(const tree* t, std::string_view key) {
  return part(t, key, tree::kind_t::sequence);
}
const tree* map(const tree* t, std::string_view key) {
  return part(t, key, tree::kind_t::map);
}
std::string text_of(const tree* t, std::string_view key) {
  const auto* found = part(t, key, tree::kind_t::scalar);
  return found == nullptr ? std::string() : found->text;
}

/// What a key of a rule is compared as.
struct rule_part {
  std::string_view key;
  pattern_text kind;
};
constexpr std::array<rule_part, 3> rule_parts{{{"path", pattern_text::path},
                                               {"command", pattern_text::plain},
                                               {"host", pattern_text::plain}}};

std::string tool_of(const tree& rule) {
  const auto tool = text_of(&rule, "tool");
  return tool.empty() ? "*" : tool;
}

/// What is valid, and still almost surely not what was meant.
class doubts {
 public:
  doubts(pass& p, const tree& root) : p_(p), root_(root), compare_(most_steps) {
    const auto* kernels = list(&root, "kernels");
    for (std::size_t i = 0; kernels != nullptr && i < kernels->items.size(); ++i) {
      const auto path = child_path("kernels", i);
      const auto& kernel = kernels->items[i];
      for (const auto* who : {"planner", "reducer"}) {
        const auto at = child_path(path, std::string_view(who));
        fallbacks(at, map(&kernel, who));
        unpriced(map(&kernel, who));
        budget(at + ".budget_day", map(map(&kernel, who), "budget_day"));
      }
      const auto* agents = list(&kernel, "agents");
      for (std::size_t j = 0; agents != nullptr && j < agents->items.size(); ++j) {
        agent(child_path(path + ".agents", j), agents->items[j]);
        too_often(child_path(path + ".agents", j), kernel, agents->items[j]);
      }
    }
  }

 private:
  void agent(const std::string& path, const tree& t) {
    fallbacks(path + ".executor", map(&t, "executor"));
    if (text_of(map(&t, "executor"), "type") == "chat") {
      unpriced(map(&t, "executor"));
    }
    uncounted(path, map(&t, "executor"));
    for (const auto* of : {"run", "day"}) {
      budget(path + ".budget." + of, map(map(&t, "budget"), of));
    }
    sandbox(path, t);
    two_sandboxes(path, t);
    credentials(path, map(&t, "executor"));
    ruleless_tools(path, t);
    unproven_work(path, t);
    const auto* rules = list(map(&t, "policy"), "rules");
    if (rules != nullptr) {
      unused_rules(path, t, *rules);
      dead_rules(path + ".policy.rules", *rules);
    }
  }

  /// An agent runs in cycles of its kernel: what its own schedule has beyond them is lost.
  void too_often(const std::string& path, const tree& kernel, const tree& t) {
    const auto* schedule = part(&t, "schedule", tree::kind_t::scalar);
    const auto own = schedule == nullptr ? std::nullopt : pause_of(schedule->text);
    const auto written = text_of(&kernel, "schedule");
    const auto cycles = written.empty() ? std::string(standard_schedule) : written;
    const auto between = pause_of(cycles);
    if (!own || (between && *own >= *between)) {
      return;
    }
    const auto id = text_of(&kernel, "kernel_id");
    const auto* of_kernel = part(&kernel, "schedule", tree::kind_t::scalar);
    const auto line = (of_kernel == nullptr ? kernel : *of_kernel).at.line;
    p_.report(schedule->at, path + ".schedule",
              "kernel " + (id.empty() ? "default" : id) + " runs cycles only at \"" + cycles +
                  "\", so " + text_of(&t, "agent_id") + " runs " +
                  (between ? "every " + format_duration(*between) + " at most" : "once"),
              "schedule: \"" + schedule->text + "\" at the kernel, in line " +
                  std::to_string(line));
  }

  /// See shortest_pause.
  static std::optional<milliseconds> pause_of(const std::string& schedule) {
    const auto fields = parse_cron(schedule);
    return fields ? shortest_pause(*fields) : std::nullopt;
  }

  /// `0` reads like "nothing", and is "no limit".
  void budget(const std::string& path, const tree* t) {
    for (const auto* key : {"tokens", "cost"}) {
      const auto* limit = part(t, key, tree::kind_t::scalar);
      if (limit != nullptr && parse_dollars(limit->text).value_or(1) == 0) {
        p_.report(limit->at, child_path(path, std::string_view(key)),
                  "0 removes the limit; it does not forbid usage",
                  "a limit, or no " + std::string(key) +
                      " for the default limit; enabled: false keeps an agent from running");
      }
    }
  }

  void fallbacks(const std::string& path, const tree* asker) {
    const auto* all = list(asker, "fallback");
    std::set<std::pair<std::string, std::string>> before{target_of(asker)};
    for (std::size_t i = 0; all != nullptr && i < all->items.size(); ++i) {
      const auto target = target_of(&all->items[i]);
      if (!before.insert(target).second) {
        p_.report(all->items[i].at, child_path(path + ".fallback", i),
                  "repeats " + target.first + "/" + target.second +
                      ", which has already failed at that point",
                  "another model or another provider");
      }
    }
  }

  /// What costs something and has no price: budgets, also the standard ones, count its tokens
  /// alone.
  void unpriced(const tree* asker) {
    unpriced_model(target_of(asker));
    const auto* all = list(asker, "fallback");
    for (std::size_t i = 0; all != nullptr && i < all->items.size(); ++i) {
      unpriced_model(target_of(&all->items[i]));
    }
  }

  void unpriced_model(const std::pair<std::string, std::string>& target) {
    const auto* providers = list(&root_, "providers");
    for (std::size_t i = 0; providers != nullptr && i < providers->items.size(); ++i) {
      const auto& provider = providers->items[i];
      if (text_of(&provider, "provider_id") != target.first || is_loopback(provider) ||
          has_price(provider, target.second) || !unpriced_.insert(target).second) {
        continue;
      }
      p_.report(provider.at, child_path("providers", i) + ".prices",
                "no price for " + target.second + ": cost limits do not count it, token limits do",
                "prices with " + target.second + " or \"*\" (0 if free)");
    }
  }

  /// A limit of the node's cost that a program will never reach: it tells none.
  void uncounted(const std::string& path, const tree* executor) {
    const auto* limit = part(map(map(&root_, "node"), "budget_day"), "cost", tree::kind_t::scalar);
    const auto* adapter = executor == nullptr ? nullptr : adapter_of_executor(p_, root_, *executor);
    if (adapter == nullptr || limit == nullptr || parse_dollars(limit->text).value_or(0) == 0 ||
        tells_figure(*adapter, "cost")) {
      return;
    }
    p_.report(limit->at, path + ".executor.adapter",
              text_of(executor, "adapter") +
                  " does not report its cost, so node.budget_day.cost does not count it",
              "node.budget_day.tokens as well");
  }

  /// The provider and the model that are asked.
  std::pair<std::string, std::string> target_of(const tree* asker) const {
    auto provider = text_of(asker, "provider");
    auto model = text_of(asker, "model");
    const auto* providers = list(&root_, "providers");
    for (std::size_t i = 0; model.empty() && providers != nullptr && i < providers->items.size();
         ++i) {
      if (text_of(&providers->items[i], "provider_id") == provider) {
        model = text_of(&providers->items[i], "model");
      }
    }
    return {std::move(provider), std::move(model)};
  }

  /// Programs that a model drives, with nothing around them.
  void sandbox(const std::string& path, const tree& t) {
    const auto* own = part(map(&t, "sandbox"), "mode", tree::kind_t::scalar);
    const auto* nodes = part(map(map(&root_, "node"), "sandbox"), "mode", tree::kind_t::scalar);
    const auto* mode = own == nullptr ? nodes : own;
    const auto* executor = map(&t, "executor");
    const auto type = text_of(executor, "type");
    const bool drives = type == "chat"        ? runs_programs(t)
                        : type == "agent_cli" ? !brings_own_sandbox(p_, root_, *executor)
                                              : false;
    if (mode != nullptr && mode->text == "off" && drives) {
      p_.report(own == nullptr ? t.at : own->at, path + ".sandbox.mode",
                "a model runs programs here without a sandbox",
                "mode: auto or required; allow more with `writable`, `readable` and `network`");
    }
  }

  /// A program that makes a sandbox cannot do so inside of Boyd's: all its commands would fail.
  void two_sandboxes(const std::string& path, const tree& t) {
    const auto* executor = map(&t, "executor");
    if (executor == nullptr || text_of(executor, "type") != "agent_cli" ||
        !brings_own_sandbox(p_, root_, *executor)) {
      return;
    }
    const auto* own = map(&t, "sandbox");
    const auto* nodes = map(map(&root_, "node"), "sandbox");
    const auto mode = own != nullptr && own->find("mode") != nullptr ? text_of(own, "mode")
                                                                     : text_of(nodes, "mode");
    if (mode == "off" || (own == nullptr && mode != "required")) {
      return;
    }
    const auto name = text_of(executor, "adapter");
    p_.report(
        own == nullptr ? t.at : own->at, path + ".sandbox",
        name + "'s own sandbox does not work inside Boyd's, so its commands will fail",
        "a permission that disables its own sandbox" + one_of(*executor, "unconfined") +
            ", or no `sandbox` for the agent and a sandbox mode of the node other than required");
  }

  /// " (danger-full-access)", the first of what its adapter lists.
  std::string one_of(const tree& executor, std::string_view key) const {
    const auto* adapter = adapter_of_executor(p_, root_, executor);
    const auto* all = list(adapter, key);
    return all == nullptr || all->items.empty() ? std::string()
                                                : " (" + all->items.front().text + ")";
  }

  /// The environment of an agent CLI has what is passed to it, nothing else.
  void credentials(const std::string& path, const tree* executor) {
    const auto* adapter = executor == nullptr ? nullptr : adapter_of_executor(p_, root_, *executor);
    const auto* wanted = list(adapter, "credentials");
    if (wanted == nullptr || wanted->items.empty()) {
      return;
    }
    const auto* env = map(executor, "env");
    const auto* passed = list(executor, "env_pass");
    const auto given = [&](const tree& name) {
      return (env != nullptr && env->find(name.text) != nullptr) ||
             (adapter != nullptr && map(adapter, "env") != nullptr &&
              map(adapter, "env")->find(name.text) != nullptr) ||
             (passed != nullptr && std::ranges::any_of(passed->items, [&](const tree& one) {
                return one.text == name.text;
              }));
    };
    if (std::ranges::any_of(wanted->items, given)) {
      return;
    }
    p_.report(executor->at, path + ".executor.env_pass",
              text_of(executor, "adapter") + " gets no credentials (for example " +
                  wanted->items.front().text + ")",
              "env_pass: [" + wanted->items.front().text +
                  "]; ignore this if this user has logged in with the program");
  }

  /// What no rule names of a server's tools is denied.
  void ruleless_tools(const std::string& path, const tree& t) {
    const auto* tools = list(&t, "tools");
    const auto* rules = list(map(&t, "policy"), "rules");
    for (std::size_t i = 0; tools != nullptr && i < tools->items.size(); ++i) {
      const auto& tool = tools->items[i];
      if (!tool.text.starts_with("mcp__")) {
        continue;
      }
      const bool has = rules != nullptr && std::ranges::any_of(rules->items, [&](const tree& rule) {
                         return compare_.may_meet(tool_of(rule), tool.text);
                       });
      if (!has) {
        p_.report(tool.at, child_path(path + ".tools", i),
                  "no rule of the agent's policy covers " + tool.text + ", so every call is denied",
                  "policy: {rules: [{tool: \"" + tool.text + "\", decision: ask}]}, or allow");
      }
    }
  }

  /// A chat that is to change something and is believed when it only says so: a call that a model
  /// writes as text is none, and reads like an answer.
  void unproven_work(const std::string& path, const tree& t) {
    const auto* tools = list(&t, "tools");
    if (text_of(map(&t, "executor"), "type") != "chat" || tools == nullptr || is_proven(t)) {
      return;
    }
    for (std::size_t i = 0; i < tools->items.size(); ++i) {
      const auto& tool = tools->items[i];
      if (std::ranges::none_of(writing_tools, [&](auto writes) {
            return compare_.covers(tool.text, writes, pattern_text::plain);
          })) {
        continue;
      }
      return p_.report(tool.at, path + ".require",
                       "the agent has " + tool.text +
                           ", but a run succeeds even if it changes nothing",
                       "require: [tool_action], or a check of the result (artifact, command)");
    }
  }

  static bool is_proven(const tree& t) {
    const auto* wanted = list(&t, "require");
    return wanted != nullptr && std::ranges::any_of(wanted->items, [](const tree& one) {
             const auto& name = one.kind == tree::kind_t::map && !one.keys.empty()
                                    ? one.keys.front().text
                                    : one.text;
             return name == "tool_action" || name.starts_with("artifact") ||
                    name.starts_with("command");
           });
  }

  bool runs_programs(const tree& t) {
    const auto* tools = list(&t, "tools");
    return text_of(&t, "mcp_json") == "true" ||
           (tools != nullptr && std::ranges::any_of(tools->items, [&](const tree& tool) {
              return compare_.covers(tool.text, command_tool, pattern_text::plain);
            }));
  }

  /// Rules about tools that the agent does not have.
  void unused_rules(const std::string& path, const tree& t, const tree& rules) {
    const auto* tools = list(&t, "tools");
    for (std::size_t i = 0; i < rules.items.size(); ++i) {
      const auto& rule = rules.items[i];
      const auto tool = tool_of(rule);
      const bool has = tools != nullptr && std::ranges::any_of(tools->items, [&](const tree& one) {
                         return compare_.may_meet(one.text, tool);
                       });
      if (!has) {
        const auto* at = rule.find("tool");
        p_.report(at == nullptr ? rule.at : at->at,
                  child_path(child_path(path + ".policy.rules", i), "tool"),
                  tools == nullptr || tools->items.empty()
                      ? "this rule is never used: the agent has no tools"
                      : "this rule is never used: the agent does not have this tool",
                  "a tool in the agent's `tools`, or no rule");
      }
    }
  }

  /// The first rule that fits decides: what another one before it fits as a whole is never reached.
  void dead_rules(const std::string& path, const tree& rules) {
    for (std::size_t later = 1; later < rules.items.size(); ++later) {
      for (std::size_t first = 0; first < later; ++first) {
        const auto decides = text_of(&rules.items[first], "decision");
        if (!covers(rules.items[first], rules.items[later])) {
          continue;
        }
        if (decides != text_of(&rules.items[later], "decision")) {
          p_.report(rules.items[later].at, child_path(path, later),
                    "this rule is never used: rule " + std::to_string(first + 1) + " (" + decides +
                        ") comes first and matches the same actions",
                    "the narrower rule first");
        }
        break;
      }
    }
  }

  bool covers(const tree& first, const tree& later) {
    if (!compare_.covers(tool_of(first), tool_of(later), pattern_text::plain)) {
      return false;
    }
    return std::ranges::all_of(rule_parts, [&](const rule_part& part) {
      const auto general = text_of(&first, part.key);
      const auto special = text_of(&later, part.key);
      return general.empty() || (!special.empty() && compare_.covers(general, special, part.kind));
    });
  }

  pass& p_;
  const tree& root_;
  pattern_comparer compare_;
  std::set<std::pair<std::string, std::string>> unpriced_; ///< that were told of
};

} // namespace

void find_doubts(pass& p, const tree& root) {
  (void)doubts(p, root);
}

} // namespace boyd::config
