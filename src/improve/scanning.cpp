#include "boyd/config/redact.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/improve/task_prompt.hpp"
#include "proof_command.hpp"
#include "report_internal.hpp"
#include "scanning_internal.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t text_file_bytes = std::size_t{1} << 20;
constexpr std::size_t told_characters = 400;
constexpr int shell_cannot_run = 126;
constexpr int shell_cannot_find = 127;
/// pytest: no test was collected.
constexpr int nothing_collected = 5;

std::string last_line(std::string_view text) {
  const auto lines = split(text, '\n');
  for (auto it = lines.rbegin(); it != lines.rend(); ++it)
    if (const auto line = trim(*it); !line.empty())
      return config::redact_text(std::string(cut_characters(sanitize_utf8(line), told_characters)),
                                 {});
  return {};
}

std::string words_of(const command_end& end) {
  const auto err = last_line(end.err);
  return err.empty() ? last_line(end.out) : err;
}

bool names_passed(report_format f) {
  return f == report_format::junit || f == report_format::ctest || f == report_format::pytest ||
         f == report_format::tap || f == report_format::go_test || f == report_format::cargo;
}

/// What findings are counted by where lines and texts may have moved.
using place_t = std::tuple<std::string, std::string, std::string, std::string>;

place_t place_of(const finding& f) {
  return {f.scanner, f.rule, f.from == finding_source::test ? std::string() : f.path, f.test};
}

std::map<place_t, std::size_t> counted(const std::vector<finding>& findings) {
  std::map<place_t, std::size_t> all;
  for (const auto& f : findings)
    ++all[place_of(f)];
  return all;
}

std::map<place_t, std::size_t> counted(const cycle_state& s) {
  std::map<place_t, std::size_t> all;
  for (const auto& c : s.candidates)
    ++all[place_of(c.what)];
  return all;
}

/// What tells of the same on standard error, too.
bool tells_on_both(report_format f) {
  return f == report_format::lines || f == report_format::go_test || f == report_format::cargo;
}

/// A person reads what it prints, not only a program.
bool is_readable(const scanner_settings& s) {
  return s.parser != report_format::sarif && s.parser != report_format::eslint &&
         s.parser != report_format::go_test;
}

/// From the first line on that speaks of an error; the end of it all where none does.
std::string errors_of(const command_end& end) {
  const auto all = end.out + (end.out.empty() || end.out.ends_with('\n') ? "" : "\n") + end.err;
  const auto at = all.find("error");
  if (at == all.npos)
    return words_of(end);
  const auto begin = all.rfind('\n', at);
  return all.substr(begin == all.npos ? 0 : begin + 1);
}

/// Of a task that stands for tests which could not run: what they tell now was hidden before.
bool was_hidden(const cycle_state& before, const finding& f) {
  if (!before.selected || !before.selected->what.is_group)
    return false;
  const auto& group = before.selected->what;
  if (f.scanner != group.scanner || f.from != finding_source::test)
    return false;
  return group.test == build_group || group.test == bail_out ||
         f.test.starts_with(group.test + "::") || f.test.starts_with(group.test + ".");
}

/// A report of an earlier run is not this one's.
bool is_same(const result<file_info>& a, const result<file_info>& b) {
  return a && b && a->kind == b->kind && a->inode == b->inode && a->modified == b->modified &&
         a->size == b->size;
}

const scanner_result* named(const scan_results& r, const std::string& name) {
  const auto it = std::ranges::find(r.scanners, name, &scanner_result::name);
  return it == r.scanners.end() ? nullptr : &*it;
}

std::string fewer(const scanner_result& before, const scanner_result& now) {
  return now.name + ": fewer tests ran than before (" + std::to_string(now.passed + now.failures) +
         " instead of " + std::to_string(before.passed + before.failures) + ")";
}

/// What a later run of the same scanner does not have any more; empty: nothing is lost.
std::string lost(const scanner_result& before, const scanner_result& now) {
  if (now.passed + now.failures < before.passed + before.failures)
    return fewer(before, now);
  if (!before.problem.empty() || before.passed_tests.empty())
    return {};
  if (now.passed_tests.size() != now.passed)
    return now.name + ": the names of its tests are too long now to be compared with those before";
  for (const auto& test : before.passed_tests)
    if (!std::ranges::binary_search(now.passed_tests, test))
      return now.name + ": a test that passed before does not pass now, or is gone: " + test;
  return {};
}

