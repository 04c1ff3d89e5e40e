#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"
#include "boyd/core/time.hpp"
#include "boyd/faults/points.hpp"
#include "commands.hpp"

#include <charconv>
#include <set>
#include <string>
#include <utility>

namespace boyd::app {

namespace {

int list(const arguments& args) {
  json rows = json::array();
  table shown({"POINT", "GROUP", "CAN", "HAPPENS BEFORE"});
  std::set<std::string_view> groups;
  for (const auto name : faults::points())
    groups.insert(faults::find(name)->group);
  for (const auto group : groups)
    for (const auto name : faults::points()) {
      const auto& p = *faults::find(name);
      if (p.group != group)
        continue;
      json can = json::array();
      std::string words;
      for (std::size_t i = 0; i < faults::action_count; ++i)
        if (const auto a = static_cast<faults::action>(i); faults::contains(p.can, a)) {
          can.push_back(faults::name_of(a));
          words += (words.empty() ? "" : ", ") + std::string(faults::name_of(a));
        }
      rows.push_back(
          {{"point", p.name}, {"group", p.group}, {"can", std::move(can)}, {"says", p.says}});
      shown.add({std::string(p.name), std::string(p.group), std::move(words), std::string(p.says)});
    }
  if (args.json)
    print(json{{"schema", "boyd.fault_points/1"}, {"items", std::move(rows)}}.dump() + "\n");
  else
    print(shown.render(terminal_of_stdout(args)));
  return exit_code::ok;
}

/// "250" as milliseconds, else a duration.
result<milliseconds> delay_of(const std::string& text) {
  std::int64_t ms = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (failed == std::errc{} && end == text.data() + text.size() && ms >= 0)
    return milliseconds{ms};
  return parse_duration(text);
}

/// Exactly one says what goes wrong.
result<faults::action> action_of(const chaos_options& o) {
  const int given = (o.crash ? 1 : 0) + (o.error ? 1 : 0) + (o.drop ? 1 : 0) + (o.corrupt ? 1 : 0) +
                    (o.delay.empty() ? 0 : 1);
  if (given != 1)
    return fail(errc::invalid_argument,
                given == 0 ? "no fault given" : "only one fault per command", {},
                "use one of --crash, --error, --delay TIME, --drop, --corrupt");
  if (o.crash)
    return faults::action::crash;
  if (o.drop)
    return faults::action::drop;
  if (o.corrupt)
    return faults::action::corrupt;
  return o.delay.empty() ? faults::action::error : faults::action::delay;
}

/// The body of the request; what makes no sense is found before a node is asked.
result<json> order_of(const chaos_options& o) {
  faults::arming a;
  auto what = action_of(o);
  if (!what)
    return fail(std::move(what.error()));
  a.point = o.point;
  a.what = *what;
  a.count = faults::count_of_strikes(o.count);
  a.probability = o.probability;
  a.after = o.after;
  a.every = o.every;
  if (!o.delay.empty()) {
    auto delay = delay_of(o.delay);
    if (!delay)
      return fail(std::move(delay.error()));
    a.delay = *delay;
  }
  if (auto sound = faults::check(a); !sound)
    return fail(std::move(sound.error()));
  json body{{"point", a.point},
            {"action", faults::name_of(a.what)},
            {"count", a.count},
            {"probability", a.probability},
            {"delay_ms", a.delay.count()},
            {"after", a.after},
            {"every", a.every}};
  if (o.seed.empty())
    return body;
  std::uint64_t seed = 0;
  const auto [end, failed] = std::from_chars(o.seed.data(), o.seed.data() + o.seed.size(), seed);
  if (failed != std::errc{} || end != o.seed.data() + o.seed.size())
    return fail(errc::invalid_argument, "--seed is not a whole number: " + o.seed);
  body["seed"] = seed;
  return body;
}

std::string triggers_of(const json& row) {
  std::string text = number_of(row, "count") < 0 ? "no limit" : text_of(row, "count") + " x";
  if (text_of(row, "action") == "delay")
    text += ", " + format_duration(milliseconds{number_of(row, "delay_ms")});
  if (number_of(row, "after") > 0)
    text += ", after " + text_of(row, "after");
  if (number_of(row, "every") > 1)
    text += ", every " + text_of(row, "every") + ".";
  if (share_in(row, "probability", 1) < 1.0)
    text += ", probability " + text_of(row, "probability");
  if (share_in(row, "probability", 1) < 1.0 || text_of(row, "action") == "corrupt")
    text += ", seed " + text_of(row, "seed");
  return text;
}

void show(const json& body, const terminal& t) {
  const auto rows = rows_of(body, "faults");
  if (body.contains("cleared"))
    print("faults removed: " + text_of(body, "cleared") + "\n");
  if (rows.empty())
    return body.contains("cleared") ? void() : print("No active faults.\n");
  table shown({"POINT", "ACTION", "STATE", "STRUCK", "PASSES", "WHEN", "BY"});
  for (const auto& row : rows)
    shown.add({text_of(row, "point"), text_of(row, "action"),
               flag_in(row, "armed") ? "armed" : "over", text_of(row, "strikes"),
               text_of(row, "passes"), triggers_of(row), text_of(row, "by")});
  print(shown.render(t));
}

int ask_node(const arguments& args, const api_request& request) {
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  if (!(*c)->online()) {
    (*c)->close();
    return report({errc::refused,
                   "no node is running, so there are no faults",
                   {},
                   "set node: {chaos: true} in the configuration, then run: boyd node"},
                  args.json);
  }
  const auto body = (*c)->ask(request);
  (*c)->close();
  if (!body)
    return report(body.error(), args.json);
  if (args.json)
    print(*body + "\n");
  else
    show(object_of(*body), terminal_of_stdout(args));
  return exit_code::ok;
}

} // namespace

int run_chaos(const arguments& args) {
  if (args.verb == "chaos ls")
    return list(args);
  if (args.verb == "chaos clear")
    return ask_node(args, post("/api/v1/chaos/clear"));
  if (args.verb != "chaos inject")
    return ask_node(args, get("/api/v1/chaos"));
  auto order = order_of(args.chaos);
  if (!order)
    return report(order.error(), args.json);
  return ask_node(args, post("/api/v1/chaos", order->dump()));
}

} // namespace boyd::app
