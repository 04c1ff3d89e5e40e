#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace boyd {

/// The files and folders below a node's home (docs/operations.md). The only place that spells their
/// names; it reads and writes nothing. Paths are absolute when the home is.
class home_layout {
 public:
  explicit home_layout(std::string home) : home_(std::move(home)) {}

  std::string configuration() const { return home_ + "/boyd.yaml"; }
  std::string database() const { return home_ + "/boyd.db"; }

  /// One folder for each kernel, its repository.
  std::string kernels() const { return home_ + "/kernel"; }
  std::string kernel(const std::string& kernel_id) const { return kernels() + "/" + kernel_id; }

  std::string knowledge() const { return home_ + "/knowledge"; }
  std::string graph_log() const { return knowledge() + "/graph.jsonl"; }
  /// Derived from files, and made again from them when it is gone.
  std::string knowledge_index() const { return knowledge() + "/index.db"; }

  /// What stays of a dispatch, or of a cycle's own questions to a model.
  std::string executions() const { return home_ + "/executions"; }
  std::string execution(const std::string& id) const { return executions() + "/" + id; }
  /// The turns of one attempt, one JSON object a line.
  std::string turns(const std::string& dispatch_id, std::int64_t fence) const {
    return execution(dispatch_id) + "/turns-" + std::to_string(fence) + ".jsonl";
  }

  /// What an execution read, did and cited (boyd.execution/1).
  std::string record(const std::string& dispatch_id) const {
    return execution(dispatch_id) + "/record.json";
  }
  /// The record, told to a person.
  std::string explanation(const std::string& dispatch_id) const {
    return execution(dispatch_id) + "/explain.md";
  }
  /// Contents that records name by their hash.
  std::string objects() const { return home_ + "/context/objects"; }
  std::string object(const std::string& hash) const {
    return objects() + "/" + hash.substr(0, 2) + "/" + hash;
  }
  /// What a model made of a content, to be asked for once.
  std::string summary_of(const std::string& hash) const { return object(hash) + ".summary"; }
  /// What the agent's latest execution could read, to compare the next one's with.
  std::string last_snapshot(const std::string& kernel_id, const std::string& agent_id) const {
    return home_ + "/context/last/" + kernel_id + "/" + agent_id + ".json";
  }

  /// What belongs to the running process, and may go between two starts unless it says otherwise.
  std::string run() const { return home_ + "/run"; }
  std::string lock() const { return run() + "/lock"; }
  std::string control_socket() const { return run() + "/control.sock"; }
  /// Stays: what a node in the background logs, and what an earlier one logged.
  std::string log() const { return run() + "/node.log"; }
  std::string earlier_log() const { return log() + ".1"; }
  /// Left by a signal handler as the process dies.
  std::string crash_note() const { return run() + "/crash"; }
  /// Stays: the node's id.
  std::string node_id() const { return run() + "/node_id"; }
  /// Stays: settlements that wait for the store.
  std::string spool() const { return run() + "/spool.jsonl"; }
  /// Stays: which home this is, for its store to tell it from a copy.
  std::string claim() const { return run() + "/home"; }
  /// Stays: the store that the home works with.
  std::string known_store() const { return run() + "/store"; }
  std::string prompts() const { return run() + "/prompts"; }
  /// A temporary folder for each run of a program in a sandbox.
  std::string scratch() const { return run() + "/tmp"; }
  std::string worktrees() const { return run() + "/worktrees"; }
  /// Stays: the session of an agent's CLI that the next run continues.
  std::string session(const std::string& kernel_id, const std::string& agent_id) const {
    return run() + "/sessions/" + kernel_id + "/" + agent_id;
  }

 private:
  std::string home_;
};

} // namespace boyd