std::string said(const finding& f) {
  return (f.test.empty() ? f.rule + " in " + f.path : f.test) + ": " +
         std::string(cut_characters(f.message, told_characters));
}

} // namespace

std::string why_not_started(const command_end& end) {
  if (!end.started)
    return end.start_error;
  return end.exit_code == shell_cannot_find || end.exit_code == shell_cannot_run ? words_of(end)
                                                                                 : std::string();
}

std::string why_not_run(const command_end& end) {
  if (auto why = why_not_started(end); !why.empty() || end.exit_code == 0)
    return why;
  auto last = last_line(end.err);
  for (const auto* words : {"No module named pytest", "command not found"})
    if (last.find(words) != std::string::npos)
      return last;
  return {};
}

void scanning::judge_end(const scanner_settings& s, const command_end& end, seen& into) const {
  auto& told = into.told;
  // What has told of a test has run, whatever the code that it tests says.
  const bool is_silent = into.report.findings.empty() && into.report.passed.empty();
  if (auto why = is_silent ? why_not_run(end) : why_not_started(end); !why.empty()) {
    told.problem = std::move(why);
    told.blocked = true;
    into.failure = failure_kind::environment;
    return;
  }
  if (end.timed_out) {
    told.problem = "it took longer than " + told.longer_than + "; what it had told by then counts";
    into.failure = failure_kind::transient;
    return;
  }
  const bool failed = end.exit_code != 0;
  if (s.parser == report_format::exit && failed) {
    finding f;
    f.from = s.source;
    f.scanner = s.name;
    f.test = s.source == finding_source::test ? s.name : std::string();
    f.rule = s.source == finding_source::test ? std::string() : s.name;
    f.message = clean(words_of(end));
    into.report.findings.push_back(std::move(f));
  }
  const bool none = s.parser == report_format::pytest && end.exit_code == nothing_collected;
  if (failed && !none && into.report.findings.empty()) {
    told.problem = "it ended with code " + std::to_string(end.exit_code) +
                   " and told of no finding: " + words_of(end);
    told.blocked = true;
    into.failure = failure_kind::deterministic;
  }
}

milliseconds scanning::time_for(const scanner_settings& s) const {
  return s.is_detected && !order_.options.apply ? std::min(detected_timeout, s.timeout) : s.timeout;
}

std::string scanning::clean(std::string_view text) const {
  return config::redact_text(sanitize_utf8(text), order_.settings.secrets);
}

bool scanning::builds(const scanner_settings& s) const {
  return !s.build.empty() && (order_.options.apply || !s.is_detected);
}

bool scanning::build(const scanner_settings& s, seen& into) {
  const auto end = ports_.run({s.build, order_.root, {}, s.timeout});
  if (end.exit_code == 0)
    return true;
  into.told.problem = why_not_run(end);
  if (!into.told.problem.empty() || end.timed_out) {
    if (end.timed_out)
      into.told.problem = "its build took longer than " + format_duration(s.timeout);
    into.told.blocked = true;
    into.failure = end.timed_out ? failure_kind::transient : failure_kind::environment;
    return false;
  }
  report_builder builder(s.source, s.name, order_.root, order_.settings.secrets);
  builder.broken(build_group, errors_of(end));
  into.report = builder.take();
  into.printed = shortened(clean(end.out + end.err), shown_output_bytes);
  ++(s.source == finding_source::test ? into.told.failures : into.told.errors);
  return false;
}

void scanning::keep_names(const scanner_settings& s, seen& into) const {
  if (!names_passed(s.parser) || !into.told.is_test)
    return;
  std::size_t bytes = 0;
  for (const auto& name : into.report.passed)
    bytes += name.size();
  if (bytes <= kept_names_bytes) {
    into.told.passed_tests = into.report.passed;
    std::ranges::sort(into.told.passed_tests);
  } else if (ports_.tell) {
    ports_.tell(s.name + ": the names of its tests are longer than " +
                std::to_string(kept_names_bytes) + " bytes, so only their number is compared");
  }
}

