#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

#include <csignal>

namespace boyd::doctor_provider_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

/// `boyd doctor --provider` on real endpoints.

namespace {

bool is_probe_of(const model_request& r, const char* field) {
  return r.json.is_object() && r.json.contains(field);
}

/// Can do everything.
model_answer able(const model_request& r) {
  if (r.method == "GET")
    return json_answer({{"data", {{{"id", "test-model"}}}}});
  if (is_probe_of(r, "tools"))
    return tool_answer("c", "note_word", R"({"word":"ok"})");
  if (is_probe_of(r, "response_format"))
    return text_answer(R"({"legs":8})");
  return r.json["stream"] == true ? stream_answer("ok") : text_answer("ok");
}

/// Refuses `field`; to whom a schema is told in words it answers by it.
model_handler without(const char* field) {
  return [field](const model_request& r) {
    if (is_probe_of(r, field))
      return error_answer(400, std::string(field) + " is not supported", "invalid_request_error");
    return r.body.find("JSON Schema") == std::string::npos ? able(r)
                                                           : stream_answer(R"({"mood":"fine"})");
  };
}

std::string yaml_of(const std::string& base_url, const std::string& provider = {},
                    const std::string& agent = {}) {
  return "version: 1\nproviders:\n  - provider_id: local\n    model: test-model\n    base_url: " +
         base_url + "\n" + provider +
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: writer\n"
         "        prompt: Say something.\n"
         "        retry: {max_attempts: 1}\n" +
         (agent.empty() ? "        executor: {type: chat, provider: local}\n" : agent);
}

const char* by_schema = "        executor:\n"
                        "          {type: chat, provider: local,\n"
                        "           schema: {type: object, required: [mood]}}\n";

json check_of(const json& probe, const std::string& name) {
  for (const auto& c : probe["checks"])
    if (c["name"] == name)
      return c;
  return {};
}

} // namespace

TEST_CASE("doctor --provider: what works is found by calls, and counted", "[e2e][doctor]") {
  model_endpoint endpoint(able);
  const home_of_boyd home(
      yaml_of(endpoint.base_url(), "    prices: {\"*\": {input: 0, output: 1000}}\n"));
  const auto all = home.run({"doctor", "--providers", "--json"});
  INFO(all.out << all.err);
  CHECK(all.code == 0);
  CHECK(all.json()["schema"] == "boyd.probes/1");
  REQUIRE(all.json()["providers"].size() == 1);
  const auto probe = all.json()["providers"][0];
  CHECK(probe["schema"] == "boyd.probe/1");
  REQUIRE(probe["checks"].size() == 6);
  for (const auto& c : probe["checks"])
    CHECK(c["state"] == "works");
  CHECK(probe["capabilities"]["tools"] ==
        json{{"configured", true}, {"said", false}, {"found", true}});
  CHECK(probe["tokens"] == 4 * 18);
  CHECK(endpoint.requests_count() == 5);
  const auto cost = home.run({"cost", "--json"}).json();
  REQUIRE(cost["items"].size() == 1);
  CHECK(cost["items"][0]["key"] == "boyd/doctor");
  CHECK(cost["items"][0]["calls"] == 4);
  CHECK(cost["items"][0]["open_calls"] == 0);
  CHECK(cost["items"][0]["cost"] == probe["cost"]);
  const auto text = home.run({"doctor", "--provider", "local"});
  CHECK_THAT(text.out, Contains("local: test-model at " + endpoint.base_url()) &&
                           Contains("the tool was called"));
}

TEST_CASE("doctor --provider: runs use what was found, unless the configuration says otherwise",
          "[e2e][doctor]") {
  model_endpoint endpoint(without("response_format"));
  const home_of_boyd home(yaml_of(endpoint.base_url(), {}, by_schema));
  CHECK(home.run({"cycle"}).code != 0);
  program node(home.node());
  REQUIRE(node.wait_for_stderr("ready: node "));
  const auto probe = home.run({"doctor", "--provider", "local"});
  INFO(probe.err);
  CHECK(probe.code == 0);
  CHECK_THAT(probe.out, Contains("response_format is not supported") && Contains("from now on"));
  CHECK(home.run({"cycle"}).code == 0);
  node.signal(SIGTERM);
  CHECK(node.finish().code == 0);
  CHECK_FALSE(endpoint.requests().back().json.contains("response_format"));
  home.write_configuration(
      yaml_of(endpoint.base_url(), "    capabilities: {schema: true}\n", by_schema));
  CHECK(home.run({"cycle"}).code != 0);
  CHECK(endpoint.requests().back().json.contains("response_format"));
  CHECK_THAT(home.run({"doctor", "--provider", "local"}).out,
             Contains("capabilities: {schema: false}"));
}

TEST_CASE("doctor --provider: an agent with tools does not run without them", "[e2e][doctor]") {
  model_endpoint endpoint(without("tools"));
  const home_of_boyd home(yaml_of(endpoint.base_url(), {},
                                  "        executor: {type: chat, provider: local}\n"
                                  "        tools: [read_file]\n"));
  REQUIRE(home.run({"doctor", "--provider", "local"}).code == 0);
  const auto asked = endpoint.requests_count();
  CHECK(home.run({"cycle"}).code != 0);
  CHECK(endpoint.requests_count() == asked);
  CHECK_THAT(home.run({"status"}).out,
             Contains("does not support tools (according to boyd doctor)"));
}

TEST_CASE("doctor --provider: what is wrong is said in words, and no key with it",
          "[e2e][doctor]") {
  model_endpoint endpoint([](const model_request&) {
    return error_answer(401, "Incorrect API key provided: canary-key-4712", "invalid_api_key");
  });
  const home_of_boyd home(yaml_of(endpoint.base_url(), "    api_key_file: key.txt\n"));
  write_file(home.file("key.txt"), "\n  canary-key-4712  \n# of March\n");
  const auto refused = home.run({"doctor", "--provider", "local"});
  CHECK(refused.code == 1);
  CHECK(endpoint.requests().at(0).header("authorization") == "Bearer canary-key-4712");
  CHECK_THAT(refused.out, Contains("the key is wrong") && Contains("[redacted]"));
  CHECK_THAT(refused.out + refused.err, !Contains("canary-key-4712"));
  write_file(home.file("key.txt"), "");
  std::filesystem::remove(home.file("key.txt"));
  CHECK_THAT(home.run({"doctor", "--provider", "local"}).err, Contains("cannot read the API key"));

  home.write_configuration(yaml_of(endpoint.base_url()));
  CHECK_THAT(home.run({"doctor", "--provider", "local"}).out, Contains("no key is configured"));
  endpoint.handle_with([](const model_request&) { return error_answer(404, "not here", ""); });
  CHECK_THAT(home.run({"doctor", "--provider", "local"}).out, Contains("it usually ends with /v1"));

  home.write_configuration(yaml_of("http://127.0.0.1:1/v1"));
  const auto nobody = home.run({"doctor", "--provider", "local", "--json"});
  CHECK(nobody.code == 1);
  const auto probe = nobody.json()["providers"][0];
  CHECK(probe["ok"] == false);
  CHECK_THAT(check_of(probe, "models")["next"].get<std::string>(),
             Contains("check that the server is running"));
  CHECK(check_of(probe, "schema")["state"] == "skipped");

  CHECK_THAT(home.run({"doctor", "--provider", "lokal"}).err, Contains("did you mean local?"));
  CHECK(home.run({"doctor", "--providers", "--provider", "local"}).code == 2);
  CHECK(home.run({"doctor", "--model", "m"}).code == 2);
}

} // namespace boyd::doctor_provider_test
