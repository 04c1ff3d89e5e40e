#include "boyd/core/limits.hpp"
#include "boyd/faults/points.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace boyd::config {
namespace {

/// The checks that look at several values of one map.
class combination_checks {
 public:
  explicit combination_checks(pass& p) : p_(p) {}

  void root(const tree& t) {
    if (const auto* node = t.find("node")) {
      leases(*node);
    }
    if (const auto* faults = list(&t, "faults")) {
      for (std::size_t i = 0; i < faults->items.size(); ++i) {
        fault(child_path("faults", i), faults->items[i]);
      }
    }
    if (const auto* providers = list(&t, "providers")) {
      unique(*providers, "providers", "provider_id", {});
    }
    const auto* kernels = list(&t, "kernels");
    if (kernels == nullptr) {
      return;
    }
    unique(*kernels, "kernels", "kernel_id", "default");
    for (std::size_t i = 0; i < kernels->items.size(); ++i) {
      const auto key = child_path("kernels", i);
      const auto& kernel = kernels->items[i];
      if (const auto* senses = list(&kernel, "senses")) {
        unique(*senses, key + ".senses", "name", {});
      }
      if (const auto* agents = list(&kernel, "agents")) {
        unique(*agents, key + ".agents", "agent_id", {});
        for (std::size_t j = 0; j < agents->items.size(); ++j) {
          agent(child_path(key + ".agents", j), agents->items[j]);
        }
        order_of(key + ".agents", *agents);
      }
    }
  }

 private:
  /// Who waits for whom in a cycle: agents that are not there, and circles.
  void order_of(const std::string& path, const tree& agents) {
    std::map<std::string, std::vector<std::string>> waits_for;
    for (const auto& agent : agents.items) {
      if (const auto* id = agent.find("agent_id")) {
        waits_for[id->text];
      }
    }
    for (std::size_t i = 0; i < agents.items.size(); ++i) {
      const auto* id = agents.items[i].find("agent_id");
      const auto* after = agents.items[i].find("after");
      const auto* named = id == nullptr || after == nullptr ? nullptr : list(after, "agents");
      const auto where = child_path(child_path(path, i), "after");
      for (std::size_t j = 0; named != nullptr && j < named->items.size(); ++j) {
        const auto& other = named->items[j];
        if (!waits_for.contains(other.text)) {
          p_.report(other.at, child_path(where + ".agents", j),
                    "this kernel has no agent " + shown(other), "an agent_id of the same kernel");
          continue;
        }
        // Each is added when all before it are known to be in order.
        if (reaches(waits_for, other.text, id->text)) {
          p_.report(other.at, child_path(where + ".agents", j),
                    id->text + " would wait for itself, through " + shown(other),
                    "an order without a cycle");
          continue;
        }
        waits_for[id->text].push_back(other.text);
      }
    }
  }

  /// Whether `from` is `to`, or waits for it. Without circles, so that it ends.
  static bool reaches(const std::map<std::string, std::vector<std::string>>& waits_for,
                      const std::string& from, const std::string& to) {
    std::set<std::string> seen;
    std::vector<std::string> next{from};
    while (!next.empty()) {
      const auto at = std::move(next.back());
      next.pop_back();
      if (at == to) {
        return true;
      }
      if (!seen.insert(at).second) {
        continue;
      }
      if (const auto it = waits_for.find(at); it != waits_for.end()) {
        next.insert(next.end(), it->second.begin(), it->second.end());
      }
    }
    return false;
  }

  static const tree* list(const tree* parent, std::string_view key) {
    const auto* found = parent->find(key);
    return found != nullptr && found->kind == tree::kind_t::sequence ? found : nullptr;
  }

  static std::optional<milliseconds> duration(const tree& parent, std::string_view key,
                                              milliseconds otherwise) {
    const auto* found = parent.find(key);
    if (found == nullptr) {
      return otherwise;
    }
    const auto value = parse_duration(found->text);
    return value ? std::optional(*value) : std::nullopt;
  }

  void leases(const tree& node) {
    const auto lease = duration(node, "lease", limits::lease);
    const auto renewal = duration(node, "lease_renewal", limits::lease_renewal);
    if (lease && renewal && *renewal * 2 > *lease) {
      const auto* at = node.find("lease_renewal");
      at = at == nullptr ? node.find("lease") : at;
      p_.report(at->at, "node.lease_renewal",
                "renewing every " + format_duration(*renewal) + " cannot hold a lease of " +
                    format_duration(*lease),
                "at most half of the lease");
    }
  }

