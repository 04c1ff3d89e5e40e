#include "shell_words.hpp"

#include "boyd/tools/glob.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace boyd::tools {

namespace {

/// Deeper ones cannot be read.
constexpr int most_nested = 32;
constexpr int most_lines_within = 6;
/// Of a program that starts another one.
constexpr std::size_t most_words = 1000;

/// They stand before a command.
constexpr std::array<std::string_view, 9> keywords{"if",    "then",  "else", "elif", "do",
                                                   "while", "until", "!",    "{"};
/// They start what stands somewhere among their words.
constexpr std::array<std::string_view, 34> starters{
    "env",      "nice",    "nohup",  "setsid", "timeout", "time",    "stdbuf", "ionice",  "chrt",
    "eval",     "trap",    "sudo",   "doas",   "su",      "runuser", "xargs",  "find",    "watch",
    "parallel", "busybox", "script", "flock",  "taskset", "unshare", "chroot", "nsenter", "setpriv",
    "strace",   "ltrace",  "ssh",    "coproc", "exec",    "command", "builtin"};
/// They add words to those.
constexpr std::array<std::string_view, 2> appenders{"xargs", "parallel"};
constexpr std::array<std::string_view, 8> shells{"sh",  "bash", "dash", "ash",
                                                 "ksh", "mksh", "zsh",  "fish"};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_assignment(std::string_view word) {
  const auto sign = word.find_first_of("+="); // bash has +=
  return sign != std::string_view::npos && sign > 0 && word.substr(sign).find('=') <= 1 &&
         begins_name(word.front()) && std::ranges::all_of(word.substr(0, sign), [](char c) {
           return begins_name(c) || (c >= '0' && c <= '9');
         });
}

class reader {
 public:
  explicit reader(std::string_view line) : line_(line) {}

  shell_reading run() {
    commands_until(0);
    return std::move(out_);
  }

 private:
  struct one_word {
    std::string text;
    bool begun = false;
    bool open = false;   ///< `text` is how it begins
    bool target = false; ///< of a redirection

    void add(char c) {
      begun = true;
      if (!open)
        text += c;
    }
    void leave_open() { begun = open = true; }
  };

  /// What is being read; commands in it have their own.
  struct level {
    shell_command command;
    one_word word;
  };

  char next(std::size_t ahead = 0) const {
    return at_ + ahead < line_.size() ? line_[at_ + ahead] : '\0';
  }

  void commands_until(char end) {
    level here;
    if (++depth_ > most_nested) {
      out_.sure = false;
      at_ = line_.size();
    }
    bool ended = end == 0;
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == end && end != 0) {
        ended = true;
        break;
      }
      character(here, c);
    }
    end_command(here);
    out_.sure = out_.sure && ended;
    --depth_;
  }

  void character(level& here, char c) {
    switch (c) {
    case '\n':
    case ';':
    case '&':
    case '|':
    case ')':
      return end_command(here);
    case '(':
      end_command(here);
      return commands_until(')');
    case '<':
    case '>':
      return redirection(here);
    case '#':
      if (!here.word.begun)
        at_ = std::min(line_.find('\n', at_), line_.size());
      else
        here.word.add(c);
      return;
    case '\'':
      return single_quoted(here.word);
    case '"':
      return double_quoted(here.word);
    case '\\':
      return escaped(here.word);
    case '$':
    case '`':
      return substitution(here.word, c);
    case '[':
      if (!here.word.begun && is_blank(next(next() == '[' ? 1 : 0))) // a test
        return here.word.add(c);
      return here.word.leave_open();
    case '*':
    case '?':
      return here.word.leave_open();
    case '{':
      // {rm,x} are two words; a brace alone is one of its own.
      if (here.word.begun || !(is_blank(next()) || next() == '\n' || next() == '\0'))
        return here.word.leave_open();
      return here.word.add(c);
    default:
      return is_blank(c) ? end_word(here) : here.word.add(c);
    }
  }

  void redirection(level& here) {
    const auto& text = here.word.text;
    if (here.word.begun && !here.word.open && text.find_first_not_of("0123456789") == text.npos)
      here.word = {}; // 2>
    end_word(here);
    const auto begin = at_;
    at_ = std::min(line_.find_first_not_of("<>&|-", at_), line_.size());
    const bool closes = line_.substr(begin, at_ - begin).ends_with("&-"); // 2>&-
    if (closes && at_ < line_.size() && !is_blank(next()) && next() != ';' && next() != '\n')
      out_.sure = false;
    here.word.target = !closes && next() != '(';
  }

  void single_quoted(one_word& word) {
    word.begun = true;
    const auto end = line_.find('\'', at_);
    if (end == std::string_view::npos) {
      out_.sure = false;
      at_ = line_.size();
      return;
    }
    for (; at_ < end; ++at_)
      word.add(line_[at_]);
    ++at_;
  }

  void double_quoted(one_word& word) {
    word.begun = true;
    while (at_ < line_.size()) {
      const char c = line_[at_++];
      if (c == '"')
        return;
      if (c == '$' || c == '`')
        substitution(word, c);
      else if (c == '\\' && std::string_view("$`\"\\\n").find(next()) != std::string_view::npos)
        escaped(word);
      else
        word.add(c);
    }
    out_.sure = false;
  }

  void escaped(one_word& word) {
    if (at_ == line_.size())
      return word.add('\\');
    const char c = line_[at_++];
    if (c != '\n') // otherwise the line goes on
      word.add(c);
  }

  void substitution(one_word& word, char c) {
    word.leave_open();
    if (c == '`')
      return commands_until('`');
    if (next() == '\'') // shells differ in where such a quote ends
      out_.sure = false;
    if (next() == '(') {
      ++at_;
      commands_until(')');
    }
  }

  static void end_word(level& here) {
    auto word = std::exchange(here.word, {});
    auto& command = here.command;
    if (!word.begun) {
      here.word.target = word.target;
      return;
    }
    if (word.target || command.open || (command.words.empty() && is_assignment(word.text)))
      return;
    command.words.push_back(std::move(word.text));
    command.open = word.open;
  }

  void end_command(level& here) {
    end_word(here);
    here.word = {};
    auto command = std::exchange(here.command, {});
    if (!command.words.empty())
      out_.commands.push_back(std::move(command));
  }

  std::string_view line_;
  std::size_t at_ = 0;
  int depth_ = 0;
  shell_reading out_;
};

