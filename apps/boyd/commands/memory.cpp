#include "../client.hpp"
#include "../counted.hpp"
#include "../exit_codes.hpp"
#include "../given_file.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../lost_facts.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "asking.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "boyd/memory/entry.hpp"
#include "commands.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

constexpr const char* base = "/api/v1/memory";
/// Of one request's body, below limits::http_body_bytes.
constexpr std::size_t body_bytes = std::size_t{768} << 10;
constexpr std::size_t questions_at_once = 50;
/// A file is read as a whole, so that a bad line is found before anything is imported.
constexpr std::size_t most_file_bytes = std::size_t{1} << 30;
constexpr std::size_t told_lines = 5;
constexpr std::size_t shown_names = 5;
constexpr std::size_t shown_query = 200; // characters

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// What one line is read into; its error names no place.
using line_reader = std::function<result<void>(std::string_view line)>;

/// Reads every line that is not blank. An error names the first lines that cannot be read.
result<void> read_lines(const std::string& path, const line_reader& read) {
  const auto bytes = read_given_file(path, most_file_bytes, "split the file");
  if (!bytes)
    return fail(bytes.error());
  std::size_t number = 0;
  std::size_t bad = 0;
  error first;
  for (const auto line : split(*bytes, '\n')) {
    ++number;
    const bool is_mark = number == 1 && line == "\xEF\xBB\xBF";
    if (trim(line).empty() || is_mark)
      continue;
    auto done = read(line);
    if (done)
      continue;
    ++bad;
    if (bad == 1) {
      first = done.error();
      first.where = path + ":" + std::to_string(number);
    } else if (bad <= told_lines) {
      first.what += "; line " + std::to_string(number) + ": " + done.error().what;
    }
  }
  if (bad == 0)
    return {};
  if (bad > told_lines)
    first.what += "; and " + std::to_string(bad - told_lines) + " more lines";
  first.next += first.next.empty() ? "" : ". ";
  first.next += "Nothing was imported";
  return fail(std::move(first));
}

/// One client for all requests of a command.
class conversation {
 public:
  explicit conversation(const arguments& args) : args_(args) {}
  ~conversation() {
    if (client_)
      client_->close();
  }
  conversation(const conversation&) = delete;
  conversation& operator=(const conversation&) = delete;

  result<json> ask(const api_request& request) {
    if (!client_) {
      auto opened = open_client(args_, node_mode::answering, signals_);
      if (!opened)
        return fail(std::move(opened.error()));
      client_ = std::move(*opened);
    }
    auto body = client_->ask(request);
    if (!body)
      return fail(std::move(body.error()));
    return object_of(*body);
  }

 private:
  const arguments& args_;
  signal_watch signals_;
  std::unique_ptr<client> client_;
};

// -- status, append, compact ----------------------------------------------------------------------

void show_status(const json& body, const terminal& t) {
  print(counted(number_of(body, "entries"), "entry", "entries") + " in memory\n");
  table files({"FILE", "BYTES", "ENTRIES"});
  for (const auto& f : rows_of(body, "files"))
    files.add({text_of(f, "path"), text_of(f, "bytes"), text_of(f, "entries")});
  if (files.rows() > 0)
    print("\n" + files.render(t));
  table sections({"FILE", "ENTRIES", "LONGEST", "SECTION"});
  for (const auto& s : rows_of(body, "sections")) {
    const auto of = [&](const char* key, const char* most) {
      const auto cap = text_of(s, most);
      return text_of(s, key) + (cap.empty() ? "" : "/" + cap);
    };
    const bool over = flag_in(s, "over");
    sections.add_cells({text_of(s, "file"),
                        {of("entries", "most_entries"), over ? colour::warn : colour::none},
                        of("longest", "most_characters"),
                        text_of(s, "section")});
  }
  if (sections.rows() > 0)
    print("\n" + sections.render(t));
  for (const auto& p : rows_of(body, "problems"))
    if (p.is_string())
      print(t.paint(colour::warn, "  ! " + printable(p.get<std::string>())) + "\n");
}

// -- the memory policy ----------------------------------------------------------------------------

