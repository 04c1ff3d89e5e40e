#pragma once

#include "boyd/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// Archives in the format of POSIX.1-2017 (pax, ustar), as far as backups need it: any `tar` reads
/// what is written here. Pure.
namespace boyd::files {

inline constexpr std::size_t tar_block = 512;

struct tar_entry {
  enum class kind_t : std::uint8_t { file, directory, symlink } kind = kind_t::file;
  std::string path;          ///< relative, without a trailing '/'
  unsigned mode = 0600;      ///< permission bits
  std::uint64_t size = 0;    ///< of a file; so many bytes and tar_padding follow its header
  std::int64_t modified = 0; ///< seconds since 1970
  std::string target;        ///< of a symbolic link

  bool operator==(const tar_entry&) const = default;
};

/// Why `path` must not be written below a directory: it is absolute, empty, too long, or has a
/// component that is empty, "." or "..", or a byte that is none of a name. Empty: it may be.
std::string path_trouble(std::string_view path);

/// The blocks that begin an entry.
std::string tar_header(const tar_entry& entry);

/// Zeros between a file's last byte and the next header.
std::string tar_padding(std::uint64_t size);

/// The blocks that end an archive.
std::string tar_end();

/// Reads the next entry; `read` gives exactly so many bytes of the archive, or an error. Nothing at
/// the archive's end. Errors: those of `read`; `corrupt` for what is no archive, has a wrong
/// checksum, a path with path_trouble, or anything but files, directories and symbolic links.
result<std::optional<tar_entry>>
next_tar_entry(const std::function<result<std::string>(std::size_t)>& read);

} // namespace boyd::files
