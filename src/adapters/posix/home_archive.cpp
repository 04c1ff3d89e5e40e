#include "home_archive.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/sha256_stream.hpp"
#include "boyd/files/tar.hpp"
#include "errors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace boyd::adapters {

namespace {

using files::tar_entry;

constexpr std::size_t chunk_bytes = 1u << 20;
/// Files up to this size are read before their header is written: they may change meanwhile.
constexpr std::uint64_t small_bytes = std::uint64_t{16} << 20;
/// Looks at a directory whose files are to be of one moment, or do not end.
constexpr int most_looks = 20;
constexpr unsigned permission_bits = 0777;
constexpr ::mode_t own_file = 0600;
constexpr ::mode_t own_directory = 0700;

struct ::stat stat_of(int fd) {
  struct ::stat s {};
  static_cast<void>(::fstat(fd, &s));
  return s;
}

unique_fd open_to_read(const std::string& path) {
  return unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

tar_entry entry_for(const std::string& name, const struct ::stat& s, tar_entry::kind_t kind) {
  tar_entry e;
  e.kind = kind;
  e.path = name;
  e.mode = static_cast<unsigned>(s.st_mode) & permission_bits;
  e.modified = static_cast<std::int64_t>(s.st_mtim.tv_sec);
  return e;
}

result<std::vector<std::string>> names_in(const std::string& path) {
  const std::unique_ptr<::DIR, int (*)(::DIR*)> dir(::opendir(path.c_str()), &::closedir);
  if (!dir)
    return fail(system_error(errno, "opendir", path));
  std::vector<std::string> names;
  for (errno = 0; const auto* e = ::readdir(dir.get()); errno = 0)
    if (const std::string_view name = e->d_name; name != "." && name != "..")
      names.emplace_back(name);
  if (errno != 0)
    return fail(system_error(errno, "readdir", path));
  std::ranges::sort(names);
  return names;
}

/// In a git directory references come before the objects that they need, and a reference that is
/// packed meanwhile is then found in the file of packed ones.
int weight_of(const std::string& name) {
  if (name == "refs" || name == "HEAD")
    return 0;
  if (name == "packed-refs")
    return 1;
  return name == "objects" ? 3 : name == "pack" ? 4 : 2;
}

bool is_objects(const std::string& relative) {
  return relative.ends_with(".git/objects");
}

bool is_gone(const error& e) {
  return e.code == errc::not_found;
}

/// At most `most` bytes from where the descriptor stands.
result<std::string> read_up_to(int fd, std::size_t most, const std::string& path) {
  std::string bytes(most, '\0');
  std::size_t have = 0;
  while (have < most) {
    const auto n = ::read(fd, bytes.data() + have, most - have);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(system_error(errno, "read", path));
    if (n == 0)
      break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(system_error(errno, "write", path));
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

result<void> sync_folder(const std::string& path) {
  const unique_fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    return fail(system_error(errno, "fsync", path));
  return {};
}

using listing = std::vector<std::pair<std::string, ::ino_t>>;

/// What tells that the same files stand under the same names, also in folders below.
result<void> list_below(listing& all, const std::string& root, const std::string& relative,
                        const archive_writer::skip_function& skip) {
  const auto source = relative.empty() ? root : root + "/" + relative;
  const auto names = names_in(source);
  if (!names)
    return fail(names.error());
  for (const auto& name : *names) {
    const auto below = relative.empty() ? name : relative + "/" + name;
    struct ::stat s {};
    if (skip(below) || ::lstat((root + "/" + below).c_str(), &s) != 0)
      continue;
    if (S_ISREG(s.st_mode))
      all.emplace_back(below, s.st_ino);
    else if (S_ISDIR(s.st_mode))
      if (auto listed = list_below(all, root, below, skip); !listed && !is_gone(listed.error()))
        return listed;
  }
  return {};
}

result<listing> listing_of(const std::string& root, const archive_writer::skip_function& skip) {
  listing all;
  auto listed = list_below(all, root, {}, skip);
  return listed ? result<listing>(std::move(all)) : fail(std::move(listed.error()));
}

} // namespace

result<archive_writer> archive_writer::create(const std::string& path) {
  struct ::stat s {};
  if (::lstat(path.c_str(), &s) == 0)
    return fail(errc::already_exists, "the file already exists", path,
                "choose another name, or remove the file");
  const auto part = path + ".part";
  ::unlink(part.c_str()); // of a backup that was interrupted
  unique_fd out(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, own_file));
  if (!out)
    return fail(system_error(errno, "open", part));
  return archive_writer(path, std::move(out));
}

archive_writer::archive_writer(archive_writer&& other) noexcept
    : path_(std::exchange(other.path_, {})), out_(std::move(other.out_)),
      added_(std::move(other.added_)), files_(std::move(other.files_)),
      passed_over_(std::move(other.passed_over_)) {}

archive_writer::~archive_writer() {
  if (out_)
    ::unlink(part_path().c_str());
}

result<void> archive_writer::write(std::string_view bytes) {
  return write_all(out_.get(), bytes, part_path());
}

result<void> archive_writer::add_text(const std::string& name, std::string_view text) {
  tar_entry e;
  e.path = name;
  e.size = text.size();
  auto done = write(files::tar_header(e));
  if (done)
    done = write(text);
  if (done)
    done = write(files::tar_padding(text.size()));
  if (done) {
    added_.insert(name);
    files_.push_back({name, text.size(), sha256_hex(text)});
  }
  return done;
}

result<void> archive_writer::add_file(const std::string& name, const std::string& source) {
  const auto fd = open_to_read(source);
  if (!fd)
    return fail(system_error(errno, "open", source));
  return add_open(name, fd.get(), source);
}

result<void> archive_writer::add_open(const std::string& name, int fd, const std::string& source) {
  const auto s = stat_of(fd);
  if (static_cast<std::uint64_t>(s.st_size) > small_bytes)
    return add_large(name, fd, source);
  const auto text = read_up_to(fd, small_bytes + chunk_bytes, source);
  if (!text)
    return fail(text.error());
  auto e = entry_for(name, s, tar_entry::kind_t::file);
  e.size = text->size();
  auto done = write(files::tar_header(e) + *text + files::tar_padding(e.size));
  if (done) {
    added_.insert(name);
    files_.push_back({name, e.size, sha256_hex(*text)});
  }
  return done;
}

/// As long as it is now: what is appended meanwhile belongs to a later moment.
result<void> archive_writer::add_large(const std::string& name, int fd, const std::string& source) {
  const auto s = stat_of(fd);
  auto e = entry_for(name, s, tar_entry::kind_t::file);
  e.size = static_cast<std::uint64_t>(s.st_size);
  auto done = write(files::tar_header(e));
  sha256_stream sum;
  for (auto left = e.size; done && left > 0;) {
    const auto bytes = read_up_to(
        fd, static_cast<std::size_t>(std::min<std::uint64_t>(left, chunk_bytes)), source);
    if (!bytes)
      return fail(bytes.error());
    if (bytes->empty())
      return fail(errc::conflict, "the file became shorter during the copy", source, "try again");
    sum.append(*bytes);
    left -= bytes->size();
    done = write(*bytes);
  }
  if (done)
    done = write(files::tar_padding(e.size));
  if (done) {
    added_.insert(name);
    files_.push_back({name, e.size, sum.hex()});
  }
  return done;
}

result<void> archive_writer::add_link(const std::string& name, const std::string& source) {
  std::array<char, 4096> target{};
  const auto n = ::readlink(source.c_str(), target.data(), target.size());
  if (n < 0)
    return fail(system_error(errno, "readlink", source));
  tar_entry e;
  e.kind = tar_entry::kind_t::symlink;
  e.path = name;
  e.mode = permission_bits;
  e.target.assign(target.data(), static_cast<std::size_t>(n));
  added_.insert(name);
  return write(files::tar_header(e));
}

result<void> archive_writer::add_directory_itself(const std::string& name,
                                                  const std::string& source) {
  if (!added_.insert(name).second)
    return {};
  struct ::stat s {};
  if (::lstat(source.c_str(), &s) != 0)
    return fail(system_error(errno, "stat", source));
  return write(files::tar_header(entry_for(name, s, tar_entry::kind_t::directory)));
}

result<void> archive_writer::add_tree(const std::string& name, const std::string& source,
                                      const skip_function& skip) {
  if (auto begun = add_directory_itself(name, source); !begun)
    return begun;
  return add_below(name, source, {}, skip);
}

result<void> archive_writer::add_below(const std::string& name, const std::string& root,
                                       const std::string& relative, const skip_function& skip) {
  const auto source = relative.empty() ? root : root + "/" + relative;
  for (int look = 0; look < most_looks; ++look) {
    auto names = names_in(source);
    if (!names)
      return is_gone(names.error()) ? result<void>{} : fail(names.error());
    std::ranges::stable_sort(*names, {}, weight_of);
    const auto before = added_.size();
    for (const auto& child : *names) {
      const auto below = relative.empty() ? child : relative + "/" + child;
      if (skip(below))
        continue;
      if (auto added = add_child(name, root, below, skip); !added)
        return added;
    }
    // Objects that were packed meanwhile are in a pack that was not there before.
    if (!is_objects(relative) || added_.size() == before)
      return {};
  }
  return fail(errc::conflict, "the repository kept changing during the copy", source,
              "try again when the node is less busy");
}

result<void> archive_writer::add_child(const std::string& name, const std::string& root,
                                       const std::string& relative, const skip_function& skip) {
  const auto source = root + "/" + relative;
  const auto inside = name + "/" + relative;
  struct ::stat s {};
  if (::lstat(source.c_str(), &s) != 0)
    return errno == ENOENT ? result<void>{} : fail(system_error(errno, "stat", source));
  if (S_ISDIR(s.st_mode)) {
    auto begun = add_directory_itself(inside, source);
    if (!begun)
      return is_gone(begun.error()) ? result<void>{} : begun;
    return add_below(name, root, relative, skip);
  }
  if (added_.contains(inside))
    return {};
  if (S_ISLNK(s.st_mode)) {
    auto added = add_link(inside, source);
    return !added && is_gone(added.error()) ? result<void>{} : added;
  }
  if (!S_ISREG(s.st_mode)) {
    passed_over_.push_back(source);
    return {};
  }
  auto added = add_file(inside, source);
  return !added && is_gone(added.error()) ? result<void>{} : added;
}

result<void> archive_writer::add_together(const std::string& name, const std::string& source,
                                          const skip_function& skip) {
  if (auto begun = add_directory_itself(name, source); !begun)
    return begun;
  for (int look = 0; look < most_looks; ++look) {
    const auto before = listing_of(source, skip);
    if (!before)
      return fail(before.error());
    // Held open they stay the same files, whatever they are called later.
    std::vector<std::pair<std::string, unique_fd>> open;
    bool all_there = true;
    for (const auto& [file, inode] : *before) {
      open.emplace_back(file, open_to_read(source + "/" + file));
      all_there =
          all_there && open.back().second && stat_of(open.back().second.get()).st_ino == inode;
    }
    const auto after = listing_of(source, skip);
    if (!after)
      return fail(after.error());
    if (!all_there || *after != *before)
      continue;
    for (const auto& [file, fd] : open)
      if (auto added = add_open(name + "/" + file, fd.get(), source + "/" + file); !added)
        return added;
    return {};
  }
  return fail(errc::conflict, "the files kept changing during the copy", source, "try again");
}

result<void> archive_writer::finish() {
  auto done = write(files::tar_end());
  if (!done)
    return done;
  if (::fsync(out_.get()) != 0)
    return fail(system_error(errno, "fsync", part_path()));
  // Not over a file that came meanwhile, where the file system can tell.
  const auto part = part_path();
  if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0 &&
      (errno != EINVAL || ::rename(part.c_str(), path_.c_str()) != 0))
    return fail(system_error(errno, "rename", path_));
  out_.reset();
  return sync_folder(folder_of(path_));
}

namespace {

/// Reads an archive once, from its beginning.
class archive_reader {
 public:
  archive_reader(unique_fd fd, std::string path, std::string into)
      : fd_(std::move(fd)), path_(std::move(path)), into_(std::move(into)) {}

