#include "boyd/record/replay.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/record/explain.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace boyd::record {

namespace {

/// What is known of one content.
struct looked_up {
  std::optional<std::string> text;
  std::string problem; ///< missing or damaged; empty: neither
  std::string detail;
};

/// Each content once, and the problems of those that are not as they should be.
class shelf {
 public:
  shelf(const content_source& source, replay_report& report) : source_(source), report_(report) {}

  /// `where` names it for a person.
  const looked_up& get(const std::string& hash, const std::string& where) {
    const auto [it, fresh] = known_.try_emplace(hash);
    if (!fresh)
      return it->second;
    ++report_.contents;
    auto& found = it->second;
    auto text = source_(hash);
    if (!text) {
      found.problem = text.error().code == errc::not_found ? "missing" : "damaged";
      found.detail = found.problem == "missing" ? "it does not stand in context/objects any more"
                                                : to_string(text.error());
    } else {
      found.text = std::move(*text);
      if (sha256_hex(*found.text) != hash) {
        found.problem = "damaged";
        found.detail = "its bytes are not those that were kept";
      }
    }
    if (!found.problem.empty())
      report_.problems.push_back({where, found.problem, hash, found.detail});
    return found;
  }

 private:
  const content_source& source_;
  replay_report& report_;
  std::map<std::string, looked_up> known_;
};

/// The texts of a snapshot's items, and of the results of tools that a turn names.
void look_at_items(const execution& e, shelf& contents) {
  for (const auto& a : e.attempts)
    for (const auto& t : a.turns)
      for (const auto& i : t.snapshot.items) {
        if (!i.hash.empty())
          (void)contents.get(i.hash, i.path);
        if (!i.shown.empty())
          (void)contents.get(i.shown, "the summary of " + i.path);
      }
}

/// Those of the last turn, too, which no turn behind it could read.
void look_at_results(const execution& e, shelf& contents, replay_report& report) {
  for (const auto& a : e.attempts)
    for (const auto& t : a.turns) {
      const auto result = nlohmann::json::parse(t.result, nullptr, false);
      const auto tools = result.is_object() ? result.find("tools") : result.end();
      if (!result.is_object() || tools == result.end() || !tools->is_array())
        continue;
      for (const auto& tool : *tools) {
        if (!tool.is_object() || !tool.contains("hash") || !tool["hash"].is_string())
          continue;
        const std::string hash = tool["hash"];
        const auto& found =
            contents.get(hash, "what a tool said in turn " + std::to_string(t.number));
        if (found.text)
          report.results[hash] = *found.text;
      }
    }
}

std::string name_of_place(const attempt& a, const std::string& hash) {
  for (const auto& t : a.turns)
    for (const auto& i : t.snapshot.items)
      if (i.hash == hash || i.shown == hash)
        return i.path;
  return "a content";
}

/// Nothing: a part is missing.
std::optional<std::string> put_together(const attempt& a, const kept_text& kept,
                                        const std::string& name, shelf& contents) {
  std::string frame = kept.text;
  if (!kept.frame.empty()) {
    const auto& found = contents.get(kept.frame, "the frame of the " + name);
    if (!found.text)
      return std::nullopt;
    frame = *found.text;
  }
  std::string text;
  std::size_t from = 0;
  bool is_whole = true;
  for (const auto& p : kept.places) {
    if (p.at < from || p.at > frame.size())
      return std::nullopt;
    text.append(frame, from, p.at - from);
    from = p.at;
    const auto& found = contents.get(p.hash, name_of_place(a, p.hash));
    is_whole = is_whole && found.text;
    if (found.text)
      text += *found.text;
  }
  text.append(frame, from, std::string::npos);
  return is_whole ? std::optional(std::move(text)) : std::nullopt;
}

void rebuild(const attempt& a, const kept_text& kept, const std::string& name, shelf& contents,
             replay_report& report) {
  rebuilt_text out{name, a.fence, !kept.hash.empty(), false, {}};
  const auto where = "the " + name + " of attempt " + std::to_string(a.number);
  if (out.recorded) {
    auto text = put_together(a, kept, name, contents);
    out.same = text && sha256_hex(*text) == kept.hash;
    if (!out.same)
      report.problems.push_back({where, "differs", kept.hash,
                                 text ? "what came of it has " + std::to_string(text->size()) +
                                            " bytes, recorded are " + std::to_string(kept.bytes)
                                      : "a part of it is missing"});
    if (text)
      out.text = std::move(*text);
  }
  report.texts.push_back(std::move(out));
}

/// Runs that were given something to read have a page beside their record when they have ended.
bool has_page(const execution& e) {
  return !e.attempts.empty() && std::ranges::any_of(e.attempts.back().turns, [](const turn& t) {
    return !t.snapshot.items.empty();
  });
}

void look_at_seal(seal_state seal, bool is_own, replay_report& report) {
  if (seal == seal_state::broken)
    report.problems.push_back(
        {"record.json", "differs", {}, "its text is not the one that was written"});
  if (seal == seal_state::none && is_own)
    report.problems.push_back({"record.json",
                               "differs",
                               {},
                               "it has no seal, and this version of Boyd, which wrote it, seals "
                               "every record"});
}

/// Words are a version's own: those of another one are compared by its seal, or else by its page,
/// with the hash that was taken of it.
void explain_again(const execution& e, const std::optional<std::string>& stored, seal_state seal,
                   const std::string& version, replay_report& report) {
  report.explanation = explain(e);
  report.explanation_recorded = !e.explanation.empty();
  const bool is_own = !e.attempts.empty() && e.attempts.back().version == version;
  look_at_seal(seal, is_own, report);
  if (!report.explanation_recorded) {
    // No attempt has ended: there is nothing yet that it could differ from.
    report.explanation_same = true;
    return;
  }
  report.explanation_same = sha256_hex(report.explanation) == e.explanation;
  const bool page_is_whole = stored && sha256_hex(*stored) == e.explanation;
  if (!report.explanation_same && seal != seal_state::broken) {
    report.words_differ = !is_own && (seal == seal_state::whole || page_is_whole);
    if (!report.words_differ)
      report.problems.push_back(
          {"explanation", "differs", e.explanation,
           page_is_whole ? first_difference(*stored, report.explanation)
                         : "what is on record is not what was explained when it was written"});
  }
  if (stored && !page_is_whole)
    report.problems.push_back({"explain.md", "differs", e.explanation,
                               report.explanation_same
                                   ? first_difference(*stored, report.explanation)
                                   : "it is not the page that was written with the record"});
  if (!stored && has_page(e))
    report.problems.push_back({"explain.md", "missing", e.explanation,
                               "the page that was written with the record is gone"});
}

} // namespace

