#include "support/sim/repository.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace boyd::sim {

namespace {

using content = std::shared_ptr<const std::string>;
using file_tree = std::map<std::string, content>;

constexpr std::size_t largest_file = 64u << 20;
constexpr int deepest_directory = 32;
constexpr std::size_t hash_digits = 40;
constexpr std::size_t objects_per_commit = 3;

struct one_repository {
  std::vector<sim_commit> commits;
  bool available = true;
  std::size_t loose = 0;
};

/// 40 hexadecimal digits from FNV-1a with three seeds: enough to be unique in a test.
std::string hash_of(std::string_view text) {
  constexpr std::uint64_t prime = 0x100000001b3;
  std::string out;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::uint64_t h = 0xcbf29ce484222325 * seed;
    for (const char c : text)
      h = (h ^ static_cast<unsigned char>(c)) * prime;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(h));
    out += digits;
  }
  return out.substr(0, hash_digits);
}

bool is_ignored(std::string_view name) {
  const bool backup = name.size() > 4 && name.substr(name.size() - 4) == ".bak";
  const bool temporary =
      name.substr(0, 1) == "." && name.find(".boyd-tmp-") != std::string_view::npos;
  return name == ".git" || backup || temporary;
}

result<void> read_tree(file_system& files, const std::string& root, const std::string& below,
                       int depth, file_tree& out) {
  if (depth > deepest_directory)
    return fail(errc::limit_exceeded, "directories are nested too deeply", root + below);
  const auto names = files.list(root + below);
  if (!names)
    return fail(names.error());
  for (const auto& name : *names) {
    if (is_ignored(name))
      continue;
    const std::string path = below + "/" + name;
    const auto info = files.stat(root + path);
    if (!info)
      return fail(info.error());
    if (info->kind == file_kind::directory) {
      if (auto done = read_tree(files, root, path, depth + 1, out); !done)
        return done;
    } else if (info->kind == file_kind::regular) {
      auto bytes = files.read(root + path, largest_file);
      if (!bytes)
        return fail(std::move(bytes.error()));
      out[path.substr(1)] = std::make_shared<const std::string>(std::move(*bytes));
    }
  }
  return {};
}

std::vector<path_change> compare(const file_tree& from, const file_tree& to) {
  std::vector<path_change> out;
  for (const auto& [path, bytes] : to) {
    const auto old = from.find(path);
    if (old == from.end())
      out.push_back({path, change_kind::added});
    else if (*old->second != *bytes)
      out.push_back({path, change_kind::modified});
  }
  for (const auto& [path, bytes] : from)
    if (to.count(path) == 0)
      out.push_back({path, change_kind::deleted});
  std::sort(out.begin(), out.end(),
            [](const path_change& a, const path_change& b) { return a.path < b.path; });
  return out;
}

/// "Key: value" lines after the last empty line.
std::vector<std::pair<std::string, std::string>> trailers_of(const std::string& message) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto gap = message.rfind("\n\n");
  std::size_t at = gap == std::string::npos ? message.size() : gap + 2;
  while (at < message.size()) {
    const auto end = std::min(message.find('\n', at), message.size());
    const std::string line = message.substr(at, end - at);
    if (const auto colon = line.find(": "); colon != std::string::npos)
      out.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    at = end + 1;
  }
  return out;
}

std::string unified(const file_tree& from, const file_tree& to) {
  std::string out;
  const auto add = [&](const file_tree& tree, const std::string& path, char sign) {
    const auto found = tree.find(path);
    if (found == tree.end())
      return;
    std::size_t at = 0;
    while (at < found->second->size()) {
      const auto end = std::min(found->second->find('\n', at), found->second->size());
      out += sign + found->second->substr(at, end - at) + "\n";
      at = end + 1;
    }
  };
  for (const auto& change : compare(from, to)) {
    out += "diff --git a/" + change.path + " b/" + change.path + "\n";
    add(from, change.path, '-');
    add(to, change.path, '+');
  }
  return out;
}

} // namespace

struct sim_repositories::world {
  explicit world(file_system& f) : files(f) {}

  result<void> ask(git_op op, const std::string& path) {
    if (hook)
      if (auto e = hook(op, path))
        return fail(std::move(*e));
    return {};
  }

  file_system& files;
  std::map<std::string, one_repository> repositories;
  fault_hook hook;
  std::uint64_t refused = 0;     ///< calls, by a repository that was taken away
  std::uint64_t incarnation = 0; ///< grows at every crash
};

namespace {

class sim_repository final : public repository {
 public:
  sim_repository(std::shared_ptr<sim_repositories::world> w, std::string path)
      : world_(std::move(w)), path_(std::move(path)), incarnation_(world_->incarnation) {}

