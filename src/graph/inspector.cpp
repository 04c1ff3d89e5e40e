#include "boyd/graph/inspector.hpp"

#include "../core/json_values.hpp"
#include "boyd/graph/links.hpp"
#include "boyd/graph/lists.hpp"
#include "inspector_internal.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace boyd::graph {

namespace {

constexpr std::size_t least_part_of_id = 4;
constexpr std::string_view execution_prefix = "exec_";

std::string bare(const std::string& execution) {
  return execution.substr(execution_prefix.size());
}

json fact_json(const cited_fact& f) {
  return {{"from", f.fact.from}, {"to", f.fact.to},
          {"type", f.fact.type}, {"at", time_text(f.fact.timestamp)},
          {"meta", meta_of(f)},  {"line", f.place}};
}

bool fits(const fact_filter& filter, const edge& e) {
  return (filter.from.empty() || e.from == filter.from) &&
         (filter.to.empty() || e.to == filter.to) &&
         (filter.type.empty() || e.type == filter.type) &&
         (!filter.since || e.timestamp >= *filter.since);
}

json outcome_json(const cited_fact& f) {
  const auto meta = meta_of(f);
  json out{{"line", f.place}, {"at", time_text(f.fact.timestamp)}};
  for (const char* key : {"agent", "status", "class", "execution", "claim", "verification"})
    out[key] = text_in(meta, key);
  out["weak"] = flag_in(meta, "weak");
  return out;
}

json use_json(const cited_fact& f, const std::string& path) {
  const auto meta = meta_of(f);
  return {{"id", f.fact.from},
          {"path", path},
          {"section", text_in(meta, "section")},
          {"as", text_in(meta, "as")},
          {"cited", flag_in(meta, "cited")},
          {"used", flag_in(meta, "used")},
          {"line", f.place}};
}

/// The facts of an execution, sorted by what they say.
struct execution_facts {
  json contexts = json::array();
  json skills = json::array();
  json outcome;
  json decision;
  std::vector<std::string> ids; ///< of the contexts
};

result<execution_facts> facts_of_execution(const inspection& in, const std::string& execution) {
  auto facts = oldest_first(in, execution);
  if (!facts)
    return fail(std::move(facts.error()));
  if (facts->empty())
    return fail(errc::not_found, "no facts about this run", execution,
                "list runs with: boyd dispatches ls");
  execution_facts all;
  for (const auto& f : *facts) {
    const auto meta = meta_of(f);
    if (f.fact.type == "used_in" && f.fact.to == execution) {
      const auto told = text_in(meta, "path");
      all.contexts.push_back(use_json(f, told.empty() ? f.fact.from : told));
      all.ids.push_back(f.fact.from);
    } else if (f.fact.type == "validated_by") {
      all.skills.push_back(
          {{"skill", f.fact.to}, {"success", success_json(meta)}, {"line", f.place}});
    } else if (f.fact.type == "resulted_in") {
      all.outcome = outcome_json(f); // of several attempts the newest
    } else if (f.fact.type == "decided_by" && text_in(meta, "kind") != "reevaluation") {
      all.decision = {{"decision", f.fact.to},
                      {"planner", text_in(meta, "planner")},
                      {"reason", text_in(meta, "reason")},
                      {"line", f.place}};
    }
  }
  return all;
}

} // namespace

