#include "actors/context/core.hpp"
#include "actors/executor/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/context/reading.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/memory/tokens.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/queue/usage_json.hpp"
#include "src/core/json_values.hpp"

#include <caf/send.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

/// What a run was told, read, did and cited: executions/<dispatch_id>/record.json.
namespace boyd::executing {

using nlohmann::json;

namespace {

std::string_view kind_of(const config::executor& run) {
  return std::holds_alternative<config::chat_executor>(run) ? "model_call" : config::name_of(run);
}

bool is_enforced(const config::agent& agent) {
  using contract = config::citation_contract;
  const bool is_model = std::holds_alternative<config::chat_executor>(agent.run) ||
                        std::holds_alternative<config::agent_cli_executor>(agent.run);
  return agent.reads.contract == contract::enforce ||
         (agent.reads.contract == contract::by_executor && is_model);
}

/// A requirement in words.
std::string text_of(const config::requirement& r) {
  constexpr std::array<std::string_view, 6> names{"exit_zero",   "artifact", "tool_action",
                                                  "no_question", "command",  "schema"};
  auto text = std::string(names.at(static_cast<std::size_t>(r.kind)));
  if (!r.argument.empty())
    text += " " + r.argument;
  for (const auto& word : r.argv)
    text += " " + word;
  return text;
}

std::string_view name_of(context::order strategy) {
  return strategy == context::order::all      ? "all"
         : strategy == context::order::recent ? "recent"
                                              : "ranked";
}

/// What each requirement's check found.
json requirements_json(const executor_state& s) {
  json all = json::array();
  const auto& wanted = s.order.agent->require;
  std::vector<exec::check_result> found;
  if (s.attempt) {
    const std::lock_guard lock(s.attempt->mutex);
    found = s.attempt->core.findings();
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool looked = i < found.size();
    all.push_back({{"requirement", config::redact_text(text_of(wanted[i]), s.secrets)},
                   {"looked_at", looked},
                   {"passed", looked && found[i].passed},
                   {"found", looked ? config::redact_text(found[i].text, s.secrets) : ""}});
  }
  return all;
}

json usage_json(const run_usage& u) {
  json all = json::object();
  const auto add = [&](const char* key, const usage_figure& figure) {
    if (figure)
      all[key] = *figure;
  };
  add("calls", u.calls);
  add("turns", u.turns);
  add("tool_calls", u.tool_calls);
  add("denied", u.denied);
  add("input_tokens", u.input_tokens);
  add("output_tokens", u.output_tokens);
  add("cost_microusd", u.cost_microusd);
  if (u.sandbox || u.worktree) {
    const auto whole = json::parse(queue::usage_json(u), nullptr, false);
    for (const auto* key : {"sandbox", "worktree"})
      if (const auto& part = part_in(whole, key); part.is_object())
        all[key] = part;
  }
  return all;
}

json outcome_json(const executor_state& s, const run_outcome& o) {
  return {{"execution", boyd::name_of(o.execution)},
          {"claim", boyd::name_of(o.claim)},
          {"verification", boyd::name_of(o.verification)},
          {"failure", boyd::name_of(o.failure)},
          {"exit_code", o.exit_code},
          {"summary", o.summary},
          {"error", o.error},
          {"requirements", requirements_json(s)},
          {"usage", usage_json(o.usage)}};
}

/// What runs it, and by which rules.
json executor_json(const executor_state& s) {
  const auto& agent = *s.order.agent;
  json all{{"kind", config::name_of(agent.run)},
           {"contract", is_enforced(agent) ? "enforce" : "observe"},
           {"strategy", name_of(agent.reads.strategy)},
           {"budget_tokens", agent.reads.budget_tokens}};
  if (!s.items.empty()) {
    const auto& row = s.order.work->row;
    const auto rule = ranking_of(*s.order.configuration, row.kernel_id, row.dispatch_id);
    all["learning"] = context::name_of(rule.method);
    if (rule.method == context::learning_method::bandit)
      all["seed"] = rule.seed;
  }
  if (const auto* chat = std::get_if<config::chat_executor>(&agent.run)) {
    all["max_turns"] = chat->max_turns;
    all["max_output_tokens"] = chat->max_output_tokens;
    if (chat->temperature)
      all["temperature"] = *chat->temperature;
    if (!chat->schema_json.empty())
      all["schema"] = json::parse(chat->schema_json, nullptr, false);
    const auto* provider = config::find_provider(*s.order.configuration, chat->provider_id);
    all["provider"] = chat->provider_id;
    all["model"] = !chat->model.empty()  ? chat->model
                   : provider != nullptr ? provider->model
                                         : std::string();
  } else if (const auto* command = std::get_if<config::command_executor>(&agent.run)) {
    auto line = command->shell;
    for (const auto& word : command->argv)
      line += (line.empty() ? "" : " ") + word;
    all["command"] = config::redact_text(std::move(line), s.secrets);
  } else if (const auto* cli = std::get_if<config::agent_cli_executor>(&agent.run)) {
    all["provider"] = cli->adapter.name;
    all["model"] = cli->model;
  }
  return all;
}

/// The calls of tools that an answer of a model holds, by their ids: "tool arguments".
std::map<std::string, std::string> calls_in(const json& message) {
  std::map<std::string, std::string> calls;
  const auto list = part_in(message, "tool_calls");
  for (const auto& c : list) {
    const auto function = c.is_object() ? part_in(c, "function") : json();
    if (function.is_object())
      calls[text_in(c, "id")] = text_in(function, "name") + " " + text_in(function, "arguments");
  }
  return calls;
}

/// The arguments of "tool arguments".
json arguments_in(const std::string& call) {
  const auto blank = call.find(' ');
  auto arguments =
      blank == std::string::npos ? json() : json::parse(call.substr(blank + 1), nullptr, false);
  return arguments.is_object() ? arguments : json::object();
}

/// What a call of a tool names: its path, and the words of its command.
std::vector<std::string> names_in(const std::string& call) {
  const auto arguments = arguments_in(call);
  auto names = texts_in(arguments, "argv");
  names.push_back(text_in(arguments, "path"));
  std::erase(names, std::string());
  return names;
}

/// How an answer may name what the call's tool said. What could not be read, or was not allowed, is
/// nothing to cite; a command that failed has its output.
std::vector<std::string> names_of_result(const std::string& call, bool ok, bool is_allowed,
                                         const std::string& workspace) {
  const auto arguments = arguments_in(call);
  std::vector<std::string> names;
  if (ok)
    for (const auto* key : {"path", "file_path", "file", "url", "uri", "name"})
      if (const auto name = text_in(arguments, key); !name.empty()) {
        names.push_back(exec::path_below(workspace, name));
        names.push_back(name.starts_with('/') ? name : workspace + "/" + name);
      }
  if (is_allowed) {
    std::string line;
    for (const auto& word : texts_in(arguments, "argv"))
      line += (line.empty() ? "" : " ") + word;
    names.push_back(line);
    names.push_back(text_in(arguments, "command"));
  }
  std::erase(names, std::string());
  if (ok && names.empty())
    names.push_back(call.substr(0, call.find(' ')));
  return names;
}

/// The turn with this number; a new one is opened with what can be read now.
recorded_turn& turn_of(executor_state& s, int number) {
  const auto known = std::ranges::find(s.record->turns, number, &recorded_turn::number);
  if (known != s.record->turns.end())
    return *known;
  auto& turn = s.record->turns.emplace_back();
  turn.number = number;
  turn.snapshot = s.record->present;
  return turn;
}

recorded_turn& turn_of(executor_state& s, const json& event) {
  const auto it = event.find("turn");
  return turn_of(s, it != event.end() && it->is_number_integer() ? it->get<int>() : 1);
}

void note_answer(executor_state& s, const json& event) {
  auto& turn = turn_of(s, event);
  turn.action = {{"kind", "model_call"},
                 {"provider", part_in(event, "provider")},
                 {"model", part_in(event, "model")},
                 {"completion", part_in(event, "completion")},
                 {"tools", json::array()}};
  turn.result = {{"stop", part_in(event, "stop")},
                 {"usage", part_in(event, "usage")},
                 {"cost_microusd", part_in(event, "cost_microusd")},
                 {"tools", json::array()}};
  turn.governance = json::array();
  const auto message = part_in(event, "message");
  s.record->calls = calls_in(message);
  s.record->said = message.is_object() ? text_in(message, "content") : std::string();
  s.record->has_news = true;
}

void note_action(executor_state& s, const json& event) {
  auto& turn = turn_of(s, event);
  const auto call = config::redact_text(s.record->calls[text_in(event, "id")], s.secrets);
  const auto step = part_in(event, "step");
  s.record->steps[dump(step)] = call;
  // What was denied has not been done.
  if (text_in(event, "decision") == "allow")
    for (const auto& name : names_in(call))
      if (!name.empty())
        s.record->paths.push_back(exec::path_below(workspace_of(s.order), name));
  turn.action["tools"].push_back({{"step", step}, {"call", call}});
  turn.governance.push_back({{"step", step},
                             {"tool", part_in(event, "tool")},
                             {"decision", part_in(event, "decision")},
                             {"reason", part_in(event, "reason")}});
}

/// Of what tools said so much is compared with the answer, what came first.
constexpr std::size_t compared_bytes = 256u << 10;

/// Where nothing was offered to be cited, nothing is judged.
void keep_for_contract(executor_state& s, const std::string& id, tool_result result) {
  if (s.items.empty())
    return;
  s.record->results.erase(id);
  std::size_t kept = 0;
  for (const auto& [other, known] : s.record->results)
    kept += known.content.size();
  if (kept + result.content.size() > compared_bytes)
    result.content.clear();
  s.record->results.emplace(id, std::move(result));
}

bool is_allowed(const recorded_turn& turn, const json& step) {
  return std::ranges::any_of(turn.governance, [&](const json& g) {
    return part_in(g, "step") == step && text_in(g, "decision") == "allow";
  });
}

/// What a tool said is an item of the turns behind it.
void note_result(self_pointer self, const json& event) {
  auto& s = self->state;
  auto& turn = turn_of(s, event);
  const auto text = config::redact_text(text_in(event, "result"), s.secrets);
  const auto step = part_in(event, "step");
  const auto hash = sha256_hex(text);
  const bool ok = flag_in(event, "ok");
  turn.result["tools"].push_back({{"step", step}, {"ok", part_in(event, "ok")}, {"hash", hash}});
  const auto scope = context::scope_of_kernel(s.order.work->row.kernel_id);
  const auto& call = s.record->steps[dump(step)];
  s.record->present =
      context::with_result(s.record->present, scope, call, hash, memory::estimate_tokens(text));
  keep_for_contract(s, context::item_id(scope, context::item_type::runtime, call),
                    {names_of_result(call, ok, is_allowed(turn, step), workspace_of(s.order)),
                     ok ? text : std::string()});
  s.record->contents.push_back(text);
  s.record->has_news = true;
}

/// The tools of an agent's own program, as its events told of them: like a chat's.
void note_told_tools(executor_state& s) {
  if (!s.attempt)
    return;
  std::vector<exec::told_tool> tools;
  auto& told = s.record->told;
  {
    const std::lock_guard lock(s.attempt->mutex);
    const auto* report = s.attempt->core.events();
    if (report == nullptr)
      return;
    tools = report->tools;
    told.dropped = report->tools_dropped;
  }
  const auto scope = context::scope_of_kernel(s.order.work->row.kernel_id);
  const exec::tool_places where{told.directory, s.root, scope};
  int step = 0;
  for (auto& tool : tools) {
    tool.result = config::redact_text(std::move(tool.result), s.secrets);
    auto read = exec::reading_of(tool, where);
    ++step;
    told.calls.push_back({{"step", step}, {"call", config::redact_text(read.call, s.secrets)}});
    json answer{{"step", step}, {"ok", !tool.failed}};
    if (!tool.result.empty()) {
      answer["hash"] = sha256_hex(tool.result);
      s.record->contents.push_back(tool.result);
    }
    told.results.push_back(std::move(answer));
    std::ranges::move(read.paths, std::back_inserter(s.record->paths));
    for (auto& item : read.citables) {
      item.path = config::redact_text(std::move(item.path), s.secrets);
      told.items.push_back(std::move(item));
    }
  }
}

/// Adds the tools of an agent's own program to its turn.
void add_told_tools(const told_reading& told, json& action, json& ended) {
  if (told.calls.empty())
    return;
  action["tools"] = told.calls;
  ended["tools"] = told.results;
  if (told.dropped > 0)
    action["tools_left_out"] = told.dropped;
}

std::vector<record::turn> model_turns(const executor_state& s) {
  // Of a call without an answer nothing is known but what it could read.
  const auto text = [](const json& part) { return part.is_null() ? std::string() : dump(part); };
  std::vector<record::turn> turns;
  for (const auto& t : s.record->turns)
    turns.push_back({t.number, t.snapshot, {}, text(t.action), text(t.governance), text(t.result)});
  return turns;
}

std::vector<record::turn> turns_of(const executor_state& s, const run_outcome& outcome) {
  auto turns = model_turns(s);
  if (!turns.empty())
    return turns;
  record::turn only;
  if (!s.attempt) // it could not begin
    return {std::move(only)};
  json action = json::object();
  action["kind"] = kind_of(s.order.agent->run);
  json ended{{"execution", boyd::name_of(outcome.execution)},
             {"exit_code", outcome.exit_code},
             {"output_sha256", sha256_hex(outcome.output)},
             {"output_bytes", outcome.output.size()},
             {"output_cut", outcome.output_cut}};
  add_told_tools(s.record->told, action, ended);
  only.action = dump(action);
  only.result = dump(ended);
  return {std::move(only)};
}

/// Where the run's files are: of the kernel's home, or of the directory that it reads.
std::string root_of(const executor_state& s, const context::offered_item& item) {
  const auto& kernel_id = s.order.work->row.kernel_id;
  return item.scope == context::scope_of_kernel(kernel_id) ? s.order.context->kernel_home(kernel_id)
                                                           : s.root;
}

/// What the answer could cite: what it was shown, files also by their absolute paths, and results
/// of tools.
std::vector<context::citable> citables_now(const executor_state& s) {
  auto items = record::citables_of(s.items, s.block);
  for (auto& c : items) {
    const auto i = std::ranges::find(s.items, c.id, &context::offered_item::id);
    if (i != s.items.end() && i->type != context::item_type::runtime)
      c.names.push_back(root_of(s, *i) + "/" + c.path);
  }
  for (const auto& i : s.record->present.items)
    if (const auto said = s.record->results.find(i.id); said != s.record->results.end())
      items.push_back({{}, i.id, i.path, said->second.content, said->second.names});
  std::ranges::copy(s.record->told.items, std::back_inserter(items));
  return items;
}

/// All that the prompt shows beside the contents of its items: words that stand there, too, are no
/// sign that an item was used.
std::string prompt_without_items(const executor_state& s) {
  const auto& row = s.order.work->row;
  auto frame = s.block.text;
  for (const auto& c : record::citables_of(s.items, s.block))
    if (const auto at = frame.find(c.content); at != frame.npos)
      frame.erase(at, c.content.size());
  return s.record->system + "\n" +
         exec::make_attempt_prompt(row.prompt, row.metadata_json,
                                   exec::level_for(row.attempts_json)) +
         "\n" + s.skills + "\n" + frame;
}

/// What the model, or the program, said: of an answer by a schema also what stood beside it; of
/// what a program prints nothing that is its context once more.
std::string answer_of(const executor_state& s, const run_outcome& outcome) {
  if (!std::holds_alternative<config::chat_executor>(s.order.agent->run))
    return context::without_echo(outcome.output, config::redact_text(s.block.text, s.secrets));
  return s.record->said.empty() ? outcome.output : s.record->said + "\n" + outcome.output;
}

bool names(const std::vector<record::named_item>& items, const std::string& id) {
  return std::ranges::find(items, id, &record::named_item::id) != items.end();
}

/// What the prompt showed, and what became of it.
reading_report reading_of(const executor_state& s, const record::citations& cited) {
  reading_report report;
  report.accuracy = cited.accuracy;
  report.weak = cited.weak;
  report.enforced = is_enforced(*s.order.agent);
  for (const auto& p : s.block.placed) {
    if (p.key.empty())
      continue;
    const auto& i = s.items[p.offered];
    read_item read{i.id,
                   i.path,
                   std::string(context::name_of(i.type)),
                   std::string(context::name_of(i.from)),
                   std::string(context::name_of(p.as)),
                   std::string(context::name_of(p.where)),
                   i.content_hash,
                   p.tokens};
    read.cited = names(cited.valid, i.id);
    read.used = names(cited.used, i.id);
    read.frozen = i.frozen;
    read.scope = i.scope;
    if (i.from == context::origin::memory)
      report.question = config::redact_text(s.question, s.secrets);
    report.items.push_back(std::move(read));
  }
  return report;
}

/// What of an item stands in the prompt.
std::vector<record::kept_content> shown_contents(const executor_state& s) {
  std::vector<record::kept_content> all;
  for (const auto& p : s.block.placed)
    if (p.as == context::shown_as::full)
      all.push_back({s.items[p.offered].content_hash, s.items[p.offered].content});
    else if (p.as == context::shown_as::summary)
      all.push_back({sha256_hex(p.summary), p.summary});
  return all;
}

/// The database has what commands and scripts print.
bool says_more_than_a_program(const executor_state& s) {
  const auto& run = s.order.agent->run;
  return s.attempt && (std::holds_alternative<config::chat_executor>(run) ||
                       std::holds_alternative<config::agent_cli_executor>(run));
}

/// Of a run that reads nothing the record is written without waiting for the disk: what it was told
/// and what came of it stand in the database, too.
bool is_durable(const executor_state& s) {
  return !s.items.empty();
}

/// The attempt without what it is told.
begin_record header_of(const executor_state& s) {
  const auto& row = s.order.work->row;
  begin_record what{row.dispatch_id, row.kernel_id, row.cycle_id, row.agent_id, {}, {}};
  what.durable = is_durable(s);
  auto& a = what.begun;
  a.fence = row.fence;
  a.number = row.attempt;
  a.level = exec::name_of(exec::level_for(row.attempts_json));
  a.version = s.order.context->version;
  a.executor = dump(executor_json(s));
  a.started_at = s.record->began;
  record::turn first;
  first.snapshot = s.record->present;
  a.turns.push_back(std::move(first));
  return what;
}

/// The attempt as it begins.
begin_record beginning_of(self_pointer self) {
  const auto& s = self->state;
  auto what = header_of(s);
  for (const auto& i : s.items)
    if (i.failure.empty())
      what.contents.push_back(i.content);
  for (const auto& p : s.block.placed)
    if (!p.summary.empty())
      what.contents.push_back(p.summary);
  const auto kept = [&](const std::string& text, const std::vector<record::kept_content>& parts) {
    return record::take_apart(config::redact_text(text, s.secrets), parts, what.contents);
  };
  auto& a = what.begun;
  if (!s.record->system.empty())
    a.system = kept(s.record->system, {});
  if (!s.record->tools.empty())
    a.tools = kept(s.record->tools, {});
  a.prompt = kept(prompt_of(self), shown_contents(s));
  for (const auto& i : s.items)
    if (const auto it = s.known.find(i.id); it != s.known.end())
      a.known.push_back({i.id, it->second, i.frozen});
  return what;
}

/// Records of runs that read nothing and ask no model, of one agent in a minute. Beyond them the
/// row, which is there before the run and with its end, is the record (queue::execution_of): two
/// files for each would take more time than the rest of a small run.
constexpr int records_in_a_minute = 60;

bool is_of_flood(const executor_state& s) {
  const auto& run = s.order.agent->run;
  const bool is_small = std::holds_alternative<config::command_executor>(run) ||
                        std::holds_alternative<config::script_executor>(run);
  // A run that is tried again has a record already, or gets one: it is no flood.
  constexpr std::size_t no_attempts = 2; // "[]"
  const bool is_first = s.order.work->row.attempts_json.size() <= no_attempts;
  return is_small && is_first && s.items.empty() && s.skills.empty() && s.order.present &&
         !s.order.present->records().admits(records_in_a_minute,
                                            s.order.context->ports.clock->steady());
}

/// A script starts no program and asks no model: there is nothing that its record would have to
/// come before, and one write with the end has it all.
bool begins_nothing(const executor_state& s) {
  return std::holds_alternative<config::script_executor>(s.order.agent->run) && s.items.empty() &&
         s.skills.empty();
}

void open_record(executor_state& s, told_besides told) {
  s.record.emplace();
  s.record->system = std::move(told.system);
  s.record->tools = std::move(told.tools);
  s.record->present = context::snapshot_of(s.items, s.block);
  s.record->began = s.order.context->ports.clock->now();
}

} // namespace

void begin_recording(self_pointer self, told_besides told, std::function<void()> then) {
  auto& s = self->state;
  s.is_of_flood = is_of_flood(s);
  if (s.is_of_flood)
    return then();
  open_record(s, std::move(told));
  if (begins_nothing(s))
    return then();
  ask<workspace_reply>(self, s.order.services.workspace, workspace_request{{}, beginning_of(self)},
                       [self, then = std::move(then)](const result<workspace_reply>& r) {
                         self->state.record->is_begun = r.has_value();
                         if (r || self->state.cancelled_early)
                           return then();
                         auto why = r.error();
                         why.what = "cannot record the input of the run: " + why.what;
                         finish_unstarted(self, why,
                                          conversing::is_silence(why) ? failure_class::transient
                                                                      : failure_class::environment);
                       });
}

void keep_turns(self_pointer self, int turn, std::function<void()> then) {
  auto& s = self->state;
  if (!s.record || !std::exchange(s.record->has_news, false))
    return then();
  turn_of(s, turn);
  const auto& row = s.order.work->row;
  update_record what{row.dispatch_id, row.fence, model_turns(s),
                     std::exchange(s.record->contents, {}), is_durable(s)};
  ask<workspace_reply>(self, s.order.services.workspace, workspace_request{{}, std::move(what)},
                       [self, then = std::move(then)](const result<workspace_reply>& r) {
                         // The next write, which has all turns, makes up for it.
                         if (!r)
                           spdlog::warn("dispatch {}: cannot record its turns so far: {}",
                                        self->state.order.work->row.dispatch_id,
                                        to_string(r.error()));
                         then();
                       });
}

std::string correction_for(self_pointer self, const std::string& answer) {
  const auto& s = self->state;
  if (!s.record || s.items.empty() || !is_enforced(*s.order.agent))
    return {};
  const auto items = citables_now(s);
  const auto used = context::find_used(answer, prompt_without_items(s), items, s.record->paths);
  return context::correction_of(
      context::judge_citations(context::find_citations(answer, items), used), items);
}

void note_for_record(self_pointer self, const std::string& line) {
  auto& s = self->state;
  if (!s.record)
    return;
  const auto event = json::parse(config::redact_text(line, s.secrets), nullptr, false);
  if (!event.is_object())
    return;
  const auto kind = text_in(event, "event");
  if (kind == "turn") {
    note_answer(s, event);
  } else if (kind == "action") {
    note_action(s, event);
  } else if (kind == "result") {
    note_result(self, event);
  }
}

void end_recording(self_pointer self, run_outcome& outcome, std::function<void()> then) {
  auto& s = self->state;
  if (s.is_of_flood)
    return then();
  if (!s.record)
    open_record(s, {});
  note_told_tools(s);
  const auto& row = s.order.work->row;
  end_record what;
  what.begun = s.record->is_begun ? header_of(s) : beginning_of(self);
  what.contents = std::move(s.record->contents);
  what.end.fence = row.fence;
  what.end.at = s.order.context->ports.clock->now();
  what.end.outcome = dump(outcome_json(s, outcome));
  if (says_more_than_a_program(s))
    what.end.answer = record::take_apart(outcome.output, {}, what.contents);
  what.end.turns = turns_of(s, outcome);
  const auto& declared = outcome.usage.skills;
  for (const auto& name : s.skill_names)
    what.end.skills.push_back(
        {name, std::ranges::find(declared, name) == declared.end() ? "offered" : "declared"});
  if (!s.items.empty()) {
    what.end.cited = record::judge(
        {answer_of(s, outcome), s.record->wrote, prompt_without_items(s), s.record->paths},
        citables_now(s), is_enforced(*s.order.agent));
    outcome.usage.reading = reading_of(s, *what.end.cited);
  }
  ask<workspace_reply>(self, s.order.services.workspace, workspace_request{{}, std::move(what)},
                       [self, then = std::move(then)](const result<workspace_reply>& r) {
                         // Its beginning is there, and the row has the outcome.
                         if (!r)
                           spdlog::warn("dispatch {}: cannot record its end: {}",
                                        self->state.order.work->row.dispatch_id,
                                        to_string(r.error()));
                         then();
                       });
}

} // namespace boyd::executing
