#pragma once

#include "boyd/faults/points.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/ports/http_client.hpp"
#include "boyd/ports/process_runner.hpp"
#include "boyd/ports/repository.hpp"

#include <memory>
#include <optional>

/// Ports that pass fault points on the way to the real ones. Everything else goes through as it is.
/// Threads: as the port's.
namespace boyd::faults {

/// The points of one owner's files. What has no point cannot go wrong on purpose.
struct file_points {
  std::optional<point> read{};  ///< also of names and sizes
  std::optional<point> open{};  ///< also of new directories
  std::optional<point> bytes{}; ///< of a write; what is dropped counts as written
  std::optional<point> sync{};
  std::optional<point> repair{}; ///< of truncate and rewrite
  std::optional<point> rename{};
  std::optional<point> sync_directory{};
  std::optional<point> unlink{};
};

inline constexpr file_points state_writer_files{.read = point("state_writer.read"),
                                                .open = point("state_writer.open"),
                                                .bytes = point("state_writer.bytes"),
                                                .sync = point("state_writer.sync"),
                                                .rename = point("state_writer.rename"),
                                                .sync_directory =
                                                    point("state_writer.sync_directory"),
                                                .unlink = point("state_writer.unlink")};

inline constexpr file_points graph_recorder_files{.read = point("graph_recorder.read"),
                                                  .open = point("graph_recorder.open"),
                                                  .bytes = point("graph_recorder.bytes"),
                                                  .sync = point("graph_recorder.sync"),
                                                  .repair = point("graph_recorder.repair"),
                                                  .sync_directory =
                                                      point("graph_recorder.sync_directory")};

inline constexpr file_points knowledge_files{.read = point("knowledge.read")};

inline constexpr file_points spool_files{.read = point("spool.read"),
                                         .open = point("spool.open"),
                                         .bytes = point("spool.bytes"),
                                         .sync = point("spool.sync"),
                                         .repair = point("spool.repair"),
                                         .sync_directory = point("spool.sync_directory"),
                                         .unlink = point("spool.unlink")};

inline constexpr file_points workspace_files{.read = point("workspace.read"),
                                             .open = point("workspace.open"),
                                             .bytes = point("workspace.bytes"),
                                             .sync = point("workspace.sync"),
                                             .repair = point("workspace.repair"),
                                             .rename = point("workspace.rename"),
                                             .sync_directory = point("workspace.sync_directory"),
                                             .unlink = point("workspace.unlink")};

/// The points of what one owner's programs tell.
struct process_points {
  point output;
  point exit;
};

inline constexpr process_points executor_processes{.output = point("processes.output"),
                                                   .exit = point("processes.exit")};

inline constexpr process_points probe_processes{.output = point("probe.output"),
                                                .exit = point("probe.exit")};

inline constexpr process_points mcp_processes{.output = point("mcp.output"),
                                              .exit = point("mcp.exit")};

/// Callbacks that hear of a process later, wrongly or not at all. What is late comes on a thread of
/// its own, in the process's order, for nobody may block the runner's; it is late no longer than
/// until the faults are disarmed.
process_events watched(process_events events, const process_points& points);

/// Callbacks that hear of an answer later or wrongly, or that it broke off: then nothing more of it
/// comes, and its end is an error. An end is never lost, as the port promises. What is late comes
/// as above.
http_events watched(http_events events, point answer);

/// Files that fail with errc::io_error at these points.
std::shared_ptr<file_system> watched(std::shared_ptr<file_system> files, const file_points& points);

/// File tools that fail with errc::io_error at the points `file_tools.*`.
std::shared_ptr<confined_files> watched(std::shared_ptr<confined_files> files);

/// Repositories that fail with errc::repository_unavailable at the points `repository.*`.
std::shared_ptr<repository_provider> watched(std::shared_ptr<repository_provider> repositories);

} // namespace boyd::faults
