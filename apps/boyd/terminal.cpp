#include "terminal.hpp"

#include "boyd/core/text.hpp"
#include "exit_codes.hpp"
#include "hints.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace boyd::app {

namespace {

constexpr std::size_t standard_width = 80;
constexpr std::size_t least_width = 20;
constexpr std::size_t pipe_width = 1u << 20;
constexpr std::size_t gap = 2;
/// Characters to which a column may be cut.
constexpr std::size_t least_column = 8;

/// Standard output is a pipe that nobody reads any more. Only the main thread prints.
bool reader_is_gone = false;

const char* code_of(colour c) {
  switch (c) {
  case colour::good:
    return "\x1b[32m";
  case colour::bad:
    return "\x1b[31m";
  case colour::warn:
    return "\x1b[33m";
  case colour::faint:
    return "\x1b[2m";
  case colour::bold:
    return "\x1b[1m";
  case colour::none:
    break;
  }
  return "";
}

terminal terminal_of(int fd, const arguments& args) {
  terminal t;
  t.is_tty = ::isatty(fd) == 1;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  t.rewrites = t.is_tty && !dumb && !args.json && !args.quiet;
  t.colours = t.is_tty && !args.no_color && !dumb && (no_color == nullptr || *no_color == '\0');
  t.width = t.is_tty ? standard_width : pipe_width;
  struct ::winsize size {};
  if (t.is_tty && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    t.width = size.ws_col;
  if (const char* columns = std::getenv("COLUMNS")) {
    const long wanted = std::strtol(columns, nullptr, 10);
    if (wanted > 0 && wanted < static_cast<long>(pipe_width))
      t.width = static_cast<std::size_t>(wanted);
  }
  t.width = std::max(t.width, least_width);
  return t;
}

bool is_control(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u < 0x20 || u == 0x7F;
}

/// C1 control characters (U+0080 to U+009F) move cursors too.
std::string without_c1(std::string text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto u = static_cast<unsigned char>(text[i]);
    if (u == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

/// For an error that comes from so deep that it does not know what a person could do.
const char* advice(errc code) {
  switch (code) {
  case errc::invalid_argument:
  case errc::parse_error:
    return "see the verb's --help";
  case errc::invalid_configuration:
    return "fix the file, then run: boyd config validate";
  case errc::not_found:
  case errc::already_exists:
    return "check the name";
  case errc::io_error:
  case errc::no_space:
  case errc::spawn_failed:
    return "check path, permissions and free space; see: boyd doctor";
  case errc::store_unavailable:
  case errc::commit_in_doubt:
  case errc::repository_unavailable:
  case errc::corrupt:
    return "see: boyd doctor";
  case errc::timed_out:
  case errc::actor_down:
    return "check boyd status, then try again";
  case errc::locked:
  case errc::conflict:
  case errc::stale_fence:
  case errc::overloaded:
    return "try again in a moment";
  case errc::cancelled: // somebody wanted it so
    return "";
  case errc::bug:
  case errc::injected:
    return "please report it";
  default:
    return "see: boyd doctor";
  }
}

} // namespace

colour colour_of_status(std::string_view status) noexcept {
  if (status == "done" || status == "success" || status == "ok")
    return colour::good;
  if (status == "failed" || status == "error" || status == "fail")
    return colour::bad;
  return status == "running" ? colour::none : colour::warn;
}

bool terminal::has_width() const noexcept {
  return width < pipe_width;
}

std::string terminal::paint(colour c, std::string_view text) const {
  if (!colours || c == colour::none)
    return std::string(text);
  return code_of(c) + std::string(text) + "\x1b[0m";
}

terminal terminal_of_stdout(const arguments& args) {
  return terminal_of(STDOUT_FILENO, args);
}

terminal terminal_of_stderr(const arguments& args) {
  return terminal_of(STDERR_FILENO, args);
}

void table::add(std::vector<std::string> texts) {
  std::vector<cell> cells;
  cells.reserve(texts.size());
  for (auto& t : texts)
    cells.emplace_back(std::move(t));
  add_cells(std::move(cells));
}

void table::add_cells(std::vector<cell> cells) {
  for (auto& c : cells)
    c.text = one_line(c.text, pipe_width);
  rows_.push_back(std::move(cells));
}

void table::drop_when_narrow(std::vector<std::string> heads, std::size_t room) {
  droppable_ = std::move(heads);
  room_ = room;
}

std::vector<std::size_t> table::widths() const {
  std::vector<std::size_t> all;
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) {
      all.resize(std::max(all.size(), i + 1));
      all[i] = std::max(all[i], count_characters(row[i].text));
    }
  return all;
}

table table::narrowed(const terminal& t, std::size_t indent) const {
  auto fitting = *this;
  for (const auto& head : droppable_) {
    if (fitting.excess(fitting.widths(), t, indent) == 0)
      break;
    const auto& heads = fitting.rows_.front();
    const auto at = std::ranges::find(heads, head, &cell::text) - heads.begin();
    for (auto& row : fitting.rows_)
      if (at < static_cast<std::ptrdiff_t>(row.size()))
        row.erase(row.begin() + at);
  }
  auto wanted = fitting.widths();
  for (auto more = fitting.excess(wanted, t, indent); more > 0 && wanted.size() > 1; --more) {
    const auto widest = std::max_element(wanted.begin(), wanted.end() - 1);
    if (*widest <= least_column)
      break;
    --*widest;
  }
  for (auto& row : fitting.rows_)
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      row[i].text = one_line(row[i].text, wanted[i]);
  return fitting;
}

std::size_t table::excess(const std::vector<std::size_t>& widths, const terminal& t,
                          std::size_t indent) const {
  std::size_t used = indent + std::min(room_, widths.back());
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    used += widths[i] + gap;
  return used > t.width ? used - t.width : 0;
}

std::string table::render(const terminal& t, std::string_view indent) const {
  return t.has_width() ? narrowed(t, indent.size()).drawn(t, indent) : drawn(t, indent);
}

std::string table::drawn(const terminal& t, std::string_view indent) const {
  const auto widths = this->widths();
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto& row = rows_[r];
    std::string line(indent);
    std::size_t used = indent.size();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      const auto room = t.width > used ? t.width - used : 1;
      const auto text = last ? one_line(row[i].text, room) : row[i].text;
      line += t.paint(r == 0 ? colour::faint : row[i].paint, text);
      if (last)
        continue;
      const auto pad = widths[i] - count_characters(row[i].text) + gap;
      line.append(pad, ' ');
      used += widths[i] + gap;
    }
    while (!line.empty() && line.back() == ' ')
      line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string one_line(std::string_view text, std::size_t characters) {
  auto clean = without_c1(sanitize_utf8(text));
  for (auto& c : clean)
    if (is_control(c))
      c = ' ';
  if (count_characters(clean) <= characters)
    return clean;
  return std::string(cut_characters(clean, characters > 1 ? characters - 1 : 0)) + "…";
}

std::string cut_in_middle(std::string_view text, std::size_t characters) {
  const auto clean = one_line(text, pipe_width);
  const auto all = count_characters(clean);
  if (all <= characters || characters < 3)
    return one_line(clean, characters);
  const auto begin = cut_characters(clean, (characters - 1) / 3);
  const auto left_out = cut_characters(clean, all - (characters - 1 - (characters - 1) / 3));
  return std::string(begin) + "…" + clean.substr(left_out.size());
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  std::string out(text.substr(0, begin));
  std::size_t used = begin;
  bool first = true; // of its line
  for (const auto word : split(text.substr(begin), ' ')) {
    const auto size = count_characters(word);
    if (!first && used + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      first = true;
    }
    out += (first ? "" : " ") + std::string(word);
    used += size + (first ? 0 : 1);
    first = false;
  }
  return out;
}

std::string folded(std::string_view text, const terminal& t) {
  if (!t.has_width())
    return std::string(text);
  std::string out;
  for (const auto line : split(text, '\n')) {
    const auto begin = std::min(line.find_first_not_of(' '), line.size());
    out += (out.empty() ? "" : "\n") + wrapped(line, t.width, begin + 2);
  }
  return out;
}

namespace {

/// Where the text of a line of help begins: behind the name of an option or a verb, if there is
/// one.
std::size_t text_column(std::string_view line) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  const auto gap_at = line.find("  ", begin);
  if (begin == 0 || gap_at == std::string_view::npos)
    return begin;
  return std::min(line.find_first_not_of(' ', gap_at), line.size());
}

} // namespace

std::string fitted(std::string_view help, std::size_t width) {
  constexpr std::size_t least_room = 30;
  std::string out;
  for (const auto line : split(help, '\n')) {
    const auto column = text_column(line);
    out += (count_characters(line) <= width
                ? std::string(line)
                : wrapped(line, width, column + least_room > width ? 4 : column)) +
           "\n";
  }
  out.pop_back(); // one part more than line breaks
  return out;
}

std::string printable(std::string_view text) {
  auto clean = without_c1(sanitize_utf8(text));
  std::erase_if(clean, [](char c) { return is_control(c) && c != '\n' && c != '\t'; });
  return clean;
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./:@%+=,").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain))
    return std::string(text);
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

namespace {

terminal stderr_in_use() {
  return terminal_of(STDERR_FILENO, {});
}

} // namespace

namespace {

std::string hint_line(std::string_view text, std::size_t indent, const terminal& t) {
  const auto margin = std::string(indent, ' ');
  auto line = margin + std::string(text);
  if (!t.has_width() || count_characters(line) <= t.width)
    return line;
  const auto deeper = indent + 2;
  const auto command = line.find(": boyd ");
  if (command == line.npos)
    return wrapped(line, t.width, deeper);
  return wrapped(line.substr(0, command + 1), t.width, deeper) + "\n" + std::string(deeper, ' ') +
         line.substr(command + 2);
}

} // namespace

std::string hint_lines(std::string_view text, std::size_t indent, const terminal& t) {
  std::string out;
  auto margin = indent;
  for (const auto line : split(text, '\n')) {
    if (!out.empty())
      out += "\n";
    out += line.starts_with(' ') ? std::string(margin, ' ') + std::string(line)
                                 : hint_line(line, margin, t);
    margin = indent + 2;
  }
  return out;
}

void print_error(const error& e) {
  std::string text = "boyd: " + as_hint(printable(e.what));
  // Of several lines, the first one is the sentence.
  if (!e.where.empty())
    text.insert(std::min(text.find('\n'), text.size()), " (" + printable(e.where) + ")");
  const auto t = stderr_in_use();
  text = folded(text, t) + "\n";
  if (!e.next.empty())
    text += hint_lines("next: " + as_hint(printable(e.next)), 2, t) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_note(std::string_view text) {
  const auto line = folded("boyd: " + printable(text), stderr_in_use()) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string error_json(const error& e) {
  const nlohmann::json body{{"schema", "boyd.error/1"},
                            {"error",
                             {{"code", name_of(e.code)},
                              {"what", as_hint(e.what)},
                              {"where", e.where},
                              {"next", as_hint(e.next)}}}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int report(error e, bool as_json) {
  if (e.next.empty())
    e.next = advice(e.code);
  print_error(e);
  if (as_json)
    print(error_json(e) + "\n");
  return exit_code::of(e.code);
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((!written || std::fflush(stdout) != 0) && errno == EPIPE)
    reader_is_gone = true;
}

bool output_is_unread() noexcept {
  return reader_is_gone;
}

bool output_has_reader() noexcept {
  // The write end of a pipe whose read end is closed has POLLERR, as poll(2) says.
  struct ::pollfd out {
    STDOUT_FILENO, 0, 0
  };
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0)
    reader_is_gone = true;
  return !reader_is_gone;
}

} // namespace boyd::app