scanning::seen scanning::run(const scanner_settings& s, const proof_command& command) {
  seen r;
  r.told.name = s.name;
  r.told.is_test = s.source == finding_source::test;
  if (builds(s) && !build(s, r))
    return r;
  const auto report_path = order_.root + "/" + s.report;
  const auto earlier =
      s.report.empty() ? result<file_info>(file_info{}) : ports_.files.stat(report_path);
  const auto end =
      ports_.run({command.argv, order_.root, {}, time_for(s), command.environment, {}});
  if (end.timed_out)
    r.told.longer_than = format_duration(time_for(s));
  std::string text = end.out;
  if (tells_on_both(s.parser))
    text += "\n" + end.err;
  if (is_readable(s))
    r.printed = shortened(clean(without_escapes(end.out + end.err)), shown_output_bytes);
  const bool has_run = why_not_started(end).empty();
  if (!s.report.empty() && has_run) {
    auto file = ports_.files.read_below(order_.root, s.report, report_bytes);
    text = file ? std::move(*file) : std::string();
    if (!file)
      r.told.problem = "its report cannot be read: " + file.error().what;
    else if (is_same(earlier, ports_.files.stat(report_path)))
      r.told.problem = "it did not write its report " + s.report;
  }
  if (has_run && r.told.problem.empty()) {
    auto report =
        read_report(s.parser, s.source, s.name, order_.root, text, order_.settings.secrets);
    if (report)
      r.report = std::move(*report);
    else if (!end.timed_out)
      r.told.problem = to_string(report.error());
  }
  if (!r.told.problem.empty()) {
    auto why = why_not_run(end);
    r.told.blocked = true;
    r.failure = why.empty() ? failure_kind::deterministic : failure_kind::environment;
    if (!why.empty())
      r.told.problem = clean(why);
    return r;
  }
  if (builds(s)) {
    r.report.ran.insert(build_group);
    for (auto& f : r.report.findings)
      f.unfixable.clear(); // it was built just now
  }
  if (end.cut > 0)
    r.told.problem = std::to_string(end.cut) + " bytes of its output were not kept";
  judge_end(s, end, r);
  r.told.problem = clean(r.told.problem);
  r.told.passed = r.report.passed.size();
  keep_names(s, r);
  for (const auto& f : r.report.findings)
    ++(f.from == finding_source::test ? r.told.failures : r.told.errors);
  if (r.report.more > 0)
    r.told.problem = std::to_string(r.report.more) + " more findings were counted, not kept";
  return r;
}

void scanning::look_at_files(std::vector<finding>& findings) {
  struct looked_at {
    std::string hash;
    std::vector<std::string> lines;
  };
  std::map<std::string, looked_at> files;
  for (auto& f : findings) {
    if (f.path.empty())
      continue;
    auto [it, is_new] = files.try_emplace(f.path);
    if (is_new)
      if (const auto file = ports_.inside.read(order_.root, f.path, 0, text_file_bytes)) {
        it->second.hash = sha256_hex(file->text);
        const auto plain = redact_lines(sanitize_utf8(file->text), order_.settings.secrets);
        for (const auto line : split(plain, '\n'))
          it->second.lines.emplace_back(trim(line));
      }
    f.file_hash = it->second.hash;
    const auto at = static_cast<std::size_t>(f.line);
    if (at > 0 && at <= it->second.lines.size() && f.text.empty() &&
        f.from != finding_source::hygiene)
      f.text = it->second.lines[at - 1];
  }
}

result<scan_report> scanning::hygiene() {
  scan_report report;
  if (!order_.settings.hygiene.enabled)
    return report;
  auto files = list_files(ports_, order_.root, {order_.settings.outputs, order_.settings.logs});
  if (!files)
    return fail(std::move(files.error()));
  hygiene_scan look(order_.settings.hygiene, *files);
  for (const auto& f : *files)
    if (look.wants(f))
      if (const auto text = ports_.inside.read(order_.root, f.path, 0, f.size))
        look.take(f.path, text->text);
  report.findings = look.findings();
  for (auto& f : report.findings) {
    f.message = clean(f.message);
    f.text = clean(f.text);
  }
  if (report.findings.size() > most_findings) {
    report.more = report.findings.size() - most_findings;
    report.findings.resize(most_findings);
  }
  return report;
}

