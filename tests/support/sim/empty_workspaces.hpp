#pragma once

#include "boyd/ports/confined_files.hpp"

namespace boyd::sim {

/// Workspaces in which nothing stands and nothing can be written.
class empty_workspaces final : public confined_files {
 public:
  result<text_part> read(const std::string&, const std::string& path, std::uint64_t,
                         std::size_t) override {
    return missing(path);
  }
  result<void> write(const std::string&, const std::string& path, std::string_view) override {
    return fail(errc::refused, "the workspace takes no files", path);
  }
  result<void> write_over(const std::string& root, const std::string& path,
                          std::string_view content, const may_replace&) override {
    return write(root, path, content);
  }
  result<listing> list(const std::string&, const std::string& path, std::size_t) override {
    return missing(path);
  }
  result<place> find(const std::string&, const std::string& path) override { return missing(path); }
  result<walk_end> walk(const std::string&, const std::string& path, const walk_limits&,
                        const wanted_file&, const visit_file&) override {
    return missing(path);
  }

 private:
  static tl::unexpected<error> missing(const std::string& path) {
    return fail(errc::not_found, "no such file", path);
  }
};

} // namespace boyd::sim
