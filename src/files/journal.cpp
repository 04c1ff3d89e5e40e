#include "boyd/files/journal.hpp"

#include "paths.hpp"
#include "write_all.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::files {

namespace {

/// The good part of a journal's bytes: where it ends, and its last line.
struct good_part {
  std::size_t end = 0;
  std::string_view last_line;
};

/// Walks back from the end over lines that were never wholly written. `cut`: the bytes may begin
/// within a line, which is none.
good_part find_good_part(std::string_view bytes, const journal_options& options, bool cut) {
  std::size_t end = bytes.rfind('\n');
  end = end == std::string_view::npos ? 0 : end + 1;
  while (end > 0) {
    const auto before = end == 1 ? std::string_view::npos : bytes.rfind('\n', end - 2);
    if (before == std::string_view::npos && cut) {
      return {};
    }
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const auto line = bytes.substr(begin, end - 1 - begin);
    if (!line.empty() && (!options.parses || options.parses(line))) {
      return {end, line};
    }
    end = begin;
  }
  return {};
}

std::string torn_path(const std::string& path) {
  return path + ".torn";
}

/// Keeps the cut bytes durably before they disappear from the journal. A crash after it keeps them
/// twice, which does no harm.
result<void> keep_torn_bytes(file_system& fs, const std::string& path, std::string_view bytes) {
  const std::string torn = torn_path(path);
  auto file = fs.open(torn, open_mode::append);
  if (!file) {
    return fail(std::move(file.error()));
  }
  if (auto written = write_all(**file, bytes, torn); !written) {
    return written;
  }
  if (auto written = write_all(**file, "\n", torn); !written) {
    return written;
  }
  if (auto synced = (*file)->sync(); !synced) {
    return synced;
  }
  return fs.sync_directory(parent_directory(torn));
}

error changed_by_others(const std::string& path, std::string what) {
  return error{errc::conflict, std::move(what), path,
               "open it again, and check for another writer"};
}

/// Their lines may be acknowledged: nothing behind our end may be cut any more.
error others_wrote(const std::string& path) {
  return changed_by_others(path, "another writer has appended to the file");
}

} // namespace

journal::journal(file_system& fs, std::string path, journal_options options)
    : fs_(&fs), path_(std::move(path)), options_(std::move(options)) {}

result<journal> journal::open(file_system& fs, std::string path, journal_options options) {
  journal made(fs, std::move(path), std::move(options));
  if (auto recovered = made.recover(); !recovered) {
    return fail(std::move(recovered.error()));
  }
  return made;
}

result<void> journal::recover() {
  auto handle = fs_->open(path_, open_mode::append);
  if (!handle) {
    return fail(std::move(handle.error()));
  }
  // Also when the file existed: a crash may have come between its creation and this call.
  if (auto synced = fs_->sync_directory(parent_directory(path_)); !synced) {
    return synced;
  }
  // At most one batch is unacknowledged. The line before it was perhaps written as part of a larger
  // one: then more is looked at.
  auto wanted = 2 * options_.max_batch_bytes + 1;
  auto found = read_end(**handle, wanted);
  while (found && found->begin > 0 && find_good_part(found->bytes, options_, true).end == 0) {
    wanted *= 2;
    found = read_end(**handle, wanted);
  }
  if (!found) {
    return fail(std::move(found.error()));
  }
  const std::string_view bytes = found->bytes;
  const auto good = find_good_part(bytes, options_, found->begin > 0);
  const std::size_t tail = bytes.size() - good.end;
  if (tail > options_.max_batch_bytes) {
    return fail(errc::corrupt,
                "the last " + std::to_string(tail) + " bytes contain no well-formed line", path_,
                "move the file away, or repair its end by hand");
  }
  if (tail > 0) {
    spdlog::warn("cutting {} torn bytes off {}; kept in {}", tail, path_, torn_path(path_));
    if (auto kept = keep_torn_bytes(*fs_, path_, bytes.substr(good.end)); !kept) {
      return kept;
    }
    if (auto cut = (*handle)->truncate(found->begin + good.end); !cut) {
      return cut;
    }
  }
  if (auto durable = make_durable(**handle, found->begin, bytes.substr(0, good.end)); !durable) {
    return durable;
  }
  torn_ = std::string(bytes.substr(good.end));
  end_ = found->begin + good.end;
  last_line_ = std::string(good.last_line);
  handle_ = std::move(*handle);
  return remember_identity();
}

/// What is found at open counts as acknowledged from now on, so it must be on the disk. The bytes
/// of the last batch of an earlier life may be in the page cache alone: its fsync never came, or it
/// failed, which marks its pages clean, so that no later fsync writes them. Earlier batches cannot:
/// none is begun before the one before it is durable. So the last `max_batch_bytes` are unsure, at
/// most, and are written over themselves, which makes them dirty anew and can tear nothing, before
/// the fsync. A crash or fault in here leaves the file as it was, for the next open.
result<void> journal::make_durable(open_file& file, std::uint64_t begin,
                                   std::string_view found) const {
  const auto unsure = std::min(found.size(), options_.max_batch_bytes);
  const auto sure = found.size() - unsure;
  if (auto rewritten = file.rewrite(begin + sure, found.substr(sure)); !rewritten) {
    return rewritten;
  }
  return file.sync();
}

