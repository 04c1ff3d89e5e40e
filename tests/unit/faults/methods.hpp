#pragma once

#include <map>
#include <string>
#include <string_view>

namespace boyd::fault_coverage_test {

/// Of each thing: points in the catalogue, or "-" with docs/reliability.md's word for why there is
/// none.
using coverage = std::map<std::string, std::string_view>;

/// Of each method of a port, by the class that has it. Of files: of one owner; the others' points
/// have the same second word.
inline const coverage methods{
    {"clock_port::now", "- clock"},
    {"clock_port::steady", "- clock"},
    {"confined_files::find", "file_tools.read"},
    {"confined_files::list", "file_tools.read"},
    {"confined_files::read", "file_tools.read"},
    {"confined_files::walk", "file_tools.read"},
    {"confined_files::write", "file_tools.write"},
    {"confined_files::write_over", "file_tools.write"},
    {"dispatch_store::apply", "store.apply"},
    {"dispatch_store::concerns", "- what a store is concerned about"},
    {"dispatch_store::describe", "- what cannot fail"},
    {"dispatch_store::open", "store.open"},
    {"dispatch_store::tell_migrations", "store.migrate"},
    {"dispatch_store::tidy", "store.tidy"},
    {"entropy::next", "- entropy"},
    {"file_system::list", "state_writer.read"},
    {"file_system::make_directories", "state_writer.open"},
    {"file_system::open", "state_writer.open"},
    {"file_system::read", "state_writer.read"},
    {"file_system::read_below", "state_writer.read"},
    {"file_system::read_part", "graph_recorder.read"},
    {"file_system::rename", "state_writer.rename"},
    {"file_system::stat", "state_writer.read"},
    {"file_system::sync_directory", "state_writer.sync_directory"},
    {"file_system::unlink", "spool.unlink"},
    {"http_client::cancel", "- what cannot fail"},
    {"http_client::running", "- what cannot fail"},
    {"http_client::start", "models.call"},
    {"open_file::begin_sync", "- what cannot fail"},
    {"open_file::read_part", "graph_recorder.read"},
    {"open_file::rewrite", "graph_recorder.repair"},
    {"open_file::size", "graph_recorder.read"},
    {"open_file::sync", "graph_recorder.sync"},
    {"open_file::truncate", "graph_recorder.repair"},
    {"open_file::write", "graph_recorder.bytes"},
    {"process_runner::close_input", "- what cannot fail"},
    {"process_runner::host", "- what cannot fail"},
    {"process_runner::running", "- what cannot fail"},
    {"process_runner::runs", "- what cannot fail"},
    {"process_runner::sandbox", "- what cannot fail"},
    {"process_runner::signal", "processes.signal"},
    {"process_runner::start", "processes.start"},
    {"process_runner::write", "mcp.call"},
    {"repository::changes", "repository.changes"},
    {"repository::commit", "repository.commit"},
    {"repository::commit_at", "repository.read"},
    {"repository::commit_two", "repository.commit"},
    {"repository::diff", "repository.read"},
    {"repository::filter_contents", "- what cannot fail"},
    {"repository::filtered", "- what cannot fail"},
    {"repository::head", "repository.read"},
    {"repository::history", "repository.read"},
    {"repository::is_kept", "repository.read"},
    {"repository::left_out", "- what cannot fail"},
    {"repository::loose_objects", "repository.read"},
    {"repository::pack", "repository.pack"},
    {"repository::read_at", "repository.read"},
    {"repository::remarks", "- what cannot fail"},
    {"repository::stage", "repository.stage"},
    {"repository::tracked_files", "repository.read"},
    {"repository_provider::init", "repository.open"},
    {"repository_provider::open", "repository.open"},
    {"store_archive::finish", "- the archive of a store"},
    {"store_archive::open", "- the archive of a store"},
    {"store_archive::read", "- the archive of a store"},
    {"store_archive::schema_differences", "- the archive of a store"},
    {"store_archive::write", "- the archive of a store"},
    {"time_zone::to_local", "- time zones"},
    {"time_zone::to_utc", "- time zones"},
    {"time_zones::find", "- time zones"},
    {"time_zones::local", "- time zones"},
    {"worktrees::close", "worktrees.close"},
    {"worktrees::make", "worktrees.make"},
};

} // namespace boyd::fault_coverage_test