void show_decisions(const json& body, const terminal& t) {
  table rows({"TEXT", "ACTION", "REASON"});
  std::size_t kept = 0;
  bool promotes = false;
  std::string names; // of those that are kept
  for (const auto& i : rows_of(body, "items"))
    if (text_of(i, "action") != "keep") {
      rows.add({one_line(text_of(i, "path"), 40), text_of(i, "action"), text_of(i, "reason")});
      promotes = promotes || text_of(i, "action") == "promote_to_skill";
    } else {
      if (kept < shown_names)
        names += (kept > 0 ? ", " : "") + text_of(i, "path");
      ++kept;
    }
  if (rows.rows() + kept == 0)
    return;
  if (kept > shown_names)
    names += ", …";
  print("\n" +
        folded("Of the texts that runs read, the memory policy would keep " + std::to_string(kept) +
                   (kept == 0 ? "" : " (" + printable(names) + ")") +
                   (rows.rows() == 0 ? "." : ", and change these:"),
               t) +
        "\n");
  if (rows.rows() == 0)
    return;
  print(rows.render(t));
  if (promotes)
    print(folded("A text that is cited often becomes a skill candidate by itself; a skill is used "
                 "only after its approval" +
                     as_hint(" (boyd skills approve)") + ".",
                 t) +
          "\n");
  print(as_hint("to apply these now: boyd memory apply\n"));
}

int show_whole_status(const arguments& args) {
  conversation c(args);
  auto body = c.ask(get(base, {{"kernel", args.kernel}}));
  const auto policy = body ? c.ask(get(std::string(base) + "/policy", {{"kernel", args.kernel}}))
                           : result<json>(json::object());
  if (!body || !policy)
    return report(body ? policy.error() : body.error(), args.json);
  (*body)["items"] = rows_of(*policy, "items");
  for (const auto* key : {"damage", "left_out", "lines"})
    if (policy->contains(key))
      (*body)[key] = (*policy)[key];
  const auto t = terminal_of_stdout(args);
  if (args.json) {
    print(dumped(*body) + "\n");
  } else {
    show_status(*body, t);
    show_decisions(*body, t);
    print_lost_facts(*body, t);
  }
  return exit_code::ok;
}

/// What the policy would do, in words: so many of each kind.
std::string question_about(const json& items) {
  std::map<std::string, std::size_t> counts;
  for (const auto& i : items)
    if (const auto action = text_of(i, "action"); action != "keep")
      ++counts[action];
  std::string all;
  for (const auto& [action, n] : counts)
    all += (all.empty() ? "" : ", ") + action + " " + std::to_string(n);
  return all.empty()
             ? all
             : "the memory policy will: " + all + as_hint(" (boyd memory status lists them)");
}

int apply_policy(const arguments& args) {
  conversation c(args);
  const auto judged = c.ask(get(std::string(base) + "/policy", {{"kernel", args.kernel}}));
  if (!judged)
    return report(judged.error(), args.json);
  const auto items = rows_of(*judged, "items");
  const auto forgets =
      std::ranges::count_if(items, [](const json& i) { return text_of(i, "action") == "forget"; });
  if (const auto question = question_about(items); !question.empty())
    if (auto agreed = agree(args, question); !agreed)
      return report(agreed.error(), args.json);
  bool forget = args.forget;
  if (forgets > 0 && !forget) {
    auto asked = args;
    asked.yes = false;
    forget = agree(asked, "forget " + counted(forgets, "text") +
                              ": removed from the bank and the references")
                 .has_value();
  }
  // What was agreed to, and nothing that has come up since.
  json shown = json::array();
  for (const auto& i : items)
    if (const auto action = text_of(i, "action");
        action != "keep" && (forget || action != "forget"))
      shown.push_back({{"id", text_of(i, "id")}, {"action", action}});
  const auto done = c.ask(post(std::string(base) + "/policy",
                               dumped({{"kernel", args.kernel}, {"shown", std::move(shown)}})));
  if (!done)
    return report(done.error(), args.json);
  const auto refused = rows_of(*done, "refused");
  const int code = refused.empty() ? exit_code::ok : exit_code::partial;
  if (args.json) {
    print(dumped(*done) + "\n");
    return code;
  }
  const auto rows = rows_of(*done, "items");
  for (const auto& i : rows)
    print(text_of(i, "action") + " " + printable(text_of(i, "path")) + ": " +
          printable(text_of(i, "reason")) + "\n");
  for (const auto& i : refused)
    print("Not done: " + text_of(i, "shown") + " " + printable(text_of(i, "path")) +
          ": the policy now says " + text_of(i, "now") + "\n");
  if (rows.empty() && refused.empty())
    print("Nothing to do.\n");
  else if (!rows.empty() && text_of(*done, "commit").empty())
    print("Done; the commit follows with the next cycle.\n");
  if (forgets > 0 && !forget)
    print("Not forgotten: " + counted(forgets, "text") +
          as_hint("; to forget: boyd memory apply --force-forget\n"));
  return code;
}

