#include "boyd/improve/undo.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/improve/patch.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace boyd::improve {

namespace {

using json = nlohmann::ordered_json;
using action_t = planned_change::action_t;

constexpr const char* kept_journal = "kept.json";
constexpr std::size_t journal_bytes = std::size_t{1} << 20;

bool is_file(const tree_entry& e, const std::string& hash) {
  return e.kind == file_kind::regular && sha256_hex(e.content) == hash;
}

/// A word of a shell's command line.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// As the cycle made it, permissions too.
bool is_ours(const tree_entry& e, const undo_step& s) {
  return is_file(e, s.after_hash) && e.mode == s.mode;
}

} // namespace

std::string journal_json(const undo_journal& j) {
  json steps = json::array();
  for (const auto& s : j.steps)
    steps.push_back({{"action", name_of(s.action)},
                     {"path", s.path},
                     {"staged", s.staged},
                     {"before", s.before_hash},
                     {"after", s.after_hash},
                     {"mode", s.mode}});
  return json{{"schema", "boyd.undo/1"},
              {"cycle_id", j.cycle_id},
              {"directories", j.directories},
              {"steps", std::move(steps)}}
             .dump(1) +
         "\n";
}

result<undo_journal> read_journal(std::string_view text) {
  const auto mended = mend_json(text);
  if (!mended)
    return fail(mended.error());
  try {
    const auto j = json::parse(mended->text);
    undo_journal out;
    out.cycle_id = j.at("cycle_id");
    out.directories = j.at("directories").get<std::vector<std::string>>();
    for (const auto& s : j.at("steps")) {
      const std::string name = s.at("action");
      const auto action = name == "create"   ? action_t::create
                          : name == "delete" ? action_t::remove
                                             : action_t::modify;
      out.steps.push_back(
          {action, s.at("path"), s.at("staged"), s.at("before"), s.at("after"), s.at("mode")});
    }
    return out;
  } catch (const json::exception& e) {
    return fail(errc::corrupt, std::string("the undo journal cannot be read: ") + e.what());
  }
}

undo_log::undo_log(std::string root, std::string outputs, file_system& files, work_tree& tree)
    : root_(std::move(root)), outputs_(std::move(outputs)), files_(files), tree_(tree) {}

std::string undo_log::directory_of(const std::string& cycle_id) const {
  return outputs_ + "/undo/" + cycle_id;
}

std::string undo_log::journal_of(const std::string& cycle_id) const {
  return directory_of(cycle_id) + "/journal.json";
}

std::string undo_log::staged(const std::string& cycle_id, const undo_step& s) const {
  return directory_of(cycle_id) + "/" + s.staged;
}

result<undo_journal> undo_log::load(const std::string& cycle_id) {
  auto text = files_.read(journal_of(cycle_id), journal_bytes);
  if (!text)
    return fail(std::move(text.error()));
  auto j = read_journal(*text);
  if (!j)
    j.error().where = journal_of(cycle_id);
  return j;
}

result<undo_journal> undo_log::plan(const std::string& cycle_id, const accepted_patch& patch) {
  undo_journal j;
  j.cycle_id = cycle_id;
  for (const auto& c : patch.changes) {
    j.steps.push_back({c.action, c.path, std::to_string(j.steps.size()), c.before_hash,
                       c.action == action_t::remove ? std::string() : sha256_hex(c.after), c.mode});
    if (c.action != action_t::create)
      continue;
    for (auto slash = c.path.find('/'); slash != c.path.npos; slash = c.path.find('/', slash + 1)) {
      const auto directory = c.path.substr(0, slash);
      const auto there = tree_.look(root_, directory, patched_file_bytes);
      if (!there)
        return fail(there.error());
      if (there->kind == file_kind::missing &&
          std::ranges::find(j.directories, directory) == j.directories.end())
        j.directories.push_back(directory);
    }
  }
  return j;
}

result<void> undo_log::apply(const std::string& cycle_id, const accepted_patch& patch) {
  const auto open = files_.stat(journal_of(cycle_id));
  if (!open || open->kind != file_kind::missing)
    return fail(errc::conflict, "the cycle has applied a patch already", journal_of(cycle_id),
                "take it back first: --resume");
  auto j = plan(cycle_id, patch);
  if (!j)
    return fail(std::move(j.error()));
  if (auto done = clean(cycle_id); !done)
    return done;
  if (auto done = files_.make_directories(directory_of(cycle_id)); !done)
    return done;
  for (std::size_t i = 0; i < patch.changes.size(); ++i)
    if (const auto& c = patch.changes[i]; c.action != action_t::remove)
      if (auto done = tree_.stage(staged(cycle_id, j->steps[i]), c.after, c.mode); !done)
        return done;
  if (auto done = files::write_atomic(files_, journal_of(cycle_id), journal_json(*j)); !done)
    return done;
  auto made = make_changes(*j);
  if (made)
    return made;
  if (const auto back = roll_back(cycle_id); !back)
    return fail(back.error().code,
                made.error().what + "; taking it back failed: " + back.error().what,
                back.error().where, "run it again with --resume");
  return made;
}

