#include "boyd/state/versioned_store.hpp"

#include "boyd/core/ids.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "guarded_files.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::state {

namespace {

constexpr std::string_view cycle_trailer = "Boyd-Cycle";
/// A cycle may be named by so many of its first characters, when no other begins like it.
constexpr std::size_t shortest_cycle_prefix = 8;
constexpr std::string_view node_trailer = "Boyd-Node";
constexpr std::string_view graph_trailer = "Boyd-Graph-Head";
constexpr std::string_view late_trailer = "Boyd-Late";

bool is_relative_name(const std::string& file) {
  if (file.empty() || file.find('\0') != std::string::npos)
    return false;
  for (const auto part : split(file, '/'))
    if (part.empty() || part == "." || part == ".." || part == ".git")
      return false;
  return true;
}

std::string one_line(std::string_view text) {
  std::string line(trim(text));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r' || c == '\0'; }, ' ');
  return line;
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

result<std::optional<std::string>> commit_everything(repository& repo, const std::string& path,
                                                     const std::string& message, utc_time when) {
  const auto changes = repo.changes();
  if (!changes)
    return fail(changes.error());
  if (changes->empty())
    return std::nullopt;
  if (auto allowed = check_deletions(repo, *changes, path); !allowed)
    return fail(std::move(allowed.error()));
  return repo.commit(*changes, message, when);
}

/// Of two commits of one cycle: the one with this subject, too.
bool is_boundary(const commit_info& c, std::string_view subject, const std::string& cycle) {
  return c.subject == subject && std::ranges::any_of(c.trailers, [&](const auto& t) {
           return t.first == cycle_trailer && t.second == cycle;
         });
}

} // namespace

std::string commit_message(std::string_view subject, const commit_trailers& trailers) {
  std::string text = one_line(subject) + "\n";
  std::string lines;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty())
      lines += std::string(key) + ": " + one_line(value) + "\n";
  };
  add(cycle_trailer, trailers.cycle);
  add(node_trailer, trailers.node);
  add(graph_trailer, trailers.graph_head);
  add(late_trailer, trailers.late);
  return lines.empty() ? text : text + "\n" + lines;
}

versioned_store::versioned_store(file_system& files, repository_provider& repositories,
                                 clock_port& clock, versioned_store_options options)
    : files_(files), repositories_(repositories), clock_(clock), options_(std::move(options)) {}

versioned_store::~versioned_store() = default;

// -- the repository, and doing without ------------------------------------------------------------

void versioned_store::degrade(const error& why) {
  repository_.reset();
  backoff_ = backoff_ == milliseconds{0} ? limits::backoff_base
                                         : std::min(backoff_ * 2, limits::backoff_cap);
  retry_at_ = clock_.steady() + backoff_;
  why_ = why;
  health_.reason = to_string(why);
  if (health_.degraded)
    return;
  health_.degraded = true;
  health_.since = clock_.now();
  ++health_.degradations;
}

/// A repository that was lost is opened anew by the next call.
void versioned_store::notice(const error& why) {
  if (why.code == errc::repository_unavailable)
    degrade(why);
}

void versioned_store::note_failed_commit(const error& why) {
  ++health_.failed_commits;
  health_.last_error = to_string(why);
}

error versioned_store::out_of_service() const {
  return {errc::repository_unavailable, "history is off: " + why_.what,
          why_.where.empty() ? options_.path : why_.where,
          why_.next.empty() ? "files are still written; Boyd tries again by itself" : why_.next};
}

result<repository*> versioned_store::repository_now() {
  if (repository_)
    return repository_.get();
  if (health_.degraded && clock_.steady() < retry_at_)
    return fail(out_of_service());
  auto opened = repositories_.open(options_.path, options_.who);
  if (!opened) {
    degrade(opened.error());
    return fail(out_of_service());
  }
  take_repository(std::move(*opened));
  return repository_.get();
}

void versioned_store::take_repository(std::unique_ptr<repository> opened) {
  repository_ = std::move(opened);
  if (options_.filter)
    repository_->filter_contents(options_.filter);
  backoff_ = milliseconds{0};
  health_.degraded = false;
  health_.reason.clear();
  health_.since.reset();
}

