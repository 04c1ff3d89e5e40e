#include "boyd/core/limits.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/web_address.hpp"
#include "passes.hpp"
#include "schema.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace boyd::config {
namespace {

constexpr std::array<std::string_view, 8> built_in_tools{"read_file",   "write_file",  "list_dir",
                                                         "search_text", "run_command", "remember",
                                                         "recall",      "read_skill"};
constexpr std::string_view foreign_tool = "mcp__";
/// The goal changes by write_file alone: a tool of this name would be taken for another way.
constexpr std::string_view forbidden_tool = "kernel_goal";

/// Headers that the request itself has.
constexpr std::array<std::string_view, 7> own_headers{
    "accept", "accept-encoding",  "connection", "content-length", "content-type",
    "host",   "transfer-encoding"};

std::string lower_case(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// mcp__SERVER__TOOL, where `*` stands for any part.
bool is_foreign_tool(std::string_view text) {
  if (!text.starts_with(foreign_tool)) {
    return false;
  }
  const auto rest = text.substr(foreign_tool.size());
  const auto middle = rest.find("__");
  return middle != std::string_view::npos && middle > 0 && middle + 2 < rest.size() &&
         std::ranges::all_of(rest, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.' || c == '*';
         });
}

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
const tree* scalar(const tree* t, std::string_view key) {
  return part(t, key, tree::kind_t::scalar);
}
std::string text_of(const tree* t, std::string_view key) {
  const auto* found = scalar(t, key);
  return found == nullptr ? std::string() : found->text;
}

/// A map may be there because nothing stands after its key; then there is nothing to look at.
bool is_map(const tree& t) {
  return t.kind == tree::kind_t::map;
}

/// Who asks a model: an executor, a planner, a reducer, or one of their fallbacks.
struct use {
  const tree& at;
  std::string path;
};

/// The checks of providers and of what uses them.
class model_checks {
 public:
  model_checks(pass& p, const tree& root) : p_(p), providers_(list(&root, "providers")) {
    for (std::size_t i = 0; providers_ != nullptr && i < providers_->items.size(); ++i) {
      if (is_map(providers_->items[i])) {
        provider(child_path("providers", i), providers_->items[i]);
      }
    }
    node_cost_ = scalar(map(map(&root, "node"), "budget_day"), "cost");
    const auto* kernels = list(&root, "kernels");
    for (std::size_t i = 0; kernels != nullptr && i < kernels->items.size(); ++i) {
      const auto path = child_path("kernels", i);
      adviser(path + ".planner", kernels->items[i].find("planner"));
      adviser(path + ".reducer", kernels->items[i].find("reducer"));
      const auto* agents = list(&kernels->items[i], "agents");
      for (std::size_t j = 0; agents != nullptr && j < agents->items.size(); ++j) {
        agent(child_path(child_path("kernels", i) + ".agents", j), agents->items[j]);
      }
    }
  }

 private:
  // -- providers --

  void provider(const std::string& path, const tree& t) {
    const auto* url = scalar(&t, "base_url");
    if (url == nullptr) {
      if (t.find("preset") == nullptr && t.find("base_url") == nullptr) {
        p_.report(t.at, child_path(path, "base_url"), "missing",
                  "a URL such as http://127.0.0.1:8000/v1, or a preset");
      }
      return;
    }
    const auto address = parse_web_address(url->text);
    if (!address || url->unusable) {
      return;
    }
    if (!address->secure && !is_loopback(t) && text_of(&t, "allow_plain_http") != "true") {
      p_.report(url->at, child_path(path, "base_url"),
                "plain http lets others on the network read prompts, answers and the key",
                "https://…, or allow_plain_http: true as well");
    }
    key(path, t, address->origin());
    headers(path, t);
  }

  void key(const std::string& path, const tree& t, const std::string& origin) {
    const auto* here = scalar(&t, "api_key");
    const auto* file = scalar(&t, "api_key_file");
    const bool has_key = here != nullptr && (!here->text.empty() || here->unusable);
    const bool has_file = file != nullptr && !file->text.empty();
    if (has_key && has_file) {
      p_.report(file->at, child_path(path, "api_key_file"), "api_key is also set",
                "one of api_key and api_key_file");
    }
    if (has_file) {
      keep_key(file->text);
    }
    if (has_key || has_file || has_header(t, "authorization") || is_loopback(t)) {
      return;
    }
    const std::string variable(key_variable(text_of(&t, "preset")));
    if (p_.lenient) {
      if (!variable.empty() && std::ranges::find(p_.unset, variable) == p_.unset.end()) {
        p_.unset.push_back(variable);
      }
      return;
    }
    p_.report(here == nullptr ? t.at : here->at, child_path(path, "api_key"),
              "no API key for " + origin,
              variable.empty() ? "api_key: ${VARIABLE}, or api_key_file: FILE"
                               : "the variable " + variable +
                                     " set, or api_key: ${OTHER_VARIABLE}, or api_key_file: FILE");
  }

  /// What the file holds now is a secret already; that it cannot be read is told when it is used.
  void keep_key(const std::string& path) {
    if (!p_.files) {
      return;
    }
    if (const auto text = p_.files(resolve(p_.path, path))) {
      p_.secrets.emplace_back(first_line(*text));
    }
  }

