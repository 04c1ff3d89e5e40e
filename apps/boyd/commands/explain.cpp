#include "../exit_codes.hpp"
#include "../hints.hpp"
#include "../home.hpp"
#include "../live_line.hpp"
#include "../page_view.hpp"
#include "../run_view.hpp"
#include "adapters/yaml/yaml.hpp"
#include "asking.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/text.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/skills/policy_replay.hpp"
#include "commands.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

/// What a run was, and whether it can be put together again: explain, replay.
namespace boyd::app {

namespace {

std::string path_of(const arguments& args, const std::string& what) {
  return "/api/v1/executions/" + args.id + "/" + what;
}

std::string yes_or_no(bool given) {
  return given ? "yes" : "no";
}

/// One line of what was compared.
void print_line(const terminal& t, const std::string& name, const std::string& size,
                const std::string& state, bool good) {
  constexpr std::size_t name_width = 32;
  constexpr std::size_t size_width = 18;
  const auto padded = [](std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
  };
  print("  " + padded(name, name_width) + padded(size, size_width) +
        t.paint(good ? colour::good : colour::bad, state) + "\n");
}

void render_texts(const json& body, const terminal& t) {
  std::map<std::string, int> attempts; // by fence
  for (const auto& one : rows_of(body, "texts")) {
    const auto number =
        attempts.try_emplace(text_of(one, "fence"), static_cast<int>(attempts.size()) + 1)
            .first->second;
    const bool same = flag_in(one, "same");
    print_line(t, text_of(one, "name") + " of attempt " + std::to_string(number),
               text_of(one, "bytes") + " bytes",
               same                       ? "the same"
               : flag_in(one, "recorded") ? "differs"
                                          : "not recorded",
               same);
  }
}

void render_problems(const json& body, const terminal& t, bool with_detail) {
  for (const auto& p : rows_of(body, "problems")) {
    print("  " + t.paint(colour::bad, text_of(p, "what")) + ": " + printable(text_of(p, "where")) +
          "\n");
    if (!with_detail)
      continue;
    if (const auto detail = text_of(p, "detail"); !detail.empty())
      print("    " + printable(detail) + "\n");
    if (const auto hash = text_of(p, "hash"); !hash.empty())
      print("    " + t.paint(colour::faint, "sha256 " + hash) + "\n");
  }
}

void render_replay(const json& body, const terminal& t, const arguments& args) {
  print("run " + text_of(body, "dispatch_id") + " of " + printable(text_of(body, "agent_id")) +
        ", rebuilt from its record and " + text_of(body, "contents") + " stored contents\n");
  render_texts(body, t);
  const auto explanation = part_of(body, "explanation");
  const bool recorded = flag_in(explanation, "recorded");
  const bool same = flag_in(explanation, "same");
  const bool other_words = flag_in(explanation, "words_differ");
  print_line(t, "explanation", text_of(explanation, "bytes") + " bytes",
             !recorded     ? "not recorded: the run has not ended"
             : same        ? "the same"
             : other_words ? "in other words"
                           : "differs",
             same || other_words);
  const auto problems = rows_of(body, "problems");
  if (problems.empty() && other_words) {
    const auto version = text_of(explanation, "written_by");
    print(t.paint(colour::good, "unchanged") + ": every recorded byte is as it was\n" +
          "  It was written by " + (version.empty() ? "an older Boyd" : "Boyd " + version) +
          ", which explained it in other words than this one.\n");
    return;
  }
  if (problems.empty()) {
    print(t.paint(colour::good, "identical") + ": every byte matches the original\n");
    return;
  }
  print(t.paint(colour::bad, "not identical") + ":\n");
  render_problems(body, t, args.record.diff);
  if (!args.record.diff)
    print(t.paint(colour::faint, as_hint("show the differences: boyd replay ") +
                                     text_of(body, "dispatch_id") + " --diff") +
          "\n");
}

/// What the latest attempt was told.
int print_prompt(const arguments& args, const json& body) {
  std::string told;
  bool found = false;
  std::string fence;
  for (const auto& one : rows_of(body, "texts"))
    fence = text_of(one, "fence");
  for (const auto& one : rows_of(body, "texts"))
    if (text_of(one, "fence") == fence && flag_in(one, "same")) {
      const auto text = text_of(one, "text");
      if (found && !told.empty() && !told.ends_with('\n'))
        told += '\n';
      told += (found ? "\n" : "") + text;
      found = true;
    }
  if (!found)
    return report({errc::corrupt, "the prompt of the run cannot be rebuilt",
                   text_of(body, "dispatch_id"),
                   "find the cause: boyd replay " + text_of(body, "dispatch_id") + " --diff"},
                  args.json);
  const auto t = terminal_of_stdout(args);
  print(t.is_tty ? printable(told) : told);
  return exit_code::ok;
}

// -- asked again

std::string share_of(const json& drift, const char* key) {
  const auto it = drift.find(key);
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.2f",
                it != drift.end() && it->is_number() ? it->get<double>() : 1.0);
  return text.data();
}

std::string lines_of(const json& all) {
  std::string lines;
  for (const auto& one : all)
    if (one.is_string())
      lines += "      " + printable(one.get<std::string>()) + "\n";
  return lines.empty() ? "      (none)\n" : lines;
}

void render_both(const json& body, const terminal& t) {
  const auto recorded = part_of(body, "recorded");
  const auto now = part_of(body, "now");
  for (const auto* key : {"citations", "actions"})
    print("  " + t.paint(colour::bold, key) + "\n    then:\n" + lines_of(rows_of(recorded, key)) +
          "    now:\n" + lines_of(rows_of(now, key)));
  print("  " + t.paint(colour::bold, "conclusion") + "\n    then:\n" +
        with_line_break(printable(text_of(recorded, "conclusion"))) + "    now:\n" +
        with_line_break(printable(text_of(now, "conclusion"))));
}

void render_reevaluation(const json& body, const terminal& t, bool with_texts) {
  const auto drift = part_of(body, "drift");
  print("run " + text_of(body, "dispatch_id") + " of " + printable(text_of(body, "agent_id")) +
        ", asked again: " + printable(text_of(body, "model")) + " at provider " +
        text_of(body, "provider") + ", " + text_of(body, "tokens") + " tokens, $" +
        text_of(body, "cost") + "\n");
  print("  drift         " + share_of(drift, "whole") + "   0: identical, 1: nothing in common\n" +
        "    citations   " + share_of(drift, "citations") + "   which texts the answer names\n" +
        "    actions     " + share_of(drift, "actions") + "   which tools it called, and how\n" +
        "    conclusion  " + share_of(drift, "conclusion") + "   the words of the answer\n");
  if (with_texts)
    render_both(body, t);
  if (const auto why = text_of(body, "unrecorded"); !why.empty())
    print(t.paint(colour::bad, "not in the log of facts: ") + printable(why) + "\n");
  else
    print(t.paint(colour::faint, "in the log of facts: " + text_of(body, "fact")) + "\n");
}

/// The answer to what may take minutes.
result<std::string> ask_patiently(const arguments& args, api_request request,
                                  const std::string& doing) {
  constexpr milliseconds patience = std::chrono::minutes{11};
  request.query["wait"] = "1";
  signal_watch signals;
  auto c = open_client(args, node_mode::answering, signals);
  if (!c)
    return fail(std::move(c.error()));
  auto text = with_live_line(args, doing, [&] { return (*c)->ask(request, patience); });
  (*c)->close();
  return text;
}

int run_again(const arguments& args) {
  auto request = post(path_of(args, "reevaluate"),
                      json{{"executor", args.record.executor}, {"model", args.model}}.dump(
                          -1, ' ', false, json::error_handler_t::replace));
  if (!args.kernel.empty())
    request.query.emplace("kernel", args.kernel);
  const auto text = ask_patiently(args, std::move(request), "asking the model again");
  if (!text)
    return report(text.error(), args.json);
  const auto body = object_of(*text);
  if (args.json)
    print(*text + "\n");
  else
    render_reevaluation(body, terminal_of_stdout(args), args.record.diff);
  const auto drift = part_of(body, "drift");
  const bool same = share_in(drift, "whole", 1) <= 0;
  return args.record.strict && !same ? exit_code::failure : exit_code::ok;
}

// -- the history under other numbers
// ---------------------------------------------------------------

json json_of(const config::tree& t) {
  if (t.kind != config::tree::kind_t::map)
    return t.plain ? json::parse(t.text, nullptr, false) : json(t.text);
  auto object = json::object();
  for (std::size_t i = 0; i < t.keys.size(); ++i)
    object[t.keys[i].text] = json_of(t.items[i]);
  return object;
}

/// The file's numbers; what is wrong with them is named by its line.
result<json> numbers_of(const std::string& path) {
  const auto text = local_ports().files->read(path, limits::config_bytes);
  if (!text)
    return fail(text.error());
  const auto parsed = adapters::parse_yaml(path, *text);
  if (!parsed.findings.empty()) {
    const auto& f = parsed.findings.front();
    return fail(errc::invalid_configuration, f.problem, f.where(), f.expected);
  }
  if (!parsed.value)
    return fail(errc::invalid_configuration, "the file is empty", path,
                "the first key is one of: planner, learning, stages, memory");
  if (auto numbers = skills::read_policy_numbers(*parsed.value, path); !numbers)
    return fail(std::move(numbers.error()));
  return json_of(*parsed.value);
}

void render_differences(const json& body, const terminal& t) {
  table rows({"TEXT OR AGENT", "WHAT", "NOW", "WITH THE FILE"});
  for (const auto& d : rows_of(body, "differences"))
    rows.add({one_line(text_of(d, "path"), 40), text_of(d, "what"), text_of(d, "now"),
              text_of(d, "then")});
  print(rows.rows() > 0 ? rows.render(t)
                        : "no differences in " + text_of(body, "facts") + " facts\n");
  if (const auto lost = text_of(body, "left_out"); !lost.empty() && lost != "0")
    print("lines of the log left out, for they cannot be read or believed: " + lost + "\n");
}

int replay_policy(const arguments& args) {
  const auto path = std::filesystem::absolute(args.policy).string();
  const auto numbers = numbers_of(path);
  if (!numbers)
    return report(numbers.error(), args.json);
  const json body{{"policy", *numbers}, {"since", args.since}};
  const auto text =
      ask_patiently(args, post("/api/v1/memory/policy/replay", body.dump()), "reading the history");
  if (!text)
    return report(text.error(), args.json);
  if (args.json)
    print(*text + "\n");
  else
    render_differences(object_of(*text), terminal_of_stdout(args));
  return exit_code::ok;
}

} // namespace

