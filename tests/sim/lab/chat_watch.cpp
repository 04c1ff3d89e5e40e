#include "tests/sim/lab/chat_watch.hpp"

#include "boyd/faults/points.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <variant>

namespace boyd::sim {

namespace {

/// Reservations are looked at so often: one that was open at two looks belongs to no run any more,
/// for none lasts so long.
constexpr milliseconds between_looks = 12min;
constexpr std::string_view answers_point = "models.answer";

std::string scope_of(const machine& m) {
  return queue::node_scope(m.name());
}

bool has_scope(const store::reserve_spend& asked, const std::string& scope) {
  return std::ranges::find(asked.limits, scope, &store::reserve_spend::limit::scope) !=
         asked.limits.end();
}

} // namespace

std::string chat_identity(const std::string& agent_id) {
  return "You are " + agent_id + ".";
}

chat_watch::chat_watch(const sim_database& database, const config::configuration& configuration,
                       std::function<void(const std::string&)> violated)
    : database_(database), violated_(std::move(violated)) {
  std::set<std::string> used;
  for (const auto& k : configuration.kernels)
    for (const auto& a : k.agents)
      if (const auto* c = std::get_if<config::chat_executor>(&a.run)) {
        chats_.push_back({k.kernel_id, a.agent_id, c->workspace, a.budget.run.tokens});
        used.insert(c->provider_id);
        for (const auto& f : c->fallback)
          used.insert(f.provider_id);
      }
  for (const auto& p : configuration.providers)
    if (used.contains(p.provider_id))
      providers_.push_back(p);
}

void chat_watch::furnish(machine& m) {
  for (const auto& c : chats_)
    if (!c.workspace.empty())
      (void)m.disk().make_directories(c.workspace);
}

const config::provider* chat_watch::provider_of(const http_request& request) const {
  for (const auto& p : providers_)
    if (request.url.starts_with(p.base_url + "/"))
      return &p;
  return nullptr;
}

bool chat_watch::is_chat(const http_request& request) const {
  return provider_of(request) != nullptr;
}

const chat_watch::chat* chat_watch::chat_of(const http_request& request) const {
  for (const auto& c : chats_)
    if (request.body.find(chat_identity(c.agent_id)) != std::string::npos)
      return &c;
  return nullptr;
}

bool chat_watch::is_chat_agent(const std::string& agent_id) const {
  return std::ranges::find(chats_, agent_id, &chat::agent_id) != chats_.end();
}

void chat_watch::calling(machine& m, const http_request& request, model_reply& reply) {
  ++calls_;
  const auto* provider = provider_of(request);
  const auto* who = chat_of(request);
  if (provider == nullptr || who == nullptr)
    return violated_("a call of a model that no chat has made");
  hear_of_writes(m, *who, request.body);
  for (const auto& w : reply.writes)
    path_of_write_[w.serial] = who->workspace + "/" + w.path;
  count({&m, provider->provider_id}, provider->max_concurrent, reply,
        take_reservation(m, *who, provider->provider_id));
}

/// Follows the call to its end.
void chat_watch::count(const place& at, int limit, model_reply& reply, std::string call_id) {
  if (++under_way_[at] > limit)
    violated_("more calls at once at provider " + at.second + " than it takes");
  reply.http.ended = [this, at, call_id = std::move(call_id), tokens = reply.tokens,
                      struck = faults::triggered(answers_point)](http_ending how) {
    --under_way_[at];
    // An answer that a fault point broke was not used; what it cost is a guess.
    const bool whole = struck == faults::triggered(answers_point);
    if (how == http_ending::delivered && tokens > 0 && whole)
      told_tokens_[call_id] = tokens;
  };
}

/// The newest open reservation that is this machine's and has had no call: a run makes its calls
/// one after the other, and an agent has one run.
std::string chat_watch::take_reservation(const machine& m, const chat& c,
                                         const std::string& provider_id) {
  const sim_database::spent_call* newest = nullptr;
  for (const auto& [id, call] : database_.all_spend())
    if (!call.settled && call.asked.agent_id == c.agent_id &&
        call.asked.provider_id == provider_id && has_scope(call.asked, scope_of(m)) &&
        (newest == nullptr || call.number > newest->number) && !called_.contains(id))
      newest = &call;
  if (newest == nullptr) {
    violated_("a call of a model for " + c.agent_id + " that is not taken from its budgets");
    return {};
  }
  called_.insert(newest->asked.call_id);
  check_limits(newest->asked);
  return newest->asked.call_id;
}

void chat_watch::check_limits(const store::reserve_spend& asked) {
  const auto& day = database_.all_spend().at(asked.call_id).day;
  for (const auto& l : asked.limits) {
    const auto total = database_.all_totals().find({day, l.scope});
    const auto used = total == database_.all_totals().end() ? queue::spend_total{} : total->second;
    if ((l.tokens > 0 && used.tokens > l.tokens) || (l.cost > 0 && used.cost > l.cost))
      violated_("the day's budget of " + l.scope + " is overdrawn");
  }
}

/// A conversation shows which writes were acknowledged.
void chat_watch::hear_of_writes(machine& m, const chat& c, const std::string& body) {
  constexpr std::string_view acknowledged = R"(","content":"wrote )";
  constexpr std::string_view id = R"("tool_call_id":"write-)";
  for (auto at = body.find(acknowledged); at != std::string::npos;
       at = body.find(acknowledged, at + 1)) {
    const auto begin = body.rfind(id, at);
    const auto serial = begin == std::string::npos
                            ? 0
                            : std::strtoull(body.c_str() + begin + id.size(), nullptr, 10);
    const auto path = path_of_write_.find(serial);
    if (path == path_of_write_.end()) {
      violated_("a write of " + c.agent_id + " that nobody wanted was acknowledged");
      continue;
    }
    const auto found = m.disk().look(path->second);
    if (found.content == nullptr)
      violated_("an acknowledged file is not there: " + path->second);
    else if (serial_of(*found.content) == serial)
      files_[{&m, path->second}].acknowledged = found.inode;
  }
}

