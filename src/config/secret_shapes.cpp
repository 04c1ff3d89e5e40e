#include "boyd/config/secret_shapes.hpp"

#include "secret_forms.hpp"
#include "secret_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace boyd::config {
namespace {

constexpr std::string_view mask = "[redacted]";

/// Longer than any PEM block of a key.
constexpr std::size_t longest_pem = 32u << 10;
constexpr std::string_view pem_begin = "-----BEGIN ";
constexpr std::string_view pem_end = "-----END ";
constexpr std::string_view pem_dashes = "-----";
constexpr std::size_t longest_pem_label = 40;
/// A line of a PEM block that stands by itself has 64 characters or 76; the last one has fewer.
constexpr std::size_t pem_line = 40;
constexpr std::size_t pem_last_line = 16;
/// What may stand before a key in its block (RFC 1421 §4.6, RFC 9580 §6.2.2).
constexpr std::array<std::string_view, 6> pem_headers{
    "Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", "Hash:"};
constexpr std::size_t jwt_part = 10;
constexpr std::size_t aws_key = 16;
constexpr std::size_t google_key = 35;
constexpr std::size_t shortest_sk = 20;
/// Of a value that is named a secret.
constexpr std::size_t shortest_value = 16;
constexpr std::size_t longest_name = 48;
/// What a cut must have left of a secret that only begins like one.
constexpr std::size_t part_of_strong = 4;
constexpr std::size_t part_of_weak = 8;

bool equals_ignoring_case(std::string_view text, std::string_view lower_word) {
  if (text.size() != lower_word.size())
    return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (lower(text[i]) != lower_word[i])
      return false;
  return true;
}

bool is_pem_header(std::string_view line) {
  return std::ranges::any_of(pem_headers, [&](auto h) { return line.starts_with(h); }) &&
         std::ranges::all_of(line, [](char c) {
           return is_letter_or_digit(c) ||
                  std::string_view(" ,.:-_/()@").find(c) != std::string_view::npos;
         });
}

/// Reads what stands between the labels of a private key, word for word: anybody can write the
/// labels, around anything, so nothing but a key may be taken with them.
class key_body {
 public:
  /// Whether there are lines of a key, and nothing that could be more than that.
  static bool is_key(std::string_view body) {
    key_body read;
    while (!body.empty()) {
      const auto end = std::min(body.find_first_of("\n\r\\"), body.size());
      if (!read.line(body.substr(0, end)))
        return false;
      body.remove_prefix(end);
      if (!skip_break(body))
        return false;
    }
    return read.has_lines_;
  }

 private:
  /// Past a line break, also one that is escaped: "\n" as in JSON, once or several times.
  static bool skip_break(std::string_view& rest) {
    const auto signs = std::min(rest.find_first_not_of('\\'), rest.size());
    if (signs == 0) {
      rest.remove_prefix(rest.empty() ? 0 : 1);
      return true;
    }
    rest.remove_prefix(signs);
    if (rest.empty() || std::string_view("nr\n\r").find(rest.front()) == std::string_view::npos)
      return false;
    rest.remove_prefix(1);
    return true;
  }

  bool line(std::string_view text) {
    if (!has_lines_ && is_pem_header(text))
      return true;
    while (!text.empty()) {
      const auto end = std::min(text.find_first_of(" \t"), text.size());
      if (end > 0 && !word(text.substr(0, end)))
        return false;
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return true;
  }

  bool word(std::string_view text) {
    constexpr std::size_t checksum = 5; // of OpenPGP: "=" and four characters
    if (!std::ranges::all_of(text, is_base64))
      return false;
    if (text.size() >= pem_line)
      return has_lines_ = !over_;
    // A short word alone could be the name of a program.
    const bool sum = text.size() == checksum && text.front() == '=';
    if (!has_lines_ || (over_ && !sum) ||
        (!sum && text.size() < pem_last_line && !text.ends_with('=')))
      return false;
    return over_ = true;
  }

  bool has_lines_ = false;
  bool over_ = false; ///< the last line was there
};

class scanner {
 public:
  scanner(std::string_view text, cut_at cut)
      : text_(text), cut_end_(cut == cut_at::end), keys_(text), payloads_(text), values_(text) {
    if (cut == cut_at::begin)
      take_rest_of_secret();
  }

