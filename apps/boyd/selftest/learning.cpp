#include "learning.hpp"

#include "../child.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "boyd/core/home_layout.hpp"
#include "promises.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace boyd::embedded {

extern const char* const learning_configuration; ///< config/examples/learning.yaml
extern const char* const learning_document;      ///< config/examples/learning/release.md
extern const char* const learning_agent;         ///< config/examples/learning/release.sh

} // namespace boyd::embedded

namespace boyd::app {

namespace {

namespace fs = std::filesystem;

/// A command that takes longer is broken.
constexpr milliseconds command_limit = std::chrono::minutes{2};
constexpr int days_of_walk = 30;
/// When somebody changes the skill for the worse.
constexpr int day_of_storm = 14;
/// Where the example looks for what it reads when it is tried from a clone.
constexpr std::string_view place_of_repository = "${BOYD_DEMO_REPO:-../..}";

class learning_walk {
 public:
  explicit learning_walk(signal_watch& signals) : signals_(signals) {}

  result<learning_walk_report> run(const std::string& directory);

 private:
  std::string file(const std::string& name) const { return report_.scratch + "/" + name; }
  std::string home() const { return file("home"); }
  std::string kernel_file(const std::string& name) const {
    return home() + "/kernel/default/" + name;
  }

  result<void> make_scratch(const std::string& directory);
  /// Runs this program on the day; what it printed. A problem when it ends otherwise.
  std::string boyd(std::vector<std::string> args, int also_good = 0);
  void live_a_day();
  /// What people do on this day.
  void decide();
  void look();
  json skill();
  void tell(const std::string& what) {
    report_.story.push_back("day " + std::to_string(report_.days) + ": " + what);
  }
  /// Once.
  bool reaches(bool holds, bool& told) { return holds && !std::exchange(told, true); }
  void judge();

