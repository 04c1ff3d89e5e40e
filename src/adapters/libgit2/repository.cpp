#include "repository.hpp"

#include "git_internal.hpp"
#include "inside_internal.hpp"
#include "spare_locks.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace boyd::adapters {

namespace {

/// An opening takes some two hundred system calls; the calls of a cycle take less than this.
constexpr seconds opening_life{2};

class git_work_tree final : public repository {
 public:
  explicit git_work_tree(git::location at) : at_(std::move(at)) {}
  git_work_tree(const git_work_tree&) = delete;
  git_work_tree& operator=(const git_work_tree&) = delete;
  ~git_work_tree() override { git::spares().drop_all(at_.git_dir); }

  result<std::vector<path_change>> changes() override {
    return with([this](const git::session& s) { return git::changes(s, left_out_); });
  }

  std::vector<std::string> left_out() const override { return left_out_; }

  std::vector<std::string> remarks() const override { return notes_.texts(); }

  void filter_contents(content_filter filter) override {
    filter_ = std::move(filter);
    session_.reset();
  }

  std::vector<std::string> filtered() const override { return filtered_; }

  result<std::size_t> tracked_files() override {
    return with([](const git::session& s) { return git::tracked_files(s); });
  }

  result<std::vector<std::string>> tracked_paths() override {
    return with([](const git::session& s) { return git::tracked_paths(s); });
  }

  result<bool> ignores(const std::string& path) override {
    return with([&](const git::session& s) { return git::ignores(s, path); });
  }

  result<void> stage(const std::vector<path_change>& paths) override {
    return with([&](const git::session& s) { return git::stage(s, paths); });
  }

  result<std::optional<std::string>> commit(const std::vector<path_change>& paths,
                                            const std::string& message, utc_time when) override {
    return with([&](const git::session& s) { return git::commit(s, paths, message, when); });
  }

  result<commit_pair> commit_two(const std::vector<path_change>& paths,
                                 const earlier_version& version, const std::string& earlier_message,
                                 const std::string& later_message, utc_time when) override {
    return with([&](const git::session& s) {
      return git::commit_two(s, paths, version, earlier_message, later_message, when);
    });
  }

  result<std::vector<commit_info>> history(const std::string& path, std::size_t n) override {
    return with([&](const git::session& s) { return git::history(s, path, n); });
  }

  result<std::string> diff(const std::string& a, const std::string& b) override {
    return with_new([&](const git::session& s) { return git::diff(s, a, b); });
  }

  result<std::string> read_at(const std::string& revision, const std::string& path) override {
    return with_new([&](const git::session& s) { return git::read_at(s, revision, path); });
  }

  result<std::string> commit_at(utc_time t) override {
    return with_new([&](const git::session& s) { return git::commit_at(s, t); });
  }

  result<bool> is_kept(const std::string& hash) override {
    return with([&](const git::session& s) { return git::is_kept(s, hash); });
  }

  result<std::optional<std::string>> head() override {
    return with([](const git::session& s) -> result<std::optional<std::string>> {
      const auto commit = git::head_commit(s);
      if (!commit)
        return fail(commit.error());
      if (!*commit)
        return std::nullopt;
      return git::hex(*git_commit_id(commit->get()));
    });
  }

  result<std::size_t> loose_objects() override {
    return with_new([](const git::session& s) { return git::loose_objects(s); });
  }

  result<std::size_t> pack() override {
    return with_new([](const git::session& s) { return git::pack(s); });
  }

 private:
  using clock = std::chrono::steady_clock;

