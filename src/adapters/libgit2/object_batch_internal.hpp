#pragma once

#include "boyd/core/result.hpp"
#include "durable_internal.hpp"

#include <git2.h>
#include <git2/sys/odb_backend.h>

#include <cstddef>
#include <string>
#include <vector>

namespace boyd::adapters::git {

/// The new objects of one commit or staging. libgit2 puts them here instead of on the disk, one by
/// one with two syncs each; they are written, synced and named all together:
///
///     batch.write(group);      // files without a name that git would read
///     group.sync();            // with whatever else must be durable now
///     batch.name(…);           // their names, durable
///
/// An object's name comes after its bytes are on the disk: one that a power cut left torn under its
/// name would be taken for good by the next commit with the same content. Objects that are too
/// large to be held go libgit2's own way, which syncs each.
///
/// Belongs to the object database of one repository; not thread-safe, as a session is not.
class object_batch {
 public:
  /// Puts a new one before the other backends of `repo`, whose object database owns it: libgit2's
  /// code.
  static int attach(git_repository* repo, object_batch** out);

  object_batch(const object_batch&) = delete;
  object_batch& operator=(const object_batch&) = delete;

  /// How many wait; forget() with it takes back what came since.
  std::size_t size() const noexcept { return objects_.size(); }

  /// Forgets the objects behind the first `kept`, and removes their files.
  void forget(std::size_t kept = 0);

  /// Writes every object into a file of its own below `git_dir`/objects and adds it to `group`.
  result<void> write(const std::string& git_dir, sync_group& group);

  /// Gives the files their names, durably, and forgets them. `beside`: a directory whose names must
  /// be durable then as well; empty: none. `unsynced`: as location's; empty when all are durable.
  result<void> name(const std::string& git_dir, const std::string& beside,
                    std::vector<std::string>& unsynced);

 private:
  struct object {
    git_oid id{};
    git_object_t type = GIT_OBJECT_INVALID;
    std::string bytes;
    std::string temporary; ///< its file; empty: none
    unique_fd file;
  };

  /// What libgit2 sees; it must be the first member of a struct of C's layout.
  struct backend {
    git_odb_backend base{};
    object_batch* batch = nullptr;
  };

  struct stream;

  object_batch() = default;
  ~object_batch() { forget(); }

  const object* find(const git_oid& id) const;
  bool has_room_for(std::size_t bytes) const;
  void take(const git_oid& id, git_object_t type, std::string bytes);
  result<void> write_one(const std::string& objects, object& o);
  static result<void> name_one(const std::string& objects, object& o,
                               std::vector<std::string>& unsynced);

  static object_batch& of(git_odb_backend* b) { return *reinterpret_cast<backend*>(b)->batch; }
  static int on_read(void** data, std::size_t* size, git_object_t* type, git_odb_backend* b,
                     const git_oid* id);
  static int on_read_header(std::size_t* size, git_object_t* type, git_odb_backend* b,
                            const git_oid* id);
  static int on_exists(git_odb_backend* b, const git_oid* id);
  static int on_write(git_odb_backend* b, const git_oid* id, const void* data, std::size_t size,
                      git_object_t type);
  static int on_open_stream(git_odb_stream** out, git_odb_backend* b, git_object_size_t size,
                            git_object_t type);
  static int on_foreach(git_odb_backend* b, git_odb_foreach_cb each, void* payload);
  static void on_free(git_odb_backend* b);

  std::vector<object> objects_;
  std::size_t bytes_ = 0;
};

} // namespace boyd::adapters::git
