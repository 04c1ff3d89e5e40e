#include "boyd/record/drift.hpp"

#include "boyd/context/citation.hpp"
#include "explain_internal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace boyd::record {

namespace {

using counts = std::map<std::string, std::size_t>;

/// "name arguments" with the arguments' members in the order of their names and without blanks.
std::string plain_call(const std::string& name, const std::string& arguments) {
  const auto value = nlohmann::json::parse(arguments, nullptr, false);
  return name + " " +
         (value.is_discarded()
              ? arguments
              : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string plain_call(const std::string& call) {
  const auto blank = call.find(' ');
  return blank == call.npos ? plain_call(call, "{}")
                            : plain_call(call.substr(0, blank), call.substr(blank + 1));
}

counts count(const std::vector<std::string>& all) {
  counts c;
  for (const auto& one : all)
    ++c[one];
  return c;
}

/// The share that only one side has.
double apart(const counts& l, const counts& r) {
  std::size_t shared = 0;
  std::size_t all = 0;
  for (const auto& [key, n] : l) {
    const auto other = r.find(key);
    const auto m = other == r.end() ? 0 : other->second;
    shared += std::min(n, m);
    all += std::max(n, m);
  }
  for (const auto& [key, n] : r)
    all += l.contains(key) ? 0 : n;
  return all == 0 ? 0 : 1 - static_cast<double>(shared) / static_cast<double>(all);
}

bool is_of_word(char c) {
  constexpr unsigned ascii = 0x80;
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= ascii;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (is_of_word(c)) {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  return words;
}

/// Pairs of neighbours; of a single word the word.
counts pairs_of(const std::string& text) {
  const auto words = words_of(text);
  counts c;
  if (words.size() == 1)
    ++c[words.front()];
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    ++c[words[i] + " " + words[i + 1]];
  return c;
}

/// The objects of a list in a JSON text.
std::vector<nlohmann::json> tools_in(const std::string& text) {
  std::vector<nlohmann::json> all;
  const auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_object() && value.contains("tools") && value["tools"].is_array())
    for (const auto& one : value["tools"])
      if (one.is_object())
        all.push_back(one);
  return all;
}

} // namespace

drift drift_of(const came_to& recorded, const came_to& now) {
  std::vector<std::string> before;
  std::vector<std::string> after;
  for (const auto& a : recorded.actions)
    before.push_back(plain_call(a));
  for (const auto& a : now.actions)
    after.push_back(plain_call(a));
  return {apart(count(recorded.citations), count(now.citations)),
          apart(count(before), count(after)),
          apart(pairs_of(recorded.conclusion), pairs_of(now.conclusion))};
}

std::vector<std::string> citations_in(const attempt& a, const std::string& answer) {
  std::vector<context::citable> items;
  if (!a.turns.empty())
    for (const auto& i : a.turns.front().snapshot.items)
      if (!i.key.empty())
        items.push_back({i.key, i.id, i.path, {}});
  std::vector<std::string> all;
  if (items.empty())
    return all;
  for (const auto& c : context::find_citations(answer, items))
    all.push_back(c.item ? items[*c.item].key : c.text);
  return all;
}

std::vector<std::string> actions_of(const attempt& a) {
  std::vector<std::string> all;
  for (const auto& t : a.turns) {
    const auto action = nlohmann::json::parse(t.action, nullptr, false);
    if (text_in(action, "kind") == "agent_cli")
      continue; // no model is offered its tools
    for (const auto& tool : tools_in(t.action))
      all.push_back(text_in(tool, "call"));
  }
  return all;
}

recorded_tools::recorded_tools(const attempt& a,
                               const std::map<std::string, std::string>& results) {
  std::map<std::string, std::string> calls; // by step
  for (const auto& t : a.turns) {
    for (const auto& tool : tools_in(t.action))
      if (tool.contains("step"))
        calls[tool["step"].dump()] = plain_call(text_in(tool, "call"));
    for (const auto& tool : tools_in(t.result)) {
      const auto call = calls.find(tool.contains("step") ? tool["step"].dump() : std::string());
      const auto text = results.find(text_in(tool, "hash"));
      if (call == calls.end() || text == results.end())
        continue;
      const bool ok = tool.contains("ok") && tool["ok"] == true;
      known_[call->second].push_back({text->second, !ok});
    }
  }
}

std::pair<std::string, bool> recorded_tools::answer(const std::string& name,
                                                    const std::string& arguments) {
  const auto call = plain_call(name, arguments);
  const auto it = known_.find(call);
  if (it == known_.end())
    return {"error: the recorded run did not make this call, and nothing was done", true};
  auto& next = next_[call];
  const auto& found = it->second[std::min(next, it->second.size() - 1)];
  ++next;
  return {found.text, found.is_error};
}

} // namespace boyd::record