  void fault(const std::string& path, const tree& t) {
    const auto* action = t.find("action");
    const auto* point = t.find("point");
    const auto* delay = t.find("delay");
    const auto what = action == nullptr ? std::nullopt : faults::action_of(action->text);
    if (!what) {
      return;
    }
    if (*what != faults::action::delay && delay != nullptr) {
      p_.report(delay->at, child_path(path, "delay"), "has no effect with action: " + action->text,
                "action: delay");
    }
    if (*what == faults::action::delay && delay == nullptr) {
      p_.report(action->at, child_path(path, "delay"),
                "missing: without a duration the fault does nothing", "a duration such as 30s");
    }
    const auto* row = point == nullptr ? nullptr : faults::find(point->text);
    if (row != nullptr && !faults::contains(row->can, *what)) {
      p_.report(action->at, child_path(path, "action"),
                point->text + " does not support " + action->text, faults::to_text(row->can));
    }
  }

  /// `otherwise`: what an item without the key is called.
  void unique(const tree& items, const std::string& path, std::string_view key,
              std::string_view otherwise) {
    std::map<std::string, int> seen;
    for (std::size_t i = 0; i < items.items.size(); ++i) {
      const auto* found = items.items[i].find(key);
      const auto name = found == nullptr ? std::string(otherwise) : found->text;
      const auto at = found == nullptr ? items.items[i].at : found->at;
      if (name.empty()) {
        continue;
      }
      const auto [first, fresh] = seen.emplace(name, at.line);
      if (!fresh) {
        const bool secret = found != nullptr && found->secret;
        p_.report(at, child_path(child_path(path, i), key),
                  (secret ? std::string("this name") : "\"" + name + "\"") +
                      " is already used on line " + std::to_string(first->second),
                  "a unique " + std::string(key));
      }
    }
  }

  void agent(const std::string& path, const tree& t) {
    if (t.find("schedule") == nullptr) {
      for (const auto* key : {"tz", "jitter", "overlap", "misfire", "grace"}) {
        if (const auto* found = t.find(key)) {
          p_.report(found->at, child_path(path, key), "has no effect without a schedule",
                    "a schedule as well, or no " + std::string(key));
        }
      }
    }
    if (const auto* wake = t.find("wake"); wake != nullptr && wake->kind == tree::kind_t::map) {
      either(*wake, path + ".wake", "argv", "inputs");
    }
    const auto* executor = t.find("executor");
    const auto* type = executor == nullptr ? nullptr : executor->find("type");
    if (type == nullptr) {
      return;
    }
    if (type->text == "command") {
      either(*executor, path + ".executor", "argv", "shell");
    } else if (type->text == "script") {
      either(*executor, path + ".executor", "answers", "file");
    }
    tool_actions(path, t, type->text);
  }

  void tool_actions(const std::string& path, const tree& t, const std::string& type) {
    const auto* require = list(&t, "require");
    for (std::size_t i = 0; require != nullptr && i < require->items.size(); ++i) {
      const auto& item = require->items[i];
      if (item.text == "tool_action" && type != "chat") {
        p_.report(item.at, child_path(path + ".require", i),
                  (type == "agent_cli" || type == "improve" ? "an " : "a ") + type +
                      " executor has no tools, so this requirement could never be met",
                  "exit_zero, artifact, command, schema or no_question");
      }
    }
  }

  void either(const tree& t, const std::string& path, std::string_view a, std::string_view b) {
    const auto* first = t.find(a);
    const auto* second = t.find(b);
    const auto expected = "exactly one of " + std::string(a) + " and " + std::string(b);
    if (first == nullptr && second == nullptr) {
      p_.report(t.at, path, "neither " + std::string(a) + " nor " + std::string(b) + " is set",
                expected);
    } else if (first != nullptr && second != nullptr) {
      p_.report(second->at, child_path(path, b), std::string(a) + " is also set", expected);
    }
  }

  pass& p_;
};

} // namespace

void check_combinations(pass& p, const tree& root) {
  combination_checks(p).root(root);
}

} // namespace boyd::config
