#include "boyd/tools/call.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/tools/definitions.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace boyd::tools {

namespace {

using nlohmann::json;

/// The arguments of one call. The first thing that is wrong is kept; what is asked for after it has
/// its default value.
class arguments {
 public:
  arguments(std::string_view tool, json object) : tool_(tool), object_(std::move(object)) {}

  std::string text(const char* name, std::string otherwise, std::size_t most) {
    const json* value = find(name);
    if (value == nullptr)
      return otherwise;
    const auto* found = value->get_ptr<const json::string_t*>();
    if (found == nullptr)
      wrong(name, "a string", *value);
    else if (found->size() > most)
      wrong(name, "at most " + std::to_string(most) + " bytes", *value);
    return found != nullptr ? *found : otherwise;
  }

  std::string required_text(const char* name, std::size_t most) {
    if (const auto given = object_.find(name); given == object_.end() || given->is_null())
      complain(std::string(name) + " is missing");
    return text(name, {}, most);
  }

  std::uint64_t number(const char* name, std::uint64_t otherwise, std::uint64_t most) {
    const json* value = find(name);
    if (value == nullptr)
      return otherwise;
    std::uint64_t found = 0;
    if (const auto* n = value->get_ptr<const json::number_unsigned_t*>())
      found = *n;
    else if (const auto* f = value->get_ptr<const json::number_float_t*>();
             f != nullptr && *f >= 1 && *f <= static_cast<double>(most) && std::floor(*f) == *f)
      found = static_cast<std::uint64_t>(*f); // some models write 10.0
    if (found < 1 || found > most)
      wrong(name, "an integer from 1 to " + std::to_string(most), *value);
    return found;
  }

  bool flag(const char* name) {
    const json* value = find(name);
    if (value == nullptr)
      return false;
    if (!value->is_boolean())
      wrong(name, "true or false", *value);
    return *value == true;
  }

  std::vector<std::string> list(const char* name) {
    std::vector<std::string> found;
    const json* value = find(name);
    if (value == nullptr)
      return found;
    if (!value->is_array() || value->empty() || value->size() > command_arguments) {
      wrong(name, "an array of 1 to " + std::to_string(command_arguments) + " strings", *value);
      return found;
    }
    for (const auto& element : *value) {
      const auto* s = element.get_ptr<const json::string_t*>();
      if (s == nullptr) {
        wrong(name, "an array of strings", element);
        return {};
      }
      found.push_back(*s);
    }
    return found;
  }

  /// An argument that nobody asked for may have been meant to change everything (`append`).
  void no_others() {
    for (const auto& [name, value] : object_.items()) {
      if (std::ranges::find(known_, name) != known_.end())
        continue;
      std::string what = "unknown argument " + quoted(name) + "; arguments:";
      for (const auto k : known_)
        what.append(" ").append(k);
      complain(what);
      return;
    }
  }

  void complain(std::string_view what) {
    if (problem_.empty())
      problem_ = tool_ + ": " + std::string(what);
  }

  const std::string& problem() const { return problem_; }

