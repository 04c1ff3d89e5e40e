#include "boyd/graph/segments.hpp"

#include "boyd/core/home_layout.hpp"
#include "boyd/core/sha256.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace boyd::graph {

namespace {

constexpr std::string_view first_name = "graph.jsonl";
constexpr std::string_view stem = "graph-";
constexpr std::string_view ending = ".jsonl";
constexpr std::string_view packed_ending = ".zst";
constexpr std::size_t number_digits = 6;
/// A segment that was made before logs had segments may be so large.
constexpr std::size_t largest_unpacked = std::size_t{1} << 30;
constexpr std::size_t read_at_once = std::size_t{4} << 20;
constexpr std::size_t unpacked_at_once = std::size_t{1} << 20;
/// Of a compressed segment, before what was read last: questions read backwards.
constexpr std::size_t kept_unpacked = std::size_t{8} << 20;

/// Nothing: it is no segment's.
std::optional<segment> segment_named(std::string_view name) {
  segment s;
  if (name.ends_with(packed_ending)) {
    s.compressed = true;
    name.remove_suffix(packed_ending.size());
  }
  if (name == first_name)
    return s;
  if (!name.starts_with(stem) || !name.ends_with(ending))
    return std::nullopt;
  const auto digits = name.substr(stem.size(), name.size() - stem.size() - ending.size());
  const auto* const end = digits.data() + digits.size();
  if (digits.size() < number_digits || std::from_chars(digits.data(), end, s.number).ptr != end ||
      s.number < 2)
    return std::nullopt;
  return s.name() == name ? std::optional(s) : std::nullopt;
}

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// Lines of a segment before `end`, for the numbers of those behind it.
result<std::size_t> count_lines(segment_files& files, const segment& which, std::uint64_t end) {
  std::size_t lines = 0;
  for (std::uint64_t at = 0; at < end;) {
    const auto bytes = files.read(
        which, at, static_cast<std::size_t>(std::min<std::uint64_t>(read_at_once, end - at)));
    if (!bytes)
      return fail(bytes.error());
    if (bytes->empty())
      return fail(errc::conflict, "the log has become shorter", files.path(which));
    lines += lines_in(*bytes);
    at += bytes->size();
  }
  return lines;
}

/// Calls `take(line, complete)` for each line of a segment. Of one that is longer than any fact
/// only the beginning is kept. What stands behind `end_of_all` is not read.
template <class F>
result<void> each_line(segment_files& files, const segment& which, F take,
                       std::uint64_t end_of_all = std::numeric_limits<std::uint64_t>::max()) {
  std::string rest;
  for (std::uint64_t at = 0; at < end_of_all;) {
    const auto bytes = files.read(
        which, at,
        static_cast<std::size_t>(std::min<std::uint64_t>(read_at_once, end_of_all - at)));
    if (!bytes)
      return fail(bytes.error());
    if (bytes->empty())
      break;
    at += bytes->size();
    rest += *bytes;
    std::string_view left = rest;
    for (auto end = left.find('\n'); end != left.npos; end = left.find('\n')) {
      take(left.substr(0, end), true);
      left.remove_prefix(end + 1);
    }
    rest.erase(0, rest.size() - left.size());
    rest.resize(std::min(rest.size(), max_line_bytes + 1));
  }
  if (!rest.empty())
    take(std::string_view(rest), false);
  return {};
}

} // namespace

std::string segment::name() const {
  if (number == 1)
    return std::string(first_name);
  const auto digits = std::to_string(number);
  return std::string(stem) +
         std::string(number_digits - std::min(number_digits, digits.size()), '0') + digits +
         std::string(ending);
}

std::string segment::file() const {
  return name() + (compressed ? std::string(packed_ending) : std::string());
}

