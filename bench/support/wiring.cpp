#include "bench/support/wiring.hpp"

#include "actors/support/frugal_scheduler.hpp"
#include "adapters/libgit2/repository.hpp"
#include "adapters/posix/clock.hpp"
#include "adapters/posix/entropy.hpp"
#include "adapters/posix/file_system.hpp"
#include "adapters/posix/process_runner.hpp"
#include "adapters/postgres/store.hpp"
#include "adapters/sqlite/store.hpp"
#include "adapters/tz/zones.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/process_runner.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace boyd::bench {

namespace {

void wire_store(ports& p, const std::string& home, const std::string& store) {
  if (store == "sqlite") {
    adapters::sqlite_options options;
    options.path = home + "/boyd.db";
    options.clock = p.clock;
    p.make_store = [options] { return adapters::make_sqlite_store(options); };
    return;
  }
  adapters::postgres_options options;
  options.uri = store;
  options.random = p.random;
  options.speaker = make_uuid_v7(p.clock->now(), *p.random);
  p.make_store = [options] { return adapters::make_postgres_store(options); };
  p.listen = [options](wake_function wake) {
    return adapters::make_postgres_wakeups(options, std::move(wake));
  };
}

/// HOME/run/node_id, made when it is missing.
result<std::string> node_id_of(const std::string& home, ports& p) {
  const auto path = home + "/run/node_id";
  std::string id;
  if (std::ifstream(path) >> id && !id.empty())
    return id;
  id = make_uuid_v7(p.clock->now(), *p.random);
  if (!(std::ofstream(path) << id << '\n'))
    return fail(errc::io_error, "cannot be written", path);
  return id;
}

} // namespace

std::unique_ptr<dispatch_store> make_store(const std::string& home, const std::string& store) {
  ports p;
  p.clock = adapters::make_system_clock();
  p.random = adapters::make_system_entropy();
  wire_store(p, home, store);
  return p.make_store();
}

result<node_context_ptr> make_context(const std::string& home, const std::string& store,
                                      std::shared_ptr<process_runner> processes,
                                      const housekeeping_intervals& housekeeping,
                                      std::shared_ptr<http_client> http) {
  auto context = std::make_shared<node_context>();
  auto& p = context->ports;
  p.clock = adapters::make_system_clock();
  p.random = adapters::make_system_entropy();
  p.files = adapters::make_posix_file_system();
  p.repositories = adapters::make_git_repositories();
  p.zones = adapters::make_time_zones();
  p.processes = std::move(processes);
  if (!p.processes) {
    auto real = adapters::make_process_runner({});
    if (!real)
      return fail(std::move(real.error()));
    p.processes = std::move(*real);
  }
  p.http = std::move(http);
  wire_store(p, home, store);
  if (auto made = p.files->make_directories(home + "/run"); !made)
    return fail(std::move(made.error()));
  context->home = home;
  auto id = node_id_of(home, p);
  if (!id)
    return fail(std::move(id.error()));
  context->node_id = std::move(*id);
  context->host = "localhost";
  context->pid = ::getpid();
  context->version = "bench";
  context->started_at = p.clock->now();
  context->environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  context->scheduled = false;
  context->shared_store = store != "sqlite";
  context->housekeeping = housekeeping;
  return node_context_ptr(std::move(context));
}

void configure_actors(caf::actor_system_config& c) {
  constexpr unsigned most_threads = 4;
  constexpr unsigned least_threads = 2;
  constexpr std::int64_t throughput = 100;
  const auto cores = std::max(std::thread::hardware_concurrency(), least_threads);
  c.set("scheduler.max-threads", static_cast<std::int64_t>(std::min(cores, most_threads)));
  c.set("scheduler.max-throughput", throughput);
  c.load<frugal_scheduler>();
  c.set("logger.verbosity", caf::atom("quiet"));
}

void quiet_logs() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("bench", std::move(sink)));
  spdlog::set_level(spdlog::level::err);
}

} // namespace boyd::bench
