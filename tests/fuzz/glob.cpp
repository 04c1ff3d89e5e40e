#include "boyd/tools/glob.hpp"

#include "boyd/core/text.hpp"
#include "boyd/tools/policy.hpp"
#include "fuzz/target.hpp"

#include <string>
#include <vector>

namespace boyd::fuzz {
namespace {

/// The rules as they are read, one table entry for each rest of the pattern and rest of the text:
/// another way than the product's, and bounded.
class table {
 public:
  table(std::string_view pattern, const std::vector<std::string_view>& text, bool path)
      : pattern_(pattern), text_(text), path_(path),
        known_((pattern.size() + 1) * (text.size() + 1), unknown) {}

  bool matches(std::size_t p, std::size_t t) {
    auto& entry = known_[p * (text_.size() + 1) + t];
    if (entry == unknown)
      entry = find(p, t) ? yes : no;
    return entry == yes;
  }

 private:
  enum answer : char { unknown, yes, no };

  bool slash(std::size_t t) const { return text_[t] == "/"; }

  bool find(std::size_t p, std::size_t t) {
    const auto rest = pattern_.substr(p);
    const bool more = t < text_.size();
    if (path_ && rest == "/**" && (!more || slash(t)))
      return true;
    if (rest.empty())
      return !more;
    if (path_ && rest.starts_with("**/") && (p == 0 || pattern_[p - 1] == '/')) {
      bool found = matches(p + 3, t);
      for (auto i = t; !found && i < text_.size(); ++i)
        found = slash(i) && matches(p + 3, i + 1);
      return found;
    }
    if (rest.front() == '*') {
      const std::size_t stars = rest.starts_with("**") ? 2 : 1;
      return matches(p + stars, t) ||
             (more && (stars == 2 || !path_ || !slash(t)) && matches(p, t + 1));
    }
    const auto character = cut_characters(rest, 1);
    if (!more || (character == "?" ? path_ && slash(t) : character != text_[t]))
      return false;
    return matches(p + character.size(), t + 1);
  }

  std::string_view pattern_;
  const std::vector<std::string_view>& text_;
  bool path_;
  std::vector<answer> known_;
};

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> all;
  for (; !text.empty(); text.remove_prefix(all.back().size()))
    all.push_back(cut_characters(text, 1));
  return all;
}

/// The first line is the pattern, the rest the text.
void run(std::string_view input) {
  constexpr std::size_t longest = 300; // the table's size is their product
  reader in{input};
  const auto pattern = in.line().substr(0, longest);
  const auto text = in.rest().substr(0, longest);
  const auto characters = characters_of(text);
  for (const bool path : {true, false}) {
    const auto kind = path ? tools::glob_text::path : tools::glob_text::command;
    require(tools::glob_matches(pattern, text, kind) ==
                table(pattern, characters, path).matches(0, 0),
            "a pattern matches what its rules say");
  }
  // A shell's line: no pattern but * lets a second command through.
  config::action_policy policy;
  config::policy_rule rule;
  rule.command = std::string(pattern);
  rule.decision = config::policy_decision::allow;
  policy.rules = {rule};
  const tools::action action{"run_command", {}, std::string(text), true, {}};
  const bool any = pattern.find_first_not_of('*') == std::string_view::npos;
  if (!any && text.find_first_of(";&|`$()<>\n") != std::string_view::npos)
    require(tools::decide(action, policy, {"*"}).what == config::policy_decision::deny,
            "a pattern does not allow a second command");
}

const registration registered{"glob", run};

} // namespace
} // namespace boyd::fuzz
