#include "support/sim/disk.hpp"

#include "support/sim/disk_inode.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace boyd::sim {

std::string_view name_of(disk_op op) noexcept {
  switch (op) {
  case disk_op::read:
    return "read";
  case disk_op::stat:
    return "stat";
  case disk_op::open:
    return "open";
  case disk_op::write:
    return "write";
  case disk_op::sync:
    return "sync";
  case disk_op::truncate:
    return "truncate";
  case disk_op::rewrite:
    return "rewrite";
  case disk_op::size:
    return "size";
  case disk_op::rename:
    return "rename";
  case disk_op::unlink:
    return "unlink";
  case disk_op::sync_directory:
    return "sync_directory";
  case disk_op::make_directories:
    return "make_directories";
  case disk_op::list:
    return "list";
  }
  return "unknown";
}

namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

/// A change of names that its directory's sync makes durable.
struct name_change {
  std::string directory;
  std::string removed; ///< path; empty: none
  std::string set;     ///< path; empty: none
  inode_ptr target;
};

bool looks(disk_op op) {
  return op == disk_op::read || op == disk_op::stat || op == disk_op::size || op == disk_op::list;
}

struct pending_fault {
  disk_op op;
  disk_fault fault;
  std::uint64_t count;
  std::string path_part;
};

/// What remains of an unsynced file. Every outcome is one that ext4 or XFS has shown.
std::string survivor(const inode& node, entropy& random) {
  if (!node.dirty()) {
    return node.durable;
  }
  const std::string full = node.written_back();
  enum { nothing, everything, prefix, zeroed_end, outcomes };
  const auto outcome = random.next() % outcomes;
  if (outcome == nothing) {
    return node.durable;
  }
  if (outcome == everything || full.size() <= node.durable.size()) {
    return full;
  }
  const std::size_t grown = full.size() - node.durable.size();
  std::string part = full.substr(0, node.durable.size() + random.next() % (grown + 1));
  if (outcome == zeroed_end && part.size() > node.durable.size()) {
    const std::size_t fresh = part.size() - node.durable.size();
    const std::size_t zeroed = 1 + random.next() % fresh;
    std::fill(part.end() - static_cast<std::ptrdiff_t>(zeroed), part.end(), '\0');
  }
  return part;
}

tl::unexpected<error> not_found(const std::string& path) {
  return fail(errc::not_found, "no such file or directory", path);
}

} // namespace

struct sim_disk::impl {
  using name_map = std::map<std::string, inode_ptr>;

  const clock_port* clock = nullptr;
  name_map names;
  name_map durable_names;
  std::set<std::string> directories{"/"};
  std::vector<name_change> pending;
  disk_fault_plan plan;
  std::vector<pending_fault> faults;
  std::optional<std::uint64_t> capacity;
  std::uint64_t calls = 0;
  std::uint64_t struck_looking = 0; ///< by `faults`
  std::uint64_t struck_changing = 0;
  std::uint64_t next_inode = 1;
  std::uint64_t boot = 0; ///< handles of an earlier one are stale

  utc_time now() const { return clock ? clock->now() : utc_time{}; }

  disk_fault choose_fault(disk_op op, const std::string& path) {
    const disk_call call{op, path, calls++};
    for (auto it = faults.begin(); it != faults.end(); ++it) {
      if (it->op == op && path.find(it->path_part) != std::string::npos) {
        const auto chosen = it->fault;
        ++(looks(op) ? struck_looking : struck_changing);
        if (--it->count == 0) {
          faults.erase(it);
        }
        return chosen;
      }
    }
    return plan ? plan(call) : disk_fault::none;
  }

  /// The error of a call that fails outright; `short_write` of a write is not one.
  std::optional<error> begin(disk_op op, const std::string& path, disk_fault* chosen = nullptr) {
    const auto fault = choose_fault(op, path);
    if (chosen != nullptr) {
      *chosen = fault;
    }
    switch (fault) {
    case disk_fault::none:
      return std::nullopt;
    case disk_fault::no_space:
      return error{errc::no_space, "simulated ENOSPC on " + std::string(name_of(op)), path, ""};
    case disk_fault::short_write:
      if (op == disk_op::write) {
        return std::nullopt;
      }
      break;
    case disk_fault::io_error:
      break;
    }
    return error{errc::io_error, "simulated EIO on " + std::string(name_of(op)), path, ""};
  }

