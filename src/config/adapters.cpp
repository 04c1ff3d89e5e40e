#include "adapters.hpp"

#include "boyd/core/text.hpp"
#include "embedded.hpp"
#include "reading.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace boyd::config {
namespace {

/// Placeholders of argv whose value is another for each executor or run.
constexpr std::array<std::string_view, 6> own_placeholders{
    "{model}", "{session}", "{permission}", "{prompt_file}", "{args}", "{workspace}"};

struct built_in {
  std::string_view name;
  const char* const* text;
};

constexpr std::array<built_in, 6> built_ins{{
    {"claude", &embedded::adapter_claude},
    {"codex", &embedded::adapter_codex},
    {"gemini", &embedded::adapter_gemini},
    {"goose", &embedded::adapter_goose},
    {"improve", &embedded::adapter_improve},
    {"opencode", &embedded::adapter_opencode},
}};

bool is_file(std::string_view adapter) {
  return adapter.ends_with(".yaml") || adapter.ends_with(".yml") || adapter.ends_with(".json") ||
         adapter.find('/') != std::string_view::npos;
}

tree map_of(std::string key, tree value) {
  tree out;
  out.kind = tree::kind_t::map;
  out.keys.push_back({std::move(key), value.at});
  out.items.push_back(std::move(value));
  return out;
}

tree list_of(tree item) {
  tree out;
  out.kind = tree::kind_t::sequence;
  out.items.push_back(std::move(item));
  return out;
}

/// A whole configuration around one adapter, so that one schema and one set of checks hold.
tree wrap(tree adapter) {
  tree none;
  none.kind = tree::kind_t::sequence;
  tree version;
  version.text = "1";
  auto root = map_of("adapters", list_of(std::move(adapter)));
  root.keys.push_back({"kernels", {}});
  root.items.push_back(list_of(map_of("agents", std::move(none))));
  root.keys.push_back({"version", {}});
  root.items.push_back(std::move(version));
  return root;
}

/// Schedules and zones play no part in an adapter.
class no_zones final : public time_zones {
 public:
  result<std::shared_ptr<const time_zone>> find(const std::string& name) const override {
    return fail(errc::not_found, "no time zone database is available here", name);
  }
};

/// Of `type: improve`, always Boyd's own.
constexpr const char* improve_adapter = "improve";

std::string name_of_adapter(const tree& executor) {
  return text(executor, "type") == "improve" ? improve_adapter : text(executor, "adapter");
}

class adapter_checks {
 public:
  adapter_checks(pass& p, const tree& root) : p_(p), root_(root) {}

  void all() {
    const auto& adapters = get(root_, "adapters");
    for (std::size_t i = 0; i < adapters.items.size(); ++i)
      adapter(child_path("adapters", i), adapters.items[i]);
    const auto& kernels = get(root_, "kernels");
    for (std::size_t k = 0; k < kernels.items.size(); ++k) {
      const auto path = child_path(child_path("kernels", k), "agents");
      const auto& agents = get(kernels.items[k], "agents");
      for (std::size_t a = 0; a < agents.items.size(); ++a) {
        const auto& executor = get(agents.items[a], "executor");
        const auto type = text(executor, "type");
        if (type == "improve")
          cycle(child_path(path, a) + ".executor", executor);
        else if (type == "agent_cli")
          this->executor(child_path(path, a) + ".executor", executor);
        if (const auto* adapter = adapter_of_executor(p_, root_, executor))
          budget(child_path(path, a) + ".budget", get(agents.items[a], "budget"), *adapter,
                 name_of_adapter(executor));
      }
    }
  }

 private:
  // -- one adapter --

  void adapter(const std::string& path, const tree& t) {
    std::set<std::string> named;
    const auto& argv = get(t, "argv");
    for (std::size_t i = 0; i < argv.items.size(); ++i)
      argument(child_path(path + ".argv", i), argv.items[i], i == 0, named);
    for (const auto& value : get(t, "env").items)
      for (const auto placeholder : own_placeholders)
        if (value.text.find(placeholder) != std::string::npos)
          named.emplace(placeholder);
    if (text(t, "stdin") == "stream-json")
      input_json(path, t);
    const auto sessions = text(t, "sessions");
    const bool resumes = !sessions.empty() && sessions != "none";
    if (resumes != named.contains("{session}"))
      p_.report(t.at, path + ".sessions",
                resumes ? "argv has no {session}, so no session can be resumed"
                        : "argv has {session}, so sessions must be declared",
                resumes ? "none" : "directory or anywhere");
    if (get(t, "permissions").items.empty() && named.contains("{permission}"))
      p_.report(t.at, path + ".permissions", "argv has {permission}, but no values are listed",
                "the values that the program accepts");
    const auto& events = get(t, "events");
    bool has_final = text(t, "parser") == "text";
    for (std::size_t i = 0; i < events.items.size(); ++i) {
      const auto event = child_path(path + ".events", i);
      conditions(event + ".when", get(events.items[i], "when"));
      const auto& tool = get(events.items[i], "tool");
      conditions(event + ".tool.when", get(tool, "when"));
      conditions(event + ".tool.failed", get(tool, "failed"));
      has_final = has_final || text(events.items[i], "final") == "true";
    }
    if (!has_final)
      p_.report(t.at, path + ".events", "no event is final, so no run could succeed",
                "an entry with final: true");
  }