result<void> undo_log::make_changes(const undo_journal& j) {
  for (const auto& d : j.directories)
    if (auto done = tree_.make_directory(root_, d); !done)
      return done;
  for (const auto& s : j.steps)
    if (auto done = make_change(j, s); !done)
      return done;
  return sync(j);
}

result<void> undo_log::make_change(const undo_journal& j, const undo_step& s) {
  const auto moved = [&] {
    return fail(errc::conflict, "the file is not what the patch was made for", s.path,
                "somebody changed it meanwhile");
  };
  const auto copy = staged(j.cycle_id, s);
  if (s.action == action_t::create) {
    auto done = tree_.move_in(root_, s.path, copy);
    return !done && done.error().code == errc::already_exists ? moved() : done;
  }
  auto done = s.action == action_t::modify ? tree_.exchange(root_, s.path, copy)
                                           : tree_.move_out(root_, s.path, copy);
  if (!done)
    return done.error().code == errc::not_found ? moved() : done;
  const auto old = tree_.look_staged(copy, patched_file_bytes);
  if (old && is_file(*old, s.before_hash) && old->links == 1)
    return {};
  // It changed after the gate had read it: it goes back whole, whatever it is.
  done = s.action == action_t::modify ? tree_.exchange(root_, s.path, copy)
                                      : tree_.move_in(root_, s.path, copy);
  return done ? moved() : done;
}

result<void> undo_log::sync(const undo_journal& j) {
  for (const auto& s : j.steps)
    if (auto done = tree_.sync_directory_of(root_, s.path);
        !done && done.error().code != errc::not_found)
      return done;
  return files_.sync_directory(directory_of(j.cycle_id));
}

result<bool> undo_log::stands(const std::string& cycle_id) {
  const auto j = load(cycle_id);
  if (!j && j.error().code == errc::not_found)
    return false;
  if (!j)
    return fail(j.error());
  for (const auto& s : j->steps) {
    const auto here = tree_.look(root_, s.path, patched_file_bytes);
    if (!here)
      return fail(here.error());
    const bool ours =
        s.action == action_t::remove ? here->kind == file_kind::missing : is_ours(*here, s);
    if (!ours)
      return false;
  }
  return true;
}

result<bool> undo_log::take_back_modified(const undo_journal& j, const undo_step& s) {
  const auto copy = staged(j.cycle_id, s);
  const auto old = tree_.look_staged(copy, patched_file_bytes);
  if (!old)
    return fail(old.error());
  if (is_file(*old, s.after_hash) || old->kind == file_kind::missing)
    return true; // it was not changed, or has been put back
  auto here = tree_.look(root_, s.path, patched_file_bytes);
  if (!here && here.error().code != errc::limit_exceeded && here.error().code != errc::refused)
    return fail(here.error());
  if (!here || !is_ours(*here, s))
    return here && is_file(*here, s.before_hash);
  if (auto done = tree_.exchange(root_, s.path, copy); !done)
    return fail(done.error());
  const auto out = tree_.look_staged(copy, patched_file_bytes);
  if (out && is_ours(*out, s))
    return true;
  // Somebody wrote to it in this very moment: that stays.
  if (auto done = tree_.exchange(root_, s.path, copy); !done)
    return fail(done.error());
  return false;
}

result<bool> undo_log::take_back_created(const undo_journal& j, const undo_step& s) {
  const auto copy = staged(j.cycle_id, s);
  const auto left = tree_.look_staged(copy, patched_file_bytes);
  if (!left)
    return fail(left.error());
  if (left->kind != file_kind::missing)
    return true; // it was not made, or has been taken out
  const auto here = tree_.look(root_, s.path, patched_file_bytes);
  if (!here && here.error().code != errc::limit_exceeded && here.error().code != errc::refused)
    return fail(here.error());
  if (!here || !is_ours(*here, s))
    return here && here->kind == file_kind::missing;
  if (auto done = tree_.move_out(root_, s.path, copy); !done)
    return fail(done.error());
  const auto out = tree_.look_staged(copy, patched_file_bytes);
  if (out && is_ours(*out, s))
    return true;
  if (auto done = tree_.move_in(root_, s.path, copy); !done)
    return fail(done.error());
  return false;
}