  inode_ptr find(const std::string& path) const {
    const auto it = names.find(path);
    return it == names.end() ? nullptr : it->second;
  }

  inode_ptr make_inode() {
    auto made = std::make_shared<inode>();
    made->number = next_inode++;
    made->modified = now();
    return made;
  }

  std::uint64_t used() const {
    std::uint64_t sum = 0;
    for (const auto& [path, node] : names) {
      sum += node->content.size();
    }
    return sum;
  }

  std::size_t room_for(std::size_t wanted) const {
    if (!capacity) {
      return wanted;
    }
    const auto taken = used();
    const auto left = *capacity > taken ? *capacity - taken : 0;
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, wanted));
  }

  static void apply(name_map& map, const name_change& change) {
    if (!change.removed.empty()) {
      map.erase(change.removed);
    }
    if (!change.set.empty()) {
      map[change.set] = change.target;
    }
  }

  void change_names(name_change change) {
    apply(names, change);
    pending.push_back(std::move(change));
  }

  void add_directories(const std::string& path) {
    for (std::string at = path; at != "/"; at = parent_of(at)) {
      directories.insert(at);
    }
  }
};

namespace {

/// One open file of the simulated disk. Impl is sim_disk's private part.
template <class Impl>
class sim_file final : public open_file {
 public:
  sim_file(std::shared_ptr<Impl> disk, inode_ptr node, std::string path)
      : disk_(std::move(disk)), node_(std::move(node)), path_(std::move(path)), boot_(disk_->boot) {
  }

  result<std::size_t> write(std::string_view bytes) override {
    disk_fault chosen = disk_fault::none;
    if (auto failed = begin(disk_op::write, &chosen)) {
      return fail(std::move(*failed));
    }
    std::size_t count = disk_->room_for(bytes.size());
    if (chosen == disk_fault::short_write) {
      count = std::min(count, bytes.size() / 2);
    } else if (count == 0 && !bytes.empty()) {
      return fail(errc::no_space, "the simulated disk is full", path_);
    }
    const auto begin_at = node_->content.size();
    node_->content.append(bytes.substr(0, count));
    node_->mark_dirty(begin_at, node_->content.size());
    node_->size_dirty = node_->size_dirty || count > 0;
    node_->modified = disk_->now();
    return count;
  }

  result<void> sync() override {
    if (auto failed = begin(disk_op::sync)) {
      // Not when the process died in the call: its pages stay dirty, and are written some day.
      if (boot_ == disk_->boot) {
        node_->forget_dirty();
      }
      return fail(std::move(*failed));
    }
    if (node_->dirty()) {
      node_->durable = node_->written_back();
      node_->forget_dirty();
    }
    return {};
  }

  result<void> truncate(std::uint64_t size) override {
    if (auto failed = begin(disk_op::truncate)) {
      return fail(std::move(*failed));
    }
    if (size != node_->content.size()) {
      node_->content.resize(static_cast<std::size_t>(size), '\0');
      node_->clip_dirty();
      node_->size_dirty = true;
    }
    return {};
  }

  result<void> rewrite(std::uint64_t offset, std::string_view bytes) override {
    if (auto failed = begin(disk_op::rewrite)) {
      return fail(std::move(*failed));
    }
    const auto at = static_cast<std::size_t>(offset);
    // The simulated crash does not mix old and new bytes of a range that is overwritten.
    if (node_->content.compare(std::min(at, node_->content.size()), bytes.size(), bytes) != 0) {
      return fail(errc::bug, "other bytes than those that are there", path_);
    }
    if (!bytes.empty()) {
      node_->mark_dirty(at, at + bytes.size());
      node_->modified = disk_->now();
    }
    return {};
  }

  result<std::uint64_t> size() override {
    if (auto failed = begin(disk_op::size)) {
      return fail(std::move(*failed));
    }
    return std::uint64_t{node_->content.size()};
  }

  result<std::string> read_part(std::uint64_t offset, std::size_t max_bytes) override {
    if (auto failed = begin(disk_op::read)) {
      return fail(std::move(*failed));
    }
    const auto& content = node_->content;
    return offset < content.size() ? content.substr(offset, max_bytes) : std::string();
  }

 private:
  std::optional<error> begin(disk_op op, disk_fault* chosen = nullptr) {
    if (boot_ != disk_->boot) {
      return error{errc::io_error, "the handle belongs to a process that died", path_, ""};
    }
    return disk_->begin(op, path_, chosen);
  }