  void argument(const std::string& path, const tree& t, bool first, std::set<std::string>& named) {
    if (t.kind == tree::kind_t::map)
      return; // the schema has told it
    if (t.kind == tree::kind_t::sequence) {
      for (const auto& part : t.items)
        token(path, part, named);
      if (first)
        p_.report(t.at, path, "the program must be a single argument", "a string");
      return;
    }
    token(path, t, named);
    if (first && t.text.find('{') != std::string::npos)
      p_.report(t.at, path, "the program must not contain placeholders", "a string without {…}");
  }

  void token(const std::string& path, const tree& t, std::set<std::string>& named) {
    if (t.kind != tree::kind_t::scalar || t.text.empty()) {
      p_.report(t.at, path, shown(t) + " is not an argument", "a non-empty string");
      return;
    }
    if (t.text.find("{prompt}") != std::string::npos)
      p_.report(t.at, path,
                "a prompt must not be an argument: every user of the machine can read arguments",
                "stdin: prompt, or {prompt_file}");
    for (const auto placeholder : own_placeholders)
      if (t.text.find(placeholder) != std::string::npos)
        named.emplace(placeholder);
    if (t.text != "{args}" && t.text.find("{args}") != std::string::npos)
      p_.report(t.at, path, "{args} must be an argument of its own", "{args} alone");
  }

  void input_json(const std::string& path, const tree& t) {
    const auto& given = get(t, "stdin_json");
    if (given.unusable)
      return;
    const auto value = nlohmann::json::parse(given.text, nullptr, false);
    if (value.is_discarded() || given.text.find("\"{prompt}\"") == std::string::npos)
      p_.report(given.text.empty() ? t.at : given.at, path + ".stdin_json",
                "stdin: stream-json needs JSON with the string \"{prompt}\"",
                R"({"type":"user","message":{"role":"user","content":"{prompt}"}})");
  }

  void conditions(const std::string& path, const tree& all) {
    for (std::size_t i = 0; i < all.items.size() && i < all.keys.size(); ++i) {
      const auto& value = all.items[i];
      const auto key = child_path(path, all.keys[i].text);
      const bool contains = value.kind == tree::kind_t::map && value.keys.size() == 1 &&
                            value.keys.front().text == "contains" &&
                            value.items.front().kind == tree::kind_t::scalar;
      const bool scalars =
          value.kind != tree::kind_t::map && std::ranges::all_of(value.items, [](const tree& item) {
            return item.kind == tree::kind_t::scalar;
          });
      if (!contains && !scalars)
        p_.report(value.at, key, "no event can match this",
                  "a value, a list of values, or {contains: TEXT}");
    }
  }

  // -- who uses one --

  void executor(const std::string& path, const tree& t) {
    const auto& named = get(t, "adapter");
    if (named.text.empty() || named.unusable)
      return;
    const auto* adapter = resolved(path, named);
    if (adapter == nullptr)
      return;
    permission(path, t, *adapter);
    const auto sessions = text(*adapter, "sessions");
    const auto* worktree = t.find("worktree");
    if (text(t, "resume") == "agent" && (sessions.empty() || sessions == "none"))
      p_.report(get(t, "resume").at, path + ".resume", named.text + " cannot resume sessions",
                "none");
    else if (text(t, "resume") == "agent" && sessions == "directory" && worktree != nullptr)
      p_.report(
          get(t, "resume").at, path + ".resume",
          named.text +
              " finds its sessions only in the same directory, but every worktree is a new one",
          "none, or no worktree");
    if (const auto* cwd = t.find("cwd");
        cwd != nullptr && worktree != nullptr && !cwd->text.empty())
      p_.report(cwd->at, path + ".cwd", "worktree is also set", "one of cwd and worktree");
  }

  void cycle(const std::string& path, const tree& t) {
    tree named;
    named.text = improve_adapter;
    resolved(path, named);
    for (const auto* key : {"auto_commit", "approve"})
      if (text(t, key) == "true" && text(t, "apply") != "true")
        p_.report(get(t, key).at, child_path(path, key), "has no effect in a dry run",
                  "apply: true as well");
  }

  /// A limit that is asked for must hold: what the program never tells would not reach it.
  void budget(const std::string& path, const tree& t, const tree& adapter,
              const std::string& name) {
    for (const auto* of : {"run", "day"})
      for (const auto* figure : {"turns", "tokens", "cost"}) {
        const auto& limit = get(get(t, of), figure);
        if (limit.text.empty() || limit.unusable ||
            limit.text.find_first_not_of("0.") == std::string::npos)
          continue;
        if (!tells_figure(adapter, figure))
          p_.report(limit.at, path + "." + of + "." + figure,
                    "the limit has no effect: " + name + " does not report its " + figure,
                    std::string("no limit of ") + figure +
                        "; only reported values and budget.run.wall can be limited");
      }
  }

