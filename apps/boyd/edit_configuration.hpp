#pragma once

#include "boyd/core/result.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Changes of a configuration file as text, so that comments, order and layout stay. Pure.
namespace boyd::app {

/// Keys and values of a new agent, in the order of the file. A value is YAML of one line, or, for a
/// prompt of several, a literal block's lines.
struct agent_text {
  std::vector<std::pair<std::string, std::string>> keys;
};

/// `text` with the agent behind the last one of the kernel (by its place in the file). Error
/// `refused` where the file is written in a way that is not edited; `next` then has what to write.
result<std::string> with_agent(const std::string& path, std::string_view text, std::size_t kernel,
                               const agent_text& agent);

/// `text` without the kernel's agent at this place, and without the comment right above it.
result<std::string> without_agent(const std::string& path, std::string_view text,
                                  std::size_t kernel, std::size_t agent);

/// A string as YAML of one line.
std::string quoted_yaml(std::string_view text);

} // namespace boyd::app
