#pragma once

#include "boyd/config/agent_cli.hpp"
#include "passes.hpp"

#include <string>
#include <string_view>

/// Adapters of agent CLIs: in the configuration, built in, or in a file of their own.
namespace boyd::config {

/// What is wrong with a JSON pointer (RFC 6901); empty: nothing.
std::string_view pointer_problem(std::string_view text) noexcept;

/// The adapter of that name in the configuration itself, or null.
const tree* inline_adapter(const tree& root, std::string_view name);

/// The part of check_meaning about adapters and who uses them. Reads the files of adapters and
/// keeps what executors use, filled, in `p.adapters`.
void check_adapters(pass& p, const tree& root);

/// Whether runs of this adapter's program tell `figure`: "turns", "tokens" or "cost".
bool tells_figure(const tree& adapter, std::string_view figure);

/// The adapter of the executor `t`, an agent CLI, once check_adapters was there; null when there is
/// none.
const tree* adapter_of_executor(const pass& p, const tree& root, const tree& t);

/// Whether the executor `t` is an agent CLI that confines its commands itself, and is not told to
/// leave it (`unconfined` of its adapter).
bool brings_own_sandbox(const pass& p, const tree& root, const tree& t);

/// A valid, filled adapter as values.
cli_adapter adapter_of(const tree& t);

/// The executor of a valid, filled tree; `root` is the whole configuration's.
agent_cli_executor agent_cli_executor_of(const pass& p, const tree& root, const tree& t);

/// The same of `type: improve`: the node's own program, in the repository.
agent_cli_executor improve_executor_of(const pass& p, const tree& root, const tree& t);

} // namespace boyd::config