  /// The places, in order, that do not overlap.
  std::vector<std::pair<std::size_t, std::size_t>> run() {
    for (std::size_t i = done_; i < text_.size(); ++i) {
      const auto kind = anchors[static_cast<std::uint8_t>(text_[i])];
      if (kind == anchor::none)
        continue;
      look(kind, i);
      if (done_ > i)
        i = done_ - 1;
    }
    return joined();
  }

 private:
  void look(anchor kind, std::size_t at) {
    switch (kind) {
    case anchor::underscore:
      return look_for(underscore_forms, at);
    case anchor::dash:
      if (at + pem_begin.size() < text_.size() && text_[at + pem_dashes.size()] == 'B')
        look_for_pem(at);
      if (done_ <= at)
        look_for_sk(at);
      return done_ <= at ? look_for(dash_forms, at) : void();
    case anchor::jwt:
      return look_for_jwt(at);
    case anchor::aws:
      return look_for_aws(at);
    case anchor::google:
      return look_for_google(at);
    case anchor::value:
      return look_for_value(at);
    case anchor::bearer:
      return look_for_bearer(at);
    case anchor::none:
      return;
    }
  }

  /// What was found and lines of keys, which are looked for ahead, in order.
  std::vector<std::pair<std::size_t, std::size_t>> joined() {
    if (lines_.empty())
      return std::move(found_);
    found_.insert(found_.end(), lines_.begin(), lines_.end());
    std::ranges::sort(found_);
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (const auto& [begin, end] : found_)
      if (!out.empty() && begin <= out.back().second)
        out.back().second = std::max(out.back().second, end);
      else
        out.emplace_back(begin, end);
    return out;
  }

  void take(std::size_t begin, std::size_t end) {
    begin = std::max(begin + rest_of_escape(begin), done_);
    if (end <= begin)
      return;
    found_.emplace_back(begin, end);
    done_ = end;
  }

  /// What follows a backslash belongs to it: "\n" with "pm_…" behind it, "\u000a".
  std::size_t rest_of_escape(std::size_t at) const {
    constexpr std::size_t code_point = 5;
    if (at == 0 || at == text_.size() || text_[at - 1] != '\\')
      return 0;
    return text_[at] == 'u' ? code_point : 1;
  }

  bool is_cut(std::size_t end) const { return cut_end_ && end == text_.size(); }

  /// Where `prefix`, whose last character is at `at`, begins; npos when it does not stand there.
  std::size_t begin_of(std::string_view prefix, std::size_t at) const {
    if (at + 1 < prefix.size() || at + 1 - prefix.size() < done_ ||
        text_.substr(at + 1 - prefix.size(), prefix.size()) != prefix)
      return std::string_view::npos;
    return at + 1 - prefix.size();
  }

  void look_for(const auto& forms, std::size_t at) {
    if (at < 2)
      return;
    for (const auto& form : forms) {
      if (form.prefix[form.prefix.size() - 2] != text_[at - 1])
        continue;
      const auto begin = begin_of(form.prefix, at);
      if (begin == std::string_view::npos || (!form.anywhere && !begins_word(text_, begin)))
        continue;
      const auto end = keys_.end_from(at + 1);
      const auto key = text_.substr(at + 1, end - at - 1);
      if (form.prefix == "pypi-" && !key.starts_with("AgE"))
        continue;
      // npm_config_cache, hf_hub_download
      if (!form.strong &&
          key.substr(0, form.shortest).find_first_of("_-") != std::string_view::npos)
        continue;
      if ((key.size() >= form.shortest && is_varied(key, form.different)) ||
          (is_cut(end) && is_part(key, form.strong)))
        return take(begin, end_of_dotted(form.prefix, end));
    }
  }

