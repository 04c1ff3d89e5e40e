#include "directory.hpp"

#include <sqlite3.h>

namespace boyd::adapters::sqlite {

void directory::load() {
  if (loaded_)
    return;
  auto s = db_.prepare("SELECT a.no, k.no, k.kernel_id, a.agent_id FROM agents a JOIN kernels k "
                       "ON k.no = a.kernel_no");
  while (s.step()) {
    agent_entry a{s.integer(0), s.integer(1), s.text(2), s.text(3), 0, 0};
    auto& made = agents_[{a.kernel_id, a.agent_id}];
    made = std::move(a);
    by_no_[made.no] = &made;
  }
  loaded_ = true;
}

const directory::agents& directory::all() {
  load();
  return agents_;
}

agent_entry* directory::find(std::string_view kernel_id, std::string_view agent_id) {
  load();
  const auto it = agents_.find(std::pair{kernel_id, agent_id});
  return it == agents_.end() ? nullptr : &it->second;
}

agent_entry& directory::of(std::int64_t agent_no) {
  load();
  const auto it = by_no_.find(agent_no);
  if (it == by_no_.end())
    throw failure(SQLITE_CORRUPT, "a dispatch refers to a missing agent");
  return *it->second;
}

agent_entry& directory::ensure(const std::string& kernel_id, const std::string& agent_id) {
  if (auto* known = find(kernel_id, agent_id))
    return *known;
  agent_entry a{0, 0, kernel_id, agent_id, 0, 0};
  db_.prepare("INSERT OR IGNORE INTO kernels(kernel_id) VALUES(?)").bind(kernel_id).run();
  {
    auto s = db_.prepare("SELECT no FROM kernels WHERE kernel_id=?");
    s.bind(kernel_id);
    if (s.step())
      a.kernel_no = s.integer(0);
  }
  auto s = db_.prepare("INSERT INTO agents(kernel_no, agent_id) VALUES(?,?)");
  s.bind(a.kernel_no).bind(agent_id).run();
  a.no = db_.last_id();
  auto& made = agents_[{kernel_id, agent_id}];
  made = std::move(a);
  by_no_[made.no] = &made;
  return made;
}

std::int64_t directory::node_no(const std::string& node_id) {
  if (node_id.empty())
    return 0;
  auto& no = node_nos_[node_id];
  if (no != 0)
    return no;
  db_.prepare("INSERT OR IGNORE INTO node_names(node_id) VALUES(?)").bind(node_id).run();
  auto s = db_.prepare("SELECT no FROM node_names WHERE node_id=?");
  s.bind(node_id);
  if (!s.step())
    throw failure(SQLITE_CORRUPT, "the name of a node was not stored");
  no = s.integer(0);
  node_ids_[no] = node_id;
  return no;
}

const std::string& directory::node_id(std::int64_t no) {
  const auto it = node_ids_.find(no);
  if (it != node_ids_.end())
    return it->second;
  auto s = db_.prepare("SELECT node_id FROM node_names WHERE no=?");
  s.bind(no);
  if (!s.step())
    throw failure(SQLITE_CORRUPT, "a dispatch refers to a missing node");
  return node_ids_[no] = s.text(0);
}

std::int64_t& directory::next_id() {
  if (next_id_ == 0) {
    auto s = db_.prepare("SELECT coalesce(max(id), 0) + 1 FROM dispatch_requests");
    s.step();
    next_id_ = s.integer(0);
  }
  return next_id_;
}

const held_lease* directory::leased(const std::string& dispatch_id) const {
  const auto it = leases_.find(dispatch_id);
  return it == leases_.end() ? nullptr : &it->second;
}

const directory::agents& directory::counted() {
  load();
  if (counted_)
    return agents_;
  for (auto& [name, a] : agents_)
    a.waiting = a.delayed = 0;
  auto s = db_.prepare("SELECT agent_no, sum(last_id - first_id + 1), sum((last_id - first_id "
                       "+ 1) * (not_before > created_at)) FROM dispatch_waiting GROUP BY agent_no");
  while (s.step()) {
    auto& a = of(s.integer(0));
    a.waiting = static_cast<std::uint64_t>(s.integer(1));
    a.delayed = static_cast<std::uint64_t>(s.integer(2));
  }
  counted_ = true;
  return agents_;
}

void directory::waiting(agent_entry& a, bool delayed, std::int64_t by) {
  if (!counted_)
    return;
  const auto more = static_cast<std::uint64_t>(by); // wraps around where it is below 0
  a.waiting += more;
  if (delayed)
    a.delayed += more;
}

void directory::moved(const agent_entry& a, std::optional<dispatch_status> from,
                      std::optional<dispatch_status> to, std::int64_t count) {
  if (from == to)
    return;
  auto& changes = changes_[a.kernel_id];
  if (from)
    changes[static_cast<std::size_t>(*from)] -= count;
  if (to)
    changes[static_cast<std::size_t>(*to)] += count;
}

void directory::write_counts() {
  for (const auto& [kernel_id, changes] : changes_)
    for (const auto status : statuses)
      if (const auto by = changes[static_cast<std::size_t>(status)]; by != 0)
        write_count(kernel_id, status, by);
  changes_.clear();
}

void directory::write_count(const std::string& kernel_id, dispatch_status status, std::int64_t by) {
  auto s = db_.prepare("UPDATE dispatch_counts SET n = n + ? WHERE kernel_id=? AND status=?");
  s.bind(by).bind(kernel_id).bind(name_of(status)).run();
  if (db_.changes() > 0)
    return;
  auto first = db_.prepare("INSERT INTO dispatch_counts(kernel_id, status, n) VALUES(?,?,?)");
  first.bind(kernel_id).bind(name_of(status)).bind(by).run();
}

void directory::forget() {
  loaded_ = counted_ = false;
  next_id_ = 0;
  by_no_.clear();
  agents_.clear();
  node_nos_.clear();
  node_ids_ = {{0, {}}};
  leases_.clear();
  changes_.clear();
}

} // namespace boyd::adapters::sqlite
