#include "actors/approvals/notices.hpp"

#include "actors/support/http_status.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/exec/command_line.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <memory>
#include <utility>

namespace boyd::approving {

namespace {

constexpr std::size_t answer_bytes = 64u << 10;
constexpr milliseconds connect_limit = 10s;

} // namespace

std::string notice_json(const store::approval& row, const std::string& node) {
  const nlohmann::json notice{{"schema", "boyd.approval_notice/1"},
                              {"approval_id", row.approval_id},
                              {"kernel_id", row.matter.kernel_id},
                              {"agent_id", row.matter.agent_id},
                              {"dispatch_id", row.matter.dispatch_id},
                              {"tool", row.matter.tool},
                              {"reason", row.reason},
                              {"node", node},
                              {"expires_at", format_rfc3339(row.expires_at)},
                              {"next", "boyd approvals show " + row.approval_id}};
  return notice.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

notices::notices(node_context_ptr context, on_ended ended)
    : context_(std::move(context)), ended_(std::move(ended)) {}

notices::~notices() {
  for (const auto& [number, n] : all_) {
    if (n.call)
      context_->ports.http->cancel(*n.call);
  }
}

std::vector<std::uint64_t> notices::begin(const store::approval& row, const configuration_ptr& c) {
  std::vector<std::uint64_t> begun;
  const auto json = config::redact_text(notice_json(row, context_->host), c->secrets);
  for (const bool command : {false, true}) {
    if (command ? c->notices.command.empty() : c->notices.webhook.empty())
      continue;
    one n;
    n.configuration = c;
    n.command = command;
    n.approval_id = row.approval_id;
    n.json = json;
    if (all_.size() >= most_notices) {
      give_up(n, "too many notices at once");
      continue;
    }
    const auto number = ++last_;
    auto& kept = all_.emplace(number, std::move(n)).first->second;
    begun.push_back(number);
    start(number, kept);
  }
  return begun;
}

void notices::give_up(const one& n, const std::string& why) {
  ++failed_;
  last_error_ = std::string(n.command ? "command" : "webhook") + ": " +
                config::redact_text(why, n.configuration->secrets);
  spdlog::warn("approvals: cannot send the notice of request {}: {}", n.approval_id, last_error_);
}

void notices::start(std::uint64_t number, one& n) {
  ++n.tries;
  if (auto passed = faults::pass("approvals.notify"); !passed)
    ended_(number, to_string(passed.error()));
  else if (n.command)
    run(number, n);
  else
    call(number, n);
}

void notices::call(std::uint64_t number, one& n) {
  if (!context_->ports.http)
    return ended_(number, "this node cannot make HTTP calls");
  http_request q;
  q.url = n.configuration->notices.webhook;
  q.headers = {{"Content-Type", "application/json"}};
  q.body = n.json;
  q.connect_timeout = connect_limit;
  q.timeout = notice_limit;
  q.max_answer_bytes = answer_bytes;
  n.call = context_->ports.http->start(
      std::move(q),
      by_status([number, ended = ended_](const std::string& why) { ended(number, why); }));
}

void notices::run(std::uint64_t number, one& n) {
  exec::run_identity who;
  who.home = context_->home;
  auto environment = exec::build_environment({}, who, context_->environment);
  if (!environment)
    return ended_(number, to_string(environment.error()));
  program_order order;
  order.timeout = notice_limit;
  order.grace = 0ms;
  order.spec.argv = n.configuration->notices.command;
  order.spec.cwd = n.configuration->notices.command_cwd;
  order.spec.environment = std::move(*environment);
  order.spec.input = n.json + "\n";
  n.process = std::make_unique<program>(context_->ports.processes, std::move(order),
                                        context_->ports.clock->steady(),
                                        [number, ended = ended_](const process_exit& e) {
                                          program_outcome end;
                                          end.exit = e;
                                          ended(number, problem_of(end));
                                        });
}

std::optional<milliseconds> notices::on_end(std::uint64_t number, const std::string& why) {
  const auto it = all_.find(number);
  if (it == all_.end())
    return std::nullopt;
  auto& n = it->second;
  n.call.reset();
  n.process.reset();
  if (!why.empty() && n.tries < notice_tries)
    return notice_again * n.tries;
  if (why.empty()) {
    ++sent_;
    last_error_.clear();
  } else {
    give_up(n, why);
  }
  all_.erase(it);
  return std::nullopt;
}

void notices::again(std::uint64_t number) {
  if (const auto it = all_.find(number); it != all_.end())
    start(number, it->second);
}

std::optional<milliseconds> notices::look(std::uint64_t number) {
  const auto it = all_.find(number);
  if (it == all_.end() || !it->second.process)
    return std::nullopt;
  const auto next = it->second.process->look(context_->ports.clock->steady());
  if (next)
    return *next;
  ended_(number, next.error().what);
  return std::nullopt;
}

} // namespace boyd::approving
