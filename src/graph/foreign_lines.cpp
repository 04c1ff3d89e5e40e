#include "boyd/graph/foreign_lines.hpp"

#include "../files/write_all.hpp"
#include "boyd/core/home_layout.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/graph/segments.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace boyd::graph {

namespace {

constexpr std::string_view ending = ".jsonl";
constexpr std::string_view mark = ".foreign-";
constexpr std::string_view line_mark_text = "-line-";
constexpr std::size_t read_at_once = std::size_t{4} << 20;

/// What the name of a file says; nothing: it is none of ours.
std::optional<foreign_lines> foreign_named(const std::string& name) {
  const auto at = name.find(mark);
  const auto line = name.rfind(line_mark_text);
  if (at == name.npos || line == name.npos || line < at || !name.ends_with(ending))
    return std::nullopt;
  foreign_lines f;
  f.file = name;
  f.segment = name.substr(0, at) + std::string(ending);
  const auto* const end = name.data() + name.size() - ending.size();
  const auto* const digits = name.data() + line + line_mark_text.size();
  if (digits >= end || std::from_chars(digits, end, f.first).ptr != end ||
      segments_among({f.segment}).size() != 1)
    return std::nullopt;
  return f;
}

/// Line breaks before `end`.
result<std::uint64_t> count_breaks(file_system& files, const std::string& path, std::uint64_t end) {
  std::uint64_t breaks = 0;
  for (std::uint64_t at = 0; at < end;) {
    const auto piece = files.read_part(
        path, at, static_cast<std::size_t>(std::min<std::uint64_t>(read_at_once, end - at)));
    if (!piece)
      return fail(piece.error());
    if (piece->empty())
      break;
    breaks += static_cast<std::uint64_t>(std::ranges::count(*piece, '\n'));
    at += piece->size();
  }
  return breaks;
}

/// A name that no file has, for what stands in a segment from this line on.
result<std::string> free_name(file_system& files, const std::string& folder, const segment& where,
                              std::uint64_t line, utc_time now) {
  auto time = format_rfc3339(now, true);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  const auto name = where.name();
  const auto begin = name.substr(0, name.size() - ending.size()) + std::string(mark) + time;
  const auto end = std::string(line_mark_text) + std::to_string(line) + std::string(ending);
  for (int n = 1;; ++n) {
    auto path = folder + "/" + begin + (n == 1 ? std::string() : "-" + std::to_string(n)) + end;
    const auto there = files.stat(path);
    if (!there)
      return fail(there.error());
    if (there->kind == file_kind::missing)
      return path;
  }
}

/// Copies what stands from `begin` to `end`, and reads it back.
result<void> copy_part(file_system& files, const std::string& from, std::uint64_t begin,
                       std::uint64_t end, const std::string& to) {
  auto copy = files.open(to, open_mode::create_new);
  if (!copy)
    return fail(std::move(copy.error()));
  for (std::uint64_t at = begin; at < end;) {
    const auto piece = files.read_part(
        from, at, static_cast<std::size_t>(std::min<std::uint64_t>(read_at_once, end - at)));
    if (!piece)
      return fail(piece.error());
    if (piece->empty())
      break;
    if (auto written = files::write_all(**copy, *piece, to); !written)
      return written;
    const auto back = (*copy)->read_part(at - begin, piece->size());
    if (!back)
      return fail(back.error());
    if (*back != *piece)
      return fail(errc::io_error, "the file does not contain what was written to it", to,
                  "check the disk and the memory of this machine");
    at += piece->size();
  }
  return (*copy)->sync();
}

result<void> cut(file_system& files, const std::string& path, std::uint64_t end) {
  auto log = files.open(path, open_mode::append);
  if (!log)
    return fail(std::move(log.error()));
  if (auto done = (*log)->truncate(end); !done)
    return done;
  return (*log)->sync();
}

result<void> keep_and_cut(file_system& files, const std::string& folder, const segment& where,
                          std::uint64_t begin, std::uint64_t end, utc_time now) {
  const auto path = folder + "/" + where.file();
  const auto before = count_breaks(files, path, begin);
  if (!before)
    return fail(before.error());
  const auto to = free_name(files, folder, where, *before + 1, now);
  if (!to)
    return fail(to.error());
  if (auto copied = copy_part(files, path, begin, end, *to); !copied) {
    (void)files.unlink(*to); // the log still has it all
    return copied;
  }
  if (auto synced = files.sync_directory(folder); !synced)
    return synced;
  return cut(files, path, begin);
}

/// Whether this line is there still, as it was.
result<bool> is_there(file_system& files, const std::string& path, const written_line& l) {
  const auto size = static_cast<std::size_t>(l.end - l.begin);
  const auto text = files.read_part(path, l.begin, size);
  if (!text)
    return fail(text.error());
  return text->size() == size && text->ends_with('\n') &&
         sha256_hex(std::string_view(*text).substr(0, size - 1)) == l.hash;
}

/// Behind the last line that is one of these, wherever it stands; nothing: there is none.
result<std::optional<std::uint64_t>> find_known_line(file_system& files, const std::string& path,
                                                     std::uint64_t size,
                                                     const std::vector<written_line>& lines) {
  std::set<std::string_view> known;
  for (const auto& l : lines)
    known.insert(l.hash);
  std::optional<std::uint64_t> found;
  std::string rest;
  std::uint64_t begin = 0; // of it
  for (std::uint64_t at = 0; at < size;) {
    const auto piece = files.read_part(
        path, at, static_cast<std::size_t>(std::min<std::uint64_t>(read_at_once, size - at)));
    if (!piece)
      return fail(piece.error());
    if (piece->empty())
      break;
    at += piece->size();
    rest += *piece;
    std::string_view left = rest;
    for (auto end = left.find('\n'); end != left.npos; end = left.find('\n')) {
      begin += end + 1;
      if (known.contains(sha256_hex(left.substr(0, end))))
        found = begin;
      left.remove_prefix(end + 1);
    }
    // Of a line that is longer than any fact the end is enough.
    if (left.size() > max_line_bytes) {
      begin += left.size() - 1;
      left.remove_prefix(left.size() - 1);
    }
    rest.erase(0, rest.size() - left.size());
  }
  return found;
}

/// Behind the last line that is the recorder's, in the segment that it writes. Where lines were
/// taken out before it, the others stand elsewhere: the check of the chain tells that.
result<std::uint64_t> end_of_own_lines(file_system& files, const std::string& path,
                                       std::uint64_t size, const written_log::snapshot& s) {
  for (auto l = s.lines.rbegin(); l != s.lines.rend(); ++l) {
    const auto same = l->end <= size ? is_there(files, path, *l) : result<bool>(false);
    if (!same)
      return fail(same.error());
    if (*same)
      return l->end;
  }
  if (s.lines.empty())
    return s.ends.rbegin()->second;
  const auto found = find_known_line(files, path, size, s.lines);
  if (!found)
    return fail(found.error());
  return found->value_or(s.lines.front().begin);
}

/// A batch that a recorder has begun is its own, as far as it has come.
result<std::uint64_t> behind_unfinished(file_system& files, const std::string& path,
                                        std::uint64_t end,
                                        const std::vector<std::string>& unfinished) {
  for (const auto& batch : unfinished) {
    const auto there = files.read_part(path, end, batch.size());
    if (!there)
      return fail(there.error());
    if (batch.starts_with(*there))
      end += there->size();
  }
  return end;
}

result<std::uint64_t> own_end_in(file_system& files, const std::string& path, std::uint32_t number,
                                 std::uint64_t size, const written_log::snapshot& s) {
  if (s.ends.empty())
    return size;
  const auto last = s.ends.rbegin()->first;
  if (number > last)
    return 0;
  const auto known = s.ends.find(number);
  if (known == s.ends.end())
    return size;
  if (number < last)
    return std::min(size, known->second);
  auto end = end_of_own_lines(files, path, size, s);
  if (end && *end == known->second)
    end = behind_unfinished(files, path, *end, s.unfinished);
  return end ? result<std::uint64_t>(std::min(size, *end)) : end;
}

} // namespace