replay_report replay(const execution& e, const content_source& source,
                     const std::optional<std::string>& stored, seal_state seal,
                     const std::string& version) {
  replay_report report;
  shelf contents(source, report);
  look_at_items(e, contents);
  look_at_results(e, contents, report);
  for (const auto& a : e.attempts) {
    if (a.version.empty()) {
      report.texts.push_back({"prompt", a.fence, false, false, {}});
      report.problems.push_back({"the prompt of attempt " + std::to_string(a.number),
                                 "not recorded",
                                 {},
                                 "the record was written by a version of Boyd that kept no "
                                 "prompts"});
      continue;
    }
    if (!a.system.hash.empty())
      rebuild(a, a.system, "system message", contents, report);
    if (!a.tools.hash.empty())
      rebuild(a, a.tools, "tools", contents, report);
    if (!a.prompt.hash.empty())
      rebuild(a, a.prompt, "prompt", contents, report);
    if (!a.answer.hash.empty())
      rebuild(a, a.answer, "answer", contents, report);
  }
  explain_again(e, stored, seal, version, report);
  return report;
}

std::string first_difference(const std::string& recorded, const std::string& now) {
  if (recorded == now)
    return {};
  const auto before = split(recorded, '\n');
  const auto after = split(now, '\n');
  std::size_t line = 0;
  while (line < before.size() && line < after.size() && before[line] == after[line])
    ++line;
  const auto shown = [&](const auto& lines) {
    constexpr std::size_t longest = 200;
    return line < lines.size() ? sanitize_utf8(cut_characters(lines[line], longest))
                               : std::string("(the end)");
  };
  return "line " + std::to_string(line + 1) + ", recorded: " + shown(before) +
         "; now: " + shown(after);
}

} // namespace boyd::record
