#include "boyd/plan/expand.hpp"
#include "fuzz/target.hpp"

namespace boyd::fuzz {
namespace {

/// What a prompt's expansion must be, written the plain way: one pass from the left, known words
/// replaced, nothing that was inserted looked at again.
std::string expected(std::string_view text, const plan::placeholder_values& values) {
  const std::pair<std::string_view, const std::string*> words[] = {
      {"{STATE}", &values.state},
      {"{GOAL}", &values.goal},
      {"{RECENT_RESULTS}", &values.recent_results},
      {"{TIME}", &values.time},
      {"{MEMORY}", &values.memory},
      {"{SKILLS}", &values.skills},
      {"{SENSES}", &values.senses},
  };
  std::string out;
  while (!text.empty()) {
    bool found = false;
    for (const auto& [word, value] : words)
      if (text.substr(0, word.size()) == word) {
        out += *value;
        text.remove_prefix(word.size());
        found = true;
        break;
      }
    if (!found) {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

void run(std::string_view input) {
  reader in{input};
  plan::placeholder_values values;
  values.state = in.line();
  values.goal = in.line();
  values.recent_results = "{STATE}{GOAL}";
  values.time = "2026-01-01T00:00:00Z";
  values.senses = "{";
  const auto expanded = plan::expand(in.rest(), values);
  const auto wanted = expected(in.rest(), values);
  require(expanded.has_value() == (wanted.size() <= limits::prompt_bytes),
          "only what is too long is refused");
  require(!expanded || *expanded == wanted, "one pass, every known word, nothing else");
}

const registration registered{"references", run};

} // namespace
} // namespace boyd::fuzz
