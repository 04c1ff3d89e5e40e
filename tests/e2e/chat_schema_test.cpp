#include "program.hpp"
#include "support/model_answers.hpp"
#include "support/pch.hpp"

namespace boyd::chat_schema_test {

using namespace boyd::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// A node whose agents answer by schemas: one in the configuration, one in a file.
std::string yaml_with(const model_endpoint& endpoint) {
  return "version: 1\n"
         "providers: [{provider_id: local, base_url: \"" +
         endpoint.base_url() +
         "\", model: test-model}]\n"
         "kernels:\n"
         "  - kernel_id: default\n"
         "    schedule: \"0 0 1 1 *\"\n"
         "    agents:\n"
         "      - agent_id: writer\n"
         "        prompt: Say something.\n"
         "        executor:\n"
         "          type: chat\n"
         "          provider: local\n"
         "          schema: {type: object, properties: {d: {type: string, pattern: \"^[a-z ]*$\"}, "
         "t: {format: date}}}\n"
         "        retry: {max_attempts: 1}\n"
         "      - agent_id: printer\n"
         "        prompt: Print something.\n"
         "        executor: {type: command, argv: [cat, long.json]}\n"
         "        require: [\"schema s.json\"]\n"
         "        retry: {max_attempts: 1}\n";
}

} // namespace

TEST_CASE("chat: a schema's patterns take an answer of any length, and the node goes on",
          "[e2e][chat]") {
  const std::string letters(400'000, 'a');
  const bool fits = GENERATE(true, false);
  model_endpoint endpoint([&](const model_request&) {
    return stream_answer(fits ? json{{"d", letters}}.dump()
                              : json{{"d", letters + "1"}, {"t", std::string(400'000, '1')}}.dump(),
                         8);
  });
  const home_of_boyd home(yaml_with(endpoint));
  write_file(home.file("kernel/default/s.json"), R"({"properties":{"d":{"pattern":"^(a+)+$"}}})");
  write_file(home.file("kernel/default/long.json"),
             json{{"d", letters + (fits ? "" : "1")}}.dump());
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK((cycle.code == 0) == fits);
  const auto all = home.run({"dispatches", "ls", "--json"}).json();
  REQUIRE(all["items"].size() == 2);
  for (const auto& item : all["items"]) {
    INFO(item.dump());
    CHECK(item["status"] == (fits ? "done" : "failed"));
    const auto row =
        home.run({"dispatches", "show", item["dispatch_id"], "--json"}).json()["dispatch"];
    if (!fits)
      CHECK_THAT(row["error"].get<std::string>(),
                 Contains("does not match the pattern") || Contains("is not a valid date"));
  }
}

} // namespace boyd::chat_schema_test