/// A file may have grown to a gigabyte: what lies before the last lines is not looked at.
result<journal::file_end> journal::read_end(open_file& file, std::size_t wanted) const {
  const auto size = file.size();
  if (!size) {
    return fail(size.error());
  }
  if (*size > options_.max_file_bytes) {
    return fail(errc::no_space,
                "the file is larger than its limit of " + std::to_string(options_.max_file_bytes) +
                    " bytes",
                path_, "move it away and open it again");
  }
  const auto begin = *size > wanted ? *size - wanted : 0;
  auto bytes = fs_->read_part(path_, begin, wanted);
  if (!bytes) {
    return fail(std::move(bytes.error()));
  }
  return file_end{begin, std::move(*bytes)};
}

result<void> journal::remember_identity() {
  auto info = fs_->stat(path_);
  if (!info) {
    distrust_handle();
    return fail(std::move(info.error()));
  }
  inode_ = info->inode;
  device_ = info->device;
  return {};
}

result<void> journal::check_identity() const {
  auto info = fs_->stat(path_);
  if (!info) {
    return fail(std::move(info.error()));
  }
  if (info->kind != file_kind::regular || info->inode != inode_ || info->device != device_) {
    return fail(changed_by_others(path_, "the file was removed or replaced"));
  }
  if (handle_ && info->size != end_) {
    return fail(changed_by_others(path_, "another program changed the file's length from " +
                                             std::to_string(end_) + " to " +
                                             std::to_string(info->size)));
  }
  return {};
}

result<void> journal::reopen_and_verify() {
  auto handle = fs_->open(path_, open_mode::append);
  if (!handle) {
    return fail(std::move(handle.error()));
  }
  // As it was left: behind the last line a batch at most.
  auto found = read_end(**handle, last_line_.size() + 1 + attempted_);
  if (!found) {
    return fail(std::move(found.error()));
  }
  const auto size = found->begin + found->bytes.size();
  if (size > end_ + attempted_) {
    return fail(others_wrote(path_));
  }
  if (size < end_ || (end_ > 0 && !std::string_view(found->bytes)
                                       .substr(0, end_ - found->begin)
                                       .ends_with(last_line_ + "\n"))) {
    return fail(changed_by_others(path_, "acknowledged lines are missing"));
  }
  // What stands after the end was never acknowledged. It is cut, so that the repeated batch is
  // written, and made dirty, anew: after a failed fsync the old pages count as clean (FAULTS).
  if (auto cut = (*handle)->truncate(end_); !cut) {
    return cut;
  }
  if (auto synced = (*handle)->sync(); !synced) {
    return synced;
  }
  handle_ = std::move(*handle);
  return {};
}

/// What went wrong on the way to the file, or was never told, is found while the caller still has
/// the lines.
result<void> journal::compare(std::string_view bytes) const {
  const auto there = handle_->read_part(end_, bytes.size());
  if (!there) {
    return fail(there.error());
  }
  if (*there != bytes) {
    return fail(errc::io_error, "the file does not contain what was written to it", path_,
                "check the disk and the memory of this machine");
  }
  return {};
}

result<void> journal::write_and_compare(std::string_view bytes) {
  if (auto written = write_all(*handle_, bytes, path_); !written) {
    return written;
  }
  return compare(bytes);
}

result<void> journal::write_batch(std::string_view bytes) {
  attempted_ = bytes.size();
  if (auto written = write_and_compare(bytes); !written) {
    if (const auto now = handle_->size(); !now || *now > end_ + bytes.size()) {
      distrust_handle();
      return now ? result<void>(fail(others_wrote(path_))) : written;
    }
    if (auto cut = handle_->truncate(end_); !cut) {
      spdlog::warn("cannot cut back {}: {}", path_, to_string(cut.error()));
      distrust_handle();
    }
    return written;
  }
  if (auto synced = handle_->sync(); !synced) {
    distrust_handle();
    return synced;
  }
  const auto size = handle_->size();
  if (!size || *size != end_ + bytes.size()) {
    distrust_handle();
    if (size && *size > end_ + bytes.size()) {
      return fail(others_wrote(path_));
    }
    return size ? fail(errc::io_error, "the disk has lost written data", path_)
                : fail(size.error());
  }
  return {};
}

result<std::uint64_t> journal::append(const std::vector<std::string>& lines) {
  std::string bytes;
  for (const auto& line : lines) {
    if (line.empty() || line.find_first_of("\r\n") != std::string::npos ||
        (options_.parses && !options_.parses(line))) {
      return fail(errc::invalid_argument, "not a well-formed line", path_);
    }
    bytes += line;
    bytes += '\n';
  }
  if (bytes.empty()) {
    return end_;
  }
  if (bytes.size() > options_.max_batch_bytes) {
    return fail(errc::limit_exceeded, "the batch is too large", path_, "append smaller batches");
  }
  if (end_ + bytes.size() > options_.max_file_bytes) {
    return fail(errc::no_space,
                "the file has reached its limit of " + std::to_string(options_.max_file_bytes) +
                    " bytes",
                path_, "move it away and open it again");
  }
  if (auto same = check_identity(); !same) {
    return fail(std::move(same.error()));
  }
  if (!handle_) {
    if (auto reopened = reopen_and_verify(); !reopened) {
      return fail(std::move(reopened.error()));
    }
  }
  if (auto written = write_batch(bytes); !written) {
    return fail(std::move(written.error()));
  }
  end_ += bytes.size();
  last_line_ = lines.back();
  return end_;
}

} // namespace boyd::files