  result<std::vector<path_change>> changes() override {
    if (auto ready = check(git_op::changes); !ready)
      return fail(std::move(ready.error()));
    auto now = work_tree();
    if (!now)
      return fail(std::move(now.error()));
    return compare(head_tree(), *now);
  }

  result<std::size_t> tracked_files() override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    return head_tree().size();
  }

  result<std::vector<std::string>> tracked_paths() override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    std::vector<std::string> paths;
    for (const auto& file : head_tree())
      paths.push_back(file.first);
    return paths;
  }

  result<bool> ignores(const std::string&) override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    return false;
  }

  result<void> stage(const std::vector<path_change>&) override { return check(git_op::stage); }

  result<std::optional<std::string>> commit(const std::vector<path_change>& paths,
                                            const std::string& message, utc_time when) override {
    if (auto ready = check(git_op::commit); !ready)
      return fail(std::move(ready.error()));
    auto tree = tree_with(paths);
    if (!tree)
      return fail(std::move(tree.error()));
    if (!paths.empty() && compare(head_tree(), *tree).empty())
      return std::nullopt;
    auto hash = add(std::move(*tree), message, when);
    (void)world_->ask(git_op::commit_moved, path_);
    return hash;
  }

  result<commit_pair> commit_two(const std::vector<path_change>& paths,
                                 const earlier_version& version, const std::string& earlier_message,
                                 const std::string& later_message, utc_time when) override {
    if (auto ready = check(git_op::commit); !ready)
      return fail(std::move(ready.error()));
    auto later = tree_with(paths);
    if (!later)
      return fail(std::move(later.error()));
    auto earlier = *later;
    const bool named = std::ranges::count(paths, version.path, &path_change::path) > 0;
    if (const auto file = earlier.find(version.path); named && file != earlier.end()) {
      const auto head = head_tree();
      const auto old = head.find(version.path);
      file->second = std::make_shared<const std::string>(
          version.text(old == head.end() ? std::string{} : *old->second, *file->second));
    }
    if (auto synced = world_->files.sync_directory(path_); !synced)
      return fail(std::move(synced.error()));
    commit_pair made;
    if (const auto& all = it().commits; !all.empty())
      made.parent = all.back().info.hash;
    made.earlier = add(std::move(earlier), earlier_message, when);
    made.later = add(std::move(*later), later_message, when);
    (void)world_->ask(git_op::commit_moved, path_);
    return made;
  }

  result<std::vector<commit_info>> history(const std::string& path, std::size_t n) override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    std::vector<commit_info> out;
    const auto& all = it().commits;
    for (std::size_t i = all.size(); i > 0 && out.size() < n; --i)
      if (path.empty() || touches(i - 1, path))
        out.push_back(all[i - 1].info);
    return out;
  }

  result<std::string> diff(const std::string& a, const std::string& b) override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    const auto* from = find(a);
    if (from == nullptr)
      return fail(errc::not_found, "no such revision", a);
    if (b.empty()) {
      const auto now = work_tree();
      if (!now)
        return fail(now.error());
      return unified(from->tree, *now);
    }
    const auto* to = find(b);
    if (to == nullptr)
      return fail(errc::not_found, "no such revision", b);
    return unified(from->tree, to->tree);
  }

  result<std::string> read_at(const std::string& revision, const std::string& path) override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    const auto* commit = find(revision);
    if (commit == nullptr)
      return fail(errc::not_found, "no such revision", revision);
    const auto found = commit->tree.find(path);
    if (found == commit->tree.end())
      return fail(errc::not_found, "no such file in that commit", revision + ":" + path);
    return *found->second;
  }

  result<std::string> commit_at(utc_time t) override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    const auto& all = it().commits;
    for (auto c = all.rbegin(); c != all.rend(); ++c)
      if (c->info.time <= t)
        return c->info.hash;
    return fail(errc::not_found, "no commit is as old as that", path_);
  }

  result<std::optional<std::string>> head() override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    const auto& all = it().commits;
    if (all.empty())
      return std::nullopt;
    return all.back().info.hash;
  }

  result<bool> is_kept(const std::string& hash) override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    return std::ranges::any_of(it().commits,
                               [&](const sim_commit& c) { return c.info.hash == hash; });
  }

  result<std::size_t> loose_objects() override {
    if (auto ready = check(git_op::read); !ready)
      return fail(std::move(ready.error()));
    return it().loose;
  }

  result<std::size_t> pack() override {
    if (auto ready = check(git_op::pack); !ready)
      return fail(std::move(ready.error()));
    return std::exchange(it().loose, 0);
  }

 private:
  one_repository& it() { return world_->repositories.at(path_); }

  result<void> check(git_op op) {
    world_->refused += it().available ? 0 : 1;
    if (incarnation_ != world_->incarnation || !it().available)
      return fail(errc::repository_unavailable, "the git repository was removed", path_);
    const auto directory = world_->files.stat(path_);
    if (!directory || directory->kind != file_kind::directory)
      return fail(errc::repository_unavailable, "there is no such directory", path_);
    return world_->ask(op, path_);
  }

  file_tree head_tree() { return it().commits.empty() ? file_tree{} : it().commits.back().tree; }

  result<file_tree> work_tree() {
    file_tree out;
    if (auto done = read_tree(world_->files, path_, {}, 0, out); !done)
      return fail(std::move(done.error()));
    return out;
  }

  /// HEAD's tree with `paths` as the work tree has them.
  result<file_tree> tree_with(const std::vector<path_change>& paths) {
    const auto now = work_tree();
    if (!now)
      return fail(now.error());
    file_tree tree = head_tree();
    for (const auto& change : paths) {
      const auto found = now->find(change.path);
      if (found != now->end())
        tree[change.path] = found->second;
      else if (change.kind == change_kind::deleted)
        tree.erase(change.path);
    }
    return tree;
  }

  std::string add(file_tree tree, const std::string& message, utc_time when) {
    auto& mine = it();
    sim_commit c;
    c.message = message;
    c.tree = std::move(tree);
    c.info.subject = message.substr(0, message.find('\n'));
    c.info.time = std::chrono::floor<seconds>(when);
    c.info.trailers = trailers_of(message);
    c.info.hash = hash_of(path_ + std::to_string(mine.commits.size()) + message);
    mine.commits.push_back(std::move(c));
    mine.loose += objects_per_commit;
    return mine.commits.back().info.hash;
  }

  bool touches(std::size_t index, const std::string& path) {
    static const file_tree nothing;
    const auto& all = it().commits;
    const auto& before = index == 0 ? nothing : all[index - 1].tree;
    const auto& after = all[index].tree;
    const auto old = before.find(path);
    const auto now = after.find(path);
    if (old == before.end() || now == after.end())
      return (old == before.end()) != (now == after.end());
    return *old->second != *now->second;
  }

  /// A hash, a unique prefix of one, "HEAD" or "main".
  const sim_commit* find(const std::string& revision) {
    constexpr std::size_t shortest_prefix = 4;
    const auto& all = it().commits;
    if (all.empty())
      return nullptr;
    if (revision == "HEAD" || revision == "main")
      return &all.back();
    const sim_commit* found = nullptr;
    for (const auto& c : all)
      if (revision.size() >= shortest_prefix && c.info.hash.rfind(revision, 0) == 0) {
        if (found != nullptr)
          return nullptr;
        found = &c;
      }
    return found;
  }

  std::shared_ptr<sim_repositories::world> world_;
  std::string path_;
  std::uint64_t incarnation_;
};

} // namespace

