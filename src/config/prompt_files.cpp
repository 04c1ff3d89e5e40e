#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "passes.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

/// `prompt_file` of an agent: its content stands for `prompt`.
namespace boyd::config {

namespace {

constexpr std::string_view own_key = "prompt_file";
constexpr std::string_view prompt_key = "prompt";

tree* entry(tree* parent, std::string_view key, tree::kind_t kind) {
  auto* found = parent == nullptr ? nullptr : parent->find(key);
  return found != nullptr && found->kind == kind ? found : nullptr;
}

/// Below the configuration's folder: whoever may write there may write the prompts.
bool leads_out(std::string_view path) {
  const auto parts = split(path, '/');
  return path.starts_with('/') || std::ranges::find(parts, "..") != parts.end();
}

/// What the file says; an error is reported at `file`.
std::optional<std::string> content_of(pass& p, const tree& file, const std::string& key) {
  const auto text = p.files ? p.files(resolve(p.path, file.text))
                            : result<std::string>(fail(errc::refused, "files cannot be read here"));
  if (!text) {
    p.report(file.at, key, "cannot read the file: " + text.error().what,
             "a file in the folder of the configuration or below");
    return std::nullopt;
  }
  if (text->size() > limits::prompt_bytes) {
    p.report(file.at, key, "the file has " + std::to_string(text->size()) + " bytes",
             "at most " + std::to_string(limits::prompt_bytes) + " bytes");
    return std::nullopt;
  }
  if (sanitize_utf8(*text) != *text) {
    p.report(file.at, key, "the file is not text", "a UTF-8 file without zero bytes");
    return std::nullopt;
  }
  return *text;
}

void read_one(pass& p, tree& agent, const std::string& path) {
  const auto at = std::ranges::find(agent.keys, own_key, &tree::key_t::text) - agent.keys.begin();
  if (at == static_cast<std::ptrdiff_t>(agent.keys.size()))
    return;
  auto& file = agent.items[static_cast<std::size_t>(at)];
  const auto key = path + "." + std::string(own_key);
  if (file.kind != tree::kind_t::scalar || file.unusable || file.text.empty())
    return; // the schema says what is wrong
  if (agent.find(prompt_key) != nullptr)
    return p.report(file.at, key, "prompt is also set", "one of prompt and prompt_file");
  if (leads_out(file.text))
    return p.report(file.at, key, "the file is outside the folder of the configuration",
                    "a relative path without \"..\"");
  auto text = content_of(p, file, key);
  if (!text)
    return;
  agent.keys[static_cast<std::size_t>(at)].text = prompt_key;
  file.text = std::move(*text);
  file.plain = false;
}

} // namespace

void read_prompt_files(pass& p, tree& root) {
  auto* kernels = entry(&root, "kernels", tree::kind_t::sequence);
  for (std::size_t k = 0; kernels != nullptr && k < kernels->items.size(); ++k) {
    auto* agents = entry(&kernels->items[k], "agents", tree::kind_t::sequence);
    for (std::size_t a = 0; agents != nullptr && a < agents->items.size(); ++a)
      if (agents->items[a].kind == tree::kind_t::map)
        read_one(p, agents->items[a],
                 "kernels[" + std::to_string(k) + "].agents[" + std::to_string(a) + "]");
  }
}

} // namespace boyd::config
