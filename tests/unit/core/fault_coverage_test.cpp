#include "boyd/core/fault_points.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>

using namespace boyd;

namespace {

std::string source_text(const std::string& path) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  std::ifstream file((top != nullptr ? std::string(top) : std::string(".")) + "/" + path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  REQUIRE_FALSE(text.empty());
  return text;
}

/// What the first group of `pattern` matches.
std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex wanted(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), wanted), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

/// "store.*": any point that begins so.
bool is_in_catalogue(std::string_view points) {
  if (!points.ends_with('*'))
    return faults::find(points) != nullptr;
  points.remove_suffix(1);
  return std::ranges::any_of(faults::points(),
                             [&](std::string_view name) { return name.starts_with(points); });
}

/// Of each thing: points in the catalogue, or "-" with docs/reliability.md's word for why there is
/// none.
using coverage = std::map<std::string, std::string_view>;

const coverage ports{{"clock", "- clock"},
                     {"random", "- entropy"},
                     {"files", "state_writer.*"},
                     {"repositories", "repository.*"},
                     {"processes", "processes.*"},
                     {"zones", "- time zones"},
                     {"make_store", "store.*"},
                     {"listen", "store.wakeup"},
                     {"web", "kernel.heartbeat"},
                     {"http", "models.call"},
                     {"workspaces", "- confined files"},
                     {"trees", "- worktrees"}};

const coverage handles{{"health_actor", "- pings"},
                       {"queue_listener_actor", "queue.*"},
                       {"store_actor", "store.request"},
                       {"state_writer_actor", "state_writer.request"},
                       {"git_committer_actor", "git_committer.request"},
                       {"graph_recorder_actor", "graph_recorder.request"},
                       {"workspace_actor", "workspace.request"},
                       {"librarian_actor", "librarian.request"},
                       {"planner_actor", "planner.request"},
                       {"retention_actor", "retention.run"},
                       {"event_listener_actor", "gateway.event"},
                       {"kernel_actor", "kernel.request"},
                       {"permit_holder_actor", "permits.grant"},
                       {"permits_actor", "permits.request"},
                       {"place_holder_actor", "governor.place"},
                       {"governor_actor", "governor.place"},
                       {"mcp_actor", "mcp.call"},
                       {"approval_waiter_actor", "- approvals"},
                       {"approvals_actor", "- approvals"},
                       {"dispatcher_actor", "dispatcher.request"},
                       {"executor_actor", "executor.cancel"},
                       {"dispatcher_pool_actor", "dispatchers.request"},
                       {"tree_source_actor", "root.request"},
                       {"gateway_actor", "gateway.request"}};

/// What docs/reliability.md says under "Without a point".
std::string exceptions() {
  const auto page = source_text("docs/reliability.md");
  const auto begin = page.find("Without a point:");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("\n## ", begin) - begin);
}

void check_covered(const std::set<std::string>& there, const coverage& known) {
  const auto told = exceptions();
  for (const auto& name : there) {
    INFO(name << " is new: give it a fault point, or a reason in docs/reliability.md, and name it "
                 "in this test");
    CHECK(known.contains(name));
  }
  for (const auto& [name, points] : known) {
    INFO(name << ": " << points);
    CHECK(there.contains(name));
    if (points.starts_with("- "))
      CHECK(told.find(points.substr(2)) != std::string::npos);
    else
      CHECK(is_in_catalogue(points));
  }
}

} // namespace

TEST_CASE("faults: every port has a point or a reason why it has none", "[faults]") {
  check_covered(all_of(source_text("include/boyd/ports/ports.hpp"), R"(\n  std::[^;]*\b(\w+);)"),
                ports);
}

TEST_CASE("faults: every boundary between parts has a point or a reason why it has none",
          "[faults]") {
  check_covered(all_of(source_text("messages/interfaces.hpp"), R"(\nusing (\w+_actor) =)"),
                handles);
}
