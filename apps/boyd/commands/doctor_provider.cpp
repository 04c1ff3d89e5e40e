#include "../client.hpp"
#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../json_view.hpp"
#include "../live_line.hpp"
#include "../terminal.hpp"
#include "commands.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace boyd::app {

namespace {

/// All calls of one provider's probe have their own limits; this is more than their sum.
constexpr milliseconds probe_patience = 7min;
constexpr double milliseconds_of_second = 1000.0;

colour colour_of_check(const std::string& state) {
  return state == "works"                         ? colour::good
         : state == "failed"                      ? colour::bad
         : state == "lacks" || state == "unclear" ? colour::warn
                                                  : colour::faint;
}

std::string took(const json& check) {
  const auto ms = number_of(check, "took_ms");
  if (text_of(check, "state") == "skipped")
    return "-";
  std::string text = std::to_string(static_cast<double>(ms) / milliseconds_of_second);
  return text.substr(0, text.find('.') + 3) + " s";
}

void render_probe(const json& probe, const terminal& t) {
  print(t.paint(colour::bold, text_of(probe, "provider_id")) + ": " +
        printable(text_of(probe, "model") + " at " + text_of(probe, "base_url")) + "\n");
  table rows({"CHECK", "STATE", "TOOK", "WHAT"});
  std::string next;
  for (const auto& c : rows_of(probe, "checks")) {
    const auto state = text_of(c, "state");
    rows.add_cells(
        {text_of(c, "name"), {state, colour_of_check(state)}, took(c), text_of(c, "what")});
    if (!text_of(c, "next").empty())
      next += "  " + text_of(c, "name") + ": " + as_hint(printable(text_of(c, "next"))) + "\n";
  }
  print(rows.render(t, "  "));
  if (!next.empty())
    print("next\n" + next);
  if (const auto why = text_of(probe, "unkept"); !why.empty())
    print("cannot save the results: " + printable(why) + "\n");
  if (number_of(probe, "tokens") > 0)
    print(t.paint(colour::faint, "this test used " + text_of(probe, "tokens") + " tokens, " +
                                     text_of(probe, "cost") + " dollars (boyd cost: boyd/doctor)") +
          "\n");
}

result<json> ask(client& c, const api_request& request) {
  auto body = c.ask(request, probe_patience);
  if (!body)
    return fail(std::move(body.error()));
  return object_of(*body);
}

result<std::vector<std::string>> providers_of(client& c, const arguments& args) {
  if (!args.providers)
    return std::vector<std::string>{args.provider};
  const auto body = ask(c, get("/api/v1/providers"));
  if (!body)
    return fail(body.error());
  std::vector<std::string> ids;
  for (const auto& p : rows_of(*body, "items"))
    ids.push_back(text_of(p, "provider_id"));
  if (ids.empty())
    return fail(errc::not_found, "no providers in the configuration", {},
                "see `providers` in docs/configuration.md");
  return ids;
}

/// Each provider's answer is shown as it comes; together they are one JSON object.
result<bool> probe_all(client& c, const arguments& args) {
  const auto ids = providers_of(c, args);
  if (!ids)
    return fail(ids.error());
  const auto t = terminal_of_stdout(args);
  json all = json::array();
  bool ok = true;
  for (const auto& id : *ids) {
    auto request = post("/api/v1/providers/" + id + "/probe");
    request.query = {{"wait", "1"}};
    if (!args.model.empty())
      request.query.emplace("model", args.model);
    auto probe = with_live_line(args, "testing provider " + id, [&] { return ask(c, request); });
    if (!probe)
      return fail(std::move(probe.error()));
    ok = ok && probe->value("ok", false);
    if (!args.json)
      render_probe(*probe, t);
    all.push_back(std::move(*probe));
  }
  if (args.json)
    print(json{{"schema", "boyd.probes/1"}, {"ok", ok}, {"providers", std::move(all)}}.dump(
              -1, ' ', false, json::error_handler_t::replace) +
          "\n");
  return ok;
}

} // namespace

int run_doctor_providers(const arguments& args) {
  if (args.providers && (!args.provider.empty() || !args.model.empty()))
    return report({errc::invalid_argument,
                   "--providers already tests all providers",
                   {},
                   "use --provider ID (with or without --model), or --providers alone"},
                  args.json);
  if (args.provider.empty() && !args.providers)
    return report({errc::invalid_argument, "--model needs a provider", {}, "add --provider ID"},
                  args.json);
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return report(c.error(), args.json);
  const auto ok = probe_all(**c, args);
  (*c)->close();
  if (!ok)
    return report(ok.error(), args.json);
  return *ok ? exit_code::ok : exit_code::failure;
}

} // namespace boyd::app
