#include "boyd/faults/points.hpp"
#include "methods.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::fault_coverage_test {

using namespace boyd;

namespace {

std::string source_text(const std::string& path) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  std::ifstream file((top != nullptr ? std::string(top) : std::string(".")) + "/" + path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  REQUIRE_FALSE(text.empty());
  return text;
}

/// The C++ files below a folder of the source tree.
std::vector<std::string> sources_in(const std::string& folder) {
  const char* top = std::getenv("BOYD_SOURCE_DIR");
  const std::filesystem::path source = top != nullptr ? top : ".";
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source / folder))
    if (const auto type = entry.path().extension(); type == ".hpp" || type == ".cpp")
      found.push_back(std::filesystem::relative(entry.path(), source).string());
  REQUIRE_FALSE(found.empty());
  return found;
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

const coverage ports{
    {"clock", "- clock"},           {"random", "- entropy"},
    {"files", "state_writer.*"},    {"repositories", "repository.*"},
    {"processes", "processes.*"},   {"zones", "- time zones"},
    {"make_store", "store.*"},      {"make_knowledge_index", "- index of knowledge"},
    {"listen", "store.wakeup"},     {"http", "models.call"},
    {"workspaces", "file_tools.*"}, {"trees", "worktrees.*"}};

/// Of each message that nobody answers (`reacts_to`).
const coverage notices{
    {"approval_answer", "approvals.answer"},
    {"approval_end", "approvals.end"},
    {"approval_request", "approvals.ask"},
    {"approval_use_request", "approvals.use"},
    {"approval_withdrawal", "approvals.end"},
    {"cancel_run", "dispatchers.cancel"},
    {"cycle_event", "gateway.event"},
    {"dispatches_settled", "queue.settled"},
    {"drain_order", "dispatcher.drain"},
    {"drained", "dispatchers.drained"},
    {"expired_rows", "dispatcher.expired"},
    {"external_wakeup", "store.wakeup"},
    {"hurry_order", "dispatcher.hurry"},
    {"mcp_cancel", "mcp.cancel"},
    {"permit_grant", "permits.grant"},
    {"permit_limits", "parts.reload"},
    {"permit_pacing", "permits.pace"},
    {"permit_release", "permits.release"},
    {"permit_request", "permits.ask"},
    {"place_answer", "governor.answer"},
    {"place_release", "governor.release"},
    {"place_request", "governor.place"},
    {"queue_changed", "queue.changed"},
    {"reload_order", "parts.reload"},
    {"run_finished", "dispatcher.finished"},
    {"start_claiming", "dispatchers.recover"},
    {"stop_order", "kernel.stop"},
    {"stop_questions", "planner.stop"},
    {"subscribe_events", "parts.subscribe"},
    {"subscribe_queue", "parts.subscribe"},
    {"watch_events", "parts.subscribe"},
    {"work_due", "dispatcher.due"},
};

/// Requests that do not pass the point of who is asked (actors/support/ask.hpp): the control
/// socket's, and a reload, which the gateway hands over.
const coverage other_requests{{"api_request", "gateway.request"},
                              {"reload_request", "gateway.request"}};

/// Files of the actors that ask by themselves: with no points, or with those of `ask`.
const std::set<std::string> askers{
    "actors/support/ask.hpp",     // all others
    "actors/workspace/actor.cpp", // its own keepers, whose points are the keepers'
};

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

TEST_CASE("faults: every method of a port has a point or a reason why it has none", "[faults]") {
  std::set<std::string> there;
  for (const auto& path : sources_in("include/boyd/ports")) {
    const auto text = source_text(path);
    const std::regex part(R"(\nclass (\w+)[^;{]*\{|\n  virtual (?!~)[^(~]*?(\w+)\()");
    std::string port;
    for (std::sregex_iterator it(text.begin(), text.end(), part), end; it != end; ++it) {
      if ((*it)[1].matched)
        port = (*it)[1];
      else
        there.insert(port + "::" + (*it)[2].str());
    }
  }
  check_covered(there, methods);
}

TEST_CASE("faults: every notice between parts has a point or a reason why it has none",
          "[faults]") {
  check_covered(all_of(source_text("messages/interfaces.hpp"), R"(caf::reacts_to<(\w+)>)"),
                notices);
}

TEST_CASE("faults: every request between parts passes the point of who is asked", "[faults]") {
  const auto asks = source_text("actors/support/ask.hpp");
  const auto points_of_parts =
      all_of(asks, R"(Handle, (\w+)>\)\s+return faults::point\("[\w.]+"\))");
  CHECK(points_of_parts.size() > 10);
  const auto interfaces = source_text("messages/interfaces.hpp");
  const std::regex part(R"(\nusing (\w+_actor) =|caf::replies_to<(\w+)>)");
  std::string asked;
  for (std::sregex_iterator it(interfaces.begin(), interfaces.end(), part), end; it != end; ++it) {
    if ((*it)[1].matched) {
      asked = (*it)[1];
      continue;
    }
    const auto request = (*it)[2].str();
    const auto known = other_requests.find(request);
    INFO(asked << " is asked " << request
               << ": give the part a point in request_point (actors/support/ask.hpp)");
    CHECK((known != other_requests.end() || points_of_parts.contains(asked)));
  }
  const auto told = exceptions();
  for (const auto& [request, point] : other_requests) {
    INFO(request << ": " << point);
    CHECK((point.starts_with("- ") ? told.find(point.substr(2)) != std::string::npos
                                   : is_in_catalogue(point)));
  }
}

TEST_CASE("faults: the parts ask each other past the points", "[faults]") {
  const std::regex request(R"(self_?->(template )?request\()");
  for (const auto& path : sources_in("actors")) {
    INFO(path << " asks by itself: use ask (actors/support/ask.hpp)");
    CHECK((askers.contains(path) || !std::regex_search(source_text(path), request)));
  }
}

} // namespace boyd::fault_coverage_test
