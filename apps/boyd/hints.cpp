#include "hints.hpp"

#include "terminal.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace boyd::app {

namespace {

constexpr std::string_view program = "boyd ";

/// Written once, before threads begin.
struct command_place {
  std::string options; ///< "--home DIR ", or nothing
  std::set<std::string> verbs;
};

command_place& given() {
  static command_place place;
  return place;
}

bool is_part_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("/-_.").find(c) != std::string_view::npos;
}

/// Whether a command begins there, and no sentence about boyd.
bool is_command(std::string_view text, std::size_t at) {
  if (at > 0 && is_part_of_word(text[at - 1]))
    return false;
  const auto rest = text.substr(at + program.size());
  const auto end = std::ranges::find_if(rest, [](char c) { return !(c >= 'a' && c <= 'z'); });
  return given().verbs.contains(std::string(rest.begin(), end));
}

} // namespace

void choose_hints(const arguments& args, const std::function<std::set<std::string>()>& all_verbs) {
  auto& [options, verbs] = given();
  if (!args.home.empty())
    options += "--home " + shell_word(args.home) + " ";
  if (!args.config.empty())
    options += "--config " + shell_word(args.config) + " ";
  if (!options.empty())
    verbs = all_verbs();
}

std::string as_hint(std::string text) {
  const auto& options = given().options;
  if (options.empty())
    return text;
  for (auto at = text.find(program); at != text.npos; at = text.find(program, at + 1))
    if (is_command(text, at)) {
      text.insert(at + program.size(), options);
      at += options.size();
    }
  return text;
}

} // namespace boyd::app
