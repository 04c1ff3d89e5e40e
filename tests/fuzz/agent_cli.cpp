#include "boyd/core/text.hpp"
#include "boyd/exec/told_tools.hpp"
#include "fuzz/target.hpp"

#include <algorithm>

namespace boyd::fuzz {
namespace {

/// An adapter that uses every word of the language.
config::cli_adapter adapter_with(config::cli_adapter::parser_t parser) {
  config::cli_adapter out;
  out.parser = parser;
  config::adapter_event any;
  any.session = {"/session_id", "/thread_id", "/sessionID"};
  any.text = {"/result", "/item/text", "/part/text", "/content", "/message/content/0/text"};
  any.append = true;
  any.cost = {"/total_cost_usd", "/part/cost"};
  any.turns = {"/num_turns"};
  any.input = {"/usage/input_tokens", "/usage/cache_read_input_tokens", "/part/tokens/input"};
  any.output = {"/usage/output_tokens"};
  any.add = true;
  any.denials = {"/permission_denials", "/rejected"};
  any.denial = "/tool_name";
  any.error = {"/error/message", "/message", ""};
  any.tool = config::adapter_tool{};
  any.tool->at = "/message/content";
  any.tool->failed = {{"/is_error", {"true"}, {}}};
  any.tool->id = {"/id", "/tool_use_id"};
  any.tool->name = {"/name"};
  any.tool->path = {"/input/file_path", "/input"};
  any.tool->command = {"/input/command"};
  any.tool->url = {"/input/url"};
  any.tool->result = {"/content"};
  config::adapter_event end;
  end.when = {{"/type", {"\"result\"", "\"turn.completed\"", "\"done\""}, {}}};
  end.final = true;
  config::adapter_event bad;
  bad.when = {{"/is_error", {"true"}, {}}};
  bad.failed = true;
  config::adapter_event part;
  part.when = {{"/error/message", {}, "401"}};
  part.failure = "environment";
  part.clears_text = true;
  out.events = {any, end, bad, part};
  return out;
}

exec::cli_reader read(const config::cli_adapter& adapter, std::string_view input,
                      std::size_t step) {
  exec::cli_reader reader(adapter);
  for (; !input.empty(); input.remove_prefix(std::min(step, input.size())))
    reader.append(input.substr(0, step));
  reader.finish();
  return reader;
}

/// What an agent CLI prints: any bytes are read, portions play no part, and what is kept is text.
void run(std::string_view input) {
  using parser_t = config::cli_adapter::parser_t;
  for (const auto parser : {parser_t::jsonl, parser_t::json, parser_t::text}) {
    const auto adapter = adapter_with(parser);
    const auto whole = read(adapter, input, std::max<std::size_t>(1, input.size()));
    const auto bytes = read(adapter, input, 3);
    const auto& r = whole.report();
    require(exec::usage_of(r, "x") == exec::usage_of(bytes.report(), "x") &&
                r.text == bytes.report().text && r.error == bytes.report().error &&
                r.final == bytes.report().final && r.failed == bytes.report().failed,
            "portions play no part");
    require(sanitize_utf8(r.text) == r.text && sanitize_utf8(r.error) == r.error &&
                sanitize_utf8(r.session) == r.session,
            "what is kept is UTF-8");
    require(r.error.find('\n') == std::string::npos, "an error is one line");
    require(r.cost >= 0 && r.turns >= 0 && r.input >= 0 && r.output >= 0, "numbers are counts");
    require(r.denials.size() <= exec::denial_names && r.denials.size() <= r.denied,
            "denials are bounded");
    require(r.tools.size() <= exec::told_tools_kept && r.tool_words <= exec::told_tools_bytes &&
                r.tool_results <= exec::tool_result_bytes,
            "tools are bounded");
    for (const auto& tool : r.tools) {
      const auto read = exec::reading_of(tool, {"/r", "/r", "kernel:k"});
      require(sanitize_utf8(read.call) == read.call && (!tool.failed || read.citables.empty()),
              "what failed cannot be cited");
    }
  }
}

const registration registered{"agent_cli_output", run};

} // namespace
} // namespace boyd::fuzz
