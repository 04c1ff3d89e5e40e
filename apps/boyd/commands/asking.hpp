#pragma once

#include "../arguments.hpp"
#include "../client.hpp"
#include "../json_view.hpp"
#include "../terminal.hpp"

#include <functional>
#include <string>

namespace boyd::app {

/// `text` as lines; an empty one stays empty.
inline std::string with_line_break(std::string text) {
  if (!text.empty() && text.back() != '\n')
    text += '\n';
  return text;
}

/// Writes the body of an answer for a person.
using renderer = std::function<void(const json& body, const terminal& t)>;

/// Whether a person at a terminal, or --yes, agrees. `cancelled` when not; `invalid_argument`
/// without a terminal, with the `command` ("agents rm X") that needs none where one is given.
result<void> agree(const arguments& args, const std::string& question,
                   const std::string& command = {});

/// Asks once; prints the body as it is with --json, else what `render` makes of it. The exit code.
int ask_and_print(const arguments& args, const api_request& request, const renderer& render);

} // namespace boyd::app
