#include "boyd/context/citation.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/words.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace boyd::context {

namespace {

/// Words of a run that is compared, and the runs that an answer must share with an item.
constexpr std::size_t run_words = 5;
constexpr std::size_t runs_to_share = 3;
constexpr std::string_view reference_mark = "[Reference]";
constexpr std::string_view used_member = "\"used_context\"";

std::string without_lines(std::string_view path) {
  const auto colon = path.rfind(':');
  if (colon == path.npos || colon + 1 == path.size() ||
      path.find_first_not_of("0123456789-", colon + 1) != path.npos)
    return std::string(path);
  return std::string(path.substr(0, colon));
}

/// "./src/a.cpp" and "src/a.cpp:10-30" name the same file.
std::string plain_path(std::string_view path) {
  auto plain = std::filesystem::path(without_lines(path)).lexically_normal().string();
  while (plain.size() > 1 && plain.ends_with('/'))
    plain.pop_back();
  return plain;
}

/// The items by all that may name them; where several have a name, the first one has it.
class name_index {
 public:
  explicit name_index(const std::vector<citable>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto& item = items[i];
      for (const auto* name : {&item.key, &item.id, &item.path})
        exact_.emplace(*name, i);
      plain_.emplace(plain_path(item.path), i);
      first_.push_back(i);
      for (const auto& name : item.names) {
        const auto known = plain_.emplace(plain_path(name), i).first->second;
        if (item.key.empty())
          first_[i] = std::min(first_[i], first_[known]);
      }
    }
    exact_.erase(std::string()); // what was not shown has no key
    plain_.erase(std::string());
  }

  std::optional<std::size_t> find(std::string_view name) const {
    if (const auto exact = exact_.find(std::string(name)); exact != exact_.end())
      return first_[exact->second];
    const auto plain = plain_.find(plain_path(name));
    return plain == plain_.end() ? std::nullopt : std::optional(first_[plain->second]);
  }

  /// The item that stands for this one: of what tools read of a file the first item of the file.
  std::size_t first_of(std::size_t item) const { return first_[item]; }

 private:
  std::unordered_map<std::string, std::size_t> exact_;
  std::unordered_map<std::string, std::size_t> plain_;
  std::vector<std::size_t> first_;
};

bool is_key(std::string_view text) {
  return text.size() > 1 && text.front() == 'C' &&
         text.find_first_not_of("0123456789", 1) == text.npos;
}

/// Collects citations; each item and each invented text once.
class collector {
 public:
  explicit collector(const std::vector<citable>& items) : items_(items) {}

  bool knows(std::string_view name) const { return items_.find(trim(name)).has_value(); }

  void cite(std::string_view name, std::string_view as_written) {
    const auto item = items_.find(trim(name));
    if (!seen_.insert(item ? "#" + std::to_string(*item) : std::string(as_written)).second)
      return;
    found_.push_back({std::string(as_written), item});
  }

  std::vector<citation> take() { return std::move(found_); }

 private:
  name_index items_;
  std::set<std::string> seen_;
  std::vector<citation> found_;
};

/// `[Reference] file: NAME (PATH)`; without a path the name counts.
void cite_line(std::string_view line, collector& to) {
  const auto colon = line.find(':');
  if (colon == line.npos)
    return;
  const auto rest = trim(line.substr(colon + 1));
  const auto open = rest.rfind('(');
  if (open != rest.npos && rest.ends_with(')') && !to.knows(rest))
    to.cite(rest.substr(open + 1, rest.size() - open - 2), line);
  else
    to.cite(rest, line);
}

/// `[C2]`, `[C1, C3]`, `[C1][C3]`.
void cite_keys(std::string_view answer, collector& to) {
  for (auto open = answer.find("[C"); open != answer.npos; open = answer.find("[C", open + 1)) {
    const auto close = answer.find(']', open);
    if (close == answer.npos)
      return;
    const auto parts = split(answer.substr(open + 1, close - open - 1), ',');
    if (!std::ranges::all_of(parts, [](auto p) { return is_key(trim(p)); }))
      continue;
    for (const auto part : parts)
      to.cite(part, "[" + std::string(trim(part)) + "]");
  }
}

/// The list behind "used_context", wherever its object stands.
void cite_json(std::string_view answer, collector& to) {
  for (auto at = answer.find(used_member); at != answer.npos;
       at = answer.find(used_member, at + 1)) {
    const auto colon = answer.find_first_not_of(" \t\r\n", at + used_member.size());
    if (colon == answer.npos || answer[colon] != ':')
      continue;
    const auto open = answer.find_first_not_of(" \t\r\n", colon + 1);
    const auto close = open == answer.npos ? open : answer.find(']', open);
    if (close == answer.npos || answer[open] != '[')
      continue;
    const auto list = nlohmann::json::parse(answer.substr(open, close - open + 1), nullptr, false);
    if (!list.is_array())
      continue;
    for (const auto& entry : list)
      if (entry.is_string())
        to.cite(entry.get_ref<const std::string&>(), entry.get_ref<const std::string&>());
  }
}

