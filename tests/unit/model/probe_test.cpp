#include "answers.hpp"
#include "boyd/core/media_type.hpp"
#include "boyd/model/probe.hpp"

#include <functional>

namespace boyd::probe_test {

using namespace boyd;
using namespace boyd::model;
using boyd::model_test::stream;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

struct reply {
  http_head head{200, {{"content-type", "application/json"}}};
  std::string body;
  result<void> transport;
};

using endpoint = std::function<reply(const http_request&, const json&)>;

reply with_status(int status, const std::string& message) {
  return {{status, {}}, json{{"error", {{"message", message}}}}.dump(), {}};
}

reply broken(errc code) {
  return {{}, {}, fail(code, "it did not work", "https://127.0.0.1:1")};
}

reply plain(const json& message) {
  return {{200, {{"content-type", "application/json"}}},
          json{{"model", "m"},
               {"choices", {{{"message", message}, {"finish_reason", "stop"}}}},
               {"usage", {{"prompt_tokens", 5}, {"completion_tokens", 2}}}}
              .dump(),
          {}};
}

reply streamed(bool with_usage) {
  std::vector<std::string> data{
      R"({"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]})"};
  if (with_usage)
    data.emplace_back(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}})");
  return {{200, {{"content-type", "text/event-stream; charset=utf-8"}}}, stream(data), {}};
}

/// Can do everything.
reply able(const http_request& r, const json& body) {
  if (r.method == "GET")
    return {{200, {}}, R"({"data":[{"id":"m"},{"id":"n"}]})", {}};
  if (body.contains("tools"))
    return plain({{"role", "assistant"},
                  {"tool_calls",
                   {{{"id", "c"},
                     {"type", "function"},
                     {"function", {{"name", "note_word"}, {"arguments", "{}"}}}}}}});
  if (body.contains("response_format"))
    return plain({{"role", "assistant"}, {"content", R"({"legs":8})"}});
  return body["stream"] == true ? streamed(true)
                                : plain({{"role", "assistant"}, {"content", "ok"}});
}

config::provider provider_at(const char* url = "http://127.0.0.1:1/v1") {
  config::provider p;
  p.provider_id = "p";
  p.base_url = url;
  return p;
}

/// Asks until all is said; how many calls that took.
std::size_t drive(provider_probe& probe, const endpoint& at) {
  constexpr std::size_t most = 10;
  std::size_t calls = 0;
  while (auto call = probe.next()) {
    REQUIRE(++calls <= most);
    CHECK(call->request.timeout <= 60s);
    CHECK((call->most.output > 0) == (call->request.method == "POST"));
    const auto r = at(call->request, json::parse(call->request.body, nullptr, false));
    probe.finish(r.head, r.body, r.transport, 7ms);
  }
  REQUIRE(probe.checks().size() == 6);
  return calls;
}

const probe_check& check_of(const provider_probe& probe, const std::string& name) {
  for (const auto& c : probe.checks())
    if (c.name == name)
      return c;
  FAIL("no check " << name);
  return probe.checks().front();
}

} // namespace

TEST_CASE("probe: an endpoint that can do everything", "[probe]") {
  provider_probe probe(provider_at(), "m", "key");
  std::vector<http_request> seen;
  CHECK(drive(probe, [&](const http_request& r, const json& b) {
          seen.push_back(r);
          return able(r, b);
        }) == 5);
  for (const auto& c : probe.checks()) {
    INFO(c.name << ": " << c.what);
    CHECK(c.state == probe_state::works);
    CHECK(c.took == 7ms);
    CHECK(c.next.empty());
  }
  CHECK(probe.answers());
  CHECK(probe.found() == found_capabilities{true, true, true, true});
  CHECK(seen[0].url == "http://127.0.0.1:1/v1/models");
  CHECK(json::parse(seen[3].body)["tool_choice"]["function"]["name"] == "note_word");
}