  /// The calls of one cycle boundary come together and share an opening. A failure that an old
  /// opening may have caused (a pack that a person's gc took away) is tried once on a new one;
  /// every call may be repeated, for one that failed changed nothing that it would do again.
  template <class F>
  auto with(F&& call) -> decltype(call(std::declval<const git::session&>())) {
    const bool reused = session_ && clock::now() - opened_ < opening_life && git::is_there(at_);
    if (auto usable = reused ? git::check_inside(at_.git_dir) : open(); !usable)
      return fail(std::move(usable.error()));
    if (auto sure = git::settle_doubt(*session_); !sure)
      return fail(std::move(sure.error()));
    auto answer = call(*session_);
    if (answer || answer.error().code != errc::repository_unavailable)
      return answer;
    session_.reset();
    if (!reused)
      return answer;
    if (auto opened = open(); !opened)
      return fail(std::move(opened.error()));
    return call(*session_);
  }

  /// libgit2 compares with the index that it read first: questions about the past get their own.
  template <class F>
  auto with_new(F&& call) -> decltype(call(std::declval<const git::session&>())) {
    auto session = git::open_session(at_, notes_);
    if (!session)
      return fail(std::move(session.error()));
    if (auto sure = git::settle_doubt(*session); !sure)
      return fail(std::move(sure.error()));
    return call(*session);
  }

  result<void> open() {
    session_.reset();
    auto session = git::open_session(at_, notes_);
    if (!session)
      return fail(std::move(session.error()));
    session_.emplace(std::move(*session));
    if (filter_) {
      session_->filter = &filter_;
      session_->filtered = &filtered_;
    }
    opened_ = clock::now();
    return {};
  }

  git::location at_;
  std::optional<git::session> session_;
  clock::time_point opened_{};
  std::vector<std::string> left_out_;
  git::remarks notes_;
  content_filter filter_;
  std::vector<std::string> filtered_;
};

class git_repositories final : public repository_provider {
 public:
  // libgit2 reads the machine's certificates when it starts, a tenth of a short command's time: not
  // before there is a repository to look at.
  result<std::unique_ptr<repository>> init(const std::string& path,
                                           const git_identity& who) override {
    git::start_library();
    if (auto made = git::create(path, who); !made)
      return fail(std::move(made.error()));
    return open(path, who);
  }

  result<std::unique_ptr<repository>> open(const std::string& path,
                                           const git_identity& who) override {
    git::start_library();
    auto at = git::locate(path, who);
    if (!at)
      return fail(std::move(at.error()));
    return std::make_unique<git_work_tree>(std::move(*at));
  }

  std::optional<git_project> project_of(const std::string& directory) override {
    git::start_library();
    git::repository_ptr repo;
    if (git::fill(repo, [&](auto** out) { return git::open_repository(out, directory, 0); }) != 0 ||
        git_repository_is_bare(repo.get()) != 0)
      return std::nullopt;
    std::error_code failed;
    const auto tree = std::filesystem::canonical(git_repository_workdir(repo.get()), failed);
    const auto real = std::filesystem::canonical(directory, failed);
    git_oid at;
    if (failed || git_reference_name_to_id(&at, repo.get(), "HEAD") != 0 || !go_to_root(*repo, at))
      return std::nullopt;
    std::array<char, GIT_OID_HEXSZ + 1> hash{};
    git_oid_tostr(hash.data(), hash.size(), &at);
    const auto inside = real.lexically_relative(tree).string();
    return git_project{hash.data(), inside == "." ? std::string() : inside};
  }

 private:
  /// From a commit along its first parents.
  static bool go_to_root(git_repository& repo, git_oid& at) {
    for (;;) {
      git::commit_ptr commit;
      if (git::fill(commit, [&](auto** out) { return git_commit_lookup(out, &repo, &at); }) != 0)
        return false;
      const auto* parent = git_commit_parent_id(commit.get(), 0);
      if (parent == nullptr)
        return true;
      git_oid_cpy(&at, parent);
    }
  }
};

} // namespace

result<void> check_place_of_repository(const std::string& path) {
  git::start_library();
  return git::check_place(path);
}

std::shared_ptr<repository_provider> make_git_repositories() {
  return std::make_shared<git_repositories>();
}

} // namespace boyd::adapters
