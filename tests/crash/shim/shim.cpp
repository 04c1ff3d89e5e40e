/// Preloaded into the program under test: counts the calls that change the disk below one
/// directory and lets the chosen one meet its fault. Calls reach the kernel directly, so nothing
/// but the C library's own names is taken over. Functions carry the C library's symbols by asm
/// labels: its headers declare them with attributes that a second declaration would contradict.

#include "crash/control_block.hpp"
#include "crash/shim/lost_pages.hpp"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <libaio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using boyd::crash::action;
using boyd::crash::control_block;
using boyd::crash::longest_path;
namespace kind = boyd::crash::kind;

/// linux/ext4.h is not installed everywhere.
constexpr unsigned long ext4_ioc_shutdown = _IOR('X', 125, std::uint32_t);

control_block* g_block = nullptr;

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void begin() {
  const char* path = std::getenv(boyd::crash::control_variable);
  if (path == nullptr)
    return;
  const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0));
  if (fd < 0)
    return;
  void* at = ::mmap(nullptr, sizeof(control_block), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::syscall(SYS_close, fd);
  if (at == MAP_FAILED)
    return;
  g_block = static_cast<control_block*>(at);
  std::int32_t nobody = 0;
  if (g_block->leader.compare_exchange_strong(nobody, ::getpid()))
    ::setpgid(0, 0);
}

bool is_below(const char* path) {
  const auto* root = g_block->below.data();
  const auto length = std::strlen(root);
  return length > 0 && std::strncmp(path, root, length) == 0 &&
         (path[length] == '/' || path[length] == '\0');
}

/// The path of an open file; empty when it has none.
void path_of(int fd, char (&into)[longest_path]) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const auto n = ::syscall(SYS_readlinkat, AT_FDCWD, link, into, sizeof into - 1);
  into[n > 0 ? n : 0] = '\0';
}

[[noreturn]] void die(pid_t whom) {
  ::kill(whom, SIGKILL);
  while (true)
    ::pause();
}

void cut_power() {
  g_block->cutting = 1;
  const auto fd = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, g_block->mount.data(), O_RDONLY | O_DIRECTORY, 0));
  auto flags = g_block->cut_flags.load();
  if (fd < 0 || ::ioctl(fd, ext4_ioc_shutdown, &flags) != 0)
    g_block->struck[0] = '\0';
}

/// The fault that a call on `path` meets, after counting it; `action::none`: go on.
action meet(std::uint32_t what, const char* call, const char* path) {
  const auto n = ++g_block->calls;
  const auto at = g_block->at.load();
  if (at == 0 || n < at || (n > at && g_block->for_ever == 0) || g_block->over != 0)
    return action::none;
  const auto chosen = static_cast<action>(g_block->what.load());
  if (chosen == action::shorten && what != kind::write)
    return action::none;
  if (g_block->fired++ == 0)
    std::snprintf(g_block->struck.data(), longest_path, "%s %.400s", call, path);
  if (chosen == action::cut)
    cut_power();
  if (chosen == action::cut || chosen == action::kill_group)
    die(0);
  if (chosen == action::kill)
    die(::getpid());
  return chosen;
}

bool fails(action a) {
  if (a == action::eio)
    errno = EIO;
  if (a == action::enospc)
    errno = ENOSPC;
  return a == action::eio || a == action::enospc;
}

action judge_path(std::uint32_t what, const char* call, int directory, const char* path) {
  if (g_block == nullptr || path == nullptr || (g_block->kinds & what) == 0)
    return action::none;
  if (path[0] == '/' || directory == AT_FDCWD)
    return is_below(path) ? meet(what, call, path) : action::none;
  char parent[longest_path];
  path_of(directory, parent);
  char whole[2 * longest_path];
  std::snprintf(whole, sizeof whole, "%s/%.500s", parent, path);
  return is_below(whole) ? meet(what, call, whole) : action::none;
}

action judge_file(std::uint32_t what, const char* call, int fd) {
  if (g_block == nullptr || (g_block->kinds & what) == 0)
    return action::none;
  const int kept = errno;
  char path[longest_path];
  path_of(fd, path);
  errno = kept;
  return is_below(path) ? meet(what, call, path) : action::none;
}

