#include "git_internal.hpp"
#include "object_batch_internal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::git {

namespace {

/// Larger ones are not held in memory (a stored block has less than 64 KiB), nor more than this
/// together, nor more objects than this.
constexpr std::size_t most_of_one = std::size_t{60} << 10;
constexpr std::size_t most_bytes = std::size_t{16} << 20;
constexpr std::size_t most_objects = 512;

/// Before libgit2's own backends for loose objects (1) and packs (2).
constexpr int asked_first = 100;

/// As git and libgit2 make them.
constexpr mode_t object_mode = 0444;
constexpr mode_t directory_mode = 0777;
constexpr std::size_t fan_out_characters = 2;

/// A person's `git gc` removes empty directories of objects, perhaps between the making of one and
/// its use.
constexpr int naming_attempts = 4;

void put_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>((value >> shift) & 0xffu));
}

/// RFC 1950's checksum.
std::uint32_t adler32(std::string_view bytes) {
  constexpr std::uint32_t modulus = 65521;
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<unsigned char>(c)) % modulus;
    b = (b + a) % modulus;
  }
  return (b << 16) | a;
}

/// The bytes of a loose object's file: "<type> <size>\0<content>" as a zlib stream (RFC 1950) of
/// one block that is stored as it is (RFC 1951, 3.2.4), as git writes with core.compression=0. A
/// small object takes a block of the disk or a few in any case, until it is packed, and compressed
/// then.
std::string as_loose(git_object_t type, const std::string& bytes) {
  std::string plain = std::string(git_object_type2string(type)) + " " +
                      std::to_string(bytes.size()) + std::string(1, '\0') + bytes;
  constexpr std::size_t frame = 16;
  const auto size = static_cast<std::uint32_t>(plain.size());
  std::string out;
  out.reserve(plain.size() + frame);
  // Deflate with a window of 32 KiB; then the last block, stored: its size, low byte first, and
  // that inverted.
  for (const std::uint32_t byte :
       {0x78u, 0x01u, 0x01u, size & 0xffu, size >> 8u, ~size & 0xffu, (~size >> 8u) & 0xffu})
    out.push_back(static_cast<char>(byte));
  out += plain;
  put_big_endian(out, adler32(plain));
  return out;
}

int write_all(int fd, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR)
      return errno;
    if (n == 0)
      return ENOSPC;
    done += n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  return 0;
}

} // namespace

/// An object that libgit2 hands over in pieces.
struct object_batch::stream {
  git_odb_stream base{};
  git_object_t type = GIT_OBJECT_INVALID;
  std::string bytes;

  static stream& of(git_odb_stream* s) { return *reinterpret_cast<stream*>(s); }
  static int on_write(git_odb_stream* s, const char* data, std::size_t size) {
    of(s).bytes.append(data, size);
    return 0;
  }
  static int on_end(git_odb_stream* s, const git_oid* id) {
    object_batch::of(s->backend).take(*id, of(s).type, std::move(of(s).bytes));
    return 0;
  }
  static void on_free(git_odb_stream* s) { delete &of(s); }
};

int object_batch::attach(git_repository* repo, object_batch** out) {
  odb_ptr odb;
  if (const int rc = fill(odb, [&](git_odb** o) { return git_repository_odb(o, repo); }); rc != 0)
    return rc;
  auto made = std::make_unique<backend>();
  auto& base = made->base;
  if (const int rc = git_odb_init_backend(&base, GIT_ODB_BACKEND_VERSION); rc != 0)
    return rc;
  base.read = on_read;
  base.read_header = on_read_header;
  base.exists = on_exists;
  base.write = on_write;
  base.writestream = on_open_stream;
  base.foreach = on_foreach;
  base.free = on_free;
  made->batch = new object_batch;
  *out = made->batch;
  const int rc = git_odb_add_backend(odb.get(), &base, asked_first);
  auto* const given = made.release();
  if (rc != 0)
    on_free(&given->base);
  return rc;
}

const object_batch::object* object_batch::find(const git_oid& id) const {
  const auto it = std::ranges::find_if(
      objects_, [&](const object& o) { return git_oid_equal(&o.id, &id) != 0; });
  return it == objects_.end() ? nullptr : &*it;
}

bool object_batch::has_room_for(std::size_t bytes) const {
  return bytes <= most_of_one && bytes_ + bytes <= most_bytes && objects_.size() < most_objects;
}

void object_batch::take(const git_oid& id, git_object_t type, std::string bytes) {
  bytes_ += bytes.size();
  objects_.push_back({id, type, std::move(bytes), {}, {}});
}

void object_batch::forget(std::size_t kept) {
  while (objects_.size() > kept) {
    auto& last = objects_.back();
    if (!last.temporary.empty())
      ::unlink(last.temporary.c_str());
    bytes_ -= last.bytes.size();
    objects_.pop_back();
  }
}