std::vector<scanner_settings> scanning::scanners(scan_results& results) {
  if (!order_.settings.scanners.empty())
    return order_.settings.scanners;
  const auto has = [&](const std::string& path) {
    return ports_.inside.find(order_.root, path).has_value();
  };
  const auto text_of = [&](const std::string& path) {
    auto part = ports_.inside.read(order_.root, path, 0, text_file_bytes);
    return part ? std::move(part->text) : std::string();
  };
  std::vector<std::string> builds{"build"};
  if (const auto below = ports_.inside.list(order_.root, "build", most_findings))
    for (const auto& e : below->entries)
      if (e.kind == file_kind::directory)
        builds.push_back("build/" + e.name);
  const auto files = list_files(ports_, order_.root, {});
  auto found = detect_scanners(has, text_of, files.value_or(std::vector<listed_file>{}), builds);
  results.advice = std::move(found.advice);
  return std::move(found.scanners);
}

whole_scan scanning::scan() {
  whole_scan all;
  for (const auto& s : scanners(all.results)) {
    if (ports_.tell)
      ports_.tell("scanning: " + s.name);
    auto r = run(s, {s.argv, {}});
    all.results.lint_errors += r.told.errors;
    all.results.test_failures += r.told.failures;
    all.results.scanners.push_back(std::move(r.told));
    std::ranges::move(r.report.findings, std::back_inserter(all.findings));
  }
  if (ports_.tell && order_.settings.hygiene.enabled)
    ports_.tell("scanning: hygiene");
  scanner_result told;
  told.name = "hygiene";
  auto report = hygiene();
  if (report) {
    told.errors = report->findings.size();
    if (report->more > 0)
      told.problem = std::to_string(report->more) + " more findings were counted, not kept";
    all.results.hygiene_issues = report->findings.size();
    std::ranges::move(report->findings, std::back_inserter(all.findings));
  } else {
    told.problem = to_string(report.error());
    told.blocked = true;
  }
  all.results.scanners.push_back(std::move(told));
  all.results.total_issues = all.findings.size();
  look_at_files(all.findings);
  return all;
}

check_end scanning::prove_once(const candidate& task, const cycle_state& before) {
  const auto& f = task.what;
  scan_report report;
  std::string printed;
  report_format form = report_format::lines;
  if (f.from == finding_source::hygiene) {
    auto looked = hygiene();
    if (!looked)
      return {false, failure_kind::environment, to_string(looked.error())};
    report = std::move(*looked);
  } else {
    scan_results ignored;
    const auto all = scanners(ignored);
    const auto s = std::ranges::find(all, f.scanner, &scanner_settings::name);
    if (s == all.end())
      return {false, failure_kind::environment,
              "the scanner " + f.scanner + " is not there any more"};
    form = s->parser;
    auto r = run(*s, proof_command::of(*s, f));
    if (r.failure != failure_kind::none)
      return {false, r.failure, s->name + ": " + r.told.problem, std::move(r.printed), false};
    if (proof_command::of(*s, f).argv == s->argv)
      proved_[s->name] = r.told;
    report = std::move(r.report);
    printed = std::move(r.printed);
  }
  const auto place = place_of(f);
  const auto now = counted(report.findings);
  const auto was = counted(before);
  const auto left = now.contains(place) ? now.at(place) : 0;
  const auto had = was.contains(place) ? was.at(place) : 1;
  if (left >= had) {
    const auto it = std::ranges::find_if(report.findings,
                                         [&](const finding& g) { return place_of(g) == place; });
    return {false, failure_kind::deterministic,
            it == report.findings.end() ? "it is still found" : said(*it), std::move(printed)};
  }
  if (f.from != finding_source::test || (!names_passed(form) && !f.is_group))
    return {true, failure_kind::none, {}};
  const bool is_there = f.is_group
                            ? report.ran.contains(f.test)
                            : std::ranges::find(report.passed, f.test) != report.passed.end();
  if (is_there)
    return {true, failure_kind::none, {}};
  const auto broken = std::ranges::find(report.findings, true, &finding::is_group);
  if (broken != report.findings.end()) // which is why it did not run
    return {false, failure_kind::deterministic, said(*broken), std::move(printed)};
  return {false, failure_kind::deterministic,
          f.is_group ? "nothing of " + f.test + " ran: tests that are gone prove nothing"
                     : f.test + " is not among the tests that passed: a test that is gone proves "
                                "nothing",
          std::move(printed)};
}

