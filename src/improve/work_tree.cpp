#include "work_tree_internal.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace boyd::improve {

namespace {

constexpr std::size_t named_changes = 5;
constexpr std::size_t shown_hash = 10;

bool lies_in(const std::string& path, const std::string& place) {
  return path == place || path.starts_with(place + "/");
}

} // namespace

std::string names_of(const std::set<std::string>& paths) {
  std::string named;
  std::size_t n = 0;
  for (const auto& path : paths) {
    if (++n > named_changes)
      return named + ", …";
    named += (named.empty() ? "" : ", ") + path;
  }
  return named;
}

std::string not_committed(const std::set<std::string>& paths) {
  return "the work tree has changes that are not committed (" + names_of(paths) +
         "): commit or stash them";
}

std::string disturbance(const tree_changes& before, const result<tree_changes>& now) {
  if (!now)
    return to_string(now.error());
  auto paths = now->tracked;
  for (const auto& [path, print] : now->untracked)
    if (const auto it = before.untracked.find(path);
        it == before.untracked.end() || it->second != print)
      paths.insert(path);
  for (const auto& [path, print] : before.untracked)
    if (!now->untracked.contains(path))
      paths.insert(path);
  return paths.empty()
             ? std::string()
             : "while a patch was asked for, files of the repository changed (" + names_of(paths) +
                   "), by a person or by who was asked: commit them, or take them back";
}

result<tree_changes> work_tree::changes(repository& r) const {
  const auto all = r.changes();
  if (!all)
    return fail(all.error());
  tree_changes found;
  for (const auto& c : *all) {
    if (lies_in(c.path, order_.settings.outputs) || lies_in(c.path, order_.settings.logs))
      continue;
    if (c.kind != change_kind::added) {
      found.tracked.insert(c.path);
      continue;
    }
    const auto info = ports_.files.stat(order_.root + "/" + c.path);
    found.untracked[c.path] = info
                                  ? std::to_string(info->inode) + " " + std::to_string(info->size) +
                                        " " + std::to_string(to_unix_ms(info->modified))
                                  : to_string(info.error());
  }
  return found;
}

result<void> work_tree::check_base(repository& r, const std::string& base) const {
  const auto head = r.head();
  if (!head)
    return fail(head.error());
  if (const auto now = head->value_or(std::string()); now != base)
    return fail(errc::conflict,
                "HEAD was " + base.substr(0, shown_hash) + " when the cycle began and is " +
                    (now.empty() ? "no commit" : now.substr(0, shown_hash)) + " now",
                {}, "look at what was committed meanwhile; the next cycle begins from there");
  return {};
}

result<void> work_tree::check_base(const std::string& base) const {
  auto repository = ports_.repositories.open(order_.root, {});
  return repository ? check_base(**repository, base) : fail(std::move(repository.error()));
}

result<tree_changes> work_tree::look(const std::string& base) const {
  auto repository = ports_.repositories.open(order_.root, {});
  if (!repository)
    return fail(std::move(repository.error()));
  if (auto same = check_base(**repository, base); !same)
    return fail(std::move(same.error()));
  return changes(**repository);
}

result<std::set<std::string>>
work_tree::changed_besides(const std::vector<planned_change>& patch) const {
  auto repository = ports_.repositories.open(order_.root, {});
  if (!repository)
    return fail(std::move(repository.error()));
  auto now = changes(**repository);
  if (!now)
    return fail(std::move(now.error()));
  for (const auto& c : patch)
    now->tracked.erase(c.path);
  return std::move(now->tracked);
}

std::string work_tree::why_not_alone(const std::vector<planned_change>& patch) const {
  const auto others = changed_besides(patch);
  if (!others)
    return to_string(others.error());
  return others->empty() ? std::string()
                         : "while the patch was verified, other files of the repository changed (" +
                               names_of(*others) +
                               "), by a person or by what ran: commit them, or take them back";
}

