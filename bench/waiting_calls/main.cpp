#include "adapters/curl/http_client.hpp"
#include "bench/endpoint/slow_endpoint.hpp"
#include "bench/support/arguments.hpp"
#include "bench/support/process_state.hpp"

#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <future>
#include <string>

/// Calls of a model that wait for a slow endpoint: what they hold. See bench/README.md.
namespace boyd::bench {

namespace {

using steady = std::chrono::steady_clock;

constexpr auto usage = "bench_waiting_calls --n 10000 --json\n"
                       "  --body 2000   bytes of each request\n"
                       "  --events 4    of each answer's stream, all after the wait\n";
constexpr double kib = 1024;

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  constexpr double nanoseconds = 1e9;
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / nanoseconds;
}

struct progress {
  std::atomic<std::size_t> good = 0;
  std::atomic<std::size_t> left = 0;
  std::promise<void> all_ended;
};

void begin_calls(http_client& client, const std::string& origin, std::size_t n, std::size_t body,
                 progress& p) {
  p.left = n;
  for (std::size_t i = 0; i < n; ++i) {
    http_request r;
    r.url = origin + "/v1/chat/completions";
    r.headers = {{"Content-Type", "application/json"}, {"Authorization", "Bearer none"}};
    r.body = std::string(body, 'x');
    http_events e;
    e.on_end = [&p](const result<void>& end) {
      p.good += end ? 1 : 0;
      if (--p.left == 0)
        p.all_ended.set_value();
    };
    client.start(std::move(r), std::move(e));
  }
}

nlohmann::json measure(std::size_t n, std::size_t body, std::size_t events) {
  const slow_endpoint endpoint(n, events);
  const auto client = adapters::make_http_client();
  const auto before = observe_process();
  progress p;
  auto begin = steady::now();
  begin_calls(*client, endpoint.origin(), n, body, p);
  const bool all = endpoint.wait_for_all();
  const auto start_s = seconds_since(begin);
  const auto start_processor_s = processor_seconds();
  const auto waiting = observe_process();
  begin = steady::now();
  endpoint.answer();
  p.all_ended.get_future().wait();
  const auto bytes = static_cast<double>(waiting.resident_bytes - before.resident_bytes);
  return {{"schema", "boyd.bench.waiting_calls/1"},
          {"n", n},
          {"body_bytes", body},
          {"all_waited", all},
          {"good", p.good.load()},
          {"resident_mib", static_cast<double>(waiting.resident_bytes) / kib / kib},
          {"grown_mib", bytes / kib / kib},
          {"kib_per_call", bytes / kib / static_cast<double>(n)},
          {"threads_gained", waiting.threads - before.threads},
          {"start_s", start_s},
          {"start_processor_s", start_processor_s},
          {"answer_s", seconds_since(begin)},
          {"processor_s", processor_seconds()}};
}

int run(const arguments& args) {
  constexpr std::size_t most_calls = 16'000;
  constexpr std::size_t most_body = 10'000'000;
  constexpr std::size_t most_events = 100'000;
  constexpr std::size_t others = 100;
  const auto n = args.number("--n", 10'000, most_calls);
  // One descriptor for each call.
  if (raise_descriptor_limit() < n + others) {
    std::fprintf(stderr, "the limit of open files is below %zu\n", n + others);
    return 1;
  }
  const auto out =
      measure(n, args.number("--body", 2000, most_body), args.number("--events", 4, most_events));
  if (args.has("--json"))
    std::printf("%s\n", out.dump().c_str());
  else
    std::printf("%zu calls waiting: %.1f MiB resident, %.1f KiB each, %zu more threads\n"
                "started in %.2f s (%.2f s processor), answered in %.2f s; %zu good\n",
                n, out["resident_mib"].get<double>(), out["kib_per_call"].get<double>(),
                out["threads_gained"].get<std::size_t>(), out["start_s"].get<double>(),
                out["start_processor_s"].get<double>(), out["answer_s"].get<double>(),
                out["good"].get<std::size_t>());
  return out["all_waited"].get<bool>() && out["good"].get<std::size_t>() == n ? 0 : 1;
}

} // namespace

} // namespace boyd::bench

int main(int argc, char** argv) {
  using namespace boyd;
  const auto args =
      bench::arguments::parse(argc, argv, {"--n", "--body", "--events"}, {"--json", "--help"});
  if (!args || args->has("--help")) {
    std::fprintf(stderr, "%s%s", args ? "" : (to_string(args.error()) + "\n").c_str(),
                 bench::usage);
    return args ? 0 : 2;
  }
  return bench::run(*args);
}