int open_at(const char* call, int directory, const char* path, int flags, mode_t mode) {
  if ((flags & (O_CREAT | O_TRUNC)) != 0 && fails(judge_path(kind::open, call, directory, path)))
    return -1;
  const auto fd = static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode));
  if (g_block != nullptr && fd >= 0 && (flags & (O_TRUNC | O_EXCL)) != 0)
    boyd::crash::note_cut(*g_block, fd, 0);
  return fd;
}

/// The mode that a variadic open was given, if any.
#define BOYD_MODE_AFTER(flags)                                                                     \
  mode_t mode = 0;                                                                                 \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                                    \
    std::va_list rest;                                                                             \
    va_start(rest, flags);                                                                         \
    mode = va_arg(rest, mode_t);                                                                   \
    va_end(rest);                                                                                  \
  }

/// A call that another thread's cut overtakes may say yes to what the cut took away: for some
/// microseconds the program lives longer than its disk, as under no real cut. It never hears of it.
int heard_before_a_cut(long rc) {
  while (g_block != nullptr && g_block->cutting != 0)
    ::pause();
  return static_cast<int>(rc);
}

int sync_with(const char* call, long number, int fd) {
  const auto a = judge_file(kind::sync, call, fd);
  if (a == action::eio)
    boyd::crash::lose_unsynced(*g_block, fd);
  if (fails(a))
    return -1;
  if (g_block != nullptr && (g_block->lies != 0 || boyd::crash::has_lost(*g_block, fd)))
    return 0;
  const int rc = heard_before_a_cut(::syscall(number, fd));
  if (rc == 0 && g_block != nullptr)
    boyd::crash::note_synced(fd);
  return rc;
}

/// The result of a write that began at `at`, noted; below 0: where the file stood, which has moved.
long noted(int fd, off_t at, long written) {
  const int kept = errno;
  if (g_block != nullptr && (g_block->kinds & kind::sync) != 0 && written > 0)
    boyd::crash::note_written(*g_block, fd, at >= 0 ? at : ::lseek(fd, 0, SEEK_CUR) - written,
                              written);
  errno = kept;
  return written;
}

/// How many of `count` bytes, or of the vectors of a writev, are to be written. A single one
/// cannot be shortened: then nothing was struck.
template <class Count>
Count allowed(action a, Count count) {
  if (a != action::shorten)
    return count;
  if (count > 1)
    return count / 2;
  --g_block->fired;
  return count;
}

} // namespace