int undo_policy(const arguments& args) {
  const json body{{"kernel", args.kernel}, {"item", args.text}};
  return ask_and_print(args, post(std::string(base) + "/policy/undo", dumped(body)),
                       [](const json& done, const terminal&) {
                         for (const auto& i : rows_of(done, "items"))
                           print("undone: " + printable(text_of(i, "path")) + ": " +
                                 text_of(i, "reason") + "\n");
                         if (text_of(done, "commit").empty())
                           print("Done; the commit follows with the next cycle.\n");
                       });
}

int append(const arguments& args) {
  const json body{
      {"kernel", args.kernel}, {"file", args.path}, {"section", args.section}, {"text", args.text}};
  return ask_and_print(args, post(std::string(base) + "/append", dumped(body)),
                       [](const json& done, const terminal&) {
                         const auto archived = number_of(done, "archived");
                         print((flag_in(done, "changed") ? "added to " : "already in ") +
                               text_of(done, "file") + ", " + text_of(done, "section") +
                               (flag_in(done, "changed") ? "" : " already") + "\n");
                         if (archived > 0)
                           print("moved to archive/: " + std::to_string(archived) + "\n");
                         for (const auto& note : rows_of(done, "notes"))
                           print("full text: research/" + note.get<std::string>() + "\n");
                       });
}

int compact(const arguments& args) {
  const json body{{"kernel", args.kernel}, {"apply", args.yes ? "yes" : ""}};
  return ask_and_print(
      args, post(std::string(base) + "/compact", dumped(body)),
      [&](const json& done, const terminal&) {
        bool any = false;
        for (const auto& f : rows_of(done, "files")) {
          if (!flag_in(f, "changed"))
            continue;
          any = true;
          print(text_of(f, "file") + ": " + counted(number_of(f, "archived"), "entry", "entries") +
                " to archive/, " + counted(rows_of(f, "notes").size(), "long one") +
                " to research/\n");
        }
        if (!any)
          print("All sections are within their limits.\n");
        else if (!args.yes)
          print(as_hint("Nothing was moved; to move the entries: boyd memory compact --yes\n"));
      });
}

// -- import ---------------------------------------------------------------------------------------

int import_file(const arguments& args) {
  std::vector<std::string> lines;
  const auto read = read_lines(args.from, [&](std::string_view line) -> result<void> {
    const auto entry = memory::read_import_line(line);
    if (!entry)
      return fail(entry.error());
    lines.push_back(memory::write_import_line(*entry));
    return {};
  });
  if (!read)
    return report(read.error(), args.json);
  std::int64_t imported = 0;
  std::int64_t skipped = 0;
  conversation node(args);
  for (std::size_t at = 0; at < lines.size() || at == 0;) {
    auto body = "{\"kernel\":" + dumped(args.kernel) + ",\"lines\":[";
    for (bool first = true; at < lines.size(); ++at, first = false) {
      auto line = (first ? "" : ",") + dumped(lines[at]);
      if (!first && body.size() + line.size() > body_bytes)
        break;
      body += line;
    }
    const auto done = node.ask(post(std::string(base) + "/import", body + "]}"));
    if (!done) {
      auto e = done.error();
      if (imported > 0)
        e.next += std::string(e.next.empty() ? "" : ". ") +
                  "imported so far: " + counted(imported, "entry", "entries") +
                  "; import the file again to add the rest";
      return report(std::move(e), args.json);
    }
    imported += number_of(*done, "imported");
    skipped += number_of(*done, "skipped");
    if (lines.empty())
      break;
  }
  if (args.json)
    print(
        dumped({{"schema", "boyd.memory_import/1"}, {"imported", imported}, {"skipped", skipped}}) +
        "\n");
  else
    print("imported " + counted(imported, "entry", "entries") +
          (skipped > 0 ? "; " + std::to_string(skipped) + " already existed" : "") + "\n");
  return exit_code::ok;
}

// -- recall ---------------------------------------------------------------------------------------

