#include "lost_facts.hpp"

#include "hints.hpp"

namespace boyd::app {

std::string damage_of(const json& body) {
  const auto damage = printable(text_of(body, "damage"));
  return damage.empty()
             ? damage
             : "the log of facts is not whole: " + damage + as_hint("; check it: boyd kg verify");
}

std::string left_out_of(const json& body) {
  const auto n = number_of(body, "left_out");
  if (n <= 0)
    return {};
  const auto all = " (of " + text_of(body, "lines") + ") ";
  return n == 1 ? "1 damaged line" + all + as_hint("was left out; check it: boyd kg verify")
                : std::to_string(n) + " damaged lines" + all +
                      as_hint("were left out; check them: boyd kg verify");
}

void print_lost_facts(const json& body, const terminal& t) {
  for (const auto& lost : {damage_of(body), left_out_of(body)})
    if (!lost.empty())
      print(t.paint(colour::warn, hint_lines(lost, 0, t)) + "\n");
}

} // namespace boyd::app
