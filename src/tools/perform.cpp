#include "boyd/tools/perform.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/tools/definitions.hpp"
#include "file_reading.hpp"
#include "file_search.hpp"

#include <algorithm>
#include <utility>

namespace boyd::tools {

namespace {

/// More entries of one directory are counted, not shown.
constexpr std::size_t listed_entries = 2000;

/// A name cannot end its line or hide the ones after it.
std::string shown_name(const std::string& name) {
  std::string shown = sanitize_utf8(name);
  std::ranges::replace_if(
      shown,
      [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7F;
      },
      '?');
  return shown;
}

std::string shown_entry(const confined_files::entry& e) {
  const auto name = shown_name(e.name);
  switch (e.kind) {
  case file_kind::directory:
    return name + "/\n";
  case file_kind::regular:
    return name + "  " + std::to_string(e.size) + " bytes\n";
  case file_kind::symlink:
    return name + "  symbolic link\n";
  case file_kind::missing:
  case file_kind::other:
    break;
  }
  return name + "  not a file or directory\n";
}

class performer {
 public:
  performer(const std::string& workspace, const permission& permission, const result_place& place,
            confined_files& inside, file_system& files)
      : workspace_(workspace), permission_(permission), place_(place), inside_(inside),
        files_(files) {}

  tool_outcome operator()(const read_file_call& call) {
    const bool is_result = call.path.starts_with(results_prefix);
    const auto root = is_result ? place_.directory : workspace_;
    const auto path = is_result ? call.path.substr(results_prefix.size()) : call.path;
    auto text = read_lines(inside_, root, path, call);
    if (!text)
      return failed_outcome(text.error());
    if (!is_result)
      if (auto ok = check(read_file_name, call.path, text->where); !ok)
        return failed_outcome(ok.error());
    return fitted(text->text);
  }

  tool_outcome operator()(const write_file_call& call) {
    // No link is followed here, so the path that was decided about is the one that is written.
    const auto& before = permission_.before;
    const auto is_as_before = [&](const std::string* now) {
      return *before == (now != nullptr ? sha256_hex(*now) : std::string());
    };
    if (auto ok = before ? inside_.write_over(workspace_, call.path, call.content, is_as_before)
                         : inside_.write(workspace_, call.path, call.content);
        !ok)
      return failed_outcome(ok.error());
    return fitted("wrote " + std::to_string(call.content.size()) + " bytes to " + call.path);
  }

  tool_outcome operator()(const list_dir_call& call) {
    const auto all = inside_.list(workspace_, call.path, listed_entries);
    if (!all)
      return failed_outcome(all.error());
    if (auto ok = check(list_dir_name, call.path, all->where); !ok)
      return failed_outcome(ok.error());
    std::string text;
    for (const auto& e : all->entries)
      text += shown_entry(e);
    if (all->total == 0)
      text = "[the directory is empty]\n";
    else if (all->total > all->entries.size())
      text += "[the first " + std::to_string(all->entries.size()) + " of " +
              std::to_string(all->total) + " entries, by name]\n";
    return fitted(text);
  }

  tool_outcome operator()(const search_text_call& call) {
    const auto start = inside_.find(workspace_, call.path);
    if (!start)
      return failed_outcome(start.error());
    if (auto ok = check(search_text_name, call.path, start->where); !ok)
      return failed_outcome(ok.error());
    const auto text = search_files(inside_, workspace_, call, [&](const std::string& where) {
      return lets_through({std::string(search_text_name), where, {}, false, {}}) &&
             lets_through({std::string(read_file_name), where, {}, false, {}});
    });
    return text ? fitted(*text) : failed_outcome(text.error());
  }

 private:
  tool_outcome fitted(std::string_view text) { return fit_result(text, false, place_, files_); }

  /// No rule denies it, and none asks a person who was not asked about this call.
  bool lets_through(const action& a) const {
    const auto d = decide_by_rules(a, permission_.policy);
    return !d || d->what == config::policy_decision::allow ||
           (d->what == config::policy_decision::ask && d->rule == permission_.rule);
  }

  /// The call was decided about under the name it gave; a link may have led to another.
  result<void> check(std::string_view tool, const std::string& asked, const std::string& where) {
    const auto named = workspace_path(workspace_, asked);
    if (named && *named == where)
      return {};
    const auto d =
        decide({std::string(tool), where, {}, false, {}}, permission_.policy, permission_.tools);
    if (d.what == config::policy_decision::allow ||
        (d.what == config::policy_decision::ask && d.rule == permission_.rule))
      return {};
    return fail(errc::refused, "a link leads to " + where + ", which is " + d.reason, asked,
                "use that path itself");
  }

  const std::string& workspace_;
  const permission& permission_;
  const result_place& place_;
  confined_files& inside_;
  file_system& files_;
};

} // namespace

tool_outcome perform(const file_call& call, const std::string& workspace,
                     const permission& permission, const result_place& place,
                     confined_files& inside, file_system& files) {
  return std::visit(performer(workspace, permission, place, inside, files), call);
}

result<command_request> command_of(const run_command_call& call, const std::string& workspace,
                                   std::vector<std::pair<std::string, std::string>> environment,
                                   milliseconds most) {
  const auto cwd = workspace_path(workspace, call.cwd);
  if (!cwd)
    return fail(cwd.error());
  command_request request;
  request.process.argv =
      call.argv.empty() ? std::vector<std::string>{"/bin/sh", "-c", call.command} : call.argv;
  request.process.cwd = *cwd == "." ? workspace : workspace + "/" + *cwd;
  request.process.cwd_within = workspace; // a directory of it may have become a link
  request.process.environment = std::move(environment);
  request.timeout = std::min<milliseconds>(seconds{static_cast<std::int64_t>(call.timeout_seconds)},
                                           std::max(most, milliseconds{1}));
  return request;
}

std::string command_text(const process_exit& end, std::string_view output, bool timed_out) {
  std::string text;
  if (!end.started)
    text = "not started: " + end.start_error;
  else if (timed_out)
    text = "timed out (" + format_duration(end.wall) + ")";
  else if (end.signal != 0)
    text = "killed by signal " + std::to_string(end.signal);
  else
    text = "exit code " + std::to_string(end.exit_code);
  text += '\n';
  text += output;
  return sanitize_utf8(text);
}

} // namespace boyd::tools
