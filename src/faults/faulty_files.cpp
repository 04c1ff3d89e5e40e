#include "boyd/faults/faulty_ports.hpp"

#include <utility>

namespace boyd::faults {

namespace {

/// What the disk would say.
tl::unexpected<error> as_io_error(error e, const std::string& path) {
  return fail(errc::io_error, std::move(e.what), path, std::move(e.next));
}

result<void> pass_if(const std::optional<point>& p, const std::string& path) {
  if (!p)
    return {};
  auto passed = pass(*p);
  if (!passed)
    return as_io_error(std::move(passed.error()), path);
  return {};
}

class watched_file final : public open_file {
 public:
  watched_file(std::unique_ptr<open_file> inner, std::string path, const file_points& points)
      : inner_(std::move(inner)), path_(std::move(path)), points_(points) {}

  result<std::size_t> write(std::string_view bytes) override {
    if (!points_.bytes || !any_armed())
      return inner_->write(bytes);
    auto met = meet(*points_.bytes);
    if (!met)
      return as_io_error(std::move(met.error()), path_);
    if (met->drops())
      return bytes.size();
    if (met->corrupts())
      return inner_->write(damaged(bytes, met->salt));
    if (met->what == action::delay)
      wait(met->delay);
    return inner_->write(bytes);
  }

  void begin_sync() override { inner_->begin_sync(); }

  result<void> sync() override {
    if (auto passed = pass_if(points_.sync, path_); !passed)
      return passed;
    return inner_->sync();
  }

  result<void> truncate(std::uint64_t size) override {
    if (auto passed = pass_if(points_.repair, path_); !passed)
      return passed;
    return inner_->truncate(size);
  }
  result<void> rewrite(std::uint64_t offset, std::string_view bytes) override {
    if (auto passed = pass_if(points_.repair, path_); !passed)
      return passed;
    return inner_->rewrite(offset, bytes);
  }
  result<std::uint64_t> size() override {
    if (auto passed = pass_if(points_.read, path_); !passed)
      return fail(std::move(passed.error()));
    return inner_->size();
  }
  result<std::string> read_part(std::uint64_t offset, std::size_t max_bytes) override {
    if (auto passed = pass_if(points_.read, path_); !passed)
      return fail(std::move(passed.error()));
    return inner_->read_part(offset, max_bytes);
  }

 private:
  std::unique_ptr<open_file> inner_;
  std::string path_;
  file_points points_;
};

class watched_files final : public file_system {
 public:
  watched_files(std::shared_ptr<file_system> inner, const file_points& points)
      : inner_(std::move(inner)), points_(points) {}

  result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    if (auto passed = pass_if(points_.read, path); !passed)
      return fail(std::move(passed.error()));
    return inner_->read(path, max_bytes);
  }

  result<std::string> read_below(const std::string& root, const std::string& file,
                                 std::size_t max_bytes) override {
    if (auto passed = pass_if(points_.read, root + "/" + file); !passed)
      return fail(std::move(passed.error()));
    return inner_->read_below(root, file, max_bytes);
  }

  result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                std::size_t max_bytes) override {
    if (auto passed = pass_if(points_.read, path); !passed)
      return fail(std::move(passed.error()));
    return inner_->read_part(path, offset, max_bytes);
  }

  result<file_info> stat(const std::string& path) override {
    if (auto passed = pass_if(points_.read, path); !passed)
      return fail(std::move(passed.error()));
    return inner_->stat(path);
  }

  result<std::unique_ptr<open_file>> open(const std::string& path, open_mode mode) override {
    if (auto passed = pass_if(points_.open, path); !passed)
      return fail(std::move(passed.error()));
    auto file = inner_->open(path, mode);
    if (!file)
      return file;
    return std::make_unique<watched_file>(std::move(*file), path, points_);
  }

  result<void> rename(const std::string& from, const std::string& to) override {
    if (auto passed = pass_if(points_.rename, from); !passed)
      return passed;
    return inner_->rename(from, to);
  }

  result<void> unlink(const std::string& path) override {
    if (auto passed = pass_if(points_.unlink, path); !passed)
      return passed;
    return inner_->unlink(path);
  }

  result<void> sync_directory(const std::string& path) override {
    if (auto passed = pass_if(points_.sync_directory, path); !passed)
      return passed;
    return inner_->sync_directory(path);
  }

  result<void> make_directories(const std::string& path) override {
    if (auto passed = pass_if(points_.open, path); !passed)
      return passed;
    return inner_->make_directories(path);
  }
  result<std::vector<std::string>> list(const std::string& path) override {
    if (auto passed = pass_if(points_.read, path); !passed)
      return fail(std::move(passed.error()));
    return inner_->list(path);
  }

 private:
  std::shared_ptr<file_system> inner_;
  file_points points_;
};

class watched_confined_files final : public confined_files {
 public:
  explicit watched_confined_files(std::shared_ptr<confined_files> inner)
      : inner_(std::move(inner)) {}

  result<text_part> read(const std::string& root, const std::string& path, std::uint64_t offset,
                         std::size_t max_bytes) override {
    return after("file_tools.read", path,
                 [&] { return inner_->read(root, path, offset, max_bytes); });
  }
  result<void> write(const std::string& root, const std::string& path,
                     std::string_view content) override {
    return after("file_tools.write", path, [&] { return inner_->write(root, path, content); });
  }
  result<void> write_over(const std::string& root, const std::string& path,
                          std::string_view content, const may_replace& may) override {
    return after("file_tools.write", path,
                 [&] { return inner_->write_over(root, path, content, may); });
  }
  result<listing> list(const std::string& root, const std::string& path,
                       std::size_t most) override {
    return after("file_tools.read", path, [&] { return inner_->list(root, path, most); });
  }
  result<place> find(const std::string& root, const std::string& path) override {
    return after("file_tools.read", path, [&] { return inner_->find(root, path); });
  }
  result<walk_end> walk(const std::string& root, const std::string& path, const walk_limits& limits,
                        const wanted_file& wanted, const visit_file& visit) override {
    return after("file_tools.read", path,
                 [&] { return inner_->walk(root, path, limits, wanted, visit); });
  }

 private:
  template <class Call>
  static auto after(point p, const std::string& path, Call call) -> decltype(call()) {
    if (auto passed = pass_if(p, path); !passed)
      return fail(std::move(passed.error()));
    return call();
  }

  std::shared_ptr<confined_files> inner_;
};

} // namespace

std::shared_ptr<confined_files> watched(std::shared_ptr<confined_files> files) {
  return std::make_shared<watched_confined_files>(std::move(files));
}

std::shared_ptr<file_system> watched(std::shared_ptr<file_system> files,
                                     const file_points& points) {
  return std::make_shared<watched_files>(std::move(files), points);
}

} // namespace boyd::faults