template <class F>
auto versioned_store::with_repository(F&& call) -> decltype(call(std::declval<repository&>())) {
  auto repo = repository_now();
  if (!repo)
    return fail(std::move(repo.error()));
  auto answer = call(**repo);
  if (!answer)
    notice(answer.error());
  return answer;
}

result<void> versioned_store::init() {
  if (auto made = files_.make_directories(options_.path); !made)
    return made;
  if (auto removed = files::remove_leftover_temporaries(files_, options_.path); !removed)
    spdlog::warn("cannot clean {}: {}", options_.path, to_string(removed.error()));
  // A process that was killed between a replacement and the directory's sync leaves a name that is
  // seen, and committed from now on, but goes with the power.
  if (auto synced = files_.sync_directory(options_.path); !synced)
    return synced;
  auto opened = repositories_.init(options_.path, options_.who);
  if (opened) {
    take_repository(std::move(*opened));
    return {};
  }
  if (opened.error().code == errc::refused)
    return fail(std::move(opened.error()));
  degrade(opened.error());
  return {};
}

// -- files ----------------------------------------------------------------------------------------

result<void> versioned_store::check(const std::string& file) {
  if (!is_relative_name(file))
    return fail(errc::invalid_argument, "not the name of a file in the store: " + file,
                options_.path, "use a path relative to the store, without . or ..: notes/today.md");
  const auto directory = files_.stat(options_.path);
  if (!directory)
    return fail(directory.error());
  if (directory->kind != file_kind::directory)
    return fail(errc::io_error, "state directory is missing", options_.path,
                "restore it; Boyd then uses it again by itself");
  return {};
}

result<std::string> versioned_store::read(const std::string& file) {
  if (auto usable = check(file); !usable)
    return fail(std::move(usable.error()));
  const auto info = files_.stat(path_of(file));
  if (!info)
    return fail(info.error());
  if (info->kind == file_kind::missing)
    return fail(errc::not_found, "no such file", path_of(file));
  return files_.read_below(options_.path, file, limits::revision_bytes);
}

/// `expected`: null, or what the file must still hold at the moment of the replacement (no value:
/// it must still be missing).
result<void> versioned_store::replace(const std::string& file, std::string_view bytes,
                                      const std::optional<std::string>* expected, bool sync_name) {
  const std::string path = path_of(file);
  if (const auto parent = parent_of(path); parent != options_.path)
    if (auto made = files_.make_directories(parent); !made)
      return made;
  files::atomic_options options;
  options.backup = options_.backup;
  options.sync_name = sync_name;
  const std::optional<std::string> missing;
  guarded_files guard(files_, path, expected == nullptr ? missing : *expected);
  file_system& through = expected == nullptr ? files_ : static_cast<file_system&>(guard);
  auto written = files::write_atomic(through, path, bytes, options);
  if (written && sync_name)
    sure_.insert(file);
  else
    sure_.erase(file);
  return written;
}

/// The bytes that are wanted may stand there because an earlier try, or a worker before this one,
/// came as far as the last step, which makes the name durable, and failed in it or left it to a
/// commit that was not made.
result<void> versioned_store::make_seen_durable(const std::string& file) {
  if (sure_.contains(file))
    return {};
  auto synced = files_.sync_directory(parent_of(path_of(file)));
  if (synced)
    sure_.insert(file);
  return synced;
}

void versioned_store::snapshot() {
  if (!options_.auto_commit)
    return;
  const auto done = with_repository([&](repository& repo) {
    return commit_everything(repo, options_.path, commit_message(snapshot_subject, {}),
                             clock_.now());
  });
  const bool failed = !done && !health_.degraded;
  if (failed)
    note_failed_commit(done.error());
  if (failed && !snapshot_failing_)
    spdlog::warn("no snapshot of {}: {}", options_.path, to_string(done.error()));
  snapshot_failing_ = failed;
}