 private:
  const json* find(const char* name) {
    known_.emplace_back(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void wrong(const char* name, const std::string& expected, const json& value) {
    complain(std::string(name) + " must be " + expected + ", not " + described(value));
  }

  static std::string quoted(const std::string& text) {
    constexpr std::size_t shown = 60;
    return '"' + sanitize_utf8(cut_characters(text, shown)) + '"';
  }

  static std::string described(const json& value) {
    if (const auto* s = value.get_ptr<const json::string_t*>())
      return s->size() > query_bytes ? "a string of " + std::to_string(s->size()) + " bytes"
                                     : "the string " + quoted(*s);
    if (value.is_number() || value.is_boolean())
      return value.dump();
    return std::string("an ") + value.type_name();
  }

  std::string tool_;
  json object_;
  std::vector<std::string_view> known_;
  std::string problem_;
};

read_file_call read_file(arguments& in) {
  read_file_call call;
  call.path = in.required_text("path", workspace_path_bytes);
  call.offset = in.number("offset", call.offset, most_number);
  call.limit = in.number("limit", call.limit, most_lines);
  call.byte_offset = in.number("byte_offset", 0, most_number);
  call.line_numbers = in.flag("line_numbers");
  return call;
}

write_file_call write_file(arguments& in) {
  write_file_call call;
  call.path = in.required_text("path", workspace_path_bytes);
  call.content = in.required_text("content", argument_bytes);
  return call;
}

search_text_call search_text(arguments& in) {
  search_text_call call;
  call.query = in.required_text("query", query_bytes);
  call.path = in.text("path", call.path, workspace_path_bytes);
  call.files = in.text("files", {}, pattern_bytes);
  call.ignore_case = in.flag("ignore_case");
  if (call.query.empty())
    in.complain("query is empty");
  return call;
}

run_command_call run_command(arguments& in) {
  run_command_call call;
  call.argv = in.list("argv");
  call.command = in.text("command", {}, command_bytes);
  call.cwd = in.text("cwd", call.cwd, workspace_path_bytes);
  call.timeout_seconds = in.number("timeout_seconds", call.timeout_seconds, most_command_seconds);
  if (call.argv.empty() == trim(call.command).empty())
    in.complain("use either argv or command");
  if (!call.argv.empty() && call.argv.front().empty())
    in.complain("the program in argv is empty");
  std::size_t size = 0;
  bool has_nul = call.command.find('\0') != std::string::npos;
  for (const auto& a : call.argv) {
    size += a.size() + 1;
    has_nul = has_nul || a.find('\0') != std::string::npos;
  }
  if (size > command_bytes)
    in.complain("argv is longer than " + std::to_string(command_bytes) + " bytes");
  if (has_nul)
    in.complain("a command cannot contain a NUL");
  return call;
}

remember_call remember(arguments& in) {
  remember_call call;
  call.section = in.required_text("section", section_bytes);
  call.text = in.required_text("text", entry_bytes);
  if (trim(call.section).empty())
    in.complain("section is empty");
  if (trim(call.text).empty())
    in.complain("text is empty");
  return call;
}

recall_call recall(arguments& in) {
  recall_call call;
  call.query = in.required_text("query", query_bytes);
  call.budget_tokens = in.number("budget_tokens", call.budget_tokens, most_recall_tokens);
  if (trim(call.query).empty())
    in.complain("query is empty");
  return call;
}

read_skill_call read_skill(arguments& in) {
  read_skill_call call;
  call.name = std::string(trim(in.required_text("name", skill_name_bytes)));
  if (call.name.empty())
    in.complain("name is empty");
  return call;
}

result<json> parse(std::string_view tool, std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return fail(errc::invalid_argument, std::string(tool) + ": the arguments " + why);
  };
  if (text.size() > argument_bytes)
    return bad("are longer than " + std::to_string(argument_bytes) + " bytes");
  if (trim(text).empty())
    return json::object();
  if (auto ok = check_json_depth(text); !ok)
    return bad("are nested too deeply");
  auto value = json::parse(text, nullptr, false);
  if (value.is_null())
    return json::object();
  if (!value.is_object())
    return bad("must be one JSON object, e.g. {\"path\": \"notes.md\"}");
  return value;
}

/// How models that call tools by text begin one (Hermes, Llama, Mistral, Qwen, DeepSeek, Claude).
constexpr std::array<std::string_view, 8> call_marks{
    "<tool_call>",  "<function=",  "<function_calls>", "<|python_tag|>",
    "[TOOL_CALLS]", "<|tool_call", "<invoke name=",    "<｜tool▁call"};

tl::unexpected<error> unknown(std::string_view tool) {
  std::string what =
      "unknown built-in tool \"" + sanitize_utf8(tool.substr(0, 64)) + "\"; built-in tools:";
  for (const auto& d : built_in())
    what += " " + d.name;
  return fail(errc::not_found, std::move(what));
}

template <class Call>
result<action> with_path(std::string_view tool, const Call& call, const std::string& workspace) {
  auto path = workspace_path(workspace, call.path);
  if (!path)
    return fail(std::move(path.error()));
  return action{std::string(tool), std::move(*path), {}, false, {}};
}

/// As a shell would have to be told it. Without quotes `x y` would read like two arguments, and a
/// pattern that means the program `x` would allow one that is called `x y`.
std::string one_word(const std::string& argument) {
  const bool plain = !argument.empty() && std::ranges::none_of(argument, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\'' || c == '"' || c == '\\';
  });
  if (plain)
    return argument;
  std::string quoted = "'";
  for (const char c : argument)
    quoted += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return quoted + "'";
}

struct as_action {
  const std::string& workspace;

