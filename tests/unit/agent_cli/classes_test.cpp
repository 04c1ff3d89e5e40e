#include "attempt_bench.hpp"
#include "support.hpp"

#include <nlohmann/json.hpp>

/// Ends of the real programs, as they were recorded: their classes and their denials.
namespace boyd::agent_cli_classes_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;
using f = failure_class;
using nlohmann::json;

namespace {

std::string gemini_error(const std::string& message) {
  return json{{"type", "result"},
              {"status", "error"},
              {"error", {{"type", "unknown"}, {"message", message}}}}
             .dump() +
         "\n";
}

std::string codex_error(const std::string& message) {
  return json{{"type", "turn.failed"}, {"error", {{"message", message}}}}.dump() + "\n";
}

std::string opencode_error(int status, bool retryable = false) {
  return json{{"type", "error"},
              {"error",
               {{"name", "APIError"},
                {"data",
                 {{"message", "said by the service"},
                  {"statusCode", status},
                  {"isRetryable", retryable}}}}}}
             .dump() +
         "\n";
}

run_outcome ended(const std::string& adapter, const std::string& out, int code,
                  const std::string& err = {}, bool denials_fail = true) {
  attempt_bench b(adapter, denials_fail);
  b.print(out);
  b.complain(err);
  return b.exit(code);
}

const std::string codex_done =
    R"({"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Done."}})"
    "\n"
    R"({"type":"turn.completed","usage":{"input_tokens":2,"output_tokens":2}})"
    "\n";
const std::string gemini_done =
    R"({"type":"message","role":"assistant","content":"Done.","delta":true})"
    "\n"
    R"({"type":"result","status":"success","stats":{"input_tokens":20,"output_tokens":4}})"
    "\n";

} // namespace

TEST_CASE("case W8: gemini's exit code is the end of a status of HTTP", "[agent_cli]") {
  for (const auto& [status, failure] : std::vector<std::pair<int, f>>{{429, f::transient},
                                                                      {500, f::transient},
                                                                      {502, f::transient},
                                                                      {503, f::transient},
                                                                      {504, f::transient},
                                                                      {408, f::transient},
                                                                      {529, f::transient},
                                                                      {401, f::environment},
                                                                      {403, f::environment},
                                                                      {404, f::environment},
                                                                      {400, f::deterministic}}) {
    INFO(status);
    const auto error = gemini_error("[API Error: it says no]");
    CHECK(ended("gemini", error, status & 255).failure == failure);
  }
  CHECK(ended("gemini",
              gemini_error("[API Error: Resource has been exhausted (e.g. check quota).]\n"
                           "Please wait and try again later."),
              429 & 255)
            .failure == f::transient);
  for (const auto* const cut :
       {"[API Error: terminated]", "[API Error: fetch failed]", "[API Error: read ECONNRESET]",
        "[API Error: other side closed: socket]"}) {
    INFO(cut);
    CHECK(ended("gemini", gemini_error(cut), 1).failure == f::transient);
  }
  CHECK(ended("gemini", gemini_error("[API Error: odd]"), 1).failure == f::deterministic);
  CHECK(ended("gemini", {}, 55, "Gemini CLI is not running in a trusted directory.\n").failure ==
        f::environment);
}

TEST_CASE("case W8: opencode tells the status", "[agent_cli]") {
  for (const int status : {401, 402, 403, 404})
    CHECK(ended("opencode", opencode_error(status), 1).failure == f::environment);
  for (const int status : {408, 429, 500, 503, 529})
    CHECK(ended("opencode", opencode_error(status), 1).failure == f::transient);
  CHECK(ended("opencode", opencode_error(400), 1).failure == f::deterministic);
  CHECK(ended("opencode", opencode_error(400, true), 1).failure == f::transient);
  CHECK(ended("opencode",
              R"({"type":"error","error":{"name":"ProviderAuthError","data":{"message":"no key"}}})"
              "\n",
              1)
            .failure == f::environment);
}

