#include "boyd/config/load.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/core/text.hpp"
#include "embedded.hpp"
#include "passes.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace boyd::config {
namespace {

/// A file with more findings than this has one cause; the rest is counted.
constexpr std::size_t findings_limit = 200;
constexpr std::size_t secrets_limit = 1000;

std::vector<std::string> without_repeats(std::vector<std::string> secrets) {
  std::ranges::sort(secrets);
  secrets.erase(std::unique(secrets.begin(), secrets.end()), secrets.end());
  std::erase_if(secrets, [](const auto& s) { return s.size() < secret_bytes; });
  return secrets;
}

/// The first finding about a key stays: the later ones follow from it.
std::vector<finding> tidy(std::vector<finding> all, const std::vector<std::string>& secrets) {
  std::set<std::string> seen;
  std::erase_if(all,
                [&](const finding& f) { return !f.key.empty() && !seen.insert(f.key).second; });
  std::stable_sort(all.begin(), all.end(), [](const finding& a, const finding& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  if (all.size() > findings_limit) {
    const auto rest = all.size() - findings_limit;
    all.resize(findings_limit);
    all.push_back({all.front().file, 0, 0, {}, "and " + std::to_string(rest) + " more", {}, {}});
  }
  for (auto& f : all) {
    f.problem = redact_text(std::move(f.problem), secrets);
    f.expected = redact_text(std::move(f.expected), secrets);
  }
  return all;
}

/// `after: [a, b]` is short for `after: {agents: [a, b]}`.
void write_after_out(tree& after) {
  if (after.kind != tree::kind_t::sequence) {
    return;
  }
  tree whole;
  whole.kind = tree::kind_t::map;
  whole.at = after.at;
  whole.keys.push_back({"agents", after.at});
  whole.items.push_back(std::move(after));
  after = std::move(whole);
}

/// `schedule: {at: TIME}` is the expression "at TIME".
void write_at_out(tree& schedule) {
  auto* at = schedule.keys.size() == 1 ? schedule.find("at") : nullptr;
  if (at == nullptr || at->kind != tree::kind_t::scalar) {
    return;
  }
  tree expression = std::move(*at);
  expression.text.insert(0, "at ");
  expression.plain = false;
  schedule = std::move(expression);
}

/// `setup: TEXT` is a line for the shell.
void write_shell_out(tree& setup) {
  if (setup.kind != tree::kind_t::scalar || setup.text.empty()) {
    return;
  }
  tree words;
  words.kind = tree::kind_t::sequence;
  words.at = setup.at;
  for (const auto* word : {"/bin/sh", "-c"}) {
    tree item;
    item.text = word;
    item.at = setup.at;
    words.items.push_back(std::move(item));
  }
  words.items.push_back(std::move(setup));
  setup = std::move(words);
}

/// Gives values that have a short and a long form the one that the rest of the file's readers know.
void write_forms_out(tree& root) {
  const auto each = [](tree& parent, std::string_view key, const auto& change) {
    auto* list = parent.find(key);
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      change(list->items[i]);
    }
  };
  const auto of = [](tree& parent, std::string_view key, void (*change)(tree&)) {
    if (auto* value = parent.find(key)) {
      change(*value);
    }
  };
  each(root, "kernels", [&](tree& kernel) {
    of(kernel, "schedule", write_at_out);
    each(kernel, "quiet_hours", [&](tree& hours) { of(hours, "schedule", write_at_out); });
    each(kernel, "agents", [&](tree& agent) {
      of(agent, "after", write_after_out);
      of(agent, "schedule", write_at_out);
      auto* executor = agent.find("executor");
      if (auto* worktree = executor == nullptr ? nullptr : executor->find("worktree")) {
        of(*worktree, "setup", write_shell_out);
      }
    });
  });
}

} // namespace

const tree* tree::find(std::string_view key) const noexcept {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) {
      return &items[i];
    }
  }
  return nullptr;
}

tree* tree::find(std::string_view key) noexcept {
  return const_cast<tree*>(std::as_const(*this).find(key));
}

std::string finding::where() const {
  return line == 0 ? file : file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string finding::text() const {
  auto out = where() + ": " + (key.empty() ? "" : key + ": ") + problem;
  if (!nearest.empty()) {
    return out + "; did you mean " + nearest + "?";
  }
  return expected.empty() ? out : out + "; expected " + expected;
}

load_result build(const std::string& path, parsed source, const environment_lookup& environment,
                  const time_zones& zones, const tree_writer& write, unset_variables unset,
                  const file_reader& files, const tree_parser& parse) {
  load_result out;
  if (!source.value) {
    out.findings = std::move(source.findings);
    return out;
  }
  auto& root = *source.value;
  pass p{path, source.findings};
  p.lenient = unset == unset_variables::stay_as_text;
  p.files = files;
  p.parse = parse;
  expand(p, root, environment, unset);
  read_prompt_files(p, root);
  write_forms_out(root);
  apply_presets(p, root, environment);
  validate(p, root);
  check_meaning(p, root, zones);
  auto secrets = without_repeats(std::move(p.secrets));
  if (secrets.size() > secrets_limit) {
    p.report({}, {}, "too many secret values", "at most " + std::to_string(secrets_limit));
  }
  secrets = with_secrets(std::move(secrets), {});
  if (!source.findings.empty()) {
    out.findings = tidy(std::move(source.findings), secrets);
    return out;
  }
  find_doubts(p, root);
  out.warnings = tidy(std::move(source.findings), secrets);
  out.unset = std::move(p.unset);
  fill_defaults(root);
  auto value = convert(p, root);
  value.path = path;
  value.redacted_yaml = write(redact(std::move(root), secrets));
  value.secrets = secrets;
  out.value = std::move(value);
  return out;
}

const std::string& schema_json() {
  static const std::string text(embedded::schema_text);
  return text;
}

std::string default_yaml() {
  return embedded::default_text;
}

} // namespace boyd::config
