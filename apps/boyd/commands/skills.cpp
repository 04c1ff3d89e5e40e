#include "../client.hpp"
#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../lost_facts.hpp"
#include "../skill_files.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "asking.hpp"
#include "boyd/core/text.hpp"
#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace boyd::app {

namespace {

constexpr const char* base = "/api/v1/skills";
/// Of a candidate's id in the table, behind its kind.
constexpr std::size_t shown_digits = 8;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string short_id(const std::string& id) {
  return id.substr(id.find('_') + 1).substr(0, shown_digits);
}

/// "0.85", or "-" where there is none.
std::string share_of(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number())
    return "-";
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.2f", it->get<double>());
  return text.data();
}

colour colour_of_state(const std::string& state) {
  if (state == "enabled")
    return colour::good;
  return state == "disabled" || state == "archived" ? colour::faint : colour::warn;
}

bool waits(const json& candidate) {
  const auto status = text_of(candidate, "status");
  return status == "pending" || status == "deferred";
}

void show_list(const json& body, const terminal& t) {
  const auto skills = rows_of(body, "skills");
  table rows({"SKILL", "STATE", "VERSION", "SCORE", "USES", "SUCCESS", "DESCRIPTION"});
  for (const auto& s : skills) {
    const auto state = text_of(s, "state");
    rows.add_cells({text_of(s, "name"),
                    {state, colour_of_state(state)},
                    flag_in(s, "approved") ? text_of(s, "version") : "-",
                    share_of(s, "score"),
                    text_of(s, "uses"),
                    share_of(s, "success_rate"),
                    text_of(s, "description")});
  }
  const bool lacks = !damage_of(body).empty() || !left_out_of(body).empty();
  print(!skills.empty() ? rows.render(t) : lacks ? "No skills are known.\n" : "No skills yet.\n");
  // What was approved once, and is not now: why.
  for (const auto& s : skills)
    if (text_of(s, "state") == "not approved" && !rows_of(s, "versions").empty() &&
        !rows_of(s, "problems").empty())
      print(folded("  ! " + printable(text_of(s, "name")) + ": " +
                       printable(rows_of(s, "problems").front().get<std::string>()),
                   t) +
            "\n");
  table waiting({"CANDIDATE", "STATUS", "CONFIDENCE", "USES", "SUCCESS", "PATH"});
  for (const auto& c : rows_of(body, "candidates"))
    if (text_of(c, "status") != "approved")
      waiting.add({short_id(text_of(c, "id")), text_of(c, "status"), share_of(c, "confidence"),
                   text_of(c, "usage"), share_of(c, "success_rate"),
                   rows_of(c, "paths").empty() ? std::string()
                                               : rows_of(c, "paths").front().get<std::string>()});
  if (waiting.rows() > 0)
    print("\n" + waiting.render(t) + hint_lines(as_hint("review them: boyd skills review"), 0, t) +
          "\n");
  print_lost_facts(body, t);
}

/// Spaces of whatever kind, several of them too, are one: what the log says must not look like
/// lines of Boyd.
std::string squeezed(std::string_view text) {
  constexpr std::array<std::string_view, 6> wide{"\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\xA8",
                                                 "\xE2\x80\xA9", "\xE2\x81\x9F", "\xE3\x80\x80"};
  std::string out;
  while (!text.empty()) {
    const auto size = std::max<std::size_t>(utf8_length(text), 1);
    const auto one = text.substr(0, size);
    const bool is_space = one == " " || one == "\t" || one == "\n" || one == "\r" ||
                          (one >= "\xE2\x80\x80" && one <= "\xE2\x80\x8F") ||
                          one == "\xE2\x80\xAF" || std::ranges::find(wide, one) != wide.end();
    if (!is_space)
      out += one;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
    text.remove_prefix(size);
  }
  return out;
}

