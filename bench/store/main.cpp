#include "bench/support/arguments.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/wiring.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/ports/entropy.hpp"
#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/entropy.hpp"
#include "src/adapters/postgres/store.hpp"
#include "src/adapters/sqlite/store.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

/// What the durable store alone can do, in one thread and without actors. See bench/README.md.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_store --store sqlite|postgres://… --n 50000 --runs 3 --json\n"
                       "  --batch 250           rows in one transaction\n"
                       "  --agents 4            one row per agent and cycle\n"
                       "  --prompt 200          characters of a prompt\n"
                       "  --phase all           or only apart, backlog or together\n"
                       "  --dir /var/tmp        where the databases are made (and removed)\n";

constexpr auto kernel_id = "bench";
constexpr auto node_id = "0197e000-0000-7000-8000-000000000000";
constexpr milliseconds lease = std::chrono::hours{1};

struct plan {
  std::string store;
  std::string directory;
  std::string phase;
  std::size_t n = 0;
  std::size_t batch = 0;
  std::size_t agents = 0;
  std::size_t prompt = 0;
  std::size_t runs = 0;
};

/// Rows per second, and microseconds of this process's processor time per row.
struct figure {
  double rate = 0;
  double processor_us = 0;
};

using figures = std::vector<std::pair<std::string, figure>>;

/// A fresh database and what is done to it, one transaction at a time.
class bench_queue {
 public:
  static result<std::unique_ptr<bench_queue>> open(const plan& p);

  /// One transaction: takes `enqueued` new rows in, settles everything that is claimed, claims up
  /// to `claimed` rows, and asks which agents have work, as a node does.
  result<void> transaction(std::size_t enqueued, bool settle, std::size_t claimed);

  std::size_t settled() const { return settled_; }
  /// Sets the claimed rows aside, or takes them back.
  std::vector<claimed_dispatch>& held() { return held_; }

 private:
  explicit bench_queue(plan p) : plan_(std::move(p)) {}

  void add_cycles(std::vector<store::operation>& batch, std::size_t rows);
  result<void> take(const store::any_reply& reply);

  plan plan_;
  std::unique_ptr<scratch_directory> directory_;
  std::unique_ptr<scratch_database> database_;
  std::shared_ptr<clock_port> clock_ = adapters::make_system_clock();
  std::shared_ptr<entropy> random_ = adapters::make_system_entropy();
  std::unique_ptr<dispatch_store> store_;
  std::vector<claimed_dispatch> held_;
  std::size_t settled_ = 0;
};

result<std::unique_ptr<bench_queue>> bench_queue::open(const plan& p) {
  auto made = std::unique_ptr<bench_queue>(new bench_queue(p));
  if (p.store == "sqlite") {
    auto directory = scratch_directory::make(p.directory);
    if (!directory)
      return fail(std::move(directory.error()));
    made->directory_ = std::move(*directory);
    adapters::sqlite_options options;
    options.path = made->directory_->path() + "/boyd.db";
    options.clock = made->clock_;
    made->store_ = adapters::make_sqlite_store(options);
  } else {
    auto database = scratch_database::make(p.store);
    if (!database)
      return fail(std::move(database.error()));
    made->database_ = std::move(*database);
    adapters::postgres_options options;
    options.uri = made->database_->uri();
    options.random = made->random_;
    made->store_ = adapters::make_postgres_store(options);
  }
  if (auto opened = made->store_->open(); !opened)
    return fail(std::move(opened.error()));
  return made;
}

void bench_queue::add_cycles(std::vector<store::operation>& batch, std::size_t rows) {
  while (rows > 0) {
    store::enqueue_cycle op;
    op.kernel_id = kernel_id;
    op.cycle_id = make_uuid_v7(clock_->now(), *random_);
    for (std::size_t i = 0; i < plan_.agents && rows > 0; ++i, --rows) {
      dispatch_spec s;
      s.dispatch_id = make_uuid_v7(clock_->now(), *random_);
      s.kernel_id = kernel_id;
      s.cycle_id = op.cycle_id;
      s.agent_id = "agent-" + std::to_string(i);
      s.prompt = std::string(plan_.prompt, 'p');
      op.specs.push_back(std::move(s));
    }
    batch.emplace_back(std::move(op));
  }
}

