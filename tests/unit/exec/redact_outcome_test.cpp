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
  o.usage.wall_ms = 5;
  const auto told = without_secrets(o, secrets);
  CHECK(told.summary == "with [redacted], [redacted]");
  // Nothing was cut off there.
  CHECK(told.output == "[redacted]\nand postgres://u:[redacted]@db/x, other-");
  CHECK(told.error == "exec ./[redacted]: No such file");
  CHECK(told.usage == o.usage);
  CHECK(without_secrets(told, secrets) == told);
}

TEST_CASE("each text of a usage is redacted for itself") {
  run_outcome o;
  o.usage.denials = {"secret-of-length", "Bash"};
  o.usage.model = "http://a:";
  o.usage.session_id = "b@c";
  o.usage.ended = "exit code 1: other-one";
  o.usage.provider = o.usage.context = "other-one";
  o.usage.sandbox = sandbox_report{"limits", {}, {"no other-one"}};
  const auto told = without_secrets(o, secrets).usage;
  CHECK(told.denials == std::vector<std::string>{"[redacted]", "Bash"});
  CHECK(told.model == "http://a:");
  CHECK(told.session_id == "b@c");
  CHECK(told.ended == "exit code 1: [redacted]");
  CHECK(told.provider == "[redacted]");
  CHECK(told.context == "[redacted]");
  CHECK(told.sandbox->lacking == std::vector<std::string>{"no [redacted]"});
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
    CHECK(told.find("bytes not stored") != std::string::npos);
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
