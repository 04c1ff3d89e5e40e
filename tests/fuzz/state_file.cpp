#include "boyd/state/document.hpp"
#include "boyd/state/runtime_block.hpp"
#include "fuzz/target.hpp"

namespace boyd::fuzz {
namespace {

const state::runtime_block& new_block() {
  static const auto block = [] {
    state::runtime_block b;
    b.updated_at = utc_time{std::chrono::seconds{1'700'000'000}};
    b.latest.cycle_id = "cycle_20231114T221320Z_00000001";
    b.latest.error = "a | b\nc <!-- KERNEL_RUNTIME:END --> \\";
    b.history = {b.latest};
    return b;
  }();
  return block;
}

/// Any STATE.md takes a new block, its agents' part stays, and the new block is what is read back.
void run(std::string_view input) {
  const auto block = state::render_runtime_block(new_block());
  const auto agents = state::agents_part(input);
  const auto replaced = state::replace_runtime_block(input, block);
  require(state::agents_part(replaced) == agents, "the agents' part stays byte for byte");
  require(state::replace_runtime_block(replaced, block) == replaced, "replacing is idempotent");

  const auto read = state::parse_runtime_block(replaced);
  require(read.has_value(), "a block that was written can be read");
  require(read && *read == state::carried_part(new_block()), "the new block is what is read");

  // Whatever block stood in the input: what is read of it survives being written.
  if (const auto old = state::parse_runtime_block(input)) {
    const auto carried = state::carried_part(*old);
    const auto again = state::parse_runtime_block(state::render_runtime_block(carried));
    require(again && *again == carried, "what was read is what is read again");
  }
}

const registration registered{"state_file", run};

} // namespace
} // namespace boyd::fuzz