result<void> bench_queue::take(const store::any_reply& reply) {
  if (const auto* problem = std::get_if<error>(&reply))
    return fail(*problem);
  if (const auto* rows = std::get_if<std::vector<claimed_dispatch>>(&reply))
    held_.insert(held_.end(), rows->begin(), rows->end());
  if (const auto* results = std::get_if<std::vector<settle_result>>(&reply)) {
    const auto good = std::count(results->begin(), results->end(), settle_result::accepted);
    if (static_cast<std::size_t>(good) != results->size())
      return fail(errc::bug, "a settlement was not accepted");
    settled_ += results->size();
  }
  return {};
}

result<void> bench_queue::transaction(std::size_t enqueued, bool settle, std::size_t claimed) {
  std::vector<store::operation> batch;
  add_cycles(batch, enqueued);
  if (settle && !held_.empty()) {
    std::vector<settlement> ends;
    ends.reserve(held_.size());
    for (auto& c : held_) {
      settlement item{std::move(c.row.dispatch_id), c.row.fence, settle_to::done, 0ms, {}};
      item.outcome.execution = execution_verdict::succeeded;
      item.outcome.claim = claim_verdict::done;
      item.outcome.exit_code = 0;
      item.outcome.summary = "nothing to do";
      ends.push_back(std::move(item));
    }
    held_.clear();
    batch.emplace_back(store::settle{node_id, std::move(ends)});
  }
  for (std::size_t i = 0; claimed > 0 && i < plan_.agents; ++i)
    batch.emplace_back(store::claim{node_id, kernel_id, "agent-" + std::to_string(i),
                                    (claimed + plan_.agents - 1) / plan_.agents, lease});
  batch.emplace_back(store::due_agents{});
  auto replies = store_->apply(batch);
  if (!replies)
    return fail(std::move(replies.error()));
  for (const auto& reply : *replies)
    if (auto taken = take(reply); !taken)
      return taken;
  return {};
}

/// Calls `step(rows)` until n rows are through, and adds what that took.
result<void> measure(const plan& p, const std::string& name, figures& into,
                     const std::function<result<void>(std::size_t)>& step) {
  const double before = processor_seconds();
  const auto since = stopwatch_clock::now();
  for (std::size_t done = 0; done < p.n; done += p.batch)
    if (auto stepped = step(std::min(p.batch, p.n - done)); !stepped)
      return stepped;
  constexpr double micro = 1e6;
  const auto n = static_cast<double>(p.n);
  into.push_back({name, {n / seconds_since(since), (processor_seconds() - before) / n * micro}});
  return {};
}

result<void> expect(const bench_queue& q, std::size_t settled) {
  if (q.settled() == settled)
    return {};
  return fail(errc::bug, "only " + std::to_string(q.settled()) + " rows were settled");
}

/// Everything in, everything claimed, everything settled: what each costs.
result<void> apart(const plan& p, figures& into) {
  auto q = bench_queue::open(p);
  if (!q)
    return fail(std::move(q.error()));
  auto& queue = **q;
  auto done =
      measure(p, "enqueue", into, [&](std::size_t n) { return queue.transaction(n, false, 0); });
  if (done)
    done = measure(p, "claim", into, [&](std::size_t n) { return queue.transaction(0, false, n); });
  std::vector<claimed_dispatch> all;
  std::swap(all, queue.held());
  std::size_t next = 0;
  const auto settle_some = [&](std::size_t n) {
    for (std::size_t i = 0; i < n && next < all.size(); ++i, ++next)
      queue.held().push_back(std::move(all[next]));
    return queue.transaction(0, true, 0);
  };
  if (done)
    done = measure(p, "settle", into, settle_some);
  while (done && next < all.size())
    done = settle_some(p.batch);
  return done ? expect(queue, p.n) : done;
}

/// A backlog is worked off: each transaction settles what the one before it claimed.
result<void> backlog(const plan& p, figures& into) {
  auto q = bench_queue::open(p);
  if (!q)
    return fail(std::move(q.error()));
  auto& queue = **q;
  for (std::size_t done = 0; done < p.n; done += p.batch)
    if (auto in = queue.transaction(std::min(p.batch, p.n - done), false, 0); !in)
      return in;
  auto done = measure(p, "claim+settle", into,
                      [&](std::size_t n) { return queue.transaction(0, true, n); });
  while (done && queue.settled() < p.n && !queue.held().empty())
    done = queue.transaction(0, true, p.batch);
  return done ? expect(queue, p.n) : done;
}