  static bool has_header(const tree& t, std::string_view name) {
    const auto* headers = map(&t, "headers");
    return headers != nullptr && std::ranges::any_of(headers->keys, [&](const auto& k) {
             return lower_case(k.text) == name;
           });
  }

  void headers(const std::string& path, const tree& t) {
    const auto* all = map(&t, "headers");
    std::set<std::string> seen;
    for (std::size_t i = 0; all != nullptr && i < all->keys.size(); ++i) {
      const auto& key = all->keys[i];
      const auto name = lower_case(key.text);
      const auto where = child_path(path + ".headers", key.text);
      const bool keyed = !text_of(&t, "api_key").empty() || !text_of(&t, "api_key_file").empty();
      if (!seen.insert(name).second) {
        p_.report(key.at, where, "this header is set twice", "each header once");
      } else if (std::ranges::find(own_headers, name) != own_headers.end()) {
        p_.report(key.at, where, "Boyd sets this header itself", "another header, or none");
      } else if (name == "authorization" && keyed) {
        p_.report(key.at, where, "the API key is already sent in this header",
                  "one of api_key, api_key_file and this header");
      }
    }
  }

  const tree* find_provider(const std::string& id) const {
    for (std::size_t i = 0; providers_ != nullptr && i < providers_->items.size(); ++i) {
      if (text_of(&providers_->items[i], "provider_id") == id) {
        return &providers_->items[i];
      }
    }
    return nullptr;
  }

  /// Whom `t` asks: its own provider and its fallbacks.
  static std::vector<use> uses_of(const tree& t, const std::string& path) {
    std::vector<use> uses{{t, path}};
    const auto* fallback = list(&t, "fallback");
    for (std::size_t i = 0; fallback != nullptr && i < fallback->items.size(); ++i) {
      uses.push_back({fallback->items[i], child_path(path + ".fallback", i)});
    }
    return uses;
  }

  // -- the kernel's own questions --

  void adviser(const std::string& path, const tree* t) {
    if (t == nullptr || !is_map(*t)) {
      return;
    }
    if (text_of(t, "type") != "llm") {
      for (const auto& key : t->keys) {
        if (key.text != "type") {
          p_.report(key.at, child_path(path, key.text), "has no effect, because no model is asked",
                    "type: llm as well, or no " + key.text);
        }
      }
      return;
    }
    if (t->find("provider") == nullptr) {
      p_.report(t->at, child_path(path, "provider"), "missing",
                "the provider_id of one of the providers");
      return;
    }
    const auto uses = uses_of(*t, path);
    for (const auto& u : uses) {
      model_of(u);
    }
    priced(scalar(map(t, "budget_day"), "cost"), path + ".budget_day.cost", uses);
    priced(node_cost_, "node.budget_day.cost", uses);
  }

  // -- agents --

  void agent(const std::string& path, const tree& t) {
    const auto* executor = map(&t, "executor");
    const auto type = text_of(executor, "type");
    if (const auto* summarizer = map(map(&t, "context"), "summarizer")) {
      model_of({*summarizer, path + ".context.summarizer"});
    }
    if (type == "chat") {
      chat(path, t, *executor);
    } else if (type == "command" || type == "script" || type == "agent_cli" || type == "improve") {
      for (const std::string_view key : {"tools", "mcp_json", "policy", "budget"}) {
        if ((type == "agent_cli" || type == "improve") && key == "budget") {
          continue; // it is reserved for whole runs
        }
        if (const auto* found = t.find(key)) {
          p_.report(found->at, child_path(path, key),
                    type == "agent_cli"
                        ? "has no effect: Boyd does not control the tools of an agent CLI"
                        : "a " + type + " executor calls no model, so this has no effect",
                    "executor: {type: chat, …}, or no " + std::string(key));
        }
      }
    }
  }

  void chat(const std::string& path, const tree& t, const tree& executor) {
    const auto uses = uses_of(executor, path + ".executor");
    for (const auto& u : uses) {
      model_of(u);
    }
    answer_schema(path + ".executor", executor);
    for (const auto& u : uses) {
      tools(path, t, text_of(&u.at, "provider"), u.path);
    }
    const auto* budget = map(&t, "budget");
    for (const auto* of : {"run", "day"}) {
      priced(scalar(map(budget, of), "cost"), path + ".budget." + of + ".cost", uses);
    }
    priced(node_cost_, "node.budget_day.cost", uses);
  }

  void model_of(const use& u) {
    const auto* named = scalar(&u.at, "provider");
    if (named == nullptr || named->unusable) {
      return;
    }
    const auto* provider = find_provider(named->text);
    if (provider == nullptr) {
      std::vector<std::string_view> known;
      for (std::size_t i = 0; providers_ != nullptr && i < providers_->items.size(); ++i) {
        if (const auto* id = scalar(&providers_->items[i], "provider_id")) {
          known.emplace_back(id->text);
        }
      }
      p_.report(named->at, child_path(u.path, "provider"), shown(*named) + " is not a provider",
                known.empty() ? "an entry in providers with this provider_id" : enumerated(known),
                named->secret ? "" : std::string(nearest(named->text, known)));
    } else if (text_of(&u.at, "model").empty() && text_of(provider, "model").empty()) {
      p_.report(u.at.at, child_path(u.path, "model"),
                "no model is set, neither here nor for the provider", "a model name");
    }
  }

