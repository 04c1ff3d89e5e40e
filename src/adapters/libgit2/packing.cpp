#include "boyd/core/limits.hpp"
#include "git_internal.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace boyd::adapters::git {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t fan_out_characters = 2;

struct loose_object {
  git_oid id{};
  std::string path;
};

bool is_hex(std::string_view text, std::size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

/// Loose objects, at most limits::pack_loose_at_once.
std::vector<loose_object> list_loose(const std::string& git_dir) {
  std::vector<loose_object> out;
  std::error_code ec;
  for (fs::directory_iterator dir(git_dir + "/objects", ec), end; !ec && dir != end;
       dir.increment(ec)) {
    const std::string prefix = dir->path().filename().string();
    if (!is_hex(prefix, fan_out_characters))
      continue;
    std::error_code inner;
    for (fs::directory_iterator it(dir->path(), inner); !inner && it != end; it.increment(inner)) {
      const std::string rest = it->path().filename().string();
      loose_object o{{}, it->path().string()};
      if (!is_hex(rest, GIT_OID_HEXSZ - fan_out_characters) ||
          git_oid_fromstr(&o.id, (prefix + rest).c_str()) != 0)
        continue;
      out.push_back(std::move(o));
      if (out.size() >= limits::pack_loose_at_once)
        return out;
    }
  }
  return out;
}

/// An object database over one pack alone.
result<odb_ptr> open_pack(const std::string& stem) {
  odb_ptr odb;
  git_odb_backend* backend = nullptr;
  int rc = fill(odb, [](git_odb** out) { return git_odb_new(out); });
  if (rc == 0)
    rc = git_odb_backend_one_pack(&backend, (stem + ".idx").c_str());
  if (rc == 0)
    rc = git_odb_add_backend(odb.get(), backend, 1);
  if (rc != 0)
    return fail(failure(rc, "cannot open the pack", stem));
  return odb;
}

int collect_id(const git_oid* id, void* payload) {
  auto& out = *static_cast<std::vector<git_oid>*>(payload);
  if (out.size() >= limits::pack_objects)
    return GIT_EUSER;
  out.push_back(*id);
  return 0;
}

struct old_pack {
  std::string stem; ///< path without ".pack"
  std::uintmax_t bytes = 0;
};

/// Packs that may be joined, smallest first. Those a person marked, and those other files refer to
/// (bitmaps, promisor packs, a multi-pack-index), are left alone.
std::vector<old_pack> list_packs(const std::string& pack_dir) {
  std::vector<old_pack> out;
  std::error_code ec;
  if (fs::exists(pack_dir + "/multi-pack-index", ec))
    return out;
  for (fs::directory_iterator it(pack_dir, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().extension() != ".pack")
      continue;
    const std::string stem = (it->path().parent_path() / it->path().stem()).string();
    std::error_code ignored;
    const bool special = fs::exists(stem + ".keep", ignored) ||
                         fs::exists(stem + ".promisor", ignored) ||
                         fs::exists(stem + ".bitmap", ignored);
    if (!special && fs::exists(stem + ".idx", ignored))
      out.push_back({stem, it->file_size(ignored)});
  }
  std::sort(out.begin(), out.end(),
            [](const old_pack& a, const old_pack& b) { return a.bytes < b.bytes; });
  return out;
}

/// The packs to join this time, and their objects.
struct join_plan {
  std::vector<old_pack> packs;
  std::vector<git_oid> objects;
};

join_plan plan_join(const std::string& pack_dir, std::size_t loose) {
  join_plan plan;
  auto packs = list_packs(pack_dir);
  if (packs.size() <= limits::pack_files)
    return plan;
  std::uintmax_t bytes = 0;
  for (auto& p : packs) {
    std::vector<git_oid> ids;
    bytes += p.bytes;
    auto odb = open_pack(p.stem);
    if (bytes > limits::pack_join_bytes || !odb ||
        git_odb_foreach(odb->get(), collect_id, &ids) != 0 ||
        loose + plan.objects.size() + ids.size() > limits::pack_objects)
      break;
    plan.objects.insert(plan.objects.end(), ids.begin(), ids.end());
    plan.packs.push_back(std::move(p));
  }
  if (plan.packs.size() < 2)
    return {};
  return plan;
}

/// True when the object is there and its content has its hash.
bool is_readable(git_odb* odb, const git_oid& id) {
  odb_object_ptr object;
  const bool ok =
      fill(object, [&](git_odb_object** out) { return git_odb_read(out, odb, &id); }) == 0;
  git_error_clear();
  return ok;
}

bool sync_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  const bool ok = ::fsync(fd) == 0;
  ::close(fd);
  return ok;
}

