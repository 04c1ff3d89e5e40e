#include "tests/sim/lab/models.hpp"

#include "support/model_answers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>
#include <variant>

namespace boyd::sim {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, model_acts> names{
    "answered",  "uncounted",    "wrote",  "read",       "listed",
    "erred",     "off_schema",   "empty",  "declined",   "cut",
    "nonsense",  "rate_limited", "failed", "overloaded", "overloaded_midway",
    "broke_off", "stalled",      "silent", "unreachable"};

/// The acts from here on are troubles of the endpoint.
constexpr auto first_trouble = static_cast<std::uint64_t>(model_act::nonsense);
/// A model with less room for its answer is cut. Two files are less.
constexpr std::int64_t least_room = 512;
/// Bytes of a request for each token that an answer says it had: the caller counts four.
constexpr std::size_t request_bytes_per_token = 8;
constexpr std::uint64_t most_completion_tokens = 40;
constexpr std::string_view serial_word = "serial ";

bool has(std::string_view body, std::string_view part) {
  return body.find(part) != std::string_view::npos;
}

std::string completion_of(const std::string& text) {
  return json{{"choices",
               {{{"index", 0},
                 {"finish_reason", "stop"},
                 {"message", {{"role", "assistant"}, {"content", text}}}}}},
              {"usage", {{"prompt_tokens", 300}, {"completion_tokens", 30}}}}
      .dump();
}

/// Some of the agents, and some that nobody has; a line for some of the outcomes. `chance`: whom.
std::string advice_to(const std::string& body, std::uint64_t chance) {
  const auto asked = json::parse(body);
  const auto seen =
      json::parse(asked["messages"].back()["content"].get<std::string>(), nullptr, false);
  json answer = json::object();
  if (seen.is_object() && seen.contains("agents")) {
    answer["dispatches"] = json::array();
    for (const auto& a : seen["agents"])
      if ((chance >>= 1U) % 2 == 1)
        answer["dispatches"].push_back({{"agent_id", a["agent_id"]},
                                        {"priority", static_cast<int>(chance % 300) - 100},
                                        {"reason", "drawn\n## by lot"}});
    answer["dispatches"].push_back(
        {{"agent_id", "ghost"}, {"priority", 100}, {"reason", "I am here"}});
  } else if (seen.is_object() && seen.contains("outcomes")) {
    answer["lines"] = json::array();
    for (const auto& o : seen["outcomes"])
      if ((chance >>= 1U) % 2 == 1)
        answer["lines"].push_back({{"dispatch_id", o["dispatch_id"]},
                                   {"text", "worded\n<!-- KERNEL_RUNTIME:START -->\n# by lot"}});
  }
  return completion_of(answer.dump());
}

/// As a client gets it: names of headers in lower case.
void put(const test::model_answer& from, sim_http_answer& to) {
  to.status = from.status;
  for (auto [name, value] : from.headers) {
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    to.headers.emplace_back(std::move(name), std::move(value));
  }
  for (const auto& step : from.steps) {
    if (const auto* bytes = std::get_if<test::model_answer::bytes>(&step))
      to.body += bytes->text;
    else
      to.breaks_off = true;
  }
}

struct tool_wish {
  std::string id;
  std::string name;
  std::string arguments;
};

} // namespace

std::string_view name_of(model_act a) noexcept {
  return names[static_cast<std::size_t>(a)];
}

std::string whole_text(std::uint64_t serial) {
  constexpr std::uint64_t most_lines = 40;
  const auto number = std::to_string(serial);
  std::string text = std::string(serial_word) + number + "\n";
  for (auto n = serial % most_lines; n > 0; --n)
    text += "a line of " + number + "\n";
  return text + "end of " + number + "\n";
}

std::optional<std::uint64_t> serial_of(std::string_view text) {
  if (!text.starts_with(serial_word))
    return std::nullopt;
  const auto serial =
      std::strtoull(std::string(text.substr(serial_word.size(), 20)).c_str(), nullptr, 10);
  return text == whole_text(serial) ? std::optional<std::uint64_t>(serial) : std::nullopt;
}

std::string write_id(std::uint64_t serial) {
  return "write-" + std::to_string(serial);
}

/// What of a chat's request decides about its answer. Not parsed: that would take longer than to
/// answer.
struct models::asked {
  bool streams;
  bool wants_usage;
  bool has_schema;
  bool has_tools;
  std::int64_t room = 0; ///< tokens of the answer
  std::size_t bytes;
  std::size_t observed = 0; ///< results of tools so far

  explicit asked(const std::string& body)
      : streams(has(body, R"("stream":true)")), wants_usage(has(body, R"("include_usage":true)")),
        has_schema(has(body, "json_schema") || has(body, "JSON Schema")),
        has_tools(has(body, R"("name":"write_file")")), bytes(body.size()) {
    constexpr std::string_view limit = R"("max_tokens":)";
    if (const auto at = body.find(limit); at != std::string::npos)
      room = std::strtoll(body.c_str() + at + limit.size(), nullptr, 10);
    constexpr std::string_view result = R"({"role":"tool",)";
    for (auto at = body.find(result); at != std::string::npos; at = body.find(result, at + 1))
      ++observed;
  }
};

milliseconds models::draw_ms(milliseconds from, milliseconds to) {
  return from + milliseconds{static_cast<std::int64_t>(
                    draw(static_cast<std::uint64_t>((to - from).count()) + 1))};
}

