#include "../cli/command_line.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../live_node.hpp"
#include "../signals.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "boyd/config/secret_shapes.hpp"
#include "commands.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unistd.h>

namespace {

using namespace boyd::app;

/// Whatever a line of the log is about, what looks like a secret is not in it.
class redacting_formatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& to) override {
    const auto text =
        boyd::config::redact_shapes(std::string(line.payload.data(), line.payload.size()));
    auto told = line;
    told.payload = text;
    lines_.format(told, to);
    line.color_range_start = told.color_range_start;
    line.color_range_end = told.color_range_end;
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<redacting_formatter>();
  }

 private:
  spdlog::pattern_formatter lines_{"%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v",
                                   spdlog::pattern_time_type::utc};
};

/// What went wrong behind a command, for the person who typed it: a note, and each text once.
class note_sink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    constexpr std::size_t most_known = 100;
    const auto text =
        boyd::config::redact_shapes(std::string(line.payload.data(), line.payload.size()));
    if (known_.size() == most_known)
      known_.clear();
    if (known_.insert(text).second)
      print_note(as_hint(text));
  }
  void flush_() override {}

 private:
  std::set<std::string> known_;
};

/// Logs go to standard error; a command keeps quiet about what its node does, unless asked.
void set_up_log(const arguments& args) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (args.verbose || args.verb == "node")
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(terminal_of_stderr(args).colours
                                                                     ? spdlog::color_mode::automatic
                                                                     : spdlog::color_mode::never);
  else
    sink = std::make_shared<note_sink>();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("boyd", std::move(sink)));
  spdlog::set_formatter(std::make_unique<redacting_formatter>());
  spdlog::set_level(args.verbose ? spdlog::level::debug : spdlog::level::err);
}

int run(const arguments& args) {
  static const std::map<std::string, int (*)(const arguments&)> verbs{
      {"init", run_init},
      {"node", run_node},
      {"cycle", run_cycle},
      {"run", run_agent},
      {"status", run_status},
      {"logs", run_logs},
      {"next", run_next},
      {"stop", run_stop},
      {"reload", run_reload},
      {"patches", run_patches},
      {"backup", run_backup},
      {"restore", run_restore},
      {"agents", run_agents},
      {"actors", run_actors},
      {"dispatches", run_dispatches},
      {"approvals", run_approvals},
      {"tools", run_tools},
      {"mcp", run_mcp},
      {"state", run_state},
      {"context", run_context},
      {"store", run_store},
      {"memory", run_memory},
      {"skills", run_skills},
      {"improve", run_improve},
      {"cleanup", run_cleanup},
      {"kg", run_kg},
      {"graph", run_graph},
      {"why", run_why},
      {"explain", run_explain},
      {"replay", run_replay},
      {"plan", run_plan},
      {"cost", run_cost},
      {"pause", run_pause},
      {"resume", run_resume},
      {"config", run_config},
      {"chaos", run_chaos},
      {"doctor", run_doctor},
      {"selftest", run_selftest},
      {"version", run_version},
      {"completion", run_completion},
      {"complete", run_complete}};
  return verbs.at(args.verb.substr(0, args.verb.find(' ')))(args);
}

/// What could not be printed (a full disk) was not told to anybody. A reader that had enough
/// (`| head -1`) is no error.
bool output_was_written() {
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || output_is_unread())
    return true;
  print_error({boyd::errc::io_error,
               "cannot write to standard output",
               {},
               "check the destination: full disk, or closed descriptor"});
  return false;
}

} // namespace

int main(int argc, char** argv) try {
  prepare_process();
  int code = exit_code::failure;
  if (auto parsed = parse_command_line(argc, argv); !parsed) {
    code = report(parsed.error(), wants_json(argc, argv));
  } else if (parsed->kind == cli_outcome::kind_t::print) {
    print(parsed->text);
    code = exit_code::ok;
  } else {
    set_up_log(parsed->args);
    choose_time_view(parsed->args);
    choose_hints(parsed->args, [] {
      std::set<std::string> names;
      for (const auto& verb : describe_command_line().verbs)
        names.insert(verb.name);
      return names;
    });
    const auto args = with_times_read(parsed->args);
    code = args ? run(*args) : report(args.error(), parsed->args.json);
  }
  if (!output_was_written() && code == exit_code::ok)
    code = exit_code::failure;
  std::fflush(stderr);
  if (output_is_unread() && code == exit_code::ok)
    end_by_broken_pipe();
  if (!all_released())
    ::_exit(code);
  return code;
} catch (const std::exception& e) {
  return report({boyd::errc::bug, std::string("unexpected: ") + e.what(), {}, "please report it"},
                wants_json(argc, argv));
}