  /// GitLab's newer tokens have two more parts.
  std::size_t end_of_dotted(std::string_view prefix, std::size_t end) {
    for (int i = 0; prefix == "glpat-" && i < 2; ++i) {
      if (end + 1 >= text_.size() || text_[end] != '.' || !is_letter_or_digit(text_[end + 1]))
        break;
      end = keys_.end_from(end + 1);
    }
    return end;
  }

  static bool is_part(std::string_view key, bool strong) {
    return strong ? key.size() >= part_of_strong
                  : key.size() >= part_of_weak && looks_random(key, least::part);
  }

  void look_for_sk(std::size_t at) {
    const auto begin = begin_of("sk-", at);
    if (begin == std::string_view::npos || !begins_word(text_, begin))
      return;
    const auto end = keys_.end_from(at + 1);
    const auto key = text_.substr(at + 1, end - at - 1);
    bool known = false;
    for (const auto kind : sk_kinds)
      known = known || (key.starts_with(kind) && key.size() >= kind.size() + part_of_strong);
    if ((key.size() >= shortest_sk && looks_random(key)) || (is_cut(end) && is_part(key, known)))
      take(begin, end);
  }

  void look_for_jwt(std::size_t at) {
    const auto begin = begin_of("eyJ", at);
    if (begin == std::string_view::npos || !begins_word(text_, begin))
      return;
    auto end = keys_.end_from(at);
    if (end - begin < jwt_part)
      return;
    const auto follows = [&] { return end < text_.size() && text_[end] == '.'; };
    if (!is_cut(end)) {
      const auto payload = end + 1;
      if (!follows())
        return;
      end = payloads_.end_from(payload);
      if (!is_cut(end) &&
          (end - payload < jwt_part || !follows() || !has_key_characters(end + 1, jwt_part)))
        return;
    }
    // Encrypted ones have five parts (RFC 7516 §7.1). Each is walked once: they are taken.
    for (int i = 0; i < 3 && follows(); ++i)
      for (++end; end < text_.size() && is_key_character(text_[end]);)
        ++end;
    take(begin, end);
  }

  /// So many, or all to where the text was cut.
  bool has_key_characters(std::size_t at, std::size_t most) const {
    std::size_t n = 0;
    while (n < most && at + n < text_.size() && is_key_character(text_[at + n]))
      ++n;
    return n == most || is_cut(at + n);
  }

  void look_for_aws(std::size_t at) {
    const auto begin = std::min(begin_of("AKI", at), begin_of("ASI", at));
    if (begin == std::string_view::npos || at + 1 >= text_.size() || text_[at + 1] != 'A' ||
        !begins_word(text_, begin))
      return;
    auto end = at + 2;
    while (end < text_.size() && (is_upper(text_[end]) || is_digit(text_[end])) &&
           end - at - 2 <= aws_key)
      ++end;
    const auto length = end - at - 2;
    const bool ends = end == text_.size() || !is_letter_or_digit(text_[end]);
    if ((length == aws_key && ends) || (is_cut(end) && length >= part_of_strong))
      take(begin, end);
  }

  void look_for_google(std::size_t at) {
    const auto begin = begin_of("AIz", at);
    if (begin == std::string_view::npos || at + 1 >= text_.size() || text_[at + 1] != 'a' ||
        !begins_word(text_, begin) ||
        (begin > 0 && (text_[begin - 1] == '+' || text_[begin - 1] == '/')))
      return;
    const auto end = keys_.end_from(at + 2);
    const auto key = text_.substr(at + 2, end - at - 2);
    if ((key.size() >= google_key && is_varied(key, 8)) || (is_cut(end) && is_part(key, false)))
      take(begin, end);
  }

  // -- private keys --