  signal_watch& signals_;
  learning_walk_report report_;
  bool is_banked_ = false;
  bool is_candidate_ = false;
  bool is_approved_ = false;
  bool is_used_ = false;
  bool is_changed_ = false;
  bool is_degraded_ = false;
  bool is_rolled_back_ = false;
};

void write(const std::string& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  std::ofstream(path) << text;
}

result<void> learning_walk::make_scratch(const std::string& directory) {
  auto pattern = directory + "/boyd-selftest-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail(errc::io_error, "cannot make a scratch directory", directory,
                "name another one with --dir");
  report_.scratch = pattern;
  std::string configuration = embedded::learning_configuration;
  if (const auto at = configuration.find(place_of_repository); at != std::string::npos)
    configuration.replace(at, place_of_repository.size(), json(file("project")).dump());
  write(file("learning.yaml"), configuration);
  write(file("project/config/examples/learning/release.md"), embedded::learning_document);
  write(file("project/config/examples/learning/release.sh"), embedded::learning_agent);
  boyd({"init", "--no-input", "--from", file("learning.yaml")});
  if (!report_.problems.empty())
    return fail(errc::io_error, "the scratch home cannot be made: " + report_.problems.front(),
                home());
  return {};
}

std::string learning_walk::boyd(std::vector<std::string> args, int also_good) {
  auto line = std::string("boyd");
  for (const auto& a : args)
    line += " " + a;
  ::setenv(days_ahead_variable, std::to_string(report_.days).c_str(), 1);
  args.insert(args.begin(), {"/proc/self/exe", "--home", home()});
  auto started = child::start(std::move(args), {file("out"), file("err")});
  if (!started) {
    report_.problems.push_back(line + ": " + to_string(started.error()));
    return {};
  }
  const bool ended = started->wait(command_limit, signals_.descriptor()) == child::end::exited;
  report_.interrupted = report_.interrupted || signals_.interrupted();
  const int code = ended ? started->code() : started->kill();
  if (code != 0 && code != also_good && !report_.interrupted)
    report_.problems.push_back(line + " ended with " + std::to_string(code) + ": " +
                               text_in(file("err")));
  return text_in(file("out"));
}

json learning_walk::skill() {
  for (const auto& s : rows_of(object_of(boyd({"skills", "--json"})), "skills"))
    if (text_of(s, "name") == "release")
      return s;
  return json::object();
}

void learning_walk::decide() {
  if (is_candidate_ && !is_approved_) {
    boyd({"skills", "approve", "release", "--reason", "it has worked for days"});
    if (reaches(text_of(skill(), "state") == "enabled", is_approved_))
      tell("a person approves the candidate: it is the skill `release`");
  }
  if (is_used_ && report_.days >= day_of_storm && !is_changed_) {
    write(kernel_file("skills/release/SKILL.md"),
          text_in(kernel_file("skills/release/SKILL.md")) + "4. Sail in any storm.\n");
    boyd({"skills", "approve", "release"});
    write(kernel_file("storm"), "");
    if (reaches(number_of(skill(), "version") == 2, is_changed_))
      tell("a person adds a line and approves version 2; a storm comes up");
  }
  if (is_degraded_ && !is_rolled_back_) {
    boyd({"skills", "rollback", "release", "--to", "1"});
    std::error_code ignored;
    fs::remove(kernel_file("storm"), ignored);
    const auto now = skill();
    if (reaches(number_of(now, "version") == 3 && text_of(now, "state") == "enabled",
                is_rolled_back_))
      tell("a person rolls it back: version 3 has the bytes of version 1");
  }
}

void learning_walk::look() {
  const auto banked = rows_of(object_of(boyd({"context", "bank", "--json"})), "items");
  if (reaches(!banked.empty(), is_banked_))
    tell("the document is in the bank: " + text_of(banked.front(), "reason"));
  const auto waiting = rows_of(object_of(boyd({"skills", "review", "--json"})), "candidates");
  if (reaches(!waiting.empty(), is_candidate_))
    tell("it is a candidate for a skill, after " +
         std::to_string(number_of(waiting.front(), "referenced")) + " citations");
  if (!is_approved_)
    return;
  const auto now = skill();
  if (reaches(number_of(now, "successes") > 0, is_used_))
    tell("a run has followed the skill, and it went well");
  if (reaches(is_changed_ && text_of(now, "state") == "degraded", is_degraded_))
    tell("the skill is degraded: " + std::to_string(number_of(now, "failures")) +
         " runs that followed it failed; no prompt shows it any more");
}

/// In a storm the agent fails, and so the cycle.
void learning_walk::live_a_day() {
  ++report_.days;
  decide();
  boyd({"cycle", "--json"}, 1);
  look();
}

void learning_walk::judge() {
  const std::pair<bool, const char*> stations[] = {
      {is_banked_, "the document never came into the bank"},
      {is_candidate_, "it never became a candidate"},
      {is_approved_, "the candidate could not be approved"},
      {is_used_, "no run followed the skill"},
      {is_changed_, "version 2 could not be approved"},
      {is_degraded_, "three failures did not degrade the skill"},
      {is_rolled_back_, "the skill was not rolled back"}};
  for (const auto& [reached, otherwise] : stations)
    if (!reached)
      report_.problems.emplace_back(otherwise);
  if (text_of(skill(), "state") != "enabled")
    report_.problems.emplace_back("the skill is not in use at the end");
  report_.lineage = boyd({"kg", "lineage", "release"});
  boyd({"kg", "verify"});
  boyd({"replay", "last", "--strict"});
}

result<learning_walk_report> learning_walk::run(const std::string& directory) {
  auto made = make_scratch(directory);
  while (made && report_.days < days_of_walk && report_.problems.empty() && !report_.interrupted)
    live_a_day();
  if (made && report_.problems.empty() && !report_.interrupted)
    judge();
  std::error_code ignored;
  if (report_.problems.empty() && !report_.scratch.empty())
    fs::remove_all(report_.scratch, ignored);
  if (!made)
    return fail(std::move(made.error()));
  return std::move(report_);
}

} // namespace

result<learning_walk_report> walk_through_learning(const std::string& directory,
                                                   signal_watch& signals) {
  return learning_walk(signals).run(directory);
}

} // namespace boyd::app
