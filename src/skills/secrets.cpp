#include "boyd/config/redact.hpp"
#include "boyd/core/text.hpp"
#include "boyd/skills/document.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Secrets in a text that somebody wants to approve. A false alarm costs a placeholder here, so
/// more is found than is taken out of texts elsewhere (config::redact_text).
namespace boyd::skills {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_findings = 100;
constexpr std::size_t shortest_value = 8;
/// Of a value without a digit, and of a token behind "Bearer".
constexpr std::size_t shortest_without_digit = 16;
constexpr std::size_t shortest_bearer = 20;

constexpr std::array secret_words{
    "password"sv,  "passwd"sv,      "passphrase"sv,  "secret"sv,     "token"sv,      "credential"sv,
    "apikey"sv,    "api_key"sv,     "api-key"sv,     "accesskey"sv,  "access_key"sv, "access-key"sv,
    "secretkey"sv, "private_key"sv, "private-key"sv, "privatekey"sv, "auth_key"sv,   "auth-key"sv};
/// What such a name ends with when it says where the secret is, not what it is.
constexpr std::array places{"_file"sv, "-file"sv, "_path"sv, "-path"sv, "_dir"sv,
                            "-dir"sv,  "_url"sv,  "-url"sv,  "_uri"sv,  "-uri"sv,
                            "_env"sv,  "-env"sv,  "_name"sv, "-name"sv};
constexpr std::array placeholder_begins{"your"sv,    "example"sv, "placeholder"sv, "changeme"sv,
                                        "change-"sv, "change_"sv, "redacted"sv,    "xxx"sv};

bool is_small(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_big(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name(char c) {
  return is_small(c) || is_big(c) || is_digit(c) || c == '_' || c == '-' || c == '.';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

bool is_one_of(char c, std::string_view some) {
  return some.find(c) != some.npos;
}

std::string small(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return is_big(c) ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// "DB_PASSWORD" and "apiToken", not "tokenizer" or "password_file".
bool names_secret(std::string_view given) {
  const auto name = small(given);
  if (std::ranges::any_of(places, [&](auto end) { return name.ends_with(end); }))
    return false;
  return std::ranges::any_of(secret_words, [&](auto word) {
    const auto at = name.rfind(word);
    return at != name.npos &&
           (at + word.size() == name.size() || !is_small(name[at + word.size()]));
  });
}

/// `$PASSWORD`, `<password>`, `{{ password }}`, `%PASSWORD%`, `xxxxxxxx`, `your-password`.
bool is_placeholder(std::string_view value) {
  if (value.empty() || is_one_of(value.front(), "$<{[%*"))
    return true;
  if (value.find("${") != value.npos || value.find("$(") != value.npos)
    return true;
  if (value.find_first_not_of(value.front()) == value.npos)
    return true;
  const auto text = small(value);
  return std::ranges::any_of(placeholder_begins,
                             [&](auto begin) { return text.starts_with(begin); });
}

/// An address, a path, or an expression that fetches the value from elsewhere.
bool stands_elsewhere(std::string_view value) {
  return value.find("://") != value.npos || value.starts_with("/") || value.starts_with("./") ||
         value.starts_with("~/") || value.find_first_of("([") != value.npos ||
         value.find("env.") != value.npos || value.starts_with("secrets.");
}

bool looks_secret(std::string_view value) {
  if (value.size() < shortest_value || is_placeholder(value) || stands_elsewhere(value))
    return false;
  const bool digits = std::ranges::any_of(value, is_digit);
  const bool smalls = std::ranges::any_of(value, is_small);
  const bool bigs = std::ranges::any_of(value, is_big);
  return digits ? smalls || bigs : smalls && bigs && value.size() >= shortest_without_digit;
}

/// The word that begins here, without what quotes it.
std::string_view value_at(std::string_view rest) {
  while (!rest.empty() && (is_blank(rest.front()) || is_one_of(rest.front(), "=:\"'`")))
    rest.remove_prefix(1);
  // Bold print, and an arrow.
  if (rest.starts_with("** ") || rest.starts_with("> "))
    return value_at(rest.substr(rest.find(' ')));
  return rest.substr(0, rest.find_first_of(" \t\r\"'`,;)"));
}

/// The name that ends here, without what quotes it; "--password", too.
std::string_view name_before(std::string_view text) {
  while (!text.empty() && (is_blank(text.back()) || is_one_of(text.back(), ":\"'`*]")))
    text.remove_suffix(1);
  auto begin = text.size();
  while (begin > 0 && is_name(text[begin - 1]))
    --begin;
  return text.substr(begin);
}

/// `password = hunter2`, `"token": "…"`, `--api-key …`: the name; empty: there is none.
std::string_view named_secret(std::string_view line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool parts = line[at] == '=' || line[at] == ':' || is_blank(line[at]);
    if (!parts || at == 0)
      continue;
    const auto name = name_before(line.substr(0, at));
    // A blank parts a name from its value behind an option only.
    if (is_blank(line[at]) && (!name.starts_with("--") || !is_name(line[at - 1])))
      continue;
    if (names_secret(name) && looks_secret(value_at(line.substr(at + 1))))
      return name;
  }
  return {};
}

bool has_bearer(std::string_view line) {
  constexpr auto scheme = "bearer "sv;
  const auto text = small(line);
  for (auto at = text.find(scheme); at != text.npos; at = text.find(scheme, at + 1)) {
    const auto value = value_at(line.substr(at + scheme.size()));
    if (value.size() >= shortest_bearer && !is_placeholder(value) && !stands_elsewhere(value))
      return true;
  }
  return false;
}

bool begins_private_key(std::string_view line) {
  const auto at = line.find("-----BEGIN ");
  return at != line.npos && line.find("PRIVATE KEY", at) != line.npos;
}

std::string placeholder_for(std::string_view name) {
  return "write a placeholder, such as $" + std::string(name) + " or <" + small(name) +
         ">, and change the secret if it is one";
}

finding finding_of(int number, std::string_view line) {
  if (begins_private_key(line))
    return {number, "what looks like a secret (a private key)",
            "take it out, or write <private key>, and change the key if it is one"};
  if (has_bearer(line))
    return {number, "what looks like a secret (behind Bearer)", placeholder_for("TOKEN")};
  if (!named_secret(line).empty())
    return {number, "what looks like a secret (a value with such a name)",
            placeholder_for("PASSWORD")};
  return {};
}

} // namespace

std::vector<finding> secrets_in(std::string_view text, const std::vector<std::string>& secrets) {
  const auto shown = config::redact_text(std::string(text), secrets);
  const auto lines = split(text, '\n');
  const auto shown_lines = split(shown, '\n');
  const bool is_long = lines.size() != shown_lines.size();
  // Behind a secret of several lines they do not stand beside each other.
  bool beside = true;
  std::vector<finding> found;
  for (std::size_t i = 0; i < lines.size() && found.size() < most_findings; ++i) {
    const auto number = static_cast<int>(i) + 1;
    const bool is_taken = beside && (i >= shown_lines.size() || lines[i] != shown_lines[i]);
    if (auto named = finding_of(number, lines[i]); named.line != 0)
      found.push_back(std::move(named));
    else if (is_taken)
      found.push_back({number,
                       is_long ? "what looks like a secret of several lines begins here"
                               : "what looks like a secret",
                       "take it out, and change it if it is one"});
    if (is_taken && is_long)
      beside = false;
  }
  return found;
}

std::string lines_of(const std::vector<finding>& found) {
  constexpr std::size_t most_lines = 5;
  std::string all = found.size() == 1 ? "line " : "lines ";
  for (std::size_t i = 0; i < std::min(found.size(), most_lines); ++i)
    all += (i == 0 ? "" : ", ") + std::to_string(found[i].line);
  return found.size() <= most_lines
             ? all
             : all + " and " + std::to_string(found.size() - most_lines) + " more";
}

} // namespace boyd::skills
