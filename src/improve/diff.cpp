#include "boyd/core/text.hpp"
#include "boyd/improve/patch.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

/// Unified diffs: applied exactly, counted, shown.
namespace boyd::improve {

namespace {

using lines_t = std::vector<std::string_view>;

constexpr std::string_view no_newline = "\\ No newline at end of file";
constexpr std::size_t context_lines = 3;

/// With their line breaks.
lines_t lines_of(std::string_view text) {
  lines_t lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto size = end == text.npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

struct hunk {
  std::size_t start = 0; ///< line of the old text, from 1; 0 for none
  std::size_t old_count = 0;
  std::vector<std::string> before;
  std::vector<std::string> after;
};

std::size_t number_at(std::string_view& text) {
  std::size_t n = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), n);
  text.remove_prefix(static_cast<std::size_t>(done.ptr - text.data()));
  return n;
}

/// "@@ -12,3 +14,5 @@"
hunk head_of(std::string_view line) {
  hunk h;
  line.remove_prefix(4);
  h.start = number_at(line);
  h.old_count = 1;
  if (line.starts_with(',')) {
    line.remove_prefix(1);
    h.old_count = number_at(line);
  }
  return h;
}

class hunk_reader {
 public:
  result<std::vector<hunk>> read(std::string_view diff) {
    auto lines = split(diff, '\n');
    if (!lines.empty() && lines.back().empty())
      lines.pop_back();
    for (const auto line : lines) {
      if (line.starts_with("@@ -")) {
        hunks_.push_back(head_of(line));
        last_ = ' ';
      } else if (hunks_.empty()) {
        if (!line.starts_with("--- ") && !line.starts_with("+++ ") && !trim(line).empty())
          return fail(errc::parse_error, "a hunk does not begin with @@ -LINE,COUNT");
      } else if (!take(line)) {
        return fail(errc::parse_error, "a line of a hunk begins with none of blank, -, +");
      }
    }
    if (hunks_.empty())
      return fail(errc::parse_error, "the diff has no hunk");
    return std::move(hunks_);
  }

 private:
  bool take(std::string_view line) {
    auto& h = hunks_.back();
    // What follows the last hunk of a mail or an answer.
    if ((line.empty() || line == "-- ") && h.before.size() >= h.old_count)
      return true;
    const char sign = line.empty() ? ' ' : line.front();
    const auto text = std::string(line.empty() ? line : line.substr(1));
    if (line.starts_with("\\")) {
      if (last_ != '+' && !h.before.empty())
        strip(h.before.back());
      if (last_ != '-' && !h.after.empty())
        strip(h.after.back());
      return true;
    }
    if (sign != ' ' && sign != '-' && sign != '+')
      return false;
    last_ = sign;
    if (sign != '+')
      h.before.push_back(text + "\n");
    if (sign != '-')
      h.after.push_back(text + "\n");
    return true;
  }

  static void strip(std::string& line) {
    if (line.ends_with('\n'))
      line.pop_back();
  }

  std::vector<hunk> hunks_;
  char last_ = ' ';
};

bool fits(const lines_t& lines, std::size_t at, const std::vector<std::string>& before) {
  return at <= lines.size() && before.size() <= lines.size() - at &&
         std::ranges::equal(
             before, lines_t(lines.begin() + static_cast<std::ptrdiff_t>(at),
                             lines.begin() + static_cast<std::ptrdiff_t>(at + before.size())));
}

/// Where a hunk belongs, from line `from` on.
result<std::size_t> place_of(const lines_t& lines, const hunk& h, std::size_t from) {
  const auto wanted = h.before.empty() ? h.start : std::max<std::size_t>(h.start, 1) - 1;
  if (h.before.empty()) {
    if (wanted < from || wanted > lines.size())
      return fail(errc::conflict, "a hunk without context lies outside of the file");
    return wanted;
  }
  if (wanted >= from && fits(lines, wanted, h.before))
    return wanted;
  std::optional<std::size_t> found;
  for (auto at = from; at + h.before.size() <= lines.size(); ++at) {
    if (!fits(lines, at, h.before))
      continue;
    if (found)
      return fail(errc::conflict, "the lines that a hunk wants to change stand in several places",
                  {}, "give more lines around the change, or the whole content");
    found = at;
  }
  if (!found)
    return fail(errc::conflict,
                "the lines around a hunk (@@ -" + std::to_string(h.start) +
                    ") are not what the file has",
                {}, "read the file again, or give its whole content");
  return *found;
}

/// The shortest edit script by Myers, up to `most` edits: which lines of `a` and `b` stay.
class edit_script {
 public:
  edit_script(const lines_t& a, const lines_t& b, std::size_t most) : a_(a), b_(b) {
    const auto na = static_cast<std::ptrdiff_t>(a.size());
    const auto nb = static_cast<std::ptrdiff_t>(b.size());
    const auto bound = std::min<std::ptrdiff_t>(na + nb, static_cast<std::ptrdiff_t>(most));
    std::vector<std::ptrdiff_t> v(static_cast<std::size_t>(2 * bound + 3), 0);
    for (std::ptrdiff_t d = 0; d <= bound; ++d) {
      trace_.push_back(v);
      for (std::ptrdiff_t k = -d; k <= d; k += 2) {
        const auto at = [&](std::ptrdiff_t i) -> std::ptrdiff_t& {
          return v[static_cast<std::size_t>(i + bound + 1)];
        };
        auto x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
        while (x < na && x - k < nb && same(x, x - k))
          ++x;
        at(k) = x;
        if (x >= na && x - k >= nb) {
          edits_ = d;
          bound_ = bound;
          return;
        }
      }
    }
  }

