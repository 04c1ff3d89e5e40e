#include "../commands/commands.hpp"
#include "../exit_codes.hpp"
#include "../home.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"
#include "learning.hpp"
#include "trial.hpp"

#include <filesystem>

namespace boyd::app {

namespace {

json to_json(const crash_trial_report& r, const std::string& directory) {
  return {{"schema", "boyd.selftest/1"},
          {"ok", r.violations.empty()},
          {"test", "crash"},
          {"directory", directory},
          {"seconds", static_cast<double>(r.spent.count()) / 1000.0},
          {"kills", r.kills},
          {"batch_kills", r.batch_kills},
          {"whole_cycles", r.whole_cycles},
          {"acknowledged", r.acknowledged},
          {"effects", r.effects},
          {"examinations", r.examinations},
          {"git_fsck", r.git_was_there},
          {"interrupted", r.interrupted},
          {"kept", r.violations.empty() ? "" : r.scratch},
          {"violations", r.violations}};
}

void show(const crash_trial_report& r, const std::string& directory, const terminal& t) {
  print("crash test in " + directory + ", " + format_duration(r.spent) +
        (r.interrupted ? ", interrupted" : "") + "\n");
  print("  killed            " + std::to_string(r.kills) + " times in mid-cycle, " +
        std::to_string(r.batch_kills) + " times while a node ran many dispatches\n");
  print("  cycles to the end " + std::to_string(r.whole_cycles) + "\n");
  print("  acknowledged      " + std::to_string(r.acknowledged) + " dispatches\n");
  print("  outside effects   " + std::to_string(r.effects) +
        " times; interrupted attempts were repeated\n");
  print("  examined          " + std::to_string(r.examinations) +
        " times: rows, effects, graph, STATE.md, integrity_check" +
        (r.git_was_there ? ", commits, git fsck"
                         : "; git is not installed, so commits and fsck were not checked") +
        "\n");
  for (const auto& v : r.violations)
    print(t.paint(colour::bad, "  ! " + printable(v)) + "\n");
  if (r.violations.empty())
    print(t.paint(colour::good, "ok") + ": nothing acknowledged was lost, nothing ran twice\n");
  else
    print(t.paint(colour::bad, "FAILED") + "; the home was kept in " + r.scratch + "\n");
}

json to_json(const learning_walk_report& r) {
  return {{"schema", "boyd.selftest/1"},
          {"ok", r.problems.empty()},
          {"test", "learn"},
          {"days", r.days},
          {"story", r.story},
          {"lineage", r.lineage},
          {"interrupted", r.interrupted},
          {"kept", r.problems.empty() ? "" : r.scratch},
          {"problems", r.problems}};
}

void show(const learning_walk_report& r, const terminal& t) {
  print(std::to_string(r.days) + " days of one agent and one document\n");
  for (const auto& line : r.story)
    print("  " + printable(line) + "\n");
  if (!r.lineage.empty())
    print("\n$ boyd kg lineage release\n" + r.lineage + "\n");
  for (const auto& p : r.problems)
    print(t.paint(colour::bad, "  ! " + printable(p)) + "\n");
  if (r.problems.empty())
    print(t.paint(colour::good, "ok") +
          ": the document became a skill, which failed and was rolled back\n");
  else
    print(t.paint(colour::bad, "FAILED") + "; the home was kept in " + r.scratch + "\n");
}

int walk(const arguments& args, const std::string& directory) {
  signal_watch signals;
  const auto walked = walk_through_learning(directory, signals);
  if (!walked)
    return report(walked.error(), args.json);
  if (args.json)
    print(to_json(*walked).dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  else
    show(*walked, terminal_of_stdout(args));
  return walked->problems.empty() && !walked->interrupted ? exit_code::ok : exit_code::failure;
}

/// Beside the node's home, or where that would be made: on the same disk.
std::string directory_of(const arguments& args, const place& where) {
  std::error_code ignored;
  if (!args.dir.empty())
    return std::filesystem::absolute(args.dir, ignored).string();
  auto chosen = std::filesystem::absolute(where.home, ignored).parent_path();
  while (chosen.has_relative_path() && !std::filesystem::exists(chosen, ignored))
    chosen = chosen.parent_path();
  return chosen.string();
}

} // namespace

int run_selftest(const arguments& args) {
  if (args.crash == args.learn)
    return report({errc::invalid_argument,
                   "select one test: --crash or --learn",
                   {},
                   "boyd selftest --crash, or boyd selftest --learn"},
                  args.json);
  auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  const auto directory = directory_of(args, *where);
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    return report({errc::not_found, "directory not found", directory, "use --dir DIR"}, args.json);
  if (args.learn)
    return walk(args, directory);
  signal_watch signals;
  auto tried =
      run_crash_trial({directory, seconds{static_cast<std::int64_t>(args.seconds)}}, signals);
  if (!tried)
    return report(std::move(tried.error()), args.json);
  if (args.json)
    print(to_json(*tried, directory).dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  else
    show(*tried, directory, terminal_of_stdout(args));
  return tried->violations.empty() && !tried->interrupted ? exit_code::ok : exit_code::failure;
}

} // namespace boyd::app
