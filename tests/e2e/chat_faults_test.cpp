#include "boyd/core/time.hpp"
#include "chat_home.hpp"
#include "support/telling.hpp"

namespace boyd::chat_faults_test {

using namespace boyd::test;
using namespace boyd::test::chat_homes;
using Catch::Matchers::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct bad_answer {
  const char* name;
  model_answer (*make)();
  const char* said;      ///< in the dispatch's error
  const char* execution; ///< how the attempt ended: by what it heard, or by its time
};

const bad_answer bad_answers[]{
    {"garbage", [] { return garbage(); }, "local:", "failed"},
    {"no json", [] { return no_json(); }, "local:", "failed"},
    {"deep json", [] { return deep_json(100'000); }, "nested", "failed"},
    {"huge: a line", [] { return endless_line(); }, "larger", "failed"},
    {"huge: a body", [] { return endless_body(); }, "larger", "failed"},
    {"huge: unpacked", [] { return gzip_bomb(); }, "larger", "failed"},
    {"slow drip", [] { return slow_drip(std::chrono::milliseconds{100}); }, "timed out after 2s",
     "timed_out"},
};

} // namespace

TEST_CASE("case 54 llm-429-500-storm: a storm is waited out as the provider asks", "[e2e][chat]") {
  model_endpoint endpoint;
  endpoint.then(rate_limited_ms(40)).then(server_failure()).then(stream_answer("through"));
  // Room for one call at a time: one that failed must give back what it had reserved.
  const home_of_boyd home(yaml_of(endpoint, "        budget: {day: {tokens: 8300}}\n"));
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK(cycle.code == 0);
  CHECK(endpoint.requests_count() == 3);
  const auto row = last_dispatch(home);
  CHECK(row["attempt"] == 1);
  const auto troubles = events_of(home, row, "trouble");
  REQUIRE(troubles.size() == 2);
  INFO(json(troubles).dump(1));
  // What the provider asked for, and where it says nothing a wait of our own.
  CHECK_THAT(troubles[0].dump(), Contains("again in 40ms"));
  CHECK_THAT(troubles[1].dump(), Contains("again in ") && !Contains("again in 40ms"));
  const auto at = [](const json& line) {
    return boyd::parse_rfc3339(line["at"].get<std::string>()).value();
  };
  const auto waited = at(troubles[1]) - at(troubles[0]);
  CHECK(waited >= std::chrono::milliseconds{40});
  tell_figure("case 54: asked to wait 40 ms, waited " + std::to_string(waited.count()) +
              " ms; 3 calls in " + std::to_string(row["attempt"].get<int>()) +
              " attempt, nothing reserved is left");
  const auto used = home.run({"cost", "--json"}).out;
  CHECK(row["usage"]["calls"] == 3);
  CHECK(row["usage"]["input_tokens"] == 11);
  CHECK(row["usage"]["output_tokens"] == 7);
  CHECK_THAT(used, Contains("default/writer"));
}

TEST_CASE("case 54 llm-429-500-storm: no call goes beyond the budget", "[e2e][chat]") {
  model_endpoint endpoint([](const model_request& r) {
    return r.number % 2 == 0 ? rate_limited_ms(1) : overloaded_in_stream();
  });
  const home_of_boyd home(yaml_of(endpoint,
                                  "        budget: {run: {tokens: 100}}\n"
                                  "        retry: {max_attempts: 1}\n",
                                  "    max_retries: 2\n"));
  home.run({"cycle"});
  const auto asked = endpoint.requests();
  REQUIRE(asked.size() == 3);
  for (const auto& r : asked) {
    INFO(r.body);
    CHECK(r.json["max_tokens"] > 0);
    CHECK(r.json["max_tokens"] < 100);
  }
  CHECK(last_dispatch(home)["status"] == "failed");
}

TEST_CASE("case 53 llm-garbage, deep-json, huge, slow-drip: a failed attempt with "
          "its reason within its time",
          "[e2e][chat]") {
  const auto& bad = GENERATE(from_range(std::begin(bad_answers), std::end(bad_answers)));
  INFO(bad.name);
  model_endpoint endpoint([&bad](const model_request&) { return bad.make(); });
  const home_of_boyd home(yaml_of(endpoint,
                                  "        timeout: 2s\n"
                                  "        retry: {max_attempts: 1}\n",
                                  "    max_retries: 0\n"));
  home.run({"cycle"});
  const auto row = last_dispatch(home);
  INFO(row.dump(1));
  CHECK(row["status"] == "failed");
  CHECK(row["failure_class"] == "transient");
  // An attempt whose time is over says so: every other end came before.
  CHECK(row["execution"] == bad.execution);
  CHECK_THAT(row["error"].get<std::string>(), Contains(bad.said));
}

TEST_CASE("case 53 wrong-charset: an answer in another encoding is a paid answer", "[e2e][chat]") {
  model_endpoint endpoint([](const model_request&) { return wrong_charset(); });
  const home_of_boyd home(yaml_of(endpoint, "", ""));
  home.run({"cycle"});
  const auto row = last_dispatch(home);
  INFO(row.dump(1));
  CHECK(row["status"] == "done");
  CHECK_THAT(row["summary"].get<std::string>(), Contains("\uFFFD"));
}

TEST_CASE("chat: what cannot be recorded is not done", "[e2e][chat]") {
  model_endpoint endpoint;
  const home_of_boyd home(
      yaml_of(endpoint, "        tools: [run_command]\n"
                        "        policy: {rules: [{tool: run_command, command: \"touch *\", "
                        "decision: allow}]}\n"));
  // The record has begun by the time that the model is asked.
  endpoint.handle_with([&](const model_request&) {
    fs::remove_all(home.file("executions"));
    write_file(home.file("executions"), "in the way\n");
    return chat_stream()
        .role()
        .tool_call(0, "a", "run_command", R"({"argv":["touch","effect"]})")
        .finish("tool_calls")
        .done();
  });
  const auto cycle = home.run({"cycle"});
  INFO(cycle.err);
  CHECK(cycle.code != 0);
  CHECK_FALSE(fs::exists(home.file("kernel/default/effect")));
  CHECK(endpoint.requests_count() == 1);
  const auto row = last_dispatch(home);
  CHECK(row["failure_class"] == "environment");
  CHECK_THAT(row["error"].get<std::string>(), Contains("cannot record the decision"));
  CHECK(row["usage"]["calls"] == 1);
}

TEST_CASE("chat: what a command printed and was not kept is said", "[e2e][chat]") {
  model_endpoint endpoint;
  endpoint
      .then(chat_stream()
                .role()
                .tool_call(0, "a", "run_command", R"({"argv":["seq","1","200000"]})")
                .finish("tool_calls")
                .done())
      .then(stream_answer("counted"));
  const home_of_boyd home(
      yaml_of(endpoint, "        tools: [run_command, read_file]\n"
                        "        policy: {rules: [{tool: run_command, command: \"seq *\", "
                        "decision: allow}]}\n"));
  REQUIRE(home.run({"cycle"}).code == 0);
  const auto told = endpoint.requests().at(1).json["messages"].back()["content"];
  const auto text = told.get<std::string>();
  CHECK_THAT(text, Contains("the stored part is in @results/1-1.txt") && !Contains("the whole"));
  // 1,288,895 bytes came, a mebibyte of them is kept.
  CHECK_THAT(text, Contains("240319 more bytes"));
}

} // namespace boyd::chat_faults_test
