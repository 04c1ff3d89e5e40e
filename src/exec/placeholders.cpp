#include "placeholders.hpp"

#include "boyd/core/home_layout.hpp"

#include <algorithm>

namespace boyd::exec {

placeholder_values placeholders(const run_identity& who) {
  return {{"{session_id}", who.session_id},   {"{agent_id}", who.agent_id},
          {"{cycle_id}", who.cycle_id},       {"{dispatch_id}", who.dispatch_id},
          {"{kernel_id}", who.kernel_id},     {"{attempt}", std::to_string(who.attempt)},
          {"{kernel_home}", who.kernel_home}, {"{home}", who.home}};
}

std::string expand(std::string_view text, const placeholder_values& values) {
  std::string found;
  while (!text.empty()) {
    const auto at = text.find('{');
    found += text.substr(0, at);
    if (at == std::string_view::npos)
      break;
    text.remove_prefix(at);
    const auto match = std::find_if(values.begin(), values.end(),
                                    [&](const auto& v) { return text.starts_with(v.first); });
    if (match == values.end()) {
      found += text.front();
      text.remove_prefix(1);
    } else {
      found += match->second;
      text.remove_prefix(match->first.size());
    }
  }
  return found;
}

result<void> check_placeholders(const placeholder_values& values) {
  for (const auto& [name, value] : values)
    if (value.starts_with('-') || value.find('\0') != std::string::npos)
      return fail(errc::invalid_argument, "the value of " + name + " may not begin with '-'");
  return {};
}

std::string prompt_path(const run_identity& who) {
  return home_layout(who.home).prompts() + "/" + who.dispatch_id + '-' +
         std::to_string(who.attempt) + ".txt";
}

} // namespace boyd::exec
