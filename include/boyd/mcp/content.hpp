#pragma once

#include <string>
#include <string_view>

namespace boyd::mcp {

/// What a model reads of a result.
struct result_words {
  std::string text;
  bool is_error = false; ///< the tool says that it failed
};

/// Of tools/call: texts as they are; images, sounds and other bytes are named, not shown; links to
/// resources with their URIs; structured content where there is no text.
result_words words_of_call(std::string_view result_json);

/// Of resources/list: one line for each, and how to go on when there are more.
result_words words_of_list(std::string_view result_json);

/// Of resources/read.
result_words words_of_resource(std::string_view result_json);

} // namespace boyd::mcp