  result<extracted_archive> run() {
    for (;;) {
      auto entry = files::next_tar_entry([this](std::size_t n) { return exactly(n); });
      if (!entry) {
        entry.error().where = path_;
        return fail(std::move(entry.error()));
      }
      if (!*entry)
        break;
      if (auto taken = take(**entry); !taken)
        return fail(std::move(taken.error()));
    }
    if (auto done = end(); !done)
      return fail(std::move(done.error()));
    return std::move(out_);
  }

 private:
  static constexpr std::size_t longest_text = std::size_t{1} << 30;

  result<std::string> exactly(std::size_t n) {
    auto bytes = read_up_to(fd_.get(), n, path_);
    if (bytes && bytes->size() < n)
      return fail(errc::corrupt, "the archive ends too early", path_,
                  "the archive is incomplete: use another backup");
    return bytes;
  }

  result<void> take(const tar_entry& e) {
    if (!seen_.insert(e.path).second)
      return fail(errc::corrupt, "the archive contains a path twice: " + e.path, path_);
    const auto place = into_ + "/" + e.path;
    if (auto made = make_folders(e.path); !made)
      return made;
    if (e.kind == tar_entry::kind_t::symlink) {
      links_.emplace_back(place, e.target);
      return {};
    }
    if (e.kind == tar_entry::kind_t::file)
      return take_file(e, place);
    if (::mkdir(place.c_str(), own_directory) != 0 && errno != EEXIST)
      return fail(system_error(errno, "mkdir", place));
    modes_.emplace_back(place, e.mode);
    return {};
  }

