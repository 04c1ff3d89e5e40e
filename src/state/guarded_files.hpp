#pragma once

#include "boyd/ports/file_system.hpp"

#include <optional>
#include <string>

namespace boyd::state {

/// A file system on which a file is replaced only while it still holds what its editor has read:
/// the look comes right before the rename, after all slow steps. `conflict` otherwise; `refused`
/// when something else than a file stands there.
class guarded_files final : public file_system {
 public:
  /// `expected` without a value: the file must be missing. Both references must outlive it.
  guarded_files(file_system& inner, const std::string& target,
                const std::optional<std::string>& expected)
      : inner_(inner), target_(target), expected_(expected) {}

  result<void> rename(const std::string& from, const std::string& to) override;

  result<std::string> read(const std::string& path, std::size_t max_bytes) override {
    return inner_.read(path, max_bytes);
  }
  result<std::string> read_below(const std::string& root, const std::string& file,
                                 std::size_t max_bytes) override {
    return inner_.read_below(root, file, max_bytes);
  }
  result<std::string> read_part(const std::string& path, std::uint64_t offset,
                                std::size_t max_bytes) override {
    return inner_.read_part(path, offset, max_bytes);
  }
  result<file_info> stat(const std::string& path) override { return inner_.stat(path); }
  result<std::unique_ptr<open_file>> open(const std::string& path, open_mode mode) override {
    return inner_.open(path, mode);
  }
  result<void> unlink(const std::string& path) override { return inner_.unlink(path); }
  result<void> sync_directory(const std::string& path) override {
    return inner_.sync_directory(path);
  }
  result<void> make_directories(const std::string& path) override {
    return inner_.make_directories(path);
  }
  result<std::vector<std::string>> list(const std::string& path) override {
    return inner_.list(path);
  }

 private:
  file_system& inner_;
  const std::string& target_;
  const std::optional<std::string>& expected_;
};

} // namespace boyd::state
