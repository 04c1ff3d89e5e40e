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
    return fail(errc::parse_error, "JSON that is not whole");
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

/// The text behind the last end of a reasoning. Reasoning that does not end hides all that follows
/// it: an answer was never begun.
std::size_t behind_reasoning(std::string_view text) {
  std::size_t at = 0;
  for (const auto name : reasoning)
    if (const auto end = text.rfind(tag("/", name)); end != std::string_view::npos)
      at = std::max(at, end + tag("/", name).size());
  for (const auto name : reasoning) {
    const auto start = skip_around(text, at);
    if (text.substr(start).starts_with(tag("", name)))
      return text.size();
  }
  return at;
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
      return fail(errc::parse_error, "there are several different JSON values in it");
    if (!one_)
      return fail(errc::parse_error, "there is no JSON value in it");
    return std::move(*one_);
  }

 private:
  std::optional<outside_json> one_;
  bool several_ = false;
};

candidates values_in(std::string_view text, std::size_t from, char open,
                     const outside_json_options& options) {
  candidates found;
  auto at = text.find(open, from);
  for (int i = 0; i < value_places && at != std::string_view::npos; ++i) {
    auto value = value_at(text, at, options);
    const auto next = value ? value->end : at + 1;
    if (value)
      found.add(std::move(*value));
    at = text.find(open, next);
  }
  return found;
}

} // namespace

result<outside_json> mend_json(std::string_view text, const outside_json_options& options) {
  const auto begin = skip_around(text, 0);
  auto out = value_at(text, begin, options);
  if (out && skip_around(text, out->end) != text.size())
    return fail(errc::parse_error, "there is something else behind the JSON value");
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
  candidates fenced;
  for (const auto& block : fenced_blocks(text.substr(from))) {
    const auto begin = from + block.begin;
    auto value = mend_json(text.substr(begin, block.end - block.begin), options);
    if (!value)
      continue;
    value->begin += begin;
    value->end += begin;
    fenced.add(std::move(*value));
  }
  if (!fenced.empty())
    return std::move(fenced).answer();
  auto objects = values_in(text, from, '{', options);
  if (!objects.empty())
    return std::move(objects).answer();
  return values_in(text, from, '[', options).answer();
}

} // namespace boyd
