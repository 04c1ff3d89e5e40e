#include "support/sim/workspaces.hpp"

#include "boyd/core/workspace_path.hpp"

#include <algorithm>
#include <utility>

namespace boyd::sim {

namespace {

std::string parent_of(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

std::string joined(const std::string& root, const std::string& relative) {
  return relative == "." ? root : root + "/" + relative;
}

/// The model knows the path that it gave.
template <class T>
result<T> at(const std::string& path, result<T> outcome) {
  if (!outcome)
    outcome.error().where = path;
  return outcome;
}

} // namespace

disk_workspaces::disk_workspaces(std::shared_ptr<file_system> files) : files_(std::move(files)) {}

result<confined_files::place> disk_workspaces::look(const std::string& root,
                                                    const std::string& path) {
  auto clean = workspace_path(root, path);
  if (!clean)
    return fail(std::move(clean.error()));
  const auto absolute = joined(root, *clean);
  auto info = files_->stat(absolute);
  if (!info)
    return fail(std::move(info.error()));
  if (info->kind == file_kind::missing)
    return fail(errc::not_found, "no such file or directory");
  return place{info->kind, info->size, absolute, std::move(*clean)};
}

result<confined_files::place> disk_workspaces::find(const std::string& root,
                                                    const std::string& path) {
  return at(path, look(root, path));
}

result<confined_files::text_part> disk_workspaces::read(const std::string& root,
                                                        const std::string& path,
                                                        std::uint64_t offset,
                                                        std::size_t max_bytes) {
  const auto found = look(root, path);
  if (!found)
    return at<text_part>(path, fail(found.error()));
  if (found->kind != file_kind::regular)
    return fail(errc::invalid_argument, "this is not a regular file", path);
  auto text = files_->read(found->absolute, static_cast<std::size_t>(found->size));
  if (!text)
    return at<text_part>(path, fail(std::move(text.error())));
  const auto from = static_cast<std::size_t>(std::min<std::uint64_t>(offset, text->size()));
  return text_part{text->substr(from, max_bytes), text->size(), found->where};
}

result<void> disk_workspaces::fill(const std::string& path, std::string_view content) {
  auto file = files_->open(path, open_mode::create_new);
  if (!file)
    return fail(std::move(file.error()));
  while (!content.empty()) {
    const auto written = (*file)->write(content);
    if (!written)
      return fail(written.error());
    if (*written == 0)
      return fail(errc::no_space, "the file could not be written completely");
    content.remove_prefix(*written);
  }
  return (*file)->sync();
}

result<void> disk_workspaces::replace(const std::string& root, const std::string& path,
                                      std::string_view content, const may_replace* may) {
  const auto clean = workspace_path(root, path);
  if (!clean)
    return fail(clean.error());
  if (auto why = why_unwritable(*clean))
    return fail(errc::refused, std::move(*why));
  const auto target = joined(root, *clean);
  const auto directory = parent_of(target);
  if (auto made = files_->make_directories(directory); !made)
    return made;
  const auto info = files_->stat(target);
  if (!info)
    return fail(info.error());
  if (info->kind != file_kind::missing && info->kind != file_kind::regular)
    return fail(errc::invalid_argument, "this is not a regular file");
  const auto temporary = directory + "/." + target.substr(directory.size() + 1) + ".boyd-tmp-" +
                         std::to_string(++temporaries_);
  auto done = fill(temporary, content);
  if (done && may != nullptr) {
    const auto now = files_->read(target, compared_bytes);
    if (!now && now.error().code != errc::not_found)
      done = fail(now.error());
    else if (!(*may)(now ? &*now : nullptr))
      done = fail(errc::conflict, "the file has changed since it was read");
  }
  if (done)
    done = files_->rename(temporary, target);
  if (!done) {
    (void)files_->unlink(temporary);
    return done;
  }
  return files_->sync_directory(directory);
}

result<void> disk_workspaces::write(const std::string& root, const std::string& path,
                                    std::string_view content) {
  return at(path, replace(root, path, content, nullptr));
}

result<void> disk_workspaces::write_over(const std::string& root, const std::string& path,
                                         std::string_view content, const may_replace& may) {
  return at(path, replace(root, path, content, &may));
}

result<confined_files::listing> disk_workspaces::list(const std::string& root,
                                                      const std::string& path, std::size_t most) {
  const auto found = look(root, path);
  if (!found)
    return at<listing>(path, fail(found.error()));
  if (found->kind != file_kind::directory)
    return fail(errc::invalid_argument, "not a directory", path);
  auto names = files_->list(found->absolute);
  if (!names)
    return at<listing>(path, fail(std::move(names.error())));
  listing all;
  all.total = names->size();
  all.where = found->where;
  for (std::size_t i = 0; i < std::min(most, names->size()); ++i) {
    const auto info = files_->stat(joined(found->absolute, (*names)[i]));
    if (!info)
      return at<listing>(path, fail(info.error()));
    all.entries.push_back({(*names)[i], info->kind, info->size});
  }
  return all;
}

result<confined_files::walk_end>
disk_workspaces::walk(const std::string& root, const std::string& path, const walk_limits& limits,
                      const wanted_file& wanted, const visit_file& visit) {
  const auto start = look(root, path);
  if (!start)
    return at<walk_end>(path, fail(start.error()));
  walk_end end;
  std::vector<std::string> left{start->where};
  for (std::size_t looked_at = 0; !left.empty(); ++looked_at) {
    const auto where = std::move(left.back());
    left.pop_back();
    if (looked_at == limits.entries) {
      end.cut = "entries";
      break;
    }
    const auto found = look(root, where);
    if (found && found->kind == file_kind::directory) {
      const auto names = files_->list(found->absolute);
      for (std::size_t i = names ? names->size() : 0; i > 0; --i)
        left.push_back(where == "." ? (*names)[i - 1] : where + "/" + (*names)[i - 1]);
    }
    if (!found || found->kind != file_kind::regular || !wanted(where))
      continue;
    const auto text = files_->read(found->absolute, static_cast<std::size_t>(limits.file_bytes));
    end.unreadable += text ? 0 : 1;
    if (!text)
      continue;
    ++end.files;
    end.bytes += text->size();
    if (!visit(where, *text))
      break;
  }
  return end;
}

} // namespace boyd::sim
