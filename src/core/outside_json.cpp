#include "boyd/core/outside_json.hpp"

#include "ansi.hpp"
#include "boyd/core/json_depth.hpp"
#include "boyd/core/text.hpp"
#include "json_mender.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace boyd {
namespace {

/// Places in a text where a value may begin, at most: each costs a reading of the rest.
constexpr int value_places = 64;

std::size_t skip_around(std::string_view text, std::size_t at) {
  while (at < text.size())
    if (const auto skipped = blank_at(text.substr(at)); skipped > 0)
      at += skipped;
    else
      break;
  return at;
}

/// The value that begins at `at`; whatever stands behind it.
result<outside_json> value_at(std::string_view text, std::size_t at,
                              const outside_json_options& options) {
  json_mender mender(text.substr(at), options);
  if (!mender.run())
    return fail(errc::parse_error, "incomplete JSON");
  auto out = mender.take();
  out.begin = at;
  out.end += at;
  if (const auto shallow = check_json_depth(out.text); !shallow)
    return fail(shallow.error());
  if (!nlohmann::json::accept(out.text))
    return fail(errc::parse_error, "not valid JSON");
  return out;
}

/// Words that open and close what a model thinks before it answers.
constexpr std::array<std::string_view, 6> reasoning{"think",     "thinking",   "thought",
                                                    "reasoning", "reflection", "scratchpad"};

std::string tag(std::string_view slash, std::string_view name) {
  return "<" + std::string(slash) + std::string(name) + ">";
}

/// The place behind the first closing tag of a reasoning from `at` on; npos without one.
std::size_t behind_close(std::string_view lower, std::size_t at) {
  auto first = std::string_view::npos;
  for (const auto name : reasoning)
    if (const auto close = lower.find(tag("/", name), at); close < first)
      first = close + tag("/", name).size();
  return first;
}

bool opens_reasoning(std::string_view lower) {
  return std::ranges::any_of(
      reasoning, [&](std::string_view name) { return lower.starts_with(tag("", name)); });
}

/// Where the answer begins. Words before the first closing tag are reasoning, also where no tag
/// opens it. Reasoning that does not end hides all that follows: an answer was never begun.
std::size_t behind_reasoning(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto first = behind_close(lower, 0);
  std::size_t at = first == std::string_view::npos ? 0 : first;
  while (true) {
    const auto start = skip_around(text, at);
    if (!opens_reasoning(std::string_view(lower).substr(start)))
      return at;
    const auto close = behind_close(lower, start);
    if (close == std::string_view::npos)
      return text.size();
    at = close;
  }
}

struct span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The fence that `line` is, or nothing: three or more of ` or ~, with at most three blanks before.
std::string_view fence_of(std::string_view line) {
  const auto begin = std::min(line.find_first_not_of(' '), line.size());
  if (begin > 3 || begin == line.size() || (line[begin] != '`' && line[begin] != '~'))
    return {};
  const auto end = std::min(line.find_first_not_of(line[begin], begin), line.size());
  return end - begin >= 3 ? line.substr(begin, end - begin) : std::string_view{};
}

/// The contents of Markdown's fenced blocks. One that is not closed ends with the text.
std::vector<span> fenced_blocks(std::string_view text) {
  std::vector<span> blocks;
  std::string_view open;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto fence = fence_of(text.substr(at, end - at));
    if (open.empty() && !fence.empty()) {
      open = fence;
      begin = std::min(end + 1, text.size());
    } else if (!open.empty() && fence.size() >= open.size() && fence.front() == open.front()) {
      blocks.push_back({begin, at});
      open = {};
    }
    at = end + 1;
  }
  if (!open.empty())
    blocks.push_back({begin, text.size()});
  return blocks;
}

/// The values found so far; different ones are too many.
class candidates {
 public:
  void add(outside_json value) {
    if (!one_)
      one_ = std::move(value);
    else if (nlohmann::json::parse(one_->text) != nlohmann::json::parse(value.text))
      several_ = true;
  }

  bool empty() const { return !one_; }

  result<outside_json> answer() && {
    if (several_)
      return fail(errc::parse_error, "the text has several different JSON values");
    if (!one_)
      return fail(errc::parse_error, "the text has no JSON value");
    return std::move(*one_);
  }

 private:
  std::optional<outside_json> one_;
  bool several_ = false;
};

/// Whether a text has a member's name, "…":. Brackets around such a text are meant as JSON; those
/// of prose, such as {x} or [1], are not.
bool has_member(std::string_view text) {
  for (auto colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1))
    if (trim(text.substr(0, colon)).ends_with('"'))
      return true;
  return false;
}

tl::unexpected<error> broken() {
  return fail(errc::parse_error, "the JSON in the text is incomplete or not valid");
}

/// The objects and arrays of a prose, from left to right; the inside of a value is no value of its
/// own, and JSON that is broken is not searched: an object inside of it means something else.
result<outside_json> value_among_words(std::string_view text, std::size_t from,
                                       const outside_json_options& options) {
  candidates objects;
  candidates arrays;
  auto at = text.find_first_of("{[", from);
  for (int i = 0; i < value_places && at != std::string_view::npos; ++i) {
    auto next = at + 1;
    if (auto value = value_at(text, at, options); value) {
      next = value->end;
      (text[at] == '{' ? objects : arrays).add(std::move(*value));
    } else {
      json_mender mender(text.substr(at), options);
      const auto inside = mender.run() ? mender.take().end : text.size() - at;
      if (has_member(text.substr(at, inside)))
        return broken();
    }
    at = text.find_first_of("{[", next);
  }
  return std::move(objects.empty() ? arrays : objects).answer();
}

/// The value in Markdown's fences, where one holds JSON; nothing where none does.
std::optional<result<outside_json>> value_in_fences(std::string_view text, std::size_t from,
                                                    const outside_json_options& options) {
  candidates found;
  for (const auto& block : fenced_blocks(text.substr(from))) {
    const auto begin = from + block.begin;
    const auto content = text.substr(begin, block.end - block.begin);
    auto value = mend_json(content, options);
    if (!value) {
      const auto start = skip_around(content, 0);
      if (start < content.size() && (content[start] == '{' || content[start] == '[') &&
          has_member(content))
        return broken();
      continue;
    }
    value->begin += begin;
    value->end += begin;
    found.add(std::move(*value));
  }
  if (found.empty())
    return std::nullopt;
  return std::move(found).answer();
}

} // namespace

result<outside_json> mend_json(std::string_view text, const outside_json_options& options) {
  const auto begin = skip_around(text, 0);
  auto out = value_at(text, begin, options);
  if (out && skip_around(text, out->end) != text.size())
    return fail(errc::parse_error, "unexpected text after the JSON value");
  return out;
}

result<outside_json> find_json(std::string_view text, const outside_json_options& options) {
  if (auto whole = mend_json(text, options); whole)
    return whole;
  const auto from = behind_reasoning(text);
  if (auto rest = mend_json(text.substr(from), options); rest) {
    rest->begin += from;
    rest->end += from;
    return rest;
  }
  if (auto fenced = value_in_fences(text, from, options))
    return std::move(*fenced);
  return value_among_words(text, from, options);
}

} // namespace boyd
