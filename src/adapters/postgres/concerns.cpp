#include "concerns.hpp"

#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"

#include <cctype>

namespace boyd::adapters::postgres {

namespace {

/// Sessions that are named; the oldest one is what matters.
constexpr std::int64_t most_named = 3;
/// Where the begin is not shown: transactions that began meanwhile. A busy node begins some hundred
/// a second, an idle one hardly any, so that this is reached when it begins to matter.
constexpr std::int64_t most_transactions = 20'000;

/// Names are chosen by whoever connects.
std::string plain(std::string_view name) {
  constexpr std::size_t longest = 40;
  std::string out;
  for (const char c : name.substr(0, longest))
    out += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  return out;
}

} // namespace

std::vector<std::string> open_transactions(session& db, milliseconds longest) {
  db.begin();
  const auto a = db.run(
      "SELECT o.what, o.name, o.begun FROM (SELECT 'session ' || pid AS what, application_name AS "
      "name, floor(extract(epoch FROM xact_start) * 1000)::bigint AS begun, xact_start AS since, "
      "age(coalesce(backend_xmin, backend_xid)) AS age FROM pg_stat_activity WHERE datname = "
      "current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND "
      "(backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) UNION ALL SELECT 'prepared "
      "transaction', gid, floor(extract(epoch FROM prepared) * 1000)::bigint, prepared, "
      "age(transaction) FROM pg_prepared_xacts WHERE database = current_database()) o WHERE "
      "o.since < now() - $1::bigint * interval '1 millisecond' OR o.age > $2::bigint ORDER BY "
      "o.age DESC, o.since LIMIT $3::bigint",
      parameters{}.add(longest.count()).add(most_transactions).add(most_named));
  std::vector<std::string> out;
  for (int r = 0; r < a.rows(); ++r) {
    std::string line{a.text(r, 0)};
    if (const auto name = plain(a.text(r, 1)); !name.empty())
      line += " (" + name + ")";
    line += " has kept a transaction open";
    if (!a.is_null(r, 2))
      line += " since " + format_rfc3339(a.time(r, 2));
    out.push_back(line + "; until it ends, dead rows of the queue stay and the queue slows down");
  }
  db.commit();
  return out;
}

std::optional<witness> witness_of(const std::vector<store::operation>& batch,
                                  const std::vector<store::any_reply>& replies) {
  for (auto i = batch.size(); i > 0; --i) {
    const auto* op = std::get_if<store::settle>(&batch[i - 1]);
    const auto* results = std::get_if<std::vector<settle_result>>(&replies[i - 1]);
    if (op == nullptr || results == nullptr)
      continue;
    for (auto k = results->size(); k > 0; --k)
      if ((*results)[k - 1] == settle_result::accepted)
        return witness{
            .dispatch_id = op->items[k - 1].dispatch_id,
            .fence = op->items[k - 1].fence,
            .node_id = op->node_id,
        };
  }
  return std::nullopt;
}

std::optional<std::string> loss_of(session& db, const witness& w) {
  db.begin();
  // With its claim lost as well, another node may have ended the dispatch under the same fence.
  const auto a = db.run("SELECT coalesce(s.settled_fence, 0) < $2::bigint OR (s.fence = $2::bigint "
                        "AND s.last_owner <> $3) FROM dispatch_requests d LEFT JOIN "
                        "dispatch_results s USING (dispatch_id) WHERE d.dispatch_id = $1",
                        parameters{}.add(w.dispatch_id).add(w.fence).add(w.node_id));
  const bool lost = a.rows() > 0
                        ? a.text(0, 0) == "t"
                        : std::chrono::steady_clock::now() - w.since < limits::shortest_retention;
  db.commit();
  if (!lost)
    return std::nullopt;
  return "the database has lost acknowledged writes (a failover?): dispatch " + w.dispatch_id +
         " had ended, but is open again; lost dispatches run again";
}

} // namespace boyd::adapters::postgres