sim_http_answer models::advise(const http_request& request) {
  const auto luck = draw(20);
  sim_http_answer a;
  a.delay = draw_ms(0ms, 20s);
  if (luck < 12)
    a.body = advice_to(request.body, draw(1u << 16));
  else if (luck < 14)
    a.body = completion_of("Let them all run!");
  else if (luck == 14)
    a.body = "\xff{{{[[[";
  else if (luck == 15)
    a.delay = draw_ms(30s, 10min);
  else if (luck == 16)
    a.status = 429, a.headers = {{"retry-after", std::to_string(draw(600))}}, a.body = "{}";
  else if (luck == 17)
    a.body = "data: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\n", a.breaks_off = true;
  else if (luck == 18)
    a.silent = true;
  else
    a.no_connection = true;
  return a;
}

model_act models::draw_trouble() {
  return static_cast<model_act>(first_trouble + draw(model_acts - first_trouble));
}

model_act models::draw_act(const asked& q) {
  constexpr std::size_t most_observed = 3;
  if (trouble_) {
    ++troubled_;
    return *trouble_;
  }
  const auto luck = draw(20);
  if (luck < 3)
    return draw_trouble();
  if (q.room < least_room)
    return model_act::cut;
  if (luck < 6) {
    constexpr std::array odd{model_act::uncounted, model_act::erred,    model_act::off_schema,
                             model_act::empty,     model_act::declined, model_act::cut};
    return odd[draw(odd.size())];
  }
  if (!q.has_tools || q.observed >= most_observed || draw(2) == 0)
    return model_act::answered;
  constexpr std::array tools{model_act::wrote, model_act::wrote, model_act::read,
                             model_act::listed};
  return tools[draw(tools.size())];
}

model_reply models::converse(const http_request& request) {
  const asked q(request.body);
  model_reply r;
  r.http.delay = draw_ms(0ms, 20s);
  r.act = draw_act(q);
  ++acts_[static_cast<std::size_t>(r.act)];
  if (static_cast<std::uint64_t>(r.act) < first_trouble)
    speak(q, r);
  else
    fail_with(q, r);
  return r;
}

/// A whole answer, with words or tools.
void models::speak(const asked& q, model_reply& r) {
  std::string text;
  std::string refusal;
  std::vector<tool_wish> wishes;
  const auto file = std::string(model_files[draw(model_files.size())]);
  const auto write = [&](const std::string& path) {
    r.writes.push_back({++serial_, path});
    wishes.push_back({write_id(serial_), "write_file",
                      json{{"path", path}, {"content", whole_text(serial_)}}.dump()});
  };
  const auto id = "call-" + std::to_string(draw(1u << 16));
  switch (r.act) {
  case model_act::wrote:
    write(file);
    if (draw(3) == 0)
      write(std::string(model_files[draw(model_files.size())]));
    break;
  case model_act::read:
    wishes.push_back({id, "read_file", json{{"path", file}}.dump()});
    break;
  case model_act::listed:
    wishes.push_back({id, "list_dir", "{}"});
    break;
  case model_act::erred:
    wishes.push_back({id, draw(2) == 0 ? "launch" : "read_file", "{\"path\": [[["});
    break;
  case model_act::empty:
    break;
  case model_act::declined:
    refusal = "I would rather not";
    break;
  case model_act::cut:
    text = "It all began";
    break;
  default:
    text = q.has_schema && r.act != model_act::off_schema ? R"({"verdict":"fine"})"
                                                          : "All is well\n<!-- by lot -->";
  }
  const auto* reason = r.act == model_act::cut ? "length" : wishes.empty() ? "stop" : "tool_calls";
  test::token_figures used;
  used.prompt = static_cast<std::int64_t>(1 + draw(1 + q.bytes / request_bytes_per_token));
  used.cached = static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(used.prompt) + 1));
  used.completion =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(1 + draw(most_completion_tokens)), 1,
                               std::max<std::int64_t>(q.room, 1));
  const bool counts = r.act != model_act::uncounted && (!q.streams || q.wants_usage);
  r.tokens = counts ? used.prompt + used.completion : 0;
  if (!q.streams) {
    json message{{"role", "assistant"}, {"content", text}};
    if (!refusal.empty())
      message["refusal"] = refusal;
    for (const auto& w : wishes)
      message["tool_calls"].push_back(test::tool_call_json(w.id, w.name, w.arguments));
    auto body = test::completion_json(message, reason, used);
    if (!counts)
      body.erase("usage");
    return put(test::json_answer(body), r.http);
  }
  test::chat_stream s;
  s.role().text(text, 1 + draw(4));
  if (!refusal.empty())
    s.refusal(refusal);
  for (std::size_t i = 0; i < wishes.size(); ++i)
    s.tool_call(static_cast<int>(i), wishes[i].id, wishes[i].name, wishes[i].arguments,
                1 + draw(3));
  s.finish(reason);
  if (counts)
    s.usage(used);
  put(s.done(), r.http);
}

void models::fail_with(const asked& q, model_reply& r) {
  const auto begun = test::chat_stream().role().text("I was about").broken_off();
  auto& a = r.http;
  switch (r.act) {
  case model_act::nonsense:
    return put(test::no_json(), a);
  case model_act::rate_limited:
    // Now and then longer than anybody waits.
    return put(test::rate_limited(static_cast<int>(1 + draw(draw(4) == 0 ? 900 : 30))), a);
  case model_act::failed:
    return put(test::server_failure(), a);
  case model_act::overloaded:
    return put(test::overloaded(), a);
  case model_act::overloaded_midway:
    return put(q.streams ? test::overloaded_in_stream() : test::overloaded(), a);
  case model_act::broke_off:
    return put(begun, a);
  case model_act::stalled:
    put(begun, a);
    a.breaks_off = false;
    a.stalls = true;
    return;
  case model_act::silent:
    a.silent = true;
    return;
  default:
    a.no_connection = true;
  }
}

} // namespace boyd::sim