void versioned_store::stage(const std::string& file) {
  const auto staged = with_repository([&](repository& repo) {
    return repo.stage({{file, change_kind::modified}});
  });
  const bool failed = !staged && !health_.degraded;
  if (failed && !staging_failing_)
    spdlog::warn("cannot stage {}: {}", path_of(file), to_string(staged.error()));
  staging_failing_ = failed;
}

result<void> versioned_store::write(const std::string& file, std::string_view bytes) {
  if (auto usable = check(file); !usable)
    return usable;
  snapshot();
  if (auto written = replace(file, bytes, nullptr); !written)
    return written;
  stage(file);
  return {};
}

result<void> versioned_store::update(const std::string& file, const edit_function& edit,
                                     snapshot_first first, staging staged) {
  bool changed = false;
  const auto noted = [&](std::string_view current) {
    auto text = edit(current);
    changed = text && *text != current;
    return text;
  };
  auto written = edit_file(
      file, noted, [first](std::string_view) { return first == snapshot_first::yes; }, true);
  if (written && changed && staged == staging::at_once)
    stage(file);
  return written;
}

result<void> versioned_store::update_before_commit(const std::string& file,
                                                   const edit_function& edit,
                                                   const overwrites_function& overwrites) {
  return edit_file(file, edit, overwrites, false);
}

result<void> versioned_store::edit_file(const std::string& file, const edit_function& edit,
                                        const overwrites_function& overwrites, bool sync_name) {
  if (auto usable = check(file); !usable)
    return usable;
  for (int attempt = 0; attempt < limits::update_attempts; ++attempt) {
    std::optional<std::string> before;
    if (auto current = read(file))
      before = std::move(*current);
    else if (current.error().code != errc::not_found)
      return fail(std::move(current.error()));
    const auto edited = edit(before ? std::string_view(*before) : std::string_view());
    if (!edited)
      return fail(edited.error());
    if (before && *edited == *before)
      return make_seen_durable(file);
    // A file that was changed at the first attempt is somebody's work: it goes into the history
    // before it is edited further, whatever follows.
    if (attempt > 0 || overwrites(before ? std::string_view(*before) : std::string_view()))
      snapshot();
    auto written = replace(file, *edited, &before, sync_name);
    if (written || written.error().code != errc::conflict)
      return written;
  }
  return fail(errc::conflict, "the file kept changing during every attempt to write it",
              path_of(file), "stop the program that keeps writing it; the next write tries again");
}

result<bool> versioned_store::seed(const std::string& file, std::string_view bytes) {
  if (auto usable = check(file); !usable)
    return fail(std::move(usable.error()));
  const auto info = files_.stat(path_of(file));
  if (!info)
    return fail(info.error());
  if (info->kind != file_kind::missing)
    return false;
  const std::optional<std::string> missing;
  if (auto written = replace(file, bytes, &missing); !written) {
    if (written.error().code == errc::conflict)
      return false;
    return fail(std::move(written.error()));
  }
  stage(file);
  return true;
}

// -- history --------------------------------------------------------------------------------------

result<std::optional<std::string>> versioned_store::commit_now(std::string_view subject,
                                                               const commit_trailers& trailers,
                                                               bool even_empty) {
  const auto message = commit_message(subject, trailers);
  auto done = with_repository([&](repository& repo) {
    auto commit = commit_everything(repo, options_.path, message, clock_.now());
    note_left_out(repo.left_out());
    note_remarks(repo.remarks());
    note_filtered(repo.filtered());
    return commit && !*commit && even_empty ? repo.commit({}, message, clock_.now()) : commit;
  });
  if (done)
    health_.last_error.clear();
  else
    note_failed_commit(done.error());
  return done;
}

result<std::optional<std::string>> versioned_store::commit_all(std::string_view subject,
                                                               const commit_trailers& trailers) {
  return commit_now(subject, trailers, false);
}

