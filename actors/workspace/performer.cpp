#include "actors/workspace/performer.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/confined_files.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/state/document.hpp"
#include "boyd/state/reducer.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string_view>
#include <utility>

namespace boyd {

namespace {

result<void> check_path(const std::string& path) {
  if (path.empty() || path.front() != '/' || path.find('\0') != std::string::npos)
    return fail(errc::invalid_argument, "not an absolute path", path);
  return {};
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Collects one line for each file: kind, name and the hash of its content. The lines' hash is
/// the answer, so memory is bounded by the largest file, not by the sum.
class input_walk {
 public:
  explicit input_walk(file_system& files) : files_(files) {}

  /// A path that somebody named: a link is followed, a missing file counts as such.
  result<void> add_named(const std::string& path) {
    auto info = files_.stat(path);
    if (!info)
      return fail(std::move(info.error()));
    if (info->kind != file_kind::symlink)
      return add(path, path, *info, 0);
    if (auto names = files_.list(path))
      return add_directory(path, path, *names, 0);
    return add_content(path, path);
  }

  std::string hash() const { return sha256_hex(lines_); }

 private:
  result<void> add(const std::string& path, const std::string& name, const file_info& info,
                   std::size_t depth) {
    switch (info.kind) {
    case file_kind::missing:
      return count("missing", name, {});
    case file_kind::regular:
      return add_content(path, name);
    case file_kind::directory: {
      auto names = files_.list(path);
      if (!names)
        return fail(std::move(names.error()));
      return add_directory(path, name, *names, depth);
    }
    case file_kind::symlink: // not followed: links may run in a circle
      return count("symlink", name, {});
    case file_kind::other:
      return count("other", name, {});
    }
    return {};
  }

  result<void> add_content(const std::string& path, const std::string& name) {
    auto text = files_.read(path, static_cast<std::size_t>(hashed_bytes - bytes_));
    if (!text)
      return text.error().code == errc::limit_exceeded ? too_much(path)
                                                       : fail(std::move(text.error()));
    bytes_ += text->size();
    return count("file", name, sha256_hex(*text));
  }

  result<void> add_directory(const std::string& path, const std::string& name,
                             const std::vector<std::string>& names, std::size_t depth) {
    if (depth >= hashed_depth)
      return too_much(path);
    if (auto ok = count("directory", name, {}); !ok)
      return ok;
    for (const auto& entry : names) {
      auto info = files_.stat(path + "/" + entry);
      if (!info)
        return fail(std::move(info.error()));
      if (auto ok = add(path + "/" + entry, name + "/" + entry, *info, depth + 1); !ok)
        return ok;
    }
    return {};
  }

  result<void> count(std::string_view kind, const std::string& name, const std::string& content) {
    if (++entries_ > hashed_files)
      return too_much(name);
    lines_.append(kind).append(1, '\0').append(name).append(1, '\0').append(content).append("\n");
    return {};
  }

  static result<void> too_much(const std::string& path) {
    return fail(errc::limit_exceeded,
                "more than " + std::to_string(hashed_files) + " files or " +
                    std::to_string(hashed_bytes >> 20) + " MiB to compare",
                path, "use fewer inputs, or a command that prints the relevant part");
  }

  file_system& files_;
  std::string lines_;
  std::size_t entries_ = 0;
  std::uint64_t bytes_ = 0;
};

} // namespace

std::size_t tool_worker_of(const std::string& workspace) noexcept {
  return std::hash<std::string>{}(workspace) % tool_workers;
}

workspace_session::workspace_session(node_context_ptr context) : context_(std::move(context)) {}

void workspace_session::perform(std::vector<job<workspace_request, workspace_reply>>& batch) {
  for (auto& j : batch)
    j.reply = answer(j.request);
}

result<workspace_reply> workspace_session::answer(const workspace_request& request) {
  return std::visit([&](const auto& what) { return carry_out(what); }, request.what);
}

result<workspace_reply> workspace_session::carry_out(const write_private_file& what) {
  if (auto ok = check_path(what.path); !ok)
    return fail(std::move(ok.error()));
  auto& files = *context_->ports.files;
  result<void> outcome = files.make_directories(parent_of(what.path));
  if (outcome)
    outcome = write_new(what.path, what.text);
  note(outcome, what.path);
  if (!outcome)
    return fail(std::move(outcome.error()));
  return workspace_reply{};
}

result<workspace_reply> workspace_session::carry_out(const write_durable_file& what) {
  if (auto ok = check_path(what.path); !ok)
    return fail(std::move(ok.error()));
  if (auto ok = write_durable(what.path, what.text); !ok)
    return fail(std::move(ok.error()));
  return workspace_reply{};
}

result<void> workspace_session::write_durable(const std::string& path, std::string_view text) {
  return replace(path, text, true);
}

result<void> workspace_session::replace(const std::string& path, std::string_view text,
                                        bool durable) {
  auto& files = *context_->ports.files;
  files::atomic_options options;
  options.sync = options.sync_name = durable;
  // The directory is there but for the first time: what waits for no disk saves the look.
  result<void> outcome = durable ? files.make_directories(parent_of(path)) : result<void>{};
  if (outcome)
    outcome = files::write_atomic(files, path, text, options);
  if (!durable && !outcome && outcome.error().code == errc::not_found) {
    outcome = files.make_directories(parent_of(path));
    if (outcome)
      outcome = files::write_atomic(files, path, text, options);
  }
  note(outcome, path);
  return outcome;
}

/// Always a new file: a link or foreign file that stands at the path is removed, not written to.
/// Nothing is synced: the text is in the database, and its reader lives only as long as this node.
result<void> workspace_session::write_new(const std::string& path, const std::string& text) {
  auto& files = *context_->ports.files;
  if (auto gone = files.unlink(path); !gone && gone.error().code != errc::not_found)
    return gone;
  auto file = files.open(path, open_mode::create_new);
  if (!file)
    return fail(std::move(file.error()));
  std::string_view rest = text;
  while (!rest.empty()) {
    auto written = (*file)->write(rest);
    if (!written || *written == 0) {
      (void)files.unlink(path); // half a prompt must not be read
      if (!written)
        return fail(std::move(written.error()));
      return fail(errc::no_space, "the file could not be written completely", path);
    }
    rest.remove_prefix(std::min(*written, rest.size()));
  }
  return {};
}

/// A program of the same user may change them (Landlock does not know chmod): others could then
/// read or write what the node believes, or the node itself would not get at its rows after a
/// restart.
void workspace_session::look_at_modes() {
  constexpr unsigned others = 077;
  constexpr unsigned own_file = 0600;
  constexpr unsigned own_directory = 0700;
  std::string notice;
  const auto layout = context_->layout();
  for (const auto& path : {context_->home, layout.database(), layout.database() + "-wal",
                           layout.run(), layout.kernels(), layout.knowledge()}) {
    const auto info = context_->ports.files->stat(path);
    if (!info || (info->kind != file_kind::regular && info->kind != file_kind::directory))
      continue;
    const auto own = info->kind == file_kind::directory ? own_directory : own_file;
    if ((info->mode & others) == 0 && (info->mode & own) == own)
      continue;
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "%04o", info->mode);
    notice += (notice.empty() ? "" : "; ") + path + " has mode " + text.data() +
              ((info->mode & others) != 0 ? " and is accessible to other users: chmod "
                                          : " and is not accessible to the node: chmod ") +
              (own == own_directory ? "0700 " : "0600 ") + path;
  }
  if (!notice.empty() && notice != health_.notice)
    spdlog::warn("workspace: {}", notice);
  health_.notice = std::move(notice);
}

void workspace_session::probe() {
  look_at_modes();
  if (!health_.ok)
    note(files::try_writing(*context_->ports.files, failed_in_), failed_in_ + "/");
}

void workspace_session::note(const result<void>& written, const std::string& path) {
  if (written) {
    health_.ok = true;
    health_.reason.clear();
    health_.since.reset();
    return;
  }
  if (health_.ok)
    health_.since = context_->ports.clock->now();
  health_.ok = false;
  failed_in_ = parent_of(path);
  health_.reason = "cannot write: " + to_string(written.error());
  health_.last_error = health_.reason;
}

result<workspace_reply> workspace_session::carry_out(const read_configuration& what) {
  if (!context_->parse_configuration)
    return fail(errc::refused, "this node cannot reload its configuration", what.path);
  auto text = carry_out(read_text_file{what.path, limits::config_bytes});
  if (!text)
    return text;
  workspace_reply reply;
  reply.configuration = context_->parse_configuration(what.path, text->text);
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const append_record& what) {
  if (auto ok = check_path(what.path); !ok)
    return fail(std::move(ok.error()));
  auto& files = *context_->ports.files;
  result<void> outcome = files.make_directories(parent_of(what.path));
  if (outcome)
    outcome = append(what.path, what.text);
  note(outcome, what.path);
  if (!outcome)
    return fail(std::move(outcome.error()));
  return workspace_reply{};
}

/// As every journal: a line that an earlier life left torn is cut off and kept aside before the
/// next one, and what a full disk leaves of these is taken back.
result<void> workspace_session::append(const std::string& path, const std::string& text) {
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n'))
    if (!line.empty())
      lines.emplace_back(line);
  files::journal_options options;
  options.max_batch_bytes = std::max(options.max_batch_bytes, text.size() + 1);
  auto record = files::journal::open(*context_->ports.files, path, std::move(options));
  if (!record)
    return fail(std::move(record.error()));
  if (auto written = record->append(lines); !written)
    return fail(std::move(written.error()));
  return {};
}

result<workspace_reply> workspace_session::carry_out(const remove_file& what) {
  if (auto ok = check_path(what.path); !ok)
    return fail(std::move(ok.error()));
  auto gone = context_->ports.files->unlink(what.path);
  if (!gone && gone.error().code != errc::not_found)
    return fail(std::move(gone.error()));
  return workspace_reply{};
}

result<workspace_reply> workspace_session::carry_out(const inspect_files& what) {
  if (what.paths.size() > hashed_files)
    return fail(errc::limit_exceeded, "too many files");
  workspace_reply reply;
  for (const auto& path : what.paths) {
    if (auto ok = check_path(path); !ok)
      return fail(std::move(ok.error()));
    auto info = context_->ports.files->stat(path);
    if (!info)
      return fail(std::move(info.error()));
    reply.files.push_back(*info);
  }
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const read_text_file& what) {
  if (auto ok = check_path(what.path); !ok)
    return fail(std::move(ok.error()));
  auto& files = *context_->ports.files;
  if (!what.below.empty()) {
    if (!what.path.starts_with(what.below + "/"))
      return fail(errc::invalid_argument, "not below " + what.below, what.path);
    auto own =
        files.read_below(what.below, what.path.substr(what.below.size() + 1), what.max_bytes);
    if (!own)
      return fail(std::move(own.error()));
    workspace_reply reply;
    reply.text = std::move(*own);
    return reply;
  }
  auto info = files.stat(what.path);
  if (!info)
    return fail(std::move(info.error()));
  if (info->kind == file_kind::missing)
    return fail(errc::not_found, "no such file", what.path);
  if (info->kind == file_kind::directory || info->kind == file_kind::other)
    return fail(errc::invalid_argument, "not a regular file", what.path);
  auto text = files.read(what.path, what.max_bytes);
  if (!text)
    return fail(std::move(text.error()));
  workspace_reply reply;
  reply.text = std::move(*text);
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const hash_inputs& what) {
  auto paths = what.paths;
  std::ranges::sort(paths);
  input_walk walk(*context_->ports.files);
  for (const auto& path : paths) {
    if (auto ok = check_path(path); !ok)
      return fail(std::move(ok.error()));
    if (auto ok = walk.add_named(path); !ok)
      return fail(std::move(ok.error()));
  }
  workspace_reply reply;
  reply.text = walk.hash();
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const keep_result& what) {
  workspace_reply reply;
  reply.outcome = tools::fit_result(what.text, what.is_error, what.place, *context_->ports.files);
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const run_tool& what) {
  if (what.over && *what.over)
    return fail(errc::cancelled, "the run has ended", what.workspace);
  const auto& ports = context_->ports;
  if (!ports.workspaces)
    return fail(errc::refused, "file tools are not available here", what.workspace);
  workspace_reply reply;
  reply.outcome = tools::perform(what.call, what.workspace, what.permission, what.place,
                                 *ports.workspaces, *ports.files);
  return reply;
}

namespace {

/// STATE.md without what Boyd writes there with every cycle: its block, and lines of its own.
std::string agents_state(const std::string& content) {
  const auto theirs = state::agents_part(state::merge_recent_actions(content, {}, 0));
  std::string out;
  for (const auto line : split(theirs, '\n'))
    if (const auto text = trim(line);
        !text.empty() && text != "(none yet)" && text != "## recent_actions")
      out.append(line).append("\n");
  return out;
}

/// In a kernel's home Boyd commits, and writes to STATE.md: neither is an agent's doing.
tools::tree_options tree_options_of(const node_context& context, const look_at_workspace& what) {
  tools::tree_options options;
  options.unbound = *what.tree_without;
  if (!what.workspace.starts_with(context.kernel_home("")))
    return options;
  options.own = {".git"};
  options.part = [](std::string_view where, std::string content) {
    return where == "STATE.md" || where == "STATE.md.bak" ? agents_state(content) : content;
  };
  return options;
}

} // namespace

result<workspace_reply> workspace_session::carry_out(const look_at_workspace& what) {
  const auto& ports = context_->ports;
  if (!ports.workspaces)
    return fail(errc::refused, "file tools are not available here", what.workspace);
  auto prints = tools::look_at_files(*ports.workspaces, what.workspace, what.paths);
  if (!prints)
    return fail(std::move(prints.error()));
  workspace_reply reply;
  reply.prints = std::move(*prints);
  if (what.tree_without) {
    auto tree =
        tools::look_at_tree(*ports.workspaces, what.workspace, tree_options_of(*context_, what));
    if (!tree)
      return fail(std::move(tree.error()));
    reply.tree = std::move(*tree);
  }
  return reply;
}

} // namespace boyd
