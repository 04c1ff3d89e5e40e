#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <map>
#include <string>

namespace boyd::app {

/// Writes help: an example first, then what the verb is for, its options in words, and the options
/// that it shares with others. The root lists its verbs in groups.
class help_formatter : public CLI::Formatter {
 public:
  help_formatter();

  std::map<const CLI::App*, std::string> examples;
  std::map<const CLI::App*, std::string> common; ///< lines of the options that the verb shares

  std::string make_footer(const CLI::App* app) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_expanded(const CLI::App* group) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

} // namespace boyd::app