/// The answer without its fences and code spans: [C99] is code there.
std::string words_of_answer(std::string_view answer) {
  std::string text;
  bool in_fence = false;
  for (const auto line : split(answer, '\n')) {
    const auto words = trim(line);
    if (words.starts_with("```")) {
      in_fence = !in_fence;
    } else if (!in_fence) {
      bool in_span = false;
      for (const auto c : line) {
        in_span = in_span != (c == '`');
        if (!in_span && c != '`')
          text += c;
      }
    }
    text += '\n';
  }
  return text;
}

using run_set = std::unordered_set<std::size_t>;

/// Hashes of the runs of five words in a text.
run_set runs_in(std::string_view text) {
  const auto words = memory::words_in(text);
  run_set runs;
  for (std::size_t i = 0; i + run_words <= words.size(); ++i) {
    std::string run;
    for (std::size_t k = 0; k < run_words; ++k)
      run.append(words[i + k]).append(" ");
    runs.insert(std::hash<std::string>{}(run));
  }
  return runs;
}

} // namespace

std::string without_echo(std::string_view answer, std::string_view shown) {
  shown = trim(shown);
  if (shown.empty())
    return std::string(answer);
  std::string rest;
  std::size_t from = 0;
  for (auto at = answer.find(shown); at != answer.npos; at = answer.find(shown, from)) {
    rest.append(answer, from, at - from);
    rest += '\n'; // what stood before and behind it are two lines
    from = at + shown.size();
  }
  return rest.append(answer, from);
}

std::vector<citation> find_citations(std::string_view answer, const std::vector<citable>& items) {
  collector to(items);
  for (const auto line : split(answer, '\n'))
    if (const auto text = trim(line); text.starts_with(reference_mark))
      cite_line(text, to);
  cite_keys(words_of_answer(answer), to);
  cite_json(answer, to);
  return to.take();
}

std::vector<std::size_t> find_used(std::string_view answer, std::string_view rest_of_prompt,
                                   const std::vector<citable>& items,
                                   const std::vector<std::string>& paths_of_actions) {
  std::set<std::string> touched;
  for (const auto& path : paths_of_actions)
    touched.insert(plain_path(path));
  std::string said;
  for (const auto line : split(answer, '\n'))
    if (!trim(line).starts_with(reference_mark))
      said.append(line).append("\n");
  const auto in_answer = runs_in(said);
  std::vector<run_set> in_items;
  std::unordered_map<std::size_t, int> places; // in how many texts of the prompt a run stands
  for (const auto run : runs_in(rest_of_prompt))
    ++places[run];
  for (const auto& item : items)
    for (const auto run : in_items.emplace_back(runs_in(item.content)))
      ++places[run];
  const name_index by_name(items);
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto shared = std::ranges::count_if(in_items[i], [&](std::size_t run) {
      return places.at(run) == 1 && in_answer.contains(run);
    });
    if (shared >= static_cast<std::ptrdiff_t>(runs_to_share) ||
        touched.contains(plain_path(items[i].path)))
      used.insert(by_name.first_of(i));
  }
  return {used.begin(), used.end()};
}

citation_report judge_citations(const std::vector<citation>& citations,
                                const std::vector<std::size_t>& used) {
  citation_report report;
  for (const auto& c : citations)
    if (c.item)
      report.valid.push_back(*c.item);
    else
      report.invented.push_back(c.text);
  for (const auto item : used)
    if (std::ranges::find(report.valid, item) == report.valid.end())
      report.uncited.push_back(item);
  const auto all = report.valid.size() + report.invented.size() + report.uncited.size();
  if (all > 0)
    report.accuracy = static_cast<double>(report.valid.size()) / static_cast<double>(all);
  return report;
}

std::string correction_of(const citation_report& report, const std::vector<citable>& items) {
  if (!report.is_weak())
    return {};
  std::string text = "Your citations are not correct:\n";
  for (const auto& invented : report.invented)
    text += "- " + invented + " is not an item that you were given\n";
  for (const auto index : report.uncited) {
    const auto& item = items[index];
    const auto form = !item.key.empty()     ? " as [" + item.key + "]"
                      : !item.names.empty() ? " as [Reference] file: " + item.names.front()
                                            : std::string();
    text += "- you used " + item.path + " and did not cite it" + form + "\n";
  }
  return text + "Repeat your whole answer with the citations corrected and nothing else changed.";
}

} // namespace boyd::context
