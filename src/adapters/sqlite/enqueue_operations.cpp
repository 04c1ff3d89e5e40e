#include "operations.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

operations::new_dispatch operations::make(const wanted_dispatch& wanted) {
  return {&wanted, 0, queue::new_row(*wanted.spec, now_)};
}

std::size_t operations::insert_requests(std::vector<new_dispatch>& rows, std::size_t from) {
  constexpr std::size_t columns = 3 + queue::request_column_count + 1;
  auto& next_id = names_.next_id();
  auto& given = db_.rows().begin(columns);
  auto id = next_id;
  for (auto i = from; i < rows.size(); ++i) {
    auto& r = rows[i];
    r.id = id++;
    given.bind(r.id).bind(r.row.d.dispatch_id).bind(r.wanted->agent->no);
    queue::for_each_column(queue::columns_of_request,
                           [&](const auto& c) { give(given, names_, c, r.row); });
    give(given, names_, queue::prompt_column, r.row);
  }
  // FAIL keeps the rows before the one that is refused, and needs no journal of the statement.
  static const auto sql = [] {
    std::string values = "c0";
    for (std::size_t i = 1; i < columns; ++i)
      values += ", c" + std::to_string(i);
    return "INSERT OR FAIL INTO dispatch_requests(id, dispatch_id, agent_no, " +
           queue::listed(queue::columns_of_request, [](const auto& c) { return c.name; }) +
           ", prompt) SELECT " + values + " FROM given_rows";
  }();
  auto s = db_.fixed(sql.c_str());
  const auto made = s.run_unless_refused() ? given.size() : given.reached();
  next_id += static_cast<std::int64_t>(made);
  return made;
}

bool operations::insert_in_order(const std::vector<wanted_dispatch>& all,
                                 std::vector<enqueued>& outcomes) {
  std::vector<const wanted_dispatch*> ordered;
  ordered.reserve(all.size());
  for (const auto& w : all)
    ordered.push_back(&w);
  std::ranges::sort(ordered, {}, [](const wanted_dispatch* w) {
    const auto& s = *w->spec;
    return std::tuple{w->agent->no, s.priority, s.delay, std::string_view{s.dispatch_id}};
  });
  const auto first_id = names_.next_id();
  std::vector<made_dispatch> made;
  made.reserve(all.size());
  std::vector<new_dispatch> rows;
  rows.reserve(rows_at_once);
  for (auto next = ordered.begin(); next != ordered.end();) {
    rows.clear();
    for (; next != ordered.end() && rows.size() < rows_at_once; ++next)
      rows.push_back(make(**next));
    if (insert_requests(rows, 0) < rows.size()) {
      db_.fixed("DELETE FROM dispatch_requests WHERE id >= ?").bind(first_id).run();
      names_.next_id() = first_id;
      return false;
    }
    for (const auto& r : rows)
      made.push_back({r.wanted, r.id, r.row.d.not_before});
  }
  for (const auto& w : all) {
    auto& reply = outcomes[w.operation].reply;
    ++reply.inserted;
    reply.dispatch_ids.push_back(w.spec->dispatch_id);
  }
  put_in(made);
  return true;
}

void operations::insert_as_asked(const std::vector<wanted_dispatch>& all,
                                 std::vector<enqueued>& outcomes) {
  std::vector<made_dispatch> made;
  std::vector<new_dispatch> rows;
  rows.reserve(rows_at_once);
  for (const auto& w : all) {
    if (outcomes[w.operation].refused)
      continue;
    rows.push_back(make(w));
    if (rows.size() < rows_at_once)
      continue;
    insert_some(rows, outcomes, made);
    rows.clear();
  }
  insert_some(rows, outcomes, made);
  put_in(made);
}

void operations::insert_some(std::vector<new_dispatch>& rows, std::vector<enqueued>& outcomes,
                             std::vector<made_dispatch>& made) {
  std::size_t next = 0;
  while (next < rows.size()) {
    const auto end = next + insert_requests(rows, next);
    for (; next < end; ++next) {
      const auto& r = rows[next];
      auto& reply = outcomes[r.wanted->operation].reply;
      ++reply.inserted;
      reply.dispatch_ids.push_back(r.wanted->spec->dispatch_id);
      made.push_back({r.wanted, r.id, r.row.d.not_before});
    }
    if (next == rows.size())
      break;
    const auto& refused = rows[next++];
    auto& outcome = outcomes[refused.wanted->operation];
    if (auto standing = enqueued_id(refused)) {
      outcome.reply.dispatch_ids.push_back(std::move(*standing));
      continue;
    }
    outcome.refused = error{errc::already_exists,
                            "dispatch id " + refused.wanted->spec->dispatch_id + " already exists",
                            "store",
                            {}};
    while (next < rows.size() && rows[next].wanted->operation == refused.wanted->operation)
      ++next;
  }
}

std::optional<std::string> operations::enqueued_id(const new_dispatch& d) {
  auto s = db_.fixed("SELECT dispatch_id FROM dispatch_requests WHERE cycle_id=? AND agent_no=?");
  s.bind(d.row.d.cycle_id).bind(d.wanted->agent->no);
  if (!s.step())
    return std::nullopt;
  return s.text(0);
}

void operations::put_in(const std::vector<made_dispatch>& made) {
  for (auto next = made.begin(); next != made.end();) {
    const auto& spec = *next->wanted->spec;
    waiting_range range{
        next->wanted->agent, spec.priority, now_, next->not_before, false, next->id, next->id,
        spec.dispatch_id};
    const auto goes_on = [&range](const made_dispatch& before, const made_dispatch& d) {
      return d.id == before.id + 1 && d.wanted->agent == range.agent &&
             d.wanted->spec->priority == range.priority && d.not_before == range.not_before &&
             before.wanted->spec->dispatch_id < d.wanted->spec->dispatch_id;
    };
    for (auto before = next++; next != made.end() && goes_on(*before, *next); before = next++)
      range.last_id = next->id;
    put_in(range);
    names_.waiting(*range.agent, range.not_before > range.created_at, range.size());
    names_.moved(*range.agent, std::nullopt, dispatch_status::pending, range.size());
  }
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
  std::vector<wanted_dispatch> all;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    outcomes[i].reply.dispatch_ids.reserve(ops[i]->specs.size());
    for (const auto& spec : ops[i]->specs)
      all.push_back({i, &spec, &names_.ensure(spec.kernel_id, spec.agent_id)});
  }
  if (!insert_in_order(all, outcomes))
    insert_as_asked(all, outcomes);
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
