#include "operations.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_set>

namespace boyd::adapters::postgres {

using namespace store;

namespace {

/// What identifies a dispatch before its id: cycle and agent.
using agent_key = std::pair<std::string_view, std::int64_t>;

struct key_hash {
  std::size_t operator()(const agent_key& k) const noexcept {
    constexpr std::size_t spread = 0x9e3779b97f4a7c15;
    return std::hash<std::string_view>{}(k.first) ^ (static_cast<std::size_t>(k.second) * spread);
  }
};

using ids_by_key = std::unordered_map<agent_key, std::string, key_hash>;

/// A spec and its agent.
struct request {
  const dispatch_spec* spec = nullptr;
  const agent_entry* agent = nullptr;
};

agent_key key_of(const request& r) {
  return {r.spec->cycle_id, r.agent->no};
}

std::vector<request> requests_of(directory& names, const std::vector<const enqueue_cycle*>& ops) {
  std::set<directory::name> fresh;
  for (const auto* op : ops)
    for (const auto& s : op->specs)
      if (!names.knows(s.kernel_id, s.agent_id))
        fresh.insert({s.kernel_id, s.agent_id});
  names.ensure(fresh);
  std::vector<request> out;
  for (const auto* op : ops)
    for (const auto& s : op->specs)
      out.push_back({&s, names.find(s.kernel_id, s.agent_id)});
  return out;
}

/// Without those whose id or key an earlier one has: the first wins.
std::vector<request> first_of_each(const std::vector<request>& all) {
  std::unordered_set<std::string_view> ids;
  std::unordered_set<agent_key, key_hash> keys;
  std::vector<request> out;
  for (const auto& r : all) {
    if (ids.contains(r.spec->dispatch_id) || !keys.insert(key_of(r)).second)
      continue;
    ids.insert(r.spec->dispatch_id);
    out.push_back(r);
  }
  return out;
}

/// The ids of the rows that stand for requests that were not inserted.
ids_by_key standing(session& db, const std::vector<request>& all,
                    const std::unordered_set<std::string_view>& fresh) {
  array cycles;
  array agents;
  std::unordered_map<agent_key, agent_key, key_hash> asked;
  for (const auto& r : all)
    if (!fresh.contains(r.spec->dispatch_id) && asked.try_emplace(key_of(r), key_of(r)).second) {
      cycles.add(r.spec->cycle_id);
      agents.add(r.agent->no);
    }
  ids_by_key out;
  if (cycles.empty())
    return out;
  const auto a = db.run("SELECT d.cycle_id, d.agent_no, d.dispatch_id FROM unnest($1::text[], "
                        "$2::int[]) AS i(c, a) JOIN dispatch_requests d ON d.cycle_id = i.c AND "
                        "d.agent_no = i.a",
                        parameters{}.add(cycles).add(agents));
  for (int r = 0; r < a.rows(); ++r)
    out[asked.at({a.text(r, 0), a.integer(r, 1)})] = std::string{a.text(r, 2)};
  return out;
}

void insert_decisions(session& db, const std::vector<const enqueue_cycle*>& ops) {
  array kernels, cycles, agents, dispatched, reasons, details;
  for (const auto* op : ops)
    for (const auto& d : op->decisions) {
      kernels.add(op->kernel_id);
      cycles.add(op->cycle_id);
      agents.add(d.agent_id);
      dispatched.add(d.dispatched ? "t" : "f");
      reasons.add(d.reason);
      details.add(d.detail);
    }
  if (!kernels.empty())
    db.later(
        "INSERT INTO decisions(kernel_id, cycle_id, agent_id, decided_at, dispatched, reason, "
        "detail) SELECT k, c, g, now_ms(), d, r, x FROM unnest($1::text[], $2::text[], "
        "$3::text[], $4::boolean[], $5::text[], $6::text[]) AS i(k, c, g, d, r, x) ON CONFLICT "
        "DO NOTHING",
        parameters{}
            .add(kernels)
            .add(cycles)
            .add(agents)
            .add(dispatched)
            .add(reasons)
            .add(details));
}

stored stored_of(const request& r, utc_time now) {
  return {queue::new_row(*r.spec, now), r.agent, false};
}

/// The time that stands for the server's own in rows that count from it.
constexpr utc_time server_time{};

void write_rows(session& db, const std::string& table, std::string_view columns,
                const copy_rows& rows, bool from_now) {
  if (from_now)
    db.insert_from_now(table, columns, rows);
  else
    db.copy(table, columns, rows);
}

const std::string& request_columns() {
  static const auto all =
      "dispatch_id, agent_no, " + names_of(queue::columns_of_request) + ", prompt";
  return all;
}

/// Its parameters are arrays of these columns, in their order. The time is the server's.
std::string insert_of_requests() {
  std::string values = "dispatch_id, agent_no";
  std::string types = "$1::text[], $2::int[]";
  int n = 2;
  const auto add = [&](const auto& c) {
    const std::string name = c.name;
    values += ", " + (name == "created_at" ? "now_ms()" : name + (c.form.json ? "::jsonb" : ""));
    types += ", $" + std::to_string(++n) + "::" + type_of(c) + "[]";
  };
  queue::for_each_column(queue::columns_of_request, add);
  add(queue::prompt_column);
  return "INSERT INTO dispatch_requests(" + request_columns() + ") SELECT " + values +
         " FROM unnest(" + types + ") WITH ORDINALITY AS r(" + request_columns() +
         ", place) ORDER BY place ON CONFLICT DO NOTHING RETURNING dispatch_id, cycle_id, agent_no";
}

/// The requests as rows, in one COPY: it fails when any stands already.
std::vector<stored> copy_requests(session& db, const std::vector<request>& all, utc_time now) {
  std::vector<stored> out;
  copy_rows rows;
  for (const auto& r : first_of_each(all)) {
    const auto& row = out.emplace_back(stored_of(r, now)).row;
    rows.add(row.d.dispatch_id).add(r.agent->no);
    queue::for_each_column(queue::columns_of_request,
                           [&](const auto& c) { add_value(rows, c, row); });
    add_value(rows, queue::prompt_column, row);
    rows.end_row();
  }
  write_rows(db, "dispatch_requests", request_columns(), rows, now == server_time);
  return out;
}

/// The requests that do not stand yet.
std::vector<stored> insert_requests(session& db, const std::vector<request>& all, utc_time now) {
  std::array<array, 2 + queue::request_column_count + 1> values;
  for (const auto& r : all) {
    const auto row = stored_of(r, now).row;
    auto next = values.begin();
    (next++)->add(row.d.dispatch_id);
    (next++)->add(r.agent->no);
    queue::for_each_column(queue::columns_of_request,
                           [&](const auto& c) { add_value(*next++, c, row); });
    add_value(*next, queue::prompt_column, row);
  }
  parameters p;
  for (const auto& v : values)
    p.add(v);
  static const auto sql = insert_of_requests();
  const auto a = db.run(sql, p);
  std::set<std::tuple<std::string, std::string, std::int64_t>> inserted;
  for (int r = 0; r < a.rows(); ++r)
    inserted.insert({std::string{a.text(r, 0)}, std::string{a.text(r, 1)}, a.integer(r, 2)});
  std::vector<stored> out;
  for (const auto& r : all)
    if (inserted.erase({r.spec->dispatch_id, r.spec->cycle_id, r.agent->no}) > 0)
      out.push_back(stored_of(r, now));
  return out;
}

/// What orders claims; dispatches that differ in it are never in one row.
auto waiting_order(const stored& s) {
  return std::tuple{s.agent->no, s.row.d.priority, s.row.d.not_before};
}

/// Whether its body stands in its row of dispatch_waiting.
bool is_short(const stored& s) {
  return s.row.d.prompt.size() <= short_prompt &&
         s.row.d.cycle_id.find(body_separator) == std::string::npos;
}

/// Whether a row of dispatch_waiting that begins with `first` may stand for `s`, too.
bool fits(const stored& first, const stored& s) {
  return waiting_order(s) == waiting_order(first) && is_short(s) == is_short(first) &&
         s.row.d.max_attempts == first.row.d.max_attempts &&
         s.row.d.metadata_json == first.row.d.metadata_json;
}

/// What a dispatch takes in the arrays of such a row: each text has a length and is aligned.
std::size_t waiting_bytes(const dispatch& d) {
  constexpr std::size_t beside_texts = 16;
  return d.dispatch_id.size() + d.cycle_id.size() + d.prompt.size() + beside_texts;
}

} // namespace

void operations::insert_waiting(const std::vector<stored>& rows, bool from_now) {
  std::vector<const stored*> sorted;
  for (const auto& s : rows)
    sorted.push_back(&s);
  std::sort(sorted.begin(), sorted.end(), [&](const stored* a, const stored* b) {
    return std::tuple_cat(waiting_order(*a), std::tie(a->row.d.dispatch_id)) <
           std::tuple_cat(waiting_order(*b), std::tie(b->row.d.dispatch_id));
  });
  copy_rows lines;
  for (auto first = sorted.begin(), next = first; first != sorted.end(); first = next) {
    const auto& d = (*first)->row.d;
    const bool whole = is_short(**first);
    std::size_t bytes = 0;
    array members;
    array bodies;
    // One after the other: rows of an agent must not overlap.
    for (; next != sorted.end() && fits(**first, **next); ++next) {
      const auto& one = (*next)->row.d;
      bytes += waiting_bytes(one);
      if (next - first == most_members || (whole && next != first && bytes > most_waiting_bytes))
        break;
      members.add(one.dispatch_id);
      if (whole)
        bodies.add(one.cycle_id + body_separator + one.prompt);
    }
    lines.add((*first)->agent->no).add(d.priority).add(to_unix_ms(d.created_at));
    lines.add(d.dispatch_id).add(to_unix_ms(d.not_before));
    lines.add(static_cast<std::int64_t>(next - first)).add("f").add(members.literal());
    if (whole)
      lines.add(d.max_attempts).add_unless("{}", d.metadata_json).add(bodies.literal());
    else
      lines.add_null().add_null().add_null();
    lines.end_row();
  }
  write_rows(db_, "dispatch_waiting",
             "agent_no,priority,created_at,first_id,not_before,size,attempted,members,max_attempts,"
             "metadata,bodies",
             lines, from_now);
}

wakeup operations::woken() const {
  wakeup all{{}, woken_};
  std::size_t told = 0;
  for (const auto& s : inserted_) {
    const auto& d = s.row.d;
    if (all.kernels.contains(d.kernel_id) || names_.claim_of(d.dispatch_id))
      continue;
    if (++told > queue::most_told || d.not_before > d.created_at)
      all.kernels.insert(d.kernel_id);
    else
      queue::add_due(all.rows, {d.kernel_id, d.agent_id, d.priority, 1});
  }
  return all;
}

std::vector<any_reply> operations::run(const std::vector<const enqueue_cycle*>& ops) {
  const auto all = requests_of(names_, ops);
  // Not to ask for the time saves a few rows a third of their way.
  const bool from_now = !careful_ && all.size() <= few_rows;
  const auto at = from_now ? server_time : now();
  auto rows = careful_ ? insert_requests(db_, all, at) : copy_requests(db_, all, at);
  std::unordered_set<std::string_view> fresh;
  for (const auto& s : rows)
    fresh.insert(s.row.d.dispatch_id);
  const auto older = standing(db_, all, fresh);
  ids_by_key inserted;
  std::vector<any_reply> replies;
  auto next = all.begin();
  for (const auto* op : ops) {
    enqueue_cycle::reply reply;
    std::optional<error> taken;
    for (const auto& spec : op->specs) {
      const auto key = key_of(*next++);
      if (fresh.erase(spec.dispatch_id) > 0) {
        ++reply.inserted;
        inserted[key] = spec.dispatch_id;
      }
      const auto here = inserted.find(key);
      const auto before = older.find(key);
      if (here != inserted.end())
        reply.dispatch_ids.push_back(here->second);
      else if (before != older.end())
        reply.dispatch_ids.push_back(before->second);
      else
        taken = error{errc::already_exists,
                      "dispatch id " + spec.dispatch_id + " already exists",
                      "store",
                      {}};
    }
    if (taken)
      replies.emplace_back(*taken);
    else
      replies.emplace_back(std::move(reply));
  }
  insert_decisions(db_, ops);
  fresh.clear();
  insert_waiting(rows, from_now);
  std::ranges::move(rows, std::back_inserter(inserted_));
  return replies;
}

} // namespace boyd::adapters::postgres
