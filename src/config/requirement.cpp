#include "boyd/core/text.hpp"
#include "passes.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace boyd::config {
namespace {

using kind_t = requirement::kind_t;

constexpr std::array<std::pair<std::string_view, kind_t>, 6> kinds{{
    {"exit_zero", kind_t::exit_zero},
    {"artifact", kind_t::artifact},
    {"tool_action", kind_t::tool_action},
    {"no_question", kind_t::no_question},
    {"command", kind_t::command},
    {"schema", kind_t::schema},
}};

std::optional<kind_t> kind_from(std::string_view name) {
  for (const auto& [text, kind] : kinds) {
    if (text == name) {
      return kind;
    }
  }
  return std::nullopt;
}

bool takes_argument(kind_t kind) {
  return kind == kind_t::artifact || kind == kind_t::command || kind == kind_t::schema;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (const auto part : split(text, ' ')) {
    if (!trim(part).empty()) {
      out.emplace_back(trim(part));
    }
  }
  return out;
}

result<requirement> from_text(const tree& entry) {
  const auto text = trim(entry.text);
  const auto name = text.substr(0, text.find_first_of(" \t"));
  const auto argument = trim(text.substr(name.size()));
  const auto kind = kind_from(name);
  if (!kind) {
    std::vector<std::string_view> names;
    for (const auto& known : kinds) {
      names.push_back(known.first);
    }
    return fail(errc::invalid_argument, shown(entry) + " is not a requirement", {},
                entry.secret ? "" : std::string(nearest(name, names)));
  }
  if (takes_argument(*kind) == argument.empty()) {
    return fail(errc::invalid_argument,
                std::string(name) +
                    (argument.empty() ? " needs an argument" : " takes no argument"));
  }
  requirement out{*kind, {}, {}};
  if (*kind != kind_t::command) {
    out.argument = std::string(argument);
  } else if (argument.find_first_of("\"'\\$`|&;<>*?(){}~#") != std::string_view::npos) {
    return fail(
        errc::invalid_argument,
        "this command does not run in a shell; write it as {command: [PROGRAM, ARGUMENT, …]}");
  } else {
    out.argv = words(argument);
  }
  return out;
}

} // namespace

result<requirement> parse_requirement(const tree& entry) {
  if (entry.kind == tree::kind_t::scalar) {
    return from_text(entry);
  }
  if (entry.kind != tree::kind_t::map || entry.keys.size() != 1) {
    return fail(errc::invalid_argument, "a requirement is a word or a map with one key");
  }
  const auto kind = kind_from(entry.keys.front().text);
  if (!kind || !takes_argument(*kind)) {
    return fail(errc::invalid_argument, "no such requirement");
  }
  requirement out{*kind, {}, {}};
  const auto& value = entry.items.front();
  if (*kind == kind_t::command) {
    for (const auto& part : value.items) {
      out.argv.push_back(part.text);
    }
  } else {
    out.argument = value.text;
  }
  return out;
}

std::optional<std::size_t> parse_size(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 5> units{
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"B", 0}, {"", 0}}};
  std::size_t count = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), count);
  if (done.ec != std::errc{}) {
    return std::nullopt;
  }
  const auto unit = text.substr(static_cast<std::size_t>(done.ptr - text.data()));
  for (const auto& [name, shift] : units) {
    if (unit == name) {
      const bool fits = count <= (std::numeric_limits<std::size_t>::max() >> shift);
      return fits ? std::optional(count << shift) : std::nullopt;
    }
  }
  return std::nullopt;
}

} // namespace boyd::config
