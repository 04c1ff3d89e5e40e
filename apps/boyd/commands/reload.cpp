#include "../json_view.hpp"
#include "../terminal.hpp"
#include "asking.hpp"
#include "commands.hpp"

#include <string>

namespace boyd::app {

namespace {

void render_reload(const json& body, const terminal& t) {
  const auto changes = rows_of(body, "changes");
  print(changes.empty() ? "Reloaded; nothing changed.\n" : "Reloaded:\n");
  for (const auto& c : changes)
    if (c.is_string())
      print("  " + one_line(c.get<std::string>(), t.width > 2 ? t.width - 2 : 1) + "\n");
  std::string waiting;
  for (const auto& key : rows_of(body, "restart_needed"))
    if (key.is_string())
      waiting += (waiting.empty() ? "" : ", ") + key.get<std::string>();
  if (!waiting.empty())
    print(t.paint(colour::warn, "Takes effect at the next start of the node: " + waiting) + "\n");
}

} // namespace

int run_reload(const arguments& args) {
  return ask_and_print(args, post("/api/v1/reload"), render_reload);
}

} // namespace boyd::app