result<std::string> versioned_store::commit_boundary(std::string_view subject,
                                                     const commit_trailers& trailers,
                                                     bool restarted) {
  auto standing = find_boundary(subject, trailers.cycle,
                                restarted ? boundary_search_restarted : boundary_search_repeated);
  if (!standing) {
    note_failed_commit(standing.error());
    return fail(std::move(standing.error()));
  }
  // An edit before a commit leaves its name to commit_two, in whose place this one may come.
  if (auto synced = files_.sync_directory(options_.path); !synced) {
    note_failed_commit(synced.error());
    return fail(std::move(synced.error()));
  }
  // Nothing was proved of what it stands on.
  sound_head_.reset();
  if (*standing) {
    watch(boundary_of(**standing, subject, trailers.cycle));
    if (restarted)
      snapshot();
    return std::move(**standing);
  }
  auto made = commit_now(subject, trailers, true);
  if (!made)
    return fail(std::move(made.error()));
  if (!*made)
    return fail(errc::bug, "no empty commit was created", options_.path);
  newest_.clear();
  watch(boundary_of(**made, subject, trailers.cycle));
  return std::move(**made);
}

/// What was just made need not be looked for on the disk, unless somebody moved HEAD in between.
void versioned_store::note_commits(const commit_pair& made, std::string_view earlier,
                                   std::string_view later, const std::string& cycle) {
  if (made.parent && made.parent == sound_head_)
    sound_head_ = made.later;
  else
    sound_head_.reset();
  if (made.parent ? newest_.empty() || newest_.front().hash != *made.parent : !newest_.empty())
    newest_.clear();
  else
    newest_.insert(newest_.begin(), {boundary_of(made.later, later, cycle),
                                     boundary_of(made.earlier, earlier, cycle)});
  newest_.resize(std::min(newest_.size(), boundary_search_repeated));
  watch(boundary_of(made.later, later, cycle));
}

commit_info versioned_store::boundary_of(const std::string& hash, std::string_view subject,
                                         const std::string& cycle) const {
  return {hash, clock_.now(), one_line(subject), {{std::string(cycle_trailer), one_line(cycle)}}};
}

result<commit_pair> versioned_store::commit_two_now(const std::string& earlier,
                                                    const std::string& later,
                                                    const earlier_version& version) {
  auto done = with_repository([&](repository& repo) -> result<commit_pair> {
    const auto changes = repo.changes();
    if (!changes)
      return fail(changes.error());
    if (auto allowed = check_deletions(repo, *changes, options_.path); !allowed)
      return fail(std::move(allowed.error()));
    auto made = repo.commit_two(*changes, version, earlier, later, clock_.now());
    note_left_out(repo.left_out());
    note_remarks(repo.remarks());
    note_filtered(repo.filtered());
    return made;
  });
  if (done)
    health_.last_error.clear();
  else
    note_failed_commit(done.error());
  return done;
}

result<std::string> versioned_store::commit_cycle(std::string_view earlier, std::string_view later,
                                                  const commit_trailers& trailers,
                                                  const earlier_version& version, bool restarted) {
  const auto newest = restarted ? boundary_search_restarted : boundary_search_repeated;
  for (const auto subject : {earlier, later}) {
    const auto standing = find_boundary(subject, trailers.cycle, newest);
    if (!standing) {
      note_failed_commit(standing.error());
      return fail(standing.error());
    }
    if (*standing)
      return commit_boundary(later, trailers, restarted);
  }
  auto made =
      commit_two_now(commit_message(earlier, trailers), commit_message(later, trailers), version);
  if (!made)
    return fail(std::move(made.error()));
  note_commits(*made, earlier, later, trailers.cycle);
  return std::move(made->later);
}

result<std::vector<commit_info>> versioned_store::newest_commits(std::size_t n) {
  if (n <= boundary_search_repeated && !newest_.empty()) {
    auto head = with_repository([](repository& repo) { return repo.head(); });
    if (!head)
      return fail(std::move(head.error()));
    if (*head == newest_.front().hash)
      return newest_;
  }
  auto commits = history({}, n);
  newest_.clear();
  if (commits)
    newest_.assign(commits->begin(),
                   commits->begin() + static_cast<std::ptrdiff_t>(std::min(n, commits->size())));
  newest_.resize(std::min(newest_.size(), boundary_search_repeated));
  return commits;
}

