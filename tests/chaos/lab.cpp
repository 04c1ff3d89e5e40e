#include "lab.hpp"

#include "knobs.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace boyd::test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t nodes = 4;
constexpr std::size_t quick_agents = 24;
constexpr std::size_t slow_agents = 4;
/// Nodes that nothing keeps away for longer than a moment.
constexpr std::ptrdiff_t spared = 2;
constexpr double moment_s = 3;
const std::string node_killed = "node killed";
const std::string node_stopped = "node stopped";
const std::string host_killed = "process host killed";
const std::string session_ended = "session terminated";
const std::string ended_in_commit = "session terminated in COMMIT";
const std::string network_cut = "network cut";
const std::string network_stalled = "network stalled";
const std::string server_restarted = "server restarted";
constexpr auto trigger_every = 250ms;
constexpr auto watch_every = 1s;
constexpr std::chrono::milliseconds settle_patience = 180s;
/// How much longer the faults go on for a main kind that found nothing to strike.
constexpr std::chrono::milliseconds kinds_patience = 60s;

const std::string quick = "say began-$BOYD_FENCE\n"
                          "set -C; if true 2>/dev/null > @SITE@/effects/$BOYD_DISPATCH_ID; "
                          "then say effect; else say absorbed; fi\n"
                          "sleep 0.005; say ended; echo done";
/// Long enough to be running when something happens.
const std::string slow = "say began-$BOYD_FENCE\n"
                         "set -C; if true 2>/dev/null > @SITE@/effects/$BOYD_DISPATCH_ID; "
                         "then say effect; else say absorbed; fi\n"
                         "sleep 1; say ended; echo done";

/// A session in the middle of its COMMIT, or of what was sent together with it, is ended, if one is
/// met in so many looks.
const std::string terminate_in_commit = R"sql(DO $$ DECLARE victim integer; BEGIN
  FOR i IN 1..2000 LOOP
    PERFORM pg_stat_clear_snapshot();
    SELECT pid INTO victim FROM pg_stat_activity
      WHERE application_name = 'boyd' AND state = 'active' AND query LIKE '%COMMIT' LIMIT 1;
    IF victim IS NOT NULL THEN
      PERFORM pg_terminate_backend(victim);
      RAISE NOTICE 'ended in COMMIT';
      EXIT;
    END IF;
  END LOOP;
END $$)sql";

const std::string terminate_some =
    "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE "
    "application_name = 'boyd' ORDER BY random() LIMIT 2) AS victims";

test_settings settings_for(const std::string& store, int lease_s, bool scheduled) {
  test_settings t;
  t.node =
      "max_concurrent: 8, drain_grace: 5s, store: \"" + store + "\", " + lease_settings(lease_s);
  t.kernel = std::string("schedule: \"") + (scheduled ? "@every 1s" : "0 0 1 1 *") +
             "\"; max_cycle_history: 20; overlap: skip; misfire: run_once; cycle_deadline: 1h";
  const std::string retry = "retry: {max_attempts: 50, base: 10ms, cap: 200ms}; timeout: 60s";
  for (std::size_t i = 0; i < quick_agents; ++i)
    t.agents.push_back({"quick-" + std::to_string(i), quick, retry});
  for (std::size_t i = 0; i < slow_agents; ++i)
    t.agents.push_back({"slow-" + std::to_string(i), slow, retry + "; priority: 20"});
  return t;
}

int port_in(const std::string& uri) {
  const auto colon = uri.rfind(':');
  return std::atoi(uri.c_str() + colon + 1);
}

std::string through(const std::string& uri, int port) {
  const auto colon = uri.rfind(':');
  return uri.substr(0, colon + 1) + std::to_string(port) + uri.substr(uri.find('/', colon));
}

std::string as_json(const std::string& select) {
  return "SELECT row_to_json(asked) FROM (" + select + ") AS asked";
}

std::vector<nlohmann::json> rows_of(const std::string& said) {
  std::vector<nlohmann::json> rows;
  for (const auto& line : lines_of(said))
    if (!line.empty())
      rows.push_back(nlohmann::json::parse(line));
  return rows;
}