/// "name         text"; what is too long for the screen goes on below the text.
std::string line_of(const char* name, const std::string& text, const terminal& t) {
  constexpr std::size_t width = 13;
  std::string head(name);
  head.resize(width, ' ');
  const auto line = head + squeezed(one_line(text, text.size()));
  return text.empty() ? std::string()
                      : (t.has_width() ? wrapped(line, t.width, width) : line) + "\n";
}

std::string joined(const json& list) {
  std::string all;
  for (const auto& one : list)
    if (one.is_string())
      all += (all.empty() ? "" : ", ") + one.get<std::string>();
  return all;
}

std::string problem_line(const json& problem, const terminal& t) {
  return folded("  ! " + printable(problem.get<std::string>()), t) + "\n";
}

std::string body_text(const json& what, const terminal& t) {
  std::string out;
  for (const auto& p : rows_of(what, "problems"))
    if (p.is_string())
      out += problem_line(p, t);
  auto text = printable(text_of(what, "text"));
  if (text.empty())
    return out;
  if (text.back() != '\n')
    text += '\n';
  return out + "--- SKILL.md ---\n" + text + "--- end ---\n";
}

std::string candidate_text(const json& c, const terminal& t) {
  const auto line = [&t](const char* name, const std::string& text) {
    return line_of(name, text, t);
  };
  std::string out = line("candidate", text_of(c, "id"));
  out += line("status", text_of(c, "status"));
  out += line("of", joined(rows_of(c, "paths")) + " (" + text_of(c, "scope") + ")");
  out += line("skill", text_of(c, "suggested_name"));
  out += line("evidence", counted(number_of(c, "referenced"), "reference") + ", success rate " +
                              share_of(c, "success_rate") + ", confidence " +
                              share_of(c, "confidence"));
  out += line("cited by", joined(rows_of(c, "evidence")));
  out += line("decided by", text_of(c, "decided_by"));
  out += line("reason", text_of(c, "reason"));
  out += line("hash", text_of(c, "hash"));
  return out + body_text(c, t);
}

std::string skill_text(const json& s, const terminal& t) {
  const auto line = [&t](const char* name, const std::string& text) {
    return line_of(name, text, t);
  };
  std::string out = line("skill", text_of(s, "name"));
  out += line("state", text_of(s, "state"));
  out += line("version", flag_in(s, "approved") ? text_of(s, "version") : "not approved");
  out += line("score", share_of(s, "score") + ", confidence " + share_of(s, "confidence"));
  out += line("uses", text_of(s, "uses") + ", success rate " + share_of(s, "success_rate"));
  out += line("latest", text_of(s, "recent"));
  out += line("from", joined(rows_of(s, "sources")));
  for (const auto& v : rows_of(s, "versions"))
    out += line("approved", "version " + text_of(v, "version") + ", " + moment_of(v, "at") +
                                ", by " + text_of(v, "by") +
                                (text_of(v, "reason").empty() ? "" : ": " + text_of(v, "reason")));
  out += line("hash", text_of(s, "hash"));
  return out + body_text(s, t);
}

/// The skill or the candidate of an answer.
json shown_in(const json& body) {
  const auto skill = part_of(body, "skill");
  return skill.empty() ? part_of(body, "candidate") : skill;
}

std::string text_of_shown(const json& body, const terminal& t) {
  const auto skill = part_of(body, "skill");
  return skill.empty() ? candidate_text(part_of(body, "candidate"), t) : skill_text(skill, t);
}

int show(const arguments& args) {
  const auto body =
      ask_once(args, get(std::string(base) + "/" + args.id, {{"kernel", args.kernel}}));
  if (!body)
    return report(body.error(), args.json);
  print(args.json ? *body + "\n" : text_of_shown(object_of(*body), terminal_of_stdout(args)));
  return exit_code::ok;
}