result<std::uint64_t> own_end(file_system& files, const std::string& home,
                              const written_log& written, const segment& where,
                              std::uint64_t size) {
  return own_end_in(files, home_layout(home).knowledge() + "/" + where.file(), where.number, size,
                    written.now());
}

result<void> take_log_as_found(file_system& files, const std::string& home, written_log& written) {
  const auto folder = home_layout(home).knowledge();
  const auto info = files.stat(folder);
  if (!info)
    return fail(info.error());
  const auto names = info->kind == file_kind::directory ? files.list(folder)
                                                        : result<std::vector<std::string>>({});
  if (!names)
    return fail(names.error());
  written_log::segment_ends ends;
  std::uint32_t last = 1; // that is written, or will be
  for (const auto& where : segments_among(*names)) {
    last = where.compressed ? where.number + 1 : where.number;
    if (where.compressed)
      continue;
    const auto there = files.stat(folder + "/" + where.file());
    if (!there)
      return fail(there.error());
    ends[where.number] = there->size;
  }
  ends.try_emplace(last, 0);
  written.opened(std::move(ends), {});
  return {};
}

result<void> set_foreign_lines_aside(file_system& files, const std::string& home,
                                     const written_log& written, utc_time now) {
  const auto s = written.now();
  if (s.ends.empty())
    return {};
  const auto folder = home_layout(home).knowledge();
  const auto names = files.list(folder);
  if (!names)
    return fail(names.error());
  const auto last = s.ends.rbegin()->first;
  for (const auto& where : segments_among(*names)) {
    const auto path = folder + "/" + where.file();
    const auto info = files.stat(path);
    if (!info)
      return fail(info.error());
    if (info->kind != file_kind::regular || info->size == 0)
      continue;
    if (where.number > last) {
      const auto to = free_name(files, folder, where, 1, now);
      if (!to)
        return fail(to.error());
      if (auto moved = files.rename(path, *to); !moved)
        return moved;
      if (auto synced = files.sync_directory(folder); !synced)
        return synced;
      continue;
    }
    if (where.compressed)
      continue;
    const auto end = own_end_in(files, path, where.number, info->size, s);
    if (!end)
      return fail(end.error());
    if (info->size <= *end)
      continue;
    if (auto kept = keep_and_cut(files, folder, where, *end, info->size, now); !kept)
      return kept;
  }
  return {};
}

