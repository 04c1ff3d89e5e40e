#include "boyd/context/reference.hpp"

#include "boyd/core/text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

namespace boyd::context {

namespace {

/// Lines are numbered up to here; more is a slip.
constexpr int most_lines = 10'000'000;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Part of a word, as far as a sign behind it begins none; bytes of UTF-8 are letters mostly.
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) > 127;
}

std::optional<int> line_number(std::string_view digits) {
  int n = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (ec != std::errc{} || end != digits.data() + digits.size() || n < 1 || n > most_lines)
    return std::nullopt;
  return n;
}

/// Takes ":10" or ":10-30" off the end of a path; false: what stands there is no range of lines.
bool take_lines(reference& r) {
  const auto colon = r.target.rfind(':');
  if (colon == std::string::npos || colon + 1 == r.target.size())
    return true;
  const std::string_view range = std::string_view(r.target).substr(colon + 1);
  if (!std::ranges::all_of(range, [](char c) { return is_digit(c) || c == '-'; }))
    return true; // a colon in a name
  const auto dash = range.find('-');
  const auto first = line_number(range.substr(0, dash));
  const auto last = dash == range.npos ? first : line_number(range.substr(dash + 1));
  if (!first || !last || *last < *first)
    return false;
  r.first_line = *first;
  r.last_line = *last;
  r.target.resize(colon);
  return true;
}

tl::unexpected<error> malformed(std::string_view entry, std::string what) {
  return fail(errc::invalid_argument, std::move(what), std::string(entry),
              "@path, @path:10-30, #dir, @!command, or @\"a path with spaces\"");
}

/// The text in quotes at `at`, which is behind the first one; moves `at` behind the last.
std::optional<std::string> quoted(std::string_view text, std::size_t& at) {
  const auto end = text.find('"', at);
  if (end == text.npos || text.substr(at, end - at).find('\n') != text.npos || end == at)
    return std::nullopt;
  auto inside = std::string(text.substr(at, end - at));
  at = end + 1;
  return inside;
}

/// A name in a program: `property`, `pytest.mark.skip`.
bool is_program_name(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.';
  });
}

/// Whether a line begins what a decorator stands above.
bool is_decorated(std::string_view line) {
  constexpr std::string_view beginnings[] = {"@",       "def ",     "async ",    "class ",
                                             "export ", "public ",  "private ",  "protected ",
                                             "static ", "function", "abstract ", "interface "};
  return std::ranges::any_of(beginnings, [&](auto b) { return line.starts_with(b); });
}

/// Finds candidates in a text; skips code.
class scanner {
 public:
  /// `from`: the beginning, or where a candidate begins.
  explicit scanner(std::string_view text, std::size_t from = 0) : text_(text), at_(from) {}

  std::vector<candidate> all() {
    while (at_ < text_.size())
      step();
    return std::move(found_);
  }

  /// The next one only; nothing at the end.
  std::optional<candidate> next() {
    found_.clear();
    while (at_ < text_.size() && found_.empty())
      step();
    return found_.empty() ? std::nullopt : std::optional(std::move(found_.front()));
  }

 private:
  bool at_line_start() const { return at_ == 0 || text_[at_ - 1] == '\n'; }

  void step() {
    if (at_line_start() && skip_fence())
      return;
    const char c = text_[at_];
    if (c == '`')
      return skip_span();
    if (c != '@' && c != '#') {
      ++at_;
      return;
    }
    look();
  }

  /// A fence of three or more backticks or tildes, up to the line that closes it, or to the end.
  bool skip_fence() {
    auto i = at_;
    while (i < text_.size() && text_[i] == ' ')
      ++i;
    const char mark = i < text_.size() ? text_[i] : '\0';
    if (mark != '`' && mark != '~')
      return false;
    const auto length = run_of(i, mark);
    constexpr std::size_t shortest_fence = 3;
    if (length < shortest_fence)
      return false;
    auto line = text_.find('\n', i);
    while (line != text_.npos) {
      auto begin = line + 1;
      while (begin < text_.size() && text_[begin] == ' ')
        ++begin;
      line = text_.find('\n', begin);
      const auto end = std::min(line, text_.size());
      const auto closing = run_of(begin, mark);
      if (closing >= length && trim(text_.substr(begin + closing, end - begin - closing)).empty()) {
        at_ = end;
        return true;
      }
    }
    at_ = text_.size();
    return true;
  }

  std::size_t run_of(std::size_t i, char c) const {
    const auto end = std::min(text_.find_first_not_of(c, i), text_.size());
    return end - std::min(i, end);
  }