/// `query`: what was asked.
void show_answer(const json& answer, const std::string& query, const terminal& t) {
  const auto items = rows_of(answer, "items");
  const bool none_fits = !items.empty() && std::ranges::all_of(items, [](const json& item) {
    return item.value("score", 0.0) <= 0.0;
  });
  if (none_fits)
    print(
        folded("Nothing in memory matches \"" + one_line(query, shown_query) + "\". Other entries:",
               t) +
        "\n");
  for (const auto& item : items) {
    const auto author = text_of(item, "author");
    const auto source = text_of(item, "source");
    print(t.paint(colour::faint, moment_of(item, "time") +
                                     (source.empty() ? "" : "  " + printable(source)) + "  (" +
                                     counted(number_of(item, "tokens"), "token") + ")") +
          "\n  " + (author.empty() ? "" : printable(author) + ": ") +
          wrapped(text_of(item, "text"), t.width, 2) + "\n");
  }
  if (items.empty())
    print(as_hint("The memory is empty; see: boyd memory status\n"));
}

/// The answers to all questions, `questions_at_once` in one request; each is given to `take`.
result<void> recall_all(const arguments& args, const std::vector<json>& questions,
                        const std::function<void(const json& answer)>& take) {
  conversation node(args);
  for (std::size_t at = 0; at < questions.size();) {
    json some = json::array();
    std::size_t bytes = 0;
    for (; at < questions.size() && some.size() < questions_at_once; ++at) {
      bytes += dumped(questions[at]).size() + 1;
      if (!some.empty() && bytes > body_bytes)
        break;
      some.push_back(questions[at]);
    }
    json body{{"kernel", args.kernel}, {"questions", std::move(some)}, {"budget", args.budget}};
    if (args.limit > 0)
      body["limit"] = args.limit;
    const auto done = node.ask(post(std::string(base) + "/recall", dumped(body)));
    if (!done)
      return fail(done.error());
    for (const auto& answer : rows_of(*done, "answers"))
      take(answer);
  }
  return {};
}

json question(const std::string& text, const std::string& at) {
  json q{{"query", text}};
  if (!at.empty())
    q["at"] = at;
  return q;
}

/// A line of --queries. `at` is the one of all lines that name none.
result<json> question_of_line(std::string_view line, const std::string& at) {
  const auto mended = mend_json(line);
  const auto object = mended ? json::parse(mended->text, nullptr, false) : json();
  if (!object.is_object() || !part_in(object, "query").is_string())
    return fail(
        errc::invalid_argument, "question missing", {},
        "write one JSON object per line: {\"query\": \"…\", \"at\": \"2026-02-13T10:00:00Z\"}");
  const auto own = part_in(object, "at");
  if (!own.is_null() && !own.is_string())
    return fail(errc::invalid_argument, "at is not a string", {}, "write it as in RFC 3339");
  const auto time = own.is_string() ? own.get<std::string>() : at;
  if (!time.empty() && !parse_rfc3339(time))
    return fail(errc::invalid_argument, "not a time: at: " + time, {},
                "use RFC 3339 with a time zone, such as 2026-02-13T10:00:00Z");
  return question(object["query"].get<std::string>(), time);
}

int recall(const arguments& args) {
  if (args.text.empty() == args.queries.empty())
    return report(
        {errc::invalid_argument,
         args.text.empty() ? "no question given" : "a question cannot be combined with --queries",
         "boyd memory recall", "use either QUERY or --queries FILE"},
        args.json);
  std::vector<json> questions;
  if (!args.queries.empty()) {
    const auto read = read_lines(args.queries, [&](std::string_view line) -> result<void> {
      auto q = question_of_line(line, args.at);
      if (!q)
        return fail(std::move(q.error()));
      questions.push_back(std::move(*q));
      return {};
    });
    if (!read)
      return report(read.error(), args.json);
  } else {
    questions.push_back(question(args.text, args.at));
  }
  const auto t = terminal_of_stdout(args);
  const auto done = recall_all(args, questions, [&](const json& answer) {
    if (args.json || !args.queries.empty())
      print(dumped(answer) + "\n");
    else
      show_answer(answer, args.text, t);
  });
  return done ? exit_code::ok : report(done.error(), args.json);
}

} // namespace

int run_memory(const arguments& args) {
  if (args.verb == "memory append")
    return append(args);
  if (args.verb == "memory recall")
    return recall(args);
  if (args.verb == "memory import")
    return import_file(args);
  if (args.verb == "memory compact")
    return compact(args);
  if (args.verb == "memory apply")
    return apply_policy(args);
  if (args.verb == "memory undo")
    return undo_policy(args);
  return show_whole_status(args);
}

} // namespace boyd::app
