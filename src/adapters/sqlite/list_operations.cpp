#include "operations.hpp"

#include <functional>
#include <utility>

namespace boyd::adapters::sqlite {

using namespace store;

namespace {

constexpr std::string_view body_join =
    " LEFT JOIN dispatch_prompts p ON p.id = d.id"
    " LEFT JOIN dispatch_outputs o ON o.id = d.id AND o.fence = d.fence ";

dispatch with_bodies(const statement& s) {
  auto row = read_row(s);
  row.d.prompt = s.text(row_column_count);
  row.d.outcome.output = s.text(row_column_count + 1);
  return std::move(row.d);
}

std::string select_rows(bool bodies) {
  std::string sql = "SELECT " + std::string{row_columns()};
  if (bodies)
    sql += ", p.prompt, o.output";
  sql += " FROM dispatches d";
  if (bodies)
    sql += body_join;
  return sql;
}

} // namespace

any_reply operations::run(const find_dispatch& op) {
  static const std::string sql = select_rows(true) +
                                 " WHERE d.dispatch_id >= ?1 AND d.dispatch_id < ?1 || '~' "
                                 "ORDER BY d.dispatch_id LIMIT 2";
  auto s = db_.prepare(sql);
  s.bind(op.dispatch_id);
  std::optional<dispatch> found;
  if (s.step())
    found = with_bodies(s);
  if (found && found->dispatch_id != op.dispatch_id && s.step())
    return error{errc::invalid_argument, "several dispatches begin with " + op.dispatch_id, "store",
                 "give more characters of the id"};
  return found;
}

any_reply operations::run(const list_dispatches& op) {
  // The plus keeps a selective index from being passed over for one that spares the sorting.
  const std::string id =
      op.cycle_id.empty() && !op.finished_since ? "d.dispatch_id" : "+d.dispatch_id";
  auto sql = select_rows(op.with_bodies);
  std::vector<std::function<void(statement&)>> binds;
  const auto filter = [&](const std::string& condition, std::function<void(statement&)> bind) {
    sql += binds.empty() ? " WHERE " : " AND ";
    sql += condition;
    binds.push_back(std::move(bind));
  };
  if (!op.kernel_id.empty())
    filter("d.kernel_id = ?", [&](statement& s) { s.bind(op.kernel_id); });
  if (!op.cycle_id.empty())
    filter("d.cycle_id = ?", [&](statement& s) { s.bind(op.cycle_id); });
  if (!op.not_cycle_id.empty())
    filter("d.cycle_id <> ?", [&](statement& s) { s.bind(op.not_cycle_id); });
  if (!op.agent_id.empty())
    filter("d.agent_id = ?", [&](statement& s) { s.bind(op.agent_id); });
  if (op.status)
    filter("d.status = ?", [&](statement& s) { s.bind(name_of(*op.status)); });
  if (!op.before.empty())
    filter(id + " < ?", [&](statement& s) { s.bind(op.before); });
  if (op.finished_since)
    filter("d.finished_at >= ?", [&](statement& s) { s.bind(*op.finished_since); });
  sql += " ORDER BY " + id + " DESC LIMIT ?";
  auto s = db_.prepare(sql);
  for (const auto& bind : binds)
    bind(s);
  s.bind(static_cast<std::int64_t>(op.limit));
  std::vector<dispatch> out;
  while (s.step())
    out.push_back(op.with_bodies ? with_bodies(s) : read_row(s).d);
  return out;
}

any_reply operations::run(const latest_per_agent& op) {
  // Steps along dispatches_agent: one probe per agent, whatever the table's size.
  static const std::string sql =
      "WITH RECURSIVE a(g) AS (SELECT min(agent_id) FROM dispatches WHERE kernel_id = ?1 "
      "UNION ALL SELECT (SELECT min(agent_id) FROM dispatches WHERE kernel_id = ?1 AND "
      "agent_id > a.g) FROM a WHERE a.g IS NOT NULL) SELECT " +
      std::string{row_columns()} +
      " FROM a JOIN dispatches d ON d.dispatch_id = (SELECT max(dispatch_id) FROM dispatches "
      "WHERE kernel_id = ?1 AND agent_id = a.g) WHERE a.g IS NOT NULL ORDER BY a.g";
  auto s = db_.prepare(sql);
  s.bind(op.kernel_id);
  std::vector<dispatch> out;
  while (s.step())
    out.push_back(read_row(s).d);
  return out;
}

any_reply operations::run(const count_by_status& op) {
  auto s = db_.prepare("SELECT status, sum(n) FROM dispatch_counts WHERE ?1 = '' OR "
                       "kernel_id = ?1 GROUP BY status");
  s.bind(op.kernel_id);
  count_by_status::reply reply;
  while (s.step())
    if (const auto status = dispatch_status_from(s.view(0)); status && s.integer(1) > 0)
      reply[*status] = static_cast<std::uint64_t>(s.integer(1));
  return reply;
}

std::uint64_t operations::remove_cycles(std::int64_t before, std::size_t keep,
                                        std::uint64_t limit) {
  auto s = db_.prepare("DELETE FROM cycles WHERE cycle_id IN (SELECT cycle_id FROM (SELECT "
                       "cycle_id, finished_at, row_number() OVER (PARTITION BY kernel_id ORDER BY "
                       "started_at DESC, cycle_id DESC) AS place FROM cycles) WHERE place > ? AND "
                       "finished_at < ? LIMIT ?)");
  s.bind(static_cast<std::int64_t>(keep)).bind(before).bind(static_cast<std::int64_t>(limit)).run();
  return static_cast<std::uint64_t>(db_.changes());
}

any_reply operations::run(const remove_finished& op) {
  remove_finished::reply reply;
  const auto before = to_unix_ms(now_ - op.age);
  const auto left = [&] { return op.limit - reply.removed; };
  const auto remove = [&](const char* sql) {
    if (left() == 0)
      return;
    auto s = db_.prepare(sql);
    s.bind(before).bind(static_cast<std::int64_t>(left())).run();
    reply.removed += static_cast<std::uint64_t>(db_.changes());
  };
  remove("DELETE FROM dispatches WHERE id IN (SELECT d.id FROM (SELECT DISTINCT kernel_id FROM "
         "dispatch_counts) k CROSS JOIN dispatches d ON d.kernel_id = k.kernel_id AND "
         "d.finished_at < ? LIMIT ?)");
  remove("DELETE FROM decisions WHERE (kernel_id, cycle_id, agent_id) IN (SELECT kernel_id, "
         "cycle_id, agent_id FROM decisions WHERE decided_at < ? ORDER BY decided_at LIMIT ?)");
  remove("DELETE FROM occurrences WHERE (kernel_id, scheduled_at) IN (SELECT kernel_id, "
         "scheduled_at FROM occurrences WHERE finished_at < ? ORDER BY finished_at LIMIT ?)");
  if (left() > 0)
    reply.removed += remove_cycles(before, op.keep_cycles, left());
  return reply;
}

} // namespace boyd::adapters::sqlite
