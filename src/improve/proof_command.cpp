#include "proof_command.hpp"

#include "report_internal.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace boyd::improve {

namespace {

struct placeholder {
  std::string_view word;
  const char* variable;
  std::string value;
};
using placeholders = std::array<placeholder, 3>;

placeholders values_of(const finding& f) {
  return {{{"{test}", "BOYD_TEST", f.test},
           {"{path}", "BOYD_PATH", f.path},
           {"{rule}", "BOYD_RULE", f.rule}}};
}

bool has_placeholder(std::string_view text) {
  return std::ranges::any_of(values_of({}),
                             [&](const auto& p) { return text.find(p.word) != text.npos; });
}

std::string_view name_of_program(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 8> shells{"sh",  "bash", "dash", "ash",
                                                   "ksh", "mksh", "zsh",  "busybox"};
  return std::ranges::find(shells, name_of_program(program)) != shells.end();
}

bool is_interpreter(std::string_view program) {
  constexpr std::array<std::string_view, 8> names{"python", "perl", "ruby", "node",
                                                  "php",    "lua",  "awk",  "deno"};
  return std::ranges::any_of(names,
                             [&](auto name) { return name_of_program(program).starts_with(name); });
}

/// "-c", "-ec", "-e": the next word is code.
bool takes_code(std::string_view option) {
  return option.size() > 1 && option[0] == '-' && option[1] != '-' &&
         option.find_first_of("cer") != option.npos;
}

/// The program that takes argv[i] as code, by `is_one`; npos: none.
std::size_t reader_of(const std::vector<std::string>& argv, std::size_t i,
                      bool (*is_one)(std::string_view)) {
  if (i < 2 || !takes_code(argv[i - 1]))
    return std::string::npos;
  for (std::size_t program = i - 1; program-- > 0;)
    if (is_one(argv[program]))
      return program;
  return std::string::npos;
}

/// Regular expressions of CTest take these for themselves.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("^$.*+?()[]|\\").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

/// `text` with the values in their places.
std::string filled(std::string_view text, const placeholders& values) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto it = std::ranges::find_if(
        values, [&](const auto& p) { return text.substr(i).starts_with(p.word); });
    if (it == values.end()) {
      out += text[i++];
      continue;
    }
    out += it->value;
    i += it->word.size();
  }
  return out;
}

/// A shell's script with references to the variables: each one word, whatever quotes it stands in.
std::string referring(std::string_view script, const placeholders& values) {
  std::string out;
  char quote = 0;
  for (std::size_t i = 0; i < script.size();) {
    const auto it = std::ranges::find_if(
        values, [&](const auto& p) { return script.substr(i).starts_with(p.word); });
    if (it != values.end()) {
      const auto reference = "${" + std::string(it->variable) + "}";
      out += quote == '"'    ? reference
             : quote == '\'' ? "'\"" + reference + "\"'"
                             : "\"" + reference + "\"";
      i += it->word.size();
      continue;
    }
    const char c = script[i];
    if (c == '\\' && quote != '\'' && i + 1 < script.size())
      out += script[i++];
    else if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    out += script[i++];
  }
  return out;
}

/// No argument or variable of a program can hold it, or it is not what the scanner told.
bool cannot_be_given(const std::string& value) {
  return value.find('\0') != std::string::npos || value.find("[redacted]") != std::string::npos;
}

} // namespace

proof_command proof_command::of(const scanner_settings& s, const finding& f) {
  proof_command whole{s.argv, {}};
  if (s.proof.empty() || (f.is_group && (f.test == build_group || f.test == bail_out)))
    return whole;
  auto values = values_of(f);
  proof_command proof;
  for (const auto& v : values) {
    if (cannot_be_given(v.value))
      return whole;
    proof.environment.emplace_back(v.variable, v.value);
  }
  if (s.parser == report_format::ctest)
    values[0].value = literal(f.test);
  for (std::size_t i = 0; i < s.proof.size(); ++i) {
    const auto& word = s.proof[i];
    if (reader_of(s.proof, i, is_shell) != std::string::npos) {
      proof.argv.push_back(referring(word, values));
      continue;
    }
    auto given = filled(word, values);
    // An empty value names nothing, and one that begins like an option would be read as one.
    if (given != word && (given.empty() || given.starts_with('-')) && !word.starts_with('-'))
      return whole;
    proof.argv.push_back(std::move(given));
  }
  return proof;
}

std::string proof_command::code_word(const std::vector<std::string>& argv) {
  for (std::size_t i = 0; i < argv.size(); ++i)
    if (has_placeholder(argv[i]))
      if (const auto program = reader_of(argv, i, is_interpreter); program != std::string::npos)
        return argv[program];
  return {};
}

} // namespace boyd::improve
