#include "boyd/config/redact.hpp"
#include "boyd/exec/output_keeper.hpp"
#include "boyd/exec/redact_outcome.hpp"
#include "support/pch.hpp"

namespace boyd::redact_outcome_test {

using namespace boyd;
using namespace boyd::exec;

namespace {

const std::vector<std::string> secrets{"secret-of-length", "other-one"};

} // namespace

TEST_CASE("an outcome is told without its secrets") {
  run_outcome o;
  o.summary = "with secret-of-length, secret-of";
  o.output = "other-one\nand postgres://u:pw@db/x, other-";
  o.error = "exec ./secret-of-length: No such file";
  o.usage_json = R"({"wall_ms":5})";
  const auto told = without_secrets(o, secrets);
  CHECK(told.summary == "with [redacted], [redacted]");
  // Nothing was cut off there.
  CHECK(told.output == "[redacted]\nand postgres://u:[redacted]@db/x, other-");
  CHECK(told.error == "exec ./[redacted]: No such file");
  CHECK(told.usage_json == o.usage_json);
  CHECK(without_secrets(told, secrets) == told);
}

TEST_CASE("usage stays JSON when its names are redacted") {
  run_outcome o;
  o.usage_json = R"({"denials":["secret-of-length"],"model":"http://a:","session_id":"b@c"})";
  CHECK(without_secrets(o, secrets).usage_json ==
        R"({"denials":["[redacted]"],"model":"http://a:","session_id":"b@c"})");
  for (const std::string_view usage :
       {R"({"denials":["other-one"]})", R"({"model":"other-one"})", R"({"model": "other-one"})",
        "{\"model\"\n:\t\"other-one\"}", R"({"a":{"b":1,"c":"other-one"}})", R"(["other-one"])"}) {
    INFO(usage);
    o.usage_json = usage;
    const auto told = without_secrets(o, secrets).usage_json;
    CHECK(told.find("other-one") == std::string::npos);
    CHECK(told.find("[redacted]") != std::string::npos);
  }
  o.usage_json = "no JSON";
  CHECK(without_secrets(o, secrets).usage_json == "no JSON");
}

TEST_CASE("no part of a secret is left where output was cut") {
  for (std::size_t before = 0; before < 40; ++before) {
    output_keeper keeper(64);
    keeper.append(std::string(before, '.'));
    for (int i = 0; i < 20; ++i)
      keeper.append(secrets[0]);
    const auto v = keeper.render(64);
    REQUIRE(v.cut > 0);
    run_outcome o;
    o.output = v.text;
    o.output_cut = v.cut;
    const auto told = without_secrets(o, secrets).output;
    INFO(told);
    CHECK(told.find("bytes not kept") != std::string::npos);
    for (std::size_t at = 0; at + 4 <= secrets[0].size(); ++at)
      CHECK(told.find(secrets[0].substr(at, 4)) == std::string::npos);
  }
}

TEST_CASE("a cut text keeps what is no part of a secret") {
  CHECK(config::redact_cut_end("all is well, sec", secrets) == "all is well, sec");
  CHECK(config::redact_cut_end("all is well, secr", secrets) == "all is well, [redacted]");
  CHECK(config::redact_cut_begin("ngth of it", secrets) == "[redacted] of it");
  CHECK(config::redact_cut_begin("gth of it", secrets) == "gth of it");
  CHECK(config::redact_cut_end("", {}).empty());
}

} // namespace boyd::redact_outcome_test