  /// Those above it that the archive did not name before.
  result<void> make_folders(const std::string& path) {
    for (auto at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      const auto folder = into_ + "/" + path.substr(0, at);
      if (::mkdir(folder.c_str(), own_directory) != 0 && errno != EEXIST)
        return fail(system_error(errno, "mkdir", folder));
    }
    return {};
  }

  result<void> take_file(const tar_entry& e, const std::string& place) {
    const unique_fd out(
        ::open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, own_file));
    if (!out)
      return fail(system_error(errno, "open", place));
    sha256_stream sum;
    out_.last_text.clear();
    for (auto left = e.size; left > 0;) {
      const auto bytes =
          exactly(static_cast<std::size_t>(std::min<std::uint64_t>(left, chunk_bytes)));
      if (!bytes)
        return fail(bytes.error());
      sum.append(*bytes);
      if (e.size <= longest_text && !e.path.starts_with("home/"))
        out_.last_text += *bytes;
      if (auto written = write_all(out.get(), *bytes, place); !written)
        return written;
      left -= bytes->size();
    }
    if (const auto padding = exactly(files::tar_padding(e.size).size()); !padding)
      return fail(padding.error());
    // What agents made for others stays so; the node's own files are nobody else's anyway.
    if (::fchmod(out.get(), e.mode) != 0)
      return fail(system_error(errno, "chmod", place));
    out_.files.push_back({e.path, e.size, sum.hex()});
    return {};
  }

  result<void> end() {
    for (const auto& [place, target] : links_)
      if (::symlink(target.c_str(), place.c_str()) != 0)
        return fail(system_error(errno, "symlink", place));
    // Deepest first: one that may not be written to would keep the others from being changed.
    for (auto it = modes_.rbegin(); it != modes_.rend(); ++it)
      if (::chmod(it->first.c_str(), it->second) != 0)
        return fail(system_error(errno, "chmod", it->first));
    const unique_fd folder(::open(into_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::syncfs(folder.get()) != 0)
      return fail(system_error(errno, "syncfs", into_));
    return {};
  }

  unique_fd fd_;
  std::string path_;
  std::string into_;
  std::set<std::string> seen_;
  std::vector<std::pair<std::string, std::string>> links_;
  std::vector<std::pair<std::string, unsigned>> modes_;
  extracted_archive out_;
};

} // namespace

result<extracted_archive> extract_archive(const std::string& path, const std::string& into) {
  unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    return fail(system_error(errno, "open", path));
  if (!S_ISREG(stat_of(fd.get()).st_mode))
    return fail(errc::invalid_argument, "not a file", path, "use a file created by boyd backup");
  return archive_reader(std::move(fd), path, into).run();
}

} // namespace boyd::adapters
