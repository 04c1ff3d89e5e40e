#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"
#include "../time_view.hpp"
#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <string>
#include <utility>

namespace boyd::app {

namespace {

/// After a cost that has only been reserved in part.
constexpr const char* reserved_mark = " *";

constexpr std::array<std::pair<const char*, const char*>, 7> columns{{
    {"calls", "CALLS"},
    {"open_calls", "OPEN"},
    {"input_tokens", "INPUT"},
    {"cached_tokens", "CACHED"},
    {"output_tokens", "OUTPUT"},
    {"reasoning_tokens", "REASONING"},
    {"tokens", "TOKENS"},
}};

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::vector<table::cell> cells_of(const std::string& name, const json& row) {
  std::vector<table::cell> cells{name};
  for (const auto& [key, head] : columns)
    cells.emplace_back(text_of(row, key));
  cells.emplace_back(text_of(row, "cost") +
                     (number_of(row, "open_calls") > 0 ? reserved_mark : ""));
  return cells;
}

/// Each call by itself: who used it, of which model, and how it stands.
table rows_of_calls(const json& body) {
  table rows({"CALL", "AGENT", "MODEL", "STATE", "SINCE", "TOKENS", "DOLLARS"});
  for (const auto& c : rows_of(body, "items"))
    rows.add({text_of(c, "key"), text_of(c, "kernel_id") + "/" + text_of(c, "agent_id"),
              printable(text_of(c, "model")), text_of(c, "state"), moment_of(c, "since"),
              text_of(c, "tokens"), text_of(c, "cost")});
  return rows;
}

std::string period_of(const json& body) {
  const auto from = text_of(body, "from");
  const auto to = text_of(body, "to");
  return from == to ? "on " + from : "from " + from + " to " + to;
}

/// Which calls hold a reservation, and why.
void render_reservations(const json& body, const terminal& t) {
  const auto open = rows_of(body, "reservations");
  if (open.empty())
    return;
  table rows({"RESERVATION", "AGENT", "SINCE", "TOKENS", "DOLLARS", "WHY"});
  for (const auto& c : open)
    rows.add({text_of(c, "key"), text_of(c, "kernel_id") + "/" + text_of(c, "agent_id"),
              moment_of(c, "since"), text_of(c, "tokens"), text_of(c, "cost"), text_of(c, "why")});
  print(
      "\nopen reservations: calls that have not told what they used\n" + rows.render(t) +
      (flag_in(body, "more_reservations") ? "… and older ones\n" : "") +
      hint_lines(as_hint("To return one that used nothing: boyd cost release RESERVATION --reason "
                         "TEXT"),
                 0, t) +
      "\n");
}

/// What people have given back of calls that are listed.
void render_releases(const json& body) {
  std::string out;
  for (const auto& c : rows_of(body, "items"))
    if (const auto r = part_of(c, "release"); !r.empty())
      out += "released " + text_of(c, "key") + ": " + text_of(r, "tokens") + " tokens and " +
             text_of(r, "cost") + " dollars, " + moment_of(r, "at") + " by " +
             printable(text_of(r, "by")) + ": " + printable(text_of(r, "reason")) + "\n";
  if (!out.empty())
    print("\n" + out);
}

void render(const json& body, const terminal& t) {
  const auto items = rows_of(body, "items");
  if (items.empty())
    return print("No model was called " + period_of(body) + " (UTC), so nothing was spent.\n");
  std::vector<std::string> heads{upper_case(text_of(body, "by"))};
  for (const auto& [key, head] : columns)
    heads.emplace_back(head);
  heads.emplace_back("DOLLARS");
  table rows(std::move(heads));
  const bool each = text_of(body, "by") == "call";
  for (const auto& item : items)
    if (!each)
      rows.add_cells(cells_of(text_of(item, "key"), item));
  const auto total = part_of(body, "total");
  rows.add_cells(cells_of("total", total));
  print("Tokens and dollars used " + period_of(body) + " (UTC)\n" +
        (each ? rows_of_calls(body).render(t) +
                    (flag_in(body, "more") ? "… and more; use a shorter period (--from, --to)\n"
                                           : "") +
                    "\n"
              : std::string()) +
        rows.render(t));
  if (const auto open = number_of(total, "open_calls"); open > 0)
    print(t.paint(colour::faint, "* " + std::to_string(open) +
                                     (open == 1 ? " call is" : " calls are") +
                                     " not finished, or did not tell what was used: counted as "
                                     "the maximum") +
          "\n");
  render_reservations(body, t);
  render_releases(body);
}

int release(const arguments& args) {
  const json body{{"id", args.id},
                  {"used_tokens", args.used_tokens},
                  {"used_cost", args.used_dollars},
                  {"reason", args.reason},
                  {"force", args.force ? "true" : ""}};
  const auto done = ask_once(args, post("/api/v1/cost/release",
                                        body.dump(-1, ' ', false, json::error_handler_t::replace)));
  if (!done)
    return report(done.error(), args.json);
  if (args.json) {
    print(*done + "\n");
    return exit_code::ok;
  }
  const auto call = part_of(object_of(*done), "call");
  const auto given = part_of(call, "release");
  print("released " + text_of(call, "key") + ": " + text_of(given, "tokens") + " tokens and " +
        text_of(given, "cost") + " dollars returned; the call now counts as " +
        text_of(call, "tokens") + " tokens and " + text_of(call, "cost") + " dollars on " +
        text_of(call, "day") + "\n");
  return exit_code::ok;
}

/// A field of RFC 4180. A spreadsheet takes what begins with one of these for a formula.
std::string field(std::string text) {
  if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos)
    text.insert(0, "'");
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void print_csv(const json& body) {
  const bool each = text_of(body, "by") == "call";
  std::string out = text_of(body, "by");
  for (const auto& [key, head] : columns)
    out += std::string(",") + key;
  out += each ? ",cost,kernel_id,agent_id,model,state\r\n" : ",cost\r\n";
  for (const auto& item : rows_of(body, "items")) {
    out += field(text_of(item, "key"));
    for (const auto& [key, head] : columns)
      out += "," + text_of(item, key);
    out += "," + text_of(item, "cost");
    for (const char* key : {"kernel_id", "agent_id", "model", "state"})
      out += each ? "," + field(text_of(item, key)) : std::string();
    out += "\r\n";
  }
  print(out);
  if (flag_in(body, "more"))
    std::cerr << "boyd: more calls exist; use a shorter period (--from, --to)\n";
}

} // namespace

int run_cost(const arguments& args) {
  if (args.verb == "cost release")
    return release(args);
  if (args.json && args.csv)
    return report(
        {errc::invalid_argument, "--json and --csv exclude each other", {}, "use one of them"},
        args.json);
  auto body = ask_once(
      args, get("/api/v1/cost",
                {{"by", args.by}, {"from", args.from}, {"to", args.to}, {"kernel", args.kernel}}));
  if (!body)
    return report(body.error(), args.json);
  if (args.json)
    print(*body + "\n");
  else if (args.csv)
    print_csv(object_of(*body));
  else
    render(object_of(*body), terminal_of_stdout(args));
  return exit_code::ok;
}

} // namespace boyd::app