std::set<std::string> work_tree::known_files() const {
  auto repository = ports_.repositories.open(order_.root, {});
  auto known = repository ? (*repository)->tracked_paths()
                          : result<std::vector<std::string>>(std::vector<std::string>());
  if (!known)
    return {};
  return {std::make_move_iterator(known->begin()), std::make_move_iterator(known->end())};
}

result<void> work_tree::check_known(const accepted_patch& patch) const {
  auto repository = ports_.repositories.open(order_.root, {});
  if (!repository)
    return fail(std::move(repository.error()));
  for (const auto& c : patch.changes) {
    const bool is_new = c.action == planned_change::action_t::create;
    if (!is_new && !(*repository)->read_at("HEAD", c.path))
      return fail(errc::refused, "git does not know this file, so it stays as it is", c.path);
    if (!is_new)
      continue;
    const auto ignored = (*repository)->ignores(c.path);
    if (!ignored)
      return fail(ignored.error());
    if (*ignored)
      return fail(errc::refused, "git ignores this path, so it would never be committed", c.path);
  }
  return {};
}

bool work_tree::is_in_head(const accepted_patch& patch, const std::string& base) const {
  auto repository = ports_.repositories.open(order_.root, {});
  if (!repository || check_base(**repository, base))
    return false;
  return std::ranges::all_of(patch.changes, [&](const planned_change& c) {
    const auto there = (*repository)->read_at("HEAD", c.path);
    return c.action == planned_change::action_t::remove ? !there : there && *there == c.after;
  });
}

result<std::optional<std::string>> work_tree::made_before(repository& r,
                                                          const cycle_state& state) const {
  const auto newest = r.history("", 2);
  if (!newest)
    return fail(newest.error());
  const std::pair<std::string, std::string> mark{"Cycle", state.cycle_id};
  if (newest->size() < 2 || (*newest)[1].hash != state.base ||
      std::ranges::find(newest->front().trailers, mark) == newest->front().trailers.end())
    return std::nullopt;
  return newest->front().hash;
}

result<void> work_tree::check_verified(repository& r, const effect::commit& what,
                                       const cycle_state& state, undo_log& undo) const {
  if (auto base = check_base(r, state.base); !base)
    return base;
  const auto stands = undo.stands(state.cycle_id);
  if (!stands)
    return fail(stands.error());
  auto now = changes(r);
  if (!now)
    return fail(std::move(now.error()));
  std::set<std::string> changed;
  for (const auto& c : what.changes)
    if (now->tracked.erase(c.path) + now->untracked.count(c.path) == 0 || !*stands)
      changed.insert(c.path);
  changed.merge(now->tracked);
  if (changed.empty())
    return {};
  return fail(errc::conflict,
              "it is not what stands in the work tree now (" + names_of(changed) +
                  "), so nothing was committed",
              {}, "look at the changes, then commit them yourself or take them back");
}

result<std::string> work_tree::commit(const effect::commit& what, const cycle_state& state,
                                      undo_log& undo) const {
  auto repository = ports_.repositories.open(order_.root, {});
  if (!repository)
    return fail(std::move(repository.error()));
  auto before = made_before(**repository, state);
  if (!before)
    return fail(std::move(before.error()));
  if (*before)
    return **before;
  if (auto same = check_verified(**repository, what, state, undo); !same)
    return fail(std::move(same.error()));
  std::vector<path_change> paths;
  for (const auto& c : what.changes)
    paths.push_back({c.path, c.action == planned_change::action_t::create ? change_kind::added
                             : c.action == planned_change::action_t::remove
                                 ? change_kind::deleted
                                 : change_kind::modified});
  auto made = (*repository)->commit(paths, what.message, ports_.clock.now());
  if (!made)
    return fail(std::move(made.error()));
  if (!*made)
    return fail(errc::conflict, "nothing differs from HEAD: somebody else committed the patch");
  return **made;
}

} // namespace boyd::improve
