#include "copy_configuration.hpp"

#include "adapters/yaml/yaml.hpp"
#include "boyd/config/mcp.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace boyd::app {

namespace {

using config::tree;

bool is_path_key(std::string_view key) {
  return key == "cwd" || key == "file" || key == "workspace" || key == "store_password_file" ||
         key == "repo" || key == "settings";
}

/// Scalars that the loader resolves against the file's folder.
void collect(const tree& t, std::vector<const tree*>& paths) {
  for (std::size_t i = 0; i < t.items.size(); ++i) {
    const auto& item = t.items[i];
    const auto key =
        t.kind == tree::kind_t::map ? std::string_view(t.keys[i].text) : std::string_view();
    if (is_path_key(key) && item.kind == tree::kind_t::scalar)
      paths.push_back(&item);
    else if (key == "inputs" && item.kind == tree::kind_t::sequence)
      for (const auto& path : item.items)
        paths.push_back(&path);
    else
      collect(item, paths);
  }
}

std::string absolute_in(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

/// What the scalar must become; nothing when it can stay.
std::optional<std::string> moved(const std::string& folder, const std::string& text) {
  if (text.empty() || text.front() == '/' || text.starts_with(config::workspace_word))
    return std::nullopt;
  if (!text.starts_with("${")) {
    if (text.starts_with('$'))
      return std::nullopt;
    return absolute_in(folder, text);
  }
  const auto separator = text.find(":-");
  const auto end = text.find('}');
  if (separator == std::string::npos || end == std::string::npos || separator > end)
    return std::nullopt;
  const auto fallback = text.substr(separator + 2, end - separator - 2);
  if (fallback.empty() || fallback.front() == '/')
    return std::nullopt;
  return text.substr(0, separator + 2) + absolute_in(folder, fallback) + text.substr(end);
}

/// Where lines begin.
std::vector<std::size_t> line_starts(std::string_view text) {
  std::vector<std::size_t> starts{0};
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      starts.push_back(i + 1);
  return starts;
}

/// How many bytes the scalar takes in the file; nothing when it is written in another way than in
/// quotes or plainly on one line.
std::optional<std::size_t> extent(std::string_view text, std::size_t at, const std::string& value) {
  if (at >= text.size())
    return std::nullopt;
  const char quote = text[at];
  if (quote == '\'' || quote == '"') {
    const auto end = text.find(quote, at + 1);
    if (end == std::string_view::npos || text.substr(at + 1, end - at - 1) != value)
      return std::nullopt;
    return end - at + 1;
  }
  return text.substr(at, value.size()) == value ? std::optional(value.size()) : std::nullopt;
}

/// The comment by which editors find the schema: in the home it lies beside the file.
void mend_schema_comment(std::string& text) {
  constexpr std::string_view mark = "$schema=";
  const auto at = text.find(mark);
  if (at == std::string::npos || text.rfind('#', at) == std::string::npos || text.find('\n') < at)
    return;
  const auto begin = at + mark.size();
  const auto end = std::min(text.find_first_of(" \r\n", begin), text.size());
  text.replace(begin, end - begin, "./boyd.schema.json");
}

} // namespace

std::string moved_configuration(const std::string& from, std::string_view text) {
  std::string out(text);
  const auto parsed = adapters::parse_yaml(from, text);
  if (!parsed.value)
    return out;
  const auto folder = std::filesystem::path(from).parent_path().string();
  const auto starts = line_starts(text);
  std::vector<const tree*> scalars;
  collect(*parsed.value, scalars);
  // From the end, so that earlier offsets stay true; an anchor's scalar is found more than once.
  std::map<std::size_t, std::pair<std::size_t, std::string>, std::greater<>> edits;
  for (const auto* s : scalars) {
    const auto replacement = moved(folder, s->text);
    if (!replacement || s->at.line < 1 || static_cast<std::size_t>(s->at.line) > starts.size())
      continue;
    const auto offset = starts[static_cast<std::size_t>(s->at.line) - 1] +
                        static_cast<std::size_t>(std::max(s->at.column, 1)) - 1;
    if (const auto length = extent(text, offset, s->text))
      edits[offset] = {*length, nlohmann::json(*replacement).dump()};
  }
  for (const auto& [offset, edit] : edits)
    out.replace(offset, edit.first, edit.second);
  mend_schema_comment(out);
  return out;
}

/// An improvement cycle that reads its part of the same file reads that of the copy.
void name_own_file(config::configuration& c, const std::string& path) {
  for (auto& kernel : c.kernels)
    for (auto& agent : kernel.agents)
      if (auto* cli = std::get_if<config::agent_cli_executor>(&agent.run))
        std::ranges::replace(cli->args, "--config=" + c.path, "--config=" + path);
}

result<void> same_meaning(const config::configuration& a, config::configuration b) {
  name_own_file(b, a.path);
  if (a.version == b.version && a.node_settings == b.node_settings && a.kernels == b.kernels &&
      a.faults == b.faults)
    return {};
  std::string where;
  for (const auto& k : a.kernels) {
    const auto* other = b.find_kernel(k.kernel_id);
    for (const auto& agent : k.agents) {
      const auto* copied = other == nullptr ? nullptr : config::find_agent(*other, agent.agent_id);
      if (where.empty() && (copied == nullptr || !(*copied == agent)))
        where = "agent " + agent.agent_id;
    }
  }
  return fail(errc::refused, "the file cannot be copied: a relative path could not be converted",
              where.empty() ? a.path : a.path + ", " + where,
              "use an absolute path there (also in variables), or leave the file in place and use "
              "--config");
}

} // namespace boyd::app
