#pragma once

#include "session.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace boyd::adapters::postgres {

/// An agent as dispatches name it.
struct agent_entry {
  std::int64_t no = 0;
  std::int64_t kernel_no = 0;
  std::string kernel_id;
  std::string agent_id;
};

/// What a session remembers of the database from one transaction to the next. Agents by name and
/// number: they are never removed, so what was once read stays true. Which row of dispatch_running
/// a dispatch was claimed into by this session: a hint that saves a search, nothing more, since
/// another session may have changed it. All of it is dropped with a transaction that is rolled
/// back.
class directory {
 public:
  using name = std::pair<std::string, std::string>; ///< kernel_id, agent_id
  /// Compares names of either kind of string.
  struct by_name {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      const int order = std::string_view{a.first}.compare(std::string_view{b.first});
      return order != 0 ? order < 0 : std::string_view{a.second} < std::string_view{b.second};
    }
  };

  explicit directory(session& db) : db_(db) {}

  /// Makes the agents that are new; `of` and `find` know them then.
  void ensure(const std::set<name>& agents);
  bool knows(std::string_view kernel_id, std::string_view agent_id) const;
  /// The agent, or null.
  const agent_entry* find(std::string_view kernel_id, std::string_view agent_id);
  /// The agents of a kernel, of a name, or both; empty: any.
  std::vector<const agent_entry*> named(std::string_view kernel_id, std::string_view agent_id);
  /// The agent of a row. Throws `failure` (corrupt) when there is none.
  const agent_entry& of(std::int64_t agent_no);

  void claimed(const std::string& dispatch_id, std::int64_t claim_no);
  void ended(const std::string& dispatch_id) { claims_.erase(dispatch_id); }
  /// Nothing: another session claimed it, or it does not run.
  std::optional<std::int64_t> claim_of(const std::string& dispatch_id) const;

  void forget();

 private:
  void load();

  session& db_;
  std::map<name, agent_entry, by_name> agents_;
  std::unordered_map<std::int64_t, const agent_entry*> by_no_;
  std::unordered_map<std::string, std::int64_t> claims_;
};

} // namespace boyd::adapters::postgres
