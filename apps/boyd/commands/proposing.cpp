#include "proposing.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/config/tree.hpp"
#include "boyd/context/reference.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/ports/file_system.hpp"
#include "cycle_watch.hpp"

#include <utility>

namespace boyd::app {

namespace {

using improve::answer_end;
using improve::failure_kind;

constexpr std::size_t reason_characters = 500;

const std::string proposers{config::proposers_kernel};

failure_kind kind_of_class(const std::string& failure_class) {
  if (failure_class == "transient" || failure_class == "flaky")
    return failure_kind::transient;
  if (failure_class == "environment")
    return failure_kind::environment;
  return failure_class == "policy" ? failure_kind::policy : failure_kind::deterministic;
}

/// What could not even be asked is nobody's mistake.
answer_end hindered(const error& e) {
  const bool passes = e.code == errc::timed_out || e.code == errc::actor_down;
  return {{}, passes ? failure_kind::transient : failure_kind::environment, to_string(e)};
}

/// Runs that a crash left: their answers are nobody's any more.
void forget_left_runs(client& c) {
  for (const auto* status : {"running", "pending"}) {
    const auto answer = c.call(get("/api/v1/dispatches", {{"status", status}}), question_limit);
    const auto body = answer ? body_of(*answer) : result<std::string>(fail(answer.error()));
    for (const auto& row : rows_of(body ? object_of(*body) : json::object(), "items"))
      static_cast<void>(c.call(post("/api/v1/dispatches/" + text_of(row, "dispatch_id") + "/cancel",
                                    json{{"kernel", proposers}}.dump()),
                               question_limit));
  }
}

} // namespace

proposing::proposing(std::string home, std::string configuration_path, std::string repository,
                     const ports& local, signal_watch& signals)
    : where_{std::move(home), std::move(configuration_path)}, repository_(std::move(repository)),
      local_(local), signals_(signals) {}

proposing::~proposing() {
  if (client_)
    client_->close();
}

result<void> proposing::open() {
  if (client_)
    return {};
  const auto text = local_.files->read(where_.config_path, limits::config_bytes);
  if (!text)
    return fail(text.error());
  auto loaded = config::load_proposers(
      where_.config_path, *text, environment(), *local_.zones,
      [this](const std::string& path) { return local_.files->read(path, limits::config_bytes); },
      repository_);
  if (!loaded.value)
    return fail(error_of(loaded, where_.config_path));
  const auto shown = loaded.value->redacted_yaml;
  secrets_ = loaded.value->secrets;
  auto opened =
      open_own_node(where_, std::make_shared<const config::configuration>(std::move(*loaded.value)),
                    signals_, forget_left_runs);
  if (!opened)
    return fail(std::move(opened.error()));
  client_ = std::move(*opened);
  // For those who ask this home later; it cannot stop anything.
  static_cast<void>(files::write_atomic(*local_.files, where_.layout().configuration(), shown));
  return {};
}

result<json> proposing::run(const improve::agent_order& order) {
  const auto& agent = order.name;
  const auto prompt = config::redact_text(sanitize_utf8(order.prompt), secrets_);
  // What stands in the task is no reference of anybody's.
  const json wish{{"kernel", proposers}, {"message", context::escape_signs(prompt)}};
  const auto asked =
      client_->call(post("/api/v1/agents/" + agent + "/run", wish.dump()), question_limit);
  if (!asked)
    return fail(asked.error());
  const auto trigger = object_of(asked->body);
  const auto cycle_id = text_of(trigger, "cycle_id");
  if (text_of(trigger, "admitted") != "true") {
    const auto body = body_of(*asked);
    return body ? fail(errc::refused, "it was not run: " + text_of(trigger, "reason"), agent)
                : result<json>(fail(body.error()));
  }
  const auto record = await_record(*client_, cycle_id, proposers);
  if (!record)
    return fail(record.error());
  const auto cycle = object_of(*record);
  for (const auto& a : rows_of(cycle, "agents"))
    if (text_of(a, "agent_id") == agent)
      return await_row(*client_, text_of(a, "dispatch_id"));
  return fail(why_not_run(*client_, cycle, agent, proposers, cycle_id));
}

answer_end proposing::answer_of(const json& row) {
  const auto usage = part_of(row, "usage");
  answer_end a;
  a.spent = {number_of(usage, "cost_microusd"), number_of(usage, "input_tokens"),
             number_of(usage, "output_tokens"), number_of(usage, "turns")};
  if (text_of(row, "status") != "done") {
    a.failure = kind_of_class(text_of(row, "failure_class"));
    a.reason = one_line(text_of(row, "error"), reason_characters);
    return a;
  }
  a.text = text_of(row, "output");
  const auto tree = part_of(usage, "worktree");
  if (number_of(tree, "files") == 0)
    return a;
  const auto path = where_.layout().execution(text_of(row, "dispatch_id")) + "/patch-" +
                    text_of(row, "fence") + ".diff";
  auto patch = local_.files->read(path, improve::answer_bytes);
  if (!patch) {
    a.failure = failure_kind::deterministic;
    a.reason = "its changes are too many, or cannot be read: " + to_string(patch.error());
    return a;
  }
  // Its own words about it are in the record.
  a.text = std::move(*patch);
  a.is_diff = true;
  return a;
}

answer_end proposing::ask(const improve::agent_order& order) {
  if (auto opened = open(); !opened)
    return hindered(opened.error());
  const auto row = run(order);
  return row ? answer_of(*row) : hindered(row.error());
}

} // namespace boyd::app