result<std::optional<std::string>> versioned_store::find_boundary(std::string_view subject,
                                                                  const std::string& cycle,
                                                                  std::size_t newest) {
  const auto commits = newest_commits(newest);
  if (!commits)
    return fail(commits.error());
  const auto wanted = one_line(subject);
  const auto found = std::ranges::find_if(
      *commits, [&](const commit_info& c) { return is_boundary(c, wanted, cycle); });
  return found == commits->end() ? std::nullopt : std::optional(found->hash);
}

result<std::vector<commit_info>> versioned_store::history(const std::string& file, std::size_t n) {
  return with_repository([&](repository& repo) { return repo.history(file, n); });
}

result<bool> versioned_store::has_changes() {
  return with_repository([this](repository& repo) -> result<bool> {
    const auto changes = repo.changes();
    if (!changes)
      return fail(changes.error());
    note_left_out(repo.left_out());
    note_remarks(repo.remarks());
    return !changes->empty();
  });
}

result<std::string> versioned_store::find_cycle(const std::string& cycle) {
  const auto commits = history({}, limits::history_search);
  if (!commits)
    return fail(commits.error());
  const bool may_be_prefix = cycle.size() >= shortest_cycle_prefix;
  std::string hash;
  std::string begins_so;
  bool several = false;
  for (const auto& c : *commits)
    for (const auto& [key, value] : c.trailers) {
      if (key != cycle_trailer)
        continue;
      if (value == cycle)
        return c.hash;
      if (!may_be_prefix || !value.starts_with(cycle))
        continue;
      several = several || (!hash.empty() && value != begins_so);
      begins_so = value;
      if (hash.empty())
        hash = c.hash;
    }
  if (several)
    return fail(errc::invalid_argument, "more than one cycle begins with " + cycle, options_.path,
                "use more characters; list the cycles with: boyd state log");
  if (hash.empty())
    return fail(errc::not_found, "no commit of that cycle", cycle);
  return hash;
}

result<std::string> versioned_store::resolve(const std::string& at) {
  if (at.empty())
    return fail(errc::invalid_argument, "no point in time given", options_.path,
                "use a cycle, a time (RFC 3339) or a commit");
  if (const auto time = parse_rfc3339(at))
    return with_repository([&](repository& repo) { return repo.commit_at(*time); });
  if (is_uuid(at))
    return find_cycle(at);
  // The port has no look-up of its own: a revision that can be compared with itself exists.
  const auto compared = with_repository([&](repository& repo) { return repo.diff(at, at); });
  if (compared)
    return at;
  if (compared.error().code == errc::repository_unavailable)
    return fail(compared.error());
  auto cycle = find_cycle(at);
  if (!cycle && cycle.error().code == errc::not_found)
    return fail(errc::not_found, "no such cycle, time or commit: " + at, options_.path,
                "list them with: boyd state log");
  return cycle;
}

result<std::string> versioned_store::read_at(const std::string& at, const std::string& file) {
  if (!is_relative_name(file))
    return fail(errc::invalid_argument, "not the name of a file in the store: " + file,
                options_.path);
  const auto commit = resolve(at);
  if (!commit)
    return fail(commit.error());
  return with_repository([&](repository& repo) { return repo.read_at(*commit, file); });
}

result<std::string> versioned_store::diff(const std::string& a, const std::string& b) {
  const auto from = resolve(a);
  if (!from)
    return fail(from.error());
  const auto to = b.empty() ? result<std::string>{std::string{}} : resolve(b);
  if (!to)
    return fail(to.error());
  return with_repository([&](repository& repo) { return repo.diff(*from, *to); });
}

result<std::size_t> versioned_store::maintain() {
  return with_repository([](repository& repo) -> result<std::size_t> {
    const auto loose = repo.loose_objects();
    if (!loose)
      return fail(loose.error());
    if (*loose < limits::pack_loose_objects)
      return std::size_t{0};
    return repo.pack();
  });
}

} // namespace boyd::state