  void look_for_pem(std::size_t at) {
    if (!text_.substr(at).starts_with(pem_begin))
      return;
    const auto label_at = at + pem_begin.size();
    const auto label = text_.substr(label_at, longest_pem_label);
    const auto dashes = label.find(pem_dashes);
    const auto name = label.substr(0, dashes);
    if (name.find("PRIVATE KEY") == std::string_view::npos ||
        (dashes == std::string_view::npos && !is_cut(label_at + label.size())))
      return;
    const auto body = label_at + name.size();
    // Found once for all beginnings before it.
    if (next_pem_end_ < body || next_pem_end_ == 0)
      next_pem_end_ = std::min(text_.find(pem_end, body), text_.size());
    auto end = text_.substr(0, next_pem_end_ + pem_end.size() + longest_pem_label)
                   .find(pem_dashes, next_pem_end_ + pem_end.size());
    const bool whole = end != std::string_view::npos && next_pem_end_ - at <= longest_pem &&
                       is_one_block(text_.substr(body, end - body));
    end = whole ? end + pem_dashes.size() : std::min(text_.size(), body + longest_pem);
    const auto key = std::min(body + pem_dashes.size(), next_pem_end_);
    if (whole && key_body::is_key(text_.substr(key, next_pem_end_ - key)))
      return take(at, end);
    take_lines(body, end, whole);
  }

  /// From the end of the first label to the end of the last: of a private key, and of no other.
  static bool is_one_block(std::string_view rest) {
    return (rest.ends_with("PRIVATE KEY") || rest.ends_with("PRIVATE KEY BLOCK")) &&
           rest.find(pem_begin) == std::string_view::npos;
  }

  /// Lines of a key that stands in the strings of a program or among other words, or that has no
  /// end: then they end with the first word that is none of them.
  void take_lines(std::size_t at, std::size_t end, bool whole) {
    at = std::max(at, lines_done_);
    bool after_line = false;
    bool first = true;
    while (at < end) {
      const auto begin = at;
      while (at < end && is_base64(text_[at]))
        ++at;
      const auto length = at - begin;
      const auto word = text_.substr(begin, length);
      const bool is_line = length >= pem_line ||
                           (after_line && (length >= pem_last_line || word.ends_with('='))) ||
                           (length > 0 && (after_line || first) && is_cut(at));
      if (is_line)
        lines_.emplace_back(begin + rest_of_escape(begin), at);
      else if (length > rest_of_escape(begin) && !whole &&
               word.find_first_not_of("0123456789") != std::string_view::npos)
        break;
      if (length > rest_of_escape(begin)) {
        after_line = is_line;
        first = first && word.find_first_not_of("0123456789") == std::string_view::npos;
      }
      at += length == 0 ? 1 : 0;
    }
    lines_done_ = at;
  }

  // -- values with a name --

  std::string_view name_before(std::size_t at) const {
    auto end = at;
    for (int i = 0; i < 3 && end > 0; ++i)
      if (std::string_view(" \"'\\").find(text_[end - 1]) != std::string_view::npos)
        --end;
    auto begin = end;
    while (begin > 0 && end - begin < longest_name &&
           (is_key_character(text_[begin - 1]) || text_[begin - 1] == '.'))
      --begin;
    return text_.substr(begin, end - begin);
  }

  /// Past spaces and an opening quote; the end of the line ends the search.
  std::size_t value_after(std::size_t at) const {
    constexpr std::size_t most_spaces = 4;
    if (at < text_.size() && (text_[at] == '=' || text_[at] == '>'))
      ++at;
    for (std::size_t i = 0; i < most_spaces && at < text_.size() && text_[at] == ' '; ++i)
      ++at;
    const auto is_quote = [&](std::size_t i) {
      return i < text_.size() && (text_[i] == '"' || text_[i] == '\'');
    };
    if (at < text_.size() && text_[at] == '\\' && is_quote(at + 1))
      return at + 2;
    return is_quote(at) ? at + 1 : at;
  }