int run_explain(const arguments& args) {
  const auto& o = args.record;
  const auto request = get(path_of(args, "explain"), {{"kernel", args.kernel},
                                                      {"context", yes_or_no(o.context)},
                                                      {"lifecycle", yes_or_no(o.lifecycle)},
                                                      {"facts", yes_or_no(o.facts)},
                                                      {"graph", yes_or_no(o.graph)}});
  return ask_and_print(args, request, [](const json& body, const terminal& t) {
    const auto text = text_of(body, "markdown");
    if (flag_in(body, "removed"))
      print_note("the agent " + agent_of(body) + " is no longer configured in boyd.yaml (when it " +
                 "ran last: boyd why " + shell_word(text_of(body, "agent_id")) + ")");
    if (!t.is_tty)
      return print(text);
    print(page_on_screen(printable(text), t));
  });
}

int run_replay(const arguments& args) {
  if (!args.policy.empty())
    return replay_policy(args);
  if (args.id.empty())
    return report({errc::invalid_argument, "no run given", "replay",
                   "boyd replay last, or boyd replay --policy FILE"},
                  args.json);
  if (args.record.reevaluate)
    return run_again(args);
  const bool wants_texts = args.record.prompt || args.json;
  auto answer = ask_once(args, get(path_of(args, "replay"),
                                   {{"kernel", args.kernel}, {"texts", yes_or_no(wants_texts)}}));
  if (!answer)
    return report(answer.error(), args.json);
  const auto body = object_of(*answer);
  if (args.json)
    print(*answer + "\n");
  else if (args.record.prompt)
    return print_prompt(args, body);
  else
    render_replay(body, terminal_of_stdout(args), args);
  return args.record.strict && !flag_in(body, "holds") ? exit_code::failure : exit_code::ok;
}

} // namespace boyd::app
