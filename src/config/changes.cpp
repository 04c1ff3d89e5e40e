#include "boyd/config/reload.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace boyd::config {

namespace {

/// The names of what differs, to be told in one line.
class key_list {
 public:
  template <class T>
  void compare(std::string_view key, const T& before, const T& now) {
    if (!(before == now))
      text_ += (text_.empty() ? "" : ", ") + std::string(key);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string differing_keys(const agent& a, const agent& b) {
  key_list keys;
  keys.compare("prompt", a.prompt, b.prompt);
  keys.compare("priority", a.priority, b.priority);
  keys.compare("enabled", a.enabled, b.enabled);
  keys.compare("executor", a.run, b.run);
  keys.compare("max_concurrent", a.max_concurrent, b.max_concurrent);
  keys.compare("timeout", a.timeout, b.timeout);
  keys.compare("no_output_timeout", a.no_output_timeout, b.no_output_timeout);
  keys.compare("cooldown", a.cooldown, b.cooldown);
  keys.compare("retry", a.retry, b.retry);
  keys.compare("schedule", a.when, b.when);
  keys.compare("require", a.require, b.require);
  keys.compare("wake", a.wake, b.wake);
  keys.compare("after", a.after, b.after);
  keys.compare("context", a.reads, b.reads);
  keys.compare("tools", a.tools, b.tools);
  keys.compare("mcp_json", a.mcp_json, b.mcp_json);
  keys.compare("policy", a.policy, b.policy);
  keys.compare("budget", a.budget, b.budget);
  keys.compare("sandbox", a.sandbox, b.sandbox);
  keys.compare("metadata", a.metadata_json, b.metadata_json);
  return keys.text();
}

/// Its own keys, those of its agents apart.
std::string differing_keys(const kernel& a, const kernel& b) {
  key_list keys;
  keys.compare("name", a.name, b.name);
  keys.compare("schedule", a.when, b.when);
  keys.compare("max_concurrent", a.max_concurrent, b.max_concurrent);
  keys.compare("max_cycle_history", a.max_cycle_history, b.max_cycle_history);
  keys.compare("recent_actions", a.recent_actions, b.recent_actions);
  keys.compare("cycle_deadline", std::pair(a.ends_with_slot, a.cycle_deadline),
               std::pair(b.ends_with_slot, b.cycle_deadline));
  keys.compare("planner", a.plan, b.plan);
  keys.compare("reducer", a.reduce, b.reduce);
  keys.compare("system_prompt", a.system_prompt, b.system_prompt);
  keys.compare("author", std::pair(a.author_name, a.author_email),
               std::pair(b.author_name, b.author_email));
  keys.compare("auto_commit", a.auto_commit, b.auto_commit);
  keys.compare("protected_files", a.protected_files, b.protected_files);
  keys.compare("metadata", a.metadata_json, b.metadata_json);
  keys.compare("quiet_hours", a.quiet, b.quiet);
  keys.compare("heartbeat_url", a.heartbeat_url, b.heartbeat_url);
  keys.compare("senses", a.senses, b.senses);
  keys.compare("memory", a.memory, b.memory);
  return keys.text();
}

std::string differing_keys(const node& a, const node& b) {
  key_list keys;
  keys.compare("max_concurrent", a.max_concurrent, b.max_concurrent);
  keys.compare("store", a.store, b.store);
  keys.compare("store_password_file", a.store_password_file, b.store_password_file);
  keys.compare("retention", a.retention, b.retention);
  keys.compare("lease", a.lease, b.lease);
  keys.compare("lease_renewal", a.lease_renewal, b.lease_renewal);
  keys.compare("drain_grace", a.drain_grace, b.drain_grace);
  keys.compare("log_level", a.log_level, b.log_level);
  keys.compare("sandbox", a.sandbox, b.sandbox);
  keys.compare("budget_day", a.budget_day, b.budget_day);
  keys.compare("chaos", a.chaos, b.chaos);
  return keys.text();
}

/// Those whose `name` is in one of the lists alone, and what `tell` says of those in both.
template <class Item, class Name, class Tell>
void compare_lists(std::vector<std::string>& lines, const std::string& kind,
                   const std::vector<Item>& before, const std::vector<Item>& now, Name name,
                   Tell tell) {
  for (const auto& item : now) {
    const auto old = std::ranges::find(before, item.*name, name);
    if (old == before.end())
      lines.push_back(kind + item.*name + " added");
    else
      tell(*old, item);
  }
  for (const auto& item : before)
    if (std::ranges::find(now, item.*name, name) == now.end())
      lines.push_back(kind + item.*name + " removed");
}

/// The same where a change is told as a whole.
template <class Item, class Name>
void compare_whole(std::vector<std::string>& lines, const std::string& kind,
                   const std::vector<Item>& before, const std::vector<Item>& now, Name name) {
  compare_lists(lines, kind, before, now, name, [&](const Item& a, const Item& b) {
    if (!(a == b))
      lines.push_back(kind + b.*name + " changed");
  });
}

void compare_keys(std::vector<std::string>& lines, const std::string& what,
                  const std::string& keys) {
  if (!keys.empty())
    lines.push_back(what + " changed: " + keys);
}

} // namespace

std::vector<std::string> changes(const configuration& before, const configuration& now) {
  std::vector<std::string> lines;
  compare_keys(lines, "node", differing_keys(before.node_settings, now.node_settings));
  if (!(before.notices == now.notices))
    lines.emplace_back("approvals changed");
  compare_whole(lines, "provider ", before.providers, now.providers, &provider::provider_id);
  compare_whole(lines, "tool server ", before.mcp_servers, now.mcp_servers, &mcp_server::name);
  compare_lists(lines, "kernel ", before.kernels, now.kernels, &kernel::kernel_id,
                [&](const kernel& a, const kernel& b) {
                  compare_keys(lines, "kernel " + b.kernel_id, differing_keys(a, b));
                  const auto kind = "agent " + b.kernel_id + "/";
                  compare_lists(lines, kind, a.agents, b.agents, &agent::agent_id,
                                [&](const agent& x, const agent& y) {
                                  compare_keys(lines, kind + y.agent_id, differing_keys(x, y));
                                });
                });
  if (before.faults != now.faults)
    lines.emplace_back("faults changed");
  return lines;
}

} // namespace boyd::config
