#include "bench/support/scratch.hpp"

#include "bench/support/command.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace boyd::bench {

namespace fs = std::filesystem;

result<std::unique_ptr<scratch_directory>> scratch_directory::make(const std::string& parent) {
  std::error_code failed;
  auto pattern = (fs::absolute(parent, failed) / "boyd-bench-XXXXXX").string();
  if (failed || ::mkdtemp(pattern.data()) == nullptr)
    return fail(errc::io_error, "no directory can be made", parent, "give --dir DIR");
  return std::unique_ptr<scratch_directory>(new scratch_directory(pattern));
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

namespace {

/// postgres://authority/database?parameters with another database.
result<std::string> with_database(const std::string& uri, const std::string& name) {
  const auto authority = uri.find("://");
  if (authority == std::string::npos)
    return fail(errc::invalid_argument, "the store must be sqlite or a postgres:// URI", uri);
  const auto parameters = std::min(uri.find('?'), uri.size());
  const auto slash = std::min(uri.find('/', authority + 3), parameters);
  return uri.substr(0, slash) + "/" + name + uri.substr(parameters);
}

result<std::string> psql(const std::string& server, const std::string& sql) {
  return run_command({"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql, server});
}

} // namespace

result<std::unique_ptr<scratch_database>> scratch_database::make(const std::string& server) {
  static std::atomic<int> made{0};
  const auto name = "boyd_bench_" + std::to_string(::getpid()) + "_" + std::to_string(++made);
  auto uri = with_database(server, name);
  if (!uri)
    return fail(std::move(uri.error()));
  if (auto created = psql(server, "CREATE DATABASE " + name); !created)
    return fail(std::move(created.error()));
  return std::unique_ptr<scratch_database>(new scratch_database(server, name, std::move(*uri)));
}

scratch_database::~scratch_database() {
  if (!psql(server_, "DROP DATABASE " + name_ + " WITH (FORCE)"))
    std::fprintf(stderr, "the database %s is left behind\n", name_.c_str());
}

} // namespace boyd::bench
