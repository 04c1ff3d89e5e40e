#include "errors.hpp"

#include "boyd/core/text.hpp"

#include <CLI/App.hpp>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* s : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(s->get_name());
  return names;
}

error unknown_verb(const std::string& word, const CLI::App& parent) {
  const auto names = verbs_of(parent);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const auto close = nearest(word, candidates);
  const auto prefix =
      parent.get_parent() == nullptr ? std::string("boyd ") : "boyd " + parent.get_name() + " ";
  std::string next = close.empty() ? prefix + "--help lists the commands"
                                   : "did you mean: " + prefix + std::string(close);
  return {errc::invalid_argument, "no such command: " + word, {}, std::move(next)};
}

/// The option of `app`, or of the verbs above it, that was given more often than it may be.
const CLI::Option* given_too_often(const CLI::App* app) {
  for (; app != nullptr; app = app->get_parent())
    for (const auto* o : app->get_options())
      if (o->get_expected_max() == 1 && o->count() > 1)
        return o;
  return nullptr;
}

} // namespace

std::optional<error> check_verbs(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--")
      return std::nullopt;
    if (word.rfind('-', 0) == 0) {
      const auto* option =
          word.find('=') == std::string::npos ? at->get_option_no_throw(word) : nullptr;
      if (option == nullptr && at != &app && word.find('=') == std::string::npos)
        option = app.get_option_no_throw(word);
      if (option != nullptr && option->get_expected_max() > 0)
        ++i;
      continue;
    }
    const auto names = verbs_of(*at);
    if (names.empty())
      return std::nullopt;
    if (std::find(names.begin(), names.end(), word) == names.end())
      return unknown_verb(word, *at);
    at = at->get_subcommand(word);
  }
  return std::nullopt;
}

error usage_error(const CLI::App& app, const CLI::ParseError& e) {
  std::string path = "boyd";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  if (at == &app && e.get_name() == "RequiredError")
    return {errc::invalid_argument, "no command given", {}, "list the commands: boyd --help"};
  if (const auto* o = given_too_often(at); o != nullptr && e.get_name() == "ArgumentMismatch")
    return {errc::invalid_argument,
            o->get_name() + " is given " + std::to_string(o->count()) + " times",
            {},
            "give it once; see: " + path + " --help"};
  if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const auto extra = app.remaining(true);
    std::string words = extra.size() == 1 ? "unexpected argument:" : "unexpected arguments:";
    for (const auto& word : extra)
      words += " " + word;
    return {errc::invalid_argument, std::move(words), {}, "see: " + path + " --help"};
  }
  std::string what = e.what();
  if (what.size() > 1 && std::islower(static_cast<unsigned char>(what[1])) != 0)
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  return {errc::invalid_argument, std::move(what), {}, "see: " + path + " --help"};
}

} // namespace boyd::app