  std::shared_ptr<Impl> disk_;
  inode_ptr node_;
  std::string path_;
  std::uint64_t boot_;
};

} // namespace

sim_disk::sim_disk(const clock_port* clock) : impl_(std::make_shared<impl>()) {
  impl_->clock = clock;
}

sim_disk::~sim_disk() = default;

result<std::string> sim_disk::read(const std::string& path, std::size_t max_bytes) {
  if (auto failed = impl_->begin(disk_op::read, path)) {
    return fail(std::move(*failed));
  }
  const auto node = impl_->find(path);
  if (!node) {
    return not_found(path);
  }
  if (node->content.size() > max_bytes) {
    return fail(errc::limit_exceeded, "the file is too large", path);
  }
  return node->content;
}

result<std::string> sim_disk::read_part(const std::string& path, std::uint64_t offset,
                                        std::size_t max_bytes) {
  if (auto failed = impl_->begin(disk_op::read, path)) {
    return fail(std::move(*failed));
  }
  const auto node = impl_->find(path);
  if (!node) {
    return not_found(path);
  }
  const auto& content = node->content;
  return offset < content.size() ? content.substr(offset, max_bytes) : std::string();
}

result<file_info> sim_disk::stat(const std::string& path) {
  if (auto failed = impl_->begin(disk_op::stat, path)) {
    return fail(std::move(*failed));
  }
  file_info info;
  info.device = 1;
  if (const auto node = impl_->find(path)) {
    info.kind = node->symlink ? file_kind::symlink : file_kind::regular;
    info.size = node->content.size();
    info.inode = node->number;
    info.modified = node->modified;
    info.mode = 0600;
  } else if (impl_->directories.contains(path)) {
    info.kind = file_kind::directory;
    info.mode = 0700;
  }
  return info;
}

result<std::unique_ptr<open_file>> sim_disk::open(const std::string& path, open_mode mode) {
  if (auto failed = impl_->begin(disk_op::open, path)) {
    return fail(std::move(*failed));
  }
  if (!impl_->directories.contains(parent_of(path))) {
    return not_found(parent_of(path));
  }
  if (impl_->directories.contains(path)) {
    return fail(errc::io_error, "this is a directory", path);
  }
  auto node = impl_->find(path);
  if (node && mode == open_mode::create_new) {
    return fail(errc::already_exists, "the file exists", path);
  }
  if (node && node->symlink) {
    return fail(errc::refused, "it is a symbolic link", path);
  }
  if (!node) {
    node = impl_->make_inode();
    impl_->change_names({parent_of(path), "", path, node});
  }
  return std::unique_ptr<open_file>(std::make_unique<sim_file<impl>>(impl_, node, path));
}

result<void> sim_disk::rename(const std::string& from, const std::string& to) {
  if (auto failed = impl_->begin(disk_op::rename, from)) {
    return fail(std::move(*failed));
  }
  const auto node = impl_->find(from);
  if (!node) {
    return not_found(from);
  }
  if (!impl_->directories.contains(parent_of(to))) {
    return not_found(parent_of(to));
  }
  if (impl_->directories.contains(to)) {
    return fail(errc::io_error, "the target is a directory", to);
  }
  if (from != to) {
    impl_->change_names({parent_of(to), from, to, node});
  }
  return {};
}

result<void> sim_disk::unlink(const std::string& path) {
  if (auto failed = impl_->begin(disk_op::unlink, path)) {
    return fail(std::move(*failed));
  }
  if (impl_->directories.contains(path)) {
    if (!list(path).value_or(std::vector<std::string>{}).empty()) {
      return fail(errc::io_error, "the directory is not empty", path);
    }
    impl_->directories.erase(path);
    return {};
  }
  if (!impl_->find(path)) {
    return not_found(path);
  }
  impl_->change_names({parent_of(path), path, "", nullptr});
  return {};
}

result<void> sim_disk::sync_directory(const std::string& path) {
  if (auto failed = impl_->begin(disk_op::sync_directory, path)) {
    return fail(std::move(*failed));
  }
  if (!impl_->directories.contains(path)) {
    return not_found(path);
  }
  std::vector<name_change> left;
  for (auto& change : impl_->pending) {
    if (change.directory == path) {
      impl::apply(impl_->durable_names, change);
    } else {
      left.push_back(std::move(change));
    }
  }
  impl_->pending = std::move(left);
  return {};
}

