#include "boyd/state/runtime_block.hpp"

#include "block_scan.hpp"
#include "boyd/core/text.hpp"
#include "escape.hpp"
#include "grammar.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <utility>

namespace boyd::state {

namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr std::string_view agents_separator = " | ";
constexpr std::string_view cell_agents_separator = "; ";
/// What would end an agent's id or status in a summary.
constexpr std::string_view id_separators = "[]:;,";

std::string render_agents(const std::vector<agent_result>& agents) {
  std::string line;
  for (const auto& agent : agents) {
    line += line.empty() ? "" : agents_separator;
    line += escape_value(agent.agent_id, id_separators, unlimited);
    line += "[" + escape_value(agent.status, id_separators, unlimited) + "]: ";
    line += escape_value(agent.summary, "", limits::summary_characters);
  }
  return line.empty() ? std::string(grammar::none) : line;
}

std::string render_failed(const std::vector<std::string>& agents) {
  std::string line;
  for (const auto& agent : agents) {
    line += line.empty() ? "" : ", ";
    line += escape_value(agent, id_separators, unlimited);
  }
  return line.empty() ? std::string(grammar::none) : line;
}

std::string render_agents_cell(const std::vector<agent_result>& agents) {
  std::string cell;
  for (const auto& agent : agents) {
    cell += cell.empty() ? "" : cell_agents_separator;
    cell += escape_value(agent.agent_id, id_separators, unlimited) + ": ";
    cell += escape_value(agent.summary, ";", unlimited);
    if (cell.size() > limits::history_cell_characters * 8) {
      break; // what follows is cut anyway: four bytes a character, and escapes
    }
  }
  return cell.empty() ? std::string(grammar::none)
                      : std::string(cut_escaped(cell, limits::history_cell_characters));
}

std::string render_row(const cycle_record& cycle) {
  const auto number = [](int n) { return std::to_string(n); };
  std::string row = "| ";
  row += escape_value(cycle.cycle_id, "", limits::history_cell_characters);
  row += " | " + std::string(name_of(cycle.status));
  row += " | " + number(cycle.dispatched) + " | " + number(cycle.succeeded);
  row += " | " + number(cycle.failed) + " | " + render_agents_cell(cycle.agents) + " | ";
  row += cycle.finished_at ? format_rfc3339(*cycle.finished_at) : std::string(grammar::none);
  return row + " |\n";
}

template <class Number>
Number number_from(std::string_view text) {
  Number value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? value : Number{0};
}

/// One part of `latest_agent_summary`: "id[status]: summary".
agent_result agent_from(std::string_view part) {
  const auto open = find_unescaped(part, "[");
  const auto close = find_unescaped(part, "]:");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return {"", "", unescape_value(part)};
  }
  return {unescape_value(part.substr(0, open)),
          unescape_value(part.substr(open + 1, close - open - 1)),
          unescape_value(trim(part.substr(close + 2)))};
}

/// One part of a summary cell: "id: summary".
agent_result agent_from_cell(std::string_view part) {
  const auto colon = find_unescaped(part, ":");
  if (colon == std::string_view::npos) {
    return {"", "", unescape_value(part)};
  }
  return {unescape_value(part.substr(0, colon)), "", unescape_value(trim(part.substr(colon + 1)))};
}

std::vector<agent_result> agents_from(std::string_view text, std::string_view separator,
                                      agent_result (*read)(std::string_view)) {
  std::vector<agent_result> agents;
  if (text.empty() || text == grammar::none) {
    return agents;
  }
  for (const auto part : split_unescaped(text, separator)) {
    agents.push_back(read(trim(part)));
  }
  return agents;
}

std::vector<std::string> failed_from(std::string_view text) {
  std::vector<std::string> failed;
  if (text.empty() || text == grammar::none) {
    return failed;
  }
  for (const auto part : split_unescaped(text, ",")) {
    failed.push_back(unescape_value(trim(part)));
  }
  return failed;
}

void set_latest(cycle_record& latest, std::string_view key, std::string_view value) {
  if (key == "cycle_id") {
    latest.cycle_id = unescape_value(value);
  } else if (key == "status") {
    latest.status = cycle_status_from(value).value_or(cycle_status::running);
  } else if (key == "dispatched") {
    latest.dispatched = number_from<int>(value);
  } else if (key == "succeeded") {
    latest.succeeded = number_from<int>(value);
  } else if (key == "failed") {
    latest.failed = number_from<int>(value);
  } else if (key == "failed_agents") {
    latest.failed_agents = failed_from(value);
  } else if (key == "agent_summary") {
    latest.agents = agents_from(value, agents_separator, agent_from);
  } else if (key == "duration_ms") {
    latest.duration_ms = number_from<std::int64_t>(value);
  } else if (key == "error") {
    latest.error = unescape_value(value);
  }
}

