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

/// What was done, when.
struct blow {
  std::int64_t at_ms = 0; ///< since 1970
  std::string what;
};

/// A node with a way of its own to the database.
struct station {
  using clock = std::chrono::steady_clock;

  std::unique_ptr<tcp_proxy> network;
  std::unique_ptr<member> node;
  clock::time_point network_back = clock::time_point::max(); ///< when a broken way is mended
  bool lost = false; ///< the others have to do its work, if that goes on

  bool connected() const { return network_back == clock::time_point::max(); }
  /// It runs, and reaches the database when that is there.
  bool fit() const { return connected() && node->state() == member::condition::up; }
  void break_network(bool stalled, clock::time_point back);
  void mend_network();
};

/// What a run of the lab leaves to be judged.
struct chaos_record {
  std::map<std::string, int> faults;     ///< what was done, how often
  std::vector<blow> blows;               ///< each of them, and what was given back, in order
  std::vector<std::string> never;        ///< main kinds of faults that have not struck yet
  std::vector<std::string> acknowledged; ///< cycles that were admitted
  std::map<std::string, nlohmann::json> settled; ///< rows that were seen final, by id
  std::vector<loss> losses;
  std::vector<std::string> surprises; ///< what nobody ordered: a node that ended by itself
};

/// Several nodes with homes of their own on one database, each behind a proxy, and a random hand
/// that breaks what it can: any node, several at once, all of them and the database for a moment.
/// At any time two are spared what lasts longer than a lease, for a lost node's work is to run
/// elsewhere. Driven by one thread.
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

  std::vector<station>& stations() { return stations_; }
  const chaos_record& record() const { return record_; }
  /// Commits that were cut on their way, of all nodes.
  std::size_t commits_cut() const;
  /// Rows of a question to the database itself, one JSON object each.
  std::vector<nlohmann::json> ask(const std::string& select) const;
  std::string database() const { return direct_; }
  int lease_s() const { return lease_s_; }
  const site& first() const { return stations_.front().node->home(); }

 private:
  std::optional<std::string> order(const std::string& sql) const;
  clock::duration random_time(double least_s, double most_s);
  /// One with this property; null when there is none.
  station* random_station(bool (*such)(const station&));
  bool may_go_for_long(const station& s) const;
  void act();
  bool act_on(const std::string& kind);
  bool act_on_node(station& s, int what);
  bool kill_for_a_while(station& s);
  bool stop_for_a_while(station& s, bool whole);
  bool act_on_database(int what);
  bool break_network(int what);
  bool isolate(station& s, bool stalled);
  bool part_all(bool stalled);
  void cut_a_commit();
  bool end_sessions(bool in_commit);
  bool restart_server();
  void lose(station& s, bool restarted);
  /// Says for the caller that it struck.
  bool count(const std::string& what) {
    ++record_.faults[what];
    note(what);
    return true;
  }
  void note(const std::string& what);
  void look_at(member& m);
  void look_after();
  void trigger_cycle();
  void take_answers();
  void watch_results();
  std::string amiss();

  postgres_server& server_;
  std::string direct_;
  std::mt19937_64 random_;
  int lease_s_;
  std::vector<station> stations_;
  std::vector<trigger> asked_;
  clock::time_point server_back_ = clock::time_point::max();
  chaos_record record_;
};

} // namespace boyd::test
