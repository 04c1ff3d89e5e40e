#include "boyd/plan/system_prompt.hpp"

#include "boyd/core/text.hpp"

#include <string_view>

namespace boyd::plan {
namespace {

void add(std::string& text, std::string_view heading, std::string_view body) {
  body = trim(body);
  if (body.empty())
    return;
  if (!text.empty())
    text += '\n';
  if (!heading.empty()) {
    text += heading;
    text += "\n\n";
  }
  text += body;
  text += '\n';
}

} // namespace

system_prompt make_system_prompt(const system_prompt_parts& parts) {
  system_prompt out;
  add(out.text, {}, parts.instructions);
  add(out.text, "## Identity", parts.identity);
  add(out.text, "## Kernel Objective", parts.goal);
  add(out.text, "## Skills", parts.skills);
  add(out.text, "## Tools", parts.tools);
  out.stable_bytes = out.text.size();
  add(out.text, "## Memory", parts.memory);
  add(out.text, "## State", parts.state);
  add(out.text, "## Time", parts.time);
  return out;
}

} // namespace boyd::plan