bool runs(const station& s) {
  return s.node->state() == member::condition::up;
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace

void station::break_network(bool stalled, clock::time_point back) {
  network_back = back;
  if (stalled)
    network->stall();
  else
    network->cut();
}

void station::mend_network() {
  network->pass();
  network_back = clock::time_point::max();
}

chaos_lab::chaos_lab(postgres_server& server, std::uint64_t seed, int lease_s)
    : server_(server), direct_(server.make_database()), random_(seed), lease_s_(lease_s) {
  record_.never = {node_killed,     node_stopped, host_killed,     session_ended,
                   ended_in_commit, network_cut,  network_stalled, server_restarted};
  for (std::size_t i = 0; i < nodes; ++i) {
    auto network = std::make_unique<tcp_proxy>(port_in(direct_));
    const auto settings = settings_for(through(direct_, network->port()), lease_s, true);
    stations_.push_back(
        {std::move(network),
         std::make_unique<member>(i == 0 ? std::make_unique<site>(settings)
                                         : std::make_unique<site>(settings, first()))});
  }
  std::filesystem::create_directory(first().outside("effects"));
  for (const auto& s : stations_) {
    const auto& home = s.node->home();
    write_file(home.kernel("STATE.md"), home.state() + agents_text);
  }
}

void chaos_lab::start() {
  for (auto& s : stations_)
    s.node->start();
  for (auto& s : stations_)
    s.node->process().wait_ready();
}

std::size_t chaos_lab::commits_cut() const {
  std::size_t n = 0;
  for (const auto& s : stations_)
    n += s.network->commits_cut();
  return n;
}

std::vector<nlohmann::json> chaos_lab::ask(const std::string& select) const {
  return rows_of(server_.query(direct_, as_json(select)));
}

/// What the database says to it; nothing while it is away.
std::optional<std::string> chaos_lab::order(const std::string& sql) const {
  if (!server_.running())
    return std::nullopt;
  try {
    return server_.query(direct_, sql);
  } catch (const std::runtime_error&) {
    // It has just gone, or is recovering.
    return std::nullopt;
  }
}

// -- the random hand -----------------------------------------------------------------------------

chaos_lab::clock::duration chaos_lab::random_time(double least_s, double most_s) {
  const std::chrono::duration<double> time{
      std::uniform_real_distribution<double>(least_s, most_s)(random_)};
  return std::chrono::duration_cast<clock::duration>(time);
}

station* chaos_lab::random_station(bool (*such)(const station&)) {
  std::vector<station*> those;
  for (auto& s : stations_)
    if (such(s))
      those.push_back(&s);
  return those.empty() ? nullptr : those[random_() % those.size()];
}

bool chaos_lab::may_go_for_long(const station& s) const {
  return std::ranges::count_if(stations_, [&](const station& other) {
           return &other != &s && other.fit();
         }) >= spared;
}

/// From when on its work is waited for elsewhere. What strikes it while it is lost changes nothing,
/// but that it may not be back at once any more.
void chaos_lab::lose(station& s, bool restarted) {
  const auto id = s.node->node_id();
  if (!std::exchange(s.lost, true))
    record_.losses.push_back({id, now_ms(), restarted});
  else if (!restarted)
    std::ranges::find(record_.losses.rbegin(), record_.losses.rend(), id, &loss::node_id)
        ->restarted = false;
}

void chaos_lab::note(const std::string& what) {
  record_.blows.push_back({now_ms(), what});
}

bool chaos_lab::kill_for_a_while(station& s) {
  const bool for_long = may_go_for_long(s);
  const double lease = lease_s_;
  lose(s, !for_long);
  s.node->kill(clock::now() + (for_long
                                   ? random_time(lease + rescue_sweep_s, lease + 2 * rescue_sweep_s)
                                   : random_time(0, moment_s)));
  return count(for_long ? "kill -9, away for longer than its leases"
                        : "kill -9, away for a moment");
}

bool chaos_lab::stop_for_a_while(station& s, bool whole) {
  const bool for_long = may_go_for_long(s);
  const double lease = lease_s_;
  lose(s, false);
  s.node->stop(clock::now() + (for_long ? random_time(lease, lease + rescue_sweep_s)
                                        : random_time(0, moment_s)),
               whole);
  const std::string what = whole ? " with its commands" : "";
  return count("SIGSTOP" + what + (for_long ? " past the lease" : " for a moment")) && for_long;
}

bool chaos_lab::act_on_node(station& s, int what) {
  switch (what) {
  case 0:
    lose(s, true);
    s.node->kill(clock::now());
    return count("kill -9, restarted at once");
  case 1:
    return kill_for_a_while(s);
  case 2:
  case 3:
    return stop_for_a_while(s, what == 3);
  default:
    return s.node->kill_host() && count("kill -9 of the process host");
  }
}

bool chaos_lab::break_network(int what) {
  if (what == 2) {
    for (auto& s : stations_)
      s.network->drop();
    return count("connections dropped");
  }
  const bool stalled = what == 1;
  if (random_() % 2 == 0)
    return part_all(stalled);
  auto* s = random_station([](const station& any) { return any.connected(); });
  return s != nullptr && isolate(*s, stalled);
}

/// One node's way to the database.
bool chaos_lab::isolate(station& s, bool stalled) {
  const bool for_long = may_go_for_long(s);
  lose(s, false);
  s.break_network(stalled,
                  clock::now() + random_time(0.2, for_long ? lease_s_ + moment_s : moment_s));
  return count(stalled ? "network stalled for one node" : "network cut for one node");
}

/// The way of all that have one.
bool chaos_lab::part_all(bool stalled) {
  const auto back = clock::now() + random_time(0.2, moment_s);
  bool any = false;
  for (auto& s : stations_) {
    if (!s.connected())
      continue;
    s.break_network(stalled, back);
    any = true;
  }
  return any && count(stalled ? "network stalled for all" : "network cut for all");
}

void chaos_lab::cut_a_commit() {
  if (auto* s = random_station([](const station& any) { return any.fit(); }))
    s->network->cut_at_commit(random_() % 2 == 0);
}

bool chaos_lab::end_sessions(bool in_commit) {
  const auto said = order(in_commit ? terminate_in_commit : terminate_some);
  if (!said)
    return false;
  if (in_commit)
    return said->find("ended in COMMIT") != std::string::npos && count(ended_in_commit);
  return *said != "0" && count("sessions terminated");
}

bool chaos_lab::act_on_database(int what) {
  switch (what) {
  case 0:
  case 1:
    return end_sessions(what == 1);
  case 2:
    cut_a_commit();
    return true;
  case 3:
  case 4:
  case 5:
    return break_network(what - 3);
  default:
    return restart_server();
  }
}

bool chaos_lab::restart_server() {
  if (!server_.running())
    return false;
  server_.stop_immediately();
  server_back_ = clock::now() + random_time(0, 2);
  return count("server restarted as after a crash");
}

/// One of the main kinds; false when there was nothing that it could strike.
bool chaos_lab::act_on(const std::string& kind) {
  const auto any = static_cast<int>(random_() % 2);
  if (kind == session_ended || kind == ended_in_commit)
    return end_sessions(kind == ended_in_commit);
  if (kind == network_cut || kind == network_stalled)
    return break_network(kind == network_stalled ? 1 : 0);
  if (kind == server_restarted)
    return restart_server();
  auto* s = random_station(runs);
  if (s == nullptr)
    return false;
  if (kind == node_killed)
    return act_on_node(*s, any);
  return act_on_node(*s, kind == node_stopped ? 2 + any : 4);
}

void chaos_lab::act() {
  constexpr int of_nodes = 5;
  constexpr int of_database = 7;
  // Each main kind once, in any order, and a COMMIT cut meanwhile; then what comes.
  if (!record_.never.empty()) {
    if (commits_cut() == 0)
      cut_a_commit();
    std::swap(record_.never.back(), record_.never[random_() % record_.never.size()]);
    if (act_on(record_.never.back()))
      record_.never.pop_back();
    return;
  }
  const auto what = static_cast<int>(random_() % (of_nodes + of_database));
  if (what >= of_nodes)
    act_on_database(what - of_nodes);
  else if (auto* s = random_station(runs))
    act_on_node(*s, what);
}

void chaos_lab::look_at(member& m) {
  if (auto surprise = m.look())
    record_.surprises.push_back(std::move(*surprise));
}

void chaos_lab::look_after() {
  const auto now = clock::now();
  for (auto& s : stations_) {
    auto& m = *s.node;
    look_at(m);
    if (m.state() == member::condition::down && now >= m.until())
      m.start();
    if (m.state() == member::condition::stopped && now >= m.until())
      m.resume();
    if (now >= s.network_back) {
      s.mend_network();
      note("a network is back");
    }
    s.lost = s.lost && !s.fit();
  }
  if (now >= server_back_) {
    server_.start();
    server_back_ = clock::time_point::max();
    note("the server is back");
  }
}

// -- the work ------------------------------------------------------------------------------------

void chaos_lab::trigger_cycle() {
  constexpr std::size_t most_asked = 32;
  if (asked_.size() < most_asked)
    asked_.emplace_back(stations_[random_() % stations_.size()].node->home().home());
}

void chaos_lab::take_answers() {
  std::erase_if(asked_, [&](trigger& t) {
    if (!t.ended())
      return false;
    if (auto id = t.admitted())
      record_.acknowledged.push_back(*id);
    return true;
  });
}

/// What was final once must stay as it was.
void chaos_lab::watch_results() {
  const auto said =
      order(as_json("SELECT dispatch_id, status, fence, started_at, finished_at, rescues FROM "
                    "boyd.dispatches WHERE finished_at IS NOT NULL ORDER BY finished_at DESC "
                    "LIMIT 50"));
  for (auto& row : rows_of(said.value_or(""))) {
    const auto id = row.at("dispatch_id").get<std::string>();
    record_.settled.try_emplace(id, std::move(row));
  }
}

void chaos_lab::rage(std::chrono::seconds time) {
  const auto end = clock::now() + time;
  auto next_fault = clock::now() + random_time(1, 2);
  auto next_trigger = clock::now();
  auto next_watch = clock::now();
  eventually(
      [&] {
        const auto now = clock::now();
        look_after();
        take_answers();
        if (now >= next_trigger) {
          trigger_cycle();
          next_trigger = now + trigger_every;
        }
        if (now >= next_watch) {
          watch_results();
          next_watch = now + watch_every;
        }
        if (now >= next_fault) {
          act();
          next_fault = now + random_time(0.3, 2.2);
        }
        return now >= end && record_.never.empty();
      },
      time + kinds_patience);
}

std::string chaos_lab::amiss() {
  const auto open = ask("SELECT (SELECT count(*) FROM boyd.dispatches WHERE status IN ('pending', "
                        "'running')) AS work, (SELECT count(*) FROM boyd.cycles WHERE finished_at "
                        "IS NULL) AS cycles, (SELECT count(*) FROM boyd.occurrences WHERE "
                        "finished_at IS NULL) AS slots");
  if (open.front() != nlohmann::json{{"work", 0}, {"cycles", 0}, {"slots", 0}}) {
    auto text = "open: " + open.front().dump();
    for (const auto& slot : ask("SELECT * FROM boyd.occurrences WHERE finished_at IS NULL"))
      text += "\n" + slot.dump();
    for (const auto& cycle :
         ask("SELECT cycle_id, status FROM boyd.cycles WHERE finished_at IS NULL"))
      text += "\n" + cycle.dump();
    return text;
  }
  for (auto& s : stations_) {
    auto* m = s.node.get();
    const auto r = m->home().run({"status", "--json"});
    const auto status = r.json();
    if (r.code != 0 || !status.is_object() || !status.contains("actors"))
      return "status: " + r.err + r.out;
    for (const auto& t : troubles(status))
      return t;
    if (const auto& permits = status.at("permits");
        permits.at("in_use") != 0 || permits.at("peak") > permits.at("limit"))
      return "permits, with nothing under way: " + permits.dump();
    // What a start writes when the configuration has changed waits for the next commit.
    if (const auto dirty = m->home().git({"status", "--porcelain", "--", ".", ":!INIT.md"});
        !dirty.empty())
      return "git status: " + dirty + m->home().git({"log", "-4", "--format=%h %cI %s"}) +
             m->home().git({"diff", "HEAD"}) + m->process().log();
    if (!status.at("node").value("running", false) || status.at("kernels")[0].at("cycle_id") != "")
      return "in a cycle: " + status.at("kernels").dump();
  }
  return {};
}

std::string chaos_lab::settle() {
  if (!server_.running())
    server_.start();
  server_back_ = clock::time_point::max();
  for (auto& s : stations_) {
    s.mend_network();
    if (s.node->state() == member::condition::stopped)
      s.node->resume();
    s.node->home().configure(settings_for(through(direct_, s.network->port()), lease_s_, false));
    if (s.node->state() == member::condition::down)
      s.node->start();
  }
  for (auto& s : stations_) {
    eventually([&] {
      look_at(*s.node);
      return s.node->process().log().find("ready: node ") != std::string::npos;
    });
    s.node->process().signal(SIGHUP);
  }
  std::string wrong = "not looked at";
  auto next_look = clock::now();
  eventually(
      [&] {
        for (auto& s : stations_)
          look_at(*s.node);
        take_answers();
        if (clock::now() < next_look)
          return false;
        wrong = amiss();
        next_look = clock::now() + 500ms;
        return wrong.empty();
      },
      settle_patience);
  take_answers();
  return wrong;
}

std::vector<int> chaos_lab::end() {
  for (auto& s : stations_)
    s.node->process().signal(SIGTERM);
  std::vector<int> codes;
  for (auto& s : stations_)
    codes.push_back(s.node->process().wait_end());
  return codes;
}

} // namespace boyd::test
