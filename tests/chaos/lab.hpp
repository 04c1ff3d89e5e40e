#pragma once

#include "member.hpp"
#include "proxy.hpp"
#include "support/postgres/server.hpp"
#include "trigger.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace boyd::test {

/// What somebody has written into each home's STATE.md before the first start.
inline constexpr const char* agents_text = "\n## plans\n| a | table |\n|---|---|\nkeep me  \n";

/// What happened to a node, for the measure of how soon its work runs elsewhere.
struct loss {
  std::string node_id;
  std::int64_t at_ms = 0; ///< since 1970
  bool restarted = false; ///< its own restart takes the work back at once
};

/// A time in which no node ran that could reach the database; since 1970.
struct outage {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
};

/// What a run of the lab leaves to be judged.
struct chaos_record {
  std::map<std::string, int> faults;             ///< what was done, how often
  std::vector<std::string> never;                ///< main kinds of faults that have not struck yet
  std::vector<std::string> acknowledged;         ///< cycles that were admitted
  std::map<std::string, nlohmann::json> settled; ///< rows that were seen final, by id
  std::vector<loss> losses;
  std::vector<outage> outages;
  std::vector<std::string> surprises; ///< what nobody ordered: a node that ended by itself
};

/// Several nodes with homes of their own on one database, behind a proxy, and a random hand that
/// breaks what it can. Driven by one thread.
class chaos_lab {
 public:
  using clock = std::chrono::steady_clock;

  chaos_lab(postgres_server& server, std::uint64_t seed, int lease_s);

  /// Starts every node and waits until each is ready.
  void start();
  /// Faults and work, for so long; longer, while a main kind of fault has not struck.
  void rage(std::chrono::seconds time);
  /// Everything is given back; waits until all work is final and every node says that it is well.
  /// What is still amiss when the patience ends; empty when nothing is.
  std::string settle();
  /// SIGTERM for every node; their exit codes.
  std::vector<int> end();

  std::vector<std::unique_ptr<member>>& members() { return members_; }
  const chaos_record& record() const { return record_; }
  const tcp_proxy& proxy() const { return proxy_; }
  /// Rows of a question to the database itself, one JSON object each.
  std::vector<nlohmann::json> ask(const std::string& select) const;
  std::string database() const { return direct_; }
  const site& first() const { return members_.front()->home(); }
  int lease_s() const { return lease_s_; }

 private:
  std::optional<std::string> order(const std::string& sql) const;
  clock::duration random_time(double least_s, double most_s);
  member* random_up();
  void act();
  bool act_on(const std::string& kind);
  bool act_on_node(member& m, int what);
  bool act_on_database(int what);
  bool break_network(int what);
  bool end_sessions(bool in_commit);
  bool restart_server();
  void note_loss(const member& m, bool restarted);
  /// Says for the caller that it struck.
  bool count(const std::string& what) {
    ++record_.faults[what];
    return true;
  }
  void look_after();
  void note_outage();
  void trigger_cycle();
  void take_answers();
  void watch_results();
  std::string amiss();

  postgres_server& server_;
  std::string direct_;
  tcp_proxy proxy_;
  std::mt19937_64 random_;
  int lease_s_;
  std::vector<std::unique_ptr<member>> members_;
  std::vector<trigger> asked_;
  clock::time_point network_back_ = clock::time_point::max();
  clock::time_point server_back_ = clock::time_point::max();
  std::optional<std::int64_t> nobody_since_ms_;
  chaos_record record_;
};

} // namespace boyd::test
