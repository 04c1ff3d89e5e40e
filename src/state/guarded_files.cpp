#include "guarded_files.hpp"

#include "boyd/core/limits.hpp"

namespace boyd::state {

result<void> guarded_files::rename(const std::string& from, const std::string& to) {
  const auto info = inner_.stat(target_);
  if (!info)
    return fail(info.error());
  if (info->kind != file_kind::missing && info->kind != file_kind::regular)
    return fail(errc::refused,
                info->kind == file_kind::symlink ? "a symbolic link, not a file"
                                                 : "not a regular file",
                target_, "remove it, or replace it with a file");
  bool same = !expected_ && info->kind == file_kind::missing;
  if (expected_ && info->kind == file_kind::regular && info->size == expected_->size()) {
    const auto now = inner_.read(target_, limits::revision_bytes);
    if (!now)
      return fail(now.error());
    same = *now == *expected_;
  }
  if (!same)
    return fail(errc::conflict, "the file was changed at the same time", target_);
  return inner_.rename(from, to);
}

} // namespace boyd::state