result<bool> has_foreign_segment(file_system& files, const std::string& home,
                                 const written_log& written) {
  const auto ends = written.ends();
  const auto folder = home_layout(home).knowledge();
  const auto there = files.stat(folder);
  if (!there)
    return fail(there.error());
  if (ends.empty() || there->kind != file_kind::directory)
    return false;
  const auto names = files.list(folder);
  if (!names)
    return fail(names.error());
  const auto last = ends.rbegin()->first;
  for (const auto& where : segments_among(*names)) {
    const auto known = ends.find(where.number);
    if (where.number == last || (where.number < last && (where.compressed || known == ends.end())))
      continue;
    const auto info = files.stat(folder + "/" + where.file());
    if (!info)
      return fail(info.error());
    if (info->kind == file_kind::regular && info->size > (known == ends.end() ? 0 : known->second))
      return true;
  }
  return false;
}

result<std::vector<foreign_lines>> list_foreign_lines(file_system& files, const std::string& home) {
  const auto folder = home_layout(home).knowledge();
  const auto info = files.stat(folder);
  if (!info)
    return fail(info.error());
  std::vector<foreign_lines> all;
  if (info->kind != file_kind::directory)
    return all;
  const auto names = files.list(folder);
  if (!names)
    return fail(names.error());
  for (const auto& name : *names) {
    auto f = foreign_named(name);
    if (!f)
      continue;
    const auto path = folder + "/" + name;
    const auto there = files.stat(path);
    if (!there)
      return fail(there.error());
    if (there->size == 0)
      continue; // it has no lines
    f->bytes = there->size;
    const auto breaks = count_breaks(files, path, f->bytes);
    const auto end = files.read_part(path, f->bytes - 1, 1);
    if (!breaks || !end)
      return fail(breaks ? end.error() : breaks.error());
    f->lines = *breaks + (end->empty() || *end == "\n" ? 0 : 1);
    all.push_back(std::move(*f));
  }
  return all;
}

std::string place_of(const foreign_lines& f) {
  const auto first = f.segment + ":" + std::to_string(f.first);
  return f.lines > 1 ? first + "-" + std::to_string(f.first + f.lines - 1) : first;
}

std::string told(const foreign_lines& f) {
  const bool is_one = f.lines == 1;
  return std::to_string(f.lines) + (is_one ? " line (" : " lines (") + std::to_string(f.bytes) +
         " bytes) that another program wrote while the node was running " +
         (is_one ? "does" : "do") + " not count; set aside in " + f.file +
         "; find out which program it was (put agents into a sandbox), then delete that file";
}

} // namespace boyd::graph