std::optional<cycle_record> row_from(std::string_view line) {
  const auto cells = table_cells(line);
  if (cells.size() != grammar::history_columns) {
    return std::nullopt;
  }
  const auto status = cycle_status_from(cells[1]);
  if (!status) {
    return std::nullopt;
  }
  cycle_record cycle;
  cycle.cycle_id = unescape_value(cells[0]);
  cycle.status = *status;
  cycle.dispatched = number_from<int>(cells[2]);
  cycle.succeeded = number_from<int>(cells[3]);
  cycle.failed = number_from<int>(cells[4]);
  cycle.agents = agents_from(cells[5], cell_agents_separator, agent_from_cell);
  if (auto at = parse_rfc3339(cells[6])) {
    cycle.finished_at = *at;
  }
  return cycle;
}

/// The line under a table's header, also as an editor may have aligned it.
bool is_table_rule(std::string_view line) {
  return line.starts_with("|") && line.find_first_not_of("|-: ") == std::string_view::npos;
}

/// Reads the lines between one pair of markers.
runtime_block parse_inside(std::string_view inside) {
  runtime_block block;
  bool has_new_keys = false;
  bool in_history = false;
  bool in_table = false; // after the rule under the header
  for (const auto& raw : split(inside, '\n')) {
    const auto line = without_trailing_blanks(raw);
    if (line == grammar::history_heading) {
      in_history = true;
    } else if (in_history && !in_table && is_table_rule(line)) {
      in_table = true;
    } else if (in_table && line.starts_with("|")) {
      if (auto cycle = row_from(line)) {
        block.history.push_back(std::move(*cycle));
      }
    } else if (const auto bullet = grammar::bullet_of(line)) {
      auto key = bullet->key;
      if (key == grammar::updated_at_key) {
        block.updated_at = parse_rfc3339(bullet->value).value_or(utc_time{});
        continue;
      }
      if (key.starts_with(grammar::latest_prefix)) {
        has_new_keys = true;
        key.remove_prefix(grammar::latest_prefix.size());
      }
      set_latest(block.latest, key, bullet->value);
    }
  }
  if (!has_new_keys) {
    block.history.clear();
  }
  return block;
}

utc_time whole_seconds(utc_time t) {
  return std::chrono::floor<seconds>(t);
}

} // namespace

std::string render_runtime_block(const runtime_block& block, std::size_t max_history) {
  const auto& latest = block.latest;
  std::string text = std::string(block_start) + "\n" + std::string(grammar::heading) + "\n";
  text += "- " + std::string(grammar::updated_at_key) + ": " + format_rfc3339(block.updated_at);
  const std::array<std::string, grammar::latest_keys.size()> values = {
      escape_value(latest.cycle_id, "", limits::history_cell_characters),
      std::string(name_of(latest.status)),
      std::to_string(latest.dispatched),
      std::to_string(latest.succeeded),
      std::to_string(latest.failed),
      render_failed(latest.failed_agents),
      render_agents(latest.agents),
      std::to_string(latest.duration_ms),
      escape_value(latest.error, "", error_characters)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += "\n- " + std::string(grammar::latest_prefix) + std::string(grammar::latest_keys[i]) +
            ": " + values[i];
  }
  text += "\n\n" + std::string(grammar::history_heading) + "\n";
  text += std::string(grammar::history_header) + "\n" + std::string(grammar::history_rule) + "\n";
  for (std::size_t i = 0; i < std::min(max_history, block.history.size()); ++i) {
    text += render_row(block.history[i]);
  }
  return text + std::string(block_end) + "\n";
}

std::optional<runtime_block> parse_runtime_block(std::string_view file_text) {
  std::optional<runtime_block> newest;
  for (const auto& found : find_regions(file_text, split_lines(file_text))) {
    if (found.kind != region_kind::closed_block) {
      continue;
    }
    auto block = parse_inside(file_text.substr(found.begin, found.end - found.begin));
    if (!newest || block.updated_at > newest->updated_at) {
      newest = std::move(block);
    }
  }
  return newest;
}

runtime_block carried_part(const runtime_block& block, std::size_t max_history) {
  runtime_block carried;
  carried.updated_at = whole_seconds(block.updated_at);
  const auto& from = block.latest;
  auto& to = carried.latest;
  to.cycle_id = from.cycle_id;
  to.status = from.status;
  to.dispatched = from.dispatched;
  to.succeeded = from.succeeded;
  to.failed = from.failed;
  to.failed_agents = from.failed_agents;
  to.agents = from.agents;
  to.duration_ms = from.duration_ms;
  to.error = from.error;
  for (std::size_t i = 0; i < std::min(max_history, block.history.size()); ++i) {
    const auto& row = block.history[i];
    cycle_record kept;
    kept.cycle_id = row.cycle_id;
    kept.status = row.status;
    kept.dispatched = row.dispatched;
    kept.succeeded = row.succeeded;
    kept.failed = row.failed;
    for (const auto& agent : row.agents) {
      kept.agents.push_back({agent.agent_id, "", agent.summary});
    }
    if (row.finished_at) {
      kept.finished_at = whole_seconds(*row.finished_at);
    }
    carried.history.push_back(std::move(kept));
  }
  return carried;
}

} // namespace boyd::state