void chat_watch::check_files(machine& m, bool all) {
  for (const auto& c : chats_) {
    if (c.workspace.empty())
      continue;
    for (const auto name : model_files) {
      const auto path = c.workspace + "/" + std::string(name);
      const auto found = m.disk().look(path);
      auto& known = files_[{&m, path}];
      if (all && found.inode < known.acknowledged) {
        violated_("an acknowledged file is gone after a crash: " + path);
        known.acknowledged = found.inode;
      }
      if (found.content == nullptr || (!all && found.inode == known.seen))
        continue;
      known.seen = found.inode;
      if (!serial_of(*found.content))
        violated_("a file that a model had written is torn: " + path);
    }
  }
}

void chat_watch::crashed(machine& m) {
  std::erase_if(under_way_, [&](const auto& each) { return each.first.first == &m; });
  // Nobody is left to settle them, and what was reserved for a call that was never made has none.
  for (const auto& [id, call] : database_.all_spend())
    if (!call.settled && has_scope(call.asked, scope_of(m))) {
      called_.insert(id);
      excused_.insert(id);
    }
  check_files(m, true);
}

void chat_watch::disturbed(bool loses) {
  open_.clear();
  excuses_ = excuses_ || loses;
}

void chat_watch::quiet(machine& m, milliseconds now) {
  auto& kills = kills_[&m];
  excuses_ = excuses_ || m.kills() != kills;
  kills = m.kills();
  if (!excuses_ && now - looked_at_ < between_looks)
    return;
  looked_at_ = now;
  std::set<std::string> open;
  for (const auto& [id, call] : database_.all_spend()) {
    if (call.settled || excused_.contains(id) || !is_chat_agent(call.asked.agent_id))
      continue;
    if (excuses_)
      excused_.insert(id);
    else if (!open_.contains(id))
      open.insert(id);
    else if (excused_.insert(id).second)
      violated_("a reservation is left over: " + id);
  }
  open_ = std::move(open);
  excuses_ = false;
}

void chat_watch::settled() {
  check_sums();
  check_runs();
  check_outcomes();
}

void chat_watch::check_sums() {
  std::map<std::pair<std::string, std::string>, queue::spend_total> sums;
  for (const auto& [id, call] : database_.all_spend())
    for (const auto& l : call.asked.limits) {
      auto& sum = sums[{call.day, l.scope}];
      sum.tokens += call.counts.tokens();
      sum.cost += call.counts.cost;
    }
  if (sums != database_.all_totals())
    violated_("the sums of the budgets are not those of their calls");
  for (const auto& [id, tokens] : told_tokens_) {
    const auto call = database_.all_spend().find(id);
    if (call == database_.all_spend().end() || call->second.counts.tokens() < tokens)
      violated_("an answer was used and not counted: " + id);
  }
}

/// A run is an attempt: its fence stands in the id of its calls. What is reserved and never settled
/// used nothing: the answer to the reservation was lost, and the run asked again.
void chat_watch::check_runs() {
  for (const auto& c : chats_) {
    std::map<std::string, std::int64_t> used;
    for (const auto& [id, call] : database_.all_spend())
      if (call.asked.agent_id == c.agent_id && call.settled)
        used[id.substr(0, id.rfind('/'))] += call.counts.tokens();
    for (const auto& [run, tokens] : used)
      if (c.run_tokens > 0 && tokens > c.run_tokens)
        violated_("a run has used up more than its budget: " + run);
  }
}

void chat_watch::check_outcomes() {
  for (const auto& [id, row] : database_.all_rows()) {
    const auto& d = row.d;
    if (!is_chat_agent(d.agent_id))
      continue;
    if (d.status == dispatch_status::failed && d.outcome.error.empty())
      violated_("a chat failed without a reason: " + id);
    if (d.status == dispatch_status::done && d.outcome.output.empty())
      violated_("a chat is done without an answer: " + id);
  }
}

} // namespace boyd::sim
