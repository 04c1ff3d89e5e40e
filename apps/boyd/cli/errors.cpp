#include "errors.hpp"

#include "../terminal.hpp"
#include "boyd/core/text.hpp"

#include <CLI/App.hpp>

#include <algorithm>
#include <cctype>
#include <map>
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

/// Words that people try, and the command that does what they mean.
std::string meant_by(const std::string& word) {
  static const std::map<std::string, const char*> commands{
      {"add", "agents add NAME"},
      {"approve", "approvals approve ID"},
      {"cancel", "dispatches cancel ID"},
      {"create", "agents add NAME"},
      {"daemon", "node --background"},
      {"delete", "agents rm AGENT"},
      {"disable", "pause AGENT"},
      {"enable", "resume AGENT"},
      {"exec", "run AGENT"},
      {"history", "dispatches ls"},
      {"jobs", "dispatches ls"},
      {"kill", "dispatches cancel ID"},
      {"list", "agents ls"},
      {"log", "logs AGENT"},
      {"ls", "agents ls"},
      {"new", "agents add NAME"},
      {"output", "logs AGENT"},
      {"ps", "dispatches ls --status running"},
      {"queue", "dispatches ls"},
      {"reject", "approvals reject ID"},
      {"remove", "agents rm AGENT"},
      {"rerun", "dispatches retry ID"},
      {"restart", "stop, then: boyd node --background"},
      {"retry", "dispatches retry ID"},
      {"rm", "agents rm AGENT"},
      {"runs", "dispatches ls"},
      {"schedule", "next"},
      {"serve", "node"},
      {"show", "dispatches show ID"},
      {"shutdown", "stop"},
      {"start", "node --background"},
      {"tail", "logs AGENT --follow"},
      {"up", "node --background"},
      {"usage", "cost"},
      {"validate", "config validate"}};
  const auto it = commands.find(word);
  return it == commands.end() ? std::string() : it->second;
}

/// The same behind another verb: of those that it has.
std::string meant_by(const std::string& word, const std::vector<std::string>& verbs) {
  static const std::map<std::string, std::vector<const char*>> names{
      {"abort", {"cancel"}},
      {"cat", {"show"}},
      {"create", {"add"}},
      {"delete", {"rm", "discard"}},
      {"get", {"show"}},
      {"history", {"log", "ls"}},
      {"info", {"show"}},
      {"kill", {"cancel"}},
      {"list", {"ls"}},
      {"new", {"add"}},
      {"remove", {"rm", "discard"}},
      {"rerun", {"retry"}},
      {"search", {"recall", "query"}},
      {"stop", {"cancel"}},
      {"view", {"show"}}};
  if (const auto it = names.find(word); it != names.end())
    for (const auto* name : it->second)
      if (std::find(verbs.begin(), verbs.end(), name) != verbs.end())
        return name;
  return {};
}

/// Whether the family can show one of its things: it has a verb `show` that takes a name.
bool shows_one(const CLI::App& family) {
  const auto shows =
      family.get_subcommands([](const CLI::App* a) { return a->get_name() == "show"; });
  return !shows.empty() &&
         std::ranges::any_of(shows.front()->get_options(),
                             [](const CLI::Option* o) { return o->get_positional(); });
}

error unknown_verb(const std::string& word, const CLI::App& parent) {
  const auto names = verbs_of(parent);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const bool is_first = parent.get_parent() == nullptr;
  auto close = is_first ? meant_by(word) : meant_by(word, names);
  if (close.empty())
    close = nearest(word, candidates);
  if (close.empty() && !is_first && shows_one(parent))
    close = "show " + shell_word(word);
  if (parent.get_name() == "cost" && (word == "today" || word == "yesterday"))
    close = word == "today" ? "--from today" : "--from yesterday --to yesterday";
  else if (parent.get_name() == "cost" && close.empty())
    close = "--by agent"; // that is where one agent's are
  const auto prefix = is_first ? std::string("boyd ") : "boyd " + parent.get_name() + " ";
  std::string next =
      close.empty() ? prefix + "--help lists the commands" : "did you mean: " + prefix + close;
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

/// `boyd memory append` with one argument, which is most likely the text; nothing for other verbs.
std::optional<error> half_of_entry(const CLI::App& verb, const std::string& path) {
  if (verb.get_name() != "append")
    return std::nullopt;
  const auto given = verb.get_option("section")->results();
  return error{errc::invalid_argument,
               "two arguments are needed: SECTION and TEXT",
               {},
               path + " Facts " + (given.size() == 1 ? shell_word(given.front()) : "\"…\"")};
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
    const bool is_count = at->get_name() == "next" && extra.size() == 1 &&
                          extra.front().find_first_not_of("0123456789") == std::string::npos;
    return {errc::invalid_argument,
            std::move(words),
            {},
            is_count ? "did you mean -n " + extra.front() + "?" : "see: " + path + " --help"};
  }
  if (auto half = e.get_name() == "RequiredError" ? half_of_entry(*at, path) : std::nullopt)
    return std::move(*half);
  std::string what = e.what();
  if (what.size() > 1 && std::islower(static_cast<unsigned char>(what[1])) != 0)
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  return {errc::invalid_argument, std::move(what), {}, "see: " + path + " --help"};
}

} // namespace boyd::app
