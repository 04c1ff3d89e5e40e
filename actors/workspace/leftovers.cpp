#include "actors/workspace/performer.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/file_system.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

/// What ended executions have left, and the contents that their records name.
namespace boyd {

namespace {

/// Of an execution: its record, its turns, the sessions and patches of its attempts.
constexpr std::size_t most_files = 10'000;

bool is_gone(const result<void>& r) {
  return r || r.error().code == errc::not_found;
}

/// The newest time at which something in the folder was changed, and its bytes.
struct folder_state {
  utc_time changed{};
  std::uint64_t bytes = 0;
};

folder_state state_of(file_system& files, const std::string& folder) {
  folder_state state;
  if (const auto info = files.stat(folder))
    state.changed = info->modified;
  if (const auto names = files.list(folder))
    for (const auto& name : *names)
      if (const auto info = files.stat(folder + "/" + name)) {
        state.changed = std::max(state.changed, info->modified);
        state.bytes += info->size;
      }
  return state;
}

/// With the folders in it, of which an execution has one: of long results of tools.
result<void> remove_folder(file_system& files, const std::string& folder, bool is_top = true) {
  const auto names = files.list(folder);
  if (!names)
    return names.error().code == errc::not_found ? result<void>{} : fail(names.error());
  if (names->size() > most_files)
    return fail(errc::limit_exceeded, "too many files", folder, "remove it by hand");
  for (const auto& name : *names) {
    const auto path = folder + "/" + name;
    const auto info = files.stat(path);
    const bool is_folder = is_top && info && info->kind == file_kind::directory;
    if (auto gone = is_folder ? remove_folder(files, path, false) : files.unlink(path);
        !is_gone(gone))
      return gone;
  }
  const auto gone = files.unlink(folder);
  return is_gone(gone) ? result<void>{} : gone;
}

/// Every text of the JSON that has the form of a hash: more than the contents' own, and never less.
void add_hashes(std::string_view json, std::vector<std::string>& to) {
  constexpr std::size_t digits = 64;
  for (auto quote = json.find('"'); quote != json.npos; quote = json.find('"', quote + 1)) {
    const auto text = json.substr(quote + 1, digits);
    if (text.size() == digits && json.substr(quote + 1 + digits, 1) == "\"" &&
        text.find_first_not_of("0123456789abcdef") == text.npos)
      to.emplace_back(text);
  }
}

} // namespace

result<workspace_reply> workspace_session::carry_out(const list_executions& what) {
  auto& files = *context_->ports.files;
  const auto folder = context_->layout().executions();
  auto names = files.list(folder);
  if (!names && names.error().code == errc::not_found)
    return workspace_reply{};
  if (!names)
    return fail(std::move(names.error()));
  std::erase_if(
      *names, [&](const std::string& name) { return name <= what.after || !is_valid_name(name); });
  std::ranges::sort(*names);
  workspace_reply reply;
  for (auto& name : *names) {
    if (reply.names.size() == what.limit)
      break;
    const auto state = state_of(files, folder + "/" + name);
    if (state.changed >= what.before)
      continue;
    reply.bytes += state.bytes;
    reply.names.push_back(std::move(name));
  }
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const remove_executions& what) {
  workspace_reply reply;
  for (const auto& id : what.ids) {
    if (!is_valid_name(id))
      return fail(errc::invalid_argument, "not an execution id", id);
    // One that cannot go must not keep the others.
    if (auto gone = remove_folder(*context_->ports.files, context_->layout().execution(id)); !gone)
      spdlog::warn("workspace: cannot remove files of an execution: {}", to_string(gone.error()));
    else
      ++reply.removed;
  }
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const named_contents& what) {
  workspace_reply reply;
  for (const auto& id : what.ids) {
    const auto text = context_->ports.files->read(context_->layout().record(id), most_record_bytes);
    if (text)
      add_hashes(*text, reply.names);
    else if (text.error().code != errc::not_found)
      reply.text = to_string(text.error());
  }
  std::ranges::sort(reply.names);
  reply.names.erase(std::unique(reply.names.begin(), reply.names.end()), reply.names.end());
  return reply;
}

result<workspace_reply> workspace_session::carry_out(const sweep_contents& what) {
  auto& files = *context_->ports.files;
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr unsigned base = 16;
  const std::string name{digits[what.folder / base % base], digits[what.folder % base]};
  const auto folder = context_->layout().objects() + "/" + name;
  const auto names = files.list(folder);
  if (!names)
    return names.error().code == errc::not_found ? result<workspace_reply>{workspace_reply{}}
                                                 : fail(names.error());
  workspace_reply reply;
  for (const auto& name_of_file : *names) {
    // A summary goes with its content.
    const auto hash = name_of_file.substr(0, name_of_file.find('.'));
    if (what.kept && what.kept->contains(hash))
      continue;
    const auto path = folder + "/" + name_of_file;
    const auto info = files.stat(path);
    if (!info || info->kind != file_kind::regular || info->modified >= what.before)
      continue;
    if (!what.dry_run)
      if (auto gone = files.unlink(path); !is_gone(gone))
        return fail(std::move(gone.error()));
    ++reply.removed;
    reply.bytes += info->size;
  }
  return reply;
}

} // namespace boyd
