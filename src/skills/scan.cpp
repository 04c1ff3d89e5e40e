#include "boyd/core/text.hpp"
#include "boyd/skills/document.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace boyd::skills {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t most_findings = 100;

/// Programs that fetch or decode, and what hands their output to an interpreter.
constexpr std::array fetchers{
    "curl "sv, "wget "sv,   "fetch "sv,   "iwr "sv,      "invoke-webrequest"sv,
    "irm "sv,  "http://"sv, "https://"sv, "base64 -d"sv, "base64 --decode"sv,
    "xxd -r"sv};
constexpr std::array interpreters{"sh"sv,     "bash"sv, "zsh"sv,  "dash"sv, "ksh"sv,
                                  "python"sv, "perl"sv, "ruby"sv, "node"sv, "sudo"sv,
                                  "iex"sv,    "php"sv,  "env"sv,  "eval"sv, "source"sv};
constexpr std::array substitutions{"<(curl"sv,     "<(wget"sv,     "$(curl"sv,  "$(wget"sv,
                                   "eval `curl"sv, "eval `wget"sv, "<( curl"sv, "$( curl"sv};
constexpr std::array installers{"pip install http"sv, "pip install git+"sv, "pip3 install http"sv,
                                "npm install http"sv, "npx http"sv,         "npx -y http"sv};

std::uint32_t code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  switch (text.size()) {
  case 2:
    return (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
  case 3:
    return (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
  case 4:
    return (byte(0) & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 |
           (byte(3) & 0x3FU);
  default:
    return byte(0);
  }
}

/// Characters that are not shown, or that show others in another order.
bool is_hidden(std::uint32_t c) {
  const auto within = [c](std::uint32_t from, std::uint32_t to) { return c >= from && c <= to; };
  return (c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7F || within(0x80, 0x9F) ||
         c == 0xAD || c == 0x61C || c == 0x180E || within(0x200B, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2060, 0x206F) || c == 0xFEFF || c == 0x3164 ||
         within(0xFFF9, 0xFFFB) || within(0xE0000, 0xE0FFF);
}

bool is_emoji(std::uint32_t c) {
  return c >= 0x1F000 || (c >= 0x2600 && c <= 0x27BF) || c == 0xFE0F;
}

/// What of a line is not shown; empty: all is.
std::string hidden_in(std::string_view line) {
  std::uint32_t before = 0;
  while (!line.empty()) {
    const auto size = utf8_length(line);
    if (size == 0)
      return "bytes that are no UTF-8";
    const auto c = code_point(line.substr(0, size));
    constexpr std::uint32_t joiner = 0x200D;
    if (is_hidden(c) && !(c == joiner && is_emoji(before))) {
      std::array<char, 16> name{};
      std::snprintf(name.data(), name.size(), "U+%04X", c);
      return "a character that is not shown (" + std::string(name.data()) + ")";
    }
    before = c;
    line.remove_prefix(size);
  }
  return {};
}

std::string small(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

bool holds_any(std::string_view text, const auto& parts) {
  return std::ranges::any_of(parts, [&](auto part) { return text.find(part) != text.npos; });
}

/// A word behind `|`, `&&` or `;` that runs what it is given.
bool hands_to_interpreter(std::string_view line, char separator) {
  for (auto at = line.find(separator); at != line.npos; at = line.find(separator, at + 1)) {
    auto rest = trim(line.substr(at + 1));
    rest = rest.substr(0, rest.find_first_of(" \t)`'\";|&"));
    rest = rest.substr(rest.rfind('/') + 1);
    if (std::ranges::any_of(interpreters, [&](auto i) {
          return rest == i || (i == "python"sv && rest.starts_with(i));
        }))
      return true;
  }
  return false;
}

bool fetches_and_runs(std::string_view given) {
  const auto line = small(given);
  // A row of a table.
  if (line.starts_with('|'))
    return false;
  if (holds_any(line, substitutions) || holds_any(line, installers))
    return true;
  return holds_any(line, fetchers) &&
         (hands_to_interpreter(line, '|') || line.find("chmod +x") != line.npos ||
          line.find("chmod 755") != line.npos);
}

} // namespace

std::vector<finding> scan_document(std::string_view text, const std::vector<std::string>& secrets) {
  auto found = secrets_in(text, secrets);
  const auto tell = [&](int line, std::string problem, std::string next) {
    if (found.size() < most_findings)
      found.push_back({line, std::move(problem), std::move(next), true});
  };
  std::string whole; ///< a command that goes on in the next line
  bool in_fence = false;
  int number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    // Some editors begin a file with a mark, which says nothing.
    const bool is_marked = number == 1 && line.starts_with("\xEF\xBB\xBF");
    if (auto hidden = hidden_in(line.substr(is_marked ? 3 : 0)); !hidden.empty())
      tell(number, std::move(hidden), "take it out: a person cannot see what it says");
    if (const auto mark = trim(line); mark.starts_with("```") || mark.starts_with("~~~"))
      in_fence = !in_fence;
    // In a fence it is shown as it stands.
    if (!in_fence && line.find("<!--") != line.npos)
      tell(number, "an HTML comment, which a rendered page does not show",
           "write it as text, or take it out");
    auto command = trim(line);
    const bool goes_on = command.ends_with('\\');
    if (goes_on)
      command.remove_suffix(1);
    whole.append(whole.empty() ? "" : " ").append(command);
    if (goes_on)
      continue;
    if (fetches_and_runs(whole))
      tell(number, "a command that fetches something and runs it",
           "name what is to be installed, or put it into a file that can be read");
    whole.clear();
  }
  std::ranges::stable_sort(found, {}, &finding::line);
  return found;
}

} // namespace boyd::skills