  void look_for_value(std::size_t at) {
    const auto name = name_before(at);
    if (name.size() < 3)
      return;
    auto begin = value_after(at + 1);
    const bool header =
        name.size() >= 13 && equals_ignoring_case(name.substr(name.size() - 13), "authorization");
    if (header)
      begin = past_scheme(begin);
    else if (!names_secret(name) || is_directory(name, begin))
      return;
    take_value(begin, header ? least::part : least::whole);
  }

  /// What every shell keeps its directories in: no password.
  bool is_directory(std::string_view name, std::size_t value) const {
    return (name == "PWD" || name == "OLDPWD") && value < text_.size() && text_[value] == '/';
  }

  /// RFC 9110 §11.6.2: "Bearer ", "Basic ".
  std::size_t past_scheme(std::size_t at) const {
    auto end = at;
    while (end < text_.size() && end - at < longest_name && is_letter_or_digit(text_[end]))
      ++end;
    return end < text_.size() && text_[end] == ' ' ? end + 1 : at;
  }

  void take_value(std::size_t begin, least measure) {
    if (begin >= text_.size() || text_[begin] == '$' || text_[begin] == '%')
      return;
    const auto end = values_.end_from(begin);
    const auto value = text_.substr(begin, end - begin);
    // A call or an index: a program that reads a secret does not show it.
    if (end < text_.size() && (text_[end] == '(' || text_[end] == '['))
      return;
    if ((value.size() >= shortest_value && looks_random(value, measure) && !is_uuid(value)) ||
        (is_cut(end) && is_part(value, false)))
      take(begin, end);
  }

  void look_for_bearer(std::size_t at) {
    constexpr std::string_view word = "bearer ";
    if (at + word.size() < text_.size() && lower(text_[at + 1]) == 'e' &&
        equals_ignoring_case(text_.substr(at, word.size()), word) && begins_word(text_, at))
      take_value(at + word.size(), least::part);
  }

  // -- cuts --

  /// The text begins in the middle of something: the lines of a private key, or half a key.
  void take_rest_of_secret() {
    std::size_t at = 0;
    while (at < text_.size() && at < longest_pem &&
           (is_base64(text_[at]) || text_[at] == '\n' || text_[at] == '\r'))
      ++at;
    if (text_.substr(at).starts_with(pem_end)) {
      const auto end = text_.substr(0, at + pem_end.size() + longest_pem_label)
                           .find(pem_dashes, at + pem_end.size());
      return take(0, end == std::string_view::npos ? at : end + pem_dashes.size());
    }
    std::size_t end = 0;
    while (end < text_.size() && (is_key_character(text_[end]) || is_base64(text_[end]) ||
                                  (text_[end] == '.' && end > 0)))
      ++end;
    if (is_part(text_.substr(0, end), false))
      take(0, end);
  }

  std::string_view text_;
  bool cut_end_;
  run_finder<is_key_character> keys_;
  run_finder<is_key_character> payloads_; ///< second parts of tokens
  run_finder<is_value_character> values_;
  std::size_t next_pem_end_ = 0;
  std::size_t lines_done_ = 0; ///< where lines of keys were looked for already
  std::size_t done_ = 0;       ///< what is before was taken or needs no second look
  std::vector<std::pair<std::size_t, std::size_t>> found_;
  std::vector<std::pair<std::size_t, std::size_t>> lines_; ///< of private keys
};

} // namespace

std::string redact_shapes(std::string text, cut_at cut, std::vector<std::string>* taken) {
  const auto places = scanner(text, cut).run();
  if (places.empty())
    return text;
  std::string out;
  out.reserve(text.size());
  std::size_t from = 0;
  for (const auto& [begin, end] : places) {
    out.append(text, from, begin - from);
    out += mask;
    if (taken != nullptr)
      taken->push_back(text.substr(begin, end - begin));
    from = end;
  }
  return out.append(text, from);
}

} // namespace boyd::config
