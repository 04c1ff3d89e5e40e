#include "operations.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

std::size_t operations::insert_requests(std::vector<new_dispatch>& rows, std::size_t from) {
  constexpr std::size_t columns = 10;
  auto& next_id = names_.next_id();
  auto& given = db_.rows().begin(columns);
  auto id = next_id;
  for (auto i = from; i < rows.size(); ++i) {
    auto& r = rows[i];
    const auto& d = r.row.d;
    r.id = id++;
    given.bind(r.id).bind(d.dispatch_id).bind(r.agent->no).bind(d.cycle_id).bind(d.priority);
    given.bind(d.max_attempts).bind(d.created_at).bind(d.not_before).bind(d.metadata_json);
    given.bind(d.prompt);
  }
  // FAIL keeps the rows before the one that is refused, and needs no journal of the statement.
  auto s = db_.fixed("INSERT OR FAIL INTO dispatch_requests(id, dispatch_id, agent_no, cycle_id, "
                     "priority, max_attempts, created_at, not_before, metadata, prompt) SELECT "
                     "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 FROM given_rows");
  const auto made = s.run_unless_refused() ? given.size() : given.reached();
  next_id += static_cast<std::int64_t>(made);
  return made;
}

void operations::insert_dispatches(std::vector<new_dispatch>& rows, std::vector<enqueued>& outcomes,
                                   std::vector<new_waiting>& made) {
  std::size_t next = 0;
  while (next < rows.size()) {
    const auto end = next + insert_requests(rows, next);
    for (; next < end; ++next) {
      auto& r = rows[next];
      auto& reply = outcomes[r.operation].reply;
      ++reply.inserted;
      reply.dispatch_ids.push_back(std::move(r.row.d.dispatch_id));
      made.push_back({r.agent, r.id, r.row.d.priority, r.row.d.created_at, r.row.d.not_before,
                      *r.dispatch_id});
    }
    if (next == rows.size())
      break;
    const auto& refused = rows[next++];
    auto& outcome = outcomes[refused.operation];
    if (auto standing = enqueued_id(refused)) {
      outcome.reply.dispatch_ids.push_back(std::move(*standing));
      continue;
    }
    outcome.refused = error{
        errc::already_exists, "dispatch id " + *refused.dispatch_id + " is taken", "store", {}};
    while (next < rows.size() && rows[next].operation == refused.operation)
      ++next;
  }
}

std::optional<std::string> operations::enqueued_id(const new_dispatch& d) {
  auto s = db_.fixed("SELECT dispatch_id FROM dispatch_requests WHERE cycle_id=? AND agent_no=?");
  s.bind(d.row.d.cycle_id).bind(d.agent->no);
  if (!s.step())
    return std::nullopt;
  return s.text(0);
}

void operations::put_in(std::vector<new_waiting> rows) {
  if (rows.empty())
    return;
  // In the order of their table they go side by side into its pages.
  std::ranges::sort(rows, {}, [](const new_waiting& w) {
    return std::tuple{w.agent->no, -std::int64_t{w.priority}, w.created_at, w.dispatch_id};
  });
  constexpr std::size_t columns = 6;
  auto& given = db_.rows().begin(columns);
  for (const auto& w : rows) {
    given.bind(w.agent->no).bind(w.priority).bind(w.created_at).bind(w.dispatch_id);
    given.bind(w.not_before).bind(w.id);
    names_.waiting(*w.agent, w.not_before > w.created_at, true);
    names_.moved(*w.agent, std::nullopt, dispatch_status::pending);
  }
  db_.fixed("INSERT INTO dispatch_waiting(agent_no, priority, created_at, dispatch_id, not_before, "
            "id) SELECT c0, c1, c2, c3, c4, c5 FROM given_rows")
      .run();
}

void operations::put_in(std::int64_t id, const dispatch& d, agent_entry& agent) {
  auto s = db_.fixed("INSERT INTO dispatch_waiting(agent_no, priority, created_at, dispatch_id, "
                     "not_before, id) VALUES(?,?,?,?,?,?)");
  s.bind(agent.no).bind(d.priority).bind(d.created_at).bind(d.dispatch_id).bind(d.not_before);
  s.bind(id).run();
  names_.waiting(agent, d.not_before > d.created_at, true);
}

void operations::write_decisions(const enqueue_cycle& op) {
  for (const auto& d : op.decisions) {
    auto s = db_.fixed("INSERT INTO decisions(kernel_id, cycle_id, agent_id, decided_at, "
                       "dispatched, reason, detail) VALUES(?,?,?,?,?,?,?) ON CONFLICT DO NOTHING");
    s.bind(op.kernel_id).bind(op.cycle_id).bind(d.agent_id).bind(now_);
    s.bind(d.dispatched ? 1 : 0).bind(d.reason).bind(d.detail).run();
  }
}

std::vector<any_reply> operations::run(const std::vector<const enqueue_cycle*>& ops) {
  std::vector<enqueued> outcomes(ops.size());
  std::vector<new_dispatch> rows;
  std::vector<new_waiting> made;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    outcomes[i].reply.dispatch_ids.reserve(ops[i]->specs.size());
    for (const auto& spec : ops[i]->specs) {
      if (outcomes[i].refused)
        break;
      rows.reserve(rows_at_once);
      rows.push_back({i, 0, &names_.ensure(spec.kernel_id, spec.agent_id), &spec.dispatch_id,
                      queue::new_row(spec, now_)});
      if (rows.size() < rows_at_once)
        continue;
      insert_dispatches(rows, outcomes, made);
      rows.clear();
    }
  }
  insert_dispatches(rows, outcomes, made);
  put_in(std::move(made));
  std::vector<any_reply> replies;
  replies.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (outcomes[i].refused) {
      replies.emplace_back(std::move(*outcomes[i].refused));
      continue;
    }
    write_decisions(*ops[i]);
    replies.emplace_back(std::move(outcomes[i].reply));
  }
  return replies;
}

} // namespace boyd::adapters::sqlite
