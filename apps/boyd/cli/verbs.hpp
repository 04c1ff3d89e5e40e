#pragma once

#include "../arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <functional>
#include <string>

/// The verbs of the command line with their words and options, one file for each subject; those of
/// the node itself, its queue and its memory are in command_line.cpp.
namespace boyd::app {

/// Adds a verb to its parent: name, help, example.
using verb_maker =
    std::function<CLI::App*(CLI::App&, const std::string&, const std::string&, const std::string&)>;

/// `--attempt N` of a run, and the name that it had before, which no help shows.
void add_attempt_option(CLI::App& verb, arguments& args, const std::string& help);

/// `boyd agents add` and `rm`.
void add_agent_edits(CLI::App& agents, arguments& args, const verb_maker& verb);
/// `boyd logs`, `next` and `patches`.
void add_run_verbs(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd backup` and `restore`.
void add_backup_verbs(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd explain` and `replay`.
void add_explain_verbs(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd improve` and its verbs.
void add_improve_verb(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd kg` with its verbs, and `boyd graph`.
void add_knowledge_verbs(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd node`, `stop` and `reload`.
void add_node_verbs(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd skills` and its verbs.
void add_skill_verbs(CLI::App& app, arguments& args, const verb_maker& verb);
/// `boyd store` and its verbs.
void add_store_verbs(CLI::App& app, arguments& args, const verb_maker& verb);

} // namespace boyd::app
