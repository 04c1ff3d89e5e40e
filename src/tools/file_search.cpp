#include "file_search.hpp"

#include "boyd/core/text.hpp"
#include "boyd/tools/glob.hpp"
#include "boyd/tools/result_text.hpp"
#include "file_reading.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace boyd::tools {

namespace {

/// Of a line that is shown.
constexpr std::size_t shown_line_bytes = 300;
/// Between what was found and the beginning of the line, at most, in a longer line.
constexpr std::size_t shown_before_bytes = 100;

std::string small(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

class searcher {
 public:
  searcher(const search_text_call& call,
           const std::function<bool(const std::string& where)>& allowed)
      : call_(call), allowed_(allowed), query_(call.ignore_case ? small(call.query) : call.query) {}

  bool wants(const std::string& where) {
    if (!call_.files.empty()) {
      const auto name = call_.files.find('/') == std::string::npos
                            ? std::string_view(where).substr(where.rfind('/') + 1)
                            : std::string_view(where);
      if (!glob_matches(call_.files, name))
        return false;
    }
    if (allowed_(where))
      return true;
    ++denied_;
    return false;
  }

  /// False: enough.
  bool look(const std::string& where, std::string_view text) {
    if (looks_binary(text)) {
      ++binary_;
      return true;
    }
    const std::string folded = call_.ignore_case ? small(text) : std::string();
    const std::string_view looked_at = call_.ignore_case ? std::string_view(folded) : text;
    std::size_t line = 1;
    std::size_t counted = 0; // up to where lines were counted
    for (std::size_t at = 0; (at = find(looked_at, at)) != std::string_view::npos;) {
      if (matches_ == search_text_call::most_matches) {
        enough_ = true;
        return false;
      }
      ++matches_;
      line += static_cast<std::size_t>(
          std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                     text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      counted = at;
      add(where, line, text, at);
      at = text.find('\n', at);
      if (at == std::string_view::npos)
        break;
      ++at;
    }
    return true;
  }

  std::string finish(const confined_files::walk_end& end) {
    found_ += "[" + std::to_string(matches_) + " lines found in " + std::to_string(end.files) +
              " files, " + std::to_string(end.bytes) + " bytes";
    const auto also = [&](std::size_t count, std::string_view what) {
      if (count > 0)
        found_.append("; ").append(std::to_string(count)).append(what);
    };
    also(binary_, " binary files skipped");
    also(end.too_large, " files skipped: too large");
    also(end.unreadable, " files or directories unreadable");
    also(denied_, " files skipped: denied by the policy");
    if (enough_)
      found_ += "; more matches: use a longer text or fewer files";
    if (!end.cut.empty())
      found_ += "; not everything was searched: stopped at the limit of " + end.cut;
    return std::move(found_) + "]\n";
  }

 private:
  /// memmem takes linear time whatever the text; std::string_view::find does not.
  std::size_t find(std::string_view text, std::size_t from) const {
    if (from >= text.size())
      return std::string_view::npos;
    const void* hit =
        ::memmem(text.data() + from, text.size() - from, query_.data(), query_.size());
    return hit == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
  }

  void add(const std::string& where, std::size_t line, std::string_view text, std::size_t at) {
    const auto begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1; // npos + 1 is 0
    const auto end = std::min(text.find('\n', at), text.size());
    auto shown = text.substr(begin, end - begin);
    std::string before;
    if (shown.size() > shown_line_bytes && at - begin > shown_before_bytes) {
      shown.remove_prefix(at - begin - shown_before_bytes);
      before = "…";
    }
    const bool cut = shown.size() > shown_line_bytes;
    found_ += sanitize_utf8(where) + ":" + std::to_string(line) + ": " + before +
              sanitize_utf8(shown.substr(0, shown_line_bytes)) + (cut ? "…\n" : "\n");
  }

  const search_text_call& call_;
  const std::function<bool(const std::string& where)>& allowed_;
  std::string query_;
  std::string found_;
  std::size_t matches_ = 0;
  std::size_t binary_ = 0;
  std::size_t denied_ = 0;
  bool enough_ = false;
};

} // namespace

result<std::string> search_files(confined_files& files, const std::string& root,
                                 const search_text_call& call,
                                 const std::function<bool(const std::string& where)>& allowed) {
  searcher s(call, allowed);
  const auto end = files.walk(
      root, call.path, {}, [&](const std::string& where) { return s.wants(where); },
      [&](const std::string& where, std::string_view text) { return s.look(where, text); });
  if (!end)
    return fail(end.error());
  return s.finish(*end);
}

} // namespace boyd::tools