  void permission(const std::string& path, const tree& t, const tree& adapter) {
    const auto& given = get(t, "permission");
    if (given.text.empty() || given.unusable)
      return;
    const auto known = texts(adapter, "permissions");
    if (std::ranges::find(known, given.text) != known.end())
      return;
    std::string expected = known.empty() ? "none: the adapter has no such argument" : "one of";
    for (const auto& name : known)
      expected += (expected.back() == 'f' ? " " : ", ") + name;
    p_.report(given.at, path + ".permission", shown(given) + " is not a permission of this adapter",
              expected,
              given.secret ? "" : std::string(nearest(given.text, {known.begin(), known.end()})));
  }

  /// Null after a finding.
  const tree* resolved(const std::string& path, const tree& named) {
    if (const auto* own = inline_adapter(root_, named.text))
      return own;
    if (const auto found = p_.adapters.find(named.text); found != p_.adapters.end())
      return &found->second;
    for (const auto& [name, text] : built_ins)
      if (name == named.text)
        return parsed_adapter(named.text, std::string("adapter ") + std::string(name), *text);
    if (!is_file(named.text)) {
      unknown(path, named);
      return nullptr;
    }
    const auto file = resolve(p_.path, named.text);
    const auto content =
        p_.files ? p_.files(file)
                 : result<std::string>(fail(errc::refused, "files cannot be read here"));
    if (content)
      return parsed_adapter(named.text, file, *content);
    p_.report(named.at, path + ".adapter", "cannot read the adapter: " + content.error().what,
              "an adapter file");
    return nullptr;
  }

  void unknown(const std::string& path, const tree& named) {
    std::vector<std::string> names;
    for (const auto& one : get(root_, "adapters").items)
      names.push_back(text(one, "name"));
    for (const auto& one : built_ins)
      names.emplace_back(one.name);
    std::string expected;
    for (const auto& name : names)
      expected += name + ", ";
    p_.report(named.at, path + ".adapter", shown(named) + " is not an adapter",
              expected + "or the path of a .yaml file",
              named.secret ? "" : std::string(nearest(named.text, {names.begin(), names.end()})));
  }

  const tree* parsed_adapter(const std::string& key, const std::string& where,
                             std::string_view content) {
    if (!p_.parse)
      return nullptr;
    auto source = p_.parse(where, content);
    if (!source.value) {
      p_.findings.insert(p_.findings.end(), source.findings.begin(), source.findings.end());
      return nullptr;
    }
    const auto root = whole(where, source);
    if (!root) {
      p_.findings.insert(p_.findings.end(), source.findings.begin(), source.findings.end());
      return nullptr;
    }
    return &p_.adapters.emplace(key, get(*root, "adapters").items.front()).first->second;
  }

  /// The parsed file, filled; nothing when it has findings.
  static std::optional<tree> whole(const std::string& where, parsed& source) {
    constexpr std::string_view inner = "adapters[0].";
    pass own{where, source.findings};
    auto root = wrap(std::move(*source.value));
    validate(own, root);
    check_meaning(own, root, no_zones{});
    for (auto& f : source.findings)
      if (f.key.starts_with(inner))
        f.key.erase(0, inner.size());
    if (!source.findings.empty())
      return std::nullopt;
    fill_defaults(root);
    return root;
  }

  pass& p_;
  const tree& root_;
};

} // namespace

const tree* inline_adapter(const tree& root, std::string_view name) {
  for (const auto& one : get(root, "adapters").items)
    if (text(one, "name") == name)
      return &one;
  return nullptr;
}

bool tells_figure(const tree& adapter, std::string_view figure) {
  return std::ranges::any_of(get(adapter, "events").items, [&](const tree& event) {
    const auto told = [](const tree& places) {
      return !places.items.empty() || !places.text.empty();
    };
    const auto& usage = get(event, "usage");
    return figure == "tokens" ? told(get(usage, "input")) || told(get(usage, "output"))
                              : told(get(event, figure));
  });
}

const tree* adapter_of_executor(const pass& p, const tree& root, const tree& t) {
  if (text(t, "type") != "agent_cli" && text(t, "type") != "improve")
    return nullptr;
  const auto name = name_of_adapter(t);
  if (const auto* own = inline_adapter(root, name))
    return own;
  const auto found = p.adapters.find(name);
  return found == p.adapters.end() ? nullptr : &found->second;
}

std::string_view pointer_problem(std::string_view text) noexcept {
  if (!text.empty() && text.front() != '/')
    return "a JSON pointer begins with /";
  for (auto at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1))
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1'))
      return "write ~ as ~0, and / inside a name as ~1";
  return {};
}

void check_adapters(pass& p, const tree& root) {
  adapter_checks(p, root).all();
}

} // namespace boyd::config