result<void> sim_disk::make_directories(const std::string& path) {
  if (auto failed = impl_->begin(disk_op::make_directories, path)) {
    return fail(std::move(*failed));
  }
  for (std::string at = path; at != "/"; at = parent_of(at)) {
    if (impl_->find(at)) {
      return fail(errc::already_exists, "a file has the name of the directory", at);
    }
  }
  impl_->add_directories(path);
  return {};
}

result<std::vector<std::string>> sim_disk::list(const std::string& path) {
  if (auto failed = impl_->begin(disk_op::list, path)) {
    return fail(std::move(*failed));
  }
  if (!impl_->directories.contains(path)) {
    return not_found(path);
  }
  std::vector<std::string> found;
  const auto add = [&](const std::string& entry) {
    if (entry != "/" && parent_of(entry) == path) {
      found.push_back(entry.substr(entry.rfind('/') + 1));
    }
  };
  for (const auto& [name, node] : impl_->names) {
    add(name);
  }
  for (const auto& directory : impl_->directories) {
    add(directory);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void sim_disk::set_fault_plan(disk_fault_plan plan) {
  impl_->plan = std::move(plan);
}

void sim_disk::fail_next(disk_op op, disk_fault fault, std::uint64_t count, std::string path_part) {
  if (count > 0) {
    impl_->faults.push_back({op, fault, count, std::move(path_part)});
  }
}

bool sim_disk::fails() const noexcept {
  return !impl_->faults.empty();
}

void sim_disk::clear_faults() {
  impl_->faults.clear();
  impl_->plan = nullptr;
}

void sim_disk::set_capacity(std::optional<std::uint64_t> bytes) {
  impl_->capacity = bytes;
}

void sim_disk::crash(entropy& random) {
  kill_process();
  enum { none, all, prefix, subset, outcomes };
  const auto outcome = random.next() % outcomes;
  std::size_t kept = impl_->pending.size();
  if (outcome == none) {
    kept = 0;
  } else if (outcome == prefix) {
    kept = random.next() % (kept + 1);
  }
  for (std::size_t i = 0; i < kept; ++i) {
    if (outcome != subset || random.next() % 2 == 0) {
      impl::apply(impl_->durable_names, impl_->pending[i]);
    }
  }
  impl_->pending.clear();
  impl_->names = impl_->durable_names;
  std::set<inode*> done; // a rename without its removal may leave two names of one inode
  for (auto& [path, node] : impl_->names) {
    if (done.insert(node.get()).second) {
      node->content = node->durable = survivor(*node, random);
      node->forget_dirty();
    }
  }
}

void sim_disk::kill_process() {
  ++impl_->boot;
}

std::uint64_t sim_disk::struck_looking() const noexcept {
  return impl_->struck_looking;
}

std::uint64_t sim_disk::struck_changing() const noexcept {
  return impl_->struck_changing;
}

std::uint64_t sim_disk::calls() const noexcept {
  return impl_->calls;
}

void sim_disk::put(const std::string& path, std::string_view content) {
  impl_->add_directories(parent_of(path));
  auto node = impl_->make_inode();
  node->content = node->durable = std::string(content);
  impl_->names[path] = node;
  impl_->durable_names[path] = node;
}

bool sim_disk::corrupt(const std::string& path, std::uint64_t offset, unsigned char mask) {
  const auto node = impl_->find(path);
  if (!node || offset >= node->durable.size()) {
    return false;
  }
  const auto at = static_cast<std::size_t>(offset);
  const auto flip = [&](char& byte) {
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ mask);
  };
  flip(node->durable[at]);
  if (at < node->content.size()) {
    flip(node->content[at]);
  }
  return true;
}

void sim_disk::put_symlink(const std::string& path) {
  put(path, "");
  impl_->find(path)->symlink = true;
}

sim_disk::seen_file sim_disk::look(const std::string& path) const {
  const auto node = impl_->find(path);
  return node ? seen_file{&node->content, node->number} : seen_file{};
}

std::map<std::string, std::string> sim_disk::snapshot() const {
  std::map<std::string, std::string> all;
  for (const auto& [path, node] : impl_->names) {
    if (!node->symlink) {
      all.emplace(path, node->content);
    }
  }
  return all;
}

} // namespace boyd::sim
