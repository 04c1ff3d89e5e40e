#include "boyd/queue/spool.hpp"

#include "boyd/core/crc32.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/files/journal.hpp"
#include "boyd/ports/file_system.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace boyd::queue {

namespace {

/// A spool larger than this is refused: the outage must end first. Bytes.
constexpr std::size_t spool_bytes = std::size_t{256} << 20;
/// One settlement holds at most limits::output_bytes of output, six times as long when escaped.
constexpr std::size_t batch_bytes = std::size_t{16} << 20;

constexpr const char* refused_suffix = ".refused";

constexpr std::string_view seal_begin = R"({"crc":")";
constexpr std::string_view seal_end = R"(",)";

/// A line with its check sum in front: after a flipped bit it may still be well-formed and say
/// something else, which would be recorded as somebody's result.
std::string sealed(std::string_view line) {
  std::string out(seal_begin);
  out += crc32_hex(line);
  out += seal_end;
  out += line.substr(1);
  return out;
}

/// Lines without a check sum are an earlier version's.
result<node_settlement> read_line(std::string_view line) {
  if (!line.starts_with(seal_begin))
    return settlement_from_json(line);
  constexpr auto head = seal_begin.size() + crc32_digits + seal_end.size();
  const auto sum = line.substr(seal_begin.size(), crc32_digits);
  const std::string body = "{" + std::string(line.substr(std::min(head, line.size())));
  if (!line.substr(seal_begin.size() + sum.size()).starts_with(seal_end) || sum != crc32_hex(body))
    return fail(errc::corrupt, "wrong checksum");
  return settlement_from_json(body);
}

bool parses(std::string_view line) {
  return read_line(line).has_value();
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
  std::string damaged{}; ///< lines that the last load could not read, not yet set aside

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

  /// What cannot be read, or recorded, is somebody's result.
  result<void> keep(std::string& lines, const char* where) {
    if (lines.empty())
      return {};
    const std::string aside = path + where;
    auto file = files->open(aside, open_mode::append);
    if (!file)
      return fail(std::move(file.error()));
    for (std::string_view left = lines; !left.empty();) {
      const auto count = (*file)->write(left);
      if (!count)
        return fail(count.error());
      if (*count == 0)
        return fail(errc::io_error, "nothing was written", aside);
      left.remove_prefix(*count);
    }
    if (auto synced = (*file)->sync(); !synced)
      return synced;
    if (auto synced = files->sync_directory(directory_of(aside)); !synced)
      return synced;
    lines.clear();
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
    : impl_(std::make_unique<impl>(impl{std::move(files), std::move(path), std::nullopt, {}})) {}
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
  impl_->damaged.clear();
  for (const auto line : split(*bytes, '\n')) {
    if (line.empty())
      continue;
    if (auto item = read_line(line)) {
      out.items.push_back(std::move(*item));
    } else {
      impl_->damaged += std::string(line) + "\n";
      ++out.skipped;
    }
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
    auto line = sealed(settlement_to_json(node_id, item));
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

result<void> settlement_spool::keep_refused(const node_settlement& refused,
                                            std::string_view reason) {
  const auto said = nlohmann::json(sanitize_utf8(reason)).dump();
  std::string line = R"({"refused":)" + said + ",";
  line += settlement_to_json(refused.node_id, refused.item).substr(1);
  line = sealed(line) + "\n";
  return impl_->keep(line, refused_suffix);
}

result<settlement_spool::refused_results> settlement_spool::load_refused(std::size_t most) const {
  refused_results out;
  const auto path = impl_->path + refused_suffix;
  auto info = impl_->files->stat(path);
  if (!info)
    return fail(info.error());
  if (info->kind == file_kind::missing)
    return out;
  auto bytes = impl_->files->read(path, spool_bytes);
  if (!bytes)
    return fail(bytes.error());
  auto lines = split(*bytes, '\n');
  std::erase_if(lines, [](std::string_view line) { return line.empty(); });
  out.count = lines.size();
  for (const auto line : std::span(lines).last(std::min(most, lines.size())))
    if (auto item = read_line(line))
      out.newest.push_back(std::move(*item));
  return out;
}

bool settlement_spool::has_refused() const {
  const auto info = impl_->files->stat(impl_->path + refused_suffix);
  return !info || info->kind != file_kind::missing;
}

result<void> settlement_spool::rewrite(const std::vector<node_settlement>& items) {
  impl_->journal.reset();
  if (auto kept = impl_->keep(impl_->damaged, ".damaged"); !kept)
    return kept;
  if (!items.empty()) {
    std::string text;
    for (const auto& s : items)
      text += sealed(settlement_to_json(s.node_id, s.item)) + "\n";
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