  /// A code span ends with as many backticks as it began with; without them it is none.
  void skip_span() {
    const auto length = run_of(at_, '`');
    for (auto i = at_ + length; i < text_.size();) {
      if (text_[i] != '`') {
        ++i;
        continue;
      }
      const auto closing = run_of(i, '`');
      i += closing;
      if (closing == length) {
        at_ = i;
        return;
      }
    }
    at_ += length;
  }

  void look() {
    const auto begin = at_;
    const char sign = text_[at_++];
    if (begin > 0 && text_[begin - 1] == '\\')
      return say(begin, at_, "escaped with a backslash");
    if (begin > 0 && is_word(text_[begin - 1]))
      return say(begin, end_of_word(at_), "inside a word, as in an e-mail address");
    if (begin > 0 && std::string_view("/=&+").find(text_[begin - 1]) != std::string_view::npos)
      return say(begin, end_of_word(at_), "part of an address");
    if (sign == '@' && at_ < text_.size() && text_[at_] == '!')
      return command(begin);
    if (at_ < text_.size() && text_[at_] == '"')
      return in_quotes(begin, sign);
    if (at_ == text_.size() || is_blank(text_[at_]))
      return; // a sign by itself, or a heading
    if (sign == '#' && text_[at_] == '#')
      return skip_signs();
    word(begin, sign);
  }

  void skip_signs() {
    while (at_ < text_.size() && text_[at_] == '#')
      ++at_;
  }

