#include "boyd/config/cron.hpp"
#include "boyd/core/fault_points.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/web_address.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

namespace boyd::config {
namespace {

bool is_text(const tree& t) {
  return t.kind == tree::kind_t::scalar && type_of(t) == scalar_type::string && !t.unusable;
}

/// The candidate in an error's "did you mean X?", or empty.
std::string suggestion(const error& e) {
  constexpr std::string_view lead = "did you mean ";
  if (!e.next.starts_with(lead) || !e.next.ends_with('?')) {
    return {};
  }
  return e.next.substr(lead.size(), e.next.size() - lead.size() - 1);
}

bool is_env_name(std::string_view text) {
  if (text.empty() || (text.front() >= '0' && text.front() <= '9')) {
    return false;
  }
  return text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string_view::npos;
}

bool is_exit_code(std::string_view text) {
  constexpr int highest = 255;
  int code = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), code);
  return done.ec == std::errc{} && done.ptr == text.data() + text.size() && code >= 1 &&
         code <= highest && text.front() != '0';
}

/// The checks of single values, chosen by the schema's x-kind.
class value_checks {
 public:
  value_checks(pass& p, const time_zones& zones) : p_(p), zones_(zones) {}

  void check(const place& at) {
    const auto kind = word(at.at, "x-kind");
    if (kind == "requirement") {
      requirement_entry(at);
    } else if (at.value.kind == tree::kind_t::map) {
      keys(at);
    } else if (at.value.kind == tree::kind_t::scalar && !at.value.unusable) {
      scalar(at, kind);
    }
  }

 private:
  void wrong(const place& at, std::string problem, std::string near = {}) {
    p_.report(at.value.at, at.key, std::move(problem), describe(*at.at.front()), std::move(near));
  }

  /// An error about a value may quote it; a secret's may not.
  void hidden_or(const place& at, const char* hidden, const error& e) {
    if (at.value.secret) {
      wrong(at, hidden);
    } else {
      wrong(at, e.code == errc::io_error ? to_string(e) : e.what, suggestion(e));
    }
  }

  void scalar(const place& at, std::string_view kind) {
    const auto& text = at.value.text;
    if (kind == "duration") {
      duration(at);
    } else if (kind == "size") {
      size(at);
    } else if (!is_text(at.value)) {
      return;
    } else if (kind == "cron") {
      if (const auto fields = parse_cron(text); !fields) {
        hidden_or(at, "not a schedule", fields.error());
      }
    } else if (kind == "tz") {
      zone(at);
    } else if (kind == "name" && !is_valid_name(text)) {
      wrong(at, shown(at.value) + " is not a valid name");
    } else if (kind == "env_name" && !is_env_name(text)) {
      wrong(at, shown(at.value) + " is no variable name");
    } else if (kind == "store") {
      store(at);
    } else if (kind == "url" && !text.empty()) {
      if (const auto address = parse_web_address(text); !address) {
        hidden_or(at, "not a web address", address.error());
      }
    } else if (kind == "path" && text.starts_with("~")) {
      p_.report(at.value.at, at.key, "~ is not expanded", "${HOME}" + text.substr(1));
    } else if (kind == "person" &&
               (text.empty() || text.find_first_of("<>\n") != std::string::npos)) {
      wrong(at, shown(at.value) + " cannot sign a commit");
    } else if (text.empty() && at.at.front()->value("minLength", 0) > 0) {
      wrong(at, "it is empty");
    }
  }

  void duration(const place& at) {
    const auto type = type_of(at.value);
    if (type == scalar_type::null || type == scalar_type::boolean) {
      return;
    }
    const auto value = parse_duration(at.value.text);
    if (!value) {
      hidden_or(at, "not a duration", value.error());
      return;
    }
    const auto low = std::string(word(at.at, "x-min"));
    const auto high = std::string(word(at.at, "x-max"));
    if (*value < parse_duration(low).value_or(milliseconds{0})) {
      wrong(at, shown(at.value) + " is too short");
    } else if (*value > parse_duration(high).value_or(*value)) {
      p_.report(at.value.at, at.key, shown(at.value) + " is too long", "at most " + high);
    }
  }

