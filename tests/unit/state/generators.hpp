#pragma once

#include "boyd/state/runtime_block.hpp"

#include <rapidcheck.h>

#include <string>
#include <vector>

namespace boyd::state::test {

/// Text of pieces that are likely to confuse a reader: separators, escapes, markers, line breaks.
inline rc::Gen<std::string> nasty_text(std::size_t max_pieces) {
  const auto piece = rc::gen::elementOf(std::vector<std::string>{"a",
                                                                 "ok",
                                                                 " ",
                                                                 "  ",
                                                                 "|",
                                                                 " | ",
                                                                 "\\",
                                                                 "\\n",
                                                                 "\n",
                                                                 "\r\n",
                                                                 "\t",
                                                                 ";",
                                                                 "; ",
                                                                 ": ",
                                                                 "[",
                                                                 "]: ",
                                                                 ",",
                                                                 "(none)",
                                                                 "<!--",
                                                                 "-->",
                                                                 "ü",
                                                                 "日本",
                                                                 "😀",
                                                                 "\x01",
                                                                 "\x7f",
                                                                 "#",
                                                                 "`",
                                                                 "x41",
                                                                 "\\x41",
                                                                 "## kernel_runtime",
                                                                 "<!-- KERNEL_RUNTIME:END -->",
                                                                 "timeout",
                                                                 "-",
                                                                 "|-"});
  return rc::gen::map(rc::gen::resize(static_cast<int>(max_pieces),
                                      rc::gen::container<std::vector<std::string>>(piece)),
                      [max_pieces](std::vector<std::string> pieces) {
                        pieces.resize(std::min(pieces.size(), max_pieces));
                        std::string text;
                        for (const auto& each : pieces) {
                          text += each;
                        }
                        return text;
                      });
}

inline rc::Gen<utc_time> some_time() {
  // 1970 to 2100, in milliseconds.
  return rc::gen::map(rc::gen::inRange<std::int64_t>(0, 4'102'444'800'000), from_unix_ms);
}

inline std::vector<agent_result> some_agents(int at_most, std::size_t pieces) {
  std::vector<agent_result> agents(*rc::gen::inRange<std::size_t>(0, std::size_t(at_most) + 1));
  for (auto& agent : agents) {
    agent.agent_id = *rc::gen::oneOf(rc::gen::just(std::string("agent-a")), nasty_text(2));
    agent.status = *rc::gen::elementOf(std::vector<std::string>{"done", "failed", "running", ""});
    agent.summary = *nasty_text(pieces);
  }
  return agents;
}

inline cycle_record some_cycle(int agents, std::size_t pieces) {
  cycle_record cycle;
  cycle.cycle_id = *rc::gen::oneOf(rc::gen::just(std::string("abc123")), nasty_text(3));
  cycle.kernel_id = "default";
  cycle.status = *rc::gen::elementOf(std::vector<cycle_status>{
      cycle_status::running, cycle_status::success, cycle_status::partial_success,
      cycle_status::failed, cycle_status::error});
  cycle.dispatched = *rc::gen::arbitrary<int>();
  cycle.succeeded = *rc::gen::inRange(0, 100);
  cycle.failed = *rc::gen::inRange(0, 100);
  cycle.failed_agents =
      *rc::gen::resize(3, rc::gen::container<std::vector<std::string>>(nasty_text(2)));
  std::erase(cycle.failed_agents, ""); // an agent has a name
  cycle.agents = some_agents(agents, pieces);
  cycle.duration_ms = *rc::gen::arbitrary<std::int64_t>();
  cycle.error = *nasty_text(6);
  cycle.started_at = *some_time();
  cycle.finished_at = *rc::gen::oneOf(rc::gen::just(std::optional<utc_time>()),
                                      rc::gen::cast<std::optional<utc_time>>(some_time()));
  return cycle;
}

/// A block within the limits: no value is so long that it is cut.
inline runtime_block some_block() {
  runtime_block block;
  block.updated_at = *some_time();
  block.latest = some_cycle(4, 3);
  const auto rows = *rc::gen::inRange(0, 7);
  for (int i = 0; i < rows; ++i) {
    block.history.push_back(some_cycle(1, 2));
  }
  return block;
}

} // namespace boyd::state::test
