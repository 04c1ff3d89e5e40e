#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "support/actor_system.hpp"
#include "support/sim/disk.hpp"
#include "support/sim/processes.hpp"
#include "support/sim/repository.hpp"
#include "support/sim/seeded_entropy.hpp"
#include "support/sim/store.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::test {

/// The simulated disk with one directory taken away for a while.
class hiding_disk final : public file_system {
 public:
  explicit hiding_disk(std::shared_ptr<sim::sim_disk> disk) : disk_(std::move(disk)) {}

  /// Everything below `directory` is gone until `give_back`.
  void take_away(std::string directory) { hidden_ = std::move(directory); }
  void give_back() { hidden_.clear(); }

  result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    return is_hidden(path) ? result<std::string>(gone(path)) : disk_->read(path, max_bytes);
  }
  result<std::string> read_below(const std::string& root, const std::string& file,
                                 std::size_t max_bytes) override {
    return read(root + "/" + file, max_bytes);
  }
  result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                std::size_t max_bytes) override {
    return is_hidden(path) ? result<std::string>(gone(path))
                           : disk_->read_part(path, offset, max_bytes);
  }
  result<file_info> stat(const std::string& path) override {
    return is_hidden(path) ? result<file_info>(file_info{}) : disk_->stat(path);
  }
  result<std::unique_ptr<open_file>> open(const std::string& path, open_mode mode) override {
    if (is_hidden(path))
      return gone(path);
    return disk_->open(path, mode);
  }
  result<void> rename(const std::string& from, const std::string& to) override {
    return is_hidden(from) || is_hidden(to) ? result<void>(gone(from)) : disk_->rename(from, to);
  }
  result<void> unlink(const std::string& path) override {
    return is_hidden(path) ? result<void>(gone(path)) : disk_->unlink(path);
  }
  result<void> sync_directory(const std::string& path) override {
    return is_hidden(path) ? result<void>(gone(path)) : disk_->sync_directory(path);
  }
  result<void> make_directories(const std::string& path) override {
    made_hidden = made_hidden || is_hidden(path);
    return is_hidden(path) ? result<void>(gone(path)) : disk_->make_directories(path);
  }
  result<std::vector<std::string>> list(const std::string& path) override {
    if (is_hidden(path))
      return gone(path);
    return disk_->list(path);
  }

  bool made_hidden = false; ///< somebody tried to make it anew

 private:
  bool is_hidden(const std::string& path) const {
    return !hidden_.empty() && (path + "/").starts_with(hidden_ + "/");
  }
  static tl::unexpected<error> gone(const std::string& path) {
    return fail(errc::not_found, "no such file or directory", path);
  }

  std::shared_ptr<sim::sim_disk> disk_;
  std::string hidden_;
};

/// A deterministic system with every port simulated, and one kernel named "default".
struct simulated_node {
  deterministic_system actors;
  std::shared_ptr<sim::sim_disk> disk = std::make_shared<sim::sim_disk>(actors.clock().get());
  std::shared_ptr<hiding_disk> files = std::make_shared<hiding_disk>(disk);
  std::shared_ptr<sim::sim_repositories> repositories =
      std::make_shared<sim::sim_repositories>(*disk);
  std::shared_ptr<sim::sim_process_runner> processes =
      std::make_shared<sim::sim_process_runner>(actors.clock());
  std::shared_ptr<sim::sim_database> database;
  std::shared_ptr<node_context> context = std::make_shared<node_context>();
  std::shared_ptr<config::configuration> configuration = std::make_shared<config::configuration>();

  simulated_node() {
    auto random = std::make_shared<sim::seeded_entropy>(1);
    database = std::make_shared<sim::sim_database>(actors.clock(), random);
    context->ports.clock = actors.clock();
    context->ports.random = random;
    context->ports.files = files;
    context->ports.repositories = repositories;
    context->ports.processes = processes;
    context->ports.make_store = [db = database] { return sim::make_sim_store(db); };
    context->home = "/boyd";
    context->node_id = "node-1";
    context->environment = [](const std::string&) { return std::nullopt; };
    context->detached_workers = false;
    (void)disk->make_directories("/boyd/run");
    config::kernel kernel;
    kernel.kernel_id = "default";
    kernel.name = "Test";
    configuration->kernels.push_back(kernel);
    actors.outside = [this] { return processes->step(actors.clock()->steady()); };
    actors.next_outside = [this] { return processes->next_event(); };
  }

  ~simulated_node() { actors.shut_down(); }
  simulated_node(const simulated_node&) = delete;
  simulated_node& operator=(const simulated_node&) = delete;

  config::kernel& kernel() { return configuration->kernels.front(); }

  /// A cycle with one dispatch.
  store::enqueue_cycle enqueueing(const std::string& agent) {
    store::enqueue_cycle op;
    op.kernel_id = kernel().kernel_id;
    op.cycle_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
    dispatch_spec spec;
    spec.dispatch_id = make_uuid_v7(actors.clock()->now(), *context->ports.random);
    spec.kernel_id = op.kernel_id;
    spec.cycle_id = op.cycle_id;
    spec.agent_id = agent;
    op.specs.push_back(spec);
    return op;
  }

  /// A dispatch that this node has claimed and no part of it knows of, as after a crash or when the
  /// claim's answer was lost.
  void leave_running(const std::string& agent) {
    (void)database->run({enqueueing(agent), store::claim{context->node_id, kernel().kernel_id,
                                                         agent, 1, limits::lease}});
  }

  static constexpr const char* kernel_home = "/boyd/kernel/default";

  /// A file of the kernel home as it stands; empty when there is none.
  std::string file(const std::string& name) const {
    const auto all = disk->snapshot();
    const auto it = all.find(std::string(kernel_home) + "/" + name);
    return it == all.end() ? std::string() : it->second;
  }
};

} // namespace boyd::test