int review(const arguments& args) {
  const auto body = ask_once(args, get(base, {{"kernel", args.kernel}, {"texts", "yes"}}));
  if (!body)
    return report(body.error(), args.json);
  auto all = object_of(*body);
  json waiting = json::array();
  for (const auto& c : rows_of(all, "candidates"))
    if (waits(c))
      waiting.push_back(c);
  if (args.json) {
    print(dumped({{"schema", "boyd.skills_review/1"},
                  {"kernel_id", text_in(all, "kernel_id")},
                  {"candidates", std::move(waiting)},
                  {"damage", text_of(all, "damage")},
                  {"left_out", number_of(all, "left_out")},
                  {"lines", number_of(all, "lines")}}) +
          "\n");
    return exit_code::ok;
  }
  const auto t = terminal_of_stdout(args);
  for (const auto& c : waiting) {
    const auto id = short_id(text_of(c, "id"));
    print(candidate_text(c, t) +
          hint_lines(as_hint("approve it (or reject, defer): boyd skills approve " + id), 0, t) +
          "\n\n");
  }
  if (waiting.empty())
    print("No candidates to review.\n");
  print_lost_facts(all, t);
  return exit_code::ok;
}

int decide(const arguments& args) {
  const auto action = args.verb.substr(args.verb.find(' ') + 1);
  json body{{"kernel", args.kernel}, {"reason", args.reason}};
  if (action == "rollback")
    body["version"] = args.to;
  if (action == "approve") {
    const auto seen =
        ask_once(args, get(std::string(base) + "/" + args.id, {{"kernel", args.kernel}}));
    if (!seen)
      return report(seen.error(), args.json);
    const auto shown = object_of(*seen);
    if (!args.json)
      print(text_of_shown(shown, terminal_of_stdout(args)));
    if (args.hash.empty() && !args.json && ::isatty(STDIN_FILENO) == 1)
      if (auto agreed = agree(args, "approve this text"); !agreed)
        return report(agreed.error(), args.json);
    // What was shown a moment ago, or what the caller says to have seen.
    body["hash"] = args.hash.empty() ? text_of(shown_in(shown), "hash") : args.hash;
  }
  const auto done =
      ask_once(args, post(std::string(base) + "/" + args.id + "/" + action, dumped(body)));
  if (!done)
    return report(done.error(), args.json);
  if (args.json) {
    print(*done + "\n");
    return exit_code::ok;
  }
  const auto answer = object_of(*done);
  const auto skill = text_of(answer, "skill");
  print(action + ": " + text_of(answer, "id") +
        (skill.empty() ? "" : ", skill " + skill + " version " + text_of(answer, "version")) +
        "\n");
  return exit_code::ok;
}

int print_text_taken(const arguments& args, const result<std::string>& done) {
  if (!done)
    return report(done.error(), args.json);
  if (args.json) {
    print(*done + "\n");
    return exit_code::ok;
  }
  const auto answer = object_of(*done);
  const auto t = terminal_of_stdout(args);
  if (const auto text = text_of(answer, "text"); !text.empty())
    print(with_line_break(printable(text)) + "\nwritten by " + printable(text_of(answer, "model")) +
          " at provider " + text_of(answer, "provider") + ", " + text_of(answer, "tokens") +
          " tokens, $" + text_of(answer, "cost") + "\n");
  for (const auto& p : rows_of(answer, "problems"))
    if (p.is_string())
      print(problem_line(p, t));
  const bool is_draft = text_of(answer, "action") == "draft";
  const auto next = is_draft ? args.id : text_of(answer, "skill");
  print((is_draft ? "drafted: " : "imported, not yet approved: ") + text_of(answer, "skill") +
        as_hint("\napprove it with: boyd skills approve ") + next + "\n");
  return exit_code::ok;
}

int post_text(const arguments& args, const std::string& path, const std::string& text) {
  return print_text_taken(
      args, ask_once(args, post(path, dumped({{"kernel", args.kernel}, {"text", text}}))));
}

