#include "edit_configuration.hpp"

#include "adapters/yaml/yaml.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <optional>

namespace boyd::app {

namespace {

using config::tree;

/// The file as lines, each with its line break.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto length = end == std::string_view::npos ? text.size() : end + 1;
    lines.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  if (!lines.empty() && lines.back().back() != '\n')
    lines.back() += '\n';
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line;
  return text;
}

std::size_t indent_of(const std::string& line) {
  return line.find_first_not_of(' ');
}

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\n") == std::string::npos;
}

bool is_comment(const std::string& line) {
  const auto at = indent_of(line);
  return at != std::string::npos && line[at] == '#';
}

/// The lines of one item of a list in block style, and where its dash stands.
struct item_lines {
  std::size_t begin = 0;
  std::size_t end = 0; ///< behind the last one that is not blank
  std::size_t dash = 0;
};

std::optional<item_lines> find_item(const std::vector<std::string>& lines, const tree& item) {
  const auto begin = static_cast<std::size_t>(item.at.line) - 1;
  if (item.at.line < 1 || begin >= lines.size())
    return std::nullopt;
  const auto dash = indent_of(lines[begin]);
  if (dash == std::string::npos || lines[begin][dash] != '-' ||
      static_cast<std::size_t>(item.at.column) <= dash + 1)
    return std::nullopt;
  item_lines found{begin, begin + 1, dash};
  for (auto i = begin + 1; i < lines.size(); ++i) {
    if (is_blank(lines[i]))
      continue;
    const bool is_outside = indent_of(lines[i]) <= dash;
    if (is_outside && is_comment(lines[i]))
      continue; // inside of an item a comment may stand at any column
    if (is_outside)
      break;
    found.end = i + 1;
  }
  return found;
}

/// The agent as an item in block style, its dash at `indent`.
std::vector<std::string> block_of(const agent_text& agent, std::size_t indent) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : agent.keys) {
    const auto begin = std::string(indent, ' ') + (lines.empty() ? "- " : "  ") + key + ":";
    if (value.find('\n') == std::string::npos) {
      lines.push_back(begin + " " + value + "\n");
      continue;
    }
    lines.push_back(begin + " |\n");
    for (const auto& line : lines_of(value))
      lines.push_back((line == "\n" ? "" : std::string(indent + 4, ' ')) + line);
  }
  return lines;
}

/// The same on one line, for a list in brackets.
std::string flow_of(const agent_text& agent) {
  std::string text;
  for (const auto& [key, value] : agent.keys)
    text += (text.empty() ? "" : ", ") + key + ": " +
            (value.find('\n') == std::string::npos ? value : quoted_yaml(value));
  return "{" + text + "}";
}

tl::unexpected<error> by_hand(const std::string& path, const std::string& what) {
  return fail(errc::refused, "the file is written in a way that is not edited", path, what);
}

std::string advice(const agent_text& agent) {
  return "add these lines to its agents:\n" + joined(block_of(agent, 6));
}

/// The list of the kernel's agents; null when there is none.
const tree* agents_of(const tree& root, std::size_t kernel) {
  const auto* kernels = root.find("kernels");
  return kernels == nullptr || kernel >= kernels->items.size()
             ? nullptr
             : kernels->items[kernel].find("agents");
}

/// Where the column of that mark begins in its line; nothing when it is not there, or has not `c`.
std::optional<std::size_t> place_of(const std::vector<std::string>& lines, config::mark at,
                                    char c) {
  const auto line = static_cast<std::size_t>(at.line) - 1;
  const auto column = static_cast<std::size_t>(at.column) - 1;
  if (at.line < 1 || at.column < 1 || line >= lines.size() || column >= lines[line].size() ||
      lines[line][column] != c)
    return std::nullopt;
  return column;
}

void insert(std::vector<std::string>& lines, std::size_t before, std::vector<std::string> what) {
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(before), what.begin(), what.end());
}

/// `agents: []` becomes a list in block style.
bool fill_empty(std::vector<std::string>& lines, const tree& agents, const agent_text& agent) {
  const auto column = place_of(lines, agents.at, '[');
  auto& line = lines[static_cast<std::size_t>(agents.at.line) - 1];
  const auto key = indent_of(line);
  if (!column || line.find(']', *column) == std::string::npos)
    return false;
  const auto close = line.find(']', *column);
  if (!trim(std::string_view(line).substr(*column + 1, close - *column - 1)).empty())
    return false;
  if (trim(std::string_view(line).substr(key, *column - key)) != "agents:") {
    line.replace(*column, close - *column + 1, "[" + flow_of(agent) + "]");
    return true;
  }
  auto rest = line.substr(close + 1);
  line = line.substr(0, line.find_last_not_of(' ', *column - 1) + 1) + rest;
  insert(lines, static_cast<std::size_t>(agents.at.line), block_of(agent, key + 2));
  return true;
}

} // namespace

std::string quoted_yaml(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

result<std::string> with_agent(const std::string& path, std::string_view text, std::size_t kernel,
                               const agent_text& agent) {
  const auto parsed = adapters::parse_yaml(path, text);
  const auto* agents = parsed.value ? agents_of(*parsed.value, kernel) : nullptr;
  if (agents == nullptr || agents->kind != tree::kind_t::sequence)
    return by_hand(path, advice(agent));
  auto lines = lines_of(text);
  if (agents->items.empty())
    return fill_empty(lines, *agents, agent) ? result<std::string>(joined(lines))
                                             : by_hand(path, advice(agent));
  if (const auto bracket = place_of(lines, agents->at, '[')) {
    auto& line = lines[static_cast<std::size_t>(agents->at.line) - 1];
    line.insert(*bracket + 1, flow_of(agent) + ", ");
    return joined(lines);
  }
  const auto last = find_item(lines, agents->items.back());
  if (!last)
    return by_hand(path, advice(agent));
  auto block = block_of(agent, last->dash);
  if (last->begin > 0 && (is_blank(lines[last->begin - 1]) || is_comment(lines[last->begin - 1])))
    block.insert(block.begin(), "\n");
  insert(lines, last->end, std::move(block));
  return joined(lines);
}

result<std::string> without_agent(const std::string& path, std::string_view text,
                                  std::size_t kernel, std::size_t agent) {
  const auto parsed = adapters::parse_yaml(path, text);
  const auto* agents = parsed.value ? agents_of(*parsed.value, kernel) : nullptr;
  auto lines = lines_of(text);
  const auto found = agents == nullptr || agent >= agents->items.size()
                         ? std::nullopt
                         : find_item(lines, agents->items[agent]);
  if (!found || place_of(lines, agents->at, '['))
    return by_hand(path, "take the agent out of it by hand");
  auto begin = found->begin;
  while (begin > 0 && is_comment(lines[begin - 1]) && indent_of(lines[begin - 1]) == found->dash)
    --begin;
  auto end = found->end;
  // Of the blank lines around it one side stays.
  while (begin > 0 && is_blank(lines[begin - 1]) && end < lines.size() && is_blank(lines[end]))
    ++end;
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(begin),
              lines.begin() + static_cast<std::ptrdiff_t>(end));
  if (agents->items.size() > 1)
    return joined(lines);
  for (auto i = begin; i-- > 0;)
    if (const auto key = lines[i].find("agents:"); key != std::string::npos) {
      lines[i].insert(key + std::string_view("agents:").size(), " []");
      return joined(lines);
    }
  return by_hand(path, "take the agent out of it by hand");
}

} // namespace boyd::app
