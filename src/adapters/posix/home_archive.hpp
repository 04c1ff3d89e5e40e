#pragma once

#include "../unique_fd.hpp"
#include "boyd/core/result.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::adapters {

/// One file of an archive.
struct archived_file {
  std::string path;
  std::uint64_t size = 0;
  std::string sha256;

  bool operator==(const archived_file&) const = default;
};

/// Writes an archive (files/tar.hpp) beside its place and puts it there at the end, durably: what
/// stands under its name is whole. Blocking; one thread.
class archive_writer {
 public:
  /// Whether a path, relative to the tree's root, is left out, with all below it.
  using skip_function = std::function<bool(const std::string& relative)>;

  /// Errors: `already_exists`; those of the file system.
  static result<archive_writer> create(const std::string& path);
  ~archive_writer();
  archive_writer(archive_writer&& other) noexcept;
  archive_writer& operator=(archive_writer&&) = delete;
  archive_writer(const archive_writer&) = delete;
  archive_writer& operator=(const archive_writer&) = delete;

  result<void> add_text(const std::string& name, std::string_view text);
  /// `not_found` when it is not there.
  result<void> add_file(const std::string& name, const std::string& source);

  /// A directory that others write to. Each file is as it was at some moment; what vanishes
  /// meanwhile is passed over. Of a git repository the references come before the objects that they
  /// need, and objects that are packed meanwhile are found in their pack.
  result<void> add_tree(const std::string& name, const std::string& source,
                        const skip_function& skip);

  /// The files of a directory and its folders, all as at one moment: logs that are only appended to
  /// and begun anew. `conflict` when they do not stand still for that.
  result<void> add_together(const std::string& name, const std::string& source,
                            const skip_function& skip);

  /// Ends the archive; nothing can be added afterwards.
  result<void> finish();

  const std::vector<archived_file>& files() const noexcept { return files_; }
  /// What is neither file nor directory nor link: sockets and the like, left out.
  const std::vector<std::string>& passed_over() const noexcept { return passed_over_; }

 private:
  archive_writer(std::string path, unique_fd out) : path_(std::move(path)), out_(std::move(out)) {}

  result<void> write(std::string_view bytes);
  result<void> add_open(const std::string& name, int fd, const std::string& source);
  result<void> add_large(const std::string& name, int fd, const std::string& source);
  result<void> add_link(const std::string& name, const std::string& source);
  result<void> add_directory_itself(const std::string& name, const std::string& source);
  result<void> add_below(const std::string& name, const std::string& root,
                         const std::string& relative, const skip_function& skip);
  result<void> add_child(const std::string& name, const std::string& root,
                         const std::string& relative, const skip_function& skip);
  std::string part_path() const { return path_ + ".part"; }

  std::string path_;
  unique_fd out_;
  std::set<std::string> added_;
  std::vector<archived_file> files_;
  std::vector<std::string> passed_over_;
};

/// What came out of an archive.
struct extracted_archive {
  std::vector<archived_file> files; ///< as they are now on the disk, hashed while they were written
  std::string last_text;            ///< of the last file, when it is not longer than 1 GiB
};

/// Writes what is in the archive below `into`, which must be an empty directory of the caller's
/// own. Links are made last, so that nothing is written through one. Durable when it answers.
/// Errors: `corrupt` for a damaged or incomplete archive or one with a path twice; those of the
/// file system. After an error `into` holds a part of it.
result<extracted_archive> extract_archive(const std::string& path, const std::string& into);

} // namespace boyd::adapters
