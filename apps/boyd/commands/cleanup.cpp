#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../live_line.hpp"
#include "asking.hpp"
#include "commands.hpp"

#include <string>

/// Removes what ended executions have left.
namespace boyd::app {

namespace {

/// Every record is looked at.
constexpr milliseconds cleanup_limit = std::chrono::minutes{30};

void render_cleanup(const json& body) {
  constexpr std::int64_t kibibyte = 1024;
  const bool applied = flag_in(body, "applied");
  print(std::string(applied ? "removed: " : "would delete: ") +
        counted(number_of(body, "executions"), "record") + " without a run, " +
        counted(number_of(body, "contents"), "content") + " without a record (" +
        std::to_string(number_of(body, "content_bytes") / kibibyte) + " KiB)\n");
}

} // namespace

int run_cleanup(const arguments& args) {
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  const auto request = post("/api/v1/cleanup", json{{"apply", args.dry_run ? "" : "yes"}}.dump());
  const auto body = with_live_line(args, "looking for records without a run",
                                   [&] { return (*c)->ask(request, cleanup_limit); });
  (*c)->close();
  if (!body)
    return report(body.error(), args.json);
  if (args.json)
    print(*body + "\n");
  else
    render_cleanup(object_of(*body));
  return exit_code::ok;
}

} // namespace boyd::app