  result<action> operator()(const file_call& call) const { return std::visit(*this, call); }
  result<action> operator()(const read_file_call& call) const {
    if (!call.path.starts_with(results_prefix))
      return with_path(read_file_name, call, workspace);
    auto inside = workspace_path("/", call.path.substr(results_prefix.size()));
    if (!inside)
      return fail(std::move(inside.error()));
    return action{
        std::string(read_file_name), std::string(results_prefix) + *inside, {}, false, {}};
  }
  result<action> operator()(const write_file_call& call) const {
    return with_path(write_file_name, call, workspace);
  }
  result<action> operator()(const list_dir_call& call) const {
    return with_path(list_dir_name, call, workspace);
  }
  result<action> operator()(const search_text_call& call) const {
    return with_path(search_text_name, call, workspace);
  }
  result<action> operator()(const remember_call&) const {
    return action{std::string(remember_name), {}, {}, false, {}};
  }
  result<action> operator()(const recall_call&) const {
    return action{std::string(recall_name), {}, {}, false, {}};
  }
  result<action> operator()(const read_skill_call&) const {
    return action{std::string(read_skill_name), {}, {}, false, {}};
  }
  result<action> operator()(const run_command_call& call) const {
    // The directory is checked and not part of the action: a rule about paths must not allow
    // commands.
    const auto cwd = workspace_path(workspace, call.cwd);
    if (!cwd)
      return fail(cwd.error());
    action a{std::string(run_command_name), {}, call.command, call.argv.empty(), {}};
    for (const auto& argument : call.argv)
      a.command.append(a.command.empty() ? "" : " ").append(one_word(argument));
    a.argv = call.argv;
    a.elsewhere = *cwd != ".";
    return a;
  }
};

} // namespace

bool looks_like_call(std::string_view text) {
  const auto marked = [&](std::string_view mark) {
    return text.find(mark) != std::string_view::npos;
  };
  if (std::ranges::any_of(call_marks, marked))
    return true;
  const auto found = find_json(text);
  if (!found)
    return false;
  auto value = json::parse(found->text);
  if (value.is_array() && !value.empty())
    value = value.front();
  const auto is_text = [&](const char* key) {
    return value.contains(key) && value[key].is_string();
  };
  return value.is_object() && (is_text("name") || is_text("tool")) &&
         (value.contains("arguments") || value.contains("parameters"));
}

result<tool_call> read_call(std::string_view tool, std::string_view arguments_json) {
  if (find_built_in(tool) == nullptr)
    return unknown(tool);
  auto object = parse(tool, arguments_json);
  if (!object)
    return fail(std::move(object.error()));
  arguments in(tool, std::move(*object));
  tool_call call;
  if (tool == read_file_name)
    call = file_call(read_file(in));
  else if (tool == write_file_name)
    call = file_call(write_file(in));
  else if (tool == list_dir_name)
    call = file_call(list_dir_call{in.text("path", ".", workspace_path_bytes)});
  else if (tool == search_text_name)
    call = file_call(search_text(in));
  else if (tool == remember_name)
    call = remember(in);
  else if (tool == recall_name)
    call = recall(in);
  else if (tool == read_skill_name)
    call = read_skill(in);
  else
    call = run_command(in);
  in.no_others();
  if (!in.problem().empty())
    return fail(errc::invalid_argument, in.problem());
  return call;
}

result<action> action_of(const tool_call& call, const std::string& workspace) {
  return std::visit(as_action{workspace}, call);
}

} // namespace boyd::tools