std::string dump(const json& answer) {
  return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

json meta_of(const cited_fact& f) {
  auto meta = json::parse(f.fact.meta_json, nullptr, false);
  return meta.is_object() ? meta : json::object();
}

json success_json(const json& meta) {
  const auto it = meta.find("success");
  return it != meta.end() && it->is_boolean() ? *it : json(nullptr);
}

std::string success_in_words(const json& meta) {
  const auto success = success_json(meta);
  if (success.is_null())
    return "; no conclusion from its outcome";
  return success.get<bool>() ? ", successfully" : ", unsuccessfully";
}

double rounded(double share) {
  constexpr double steps = 1e4;
  return std::round(share * steps) / steps;
}

std::string time_text(utc_time t) {
  return format_rfc3339(t);
}

result<std::vector<cited_fact>> newest_first(const inspection& in, const std::string& node) {
  auto facts = in.source.facts_of(node, most_facts);
  in.older_left_out = in.older_left_out || (facts && facts->size() == most_facts);
  return facts;
}

result<std::vector<cited_fact>> oldest_first(const inspection& in, const std::string& node) {
  auto facts = newest_first(in, node);
  if (facts)
    std::ranges::reverse(*facts);
  return facts;
}

result<std::string> path_of(const inspection& in, const std::string& id) {
  auto item = in.source.item(id);
  if (!item)
    return fail(std::move(item.error()));
  return *item && !(*item)->path.empty() ? (*item)->path : id;
}

void tell_left_out(const inspection& in, json& answer) {
  answer["lines"] = in.source.lines();
  answer["left_out"] = in.source.left_out();
  answer["older_left_out"] = in.older_left_out;
}

result<std::string> find_execution(const inspection& in, const std::string& text) {
  const auto whole =
      text.starts_with(execution_prefix) ? text : std::string(execution_prefix) + text;
  if (const auto there = in.source.facts_of(whole, 1); !there)
    return fail(there.error());
  else if (!there->empty())
    return whole;
  std::set<std::string> fitting;
  std::string found;
  if (const auto runs = in.source.facts_of(agent_node(text), 1); !runs)
    return fail(runs.error());
  else if (!runs->empty())
    return runs->front().fact.from;
  if (const auto runs =
          in.source.facts_of(short_node(text.substr(0, short_id_characters)), most_facts);
      !runs)
    return fail(runs.error());
  else
    for (const auto& f : *runs)
      if (f.fact.from.find("-" + text) != f.fact.from.npos)
        fitting.insert(f.fact.from);
  if (fitting.size() == 1)
    return *fitting.begin();
  std::uint64_t looked_at = 0;
  const auto read = in.source.backwards([&](const cited_fact& f) {
    if (f.fact.type == "resulted_in" && f.fact.from.starts_with(execution_prefix)) {
      if (text == "last")
        found = f.fact.from;
      else if (text.size() >= least_part_of_id && bare(f.fact.from).find(text) != text.npos)
        fitting.insert(f.fact.from);
    }
    return found.empty() && fitting.size() < 2 && ++looked_at < most_lines_looked_at;
  });
  if (!read)
    return fail(read.error());
  if (!found.empty())
    return found;
  if (fitting.size() > 1)
    return fail(errc::conflict, "more than one run matches", text,
                "use more characters of the id: " + bare(*fitting.begin()) + " or " +
                    bare(*fitting.rbegin()));
  if (fitting.empty())
    return fail(errc::not_found,
                "no run or agent has this name" +
                    (looked_at < most_lines_looked_at
                         ? std::string()
                         : " in the newest " + std::to_string(looked_at) + " facts"),
                text,
                "use `last`, an agent's name or a full id; list them with: boyd dispatches ls");
  return *fitting.begin();
}

result<std::string> trace(const inspection& in, const std::string& execution) {
  auto facts = facts_of_execution(in, execution);
  if (!facts)
    return fail(std::move(facts.error()));
  const auto promoted = oldest_first(in, type_node("promoted_to"));
  if (!promoted)
    return fail(promoted.error());
  json promotions = json::array();
  for (const auto& p : *promoted)
    if (std::ranges::find(facts->ids, p.fact.from) != facts->ids.end())
      promotions.push_back({{"context", p.fact.from}, {"skill", p.fact.to}, {"line", p.place}});
  json answer{{"execution", execution},
              {"contexts", std::move(facts->contexts)},
              {"skills", std::move(facts->skills)},
              {"promotions", std::move(promotions)},
              {"outcome", std::move(facts->outcome)},
              {"decision", std::move(facts->decision)}};
  tell_left_out(in, answer);
  return dump(answer);
}

namespace {

struct stats_row {
  std::string id;
  learned_item item;
  std::optional<std::string> promoted;
};

json row_json(const inspection& in, const stats_row& r) {
  const auto& c = r.item.counts;
  return {{"id", r.id},
          {"path", r.item.path},
          {"injected", c.injected},
          {"used", c.use_count},
          {"validated", c.verified_useful},
          {"failed", c.verified_not_useful},
          {"promoted", r.promoted ? json(*r.promoted) : json(nullptr)},
          {"last_used", c.last_used ? json(time_text(*c.last_used)) : json(nullptr)},
          {"stage", in.stage(c)},
          {"confidence", rounded(c.confidence)},
          {"importance", rounded(context::importance(c, in.now))}};
}

} // namespace

result<std::string> stats(const inspection& in, std::size_t most) {
  const auto total = in.source.count(index_area::items_by_use, std::nullopt);
  if (!total)
    return fail(total.error());
  const auto keys = in.source.some(index_area::items_by_use, {}, most);
  if (!keys)
    return fail(keys.error());
  std::vector<stats_row> rows;
  for (const auto& key : *keys) {
    const auto id = name_in_key(key.first);
    auto item = in.source.item(id);
    if (!item)
      return fail(std::move(item.error()));
    auto promoted = in.source.value(index_area::promotions, id);
    if (!promoted)
      return fail(std::move(promoted.error()));
    if (*item)
      rows.push_back({id, std::move(**item), std::move(*promoted)});
  }
  // Those of one run have the same time.
  const auto used_at = [](const stats_row& r) {
    return r.item.counts.last_used.value_or(utc_time{});
  };
  std::ranges::sort(rows, [&](const stats_row& a, const stats_row& b) {
    return std::pair(used_at(b), std::cref(a.item.path).get()) <
           std::pair(used_at(a), std::cref(b.item.path).get());
  });
  json items = json::array();
  for (const auto& r : rows)
    items.push_back(row_json(in, r));
  json answer{{"items", std::move(items)}, {"contexts", *total}, {"total", *total}};
  tell_left_out(in, answer);
  return dump(answer);
}

result<std::string> why(const inspection& in, const std::string& execution) {
  auto facts = facts_of_execution(in, execution);
  if (!facts)
    return fail(std::move(facts.error()));
  json statements = json::array();
  const auto say = [&](const std::string& text, const json& of) {
    statements.push_back({{"text", text}, {"line", text_in(of, "line")}});
  };
  if (!facts->outcome.is_null()) {
    const auto what = text_in(facts->outcome, "class");
    say("The run of agent " + text_in(facts->outcome, "agent") + " ended as " +
            text_in(facts->outcome, "status") +
            (what.empty() || what == "none" ? std::string() : " (" + what + ")") +
            (flag_in(facts->outcome, "weak")
                 ? "; its citations were not correct, so it does not count"
                 : ""),
        facts->outcome);
  }
  json standing = json::array();
  std::size_t unused = 0;
  for (auto& c : facts->contexts) {
    const bool cited = flag_in(c, "cited");
    const bool used = flag_in(c, "used");
    if (!cited && !used) {
      ++unused;
      continue;
    }
    say("It " +
            std::string(cited && used ? "cited and used "
                        : cited       ? "cited "
                                      : "used, but did not cite, ") +
            text_in(c, "path"),
        c);
    const auto item = in.source.item(text_in(c, "id"));
    if (!item)
      return fail(item.error());
    if (*item) {
      c["importance"] = rounded(context::importance((*item)->counts, in.now));
      c["stage"] = in.stage((*item)->counts);
    }
    standing.push_back(c);
  }
  for (const auto& s : facts->skills)
    say("It followed the skill " + text_in(s, "skill") + success_in_words(s), s);
  json answer{{"execution", execution},
              {"contexts", std::move(standing)},
              {"skills", std::move(facts->skills)},
              {"given_and_not_used", unused},
              {"statements", std::move(statements)}};
  tell_left_out(in, answer);
  return dump(answer);
}

namespace {

/// One that nobody knows stays as it is: there are no facts about it.
result<std::string> node_or_text(const inspection& in, const std::string& text) {
  if (text.empty())
    return text;
  auto node = find_node(in, text);
  if (!node && node.error().code == errc::not_found)
    return text;
  return node;
}

} // namespace

result<std::string> query(const inspection& in, const fact_filter& asked_for) {
  auto filter = asked_for;
  for (auto* end : {&filter.from, &filter.to}) {
    auto node = node_or_text(in, *end);
    if (!node)
      return fail(std::move(node.error()));
    *end = std::move(*node);
  }
  json facts = json::array();
  bool more = false;
  const auto take = [&](const cited_fact& f) {
    if (!fits(filter, f.fact))
      return true;
    more = facts.size() == filter.most;
    if (!more)
      facts.push_back(fact_json(f));
    return !more;
  };
  const auto node = !filter.from.empty()                           ? filter.from
                    : !filter.to.empty()                           ? filter.to
                    : !filter.type.empty() && is_rare(filter.type) ? type_node(filter.type)
                                                                   : std::string();
  std::uint64_t looked_at = 0;
  bool unfinished = false;
  if (!node.empty()) {
    // Mostly all of them fit; else it looks at more.
    constexpr std::size_t growth = 8;
    for (auto asked = std::min(filter.most + 1, most_facts);;
         asked = std::min(asked * growth, most_facts)) {
      facts.clear();
      const auto all = in.source.facts_of(node, asked);
      if (!all)
        return fail(all.error());
      const bool is_enough = !std::ranges::all_of(*all, take);
      unfinished = all->size() == most_facts;
      if (is_enough || all->size() < asked || asked == most_facts)
        break;
    }
  } else {
    const auto read = in.source.backwards([&](const cited_fact& f) {
      unfinished = ++looked_at >= most_lines_looked_at;
      const bool is_older = filter.since && f.fact.timestamp + 24h < *filter.since;
      return !is_older && take(f) && !unfinished;
    });
    if (!read)
      return fail(read.error());
  }
  json answer{{"facts", std::move(facts)}, {"more", more || unfinished}};
  tell_left_out(in, answer);
  return dump(answer);
}

} // namespace boyd::graph