std::string_view last_part(std::string_view program) {
  return program.substr(program.rfind('/') + 1);
}

bool is_among(std::string_view program, const auto& names) {
  return std::ranges::find(names, last_part(program)) != names.end();
}

bool fits_line_within(std::string_view pattern, std::string_view line, int depth);

class command_matcher {
 public:
  command_matcher(std::string_view pattern, const shell_command& command, int depth)
      : pattern_(pattern), words_(command.words), open_(command.open), depth_(depth) {
    for (const auto& word : words_) {
      begins_.push_back(text_.size() + (begins_.empty() ? 0 : 1));
      text_.append(begins_.size() == 1 ? "" : " ").append(word);
      grows_ = grows_ || is_among(word, appenders);
    }
  }

  bool fits() const {
    if (words_.empty())
      return false;
    std::size_t first = 0;
    while (first + 1 < words_.size() && is_among(words_[first], keywords))
      ++first;
    if (fits_from(0) || fits_from(first) || starts_line(first))
      return true;
    if (!is_starter(words_[first]))
      return false;
    if (words_.size() > most_words)
      return true;
    for (auto i = first + 1; i < words_.size(); ++i)
      // A pattern that begins with * has been tried on all of it.
      if ((!pattern_.starts_with('*') && fits_from(i)) || starts_line(i) || is_fitting_line(i))
        return true;
    return words_[first] == "eval" &&
           (open_ || fits_line_within(pattern_, rest_from(first).substr(4), depth_ + 1));
  }

 private:
  bool is_starter(std::string_view program) const {
    if (!is_among(program, starters))
      return false;
    return last_part(program) != "find" || std::ranges::any_of(words_, [](const auto& w) {
             return w.starts_with("-exec") || w.starts_with("-ok");
           });
  }

  std::string_view rest_from(std::size_t i) const {
    return std::string_view(text_).substr(begins_[i]);
  }

  /// The command that the i-th word would begin.
  bool fits_from(std::size_t i) const {
    const auto rest = rest_from(i);
    const auto directory = words_[i].rfind('/') + 1;
    return fits_text(rest) || (directory > 0 && fits_text(rest.substr(directory)));
  }

  bool fits_text(std::string_view text) const {
    return open_ || grows_ ? glob_continues(pattern_, text, glob_text::command)
                           : glob_matches(pattern_, text, glob_text::command);
  }

  /// sh -c LINE
  bool starts_line(std::size_t i) const {
    if (!is_among(words_[i], shells))
      return false;
    const auto is_option = [](const std::string& w) {
      return w.size() > 1 && w[0] == '-' && w[1] != '-' && w.find('c') != std::string::npos;
    };
    const auto first = words_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::none_of(first, words_.end(), is_option))
      return false;
    return open_ || std::any_of(first, words_.end(), [&](const auto& w) {
             return fits_line_within(pattern_, w, depth_ + 1);
           });
  }

  /// A word of several: su -c 'rm x'.
  bool is_fitting_line(std::size_t i) const {
    return words_[i].find_first_of(" \t\n;&|") != std::string::npos &&
           fits_line_within(pattern_, words_[i], depth_ + 1);
  }

  std::string_view pattern_;
  const std::vector<std::string>& words_;
  bool open_;
  bool grows_ = false; ///< words are added
  int depth_;
  std::string text_;                ///< the words with blanks between
  std::vector<std::size_t> begins_; ///< of each in `text_`
};

bool fits_line_within(std::string_view pattern, std::string_view line, int depth) {
  if (depth > most_lines_within)
    return true;
  const auto reading = read_shell_line(line);
  return !reading.sure || std::ranges::any_of(reading.commands, [&](const auto& c) {
    return command_matcher(pattern, c, depth).fits();
  });
}

} // namespace

shell_reading read_shell_line(std::string_view line) {
  return reader(line).run();
}

bool fits_command(std::string_view pattern, const shell_command& command) {
  return command_matcher(pattern, command, 0).fits();
}

bool fits_line(std::string_view pattern, std::string_view line) {
  return fits_line_within(pattern, line, 0);
}

} // namespace boyd::tools
