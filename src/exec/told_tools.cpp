#include "boyd/exec/told_tools.hpp"

#include "../core/json_values.hpp"
#include "boyd/context/item.hpp"
#include "boyd/context/reference.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace boyd::exec {

namespace {

/// Words of a command that are looked at.
constexpr std::size_t command_words = 200;

std::string call_of(const told_tool& tool) {
  auto arguments = nlohmann::json::object();
  if (tool.paths.size() == 1)
    arguments["path"] = tool.paths.front();
  else if (!tool.paths.empty())
    arguments["paths"] = tool.paths;
  if (!tool.command.empty())
    arguments["command"] = tool.command;
  if (!tool.url.empty())
    arguments["url"] = tool.url;
  return tool.name + " " + dump(arguments);
}

bool is_address(std::string_view word) {
  return word.find("://") != word.npos;
}

std::string whole_path(const std::string& path, const std::string& directory) {
  const auto whole = path.starts_with('/') ? path : directory + "/" + path;
  auto plain = std::filesystem::path(whole).lexically_normal().string();
  while (plain.size() > 1 && plain.ends_with('/'))
    plain.pop_back();
  return plain;
}

/// How an answer may name a file: as items are named, else as the program does, and by its whole
/// path.
std::vector<std::string> names_of(const std::string& path, const tool_places& where) {
  if (is_address(path))
    return {path};
  const auto whole = whole_path(path, where.directory);
  auto name = path_below(where.root, whole);
  if (name == whole)
    name = path_below(where.directory, whole);
  return {name, whole};
}

/// The script of `sh -c SCRIPT`, else the line itself.
std::string script_of(const std::string& line) {
  constexpr std::size_t shell_words = 3;
  const auto words = context::words_of_command(line);
  const bool is_shell = words && words->size() == shell_words && (*words)[0].ends_with("sh") &&
                        (*words)[1].starts_with('-') && (*words)[1].ends_with('c');
  return is_shell ? words->back() : line;
}

/// The words of a script without options, quotes and what else means something to a shell.
std::vector<std::string> script_words(std::string_view script) {
  constexpr std::string_view between = " \t\r\n'\"`|&;<>(){}[]$=,\\*?#";
  std::vector<std::string> words;
  for (std::size_t at = 0; at < script.size() && words.size() < command_words;) {
    const auto end = std::min(script.find_first_of(between, at), script.size());
    const auto word = script.substr(at, end - at);
    if (!word.empty() && !word.starts_with('-'))
      words.emplace_back(word);
    at = end + 1;
  }
  return words;
}

bool looks_like_path(std::string_view word) {
  return word.find_first_of("./") != word.npos &&
         word.find_first_not_of("0123456789./:-") != word.npos && !word.starts_with("/dev/");
}

class use_reader {
 public:
  use_reader(const told_tool& tool, const tool_places& where) : tool_(tool), where_(where) {
    out_.call = call_of(tool);
  }

  tool_reading take() {
    if (tool_.failed)
      return std::move(out_);
    if (tool_.paths.size() == 1) {
      touch(tool_.paths.front());
      cite(out_.call, names_of(tool_.paths.front(), where_), tool_.result);
    } else if (!tool_.paths.empty()) {
      for (const auto& path : tool_.paths)
        name_file(path);
    } else if (!tool_.command.empty()) {
      take_command();
    } else {
      cite(out_.call, {tool_.url.empty() ? tool_.name : tool_.url}, {});
    }
    return std::move(out_);
  }

 private:
  void take_command() {
    const auto script = script_of(tool_.command);
    cite(out_.call, {tool_.command, script}, {});
    for (const auto& word : script_words(script)) {
      if (looks_like_path(word))
        name_file(word);
      else
        touch(word); // Makefile
    }
  }

  void touch(const std::string& path) {
    if (!is_address(path))
      out_.paths.push_back(path_below(where_.root, whole_path(path, where_.directory)));
  }

  /// What several files say cannot be told apart: they can be cited, and are not compared.
  void name_file(const std::string& path) {
    touch(path);
    const auto names = names_of(path, where_);
    cite(out_.call + " " + names.front(), names, {});
  }

  /// All of them have the call as their path: none is an item that must be cited.
  void cite(const std::string& what, std::vector<std::string> names, std::string content) {
    auto id = context::item_id(where_.scope, context::item_type::runtime, what);
    out_.citables.push_back({{}, std::move(id), out_.call, std::move(content), std::move(names)});
  }

  const told_tool& tool_;
  const tool_places& where_;
  tool_reading out_;
};

} // namespace

std::string path_below(std::string_view root, const std::string& path) {
  if (root.empty())
    return path;
  while (root.ends_with('/'))
    root.remove_suffix(1);
  const auto prefix = std::string(root) + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

tool_reading reading_of(const told_tool& tool, const tool_places& where) {
  return use_reader(tool, where).take();
}

} // namespace boyd::exec