sim_repositories::sim_repositories(file_system& files) : world_(std::make_shared<world>(files)) {}

sim_repositories::~sim_repositories() = default;

result<std::unique_ptr<repository>> sim_repositories::init(const std::string& path,
                                                           const git_identity& who) {
  if (auto ready = world_->ask(git_op::init, path); !ready)
    return fail(std::move(ready.error()));
  if (auto made = world_->files.make_directories(path); !made)
    return fail(std::move(made.error()));
  world_->repositories.try_emplace(path);
  return open(path, who);
}

result<std::unique_ptr<repository>> sim_repositories::open(const std::string& path,
                                                           const git_identity&) {
  if (auto ready = world_->ask(git_op::open, path); !ready)
    return fail(std::move(ready.error()));
  const auto found = world_->repositories.find(path);
  const auto directory = world_->files.stat(path);
  if (found == world_->repositories.end() || !found->second.available || !directory ||
      directory->kind != file_kind::directory)
    return fail(errc::repository_unavailable, "no git repository", path);
  return std::make_unique<sim_repository>(world_, path);
}

void sim_repositories::set_available(const std::string& path, bool available) {
  const auto found = world_->repositories.find(path);
  if (found != world_->repositories.end())
    found->second.available = available;
}

std::uint64_t sim_repositories::refused() const {
  return world_->refused;
}

void sim_repositories::set_fault_hook(fault_hook hook) {
  world_->hook = std::move(hook);
}

void sim_repositories::crash() {
  ++world_->incarnation;
}

void sim_repositories::take_back(const std::string& path, std::size_t n) {
  auto& commits = world_->repositories.at(path).commits;
  commits.resize(commits.size() - std::min(n, commits.size()));
}

const std::vector<sim_commit>& sim_repositories::commits(const std::string& path) const {
  static const std::vector<sim_commit> none;
  const auto found = world_->repositories.find(path);
  return found == world_->repositories.end() ? none : found->second.commits;
}

} // namespace boyd::sim