  static std::string enumerated(const std::vector<std::string_view>& names) {
    std::string out = "one of";
    for (const auto name : names) {
      out += (out.back() == 'f' ? " " : ", ") + std::string(name);
    }
    return out;
  }

  /// `used_at`: the executor, or one of its fallbacks, which a run would have to leave out.
  void tools(const std::string& path, const tree& t, const std::string& provider_id,
             const std::string& used_at) {
    const auto* given = list(&t, "tools");
    const auto* provider = find_provider(provider_id);
    if (given != nullptr && !given->items.empty() && provider != nullptr &&
        text_of(map(provider, "capabilities"), "tools") == "false") {
      const bool is_fallback = used_at != path + ".executor";
      p_.report(given->at, child_path(path, "tools"),
                "the models of provider " + provider_id + " do not support tools" +
                    (is_fallback ? ", but it is a fallback of this agent" : ""),
                is_fallback ? "another fallback, or no tools" : "another provider, or no tools");
    }
  }

  void answer_schema(const std::string& path, const tree& executor) {
    const auto* file = scalar(&executor, "schema_file");
    if (file == nullptr || file->unusable || file->text.empty()) {
      return;
    }
    if (executor.find("schema") != nullptr) {
      p_.report(file->at, child_path(path, "schema_file"), "schema is also set",
                "one of schema and schema_file");
      return;
    }
    const auto full = resolve(p_.path, file->text);
    const auto text = p_.files
                          ? p_.files(full)
                          : result<std::string>(fail(errc::refused, "files cannot be read here"));
    if (!text) {
      p_.report(file->at, child_path(path, "schema_file"),
                "cannot read the file: " + text.error().what, "a file with a JSON Schema");
      return;
    }
    const auto json = object_from(*text);
    if (!json) {
      p_.report(file->at, child_path(path, "schema_file"), json.error().what,
                "a file with a JSON Schema (a JSON object)");
      return;
    }
    p_.texts[full] = *json;
  }

  /// A JSON object, written anew in one line.
  static result<std::string> object_from(const std::string& text) {
    bool deep = false;
    const auto json = nlohmann::json::parse(
        text,
        [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
          deep = deep || static_cast<std::size_t>(depth) > limits::json_depth;
          return !deep;
        },
        false);
    if (deep) {
      return fail(errc::limit_exceeded,
                  "nested deeper than " + std::to_string(limits::json_depth) + " levels");
    }
    if (!json.is_object()) {
      return fail(errc::parse_error, "not a JSON object");
    }
    return json.dump();
  }

  /// A limit of cost that is asked for must hold: what has no price would never reach it.
  void priced(const tree* cost, const std::string& path, const std::vector<use>& uses) {
    if (cost == nullptr || cost->unusable || parse_dollars(cost->text).value_or(0) == 0) {
      return;
    }
    for (const auto& u : uses) {
      const auto id = text_of(&u.at, "provider");
      const auto* provider = find_provider(id);
      if (provider == nullptr) {
        continue;
      }
      auto model = text_of(&u.at, "model");
      model = model.empty() ? text_of(provider, "model") : model;
      if (!has_price(*provider, model)) {
        p_.report(cost->at, path,
                  "the limit has no effect: provider " + id + " has no price for " +
                      (model.empty() ? "its models" : model),
                  "prices with " + (model.empty() ? "\"*\"" : model + " or \"*\"") +
                      " in the provider (0 if free), or no cost limit");
        return;
      }
    }
  }

  pass& p_;
  const tree* providers_;
  const tree* node_cost_ = nullptr;
};

} // namespace

bool is_loopback(const tree& provider) {
  const auto address = parse_web_address(text_of(&provider, "base_url"));
  return address && is_loopback_host(address->host);
}

bool has_price(const tree& provider, std::string_view model) {
  const auto* prices = map(&provider, "prices");
  return prices != nullptr && (prices->find(model) != nullptr || prices->find("*") != nullptr);
}

void check_models(pass& p, const tree& root) {
  (void)model_checks(p, root);
}

result<void> check_tool(std::string_view text, bool pattern) {
  if (std::ranges::find(built_in_tools, text) != built_in_tools.end() || (pattern && text == "*")) {
    return {};
  }
  if (text == forbidden_tool || text.ends_with("__" + std::string(forbidden_tool))) {
    return fail(errc::invalid_argument,
                "no tool may be called " + std::string(forbidden_tool) +
                    ": agents change GOAL.md with write_file",
                {}, "write_file");
  }
  if (is_foreign_tool(text)) {
    return {};
  }
  return fail(errc::invalid_argument, "no such tool", {},
              std::string(nearest(text, {built_in_tools.begin(), built_in_tools.end()})));
}

} // namespace boyd::config
