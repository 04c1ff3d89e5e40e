#pragma once

#include <string_view>

namespace boyd::model {

/// Whether an error says, in any provider's words, that what a model was given does not fit it:
/// for programs that talk to models themselves and pass on what these answer.
bool says_too_long(std::string_view error);

} // namespace boyd::model
