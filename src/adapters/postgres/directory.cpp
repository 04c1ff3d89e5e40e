#include "directory.hpp"

namespace boyd::adapters::postgres {

namespace {

/// Beyond this the hints are dropped: they are found again by searching.
constexpr std::size_t most_hints = 200'000;

failure missing(std::int64_t no) {
  return {{errc::corrupt, "agent number " + std::to_string(no) + " is missing", "postgres",
           "restore the database from a backup"},
          false};
}

} // namespace

void directory::load() {
  const auto a = db_.run("SELECT a.no, k.no, k.kernel_id, a.agent_id FROM agents a JOIN kernels k "
                         "ON k.no = a.kernel_no");
  for (int r = 0; r < a.rows(); ++r) {
    agent_entry e{a.integer(r, 0), a.integer(r, 1), std::string{a.text(r, 2)},
                  std::string{a.text(r, 3)}};
    auto [it, fresh] = agents_.try_emplace({e.kernel_id, e.agent_id}, e);
    if (fresh)
      by_no_[e.no] = &it->second;
  }
}

void directory::ensure(const std::set<name>& agents) {
  // In the order of their names, so that two nodes cannot wait for each other.
  array kernel_ids;
  array agent_ids;
  for (const auto& key : agents)
    if (!agents_.contains(key)) {
      kernel_ids.add(key.first);
      agent_ids.add(key.second);
    }
  if (kernel_ids.empty())
    return;
  db_.later(
      "INSERT INTO kernels(kernel_id) SELECT DISTINCT k FROM unnest($1::text[]) AS k ORDER BY 1 "
      "ON CONFLICT DO NOTHING",
      parameters{}.add(kernel_ids));
  db_.later(
      "INSERT INTO agents(kernel_no, agent_id) SELECT k.no, i.a FROM unnest($1::text[], "
      "$2::text[]) WITH ORDINALITY AS i(k, a, place) JOIN kernels k ON k.kernel_id = i.k ORDER "
      "BY i.place ON CONFLICT DO NOTHING",
      parameters{}.add(kernel_ids).add(agent_ids));
  load();
}

bool directory::knows(std::string_view kernel_id, std::string_view agent_id) const {
  return agents_.find(std::pair{kernel_id, agent_id}) != agents_.end();
}

const agent_entry* directory::find(std::string_view kernel_id, std::string_view agent_id) {
  const std::pair key{kernel_id, agent_id};
  auto it = agents_.find(key);
  if (it == agents_.end()) {
    load();
    it = agents_.find(key);
  }
  return it == agents_.end() ? nullptr : &it->second;
}

std::vector<const agent_entry*> directory::named(std::string_view kernel_id,
                                                 std::string_view agent_id) {
  load();
  std::vector<const agent_entry*> out;
  for (const auto& [key, entry] : agents_)
    if ((kernel_id.empty() || key.first == kernel_id) &&
        (agent_id.empty() || key.second == agent_id))
      out.push_back(&entry);
  return out;
}

const agent_entry& directory::of(std::int64_t agent_no) {
  auto it = by_no_.find(agent_no);
  if (it == by_no_.end()) {
    load();
    it = by_no_.find(agent_no);
  }
  if (it == by_no_.end())
    throw missing(agent_no);
  return *it->second;
}

void directory::claimed(const std::string& dispatch_id, std::int64_t claim_no) {
  if (claims_.size() >= most_hints)
    claims_.clear();
  claims_[dispatch_id] = claim_no;
}

std::optional<std::int64_t> directory::claim_of(const std::string& dispatch_id) const {
  const auto it = claims_.find(dispatch_id);
  if (it == claims_.end())
    return std::nullopt;
  return it->second;
}

void directory::forget() {
  claims_.clear();
  by_no_.clear();
  agents_.clear();
}

} // namespace boyd::adapters::postgres
