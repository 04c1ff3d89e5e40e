#include "kept_patches.hpp"

#include "adapters/libgit2/kept_patch.hpp"
#include "adapters/posix/work_tree.hpp"
#include "adapters/unique_fd.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/improve/patch.hpp"
#include "boyd/improve/undo.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/queue/dispatch_ids.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <sys/file.h>
#include <tuple>
#include <utility>

namespace boyd::app {

namespace {

constexpr std::string_view name_begin = "patch-";
constexpr std::string_view name_end = ".diff";
constexpr std::size_t heading_bytes = std::size_t{16} << 10;
constexpr std::size_t mark_bytes = 64;
constexpr std::size_t longest_patch = patch_limit + heading_bytes;
/// As git has them.
constexpr unsigned plain_file = 0100644;
constexpr unsigned program_file = 0100755;

/// Holds the time at which the patch was applied.
std::string mark_of(const std::string& file) {
  return file + ".applied";
}

std::optional<std::int64_t> run_of(std::string_view name) {
  if (!name.starts_with(name_begin) || !name.ends_with(name_end) ||
      name.size() <= name_begin.size() + name_end.size())
    return std::nullopt;
  const auto digits =
      name.substr(name_begin.size(), name.size() - name_begin.size() - name_end.size());
  std::int64_t run = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), run);
  if (code != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  return run;
}

/// "boyd/AGENT/DISPATCH-RUN"
std::string agent_in(const std::string& branch) {
  const auto first = branch.find('/');
  const auto last = branch.rfind('/');
  return first == last ? std::string() : branch.substr(first + 1, last - first - 1);
}

std::optional<kept_patch> look_at(const std::string& directory, const std::string& dispatch,
                                  const std::string& name, file_system& files) {
  const auto run = run_of(name);
  if (!run)
    return std::nullopt;
  kept_patch p{dispatch, *run, {}, directory + "/" + name, {}, {}, {}};
  const auto info = files.stat(p.file);
  if (!info || info->kind != file_kind::regular)
    return std::nullopt;
  p.made_at = info->modified;
  if (const auto begin = files.read_part(p.file, 0, heading_bytes))
    if (auto heading = read_patch_heading(*begin)) {
      p.agent_id = agent_in(heading->branch);
      p.heading = std::move(*heading);
    }
  if (const auto mark = files.read(mark_of(p.file), mark_bytes))
    if (const auto at = parse_rfc3339(trim(*mark)))
      p.applied_at = *at;
  return p;
}

bool is_named(const kept_patch& p, const std::string& name) {
  return p.dispatch_id.starts_with(name) ||
         (queue::may_be_random_part(name) &&
          queue::random_part_of(p.dispatch_id).starts_with(name));
}

/// One application at a time in a repository, also of several processes.
result<adapters::unique_fd> lock_repository(const std::string& directory, file_system& files) {
  if (auto made = files.make_directories(directory); !made)
    return fail(std::move(made.error()));
  constexpr int private_file = 0600;
  const auto path = directory + "/lock";
  adapters::unique_fd fd(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, private_file));
  if (!fd)
    return fail(errc::io_error, "the repository cannot be locked", path, "check its permissions");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(errc::locked, "another patch is being applied to this repository", path,
                "try again when it is done");
  return fd;
}

std::string name_of(const kept_patch& p) {
  return p.dispatch_id + "-" + std::to_string(p.run);
}

result<void> mark_applied(const std::string& file, const ports& with) {
  return files::write_atomic(*with.files, mark_of(file), format_rfc3339(with.clock->now()) + "\n");
}

/// The patch of this home whose application has that name (name_of), when it is still there.
std::optional<std::string> file_of(const std::string& name, const home_layout& home,
                                   file_system& files) {
  const auto dash = name.rfind('-');
  if (dash == std::string::npos)
    return std::nullopt;
  auto file = home.execution(name.substr(0, dash)) + "/" + std::string(name_begin) +
              name.substr(dash + 1) + std::string(name_end);
  const auto info = files.stat(file);
  if (!info || info->kind != file_kind::regular)
    return std::nullopt;
  return file;
}

/// It is applied for good. A crash in between leaves what settle_open finishes.
result<void> conclude(improve::undo_log& log, const std::string& name, const std::string& file,
                      const ports& with) {
  if (auto marked = mark_applied(file, with); !marked)
    return marked;
  return log.forget(name);
}

constexpr unsigned readable = 0444;
constexpr unsigned executable = 0111;

bool is_program(unsigned mode) {
  constexpr unsigned by_owner = 0100;
  return (mode & by_owner) != 0;
}

unsigned permissions_of(unsigned git_mode) {
  constexpr unsigned for_everybody = 0777;
  return git_mode & for_everybody;
}