/// Rows come in as fast as they are worked off.
result<void> together(const plan& p, figures& into) {
  auto q = bench_queue::open(p);
  if (!q)
    return fail(std::move(q.error()));
  auto& queue = **q;
  auto done = measure(p, "enqueue+claim+settle", into,
                      [&](std::size_t n) { return queue.transaction(n, true, n); });
  while (done && queue.settled() < p.n && !queue.held().empty())
    done = queue.transaction(0, true, p.batch);
  return done ? expect(queue, p.n) : done;
}

void print(const char* name, const figures& all) {
  std::printf("%-7s", name);
  for (const auto& [phase, f] : all)
    std::printf(" %s %.0f/s (%.1f us)", phase.c_str(), f.rate, f.processor_us);
  std::printf("\n");
  std::fflush(stdout);
}

figures median_of(const std::vector<figures>& runs) {
  figures out;
  for (std::size_t i = 0; i < runs.front().size(); ++i) {
    std::vector<double> rates;
    std::vector<double> costs;
    for (const auto& run : runs) {
      rates.push_back(run[i].second.rate);
      costs.push_back(run[i].second.processor_us);
    }
    out.push_back({runs.front()[i].first, {median(rates), median(costs)}});
  }
  return out;
}

nlohmann::json to_json(const figures& all) {
  auto out = nlohmann::json::object();
  for (const auto& [phase, f] : all)
    out[phase] = {{"rows_per_s", f.rate}, {"processor_us_per_row", f.processor_us}};
  return out;
}

plan plan_of(const arguments& args) {
  constexpr std::size_t most_rows = 10'000'000;
  constexpr std::size_t most_at_once = 10'000;
  constexpr std::size_t most_runs = 100;
  plan p;
  p.store = args.text("--store", "sqlite");
  p.directory = args.text("--dir", "/var/tmp");
  p.phase = args.text("--phase", "all");
  p.n = args.number("--n", 50'000, most_rows);
  p.batch = args.number("--batch", 250, most_at_once);
  p.agents = args.number("--agents", 4, most_at_once);
  p.prompt = args.number("--prompt", 200, limits::prompt_bytes);
  p.runs = args.number("--runs", 3, most_runs);
  return p;
}

using phase_function = result<void> (*)(const plan&, figures&);
constexpr std::array<std::pair<std::string_view, phase_function>, 3> phases{
    {{"apart", apart}, {"backlog", backlog}, {"together", together}}};

result<void> run(const plan& p, bool json) {
  const double load = load_average();
  std::vector<figures> runs;
  auto each = nlohmann::json::array();
  for (std::size_t i = 0; i < p.runs; ++i) {
    figures f;
    for (const auto& [name, phase] : phases)
      if (p.phase == "all" || p.phase == name)
        if (auto done = phase(p, f); !done)
          return done;
    if (f.empty())
      return fail(errc::invalid_argument, "there is no phase " + p.phase);
    runs.push_back(f);
    each.push_back(to_json(f));
    if (!json)
      print(("run " + std::to_string(i + 1)).c_str(), f);
  }
  if (!json) {
    print("median", median_of(runs));
    std::printf("peak resident memory %.0f MiB, load average at the start %.2f\n",
                peak_resident_mib(), load);
    return {};
  }
  const nlohmann::json out{{"schema", "boyd.bench.store/1"},
                           {"store", p.store == "sqlite" ? "sqlite" : "postgres"},
                           {"n", p.n},
                           {"batch", p.batch},
                           {"agents", p.agents},
                           {"prompt", p.prompt},
                           {"load_average", load},
                           {"peak_resident_mib", peak_resident_mib()},
                           {"median", to_json(median_of(runs))},
                           {"runs", each}};
  std::printf("%s\n", out.dump(2).c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(argc, argv,
               {"bench_store",
                usage,
                {"--store", "--n", "--batch", "--agents", "--prompt", "--runs", "--phase", "--dir"},
                [](const arguments& args) { return run(plan_of(args), args.has("--json")); }});
}