TEST_CASE("case W8: codex's words have the class of their cause", "[agent_cli]") {
  for (const auto& [message, failure] : std::vector<std::pair<std::string, f>>{
           {"Selected model is at capacity. Please try a different model.", f::transient},
           {"Quota exceeded. Check your plan and billing details.", f::environment},
           {"rate limit exceeded: Rate limit reached for gpt-5. Please try again in 28s.",
            f::transient},
           {"You’ve hit your usage limit. Upgrade to Pro or try again at Dec 1st, 2026 12:00 AM.",
            f::transient},
           {"unexpected status 401 Unauthorized: Invalid API key, url: http://x", f::environment},
           {"unexpected status 404 Not Found: no such model", f::environment},
           {"unexpected status 502 Bad Gateway: no", f::transient},
           {"exceeded retry limit, last status: 429 Too Many Requests", f::transient},
           {"stream disconnected before completion", f::transient},
           {"unexpected status 400 Bad Request: no", f::deterministic}}) {
    INFO(message);
    CHECK(ended("codex", codex_error(message), 1).failure == failure);
  }
}

TEST_CASE("case W7: a command that a rule of codex forbids is a denial", "[agent_cli]") {
  const std::string forbidden =
      "2026-11-29T10:45:29Z ERROR codex_core::tools::router: error=exec_command failed: "
      "CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc 'rm -rf x'` rejected: policy forbids "
      "commands starting with `rm`\\\")\" }\n";
  const auto o = ended("codex", codex_done, 0, forbidden + forbidden);
  CHECK(o.failure == f::policy);
  CHECK(o.error == "denied: command (2 times)");
  CHECK(o.usage.denied == 2);
  // Without its line end, and in pieces.
  attempt_bench b("codex");
  b.print(codex_done);
  for (std::size_t i = 0; i + 1 < forbidden.size(); ++i)
    b.complain(forbidden.substr(i, 1));
  CHECK(b.exit(0).failure == f::policy);
  CHECK(is_success(ended("codex", codex_done, 0, forbidden, false))); // denials: report
  CHECK(is_success(ended("codex", codex_done, 0, "WARN: nothing of that kind\n")));
}

TEST_CASE("case W7: a sandbox of codex that fails is a denial", "[agent_cli]") {
  const auto failed = [](const std::string& output) {
    return json{{"type", "item.completed"},
                {"item",
                 {{"type", "command_execution"},
                  {"command", "/bin/bash -lc pwd"},
                  {"aggregated_output", output},
                  {"exit_code", 1},
                  {"status", "failed"}}}}
               .dump() +
           "\n";
  };
  const auto o = ended(
      "codex",
      failed("bwrap: execvp codex-linux-sandbox: No such file or directory\n") + codex_done, 0);
  CHECK(o.failure == f::policy);
  CHECK(ended("codex", failed("bwrap: No permissions to create new namespace") + codex_done, 0)
            .failure == f::policy);
  // A command that fails on its own is the agent's business.
  CHECK(is_success(ended("codex", failed("make: *** [all] Error 1\n") + codex_done, 0)));
}

TEST_CASE("case W7: a tool that gemini does not have is a denial", "[agent_cli]") {
  const auto result = [](const std::string& type, const std::string& message) {
    return json{{"type", "tool_result"},
                {"status", "error"},
                {"error", {{"type", type}, {"message", message}}}}
               .dump() +
           "\n";
  };
  const auto o =
      ended("gemini", result("tool_not_registered", "Tool \"x\" not found.") + gemini_done, 0);
  CHECK(o.failure == f::policy);
  CHECK(o.usage.denials == std::vector<std::string>{"tool_not_registered"});
  CHECK(ended("gemini",
              result("invalid_tool_params", "Path not in workspace: Attempted path \"/etc/zz\"") +
                  gemini_done,
              0)
            .failure == f::policy);
  CHECK(
      is_success(ended("gemini", result("invalid_tool_params", "no such file") + gemini_done, 0)));
}

TEST_CASE("case W3: a reader knows whether figures were told, and what moved on", "[agent_cli]") {
  const auto& claude = built_in("claude").adapter;
  const auto told =
      read_all(claude, R"({"type":"result","is_error":true,"result":"x",)"
                       R"("total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}})"
                       "\n");
  CHECK(told.told_figures);
  CHECK(told.input == 0);
  const auto stalled = read_all(claude, R"({"type":"system","subtype":"init","session_id":"s"})"
                                        "\n"
                                        R"({"type":"system","subtype":"api_retry","error":"e"})"
                                        "\n");
  CHECK_FALSE(stalled.told_figures);
  CHECK(stalled.moves == 1);
  CHECK(read_all(built_in("codex").adapter,
                 R"({"type":"thread.started","thread_id":"t"})"
                 "\n"
                 R"({"type":"item.completed","item":{"type":"error","message":"m"}})"
                 "\n"
                 R"({"type":"turn.started"})"
                 "\n")
            .moves == 1);
}

} // namespace boyd::agent_cli_classes_test
