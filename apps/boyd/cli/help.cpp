#include "help.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

namespace boyd::app {

namespace {

/// Verbs of the root; those that are in no group are in the last one.
struct verb_group {
  const char* title;
  std::vector<std::string> verbs;
};

const std::array<verb_group, 5>& groups() {
  static const std::array<verb_group, 5> all{
      {{"First steps", {"init", "run", "cycle", "node", "stop", "doctor"}},
       {"Every day",
        {"status", "agents", "logs", "next", "dispatches", "approvals", "patches", "cost", "pause",
         "resume"}},
       {"What happened, and why", {"why", "explain", "plan", "state", "replay"}},
       {"Settings and data", {"config", "reload", "tools", "backup", "restore", "store"}},
       {"Memory, knowledge and skills", {"memory", "context", "skills", "kg", "graph"}}}};
  return all;
}

constexpr const char* last_group = "Advanced";
/// Columns of a verb's name.
constexpr std::size_t name_columns = 12;

/// Its first sentence, without the default command.
std::string brief_of(const CLI::App& verb) {
  auto text = verb.get_description();
  if (const auto end = text.find(". "); end != text.npos)
    text.resize(end + 1);
  if (const auto begin = text.find(" (default command"); begin != text.npos)
    text.replace(begin, text.npos, ".");
  return text;
}

std::string line_of(const CLI::App& verb) {
  const auto name = verb.get_name();
  return "  " + name +
         std::string(name.size() < name_columns ? name_columns - name.size() : 1, ' ') + "  " +
         brief_of(verb) + "\n";
}

/// What a check of the option's value says behind its type: "UINT in [1 - 100]", "{a,b}".
std::string check_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto colon = type.find(':');
  return colon == type.npos ? std::string() : type.substr(colon + 1);
}

/// "1 to 100" of "UINT in [1 - 100]"; else empty.
std::string range_in(const std::string& check) {
  constexpr std::string_view before = " in [";
  const auto begin = check.find(before);
  const auto end = check.find(']', begin == check.npos ? 0 : begin);
  if (begin == check.npos || end == check.npos)
    return {};
  auto range = check.substr(begin + before.size(), end - begin - before.size());
  if (const auto dash = range.find(" - "); dash != range.npos)
    range.replace(dash, 3, " to ");
  return range;
}

/// "a|b" of "{a,b}"; else empty.
std::string choices_in(const std::string& check) {
  if (check.size() < 2 || check.front() != '{' || check.back() != '}')
    return {};
  auto choices = check.substr(1, check.size() - 2);
  std::ranges::replace(choices, ',', '|');
  return choices;
}

} // namespace

help_formatter::help_formatter() {
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "COMMAND");
}

std::string help_formatter::make_footer(const CLI::App* app) const {
  const auto it = common.find(app);
  auto lines =
      it == common.end() || it->second.empty()
          ? std::string()
          : "Global options (before or after the command; more: boyd --help):\n" + it->second;
  const auto own = CLI::Formatter::make_footer(app);
  if (app->get_parent() == nullptr)
    return "Help on a command: boyd COMMAND --help\n" + own;
  if (!lines.empty() && !own.empty())
    lines += "\n";
  return lines + own;
}

std::string help_formatter::make_description(const CLI::App* app) const {
  std::string text;
  if (const auto it = examples.find(app); it != examples.end())
    text += "Example:\n  " + it->second + "\n\n";
  return text + app->get_description() + "\n";
}

std::string help_formatter::make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const {
  if (app->get_parent() != nullptr || mode == CLI::AppFormatMode::All)
    return CLI::Formatter::make_subcommands(app, mode);
  std::string text;
  std::set<std::string> told;
  for (const auto& group : groups()) {
    text += "\n" + std::string(group.title) + ":\n";
    for (const auto& name : group.verbs) {
      text += line_of(*app->get_subcommand(name));
      told.insert(name);
    }
  }
  text += "\n" + std::string(last_group) + ":\n";
  for (const auto* verb :
       app->get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); }))
    if (!told.contains(verb->get_name()))
      text += line_of(*verb);
  return text;
}

/// Of options, one of which may be given; no verb of ours is expanded.
std::string help_formatter::make_expanded(const CLI::App* group) const {
  const auto options = group->get_options([](const CLI::Option* o) { return o->nonpositional(); });
  return make_group("At most one of", false, options);
}

std::string help_formatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  auto name = CLI::Formatter::make_option_name(option, is_positional);
  // What the parser makes of a flag: "--no-kg{false}".
  for (auto open = name.find('{'); open != name.npos; open = name.find('{')) {
    const auto close = name.find('}', open);
    name.erase(open, close == name.npos ? name.npos : close - open + 1);
  }
  return name;
}

std::string help_formatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0)
    return {};
  const auto type = option->get_type_name();
  const auto choices = choices_in(check_of(*option));
  return " " + (choices.empty() ? type.substr(0, type.find(':')) : choices) +
         (option->get_expected_max() >= CLI::detail::expected_max_vector_size ? " ..." : "");
}

std::string help_formatter::make_option_desc(const CLI::Option* option) const {
  auto text = option->get_description();
  if (const auto range = range_in(check_of(*option)); !range.empty()) {
    // Before "(default: 5)".
    const auto end = text.ends_with(')') ? text.rfind(" (") : text.npos;
    text.insert(end == text.npos ? text.size() : end, ", " + range);
  }
  std::string others;
  for (const auto* other : option->get_excludes())
    if (!other->get_group().empty())
      others += (others.empty() ? "; not with " : ", ") + other->get_name();
  return text + others;
}

} // namespace boyd::app
