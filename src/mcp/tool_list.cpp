#include "tool_list.hpp"

#include "boyd/config/secret_shapes.hpp"
#include "boyd/core/text.hpp"
#include "boyd/mcp/headers.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::mcp {

namespace {

/// Of a tool's own name. The protocol asks for 128 at most.
constexpr std::size_t name_bytes = 512;
constexpr std::size_t description_bytes = 64u << 10;
/// The goal changes by write_file alone: a tool of this name would be taken for another way.
constexpr std::string_view forbidden_name = "kernel_goal";

/// Why a tool cannot be offered; empty: it can.
std::string problem_of(const json& t, const std::string& name) {
  if (name.empty() || name.size() > name_bytes)
    return "its name is missing or too long";
  if (name == forbidden_name)
    return "this name is reserved: agents change GOAL.md with write_file";
  // Names go where nothing may be taken out of them: calls, requests for approvals, the trust file.
  if (config::redact_shapes(name) != name)
    return "its name looks like a secret";
  const auto& schema = member(t, "inputSchema");
  if (!schema.is_object())
    return "its inputSchema is not an object";
  const auto& type = member(schema, "type");
  if (!type.is_null() && type != "object")
    return "its arguments are not an object";
  return {};
}

} // namespace

std::optional<std::string> read_tools(const json& page, bool http, std::vector<server_tool>& tools,
                                      const std::function<void(const std::string&)>& left_out) {
  const auto& list = member(page, "tools");
  for (std::size_t i = 0; list.is_array() && i < list.size(); ++i) {
    const auto& t = list[i];
    server_tool tool;
    tool.name = text_in(t, "name");
    auto problem = problem_of(t, tool.name);
    if (problem.empty() && std::ranges::find(tools, tool.name, &server_tool::name) != tools.end())
      problem = "another tool has the same name";
    if (problem.empty()) {
      auto schema = t.at("inputSchema");
      if (!schema.contains("type"))
        schema["type"] = "object";
      tool.schema_json = dump(schema);
      if (http) {
        if (auto marks = read_param_headers(tool.schema_json))
          tool.headers = std::move(*marks);
        else
          problem = marks.error().what;
      }
    }
    if (!problem.empty()) {
      left_out("the tool " + std::string(cut_characters(tool.name, 100)) +
               " is ignored: " + problem);
      continue;
    }
    tool.description = text_in(t, "description");
    if (tool.description.empty())
      tool.description = text_in(t, "title");
    if (tool.description.size() > description_bytes)
      tool.description.resize(description_bytes);
    tool.description = sanitize_utf8(tool.description);
    tools.push_back(std::move(tool));
  }
  const auto& next = member(page, "nextCursor");
  return next.is_string() ? std::optional(next.get<std::string>()) : std::nullopt;
}

} // namespace boyd::mcp