std::vector<segment> segments_among(const std::vector<std::string>& names) {
  std::vector<segment> all;
  for (const auto& name : names)
    if (const auto s = segment_named(name))
      all.push_back(*s);
  std::ranges::sort(all, [](const segment& a, const segment& b) {
    return std::pair(a.number, a.compressed) < std::pair(b.number, b.compressed);
  });
  const auto same = [](const segment& a, const segment& b) { return a.number == b.number; };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

segment_files::segment_files(file_system& files, std::string home, unpack_function unpack)
    : files_(&files), home_(std::move(home)), unpack_(std::move(unpack)) {}

result<std::vector<segment>> segment_files::list() const {
  const auto folder = home_layout(home_).knowledge();
  const auto info = files_->stat(folder);
  if (!info)
    return fail(info.error());
  if (info->kind == file_kind::missing)
    return std::vector<segment>{};
  const auto names = files_->list(folder);
  if (!names)
    return fail(names.error());
  return segments_among(*names);
}

std::string segment_files::path(const segment& which) const {
  return home_layout(home_).knowledge() + "/" + which.file();
}

result<std::vector<foreign_lines>> segment_files::foreign() const {
  return list_foreign_lines(*files_, home_);
}

result<bool> segment_files::is_link(const segment& which) const {
  const auto info = files_->stat(path(which));
  return info ? result<bool>(info->kind == file_kind::symlink) : fail(info.error());
}

result<std::uint64_t> segment_files::size(const segment& which) {
  if (which.compressed) {
    if (auto done = unpack(which, largest_unpacked, largest_unpacked); !done)
      return fail(std::move(done.error()));
    return latest_->end();
  }
  const auto info = files_->stat(path(which));
  if (!info)
    return fail(info.error());
  return info->kind == file_kind::missing ? 0 : info->size;
}

result<std::string> segment_files::read(const segment& which, std::uint64_t offset,
                                        std::size_t most) {
  if (!which.compressed)
    return files_->read_part(path(which), offset, most);
  if (auto done = unpack(which, offset, offset + most); !done)
    return fail(std::move(done.error()));
  return offset >= latest_->end()
             ? std::string()
             : latest_->bytes.substr(static_cast<std::size_t>(offset - latest_->begin), most);
}

result<void> segment_files::unpack(const segment& which, std::uint64_t wanted, std::uint64_t end) {
  if (!unpack_)
    return fail(errc::refused, "compressed segments cannot be read here", path(which),
                "unpack it: zstd -d " + which.file());
  if (!latest_ || !(latest_->which == which) || wanted < latest_->begin)
    latest_ = unpacked_part{which, unpack_()};
  while (!latest_->ended && latest_->end() < end) {
    if (auto more = unpack_more(*latest_); !more) {
      latest_.reset();
      return more;
    }
    // Twice as much is let come, so that bytes are seldom moved.
    auto& bytes = latest_->bytes;
    if (bytes.size() > 2 * kept_unpacked && wanted > latest_->begin) {
      const auto cut =
          std::min<std::uint64_t>(bytes.size() - kept_unpacked, wanted - latest_->begin);
      bytes.erase(0, static_cast<std::size_t>(cut));
      latest_->begin += cut;
    }
  }
  return {};
}

result<void> segment_files::unpack_more(unpacked_part& part) {
  const auto where = path(part.which);
  if (part.used == part.packed.size()) {
    auto packed = files_->read_part(where, part.packed_end, unpacked_at_once);
    if (!packed)
      return fail(std::move(packed.error()));
    part.packed = std::move(*packed);
    part.used = 0;
    part.packed_end += part.packed.size();
  }
  auto left = std::string_view(part.packed).substr(part.used);
  const bool is_end = left.empty();
  const auto bytes = part.step(left, unpacked_at_once);
  const bool is_too_large = bytes && part.end() + bytes->size() > largest_unpacked;
  if (!bytes || is_too_large)
    return fail(errc::corrupt,
                "the segment cannot be unpacked: " +
                    (bytes ? "larger than " + std::to_string(largest_unpacked) + " bytes"
                           : bytes.error().what),
                where, "restore a good copy from a backup");
  part.used = part.packed.size() - left.size();
  part.bytes += *bytes;
  part.ended = is_end && bytes->empty();
  return {};
}

result<log_tail> read_tail(segment_files& files, const std::vector<segment>& segments,
                           std::size_t bytes) {
  log_tail tail;
  std::vector<std::pair<log_tail::part, std::string>> found; // the newest one first
  std::size_t have = 0;
  for (auto s = segments.rbegin(); s != segments.rend() && have < bytes; ++s) {
    const auto size = files.size(*s);
    // What was packed and cannot be unpacked is as good as gone; verify_log() names it.
    if (!size && size.error().code == errc::corrupt && s != segments.rbegin())
      break;
    if (!size)
      return fail(size.error());
    const auto wanted = bytes - have;
    // One byte more: whether the part begins with a whole line.
    const auto begin = *size > wanted ? *size - wanted - 1 : 0;
    auto text = files.read(*s, begin, wanted + 1);
    if (!text)
      return fail(std::move(text.error()));
    const auto cut = begin == 0 ? 0 : std::min(text->find('\n'), text->size() - 1) + 1;
    tail.is_whole = begin == 0;
    text->erase(0, cut);
    if (s != segments.rbegin() && !text->empty() && text->back() != '\n')
      *text += '\n';
    have += text->size();
    found.emplace_back(log_tail::part{*s, begin + cut, 0}, std::move(*text));
    if (begin > 0)
      break;
  }
  tail.is_whole = tail.is_whole && found.size() == segments.size();
  for (auto f = found.rbegin(); f != found.rend(); ++f) {
    f->first.begin = tail.text.size();
    tail.text += f->second;
    tail.parts.push_back(f->first);
  }
  return tail;
}

result<std::string> place_in_tail(segment_files& files, const log_tail& tail, std::size_t line) {
  for (std::size_t i = 0; i < tail.parts.size(); ++i) {
    const auto& p = tail.parts[i];
    const bool is_last = i + 1 == tail.parts.size();
    const auto end = is_last ? tail.text.size() : tail.parts[i + 1].begin;
    const auto lines = lines_in(std::string_view(tail.text).substr(p.begin, end - p.begin));
    if (line > lines && !is_last) {
      line -= lines;
      continue;
    }
    const auto before = count_lines(files, p.which, p.offset);
    if (!before)
      return fail(before.error());
    return p.which.name() + ":" + std::to_string(*before + line);
  }
  return segment{}.name() + ":" + std::to_string(line);
}

namespace {

/// Which segment the lines of a whole log stand in.
class line_places {
 public:
  void begin(const segment& s, std::size_t lines_before) {
    begins_.emplace_back(lines_before, s.name());
  }
  /// `line`: from 1, of the whole log.
  std::string place(std::size_t line) const {
    for (auto b = begins_.rbegin(); b != begins_.rend(); ++b)
      if (line > b->first)
        return b->second + ":" + std::to_string(line - b->first);
    return segment{}.name() + ":" + std::to_string(line);
  }

 private:
  std::vector<std::pair<std::size_t, std::string>> begins_;
};

constexpr const char* link_told =
    "it is a symbolic link, and a node writes through none; what it shows may be anybody's: find "
    "out "
    "who put it there, then stop the node and restore the log itself from a backup";

/// How far a segment is the node's own; all of it where nobody says.
std::uint64_t own_end(const segment& s, const written_log::segment_ends& own_ends) {
  const auto known = own_ends.find(s.number);
  if (!own_ends.empty() && s.number > own_ends.rbegin()->first)
    return 0;
  return s.compressed || known == own_ends.end() ? std::numeric_limits<std::uint64_t>::max()
                                                 : known->second;
}

} // namespace

result<std::vector<log_problem>> lines_behind(segment_files& files,
                                              const written_log::segment_ends& own_ends) {
  const auto segments = files.list();
  if (!segments)
    return fail(segments.error());
  std::vector<log_problem> all;
  for (const auto& s : *segments) {
    const auto end = own_end(s, own_ends);
    if (end == std::numeric_limits<std::uint64_t>::max() || s.compressed)
      continue;
    const auto size = files.size(s);
    if (!size)
      return fail(size.error());
    if (*size <= end)
      continue;
    const auto before = count_lines(files, s, end);
    if (!before)
      return fail(before.error());
    all.push_back({s.name() + ":" + std::to_string(*before + 1), chain_problem_kind::foreign,
                   std::to_string(*size - end) +
                       " bytes from here on, which another program wrote while the node is "
                       "running, do not count; the node sets them aside before it writes, or "
                       "within half a minute"});
  }
  return all;
}

result<log_report> verify_log(segment_files& files, const std::set<std::string>& anchored_heads,
                              const written_log::segment_ends& own_ends) {
  const auto segments = files.list();
  if (!segments)
    return fail(segments.error());
  log_report report;
  report.segments = segments->size();
  chain_verifier walk(anchored_heads);
  line_places places;
  std::uint32_t next = 1;
  for (const auto& s : *segments) {
    for (; next < s.number; ++next)
      report.problems.push_back(
          {segment{next}.name(), chain_problem_kind::removed, "the segment is missing"});
    next = s.number + 1;
    places.begin(s, walk.lines());
    const bool is_last = s == segments->back();
    const auto is_link = files.is_link(s);
    if (!is_link)
      return fail(is_link.error());
    if (*is_link)
      report.problems.push_back({s.file(), chain_problem_kind::linked, link_told});
    const auto read = each_line(
        files, s,
        [&](std::string_view line, bool complete) {
          if (!complete && is_last)
            report.ends_within_line = true;
          else
            walk.take(line, complete);
        },
        own_end(s, own_ends));
    if (!read && read.error().code != errc::corrupt)
      return fail(read.error());
    if (!read)
      report.problems.push_back({s.file(), chain_problem_kind::malformed, read.error().what});
  }
  auto chain = walk.finish();
  report.facts = chain.chained + chain.older;
  report.last_sequence = chain.last_sequence;
  report.unconfirmed = chain.behind_anchor;
  report.older = chain.older;
  if (chain.older > 0)
    report.older_until = places.place(chain.last_older);
  if (chain.anchored_line > chain.last_older) {
    report.confirmed = places.place(chain.anchored_line);
    report.confirmed_head = std::move(chain.anchored_head);
  }
  for (auto& p : chain.problems)
    report.problems.push_back({places.place(p.line), p.kind, std::move(p.detail)});
  const auto foreign = files.foreign();
  if (!foreign)
    return fail(foreign.error());
  for (const auto& f : *foreign)
    report.problems.push_back({place_of(f), chain_problem_kind::foreign, told(f)});
  return report;
}

result<std::set<std::string>> missing_heads(segment_files& files, std::set<std::string> heads) {
  heads.erase(std::string(genesis));
  const auto segments = files.list();
  if (!segments)
    return fail(segments.error());
  for (auto s = segments->rbegin(); s != segments->rend() && !heads.empty(); ++s) {
    const auto read = each_line(files, *s, [&](std::string_view line, bool complete) {
      if (complete && !heads.empty())
        heads.erase(sha256_hex(line));
    });
    if (!read)
      return fail(read.error());
  }
  return heads;
}

result<bool> log_has_line(segment_files& files, const std::string& head) {
  const auto missing = missing_heads(files, {head});
  return missing ? result<bool>(missing->empty()) : fail(missing.error());
}

} // namespace boyd::graph