// -- what libgit2 asks ----------------------------------------------------------------------------

int object_batch::on_read(void** data, std::size_t* size, git_object_t* type, git_odb_backend* b,
                          const git_oid* id) {
  const auto* o = of(b).find(*id);
  if (o == nullptr)
    return GIT_ENOTFOUND;
  *data = git_odb_backend_data_alloc(b, o->bytes.size() + 1);
  if (*data == nullptr)
    return GIT_ERROR;
  std::memcpy(*data, o->bytes.c_str(), o->bytes.size() + 1);
  *size = o->bytes.size();
  *type = o->type;
  return 0;
}

int object_batch::on_read_header(std::size_t* size, git_object_t* type, git_odb_backend* b,
                                 const git_oid* id) {
  const auto* o = of(b).find(*id);
  if (o == nullptr)
    return GIT_ENOTFOUND;
  *size = o->bytes.size();
  *type = o->type;
  return 0;
}

int object_batch::on_exists(git_odb_backend* b, const git_oid* id) {
  return of(b).find(*id) != nullptr ? 1 : 0;
}

int object_batch::on_write(git_odb_backend* b, const git_oid* id, const void* data,
                           std::size_t size, git_object_t type) {
  if (!of(b).has_room_for(size))
    return GIT_PASSTHROUGH;
  of(b).take(*id, type, std::string(static_cast<const char*>(data), size));
  return 0;
}

int object_batch::on_open_stream(git_odb_stream** out, git_odb_backend* b, git_object_size_t size,
                                 git_object_t type) {
  if (!of(b).has_room_for(size))
    return GIT_PASSTHROUGH;
  auto* made = new stream;
  made->base.backend = b;
  made->base.mode = GIT_STREAM_WRONLY;
  made->base.write = stream::on_write;
  made->base.finalize_write = stream::on_end;
  made->base.free = stream::on_free;
  made->type = type;
  *out = &made->base;
  return 0;
}

int object_batch::on_foreach(git_odb_backend* b, git_odb_foreach_cb each, void* payload) {
  for (const auto& o : of(b).objects_)
    if (const int rc = each(&o.id, payload); rc != 0)
      return rc;
  return 0;
}

void object_batch::on_free(git_odb_backend* b) {
  auto* const whole = reinterpret_cast<backend*>(b);
  delete whole->batch;
  delete whole;
}

// -- the disk -------------------------------------------------------------------------------------

result<void> object_batch::write(const std::string& git_dir, sync_group& group) {
  for (auto& o : objects_) {
    if (o.temporary.empty())
      if (auto written = write_one(git_dir + "/objects", o); !written)
        return written;
    group.add(o.file.get(), o.temporary);
  }
  return {};
}

result<void> object_batch::write_one(const std::string& objects, object& o) {
  const auto bytes = as_loose(o.type, o.bytes);
  // Named as git names them, so that one of a process that was killed is found as a leftover.
  std::string path = objects + "/tmp_obj_XXXXXX";
  o.file.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!o.file)
    return fail(system_failure(errno, "cannot create an object file", objects));
  o.temporary = std::move(path);
  if (const int code = write_all(o.file.get(), bytes); code != 0)
    return fail(system_failure(code, "cannot write an object", o.temporary));
  if (::fchmod(o.file.get(), object_mode) != 0)
    return fail(system_failure(errno, "cannot write an object", o.temporary));
  return {};
}

result<void> object_batch::name_one(const std::string& objects, object& o,
                                    std::vector<std::string>& unsynced) {
  const auto id = hex(o.id);
  const auto directory = objects + "/" + id.substr(0, fan_out_characters);
  const auto path = directory + "/" + id.substr(fan_out_characters);
  int code = 0;
  for (int i = 0; i < naming_attempts; ++i) {
    code = ::rename(o.temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
    if (code != ENOENT)
      break;
    // A new directory's own sync, below, makes its name durable, too.
    [[maybe_unused]] const int made = ::mkdir(directory.c_str(), directory_mode);
  }
  if (code != 0)
    return fail(system_failure(code, "cannot rename an object", path));
  o.temporary.clear();
  unsynced.push_back(directory);
  return {};
}

result<void> object_batch::name(const std::string& git_dir, const std::string& beside,
                                std::vector<std::string>& unsynced) {
  for (auto& o : objects_)
    if (auto named = name_one(git_dir + "/objects", o, unsynced); !named)
      return named;
  std::ranges::sort(unsynced);
  unsynced.erase(std::unique(unsynced.begin(), unsynced.end()), unsynced.end());
  std::string failed;
  auto directories = unsynced;
  if (!beside.empty())
    directories.push_back(beside);
  if (const int code = sync_directories(directories, failed); code != 0)
    return fail(system_failure(code, "cannot sync new objects", failed));
  unsynced.clear();
  forget();
  return {};
}

} // namespace boyd::adapters::git
