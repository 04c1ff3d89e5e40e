#include "boyd/tools/tree_print.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/tools/glob.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::tools {

namespace {

class tree_walk {
 public:
  tree_walk(confined_files& inside, const std::string& workspace, const tree_options& options)
      : inside_(inside), workspace_(workspace), options_(options) {}

  result<tree_print> run() {
    for (left_.emplace_back("."); !left_.empty() && out_.too_much.empty();) {
      const auto path = std::move(left_.back());
      left_.pop_back();
      if (auto done = directory(path); !done)
        return fail(std::move(done.error()));
    }
    std::ranges::sort(out_.prints, {}, &file_print::path);
    return std::move(out_);
  }

 private:
  bool counts(const std::string& where, file_kind kind) const {
    if (std::ranges::find(options_.own, where) != options_.own.end())
      return false;
    return std::ranges::none_of(options_.unbound, [&](const std::string& pattern) {
      return glob_matches(pattern, where) ||
             (kind == file_kind::directory && glob_matches(pattern, where + "/"));
    });
  }

  void unseen(const std::string& where, std::string state) {
    out_.outside.push_back(where);
    out_.prints.push_back({where, std::move(state)});
  }

  result<void> directory(const std::string& path) {
    const auto room = most_tree_entries - entries_;
    const auto listing = inside_.list(workspace_, path, room);
    if (!listing && listing.error().code == errc::not_found)
      return {};
    if (!listing && path == ".")
      return fail(listing.error());
    if (!listing) {
      unseen(path, "closed");
      return {};
    }
    if (listing->total > room) {
      out_.too_much = "more than " + std::to_string(most_tree_entries) + " files";
      return {};
    }
    entries_ += listing->entries.size();
    for (const auto& e : listing->entries) {
      const auto where = path == "." ? e.name : path + "/" + e.name;
      if (!counts(where, e.kind))
        continue;
      if (auto done = entry(where, e); !done)
        return done;
      if (!out_.too_much.empty())
        break;
    }
    return {};
  }

  result<void> entry(const std::string& where, const confined_files::entry& e) {
    if (e.kind == file_kind::directory)
      left_.push_back(where);
    else if (e.kind == file_kind::symlink)
      link(where);
    else if (e.kind == file_kind::regular)
      return file(where, e.size);
    else
      out_.prints.push_back({where, "other"});
    return {};
  }

  void link(const std::string& where) {
    const auto place = inside_.find(workspace_, where);
    if (place)
      out_.prints.push_back({where, "link:" + place->where});
    else if (place.error().code == errc::not_found)
      out_.prints.push_back({where, "link:missing"});
    else
      unseen(where, "link:outside");
  }

  result<void> file(const std::string& where, std::uint64_t size) {
    if (size > tree_bytes - out_.bytes || size > print_bytes) {
      out_.too_much = "more than " + std::to_string(tree_bytes >> 20) +
                      " MiB, or a file of more than " + std::to_string(print_bytes >> 20) + " MiB";
      return {};
    }
    auto content = inside_.read(workspace_, where, 0, static_cast<std::size_t>(size) + 1);
    if (!content && content.error().code == errc::not_found)
      return {};
    if (!content) {
      unseen(where, "closed");
      return {};
    }
    out_.bytes += std::min<std::uint64_t>(content->text.size(), tree_bytes - out_.bytes);
    auto text =
        options_.part ? options_.part(where, std::move(content->text)) : std::move(content->text);
    out_.prints.push_back({where, "sha256:" + sha256_hex(text)});
    return {};
  }

  confined_files& inside_;
  const std::string& workspace_;
  const tree_options& options_;
  tree_print out_;
  std::vector<std::string> left_; ///< directories
  std::size_t entries_ = 0;
};

} // namespace

result<tree_print> look_at_tree(confined_files& inside, const std::string& workspace,
                                const tree_options& options) {
  return tree_walk(inside, workspace, options).run();
}

std::vector<std::string> changed_paths(const std::vector<file_print>& then,
                                       const std::vector<file_print>& now) {
  std::map<std::string, std::string> before;
  for (const auto& p : then)
    before[p.path] = p.state;
  std::vector<std::string> out;
  for (const auto& p : now) {
    const auto was = before.find(p.path);
    if (was == before.end() || was->second != p.state)
      out.push_back(p.path);
    if (was != before.end())
      before.erase(was);
  }
  for (const auto& [path, state] : before)
    out.push_back(path);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

} // namespace boyd::tools
