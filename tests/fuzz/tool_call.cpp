#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/tools/call.hpp"
#include "boyd/tools/definitions.hpp"
#include "fuzz/target.hpp"

#include <string>
#include <variant>

namespace boyd::fuzz {
namespace {

constexpr std::string_view workspace = "/srv/repo";

void check_path(const std::string& path) {
  require(!path.empty() && path.front() != '/', "a path is relative");
  if (path != ".")
    for (const auto part : split(path, '/'))
      require(!part.empty() && part != "." && part != "..", "a path has plain parts");
  require(path.find('\0') == std::string::npos, "a path has no NUL");
  const auto again = workspace_path(workspace, path);
  require(again && *again == path, "a plain path stays as it is");
  // Whatever a careless file system makes of the name: git's directory is never written.
  for (const auto part : split(path, '/'))
    require(folded_name(part) != ".git" || why_unwritable(path), "nothing is written in .git");
}

void check_action(const tools::tool_call& call) {
  const auto action = tools::action_of(call, std::string(workspace));
  if (!action) {
    require(!action.error().what.empty(), "a refusal says why");
    return;
  }
  if (std::holds_alternative<tools::run_command_call>(call)) {
    require(action->path.empty() && !action->command.empty(), "a command is judged as one");
    return;
  }
  require(action->command.empty(), "a file tool runs nothing");
  if (!action->path.starts_with(tools::results_prefix))
    check_path(action->path);
}

/// The first byte picks the tool, the rest is what a model sent.
void run(std::string_view input) {
  reader in{input};
  const auto& all = tools::built_in();
  const auto& tool = all[in.byte() % all.size()];
  const auto call = tools::read_call(tool.name, in.rest());
  if (!call) {
    const auto& what = call.error().what;
    require(!what.empty() && what.size() < 2000, "a complaint is short");
    require(sanitize_utf8(what) == what, "a complaint is text");
    return;
  }
  check_action(*call);
}

const registration registered{"tool_call", run};

} // namespace
} // namespace boyd::fuzz