TEST_CASE("field case 03: media types are compared without case") {
  for (const auto* type : {"text/event-stream", "Text/Event-Stream; charset=utf-8",
                           "TEXT/EVENT-STREAM ;charset=utf-8"})
    CHECK(is_media_type(type, "text/event-stream"));
  for (const auto* type : {"", "text/event-stream2", "application/json; text/event-stream"})
    CHECK_FALSE(is_media_type(type, "text/event-stream"));
  provider_probe probe(provider_at(), "m", "key");
  drive(probe, [](const http_request& r, const json& b) {
    auto answer = able(r, b);
    for (auto& [name, value] : answer.head.headers)
      std::ranges::transform(value, value.begin(),
                             [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return answer;
  });
  CHECK(check_of(probe, "stream").state == probe_state::works);
}

TEST_CASE("probe: what is refused is lacking, and the configuration's own word stands", "[probe]") {
  auto p = provider_at();
  p.said.tools = true;
  provider_probe probe(p, "m", {});
  drive(probe, [](const http_request& r, const json& b) {
    if (b.is_object() && (b.contains("tools") || b.contains("stream_options")))
      return with_status(400, "unknown field");
    if (b.is_object() && b.contains("response_format"))
      return plain({{"role", "assistant"}, {"content", "Eight."}});
    return b.is_object() && b["stream"] == true ? streamed(false) : able(r, b);
  });
  CHECK(probe.found() == found_capabilities{false, false, true, false});
  CHECK_THAT(check_of(probe, "tools").next, Contains("capabilities: {tools: false}"));
  CHECK_THAT(check_of(probe, "schema").next, Contains("from now on"));
  auto used = p;
  apply(probe.found(), used);
  CHECK(used.capabilities.tools);
  CHECK_FALSE(used.capabilities.schema);
  CHECK_FALSE(used.capabilities.stream_usage);
}

TEST_CASE("probe: a failure proves nothing", "[probe]") {
  provider_probe probe(provider_at(), "m", {});
  drive(probe, [](const http_request& r, const json& b) {
    const bool new_in_it = b.is_object() && (b.contains("tools") || b.contains("response_format") ||
                                             b["stream"] == true);
    return new_in_it ? with_status(500, "out of memory") : able(r, b);
  });
  CHECK(probe.answers());
  CHECK(probe.found() == found_capabilities{});
  CHECK(check_of(probe, "tools").state == probe_state::failed);
  CHECK(check_of(probe, "stream_usage").state == probe_state::skipped);
}

TEST_CASE("probe: a model that does not call the tool is no finding", "[probe]") {
  provider_probe probe(provider_at(), "m", {});
  drive(probe, [](const http_request& r, const json& b) {
    return b.is_object() && b.contains("tools") ? plain({{"role", "assistant"}, {"content", "ok"}})
                                                : able(r, b);
  });
  CHECK(check_of(probe, "tools").state == probe_state::unclear);
  CHECK_FALSE(probe.found().tools);
}

TEST_CASE("probe: what ends it is said in words, with what to do", "[probe]") {
  struct row {
    reply answer;
    std::string key;
    std::size_t calls;
    std::string check;
    std::string next;
  };
  const auto r = GENERATE(values<row>({
      {broken(errc::io_error), "", 1, "models", "check that the server is running"},
      {broken(errc::timed_out), "", 1, "models", "busy"},
      {broken(errc::refused), "", 1, "models", "certificate"},
      {with_status(401, "no"), "", 2, "chat", "no key is configured"},
      {with_status(401, "no"), "k", 2, "chat", "the key is wrong"},
      {with_status(404, "no"), "", 2, "chat", "base_url of provider p (it usually ends with /v1)"},
      {{{200, {}}, "<html>", {}}, "", 2, "chat", "base_url"},
      {with_status(429, "You exceeded your current quota"), "", 2, "chat", ""},
  }));
  provider_probe probe(provider_at(), "m", r.key);
  CHECK(drive(probe, [&](const http_request&, const json&) { return r.answer; }) == r.calls);
  CHECK_FALSE(probe.answers());
  CHECK(check_of(probe, r.check).state == probe_state::failed);
  CHECK_FALSE(check_of(probe, r.check).what.empty());
  CHECK_THAT(check_of(probe, r.check).next, Contains(r.next));
  CHECK(check_of(probe, "schema").state == probe_state::skipped);
  CHECK(probe.found() == found_capabilities{});
}

TEST_CASE("probe: a redirect is the address's fault, whatever models there are", "[probe]") {
  provider_probe probe(provider_at(), "m", {});
  drive(probe, [](const http_request& r, const json& b) {
    return r.method == "GET" ? able(r, b)
                             : reply{{301, {{"location", "https://127.0.0.1:1/v2"}}}, {}, {}};
  });
  CHECK_THAT(check_of(probe, "chat").next,
             Contains("set base_url of provider p") && !Contains("set model"));
}

TEST_CASE("probe: a model that is not there: those that are", "[probe]") {
  provider_probe probe(provider_at(), "other", {});
  drive(probe, [](const http_request& r, const json& b) {
    return r.method == "GET" ? able(r, b) : with_status(404, "no such model");
  });
  CHECK(check_of(probe, "models").state == probe_state::unclear);
  CHECK_THAT(check_of(probe, "chat").next, Contains("to one of: m, n"));
}

TEST_CASE("probe: a call that cannot be made ends it", "[probe]") {
  provider_probe probe(provider_at(), "m", {});
  drive(probe, [&, first = true](const http_request& r, const json& b) mutable {
    if (std::exchange(first, false))
      return able(r, b);
    probe.stop("no budget", "wait");
    return with_status(500, "never asked");
  });
  CHECK(check_of(probe, "chat").what == "no budget");
  CHECK(probe.checks().back().state == probe_state::skipped);
}

TEST_CASE("probe: what was found is of one address, and garbage is nothing", "[probe]") {
  const found_capabilities found{false, std::nullopt, true, std::nullopt};
  const auto text = to_text(found, "http://a/v1", utc_time{});
  CHECK(found_in(text, "http://a/v1") == found);
  CHECK(found_in(text, "http://b/v1") == found_capabilities{});
  CHECK(found_in("[1", "http://a/v1") == found_capabilities{});
}

} // namespace boyd::probe_test