/// What the file has here, but executable or not as the patch wants it: git knows no more of it.
unsigned mode_for(const adapters::patched_file& f, unsigned here) {
  if (f.mode_after == f.mode_before || is_program(f.mode_after) == is_program(here))
    return here;
  return is_program(f.mode_after) ? here | ((here & readable) >> 2U) : here & ~executable;
}

/// What becomes of one file, or why it cannot.
class file_plan {
 public:
  file_plan(const std::string& root, work_tree& tree) : root_(root), tree_(tree) {}

  result<void> add(const adapters::patched_file& f) {
    for (const auto mode : {f.mode_before, f.mode_after})
      if (mode != 0 && mode != plain_file && mode != program_file)
        return conflict(f, "is a link or a submodule");
    auto here = tree_.look(root_, f.path, improve::patched_file_bytes);
    if (!here && here.error().code == errc::refused)
      return conflict(f, "lies behind a link");
    if (!here && here.error().code == errc::limit_exceeded)
      return conflict(f, "is larger than 4 MiB");
    if (!here)
      return fail(std::move(here.error()));
    if (here->kind != file_kind::missing && here->kind != file_kind::regular)
      return conflict(f, "is no file here");
    if (here->links > 1)
      return conflict(f, "has a second name (hard link)");
    if (here->kind == file_kind::missing)
      return missing(f);
    return f.mode_after == 0 ? remove(f, *here) : change(f, *here);
  }

  applied_patch told;
  improve::accepted_patch wanted;
  std::vector<std::string> conflicts; ///< "a.txt changed here"

 private:
  result<void> conflict(const adapters::patched_file& f, const std::string& why) {
    conflicts.push_back(f.path + " " + why);
    return {};
  }

  result<void> missing(const adapters::patched_file& f) {
    if (f.mode_after == 0)
      told.same.push_back(f.path);
    else if (f.mode_before != 0)
      return conflict(f, "is gone");
    else
      want(f, improve::planned_change::action_t::create, {}, permissions_of(f.mode_after), f.after);
    return {};
  }

  result<void> remove(const adapters::patched_file& f, const tree_entry& here) {
    if (here.content != f.before)
      return conflict(f, "has changed, and would be removed");
    want(f, improve::planned_change::action_t::remove, here.content, 0, {});
    return {};
  }

  result<void> change(const adapters::patched_file& f, const tree_entry& here) {
    const auto mode = mode_for(f, here.mode);
    if (here.content == f.after && mode == here.mode) {
      told.same.push_back(f.path);
      return {};
    }
    if (f.mode_before == 0 && here.content != f.after)
      return conflict(f, "is there already");
    auto content = here.content == f.before
                       ? std::optional(f.after)
                       : adapters::merge_contents(f.before, here.content, f.after);
    if (!content)
      return conflict(f, "has changed at the same place");
    if (here.content != f.before)
      told.merged.push_back(f.path);
    want(f, improve::planned_change::action_t::modify, here.content, mode, std::move(*content));
    return {};
  }

  void want(const adapters::patched_file& f, improve::planned_change::action_t action,
            std::string_view before, unsigned mode, std::string after) {
    const bool creates = action == improve::planned_change::action_t::create;
    wanted.changes.push_back(
        {f.path, action, creates ? std::string() : sha256_hex(before), mode, std::move(after)});
    told.changed.push_back(f.path);
  }

  const std::string& root_;
  work_tree& tree_;
};

tl::unexpected<error> does_not_fit(const kept_patch& p, const std::vector<std::string>& why) {
  std::string text;
  for (const auto& w : why)
    text += (text.empty() ? "" : "; ") + w;
  return fail(errc::conflict, "the patch does not fit, nothing was changed: " + text,
              p.heading->repository,
              "commit or undo these changes and apply it again, or merge it by hand: git apply "
              "--3way " +
                  p.file);
}

/// Takes back what a crash left half done, and notes what was whole. True: this very patch was.
result<bool> settle_open(improve::undo_log& log, const kept_patch& p, const home_layout& home,
                         const ports& with) {
  bool was_whole = false;
  const auto open = log.open_cycles();
  if (!open)
    return fail(open.error());
  for (const auto& name : *open) {
    const auto whole = log.stands(name);
    if (!whole)
      return fail(whole.error());
    was_whole = was_whole || (*whole && name == name_of(p));
    if (*whole) {
      const auto file = file_of(name, home, *with.files);
      if (auto done = file ? conclude(log, name, *file, with) : log.forget(name); !done)
        return fail(std::move(done.error()));
    } else if (const auto back = log.roll_back(name); !back) {
      return fail(back.error());
    }
  }
  return was_whole;
}

