#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../lost_facts.hpp"
#include "../time_view.hpp"
#include "adapters/control/control_client.hpp"
#include "asking.hpp"
#include "boyd/graph/lost_end.hpp"
#include "boyd/graph/picture.hpp"
#include "boyd/graph/segments.hpp"
#include "commands.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// Questions about the log of facts.
namespace boyd::app {

namespace {

constexpr std::size_t shown_id = 40;     // characters
constexpr std::size_t shown_commit = 12; // digits

/// When the node's end stays as it is for so many looks, the node is not writing.
constexpr int quiet_looks = 20;
constexpr int most_looks = 5 * quiet_looks;
constexpr milliseconds between_looks = 100ms;
constexpr milliseconds node_limit = 5s;

std::string line_of(const json& row) {
  return "  " + text_of(row, "line");
}

/// A node's id in a column of a table: on a screen no longer than leaves room for its neighbours.
std::string id_cell(const std::string& id, const terminal& t) {
  constexpr std::size_t on_screen = 17;
  return t.has_width() ? cut_in_middle(id, on_screen) : id;
}

/// "  text  graph.jsonl:17"
void print_statements(const json& body, const char* key, const terminal& t) {
  for (const auto& s : rows_of(body, key)) {
    const auto at = text_of(s, "at").empty() ? std::string() : moment_of(s, "at") + "  ";
    print(folded(at + printable(text_of(s, "text")) + line_of(s), t) + "\n");
  }
}

void print_left_out(const json& body, const terminal& t) {
  print_lost_facts(body, t);
  if (flag_in(body, "older_left_out"))
    print("This answer counts only the newest 10,000 facts of each node.\n");
}

/// "50 of 12345; --limit N shows more", when not all are there.
void print_more(const json& body, std::size_t shown) {
  if (const auto total = number_of(body, "total"); total > static_cast<std::int64_t>(shown))
    print(std::to_string(shown) + " of " + std::to_string(total) + "; --limit N shows more\n");
}

std::string yes(const json& row, const char* key) {
  return row.value(key, false) ? "yes" : "-";
}

void print_invented(const json& body, const terminal& t) {
  std::string all;
  std::size_t n = 0;
  for (const auto& one : rows_of(body, "invented"))
    if (one.is_string()) {
      constexpr std::size_t longest = 80;
      all += (n++ == 0 ? "" : ", ") + one_line(one.get<std::string>(), longest);
    }
  bool cites = false;
  for (const auto& c : rows_of(body, "contexts"))
    cites = cites || flag_in(c, "cited");
  if (n > 0)
    print(folded(std::string(cites ? "It also cited " : "It cited ") +
                     counted(static_cast<std::int64_t>(n), "source") +
                     " that it was never given: " + all + ".",
                 t) +
          "\n");
}

void show_trace(const json& body, const terminal& t) {
  print(text_of(body, "execution") + "\n");
  table contexts({"CONTEXT", "CITED", "USED", "ID", "LINE"});
  for (const auto& c : rows_of(body, "contexts"))
    contexts.add({cut_in_middle(text_of(c, "path"), shown_id), yes(c, "cited"), yes(c, "used"),
                  text_of(c, "id"), text_of(c, "line")});
  print(contexts.rows() > 0
            ? contexts.render(t) +
                  folded("CITED: its answer names the item as a source. USED: its answer repeats "
                         "the item, or an action of it names it.\n",
                         t)
            : "It read no context items.\n");
  for (const auto& s : rows_of(body, "skills"))
    print(folded("skill " + text_of(s, "skill") + ": " +
                     (!s.contains("success") || s["success"].is_null()
                          ? "no conclusion from the outcome"
                      : flag_in(s, "success") ? "success"
                                              : "failure") +
                     line_of(s),
                 t) +
          "\n");
  for (const auto& p : rows_of(body, "promotions"))
    print(folded(text_of(p, "context") + " became " + text_of(p, "skill") + line_of(p), t) + "\n");
  const auto outcome = part_of(body, "outcome");
  if (!outcome.empty())
    print(folded("outcome: " + text_of(outcome, "status") + ", of agent " +
                     text_of(outcome, "agent") + line_of(outcome),
                 t) +
          "\n");
  print_invented(body, t);
}

void show_stats(const json& body, const terminal& t) {
  table items({"CONTEXT", "GIVEN", "USED", "HELPED", "STAGE", "IMPORTANCE", "LAST USED"});
  items.drop_when_narrow({"STAGE"});
  for (const auto& i : rows_of(body, "items"))
    items.add({cut_in_middle(text_of(i, "path"), shown_id), text_of(i, "injected"),
               text_of(i, "used"), text_of(i, "validated"), text_of(i, "stage"),
               text_of(i, "importance"), brief_moment_of(i, "last_used", t)});
  print(items.rows() > 0
            ? items.render(t) +
                  folded("GIVEN counts the runs that were shown it, USED those of them "
                         "that cited or used it, HELPED those of these that went "
                         "well.\n",
                         t)
        : !text_of(body, "damage").empty()
            ? "The log has no facts about files and texts given as context.\n"
            : hint_lines(as_hint("No run has read a file or text given as context yet. Give one: "
                                 "boyd context add @README.md"),
                         0, t) +
                  "\n");
  print_more(body, items.rows());
}

void show_why(const json& body, const terminal& t) {
  print_statements(body, "statements", t);
  if (const auto n = number_of(body, "given_and_not_used"); n > 0)
    print("It read " + std::to_string(n) +
          (n == 1 ? " more item, but did not use it.\n" : " more items, but did not use them.\n"));
  print_invented(body, t);
}

void show_lineage(const json& body, const terminal& t) {
  print(text_of(body, "skill") + "\n");
  for (const auto& s : rows_of(body, "sources"))
    print(folded("  comes from " + printable(text_of(s, "path")) + line_of(s), t) + "\n");
  print_statements(body, "story", t);
}

void show_findings(const json& body, const terminal& t) {
  const auto rows = rows_of(body, "findings");
  for (const auto& f : rows)
    print(folded(printable(text_of(f, "text")) + line_of(f) +
                     "\n  suggestion: " + printable(text_of(f, "suggestion")),
                 t) +
          "\n");
  if (rows.empty())
    print("Nothing to review.\n");
  print_more(body, rows.size());
}

void show_learned(const json& body, const terminal& t) {
  if (rows_of(body, "statements").empty())
    print("Nothing learned since " + moment_of(body, "since") + "\n");
  print_statements(body, "statements", t);
}

void show_facts(const json& body, const terminal& t) {
  table facts({"AT", "FROM", "TYPE", "TO", "LINE"});
  for (const auto& f : rows_of(body, "facts"))
    facts.add({brief_moment_of(f, "at", t), id_cell(text_of(f, "from"), t), text_of(f, "type"),
               id_cell(text_of(f, "to"), t), text_of(f, "line")});
  print(facts.rows() > 0 ? facts.render(t) : "No matching facts.\n");
  if (flag_in(body, "more"))
    print("There are more facts; add filters, or raise --limit.\n");
}

using shower = void (*)(const json& body, const terminal& t);

const std::map<std::string, shower>& showers() {
  static const std::map<std::string, shower> all{
      {"trace", show_trace},     {"stats", show_stats},       {"why", show_why},
      {"lineage", show_lineage}, {"findings", show_findings}, {"learned", show_learned},
      {"query", show_facts}};
  return all;
}

api_request question(const arguments& args, const std::string& name) {
  return get("/api/v1/knowledge",
             {{"question", name},
              {"subject", name == "lineage" ? args.name : args.id},
              {"from", args.from},
              {"to", args.to},
              {"type", args.type},
              {"since", args.since},
              {"limit", args.limit == 0 ? std::string() : std::to_string(args.limit)}});
}

// -- verify: the files themselves, whoever else reads them ----------------------------------------

/// The commit that confirms the log furthest; null: none.
const graph::anchor* confirming(const std::vector<graph::anchor>& anchors,
                                const graph::log_report& r) {
  const auto it = std::ranges::find(anchors, r.confirmed_head, &graph::anchor::head);
  return r.confirmed.empty() || it == anchors.end() ? nullptr : &*it;
}

/// Up to which line commits confirm the log.
std::string told_of(const std::vector<graph::anchor>& anchors, const graph::log_report& r) {
  if (anchors.empty())
    return as_hint("no readable commit confirms it (see: boyd doctor)");
  const auto newer = r.unconfirmed == 0 ? std::string()
                     : r.unconfirmed == 1
                         ? std::string("1 newer fact is not in a commit yet")
                         : std::to_string(r.unconfirmed) + " newer facts are not in a commit yet";
  const auto* const by = confirming(anchors, r);
  if (by == nullptr)
    return newer.empty() ? "there is nothing to confirm" : newer;
  return "confirmed up to " + r.confirmed + " by commit " + by->commit.substr(0, shown_commit) +
         (newer.empty() ? "" : "; " + newer);
}

/// What no seal proves; empty when there is nothing.
std::string told_of_older(const graph::log_report& r) {
  const auto count = std::to_string(r.older);
  if (r.older == 0)
    return {};
  if (r.older == 1)
    return "line 1 was written by an older version without seals: it is not proved";
  const bool is_beginning = r.older_until == graph::segment{}.name() + ":" + count;
  return (is_beginning ? "lines 1–" + count : count + " lines up to " + r.older_until) +
         " were written by an older version without seals: they are not proved";
}

std::string told_of_whole(const std::vector<graph::anchor>& anchors, const graph::log_report& r) {
  const auto older = told_of_older(r);
  return counted(r.facts, "fact") + " in " + counted(r.segments, "segment") + ": " + older +
         (older.empty()       ? "nothing was changed or removed; "
          : r.older < r.facts ? "; of the newer ones nothing was changed or removed; "
                              : "; ") +
         told_of(anchors, r) +
         (r.ends_within_line ? "; the last line is incomplete (being written, or damaged)" : "");
}

/// With the commit that names what is missing.
std::string detail_of(const graph::log_problem& p, const std::vector<graph::anchor>& anchors) {
  if (p.kind == graph::chain_problem_kind::head_missing)
    for (const auto& a : anchors)
      if (p.detail.ends_with(a.head))
        return p.detail + ", which commit " + a.commit.substr(0, shown_commit) + " of kernel " +
               a.kernel_id + " names: the end of the log was cut off or changed";
  return p.detail;
}

json json_of(const std::vector<graph::anchor>& anchors, const graph::log_report& r) {
  json problems = json::array();
  for (const auto& p : r.problems)
    problems.push_back(
        {{"line", p.place}, {"kind", graph::name_of(p.kind)}, {"what", detail_of(p, anchors)}});
  const auto* const by = confirming(anchors, r);
  return {{"schema", "boyd.kg_verify/1"},
          {"ok", r.intact()},
          {"facts", r.facts},
          {"segments", r.segments},
          {"not_proved",
           r.older == 0 ? json(nullptr) : json{{"lines", r.older}, {"until", r.older_until}}},
          {"confirmed",
           by != nullptr
               ? json{{"line", r.confirmed}, {"kernel_id", by->kernel_id}, {"commit", by->commit}}
               : json(nullptr)},
          {"unconfirmed", r.unconfirmed},
          {"problems", std::move(problems)}};
}

/// What a running node says of its log.
struct own_log {
  graph::written_log::segment_ends ends;   ///< empty: no node answers
  std::vector<graph::log_problem> foreign; ///< what stands behind them
};

graph::written_log::segment_ends ends_told(const place& where) {
  graph::written_log::segment_ends ends;
  const auto answer =
      adapters::control_call(where.layout().control_socket(),
                             {"GET", "/api/v1/knowledge", {{"question", "ends"}}, {}}, node_limit);
  if (!answer || answer->status != 200)
    return ends;
  for (const auto& s : rows_of(object_of(answer->body), "segments"))
    ends[static_cast<std::uint32_t>(number_of(s, "segment"))] =
        static_cast<std::uint64_t>(number_of(s, "bytes"));
  return ends;
}

/// What stands behind the end is foreign when the end stays as it is: else the node is writing.
result<own_log> ask_for_ends(const place& where, graph::segment_files& files) {
  own_log own;
  own.ends = ends_told(where);
  int quiet = 0;
  for (int look = 0; !own.ends.empty() && quiet < quiet_looks && look < most_looks; ++look) {
    auto behind = graph::lines_behind(files, own.ends);
    if (!behind)
      return fail(behind.error());
    own.foreign = std::move(*behind);
    if (own.foreign.empty())
      return own;
    std::this_thread::sleep_for(between_looks);
    auto now = ends_told(where);
    quiet = now == own.ends ? quiet + 1 : 0;
    own.ends = std::move(now);
  }
  if (quiet < quiet_looks)
    own.foreign.clear();
  return own;
}

int verify(const arguments& args) {
  const auto where = place_of(args);
  if (!where)
    return report(where.error(), args.json);
  const auto p = local_ports();
  graph::segment_files files(*p.files, where->home, p.unpack);
  // Read before the log is: a running node writes the line first.
  const auto anchors = graph::expected_anchors(where->home, *p.files, *p.repositories);
  const auto own = ask_for_ends(*where, files);
  if (!own)
    return report(own.error(), args.json);
  auto checked = graph::verify_log(files, graph::heads_of(anchors), own->ends);
  if (!checked)
    return report(checked.error(), args.json);
  std::ranges::copy(own->foreign, std::back_inserter(checked->problems));
  const auto t = terminal_of_stdout(args);
  const auto tell = [&](const std::string& text) {
    if (!args.json)
      print(folded(printable(text), t) + "\n");
  };
  if (args.json)
    print(json_of(anchors, *checked).dump() + "\n");
  else if (checked->intact())
    tell(told_of_whole(anchors, *checked));
  for (const auto& problem : checked->problems)
    tell(problem.place + ": " + std::string(graph::name_of(problem.kind)) + ": " +
         detail_of(problem, anchors));
  if (!checked->intact() && checked->older > 0)
    tell(told_of_older(*checked));
  if (!checked->intact() && !checked->confirmed.empty())
    tell(told_of(anchors, *checked));
  return checked->intact() ? exit_code::ok : exit_code::failure;
}

} // namespace

int run_kg(const arguments& args) {
  const auto name = args.verb.substr(args.verb.find(' ') + 1);
  if (name == "verify")
    return verify(args);
  return ask_and_print(args, question(args, name), [&](const json& body, const terminal& t) {
    showers().at(name)(body, t);
    print_left_out(body, t);
  });
}

int run_graph(const arguments& args) {
  auto request = get("/api/v1/knowledge",
                     {{"question", "picture"},
                      {"subject", args.around},
                      {"depth", std::to_string(args.depth)},
                      {"limit", args.limit == 0 ? std::string() : std::to_string(args.limit)}});
  const auto body = ask_once(args, request);
  if (!body)
    return report(body.error(), args.json);
  if (args.json) {
    print(*body + "\n");
    return exit_code::ok;
  }
  const auto picture = graph::read_picture(*body);
  if (!picture)
    return report(picture.error(), args.json);
  print(args.format == "mermaid" ? to_mermaid(*picture)
        : args.format == "dot"   ? to_dot(*picture)
                                 : folded(to_text(*picture), terminal_of_stdout(args)));
  // Not among what another program is to read.
  const auto told = object_of(*body);
  for (const auto& lost : {damage_of(told), left_out_of(told)})
    if (!lost.empty())
      print_note(lost);
  return exit_code::ok;
}

} // namespace boyd::app