result<bool> undo_log::take_back_removed(const undo_journal& j, const undo_step& s) {
  const auto copy = staged(j.cycle_id, s);
  const auto old = tree_.look_staged(copy, patched_file_bytes);
  if (!old)
    return fail(old.error());
  if (old->kind == file_kind::missing)
    return true; // it was not removed, or has been put back
  auto done = tree_.move_in(root_, s.path, copy);
  if (!done && done.error().code != errc::already_exists)
    return fail(std::move(done.error()));
  return done.has_value();
}

result<bool> undo_log::take_back(const undo_journal& j, const undo_step& s) {
  switch (s.action) {
  case action_t::create:
    return take_back_created(j, s);
  case action_t::remove:
    return take_back_removed(j, s);
  case action_t::modify:
    break;
  }
  return take_back_modified(j, s);
}

/// With a shell's command that puts back what was there before: the journal's copies have times and
/// permissions, too.
std::string undo_log::about_kept(const undo_journal& j,
                                 const std::vector<std::string>& kept) const {
  std::string names;
  std::string command;
  for (const auto& s : j.steps) {
    if (std::ranges::find(kept, s.path) == kept.end())
      continue;
    names += (names.empty() ? "" : ", ") + s.path;
    const auto path = shell_quoted(root_ + "/" + s.path);
    const auto copy = shell_quoted(staged(j.cycle_id, s));
    command += command.empty() ? "" : " && ";
    command +=
        s.action == action_t::create ? "mv " + path + " " + copy : "cp -p " + copy + " " + path;
  }
  return "left alone, because a person, or a test run of the patch, changed it: " + names +
         "; to have what was there before, instead of what is there now: " + command;
}

result<undo_end> undo_log::roll_back(const std::string& cycle_id) {
  const auto j = load(cycle_id);
  if (!j && j.error().code == errc::not_found) {
    if (auto done = clean(cycle_id); !done)
      return fail(std::move(done.error()));
    return undo_end{};
  }
  if (!j)
    return fail(j.error());
  undo_end end;
  for (auto s = j->steps.rbegin(); s != j->steps.rend(); ++s) {
    const auto back = take_back(*j, *s);
    if (!back)
      return fail(back.error());
    if (!*back)
      end.kept.push_back(s->path);
  }
  for (auto d = j->directories.rbegin(); d != j->directories.rend(); ++d)
    if (auto done = tree_.remove_directory(root_, *d); !done)
      return fail(std::move(done.error()));
  if (auto done = sync(*j); !done)
    return fail(std::move(done.error()));
  if (end.kept.empty()) {
    if (auto done = forget(cycle_id); !done)
      return fail(std::move(done.error()));
    return end;
  }
  end.originals = directory_of(cycle_id);
  end.told = about_kept(*j, end.kept);
  if (auto done = files_.rename(journal_of(cycle_id), end.originals + "/" + kept_journal); !done)
    return fail(std::move(done.error()));
  return end;
}

result<void> undo_log::forget(const std::string& cycle_id) {
  auto done = files_.unlink(journal_of(cycle_id));
  if (!done && done.error().code != errc::not_found)
    return done;
  return clean(cycle_id);
}

/// Removes what lies in a directory without a journal: nothing of it is needed.
result<void> undo_log::clean(const std::string& cycle_id) {
  const auto directory = directory_of(cycle_id);
  const auto names = files_.list(directory);
  if (!names)
    return names.error().code == errc::not_found ? result<void>() : fail(names.error());
  if (std::ranges::find(*names, kept_journal) != names->end())
    return {}; // originals of what somebody changed
  for (const auto& name : *names)
    if (auto done = files_.unlink(directory + "/" + name); !done)
      return done;
  return files_.unlink(directory);
}

result<std::vector<std::string>> undo_log::open_cycles() {
  const auto names = files_.list(outputs_ + "/undo");
  if (!names && names.error().code == errc::not_found)
    return std::vector<std::string>{};
  if (!names)
    return fail(names.error());
  std::vector<std::string> open;
  for (const auto& name : *names) {
    const auto journal = files_.stat(journal_of(name));
    if (journal && journal->kind == file_kind::regular)
      open.push_back(name);
  }
  return open;
}

} // namespace boyd::improve
