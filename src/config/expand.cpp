#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "passes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace boyd::config {
namespace {

/// The length of "${".
constexpr std::size_t reference_start = 2;

bool is_name_start(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool is_variable_name(std::string_view text) {
  if (text.empty() || !is_name_start(text.front())) {
    return false;
  }
  for (const char c : text) {
    if (!is_name_start(c) && (c < '0' || c > '9')) {
      return false;
    }
  }
  return true;
}

/// What a value is inside of, where secrets stand as they are.
enum class keeper : std::uint8_t { none, names, headers };

keeper keeper_of(std::string_view key) {
  if (key == "headers")
    return keeper::headers;
  return key == "env" || key == "metadata" ? keeper::names : keeper::none;
}

/// One reference, from "${" to its "}".
struct reference {
  std::string name;
  std::optional<std::string> fallback;
  std::size_t length = 0; ///< in the text, with the braces
};

std::optional<reference> read_reference(std::string_view text) {
  const auto end = text.find('}');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto body = text.substr(2, end - 2);
  const auto colon = body.find(":-");
  reference out;
  out.name = std::string(body.substr(0, colon));
  out.length = end + 1;
  if (colon != std::string_view::npos) {
    out.fallback = std::string(body.substr(colon + 2));
  }
  return is_variable_name(out.name) ? std::optional(std::move(out)) : std::nullopt;
}

/// Expands one document. The sum of all expanded bytes is bounded, so that a long variable in many
/// places cannot eat the memory.
class expander {
 public:
  expander(pass& p, const environment_lookup& environment, unset_variables unset)
      : p_(p), environment_(environment), unset_(unset) {}

  /// `name` is the nearest key; `around`: what it is inside of.
  void visit(const std::string& key, std::string_view name, keeper around, tree& t) {
    if (t.kind == tree::kind_t::scalar) {
      scalar(key, name, around, t);
      return;
    }
    for (std::size_t i = 0; i < t.items.size(); ++i) {
      if (t.kind == tree::kind_t::map) {
        const std::string own = t.keys[i].text;
        visit(key.empty() ? own : key + "." + own, own,
              around == keeper::none ? keeper_of(own) : around, t.items[i]);
      } else {
        visit(key + "[" + std::to_string(i) + "]", name, around, t.items[i]);
      }
    }
  }

 private:
  void scalar(const std::string& key, std::string_view name, keeper around, tree& t) {
    if (t.text.find("${") != std::string::npos) {
      auto text = expand_text(key, t);
      if (!text) {
        t.unusable = true;
        return;
      }
      t.text = std::move(*text);
    }
    const bool literal = around != keeper::none || (name == "api_key" && !t.text.empty());
    const bool smells =
        smells_secret(name) || (around == keeper::headers && smells_secret_header(name));
    if (smells && (literal || t.expanded) && !is_count(name, t.text)) {
      t.secret = true;
      keep(t.text);
      // "Bearer KEY": the key alone is as secret.
      if (const auto space = t.text.find(' '); around == keeper::headers && space < t.text.size())
        keep(t.text.substr(space + 1));
    }
    for (auto found = uri_password(t.text); !found.empty();) {
      keep(std::string(found));
      const auto next = static_cast<std::size_t>(found.data() - t.text.data()) + found.size();
      found = uri_password(t.text, next);
    }
  }

  /// Everything that is wrong with one value is one finding, for only the first one about a key is
  /// shown; a slip that stands there several times is told once.
  struct slips {
    std::string problem;
    std::string expected;

    void add(const std::string& what, const std::string& right) {
      append(problem, what, "; ");
      append(expected, right, "; ");
    }
    static void append(std::string& all, const std::string& part, std::string_view separator) {
      if (all.find(part) == std::string::npos) {
        all += (all.empty() ? "" : std::string(separator)) + part;
      }
    }
  };

  std::optional<std::string> expand_text(const std::string& key, tree& t) {
    std::string out;
    slips wrong; // one wrong reference does not hide the next one
    std::string_view rest = t.text;
    while (!rest.empty()) {
      const auto at = rest.find("${");
      if (at == std::string_view::npos) {
        break;
      }
      if (at > 0 && rest[at - 1] == '$') {
        out.append(rest.substr(0, at - 1)).append("${");
        rest.remove_prefix(at + reference_start);
        continue;
      }
      out.append(rest.substr(0, at));
      rest.remove_prefix(at);
      const auto ref = read_reference(rest);
      if (!ref) {
        wrong.add("a ${ that is not ${VARIABLE} or ${VARIABLE:-default}", "$${ for a literal ${");
        rest.remove_prefix(reference_start);
        continue;
      }
      if (const auto value = look_up(*ref, t, wrong)) {
        out += *value;
        t.expanded = true;
      } else {
        out += rest.substr(0, ref->length);
      }
      rest.remove_prefix(ref->length);
    }
    if (!wrong.problem.empty()) {
      p_.report(t.at, key, std::move(wrong.problem), std::move(wrong.expected));
      return std::nullopt;
    }
    out.append(rest);
    bytes_ += out.size();
    if (bytes_ > limits::config_bytes) {
      p_.report(t.at, key, "the values become too large when ${…} is expanded",
                "at most " + std::to_string(limits::config_bytes) + " bytes in all");
      return std::nullopt;
    }
    return out;
  }

  std::optional<std::string> look_up(const reference& ref, tree& t, slips& wrong) {
    auto value = environment_(ref.name);
    // As in a shell, ":-" stands in for an empty variable too.
    if (ref.fallback && (!value || value->empty())) {
      value = ref.fallback;
    }
    if (!value && unset_ == unset_variables::stay_as_text) {
      if (std::ranges::find(p_.unset, ref.name) == p_.unset.end()) {
        p_.unset.push_back(ref.name);
      }
      return std::nullopt;
    }
    if (!value) {
      wrong.add("the environment variable " + ref.name + " is not set",
                "a variable that is set, or ${" + ref.name + ":-default}");
      return std::nullopt;
    }
    if (sanitize_utf8(*value) != *value) {
      wrong.add("the environment variable " + ref.name + " is not valid UTF-8", "text in UTF-8");
      return std::nullopt;
    }
    if (smells_secret(ref.name) && !is_count(ref.name, *value)) {
      t.secret = true;
      keep(*value);
    }
    return value;
  }

  void keep(const std::string& value) {
    if (!value.empty()) {
      p_.secrets.push_back(value);
    }
  }

  pass& p_;
  const environment_lookup& environment_;
  unset_variables unset_;
  std::size_t bytes_ = 0;
};

} // namespace

void expand(pass& p, tree& root, const environment_lookup& environment, unset_variables unset) {
  expander(p, environment, unset).visit({}, {}, keeper::none, root);
}

} // namespace boyd::config