  /// Nothing: more than `most`.
  std::optional<std::size_t> edits() const {
    return edits_ < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(edits_));
  }

  struct step {
    char sign;
    std::string_view line;
  };
  std::vector<step> steps() const {
    std::vector<step> out;
    auto x = static_cast<std::ptrdiff_t>(a_.size());
    auto y = static_cast<std::ptrdiff_t>(b_.size());
    for (auto d = edits_; d >= 0; --d) {
      const auto& v = trace_[static_cast<std::size_t>(d)];
      const auto at = [&](std::ptrdiff_t i) { return v[static_cast<std::size_t>(i + bound_ + 1)]; };
      const auto k = x - y;
      const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      const auto px = d == 0 ? 0 : (down ? at(k + 1) : at(k - 1));
      const auto py = d == 0 ? 0 : px - (down ? k + 1 : k - 1);
      while (x > px && y > py && same(x - 1, y - 1))
        out.push_back({' ', a_[static_cast<std::size_t>(--x)]}), --y;
      if (d == 0)
        break;
      if (down)
        out.push_back({'+', b_[static_cast<std::size_t>(--y)]});
      else
        out.push_back({'-', a_[static_cast<std::size_t>(--x)]});
    }
    std::ranges::reverse(out);
    return out;
  }

 private:
  bool same(std::ptrdiff_t x, std::ptrdiff_t y) const {
    return a_[static_cast<std::size_t>(x)] == b_[static_cast<std::size_t>(y)];
  }
  const lines_t& a_;
  const lines_t& b_;
  std::vector<std::vector<std::ptrdiff_t>> trace_;
  std::ptrdiff_t edits_ = -1;
  std::ptrdiff_t bound_ = 0;
};

/// Lines of one text that the other one does not have, wherever they stand.
std::size_t lines_apart(const lines_t& a, const lines_t& b) {
  std::map<std::string_view, std::ptrdiff_t> more;
  for (const auto line : a)
    ++more[line];
  for (const auto line : b)
    --more[line];
  std::size_t apart = 0;
  for (const auto& each : more)
    apart += static_cast<std::size_t>(std::abs(each.second));
  return apart;
}

void put(std::string& to, char sign, std::string_view line) {
  to += sign;
  to.append(line);
  if (!line.ends_with('\n'))
    to.append("\n").append(no_newline).append("\n");
}

/// The steps as hunks with some lines around each change.
std::string hunks_of(const std::vector<edit_script::step>& steps) {
  std::string out;
  std::size_t old_line = 1;
  std::size_t new_line = 1;
  for (std::size_t i = 0; i < steps.size();) {
    if (steps[i].sign == ' ') {
      ++old_line, ++new_line, ++i;
      continue;
    }
    std::size_t end = i + 1;
    for (std::size_t quiet = 0; end < steps.size() && quiet <= 2 * context_lines; ++end)
      quiet = steps[end].sign == ' ' ? quiet + 1 : 0;
    while (end > i && steps[end - 1].sign == ' ')
      --end;
    const auto before = std::min(context_lines, i);
    const auto begin = i - before;
    const auto last = std::min(end + context_lines, steps.size());
    std::string body;
    std::size_t olds = 0;
    std::size_t news = 0;
    for (auto s = begin; s < last; ++s) {
      put(body, steps[s].sign, steps[s].line);
      olds += steps[s].sign != '+' ? 1 : 0;
      news += steps[s].sign != '-' ? 1 : 0;
    }
    out += "@@ -" + std::to_string(olds == 0 ? 0 : old_line - before) + "," + std::to_string(olds) +
           " +" + std::to_string(news == 0 ? 0 : new_line - before) + "," + std::to_string(news) +
           " @@\n" + body;
    for (; i < last; ++i) {
      old_line += steps[i].sign != '+' ? 1 : 0;
      new_line += steps[i].sign != '-' ? 1 : 0;
    }
  }
  return out;
}

} // namespace

result<std::string> apply_diff(std::string_view before, std::string_view diff) {
  auto hunks = hunk_reader().read(diff);
  if (!hunks)
    return fail(std::move(hunks.error()));
  const auto lines = lines_of(before);
  std::string out;
  std::size_t done = 0;
  for (const auto& h : *hunks) {
    const auto at = place_of(lines, h, done);
    if (!at)
      return fail(at.error());
    for (; done < *at; ++done)
      out.append(lines[done]);
    for (const auto& line : h.after)
      out += line;
    done += h.before.size();
  }
  for (; done < lines.size(); ++done)
    out.append(lines[done]);
  return out;
}

diff_size measure_diff(std::string_view before, std::string_view after, std::size_t most) {
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  const edit_script script(a, b, most);
  if (!script.edits())
    return {std::max(most + 1, lines_apart(a, b)), 0};
  diff_size size{*script.edits(), 0};
  for (const auto& s : script.steps())
    size.bytes += s.sign == ' ' ? 0 : s.line.size();
  return size;
}

std::string render_diff(const std::string& path, std::string_view before, std::string_view after) {
  if (before == after)
    return {};
  const auto a = lines_of(before);
  const auto b = lines_of(after);
  std::string out = "--- " + (before.empty() ? "/dev/null" : "a/" + path) + "\n+++ " +
                    (after.empty() ? "/dev/null" : "b/" + path) + "\n";
  if (const edit_script script(a, b, most_diff_lines); script.edits())
    return out + hunks_of(script.steps());
  out += "@@ -1," + std::to_string(a.size()) + " +1," + std::to_string(b.size()) + " @@\n";
  for (const auto line : a)
    put(out, '-', line);
  for (const auto line : b)
    put(out, '+', line);
  return out;
}

} // namespace boyd::improve