/// A model writes it.
int ask_for_draft(const arguments& args) {
  constexpr milliseconds patience = std::chrono::minutes{6};
  auto request = post(std::string(base) + "/" + args.id + "/draft",
                      dumped({{"kernel", args.kernel},
                              {"provider", args.provider},
                              {"model", args.model},
                              {"replace", args.replace ? "yes" : ""}}));
  request.query = {{"wait", "1"}};
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  const auto answer = (*c)->call(request, patience);
  (*c)->close();
  return print_text_taken(args, answer ? body_of(*answer) : fail(answer.error()));
}

int draft(const arguments& args) {
  if (args.path.empty())
    return ask_for_draft(args);
  const auto text = read_skill_text(args.path);
  if (!text)
    return report(text.error(), args.json);
  return post_text(args, std::string(base) + "/" + args.id + "/draft", *text);
}

int import_one(const arguments& args) {
  const auto found = skill_files(args.path);
  if (!found)
    return report(found.error(), args.json);
  if (found->size() != 1)
    return report({errc::invalid_argument, "there are " + std::to_string(found->size()) + " skills",
                   args.path, "import them one at a time, and review each one"},
                  args.json);
  const auto text = read_skill_text(found->front());
  if (!text)
    return report(text.error(), args.json);
  return post_text(args, base, *text);
}

int export_one(const arguments& args) {
  const auto body =
      ask_once(args, get(std::string(base) + "/" + args.id, {{"kernel", args.kernel}}));
  if (!body)
    return report(body.error(), args.json);
  const auto skill = part_of(object_of(*body), "skill");
  const auto text = text_of(skill, "text");
  if (text.empty())
    return report(
        {errc::not_found, "no text to export: " + args.id, {}, "list skills with: boyd skills ls"},
        args.json);
  const auto written = write_skill(args.dir, text_of(skill, "name"), text);
  if (!written)
    return report(written.error(), args.json);
  print(args.json ? dumped({{"schema", "boyd.skills_export/1"}, {"path", *written}}) + "\n"
                  : *written + "\n");
  return exit_code::ok;
}

/// `skills validate` and `skills scan`.
int look_at_files(const arguments& args) {
  const auto found = skill_files(args.path);
  if (!found)
    return report(found.error(), args.json);
  const bool scans = args.verb == "skills scan";
  json files = json::array();
  bool is_good = true;
  for (const auto& path : *found) {
    const auto looked = scans ? scan_file(path) : validate_file(path);
    if (!looked)
      return report(looked.error(), args.json);
    json findings = json::array();
    for (const auto& f : *looked) {
      is_good = is_good && !f.is_error;
      findings.push_back(
          {{"line", f.line}, {"problem", f.problem}, {"next", f.next}, {"error", f.is_error}});
      if (!args.json)
        print(printable(path + ":" + std::to_string(f.line) + ": " + f.problem +
                        (f.next.empty() ? "" : "; " + f.next)) +
              "\n");
    }
    if (!args.json && looked->empty())
      print(printable(path) + ": " + (scans ? "no problems found" : "valid") + "\n");
    files.push_back({{"path", path}, {"findings", std::move(findings)}});
  }
  if (args.json)
    print(dumped({{"schema", scans ? "boyd.skills_scan/1" : "boyd.skills_validate/1"},
                  {"ok", is_good},
                  {"files", std::move(files)}}) +
          "\n");
  return is_good ? exit_code::ok : exit_code::failure;
}

} // namespace

int run_skills(const arguments& args) {
  if (args.verb == "skills draft")
    return draft(args);
  if (args.verb == "skills import")
    return import_one(args);
  if (args.verb == "skills export")
    return export_one(args);
  if (args.verb == "skills validate" || args.verb == "skills scan")
    return look_at_files(args);
  if (args.verb == "skills show")
    return show(args);
  if (args.verb == "skills review")
    return review(args);
  if (args.verb != "skills ls" && args.verb != "skills")
    return decide(args);
  return ask_and_print(args, get(base, {{"kernel", args.kernel}}), show_list);
}

} // namespace boyd::app
