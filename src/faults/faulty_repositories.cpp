#include "boyd/faults/faulty_ports.hpp"

#include <utility>

namespace boyd::faults {

namespace {

tl::unexpected<error> as_unavailable(error e) {
  return fail(errc::repository_unavailable, std::move(e.what), {}, std::move(e.next));
}

class watched_repository final : public repository {
 public:
  explicit watched_repository(std::unique_ptr<repository> inner) : inner_(std::move(inner)) {}

  result<std::vector<path_change>> changes() override {
    return after("repository.changes", [this] { return inner_->changes(); });
  }
  std::vector<std::string> left_out() const override { return inner_->left_out(); }
  std::vector<std::string> remarks() const override { return inner_->remarks(); }
  void filter_contents(content_filter filter) override {
    inner_->filter_contents(std::move(filter));
  }
  std::vector<std::string> filtered() const override { return inner_->filtered(); }
  result<std::size_t> tracked_files() override {
    return after("repository.read", [this] { return inner_->tracked_files(); });
  }
  result<std::vector<std::string>> tracked_paths() override {
    return after("repository.read", [this] { return inner_->tracked_paths(); });
  }
  result<bool> ignores(const std::string& path) override {
    return after("repository.read", [&] { return inner_->ignores(path); });
  }
  result<void> stage(const std::vector<path_change>& paths) override {
    return after("repository.stage", [&] { return inner_->stage(paths); });
  }

  result<std::optional<std::string>> commit(const std::vector<path_change>& paths,
                                            const std::string& message, utc_time when) override {
    return around_commit([&] { return inner_->commit(paths, message, when); });
  }

  result<commit_pair> commit_two(const std::vector<path_change>& paths,
                                 const earlier_version& version, const std::string& earlier_message,
                                 const std::string& later_message, utc_time when) override {
    return around_commit(
        [&] { return inner_->commit_two(paths, version, earlier_message, later_message, when); });
  }

  result<std::vector<commit_info>> history(const std::string& path, std::size_t n) override {
    return after("repository.read", [&] { return inner_->history(path, n); });
  }
  result<std::string> diff(const std::string& a, const std::string& b) override {
    return after("repository.read", [&] { return inner_->diff(a, b); });
  }
  result<std::string> read_at(const std::string& revision, const std::string& path) override {
    return after("repository.read", [&] { return inner_->read_at(revision, path); });
  }
  result<std::string> commit_at(utc_time t) override {
    return after("repository.read", [&] { return inner_->commit_at(t); });
  }
  result<std::optional<std::string>> head() override {
    return after("repository.read", [this] { return inner_->head(); });
  }
  result<bool> is_kept(const std::string& hash) override {
    return after("repository.read", [&] { return inner_->is_kept(hash); });
  }
  result<std::size_t> loose_objects() override {
    return after("repository.read", [this] { return inner_->loose_objects(); });
  }
  result<std::size_t> pack() override {
    return after("repository.pack", [this] { return inner_->pack(); });
  }

 private:
  template <class Call>
  static auto around_commit(Call call) -> decltype(call()) {
    auto met = meet("repository.commit");
    if (!met)
      return as_unavailable(std::move(met.error()));
    if (met->what == action::delay)
      wait(met->delay);
    auto made = call();
    if (made && met->drops())
      return as_unavailable(
          {errc::injected, "fault point repository.commit: the result is dropped", {}, {}});
    return made;
  }

  template <class Call>
  static auto after(point p, Call call) -> decltype(call()) {
    if (auto passed = pass(p); !passed)
      return as_unavailable(std::move(passed.error()));
    return call();
  }

  std::unique_ptr<repository> inner_;
};

class watched_repositories final : public repository_provider {
 public:
  explicit watched_repositories(std::shared_ptr<repository_provider> inner)
      : inner_(std::move(inner)) {}

  result<std::unique_ptr<repository>> init(const std::string& path,
                                           const git_identity& who) override {
    return opened([&] { return inner_->init(path, who); });
  }
  result<std::unique_ptr<repository>> open(const std::string& path,
                                           const git_identity& who) override {
    return opened([&] { return inner_->open(path, who); });
  }

  std::optional<git_project> project_of(const std::string& directory) override {
    return inner_->project_of(directory);
  }

 private:
  template <class Call>
  static result<std::unique_ptr<repository>> opened(Call call) {
    if (auto passed = pass("repository.open"); !passed)
      return as_unavailable(std::move(passed.error()));
    result<std::unique_ptr<repository>> made = call();
    if (!made)
      return made;
    return std::make_unique<watched_repository>(std::move(*made));
  }

  std::shared_ptr<repository_provider> inner_;
};

} // namespace

std::shared_ptr<repository_provider> watched(std::shared_ptr<repository_provider> repositories) {
  return std::make_shared<watched_repositories>(std::move(repositories));
}

} // namespace boyd::faults