/// Writes one pack with all the objects, durable; its path without extension.
result<std::string> write_pack(const session& s, const std::vector<loose_object>& loose,
                               const std::vector<git_oid>& packed) {
  builder_ptr builder;
  int rc =
      fill(builder, [&](git_packbuilder** out) { return git_packbuilder_new(out, s.repo.get()); });
  if (rc != 0)
    return fail(failure(rc, "cannot start a pack", s.at->git_dir));
  git_packbuilder_set_threads(builder.get(), 1);
  for (const auto& o : loose)
    if (rc == 0)
      rc = git_packbuilder_insert(builder.get(), &o.id, nullptr);
  for (const auto& id : packed)
    if (rc == 0)
      rc = git_packbuilder_insert(builder.get(), &id, nullptr);
  const std::string dir = s.at->git_dir + "/objects/pack";
  std::error_code ec;
  fs::create_directories(dir, ec);
  if (rc == 0)
    rc = git_packbuilder_write(builder.get(), dir.c_str(), 0, nullptr, nullptr);
  if (rc != 0)
    return fail(failure(rc, "cannot write a pack", dir));
  const std::string stem = dir + "/pack-" + git_packbuilder_name(builder.get());
  if (!sync_path(stem + ".pack") || !sync_path(stem + ".idx") || !sync_path(dir))
    return fail(system_failure(errno, "cannot sync the pack", stem));
  return stem;
}

void remove_file(const std::string& path) {
  std::error_code ec;
  fs::remove(path, ec);
  if (ec)
    spdlog::warn("cannot remove {}: {}", path, ec.message());
}

/// The pack goes first: an index without its pack is ignored by git and removed at the next start.
void remove_pack(const std::string& stem) {
  for (const char* extension : {".pack", ".idx", ".rev"})
    remove_file(stem + extension);
}

} // namespace

result<std::size_t> loose_objects(const session& s) {
  return list_loose(s.at->git_dir).size();
}

result<std::size_t> pack(const session& s) {
  odb_ptr odb;
  const int rc = fill(odb, [&](git_odb** out) { return git_repository_odb(out, s.repo.get()); });
  if (rc != 0)
    return fail(failure(rc, "cannot open the object database", s.at->git_dir));
  auto loose = list_loose(s.at->git_dir);
  const auto damaged = std::remove_if(loose.begin(), loose.end(), [&](const loose_object& o) {
    const bool bad = !is_readable(odb.get(), o.id);
    if (bad)
      spdlog::warn("the git object {} is damaged and stays in place", o.path);
    return bad;
  });
  loose.erase(damaged, loose.end());
  const auto join = plan_join(s.at->git_dir + "/objects/pack", loose.size());
  if (loose.empty() && join.packs.empty())
    return std::size_t{0};
  const auto stem = write_pack(s, loose, join.objects);
  if (!stem)
    return fail(stem.error());
  auto written = open_pack(*stem);
  if (!written)
    return fail(std::move(written.error()));
  const bool joined_whole =
      std::all_of(join.objects.begin(), join.objects.end(),
                  [&](const git_oid& id) { return is_readable(written->get(), id); });
  std::size_t count = 0;
  for (const auto& o : loose)
    if (is_readable(written->get(), o.id)) {
      remove_file(o.path);
      ++count;
    }
  for (const auto& p : join.packs)
    if (joined_whole && p.stem != *stem)
      remove_pack(p.stem);
  return count;
}

} // namespace boyd::adapters::git
