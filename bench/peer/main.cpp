#include "bench/peer/driver_line.hpp"
#include "bench/peer/job_runner.hpp"
#include "bench/support/queue_node.hpp"
#include "bench/support/wiring.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

/// One role of Boyd for the drivers that also run the peers. See bench/README.md.
namespace boyd::bench {

namespace {

using nlohmann::json;

constexpr auto usage =
    "bench_peer --store sqlite|postgres ROLE JSON\n"
    "  Started by the peers' drivers (bench/against-peers), which speak with it over the standard\n"
    "  streams. ROLE: setup, producer, worker, selfloop or probe.\n";
/// How long a job list may take when the driver does not say.
constexpr double longest_run_ms = 600'000;
constexpr auto kernel_id = "bench";

/// What the driver said about this run.
struct role_order {
  std::string store; ///< "sqlite" or the database's URI
  std::string home;
  std::string mode; ///< noop, latency or crash
  std::string log;
  milliseconds lasts{0};
  queue_settings queue;
};

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

/// The server that the drivers started, by their own variables and defaults.
std::string server_uri(const std::string& database) {
  return "postgres://" + environment("PGUSER", "postgres") + "@" +
         environment("PGHOST", "127.0.0.1") + ":" + environment("PGPORT", "55432") + "/" + database;
}

role_order order_of(const std::string& store, const json& p) {
  role_order o;
  o.store = store == "sqlite" ? store : server_uri(p.value("db", std::string{}));
  o.home = p.value("dbFile", std::string{}) + "." + store;
  o.mode = p.value("mode", std::string{"noop"});
  o.log = p.value("jobLog", std::string{});
  o.lasts = milliseconds{p.value("jobMs", 0)};
  const auto opts = p.value("opts", json::object());
  auto& q = o.queue;
  q.max_concurrent = opts.value("maxConcurrent", q.max_concurrent);
  q.batch = opts.value("batch", q.batch);
  q.in_flight = opts.value("inFlight", q.in_flight);
  q.agents = opts.value("agents", q.agents);
  q.commands = o.mode != "noop" || opts.value("commands", false);
  return o;
}

result<std::unique_ptr<queue_node>> make_node(const role_order& o) {
  job_runner::settings s;
  s.announce = o.mode == "latency";
  if (o.mode == "crash") {
    s.log = o.log;
    s.lasts = o.lasts;
  }
  auto runner = job_runner::make(s);
  if (!runner)
    return fail(std::move(runner.error()));
  auto context = make_context(o.home, o.store, std::move(*runner));
  if (!context)
    return fail(std::move(context.error()));
  auto node = std::make_unique<queue_node>(std::move(*context), o.queue, o.store);
  if (auto open = node->wait_open(); !open)
    return fail(std::move(open.error()));
  return node;
}

/// A fresh home, and the store's tables.
result<void> set_up(const role_order& o) {
  std::error_code failed;
  std::filesystem::remove_all(o.home, failed);
  std::filesystem::create_directories(o.home, failed);
  if (failed)
    return fail(errc::io_error, failed.message(), o.home);
  auto opened = make_store(o.home, o.store)->open();
  if (opened)
    tell_driver("closed");
  return opened;
}

result<void> produce(const role_order& o) {
  auto made = make_node(o);
  if (!made)
    return fail(std::move(made.error()));
  auto& node = **made;
  driver_commands commands;
  tell_driver("ready");
  for (;;) {
    const auto c = commands.next();
    const auto what = c.value("cmd", std::string{});
    const auto t0 = driver_time();
    if (what == "go") {
      const auto n = c.value("n", std::size_t{0});
      if (auto in = node.enqueue_jobs(c.value("offset", std::uint64_t{0}), n); !in)
        return in;
      tell_driver("enqueued", {{"t0", t0}, {"t1", driver_time()}, {"n", n}});
    } else if (what == "one") {
      const auto i = c.value("i", std::uint64_t{0});
      if (auto in = node.enqueue_jobs(i, 1); !in)
        return in;
      tell_driver("sent", {{"i", i}, {"t0", t0}, {"t1", driver_time()}});
    } else if (what == "stop") {
      made->reset();
      tell_driver("closed");
      return {};
    }
  }
}

/// Waits for `n` jobs, of which `before` were done before, and tells how that went.
result<void> report_done(queue_node& node, double t0, std::uint64_t n, std::uint64_t before,
                         double limit) {
  const milliseconds most{static_cast<milliseconds::rep>(limit)};
  const auto all = node.wait_settled(n - before, most);
  const auto handled_at = driver_time();
  const auto recorded = node.count(dispatch_status::done);
  if (!recorded)
    return fail(recorded.error());
  tell_driver("done", {{"t0", t0},
                       {"tHandled", handled_at},
                       {"t", driver_time()},
                       {"handled", all ? n : *recorded},
                       {"recorded", *recorded},
                       {"why", all ? "all" : "limit"}});
  return {};
}

result<void> work(const role_order& o) {
  auto made = make_node(o);
  if (!made)
    return fail(std::move(made.error()));
  auto& node = **made;
  driver_commands commands;
  tell_driver("ready");
  for (;;) {
    const auto c = commands.next();
    const auto what = c.value("cmd", std::string{});
    if (what == "go") {
      const auto t0 = driver_time();
      const auto n = c.value("n", std::uint64_t{0});
      node.start_claiming();
      tell_driver("working", {{"t0", t0}});
      if (n == 0)
        continue;
      if (auto told = report_done(node, t0, n, 0, c.value("maxMs", longest_run_ms)); !told)
        return told;
    } else if (what == "stop") {
      made->reset();
      tell_driver("closed");
      return {};
    }
  }
}

/// Takes the jobs in and works them off in one process: how an embedded store is used, whose file
/// belongs to one node. After a crash all jobs are handed in once more; the queue's key keeps those
/// that are there.
result<void> run_alone(const role_order& o) {
  auto made = make_node(o);
  if (!made)
    return fail(std::move(made.error()));
  auto& node = **made;
  driver_commands commands;
  tell_driver("ready");
  for (std::uint64_t singles = 0;;) {
    const auto c = commands.next();
    const auto what = c.value("cmd", std::string{});
    const auto t0 = driver_time();
    if (what == "go") {
      const auto n = c.value("n", std::uint64_t{0});
      const auto before = node.count(dispatch_status::done);
      if (!before)
        return fail(before.error());
      node.start_claiming();
      if (auto in = node.enqueue_jobs(0, n); !in)
        return in;
      if (auto told = report_done(node, t0, n, *before, c.value("maxMs", longest_run_ms)); !told)
        return told;
    } else if (what == "one") {
      const auto i = c.value("i", std::uint64_t{0});
      node.start_claiming();
      if (auto in = node.enqueue_jobs(i, 1); !in)
        return in;
      if (auto done = node.wait_settled(++singles); !done)
        return fail(std::move(done.error()));
      tell_driver("sent", {{"i", i}, {"t0", t0}, {"t1", driver_time()}});
    } else if (what == "stop") {
      made->reset();
      tell_driver("closed");
      return {};
    }
  }
}

/// Counts the finished rows, from outside. With SQLite the file is opened for each question only.
result<void> probe(const role_order& o) {
  driver_commands commands;
  tell_driver("ready");
  std::unique_ptr<dispatch_store> store;
  for (;;) {
    const auto c = commands.next();
    const auto what = c.value("cmd", std::string{});
    if (what == "stop") {
      tell_driver("closed");
      return {};
    }
    if (what != "count")
      continue;
    if (!store) {
      store = make_store(o.home, o.store);
      if (auto opened = store->open(); !opened)
        return opened;
    }
    auto replies = store->apply({store::count_by_status{kernel_id}});
    if (!replies)
      return fail(std::move(replies.error()));
    const auto& counts = std::get<store::count_by_status::reply>(replies->at(0));
    const auto done = counts.find(dispatch_status::done);
    const auto failed = counts.find(dispatch_status::failed);
    tell_driver("count", {{"c", done == counts.end() ? 0 : done->second},
                          {"failed", failed == counts.end() ? 0 : failed->second}});
    if (o.store == "sqlite")
      store.reset();
  }
}

result<void> play(const std::string& role, const role_order& o) {
  if (role == "setup")
    return set_up(o);
  if (role == "producer")
    return produce(o);
  if (role == "worker")
    return work(o);
  if (role == "selfloop")
    return run_alone(o);
  if (role == "probe")
    return probe(o);
  return fail(errc::invalid_argument, "there is no role " + role);
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  constexpr int words = 5;
  const bool complete = argc == words && std::string(argv[1]) == "--store";
  const std::string store = complete ? argv[2] : "";
  if (store != "sqlite" && store != "postgres") {
    std::fputs(usage, stderr);
    return 2;
  }
  quiet_logs();
  const auto parameters = nlohmann::json::parse(argv[4], nullptr, false);
  if (!parameters.is_object() || !parameters.contains("dbFile")) {
    std::fputs("bench_peer: the parameters are no JSON object with dbFile\n", stderr);
    return 2;
  }
  auto played = play(argv[3], order_of(store, parameters));
  if (!played) {
    tell_driver("error", {{"message", boyd::to_string(played.error())}});
    std::fprintf(stderr, "bench_peer %s: %s\n", argv[3], boyd::to_string(played.error()).c_str());
    return 1;
  }
  return 0;
}