  void size(const place& at) {
    const auto type = type_of(at.value);
    if (type == scalar_type::null || type == scalar_type::boolean) {
      return;
    }
    const auto value = parse_size(at.value.text);
    const auto low = at.at.front()->at("minimum").get<std::size_t>();
    const auto high = at.at.front()->at("maximum").get<std::size_t>();
    if (!value) {
      wrong(at, shown(at.value) + " is not a size");
    } else if (*value < low || *value > high) {
      p_.report(at.value.at, at.key, shown(at.value) + " is out of range",
                "from " + std::to_string(low) + " to " + std::to_string(high) + " bytes");
    }
  }

  void zone(const place& at) {
    const auto found = zones_.find(at.value.text);
    if (!found) {
      hidden_or(at, "not a time zone", found.error());
    }
  }

  void store(const place& at) {
    const auto& text = at.value.text;
    if (text == "sqlite") {
      return;
    }
    if (!text.starts_with("postgres://") && !text.starts_with("postgresql://")) {
      wrong(at, shown(at.value) + " is no store", std::string(nearest(text, {"sqlite"})));
    } else if (!uri_password(text).empty() || text.find("password=") != std::string::npos) {
      p_.report(at.value.at, at.key, "a password in the address",
                "store_password_file, or the environment variable PGPASSWORD");
    }
  }

  void keys(const place& at) {
    const auto kind = word(at.at, "x-keys");
    for (const auto& key : at.value.keys) {
      if (kind == "env_name" && !is_env_name(key.text)) {
        p_.report(key.at, child_path(at.key, key.text), "this is no variable name",
                  "letters, digits and _, not starting with a digit");
      } else if (kind == "exit_code" && !is_exit_code(key.text)) {
        p_.report(key.at, child_path(at.key, key.text), "this is no exit code", "1 to 255");
      }
    }
  }

  void requirement_entry(const place& at) {
    const bool one_key = at.value.kind == tree::kind_t::map && at.value.items.size() == 1;
    if (!one_key && !is_text(at.value)) {
      return;
    }
    if (const auto parsed = parse_requirement(at.value); !parsed && is_text(at.value)) {
      wrong(at, parsed.error().what, parsed.error().next);
    }
  }

  pass& p_;
  const time_zones& zones_;
};

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
      }
    }
  }

 private:
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
      p_.report(delay->at, child_path(path, "delay"),
                "with action: " + action->text + " this has no effect", "action: delay");
    }
    if (*what == faults::action::delay && delay == nullptr) {
      p_.report(action->at, child_path(path, "delay"),
                "missing: a delay of no time changes nothing", "a duration such as 30s");
    }
    const auto* row = point == nullptr ? nullptr : faults::find(point->text);
    if (row != nullptr && !faults::contains(row->can, *what)) {
      p_.report(action->at, child_path(path, "action"), point->text + " cannot " + action->text,
                faults::to_text(row->can) + " there");
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
                  (secret ? std::string("this name") : "\"" + name + "\"") + " is taken, on line " +
                      std::to_string(first->second),
                  "each " + std::string(key) + " once");
      }
    }
  }

  void agent(const std::string& path, const tree& t) {
    if (t.find("schedule") == nullptr) {
      for (const auto* key : {"tz", "jitter", "overlap", "misfire", "grace"}) {
        if (const auto* found = t.find(key)) {
          p_.report(found->at, child_path(path, key), "without a schedule this has no effect",
                    "schedule beside it, or no " + std::string(key));
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
      if (item.text == "tool_action" && (type == "command" || type == "script")) {
        p_.report(item.at, child_path(path + ".require", i),
                  "a " + type + " executor has no tool actions, this would never hold",
                  "exit_zero, artifact, command, schema or no_question");
      }
    }
  }

  void either(const tree& t, const std::string& path, std::string_view a, std::string_view b) {
    const auto* first = t.find(a);
    const auto* second = t.find(b);
    const auto expected = "exactly one of " + std::string(a) + " and " + std::string(b);
    if (first == nullptr && second == nullptr) {
      p_.report(t.at, path, "neither " + std::string(a) + " nor " + std::string(b) + " is given",
                expected);
    } else if (first != nullptr && second != nullptr) {
      p_.report(second->at, child_path(path, b), std::string(a) + " is given too", expected);
    }
  }

  pass& p_;
};

} // namespace

void check_meaning(pass& p, const tree& root, const time_zones& zones) {
  value_checks values(p, zones);
  walk(root, [&](const place& at) { values.check(at); });
  combination_checks(p).root(root);
}

} // namespace boyd::config
