#include "boyd/queue/row_record.hpp"

#include "boyd/core/sha256.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <utility>

namespace boyd::queue {

namespace {

using json = nlohmann::json;

/// Who wrote such a record, in the place of a version.
constexpr const char* writer = "the database";

std::string compact(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string word_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::int64_t figure_in(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

std::optional<utc_time> moment_in(const json& object, const char* key) {
  const auto t = parse_rfc3339(word_in(object, key));
  return t ? std::optional(*t) : std::nullopt;
}

/// What is kept is the whole prompt, in one piece.
record::kept_text kept_whole(const std::string& prompt) {
  record::kept_text kept;
  kept.hash = sha256_hex(prompt);
  kept.bytes = static_cast<std::int64_t>(prompt.size());
  kept.text = prompt;
  return kept;
}

/// A program that began has used some memory; a script's answer is measured as nothing.
std::string kind_of(const run_usage& u) {
  const bool is_nothing = u.wall_ms && u.max_rss_kb.value_or(0) == 0;
  return u.calls ? "chat" : is_nothing ? "script" : "command";
}

json figures_of(const run_usage& u) {
  json all = json::object();
  const auto add = [&](const char* key, const usage_figure& figure) {
    if (figure)
      all[key] = *figure;
  };
  add("calls", u.calls);
  add("tool_calls", u.tool_calls);
  add("input_tokens", u.input_tokens);
  add("output_tokens", u.output_tokens);
  add("cost_microusd", u.cost_microusd);
  return all;
}

record::turn turn_of(const std::string& what_ran, const json& outcome, std::uint64_t cut) {
  record::turn t;
  t.action = compact({{"kind", what_ran == "chat" ? "model_call" : what_ran}});
  t.result = compact({{"execution", word_in(outcome, "execution")},
                      {"exit_code", figure_in(outcome, "exit_code")},
                      {"output_cut", cut}});
  return t;
}

record::attempt earlier(const json& a, const dispatch& row) {
  record::attempt out;
  out.fence = figure_in(a, "fence");
  out.number = static_cast<int>(figure_in(a, "attempt"));
  out.version = writer;
  out.prompt = kept_whole(row.prompt);
  out.started_at = moment_in(a, "started_at").value_or(utc_time{});
  out.ended_at = moment_in(a, "ended_at");
  json outcome = a;
  for (const auto* key : {"output", "usage", "attempt", "fence", "node", "started_at", "ended_at"})
    outcome.erase(key);
  out.outcome = compact(outcome);
  out.turns.push_back(turn_of("command", outcome, 0));
  return out;
}

record::attempt latest(const dispatch& row) {
  const auto& o = row.outcome;
  record::attempt a;
  a.fence = row.fence;
  a.number = row.attempt;
  a.level = o.usage.context.empty() ? "full" : o.usage.context;
  a.version = writer;
  a.prompt = kept_whole(row.prompt);
  a.started_at = row.started_at.value_or(row.created_at);
  if (o.execution == execution_verdict::none)
    return a;
  const auto what_ran = kind_of(o.usage);
  json executor{{"kind", what_ran}};
  if (!o.usage.provider.empty())
    executor["provider"] = o.usage.provider;
  if (!o.usage.model.empty())
    executor["model"] = o.usage.model;
  a.executor = compact(executor);
  a.ended_at = row.finished_at.value_or(a.started_at);
  const json outcome{{"execution", name_of(o.execution)},
                     {"claim", name_of(o.claim)},
                     {"verification", name_of(o.verification)},
                     {"failure", name_of(o.failure)},
                     {"exit_code", o.exit_code},
                     {"summary", o.summary},
                     {"error", o.error},
                     {"usage", figures_of(o.usage)}};
  a.outcome = compact(outcome);
  a.turns.push_back(turn_of(what_ran, outcome, o.output_cut));
  return a;
}

} // namespace

record::execution execution_of(const dispatch& row) {
  record::execution e;
  e.dispatch_id = row.dispatch_id;
  e.kernel_id = row.kernel_id;
  e.cycle_id = row.cycle_id;
  e.agent_id = row.agent_id;
  const auto before = json::parse(row.attempts_json, nullptr, false);
  if (before.is_array())
    for (const auto& a : before)
      if (a.is_object() && figure_in(a, "fence") != row.fence)
        e.attempts.push_back(earlier(a, row));
  if (row.fence > 0 && row.status != dispatch_status::pending)
    e.attempts.push_back(latest(row));
  return e;
}

} // namespace boyd::queue