// NOLINTBEGIN(cert-dcl50-cpp): the C library's own declarations are variadic.
extern "C" {

int shim_open(const char* path, int flags, ...) __asm__("open");
int shim_open(const char* path, int flags, ...) {
  BOYD_MODE_AFTER(flags)
  return open_at("open", AT_FDCWD, path, flags, mode);
}

int shim_open64(const char* path, int flags, ...) __asm__("open64");
int shim_open64(const char* path, int flags, ...) {
  BOYD_MODE_AFTER(flags)
  return open_at("open", AT_FDCWD, path, flags, mode);
}

int shim_openat(int directory, const char* path, int flags, ...) __asm__("openat");
int shim_openat(int directory, const char* path, int flags, ...) {
  BOYD_MODE_AFTER(flags)
  return open_at("openat", directory, path, flags, mode);
}

int shim_openat64(int directory, const char* path, int flags, ...) __asm__("openat64");
int shim_openat64(int directory, const char* path, int flags, ...) {
  BOYD_MODE_AFTER(flags)
  return open_at("openat", directory, path, flags, mode);
}

int shim_creat(const char* path, mode_t mode) __asm__("creat");
int shim_creat(const char* path, mode_t mode) {
  return open_at("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int shim_creat64(const char* path, mode_t mode) __asm__("creat64");
int shim_creat64(const char* path, mode_t mode) {
  return open_at("creat", AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

FILE* shim_fopen(const char* path, const char* mode) __asm__("fopen");
FILE* shim_fopen(const char* path, const char* mode) {
  static const auto next = real<FILE* (*)(const char*, const char*)>("fopen");
  if (mode[0] != 'r' && fails(judge_path(kind::open, "fopen", AT_FDCWD, path)))
    return nullptr;
  return next(path, mode);
}

FILE* shim_fopen64(const char* path, const char* mode) __asm__("fopen64");
FILE* shim_fopen64(const char* path, const char* mode) {
  return shim_fopen(path, mode);
}

int shim_mkostemp(char* pattern, int flags) __asm__("mkostemp");
int shim_mkostemp(char* pattern, int flags) {
  static const auto next = real<int (*)(char*, int)>("mkostemp");
  if (fails(judge_path(kind::open, "mkstemp", AT_FDCWD, pattern)))
    return -1;
  const int fd = next(pattern, flags);
  if (g_block != nullptr && fd >= 0)
    boyd::crash::note_cut(*g_block, fd, 0);
  return fd;
}

int shim_mkostemp64(char* pattern, int flags) __asm__("mkostemp64");
int shim_mkostemp64(char* pattern, int flags) {
  return shim_mkostemp(pattern, flags);
}

int shim_mkstemp(char* pattern) __asm__("mkstemp");
int shim_mkstemp(char* pattern) {
  return shim_mkostemp(pattern, 0);
}

int shim_mkstemp64(char* pattern) __asm__("mkstemp64");
int shim_mkstemp64(char* pattern) {
  return shim_mkostemp(pattern, 0);
}

ssize_t shim_read(int fd, void* bytes, std::size_t count) __asm__("read");
ssize_t shim_read(int fd, void* bytes, std::size_t count) {
  return fails(judge_file(kind::read, "read", fd)) ? -1 : ::syscall(SYS_read, fd, bytes, count);
}

ssize_t shim_pread(int fd, void* bytes, std::size_t count, off_t at) __asm__("pread");
ssize_t shim_pread(int fd, void* bytes, std::size_t count, off_t at) {
  return fails(judge_file(kind::read, "pread", fd)) ? -1
                                                    : ::syscall(SYS_pread64, fd, bytes, count, at);
}

ssize_t shim_pread64(int fd, void* bytes, std::size_t count, off_t at) __asm__("pread64");
ssize_t shim_pread64(int fd, void* bytes, std::size_t count, off_t at) {
  return shim_pread(fd, bytes, count, at);
}

ssize_t shim_readv(int fd, const iovec* parts, int count) __asm__("readv");
ssize_t shim_readv(int fd, const iovec* parts, int count) {
  return fails(judge_file(kind::read, "readv", fd)) ? -1 : ::syscall(SYS_readv, fd, parts, count);
}

ssize_t shim_write(int fd, const void* bytes, std::size_t count) __asm__("write");
ssize_t shim_write(int fd, const void* bytes, std::size_t count) {
  const auto a = judge_file(kind::write, "write", fd);
  return fails(a) ? -1 : noted(fd, -1, ::syscall(SYS_write, fd, bytes, allowed(a, count)));
}

ssize_t shim_pwrite(int fd, const void* bytes, std::size_t count, off_t at) __asm__("pwrite");
ssize_t shim_pwrite(int fd, const void* bytes, std::size_t count, off_t at) {
  const auto a = judge_file(kind::write, "pwrite", fd);
  return fails(a) ? -1 : noted(fd, at, ::syscall(SYS_pwrite64, fd, bytes, allowed(a, count), at));
}

ssize_t shim_pwrite64(int fd, const void* bytes, std::size_t count, off_t at) __asm__("pwrite64");
ssize_t shim_pwrite64(int fd, const void* bytes, std::size_t count, off_t at) {
  return shim_pwrite(fd, bytes, count, at);
}

ssize_t shim_writev(int fd, const iovec* parts, int count) __asm__("writev");
ssize_t shim_writev(int fd, const iovec* parts, int count) {
  const auto a = judge_file(kind::write, "writev", fd);
  return fails(a) ? -1 : noted(fd, -1, ::syscall(SYS_writev, fd, parts, allowed(a, count)));
}

ssize_t shim_pwritev(int fd, const iovec* parts, int count, off_t at) __asm__("pwritev");
ssize_t shim_pwritev(int fd, const iovec* parts, int count, off_t at) {
  const auto a = judge_file(kind::write, "pwritev", fd);
  return fails(a) ? -1 : noted(fd, at, ::syscall(SYS_pwritev, fd, parts, allowed(a, count), at, 0));
}

ssize_t shim_pwritev64(int fd, const iovec* parts, int count, off_t at) __asm__("pwritev64");
ssize_t shim_pwritev64(int fd, const iovec* parts, int count, off_t at) {
  return shim_pwritev(fd, parts, count, at);
}

ssize_t shim_copy(int in, off_t* from, int out, off_t* to, std::size_t count,
                  unsigned flags) __asm__("copy_file_range");
ssize_t shim_copy(int in, off_t* from, int out, off_t* to, std::size_t count, unsigned flags) {
  const auto a = judge_file(kind::write, "copy_file_range", out);
  return fails(a) ? -1
                  : ::syscall(SYS_copy_file_range, in, from, out, to, allowed(a, count), flags);
}

int shim_fsync(int fd) __asm__("fsync");
int shim_fsync(int fd) {
  return sync_with("fsync", SYS_fsync, fd);
}

/// The kernel's queue of requests, whose only use is fsync: done when asked for, each judged as a
/// call of its own. The answers wait in here.
struct request_queue {
  static constexpr int length = 64;
  io_event ends[length];
  int count;
};

int shim_io_setup(int length, io_context_t* queue) __asm__("io_setup");
int shim_io_setup(int length, io_context_t* queue) {
  if (length > request_queue::length)
    return -EAGAIN;
  *queue = static_cast<io_context_t>(std::calloc(1, sizeof(request_queue)));
  return *queue != nullptr ? 0 : -ENOMEM;
}

int shim_io_destroy(io_context_t queue) __asm__("io_destroy");
int shim_io_destroy(io_context_t queue) {
  std::free(queue);
  return 0;
}

int shim_io_submit(io_context_t queue, long count, iocb** requests) __asm__("io_submit");
int shim_io_submit(io_context_t queue, long count, iocb** requests) {
  auto* waiting = reinterpret_cast<request_queue*>(queue);
  long taken = 0;
  for (; taken < count && waiting->count < request_queue::length; ++taken) {
    const auto* request = requests[taken];
    const int rc = request->aio_lio_opcode == IO_CMD_FSYNC
                       ? sync_with("fsync", SYS_fsync, request->aio_fildes)
                       : (errno = EINVAL, -1);
    auto& end = waiting->ends[waiting->count++];
    end.data = request->data;
    end.res = rc == 0 ? 0UL : static_cast<unsigned long>(-static_cast<long>(errno));
  }
  return static_cast<int>(taken);
}

int shim_io_getevents(io_context_t queue, long least, long most, io_event* ends,
                      timespec* limit) __asm__("io_getevents");
int shim_io_getevents(io_context_t queue, long /*least*/, long most, io_event* ends,
                      timespec* /*limit*/) {
  auto* waiting = reinterpret_cast<request_queue*>(queue);
  const int count = most < waiting->count ? static_cast<int>(most) : waiting->count;
  for (int i = 0; i < count; ++i)
    ends[i] = waiting->ends[--waiting->count];
  return count;
}

int shim_fdatasync(int fd) __asm__("fdatasync");
int shim_fdatasync(int fd) {
  return sync_with("fdatasync", SYS_fdatasync, fd);
}

int shim_sync_file_range(int fd, off_t from, off_t count,
                         unsigned flags) __asm__("sync_file_range");
int shim_sync_file_range(int fd, off_t from, off_t count, unsigned flags) {
  return fails(judge_file(kind::hint, "sync_file_range", fd))
             ? -1
             : static_cast<int>(::syscall(SYS_sync_file_range, fd, from, count, flags));
}

/// Which file is behind the memory is not looked up: the program maps only its own.
int shim_msync(void* at, std::size_t count, int flags) __asm__("msync");
int shim_msync(void* at, std::size_t count, int flags) {
  if (g_block != nullptr && (g_block->kinds & kind::sync) != 0 &&
      fails(meet(kind::sync, "msync", "")))
    return -1;
  return heard_before_a_cut(::syscall(SYS_msync, at, count, flags));
}

int shim_renameat2(int from_dir, const char* from, int to_dir, const char* to,
                   unsigned flags) __asm__("renameat2");
int shim_renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) {
  if (fails(judge_path(kind::name, "rename", to_dir, to)))
    return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_dir, from, to_dir, to, flags));
}

int shim_renameat(int from_dir, const char* from, int to_dir, const char* to) __asm__("renameat");
int shim_renameat(int from_dir, const char* from, int to_dir, const char* to) {
  return shim_renameat2(from_dir, from, to_dir, to, 0);
}

int shim_rename(const char* from, const char* to) __asm__("rename");
int shim_rename(const char* from, const char* to) {
  return shim_renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int shim_unlinkat(int directory, const char* path, int flags) __asm__("unlinkat");
int shim_unlinkat(int directory, const char* path, int flags) {
  if (fails(judge_path(kind::name, "unlink", directory, path)))
    return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
}

int shim_unlink(const char* path) __asm__("unlink");
int shim_unlink(const char* path) {
  return shim_unlinkat(AT_FDCWD, path, 0);
}

int shim_rmdir(const char* path) __asm__("rmdir");
int shim_rmdir(const char* path) {
  return shim_unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int shim_remove(const char* path) __asm__("remove");
int shim_remove(const char* path) {
  const int done = shim_unlinkat(AT_FDCWD, path, 0);
  return done != 0 && errno == EISDIR ? shim_unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : done;
}

int shim_mkdirat(int directory, const char* path, mode_t mode) __asm__("mkdirat");
int shim_mkdirat(int directory, const char* path, mode_t mode) {
  if (fails(judge_path(kind::name, "mkdir", directory, path)))
    return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, directory, path, mode));
}

int shim_mkdir(const char* path, mode_t mode) __asm__("mkdir");
int shim_mkdir(const char* path, mode_t mode) {
  return shim_mkdirat(AT_FDCWD, path, mode);
}

int shim_linkat(int from_dir, const char* from, int to_dir, const char* to,
                int flags) __asm__("linkat");
int shim_linkat(int from_dir, const char* from, int to_dir, const char* to, int flags) {
  if (fails(judge_path(kind::name, "link", to_dir, to)))
    return -1;
  return static_cast<int>(::syscall(SYS_linkat, from_dir, from, to_dir, to, flags));
}

int shim_link(const char* from, const char* to) __asm__("link");
int shim_link(const char* from, const char* to) {
  return shim_linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int shim_symlinkat(const char* target, int directory, const char* path) __asm__("symlinkat");
int shim_symlinkat(const char* target, int directory, const char* path) {
  if (fails(judge_path(kind::name, "symlink", directory, path)))
    return -1;
  return static_cast<int>(::syscall(SYS_symlinkat, target, directory, path));
}

int shim_symlink(const char* target, const char* path) __asm__("symlink");
int shim_symlink(const char* target, const char* path) {
  return shim_symlinkat(target, AT_FDCWD, path);
}

int shim_ftruncate(int fd, off_t size) __asm__("ftruncate");
int shim_ftruncate(int fd, off_t size) {
  if (fails(judge_file(kind::size, "ftruncate", fd)))
    return -1;
  const int rc = static_cast<int>(::syscall(SYS_ftruncate, fd, size));
  if (rc == 0 && g_block != nullptr)
    boyd::crash::note_cut(*g_block, fd, size);
  return rc;
}

int shim_ftruncate64(int fd, off_t size) __asm__("ftruncate64");
int shim_ftruncate64(int fd, off_t size) {
  return shim_ftruncate(fd, size);
}

int shim_truncate(const char* path, off_t size) __asm__("truncate");
int shim_truncate(const char* path, off_t size) {
  return fails(judge_path(kind::size, "truncate", AT_FDCWD, path))
             ? -1
             : static_cast<int>(::syscall(SYS_truncate, path, size));
}

int shim_truncate64(const char* path, off_t size) __asm__("truncate64");
int shim_truncate64(const char* path, off_t size) {
  return shim_truncate(path, size);
}

int shim_fallocate(int fd, int mode, off_t from, off_t count) __asm__("fallocate");
int shim_fallocate(int fd, int mode, off_t from, off_t count) {
  return fails(judge_file(kind::size, "fallocate", fd))
             ? -1
             : static_cast<int>(::syscall(SYS_fallocate, fd, mode, from, count));
}

int shim_fallocate64(int fd, int mode, off_t from, off_t count) __asm__("fallocate64");
int shim_fallocate64(int fd, int mode, off_t from, off_t count) {
  return shim_fallocate(fd, mode, from, count);
}

/// These return the error instead of setting errno.
int shim_posix_fallocate(int fd, off_t from, off_t count) __asm__("posix_fallocate");
int shim_posix_fallocate(int fd, off_t from, off_t count) {
  return shim_fallocate(fd, 0, from, count) == 0 ? 0 : errno;
}

int shim_posix_fallocate64(int fd, off_t from, off_t count) __asm__("posix_fallocate64");
int shim_posix_fallocate64(int fd, off_t from, off_t count) {
  return shim_posix_fallocate(fd, from, count);
}

} // extern "C"
// NOLINTEND(cert-dcl50-cpp)
