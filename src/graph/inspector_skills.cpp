#include "boyd/graph/inspector.hpp"
#include "boyd/graph/learned_skills.hpp"
#include "boyd/graph/links.hpp"
#include "boyd/graph/lists.hpp"
#include "inspector_internal.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace boyd::graph {

namespace {

constexpr std::size_t newest_uses = 5;
constexpr std::size_t most_told = 10;

/// Of a skill, from its own facts.
struct skill_facts {
  std::vector<cited_fact> all; ///< the oldest first
  std::vector<std::string> sources;
};

result<skill_facts> facts_of_skill(const inspection& in, const std::string& skill) {
  auto facts = oldest_first(in, skill);
  if (!facts)
    return fail(std::move(facts.error()));
  skill_facts s;
  for (auto& f : *facts)
    if (f.fact.type == "derived_from" && f.fact.from == skill &&
        std::ranges::find(s.sources, f.fact.to) == s.sources.end())
      s.sources.push_back(f.fact.to);
  s.all = std::move(*facts);
  return s;
}

/// A step in the story of a skill.
struct step {
  cited_fact fact;
  std::string text;
};

/// What one fact of the skill itself says, in words; empty: it is told elsewhere.
std::string words_of(const cited_fact& f, const std::string& skill) {
  const auto meta = meta_of(f);
  if (f.fact.type == "promoted_to" && f.fact.to == skill) {
    const auto by = text_in(meta, "by");
    return "It was approved" + (by.empty() ? std::string() : " by " + by);
  }
  if (f.fact.type == "validated_by")
    return "A run followed it" + success_in_words(meta);
  if (f.fact.type == "managed_by") {
    const auto reason = text_in(meta, "reason");
    return "Decision: " + text_in(meta, "action") + (reason.empty() ? "" : ", because: " + reason);
  }
  return {};
}

/// How a source came to be one: its first and latest uses, and its candidate.
result<void> tell_source(const inspection& in, const std::string& source, const std::string& path,
                         std::vector<step>& story, json& candidates, json& executions) {
  auto facts = oldest_first(in, source);
  if (!facts)
    return fail(std::move(facts.error()));
  std::vector<cited_fact> uses;
  for (auto& f : *facts) {
    const auto meta = meta_of(f);
    if (f.fact.type == "used_in" && f.fact.from == source)
      uses.push_back(f);
    if (f.fact.type == "managed_by" && text_in(meta, "action") == "stage")
      story.push_back({f, path + ": " + text_in(meta, "from") + " → " + text_in(meta, "to")});
    if (f.fact.type == "promoted_to" && f.fact.to.starts_with("candidate_")) {
      candidates.push_back({{"candidate", f.fact.to}, {"context", source}, {"line", f.place}});
      story.push_back({f, path + " became a candidate"});
    }
  }
  if (uses.empty())
    return {};
  story.push_back({uses.front(), path + " was first read by a run"});
  const auto some = std::min(uses.size(), newest_uses);
  for (auto u = uses.end() - static_cast<std::ptrdiff_t>(some); u != uses.end(); ++u)
    executions.push_back({{"execution", u->fact.to},
                          {"context", source},
                          {"cited", flag_in(meta_of(*u), "cited")},
                          {"line", u->place}});
  return {};
}

json finding(const char* kind, const std::string& subject, const std::string& text,
             const std::string& suggestion, const std::string& line) {
  return {{"kind", kind},
          {"subject", subject},
          {"text", text},
          {"suggestion", suggestion},
          {"line", line}};
}

/// The names of all skills that were ever approved.
result<std::set<std::string>> all_skills(const inspection& in) {
  const auto promoted = newest_first(in, type_node("promoted_to"));
  if (!promoted)
    return fail(promoted.error());
  std::set<std::string> skills;
  for (const auto& p : *promoted)
    if (p.fact.to.starts_with("skill_"))
      skills.insert(p.fact.to);
  return skills;
}

/// "docs/Release Notes.md" gives "release-notes", as a candidate's skill is called.
std::string name_from_path(const std::string& path) {
  const auto file = path.substr(path.rfind('/') + 1);
  std::string name;
  for (const char given : file.substr(0, file.rfind('.'))) {
    const char c = given >= 'A' && given <= 'Z' ? static_cast<char>(given - 'A' + 'a') : given;
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-'))
    name.pop_back();
  return name;
}

/// How `boyd skills show` calls the candidate with this id, path or name of its skill; empty: there
/// is none.
result<std::string> candidate_called(const inspection& in, const std::string& text) {
  const auto promoted = newest_first(in, type_node("promoted_to"));
  if (!promoted)
    return fail(promoted.error());
  for (const auto& p : *promoted) {
    if (!p.fact.to.starts_with("candidate_"))
      continue;
    const auto path = path_of(in, p.fact.from);
    if (!path)
      return fail(path.error());
    if (p.fact.to == text || name_from_path(*path) == text)
      return text;
    if (*path == text)
      return p.fact.to;
  }
  return std::string();
}

result<std::string> find_skill(const inspection& in, const std::string& text) {
  const auto fits = skills_called(in, text);
  if (!fits)
    return fail(fits.error());
  if (fits->size() > 1)
    return fail(errc::conflict, "more than one skill has this name", text,
                "use its id: " + *fits->begin() + " or " + *fits->rbegin());
  if (!fits->empty())
    return *fits->begin();
  const auto waits = candidate_called(in, text);
  if (!waits)
    return fail(waits.error());
  if (!waits->empty())
    return fail(errc::not_found, text + " is a candidate, not a skill yet", {},
                "see: boyd skills show " + *waits);
  return fail(errc::not_found, "no facts about this skill", text,
              "list skills with: boyd skills ls");
}

constexpr milliseconds idle_time = 30 * 24h;

/// What a key of index_area::skill_faults says.
result<json> fault_json(const inspection& in, const std::string& key) {
  const auto [name, fault] = fault_in_key(key);
  const auto text = in.source.value(index_area::uses, name);
  if (!text)
    return fail(text.error());
  const auto s = (*text ? read_skill_uses(**text) : std::nullopt).value_or(skill_uses{});
  const auto& uses = s.in_force();
  auto place = in.source.place(fault == orphaned_skill ? s.line : uses.used_line);
  if (!place)
    return fail(std::move(place.error()));
  if (fault == orphaned_skill)
    return finding("orphaned_skill", name, name + " has no source in the log",
                   "check its origin: boyd skills show", *place);
  if (fault == failing_skill)
    return finding("decayed_skill", name,
                   name + " failed in " + std::to_string(uses.failures()) + " of its last " +
                       std::to_string(uses.newest.size()) + " uses",
                   "fix it, roll it back, or disable it", *place);
  return finding("overfitted_skill", name,
                 name + " helped agent " + (uses.helped.empty() ? "?" : uses.helped.front()) +
                     " only, and failed for others",
                 "describe its purpose more precisely", *place);
}

result<json> idle_json(const inspection& in, const std::string& name) {
  const auto text = in.source.value(index_area::uses, name);
  if (!text)
    return fail(text.error());
  const auto s = (*text ? read_skill_uses(**text) : std::nullopt).value_or(skill_uses{});
  const auto& uses = s.in_force();
  auto place = in.source.place(uses.used_line);
  if (!place)
    return fail(std::move(place.error()));
  return finding("decayed_skill", name,
                 name + " was last followed at " + time_text(uses.last_used.value_or(utc_time{})),
                 "archive it if it is no longer needed", *place);
}

/// `line`: of its latest use.
result<json> noise_json(const inspection& in, const std::string& id, const std::string& line) {
  const auto item = in.source.item(id);
  if (!item)
    return fail(item.error());
  const auto known = item->value_or(learned_item{});
  std::uint64_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  auto place = in.source.place(number);
  if (!place)
    return fail(std::move(place.error()));
  return finding("noisy_context", id,
                 known.path + " was read by " + std::to_string(known.counts.injected) +
                     " runs, and " + std::to_string(known.counts.use_count) + " used it",
                 "remove it from `context:`, or use only the relevant lines", *place);
}

} // namespace

result<std::set<std::string>> skills_called(const inspection& in, const std::string& text) {
  constexpr std::size_t least_beginning = 10; // "skill_" and four characters
  const auto skills = all_skills(in);
  if (!skills)
    return fail(skills.error());
  std::set<std::string> called;
  std::set<std::string> begin_so;
  for (const auto& id : *skills) {
    const auto names = names_in_skill_id(id);
    if (id == text || id == "skill_" + text || (names && names->second == text))
      called.insert(id);
    else if (text.size() >= least_beginning && id.starts_with(text))
      begin_so.insert(id);
  }
  return called.empty() ? begin_so : called;
}

result<std::string> lineage(const inspection& in, const std::string& skill) {
  const auto found = find_skill(in, skill);
  if (!found)
    return fail(found.error());
  const auto& name = *found;
  const auto s = facts_of_skill(in, name);
  if (!s)
    return fail(s.error());
  std::vector<step> story;
  json sources = json::array();
  json candidates = json::array();
  json executions = json::array();
  json uses = json::array();
  json decisions = json::array();
  for (const auto& f : s->all) {
    if (auto text = words_of(f, name); !text.empty())
      story.push_back({f, std::move(text)});
    const auto meta = meta_of(f);
    if (f.fact.type == "validated_by")
      uses.push_back(
          {{"execution", f.fact.from}, {"success", success_json(meta)}, {"line", f.place}});
    if (f.fact.type == "managed_by")
      decisions.push_back({{"action", text_in(meta, "action")},
                           {"reason", text_in(meta, "reason")},
                           {"line", f.place}});
  }
  for (const auto& source : s->sources) {
    const auto path = path_of(in, source);
    if (!path)
      return fail(path.error());
    const auto from = std::ranges::find_if(s->all, [&](const cited_fact& f) {
      return f.fact.type == "derived_from" && f.fact.to == source;
    });
    sources.push_back({{"id", source}, {"path", *path}, {"line", from->place}});
    if (auto told = tell_source(in, source, *path, story, candidates, executions); !told)
      return fail(std::move(told.error()));
  }
  std::ranges::stable_sort(story, {}, [](const step& one) { return one.fact.line; });
  json told = json::array();
  for (const auto& one : story)
    told.push_back(
        {{"at", time_text(one.fact.fact.timestamp)}, {"text", one.text}, {"line", one.fact.place}});
  json answer{{"skill", name},
              {"sources", std::move(sources)},
              {"candidates", std::move(candidates)},
              {"executions", std::move(executions)},
              {"uses", std::move(uses)},
              {"decisions", std::move(decisions)},
              {"story", std::move(told)}};
  tell_left_out(in, answer);
  return dump(answer);
}

/// The fold keeps a list of each kind: what is shown is read, whatever the length of the log.
result<std::string> findings(const inspection& in, std::size_t most) {
  json found = json::array();
  std::uint64_t total = 0;
  const auto tell = [&](index_area area, const std::optional<std::string>& before,
                        const auto& words) -> result<void> {
    const auto number = in.source.count(area, before);
    if (!number)
      return fail(number.error());
    total += *number;
    const auto room =
        static_cast<std::size_t>(std::min<std::uint64_t>(*number, most - found.size()));
    const auto keys = in.source.some(area, {}, room);
    if (!keys)
      return fail(keys.error());
    for (const auto& [key, value] : *keys) {
      auto told = words(key, value);
      if (!told)
        return fail(std::move(told.error()));
      found.push_back(std::move(*told));
    }
    return {};
  };
  auto told = tell(index_area::skill_faults, std::nullopt,
                   [&](const std::string& key, const std::string&) { return fault_json(in, key); });
  if (told)
    told = tell(index_area::skills_by_use, key_by_age(in.now - idle_time, {}),
                [&](const std::string& key, const std::string&) {
                  return idle_json(in, name_in_key(key));
                });
  if (told)
    told = tell(
        index_area::noisy_items, std::nullopt,
        [&](const std::string& id, const std::string& line) { return noise_json(in, id, line); });
  if (!told)
    return fail(std::move(told.error()));
  json answer{{"findings", std::move(found)}, {"total", total}};
  tell_left_out(in, answer);
  return dump(answer);
}

namespace {

/// What an improvement cycle did with its task; empty: the run was none, or chose no task.
std::string improvement_in_words(const cited_fact& f) {
  const auto meta = meta_of(f);
  const auto told = meta.value("told", json::object());
  const auto outcome = text_in(told, "outcome");
  if (outcome.empty() || text_in(told, "task").empty())
    return {};
  const auto by = text_in(told, "executor");
  const auto approach = text_in(told, "approach");
  std::string text = "the " + text_in(told, "source") + " task \"" + text_in(told, "title") +
                     "\" " + (outcome == "SUCCESS" ? "was done" : "was not done") +
                     (by.empty() ? "" : " by " + by) + (approach.empty() ? "" : ": " + approach);
  if (outcome != "SUCCESS")
    text += " (" + text_in(told, "failure") + ": " + text_in(told, "cause") + ")";
  return text;
}

/// An item in a window of time: the runs that were given it, and how those ended that used it.
struct item_in_window {
  std::set<std::string> given;
  std::map<std::string, credit> used;
  std::string line; ///< of its newest use
};

/// "given to 3 runs, which all used it: 2 ended well, 1 failed"
std::string in_words(const item_in_window& i) {
  const auto ended = [&i](credit how) {
    return std::ranges::count_if(i.used, [how](const auto& run) { return run.second == how; });
  };
  const auto given = i.given.size();
  const auto used = i.used.size();
  const auto good = static_cast<std::size_t>(ended(credit::success));
  const auto bad = static_cast<std::size_t>(ended(credit::failure));
  auto text = "given to " + std::to_string(given) + (given == 1 ? " run" : " runs");
  text += used < given ? "; " + std::to_string(used) + " used it"
                       : std::string(given == 1 ? ", which used it" : ", which all used it");
  if (good == used)
    return text + " and ended well";
  if (bad == used)
    return text + " and failed";
  if (good + bad == 0)
    return text + ", without a lesson from " + (used == 1 ? "its end" : "their ends");
  return text + ": " + std::to_string(good) + " ended well, " + std::to_string(bad) + " failed" +
         (good + bad < used ? ", " + std::to_string(used - good - bad) + " without a lesson" : "");
}

} // namespace

result<std::string> learned_since(const inspection& in, utc_time since) {
  struct window {
    std::int64_t good = 0;
    std::int64_t bad = 0;
    std::int64_t silent = 0;            ///< that taught nothing
    std::map<std::string, credit> runs; ///< how each ended last
    std::string newest_end;
    std::map<std::string, item_in_window> items;
    std::vector<cited_fact> rare;
    std::vector<cited_fact> improvements;
  } w;
  std::uint64_t looked_at = 0;
  const auto read = in.source.backwards([&](const cited_fact& f) {
    if (f.fact.timestamp + 24h < since)
      return false;
    if (f.fact.timestamp < since)
      return true;
    if (f.fact.type == "resulted_in") {
      const auto what = credit_of(f.fact.meta_json);
      ++(what == credit::success ? w.good : what == credit::failure ? w.bad : w.silent);
      w.runs.try_emplace(f.fact.from, what);
      if (w.newest_end.empty())
        w.newest_end = f.place;
      if (w.improvements.size() < most_told && !improvement_in_words(f).empty())
        w.improvements.push_back(f);
    } else if (f.fact.type == "used_in") {
      const auto meta = meta_of(f);
      auto& i = w.items[f.fact.from];
      i.given.insert(f.fact.to);
      if (flag_in(meta, "cited") || flag_in(meta, "used")) {
        const auto end = w.runs.find(f.fact.to); // it stands behind what the run used
        i.used.try_emplace(f.fact.to, end == w.runs.end() ? credit::none : end->second);
        if (i.line.empty())
          i.line = f.place;
      }
    } else if (is_rare(f.fact.type) && w.rare.size() < most_facts) {
      w.rare.push_back(f);
    }
    return ++looked_at < most_lines_looked_at;
  });
  if (!read)
    return fail(read.error());
  json statements = json::array();
  const auto say = [&](const std::string& text, const std::string& line) {
    statements.push_back({{"text", text}, {"line", line}});
  };
  const auto attempts = w.good + w.bad + w.silent;
  const auto runs = static_cast<std::int64_t>(w.runs.size());
  if (attempts > 0)
    say(std::to_string(runs) + (runs == 1 ? " run" : " runs") +
            (attempts > runs ? ", " + std::to_string(attempts) + " attempts: " +
                                   std::to_string(w.good) + (w.good == 1 ? " attempt" : " attempts")
                             : ": " + std::to_string(w.good)) +
            " succeeded, " + std::to_string(w.bad) + " failed" +
            (w.silent > 0 ? ", " + std::to_string(w.silent) + " without a lesson" : "") + ".",
        w.newest_end);
  std::vector<std::pair<std::string, const item_in_window*>> most_used;
  for (const auto& [id, i] : w.items)
    if (!i.used.empty())
      most_used.emplace_back(id, &i);
  std::ranges::stable_sort(most_used, std::greater{},
                           [](const auto& u) { return u.second->used.size(); });
  most_used.resize(std::min(most_used.size(), most_told));
  for (const auto& [id, use] : most_used) {
    const auto item = in.source.item(id);
    if (!item)
      return fail(item.error());
    if (!*item)
      continue;
    const auto stage = in.stage((*item)->counts);
    say((*item)->path + ": " + in_words(*use) + (stage == "context" ? "" : "; stage: " + stage),
        use->line);
  }
  for (auto f = w.improvements.rbegin(); f != w.improvements.rend(); ++f)
    say(improvement_in_words(*f), f->place);
  for (auto f = w.rare.rbegin(); f != w.rare.rend(); ++f) {
    const auto meta = meta_of(*f);
    const auto from = path_of(in, f->fact.from);
    if (!from)
      return fail(from.error());
    if (f->fact.type == "promoted_to")
      say(*from + (f->fact.to.starts_with("skill_")
                       ? " became the skill " + f->fact.to
                       : " became a skill candidate (see: boyd skills review)"),
          f->place);
    else if (f->fact.type == "managed_by" && text_in(meta, "action") == "stage")
      say(*from + ": " + text_in(meta, "from") + " → " + text_in(meta, "to") +
              ", because: " + text_in(meta, "reason"),
          f->place);
    else if (f->fact.type == "managed_by")
      say(*from + ": " + text_in(meta, "action") +
              (text_in(meta, "reason").empty() ? "" : ", because: " + text_in(meta, "reason")),
          f->place);
  }
  json answer{{"since", time_text(since)},
              {"statements", std::move(statements)},
              {"cut", looked_at >= most_lines_looked_at}};
  tell_left_out(in, answer);
  return dump(answer);
}

} // namespace boyd::graph
