#include "boyd/context/reference.hpp"

#include <string>
#include <utility>

namespace boyd::context {

namespace {

constexpr std::string_view blanks = " \t";
constexpr std::string_view for_shells = "|&;<>()$`*?\n\r";

tl::unexpected<error> malformed(std::string_view line, std::string what, std::string next) {
  return fail(errc::invalid_argument, std::move(what), std::string(line), std::move(next));
}

/// Reads a line from front to back.
class word_reader {
 public:
  explicit word_reader(std::string_view line) : line_(line) {}

  result<std::vector<std::string>> all() {
    for (; at_ < line_.size(); ++at_)
      if (auto ok = take(line_[at_]); !ok)
        return fail(std::move(ok.error()));
    end_word();
    if (words_.empty())
      return malformed(line_, "the command is empty", "@!program arguments");
    return std::move(words_);
  }

 private:
  result<void> take(char c) {
    if (blanks.find(c) != blanks.npos) {
      end_word();
      return {};
    }
    const bool is_home = c == '~' && !in_word_;
    if (is_home || for_shells.find(c) != for_shells.npos)
      return malformed(line_,
                       std::string("this command does not run in a shell, where ") + c +
                           " would have a meaning",
                       "quote it, or use a shell: @!sh -c '…'");
    in_word_ = true;
    if (c == '\'' || c == '"')
      return quoted(c);
    if (c != '\\') {
      word_ += c;
      return {};
    }
    if (++at_ == line_.size())
      return malformed(line_, "the command ends with a backslash", "write \\\\ for a backslash");
    word_ += line_[at_];
    return {};
  }

  result<void> quoted(char mark) {
    for (++at_; at_ < line_.size() && line_[at_] != mark; ++at_) {
      const bool escapes = mark == '"' && line_[at_] == '\\' && at_ + 1 < line_.size() &&
                           (line_[at_ + 1] == '"' || line_[at_ + 1] == '\\');
      if (escapes)
        ++at_;
      word_ += line_[at_];
    }
    if (at_ == line_.size())
      return malformed(line_, "the command has an unclosed quotation mark",
                       "close the quotation mark");
    return {};
  }

  void end_word() {
    if (std::exchange(in_word_, false))
      words_.push_back(std::exchange(word_, {}));
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  std::vector<std::string> words_;
};

} // namespace

result<std::vector<std::string>> words_of_command(std::string_view line) {
  return word_reader(line).all();
}

} // namespace boyd::context
