#include "passes.hpp"

#include <array>
#include <utility>

namespace boyd::config {
namespace {

/// What is known of one kind of endpoint, from its makers' documentation of chat completions.
struct preset {
  std::string_view name;
  std::string_view base_url;
  std::string_view key_variable; ///< as the makers' own clients call it; empty: none is needed
  std::string_view lacks;        ///< a capability that it does not have; empty: it has all
};

// The local ones listen on these ports unless told otherwise.
constexpr std::array<preset, 8> presets{{
    {"openai", "https://api.openai.com/v1", "OPENAI_API_KEY", ""},
    // Its compatible endpoint passes over response_format (docs.anthropic.com/en/api/openai-sdk).
    {"anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "schema"},
    {"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", ""},
    {"ollama", "http://127.0.0.1:11434/v1", "", ""},
    {"vllm", "http://127.0.0.1:8000/v1", "", ""},
    {"llamacpp", "http://127.0.0.1:8080/v1", "", ""},
    {"lmstudio", "http://127.0.0.1:1234/v1", "", ""},
    {"openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", ""},
}};

const preset* find(std::string_view name) {
  for (const auto& p : presets) {
    if (p.name == name) {
      return &p;
    }
  }
  return nullptr;
}

tree scalar(std::string_view text, mark at) {
  tree out;
  out.text = std::string(text);
  out.at = at;
  out.assumed = true;
  return out;
}

void add(tree& map, std::string_view key, tree value) {
  map.keys.push_back({std::string(key), value.at});
  map.items.push_back(std::move(value));
}

void add_capability(const preset& from, tree& t, mark at) {
  auto* given = t.find("capabilities");
  if (given == nullptr) {
    tree none;
    none.kind = tree::kind_t::map;
    none.at = at;
    add(t, "capabilities", std::move(none));
    given = &t.items.back();
  }
  if (given->kind == tree::kind_t::map && given->find(from.lacks) == nullptr) {
    add(*given, from.lacks, scalar("false", at));
  }
}

/// A key is sent by itself only to the address that it is known to be for.
void add_key(pass& p, const preset& from, tree& t, mark at, const environment_lookup& environment) {
  if (from.key_variable.empty() || t.find("api_key") != nullptr ||
      t.find("api_key_file") != nullptr || t.find("base_url") != nullptr) {
    return;
  }
  const auto key = environment(std::string(from.key_variable));
  if (!key || key->empty()) {
    return;
  }
  auto value = scalar(*key, at);
  value.plain = false;
  value.expanded = true;
  value.secret = true;
  p.secrets.push_back(*key);
  add(t, "api_key", std::move(value));
}

/// What runs on this machine costs nothing, unless it is said.
void add_no_price(const preset& from, tree& t, mark at) {
  if (!from.key_variable.empty() || !is_loopback(t) || t.find("prices") != nullptr) {
    return;
  }
  tree price;
  price.kind = tree::kind_t::map;
  price.at = at;
  add(price, "input", scalar("0", at));
  add(price, "output", scalar("0", at));
  tree prices;
  prices.kind = tree::kind_t::map;
  prices.at = at;
  add(prices, "*", std::move(price));
  add(t, "prices", std::move(prices));
}

void apply(pass& p, tree& t, const environment_lookup& environment) {
  const auto* name = t.find("preset");
  const auto* known =
      name == nullptr || name->kind != tree::kind_t::scalar ? nullptr : find(name->text);
  if (known == nullptr) {
    return;
  }
  const auto at = name->at;
  add_key(p, *known, t, at, environment);
  if (t.find("base_url") == nullptr) {
    add(t, "base_url", scalar(known->base_url, at));
  }
  add_no_price(*known, t, at);
  if (!known->lacks.empty()) {
    add_capability(*known, t, at);
  }
}

} // namespace

void apply_presets(pass& p, tree& root, const environment_lookup& environment) {
  auto* providers = root.find("providers");
  if (providers == nullptr || providers->kind != tree::kind_t::sequence) {
    return;
  }
  for (auto& item : providers->items) {
    if (item.kind == tree::kind_t::map) {
      apply(p, item, environment);
    }
  }
}

std::string_view key_variable(std::string_view preset_name) {
  const auto* known = find(preset_name);
  return known == nullptr ? std::string_view() : known->key_variable;
}

std::string presets_markdown() {
  std::string out = "| preset | `base_url` | `api_key` | cannot |\n|---|---|---|---|\n";
  for (const auto& p : presets) {
    const auto code = [](std::string_view text) {
      return text.empty() ? std::string("–") : "`" + std::string(text) + "`";
    };
    out += "| " + code(p.name) + " | " + code(p.base_url) + " | " +
           (p.key_variable.empty() ? "–" : code("${" + std::string(p.key_variable) + "}")) + " | " +
           code(p.lacks) + " |\n";
  }
  return out;
}

} // namespace boyd::config
