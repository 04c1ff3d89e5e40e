#include "boyd/queue/spool.hpp"

#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "boyd/ports/file_system.hpp"

#include <optional>
#include <utility>

namespace boyd::queue {

namespace {

/// A spool larger than this is refused: the outage must end first. Bytes.
constexpr std::size_t spool_bytes = std::size_t{256} << 20;
/// One settlement holds at most limits::output_bytes of output, six times as long when escaped.
constexpr std::size_t batch_bytes = std::size_t{16} << 20;

bool parses(std::string_view line) {
  return settlement_from_json(line).has_value();
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

struct settlement_spool::impl {
  std::shared_ptr<file_system> files;
  std::string path;
  std::optional<files::journal> journal;

  result<void> open() {
    if (journal)
      return {};
    files::journal_options options;
    options.max_file_bytes = spool_bytes;
    options.max_batch_bytes = batch_bytes;
    options.parses = parses;
    auto opened = files::journal::open(*files, path, std::move(options));
    if (!opened)
      return fail(opened.error());
    journal.emplace(std::move(*opened));
    return {};
  }

  result<void> write(const std::vector<std::string>& lines) {
    auto written = journal->append(lines);
    if (written)
      return {};
    if (written.error().code == errc::conflict)
      journal.reset(); // somebody replaced the file: look at it anew next time
    return fail(written.error());
  }
};

settlement_spool::settlement_spool(std::shared_ptr<file_system> files, std::string path)
    : impl_(std::make_unique<impl>(impl{std::move(files), std::move(path), std::nullopt})) {}
settlement_spool::~settlement_spool() = default;
settlement_spool::settlement_spool(settlement_spool&&) noexcept = default;
settlement_spool& settlement_spool::operator=(settlement_spool&&) noexcept = default;

result<settlement_spool::content> settlement_spool::load() {
  content out;
  auto info = impl_->files->stat(impl_->path);
  if (!info)
    return fail(info.error());
  if (info->kind == file_kind::missing)
    return out;
  if (auto opened = impl_->open(); !opened)
    return fail(opened.error());
  auto bytes = impl_->files->read(impl_->path, spool_bytes);
  if (!bytes)
    return fail(bytes.error());
  for (const auto line : split(*bytes, '\n')) {
    if (line.empty())
      continue;
    if (auto item = settlement_from_json(line))
      out.items.push_back(std::move(*item));
    else
      ++out.skipped;
  }
  return out;
}

result<void> settlement_spool::append(const std::string& node_id,
                                      const std::vector<settlement>& items) {
  if (auto opened = impl_->open(); !opened)
    return opened;
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (const auto& item : items) {
    auto line = settlement_to_json(node_id, item);
    if (!lines.empty() && bytes + line.size() + 1 > batch_bytes) {
      if (auto written = impl_->write(lines); !written)
        return written;
      lines.clear();
      bytes = 0;
    }
    bytes += line.size() + 1;
    lines.push_back(std::move(line));
  }
  return lines.empty() ? result<void>{} : impl_->write(lines);
}

result<void> settlement_spool::rewrite(const std::vector<node_settlement>& items) {
  impl_->journal.reset();
  if (!items.empty()) {
    std::string text;
    for (const auto& s : items)
      text += settlement_to_json(s.node_id, s.item) + "\n";
    return files::write_atomic(*impl_->files, impl_->path, text);
  }
  auto info = impl_->files->stat(impl_->path);
  if (!info)
    return fail(info.error());
  if (info->kind == file_kind::missing)
    return {};
  if (auto removed = impl_->files->unlink(impl_->path); !removed)
    return removed;
  return impl_->files->sync_directory(directory_of(impl_->path));
}

} // namespace boyd::queue
