#include "adapters/curl/http_client.hpp"
#include "adapters/tz/zones.hpp"
#include "bench/endpoint/slow_endpoint.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/place.hpp"
#include "bench/support/process_state.hpp"
#include "bench/support/queue_node.hpp"
#include "bench/support/start.hpp"
#include "bench/support/statistics.hpp"
#include "bench/support/wiring.hpp"
#include "boyd/config/load.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

/// Whole runs of chat agents that wait for a slow endpoint: what a node holds for them. See
/// bench/README.md.
namespace boyd::bench {

namespace {

constexpr auto usage = "bench_waiting_chats --n 10000 --json\n"
                       "  --prompt 2000            bytes of each prompt\n"
                       "  --events 4               of each answer's stream, all after the wait\n"
                       "  --store sqlite           or postgres://…\n"
                       "  --dir /var/tmp           where the home is made (and removed)\n";
constexpr double mebibyte = 1024.0 * 1024.0;
constexpr double kibibyte = 1024.0;

/// Read as a boyd.yaml is: what is measured is a node that anybody can have.
result<configuration_ptr> make_configuration(std::size_t n, const std::string& base_url) {
  const auto most = "max_concurrent: " + std::to_string(n);
  const auto yaml =
      "version: 1\nnode: {" + most +
      ", budget_day: {tokens: 0, cost: 0}}\nproviders:\n  - {provider_id: slow, base_url: \"" +
      base_url + "\", model: bench, " + most + "}\nkernels:\n  - kernel_id: " + bench_kernel_id +
      "\n    agents:\n      - agent_id: agent\n        " + most +
      "\n        executor: {type: chat, provider: slow}\n"
      "        budget: {day: {tokens: 0, cost: 0}}\n"; // of all calls' reservations at once
  const auto zones = adapters::make_time_zones();
  auto loaded = config::load(
      "/bench/boyd.yaml", yaml, [](const std::string&) { return std::nullopt; }, *zones);
  if (!loaded.value)
    return fail(errc::invalid_configuration, loaded.findings.front().text());
  return std::make_shared<config::configuration>(std::move(*loaded.value));
}

/// Records of turns in the home; they are written beside the settlements.
std::size_t count_records(const std::string& home) {
  std::error_code ignored;
  const auto all = std::filesystem::directory_iterator(home + "/executions", ignored);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Until there are `n` of them, for a while.
std::size_t wait_for_records(const std::string& home, std::size_t n) {
  constexpr int looks = 300;
  constexpr std::chrono::milliseconds between{100};
  std::size_t found = count_records(home);
  for (int i = 0; i < looks && found < n; ++i) {
    std::this_thread::sleep_for(between);
    found = count_records(home);
  }
  return found;
}

result<nlohmann::ordered_json> measure(const arguments& args, std::size_t n) {
  constexpr std::size_t most_prompt = 1'000'000;
  constexpr std::size_t most_events = 100'000;
  const slow_endpoint endpoint(n, args.number("--events", 4, most_events));
  auto where = make_place(args.text("--dir", "/var/tmp"), args.text("--store", "sqlite"));
  if (!where)
    return fail(std::move(where.error()));
  auto context =
      make_context(where->home->path(), where->store, nullptr, {}, adapters::make_http_client());
  if (!context)
    return fail(std::move(context.error()));
  queue_settings queue;
  queue.prompt_bytes = args.number("--prompt", 2000, most_prompt);
  auto configuration = make_configuration(n, endpoint.origin() + "/v1");
  if (!configuration)
    return fail(std::move(configuration.error()));
  queue.configuration = std::move(*configuration);
  queue_node node(std::move(*context), queue, where->store);
  if (auto open = node.wait_open(); !open)
    return fail(std::move(open.error()));
  const auto before = observe_process();
  if (auto in = node.enqueue(n); !in)
    return fail(std::move(in.error()));
  auto since = stopwatch_clock::now();
  node.start_claiming();
  if (!endpoint.wait_for_all())
    return fail(errc::timed_out, "not all calls came to the endpoint");
  const auto start_s = seconds_since(since);
  const auto waiting = observe_process();
  const auto actors = node.actors();
  since = stopwatch_clock::now();
  endpoint.answer();
  if (auto done = node.wait_done(n); !done)
    return fail(std::move(done.error()));
  const auto answer_s = seconds_since(since);
  const auto records = wait_for_records(where->home->path(), n);
  if (records != n)
    return fail(errc::bug, "only " + std::to_string(records) + " runs left a record");
  const auto grown = static_cast<double>(waiting.resident_bytes - before.resident_bytes);
  return nlohmann::ordered_json{
      {"schema", "boyd.bench.waiting_chats/1"},
      {"n", n},
      {"resident_before_mib", static_cast<double>(before.resident_bytes) / mebibyte},
      {"resident_mib", static_cast<double>(waiting.resident_bytes) / mebibyte},
      {"kib_per_run", grown / kibibyte / static_cast<double>(n)},
      {"threads_before", before.threads},
      {"threads", waiting.threads},
      {"actors", actors},
      {"start_s", start_s},
      {"answer_s", answer_s},
      {"records", records},
      {"processor_s", processor_seconds()},
      {"resident_after_mib", static_cast<double>(observe_process().resident_bytes) / mebibyte}};
}

result<void> run(const arguments& args) {
  constexpr std::size_t most_runs = 16'000;
  constexpr std::size_t others = 200;
  const auto n = args.number("--n", 10'000, most_runs);
  // One descriptor for each call.
  if (const auto most = raise_descriptor_limit(); most < n + others)
    return fail(errc::limit_exceeded, "the limit of open files is " + std::to_string(most), {},
                "ulimit -n " + std::to_string(n + others));
  auto out = measure(args, n);
  if (!out)
    return fail(std::move(out.error()));
  if (args.has("--json")) {
    std::printf("%s\n", out->dump(2).c_str());
    return {};
  }
  for (const auto& [name, value] : out->items())
    std::printf("%-20s %s\n", name.c_str(), value.dump().c_str());
  return {};
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd::bench;
  return start(
      argc, argv,
      {"bench_waiting_chats", usage, {"--n", "--prompt", "--events", "--store", "--dir"}, run});
}
