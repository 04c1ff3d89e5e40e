#include "boyd/improve/cycle_state.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <utility>

namespace boyd::improve {

namespace {

using json = nlohmann::ordered_json;

constexpr int schema_version = 1;
constexpr std::size_t shown_hash = 10;

template <class E>
using names_of = std::pair<E, std::string_view>;

constexpr std::array<names_of<phase>, 8> phases{{{phase::boot, "BOOT"},
                                                 {phase::scan, "SCAN"},
                                                 {phase::sense, "SENSE"},
                                                 {phase::select, "SELECT"},
                                                 {phase::execute, "EXECUTE"},
                                                 {phase::verify, "VERIFY"},
                                                 {phase::learn, "LEARN"},
                                                 {phase::checkpoint, "CHECKPOINT"}}};
constexpr std::array<names_of<improve_status>, 4> statuses{
    {{improve_status::running, "RUNNING"},
     {improve_status::completed, "COMPLETED"},
     {improve_status::failed, "FAILED"},
     {improve_status::paused, "PAUSED"}}};
constexpr std::array<names_of<failure_kind>, 6> failures{
    {{failure_kind::none, ""},
     {failure_kind::transient, "TRANSIENT"},
     {failure_kind::deterministic, "DETERMINISTIC"},
     {failure_kind::environment, "ENVIRONMENT"},
     {failure_kind::flaky, "FLAKY"},
     {failure_kind::policy, "POLICY"}}};
constexpr std::array<names_of<planned_change::action_t>, 3> actions{
    {{planned_change::action_t::create, "create"},
     {planned_change::action_t::modify, "modify"},
     {planned_change::action_t::remove, "delete"}}};
constexpr std::array<names_of<finding_source>, 3> sources{{{finding_source::lint, "lint"},
                                                           {finding_source::test, "test"},
                                                           {finding_source::hygiene, "hygiene"}}};

template <class E, std::size_t N>
std::string_view name_in(const std::array<names_of<E>, N>& names, E value) {
  for (const auto& [known, name] : names)
    if (known == value)
      return name;
  return names.front().second;
}

/// Throws json::exception: the reader below turns it into an error.
template <class E, std::size_t N>
E value_in(const std::array<names_of<E>, N>& names, const json& text) {
  const auto name = text.get<std::string>();
  for (const auto& [value, known] : names)
    if (known == name)
      return value;
  throw json::other_error::create(501, "unknown word: " + name, &text);
}

std::string day_and_time(utc_time t) {
  return format_rfc3339(t, true);
}

json json_of(const finding& f) {
  return {{"source", name_of(f.from)},
          {"scanner", f.scanner},
          {"rule", f.rule},
          {"path", f.path},
          {"line", f.line},
          {"test", f.test},
          {"message", f.message},
          {"text", f.text},
          {"is_warning", f.is_warning},
          {"unfixable", f.unfixable},
          {"is_group", f.is_group},
          {"file_hash", f.file_hash}};
}

finding finding_of(const json& j) {
  finding f;
  f.from = value_in(sources, j.at("source"));
  f.scanner = j.at("scanner");
  f.rule = j.at("rule");
  f.path = j.at("path");
  f.line = j.at("line");
  f.test = j.at("test");
  f.message = j.at("message");
  f.text = j.at("text");
  f.is_warning = j.at("is_warning");
  f.unfixable = j.at("unfixable");
  f.is_group = j.value("is_group", false); // states of older versions have neither
  f.file_hash = j.value("file_hash", "");
  return f;
}

json json_of(const candidate& c) {
  return {{"task_id", c.task_id}, {"source", name_of(c.what.from)}, {"priority", c.priority},
          {"title", c.title},     {"description", c.description},   {"estimated_effort", c.effort},
          {"blocked", c.blocked}, {"failures", c.failures},         {"finding", json_of(c.what)}};
}

candidate candidate_of(const json& j) {
  candidate c;
  c.task_id = j.at("task_id");
  c.priority = j.at("priority");
  c.title = j.at("title");
  c.description = j.at("description");
  c.effort = j.at("estimated_effort");
  c.blocked = j.at("blocked");
  c.failures = j.at("failures");
  c.what = finding_of(j.at("finding"));
  return c;
}

json json_of(const scan_results& r) {
  json scanners = json::array();
  for (const auto& s : r.scanners)
    scanners.push_back({{"name", s.name},
                        {"errors", s.errors},
                        {"failures", s.failures},
                        {"passed", s.passed},
                        {"problem", s.problem},
                        {"blocked", s.blocked},
                        {"is_test", s.is_test},
                        {"longer_than", s.longer_than}});
  return {{"scanners", std::move(scanners)},  {"lint_errors", r.lint_errors},
          {"test_failures", r.test_failures}, {"hygiene_issues", r.hygiene_issues},
          {"total_issues", r.total_issues},   {"advice", r.advice}};
}

scan_results results_of(const json& j) {
  scan_results r;
  for (const auto& s : j.at("scanners"))
    r.scanners.push_back({s.at("name"), s.at("errors"), s.at("failures"), s.at("passed"),
                          s.at("problem"), s.at("blocked"), s.value("is_test", false),
                          s.value("passed_tests", std::vector<std::string>()),
                          s.value("longer_than", "")});
  r.lint_errors = j.at("lint_errors");
  r.test_failures = j.at("test_failures");
  r.hygiene_issues = j.at("hygiene_issues");
  r.total_issues = j.at("total_issues");
  r.advice = j.at("advice").get<std::vector<std::string>>();
  return r;
}

/// `contents`: with the new contents, in which older secrets of a file may stand.
json json_of(const accepted_patch& p, bool contents) {
  json changes = json::array();
  for (const auto& c : p.changes) {
    changes.push_back({{"path", c.path},
                       {"action", name_of(c.action)},
                       {"before", c.before_hash},
                       {"mode", c.mode}});
    if (contents)
      changes.back()["after"] = c.after;
  }
  return {{"summary", p.summary},
          {"diff_lines", p.diff_lines},
          {"digest", p.digest},
          {"changes", std::move(changes)}};
}

accepted_patch patch_of(const json& j) {
  accepted_patch p;
  p.summary = j.at("summary");
  p.diff_lines = j.at("diff_lines");
  p.digest = j.at("digest");
  for (const auto& c : j.at("changes"))
    p.changes.push_back({c.at("path"), value_in(actions, c.at("action")), c.at("before"),
                         c.at("mode"), c.value("after", "")});
  return p;
}

json json_of(const spending& s) {
  constexpr double dollar = 1e6;
  return {{"usd", static_cast<double>(s.cost_microusd) / dollar},
          {"cost_microusd", s.cost_microusd},
          {"input_tokens", s.input_tokens},
          {"output_tokens", s.output_tokens},
          {"turns", s.turns}};
}

/// States of older versions have none.
spending spending_of(const json& j) {
  const auto it = j.find("cost");
  if (it == j.end())
    return {};
  return {it->at("cost_microusd"), it->at("input_tokens"), it->at("output_tokens"),
          it->at("turns")};
}

json json_of(const execution_result& e, bool contents) {
  return {
      {"executor", e.executor},   {"rung", e.rung},
      {"cost", json_of(e.spent)}, {"tries", e.tries},
      {"applied", e.applied},     {"refusals", e.refusals},
      {"evidence", e.evidence},   {"patch", e.patch ? json_of(*e.patch, contents) : json(nullptr)}};
}

json json_of(const verification_result& v) {
  return {{"proof_passed", v.proof_passed}, {"gate_passed", v.gate_passed}, {"detail", v.detail}};
}

json json_of(const failure_entry& f) {
  return {{"cycle_id", f.cycle_id}, {"task_id", f.task_id},    {"failure_class", name_of(f.kind)},
          {"phase", f.at_phase},    {"reason", f.reason},      {"approach", f.approach},
          {"executor", f.executor}, {"cost", json_of(f.spent)}};
}

json json_of(const success_entry& e) {
  return {{"cycle_id", e.cycle_id}, {"task_id", e.task_id},   {"kind", e.kind},
          {"approach", e.approach}, {"executor", e.executor}, {"cost", json_of(e.spent)}};
}

template <class T>
json list_of(const std::vector<T>& values) {
  json out = json::array();
  for (const auto& v : values)
    out.push_back(json_of(v));
  return out;
}

std::string dumped(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

/// The names are needed only while a patch may have to be compared with them.
void add_names(const scan_results& r, json& results) {
  for (std::size_t i = 0; i < r.scanners.size(); ++i)
    if (!r.scanners[i].passed_tests.empty())
      results["scanners"][i]["passed_tests"] = r.scanners[i].passed_tests;
}

json head_of(const cycle_state& s) {
  return {{"cycle_id", s.cycle_id},
          {"phase", name_of(s.at)},
          {"last_completed_phase", s.last_completed ? json(name_of(*s.last_completed)) : json()},
          {"status", name_of(s.status)},
          {"started_at", day_and_time(s.started_at)},
          {"completed_at", s.completed_at ? json(day_and_time(*s.completed_at)) : json()},
          {"reason", s.reason},
          {"outcome", s.outcome},
          {"failure_class", name_of(s.failure)},
          {"scan_results", json_of(s.results)}};
}

void read_kept(const json& j, cycle_state& s) {
  for (const auto& f : j.at("failure_log"))
    s.failure_log.push_back(
        {f.at("cycle_id"), f.at("task_id"), value_in(failures, f.at("failure_class")),
         f.at("phase"), f.at("reason"), f.at("approach"), f.value("executor", ""), spending_of(f)});
  for (const auto& e : j.at("successes"))
    s.successes.push_back({e.at("cycle_id"), e.at("task_id"), e.at("kind"), e.at("approach"),
                           e.value("executor", ""), spending_of(e)});
  s.strikes = j.at("strikes").get<std::map<std::string, int>>();
  s.paused_tasks = j.at("paused_tasks").get<std::vector<std::string>>();
  s.quarantined = j.at("quarantined").get<std::vector<std::string>>();
  s.set_aside = j.value("set_aside", std::map<std::string, std::string>());
  s.answers = j.at("answers");
  s.untold = j.value("untold", std::vector<std::string>());
}

/// Throws what nlohmann throws.
cycle_state state_of(const json& j) {
  cycle_state s;
  s.cycle_id = j.at("cycle_id");
  s.at = value_in(phases, j.at("phase"));
  if (const auto& last = j.at("last_completed_phase"); !last.is_null())
    s.last_completed = value_in(phases, last);
  s.status = value_in(statuses, j.at("status"));
  s.started_at = parse_rfc3339(j.at("started_at").get<std::string>()).value_or(utc_time{});
  if (const auto& end = j.at("completed_at"); !end.is_null())
    s.completed_at = parse_rfc3339(end.get<std::string>()).value_or(utc_time{});
  s.applies = j.at("apply");
  s.wants_approval = j.at("approve");
  s.commits = j.at("auto_commit");
  s.approved = j.at("approved");
  s.base = j.at("base");
  s.reason = j.at("reason");
  s.failure = value_in(failures, j.at("failure_class"));
  s.outcome = j.at("outcome");
  s.results = results_of(j.at("scan_results"));
  for (const auto& c : j.at("candidates"))
    s.candidates.push_back(candidate_of(c));
  if (const auto& c = j.at("selected_task"); !c.is_null())
    s.selected = candidate_of(c);
  const auto& e = j.at("execution_result");
  s.execution.executor = e.value("executor", "");
  s.execution.rung = e.value("rung", std::size_t{0});
  s.execution.spent = spending_of(e);
  s.execution.tries = e.at("tries");
  s.execution.applied = e.at("applied");
  s.execution.refusals = e.at("refusals").get<std::vector<std::string>>();
  s.execution.evidence = e.value("evidence", "");
  if (const auto& p = e.at("patch"); !p.is_null())
    s.execution.patch = patch_of(p);
  const auto& v = j.at("verification_result");
  s.verification = {v.at("proof_passed"), v.at("gate_passed"), v.at("detail")};
  s.commit = j.at("commit");
  read_kept(j, s);
  return s;
}

} // namespace

std::string_view name_of(phase p) noexcept {
  return name_in(phases, p);
}

std::string_view name_of(improve_status s) noexcept {
  return name_in(statuses, s);
}

std::string_view name_of(failure_kind k) noexcept {
  return name_in(failures, k);
}

std::string_view name_of(planned_change::action_t a) noexcept {
  return name_in(actions, a);
}

std::string state_json(const cycle_state& s) {
  json j{{"schema_version", schema_version}};
  j.update(head_of(s));
  j["apply"] = s.applies;
  j["approve"] = s.wants_approval;
  j["auto_commit"] = s.commits;
  j["approved"] = s.approved;
  j["base"] = s.base;
  j["candidates"] = list_of(s.candidates);
  j["selected_task"] = s.selected ? json_of(*s.selected) : json(nullptr);
  // Who reads it needs the contents only while the patch is not settled.
  const bool is_settled = !s.is_open() && !s.awaits_approval();
  j["execution_result"] = json_of(s.execution, !is_settled);
  if (!is_settled)
    add_names(s.results, j["scan_results"]);
  j["verification_result"] = json_of(s.verification);
  j["commit"] = s.commit;
  j["failure_log"] = list_of(s.failure_log);
  j["successes"] = list_of(s.successes);
  j["strikes"] = s.strikes;
  j["paused_tasks"] = s.paused_tasks;
  j["quarantined"] = s.quarantined;
  j["set_aside"] = s.set_aside;
  j["answers"] = s.answers;
  j["untold"] = s.untold;
  return dumped(j);
}

result<cycle_state> read_state(std::string_view text) {
  const auto mended = mend_json(text);
  if (!mended)
    return fail(mended.error());
  try {
    const auto j = json::parse(mended->text);
    if (const int version = j.at("schema_version"); version != schema_version)
      return fail(errc::corrupt,
                  "schema_version " + std::to_string(version) +
                      " is not one that this program reads",
                  {}, "use the program that wrote it, or move the file away to begin anew");
    return state_of(j);
  } catch (const json::exception& e) {
    return fail(errc::corrupt, std::string("the state cannot be read: ") + e.what());
  }
}

std::string why_unreadable(std::string_view text) {
  const auto read = read_state(text);
  return read ? std::string() : to_string(read.error());
}

spending& spending::operator+=(const spending& more) {
  cost_microusd += more.cost_microusd;
  input_tokens += more.input_tokens;
  output_tokens += more.output_tokens;
  turns += more.turns;
  return *this;
}

bool went_wrong(const cycle_state& s) noexcept {
  return s.status == improve_status::failed ||
         (s.status == improve_status::paused && s.applies && !s.awaits_approval());
}

std::string step_event(std::string_view text) {
  return json{{"event", "step"}, {"text", text}}.dump(-1, ' ', false,
                                                      json::error_handler_t::replace) +
         "\n";
}

std::string failed_event(failure_kind kind, const std::string& reason) {
  return json{{"event", "end"},
              {"good", false},
              {"failure_class", name_of(kind)},
              {"reason", reason}}
             .dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

std::string end_event(const cycle_state& s) {
  const auto word = s.outcome.empty() ? std::string(name_of(s.status)) : s.outcome;
  const auto& by = s.execution.executor;
  std::string told = word + (s.selected ? ": " + s.selected->title : std::string()) + ": " +
                     s.reason + (by.empty() ? "" : " (by " + by + ")");
  if (!s.commit.empty())
    told += "; commit " + s.commit.substr(0, shown_hash);
  json end{{"event", "end"},
           {"good", !went_wrong(s)},
           {"cycle_id", s.cycle_id},
           {"status", name_of(s.status)},
           {"outcome", s.outcome},
           {"failure_class", name_of(s.failure)},
           {"reason", s.reason},
           {"told", told},
           {"executor", by},
           {"commit", s.commit},
           {"cost", json_of(s.execution.spent)}};
  if (s.selected && !s.outcome.empty()) {
    end["task"] = s.selected->task_id;
    end["source"] = name_of(s.selected->what.from);
    end["title"] = s.selected->title;
    if (s.outcome != "SUCCESS")
      end["cause"] = s.reason;
    if (s.execution.patch)
      end["approach"] = s.execution.patch->summary;
  }
  return end.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string candidates_json(const cycle_state& s) {
  json list = json::array();
  for (const auto& c : s.candidates) {
    auto j = json_of(c);
    j["passed_over"] = why_passed_over(c, s);
    list.push_back(std::move(j));
  }
  return dumped({{"schema", "boyd.candidates/1"},
                 {"cycle_id", s.cycle_id},
                 {"total", s.candidates.size()},
                 {"candidates", std::move(list)}});
}

std::string report_json(const cycle_state& s) {
  json j{{"schema", "boyd.improve/1"}};
  j.update(head_of(s));
  j["candidates"] = s.candidates.size();
  j["selected_task"] = s.selected ? json_of(*s.selected) : json(nullptr);
  j["execution_result"] = json_of(s.execution, false);
  j["verification_result"] = json_of(s.verification);
  j["executor"] = s.execution.executor;
  j["cost"] = json_of(s.execution.spent);
  j["commit"] = s.commit;
  j["paused_tasks"] = s.paused_tasks;
  j["quarantined"] = s.quarantined;
  j["duration_ms"] = s.completed_at ? (*s.completed_at - s.started_at).count() : 0;
  return dumped(j);
}

std::string cycle_id_of(utc_time t) {
  const auto text = format_rfc3339(t); // 2026-02-13T10:00:00Z
  std::string id;
  for (const char c : text.substr(0, text.size() - 1))
    if (c == 'T')
      id += '_';
    else if (c != '-' && c != ':')
      id += c;
  return id;
}

} // namespace boyd::improve