check_end scanning::recheck(const candidate& task, const cycle_state& before) {
  auto end = prove_once(task, before);
  for (int i = 1; i < most_tries && end.failure == failure_kind::transient; ++i)
    end = prove_once(task, before);
  return end;
}

check_end scanning::prove(const candidate& task, const cycle_state& before) {
  auto end = recheck(task, before);
  if (end.passed || end.failure != failure_kind::deterministic ||
      task.what.from != finding_source::test)
    return end;
  if (prove_once(task, before).passed)
    return {false, failure_kind::flaky, "it failed, then passed without a change: " + end.detail};
  return end;
}

/// A gate of the operator's cannot tell whether a patch took tests away.
check_end scanning::count_tests(const cycle_state& before) {
  scan_results now;
  const auto all = scanners(now);
  for (const auto& s : all) {
    const auto* earlier = named(before.results, s.name);
    // A run that did not come to its end has no number to compare.
    if (s.source != finding_source::test || !names_passed(s.parser) || earlier == nullptr ||
        !earlier->problem.empty())
      continue;
    if (const auto proved = proved_.find(s.name); proved != proved_.end()) {
      now.scanners.push_back(proved->second);
      continue;
    }
    auto r = run(s, {s.argv, {}});
    if (r.failure != failure_kind::none)
      return {false, r.failure, s.name + ": " + r.told.problem};
    now.scanners.push_back(std::move(r.told));
  }
  proved_.clear(); // who asks again wants another run
  for (const auto& earlier : before.results.scanners) {
    const auto* later = named(now, earlier.name);
    if (later == nullptr && earlier.passed > 0 && earlier.problem.empty())
      return {false, failure_kind::deterministic,
              "the scanner " + earlier.name + " is not found any more"};
    if (later == nullptr)
      continue;
    if (auto what = lost(earlier, *later); !what.empty())
      return {false, failure_kind::deterministic, std::move(what)};
  }
  return {true, failure_kind::none, {}};
}

check_end scanning::guard_once(const cycle_state& before) {
  for (const auto& argv : order_.settings.gate) {
    const auto end = ports_.run({argv, order_.root, {}, order_.settings.gate_timeout});
    if (auto why = why_not_run(end); !why.empty())
      return {false, failure_kind::environment, argv.front() + ": " + why};
    if (end.timed_out)
      return {false, failure_kind::transient, argv.front() + " took too long"};
    if (end.exit_code != 0)
      return {false, failure_kind::deterministic, argv.front() + ": " + clean(words_of(end))};
  }
  if (!order_.settings.gate.empty())
    return count_tests(before);
  auto now = scan();
  const auto was = counted(before);
  for (const auto& one : counted(now.findings)) {
    const auto& place = one.first; // a binding cannot be captured by Clang 14
    const auto count = one.second;
    const auto it = was.find(place);
    if (count <= (it == was.end() ? 0 : it->second))
      continue;
    const auto f =
        std::ranges::find_if(now.findings, [&](const finding& g) { return place_of(g) == place; });
    if (was_hidden(before, *f))
      continue;
    return {false, failure_kind::deterministic, "something new is found: " + said(*f), {}};
  }
  for (const auto& s : before.results.scanners)
    if (named(now.results, s.name) == nullptr)
      return {false, failure_kind::deterministic,
              "the scanner " + s.name +
                  " is not found any more: a patch must not remove the tests"};
  for (const auto& s : now.results.scanners) {
    const auto* earlier = named(before.results, s.name);
    if (!s.problem.empty() && (earlier == nullptr || earlier->problem.empty()))
      return {false, failure_kind::deterministic, s.name + ": " + s.problem};
    if (earlier == nullptr)
      continue;
    if (auto what = lost(*earlier, s); !what.empty())
      return {false, failure_kind::deterministic, std::move(what)};
  }
  return {true, failure_kind::none, {}};
}

check_end scanning::guard(const cycle_state& before) {
  auto end = guard_once(before);
  for (int i = 1; i < most_tries && end.failure == failure_kind::transient; ++i)
    end = guard_once(before);
  if (end.passed || end.failure != failure_kind::deterministic)
    return end;
  // What fails only sometimes is not this change's fault.
  auto again = guard_once(before);
  if (again.passed)
    again.detail = "passed when it was run again; before: " + end.detail;
  return again;
}

} // namespace boyd::improve