  /// Up to the end of the line.
  void command(std::size_t begin) {
    const auto end = std::min(text_.find('\n', at_), text_.size());
    const auto line = trim(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end;
    if (line.empty())
      return say(begin, end, "no command after @!");
    found_.push_back({begin,
                      end - begin,
                      reference_verdict::reference,
                      {reference_kind::command, std::string(line), 0, 0},
                      {}});
  }

  void in_quotes(std::size_t begin, char sign) {
    ++at_;
    auto path = quoted(text_, at_);
    if (!path)
      return say(begin, at_, "the quotation mark is not closed on this line");
    reference r{kind_of(sign), std::move(*path), 0, 0};
    // @"a b.txt":10-30
    auto end = at_;
    if (sign == '@' && end < text_.size() && text_[end] == ':') {
      auto digits = end + 1;
      while (digits < text_.size() && (is_digit(text_[digits]) || text_[digits] == '-'))
        ++digits;
      r.target += text_.substr(end, digits - end);
      end = digits;
    }
    at_ = end;
    add(begin, std::move(r), reference_verdict::reference);
  }

  void word(std::size_t begin, char sign) {
    const auto end = end_of_word(at_);
    const char next = end < text_.size() ? text_[end] : '\0';
    auto target = std::string(text_.substr(at_, end - at_));
    at_ = std::max(end, at_);
    if (target.empty())
      return;
    if (sign == '#' && std::ranges::all_of(target, is_digit))
      return say(begin, end, "# with a number is an issue");
    if (sign == '#' && (target == "include" || target.starts_with("include<")))
      return say(begin, end, "#include is a line of code");
    if (sign == '#' && target.front() == '!')
      return say(begin, end, "#! begins a script");
    if (next == '{')
      return say(begin, end,
                 "contains a placeholder, and values of placeholders are never references");
    if (sign == '@' && (next == '(' || decorates(begin, target, end)))
      return say(begin, end, "a decorator in code");
    const bool path_like = target.find_first_of("/.") != std::string::npos;
    add(begin, {kind_of(sign), std::move(target), 0, 0},
        path_like ? reference_verdict::reference : reference_verdict::if_it_exists);
  }

  /// Whether `word` stands alone on its line, above what it would decorate.
  bool decorates(std::size_t begin, std::string_view word, std::size_t end) const {
    const auto line = text_.rfind('\n', begin) + 1; // npos + 1 is the first one
    const auto close = text_.find('\n', end);
    if (!is_program_name(word) || close == text_.npos ||
        !trim(text_.substr(line, begin - line)).empty() ||
        !trim(text_.substr(end, close - end)).empty())
      return false;
    const auto next = text_.substr(close + 1);
    return is_decorated(trim(next.substr(0, next.find('\n'))));
  }

  void add(std::size_t begin, reference r, reference_verdict verdict) {
    if (r.kind == reference_kind::file && !take_lines(r))
      return say(begin, at_, "not a range of lines");
    found_.push_back({begin, at_ - begin, verdict, std::move(r), {}});
  }

  void say(std::size_t begin, std::size_t end, std::string why) {
    at_ = std::max(at_, end);
    found_.push_back({begin, end - begin, reference_verdict::text, {}, std::move(why)});
  }

  static reference_kind kind_of(char sign) {
    return sign == '#' ? reference_kind::directory : reference_kind::file;
  }

  /// Up to a blank, a bracket or a quotation mark, without the punctuation of a sentence.
  std::size_t end_of_word(std::size_t from) const {
    const auto end = std::min(text_.find_first_of(" \t\r\n\"'`<>()[]{}|,;", from), text_.size());
    auto last = end;
    while (last > from && std::string_view(".:!?").find(text_[last - 1]) != std::string_view::npos)
      --last;
    return last;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<candidate> found_;
};

} // namespace

std::string to_text(const reference& r) {
  if (r.kind == reference_kind::command)
    return "@!" + r.target;
  const bool quotes = std::ranges::any_of(r.target, is_blank);
  std::string text = r.kind == reference_kind::directory ? "#" : "@";
  text += quotes ? "\"" + r.target + "\"" : r.target;
  if (r.first_line > 0)
    text += ":" + std::to_string(r.first_line) +
            (r.last_line == r.first_line ? "" : "-" + std::to_string(r.last_line));
  return text;
}

result<reference> parse_declared(std::string_view entry) {
  auto text = trim(entry);
  if (text.empty())
    return malformed(entry, "an entry of `context` is empty");
  if (text.find('\n') != text.npos || text.find('\0') != text.npos)
    return malformed(entry, "an entry of `context` has more than one line");
  if (text.starts_with("@!")) {
    const auto command = trim(text.substr(2));
    if (command.empty())
      return malformed(entry, "no command after @!");
    return reference{reference_kind::command, std::string(command), 0, 0};
  }
  const bool directory = text.starts_with('#');
  if (directory || text.starts_with('@'))
    text.remove_prefix(1);
  reference r{directory ? reference_kind::directory : reference_kind::file, {}, 0, 0};
  if (text.starts_with('"')) {
    std::size_t at = 1;
    auto inside = quoted(text, at);
    if (!inside)
      return malformed(entry, "a quotation mark is not closed");
    r.target = std::move(*inside) + std::string(text.substr(at));
    if (at < text.size() && text[at] != ':')
      return malformed(entry, "unexpected text after the quotation mark");
  } else {
    r.target = text;
  }
  if (!directory && !take_lines(r))
    return malformed(entry, "not a range of lines: use FIRST-LAST, counted from 1");
  if (r.target.empty())
    return malformed(entry, "the path is missing");
  return r;
}

std::vector<candidate> find_candidates(std::string_view text) {
  return scanner(text).all();
}

std::string escape_signs(std::string_view text) {
  std::string out(text);
  std::vector<std::size_t> settled; // offsets of candidates that are done, in order
  std::set<std::size_t> escaped;    // offsets of the signs among them that were escaped here
  std::size_t from = 0;
  for (;;) {
    // One at a time: what stands behind a reference may be read in another way when it is none.
    scanner signs(out, from);
    std::optional<candidate> next;
    while ((next = signs.next()) && (escaped.contains(next->offset) ||
                                     (next->verdict == reference_verdict::text &&
                                      (next->offset == 0 || out[next->offset - 1] != '\\'))))
      settled.push_back(next->offset);
    if (!next)
      return out;
    from = next->offset;
    out.insert(from, 1, '\\');
    const std::vector<std::size_t> behind(escaped.upper_bound(from), escaped.end());
    escaped.erase(escaped.upper_bound(from), escaped.end());
    for (const auto offset : behind)
      escaped.insert(offset + 1);
    escaped.insert(from + 1);
    // What is in front of it stays as it was read, but for a decorator on the line above.
    if (settled.empty() || std::count(out.begin() + static_cast<std::ptrdiff_t>(settled.back()),
                                      out.begin() + static_cast<std::ptrdiff_t>(from), '\n') != 1)
      continue;
    from = settled.back();
    settled.pop_back();
  }
}

std::string unescape_signs(std::string_view text) {
  std::string out;
  std::size_t from = 0;
  for (const auto& c : find_candidates(text)) {
    if (c.verdict != reference_verdict::text || c.offset == 0 || text[c.offset - 1] != '\\')
      continue;
    out += text.substr(from, c.offset - 1 - from);
    from = c.offset;
  }
  return out += text.substr(from);
}

} // namespace boyd::context