error cut_error(const kept_patch& p, const std::string& text) {
  const auto& h = *p.heading;
  const auto size =
      std::to_string(text.size() - to_text(h).size()) + " of " + std::to_string(h.bytes) + " bytes";
  if (!h.hash.empty())
    return {errc::corrupt, "the patch is not as it was made (" + size + ")", p.file,
            "discard it and run the agent again: boyd patches discard " + p.dispatch_id};
  error e{errc::refused,
          "the patch is cut: a file is over 8 MiB, or all of it over 16 MiB (" + size + ")", p.file,
          "run the agent again, with smaller changes or a longer .gitignore"};
  if (h.on_branch)
    e.next = "all of the change is on a branch of " + h.repository +
             "; take it from there: git merge --squash " + h.branch;
  return e;
}

} // namespace

result<std::vector<kept_patch>> list_patches(const home_layout& home, file_system& files) {
  std::vector<kept_patch> all;
  const auto dispatches = files.list(home.executions());
  if (!dispatches && dispatches.error().code == errc::not_found)
    return all;
  if (!dispatches)
    return fail(dispatches.error());
  for (const auto& d : *dispatches) {
    const auto names = files.list(home.execution(d));
    for (const auto& name : names ? *names : std::vector<std::string>{})
      if (auto p = look_at(home.execution(d), d, name, files))
        all.push_back(std::move(*p));
  }
  std::ranges::sort(all, std::ranges::greater{}, [](const kept_patch& p) {
    return std::tuple(p.made_at, p.dispatch_id, p.run);
  });
  return all;
}

result<kept_patch> find_patch(const std::vector<kept_patch>& all, const std::string& name,
                              const std::string& run) {
  std::vector<const kept_patch*> found;
  for (const auto& p : all)
    if (run.empty() || run == std::to_string(p.run))
      if (name == "last" || p.agent_id == name || is_named(p, name))
        found.push_back(&p);
  if (found.empty())
    return fail(errc::not_found,
                "no patch has this name: " + name + (run.empty() ? "" : ", attempt " + run), {},
                "boyd patches ls --all");
  const bool is_role = name == "last" || found.front()->agent_id == name;
  for (const auto* p : found)
    if (!is_role && p->dispatch_id != found.front()->dispatch_id)
      return fail(errc::invalid_argument, "more than one run has an id with " + name, {},
                  "write more of the id: boyd patches ls --all");
  const auto open = std::ranges::find_if(found, [](const kept_patch* p) { return !p->applied_at; });
  return open == found.end() ? *found.front() : **open;
}

result<std::string> read_patch(const kept_patch& p, file_system& files) {
  return files.read(p.file, longest_patch);
}

result<applied_patch> apply_patch(const kept_patch& p, const home_layout& home, const ports& with) {
  if (!p.heading)
    return fail(errc::refused, "the patch does not say which repository it is for", p.file,
                "apply it by hand: git apply " + p.file);
  const auto& repo = p.heading->repository;
  const auto git = repo + "/.git";
  const auto info = with.files->stat(git);
  if (!info || info->kind != file_kind::directory)
    return fail(errc::not_found, "no git repository with a .git directory", repo,
                "apply it by hand: git apply " + p.file);
  const auto text = read_patch(p, *with.files);
  if (!text)
    return fail(text.error());
  if (!adapters::is_whole_patch(*p.heading, *text))
    return fail(cut_error(p, *text));
  const auto patched = adapters::read_patched_files(repo, p.heading->base, *text, p.heading->files);
  if (!patched)
    return fail(patched.error());
  const auto notes = git + "/boyd-patches";
  const auto lock = lock_repository(notes, *with.files);
  if (!lock)
    return fail(lock.error());
  const auto tree = adapters::make_work_tree();
  improve::undo_log log(repo, notes, *with.files, *tree);
  const auto was_whole = settle_open(log, p, home, with);
  if (!was_whole)
    return fail(was_whole.error());
  file_plan plan(repo, *tree);
  if (*was_whole) {
    for (const auto& f : *patched)
      plan.told.same.push_back(f.path);
    return std::move(plan.told);
  }
  for (const auto& f : *patched)
    if (auto added = plan.add(f); !added)
      return fail(std::move(added.error()));
  if (!plan.conflicts.empty())
    return does_not_fit(p, plan.conflicts);
  if (!plan.wanted.changes.empty())
    if (auto done = log.apply(name_of(p), plan.wanted); !done)
      return fail(std::move(done.error()));
  if (auto done = conclude(log, name_of(p), p.file, with); !done)
    return fail(std::move(done.error()));
  return std::move(plan.told);
}

result<void> discard_patch(const kept_patch& p, file_system& files) {
  if (auto gone = files.unlink(p.file); !gone)
    return gone;
  if (p.applied_at)
    return files.unlink(mark_of(p.file));
  return {};
}

} // namespace boyd::app
