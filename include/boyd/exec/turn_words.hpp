#pragma once

#include <string>
#include <string_view>

namespace boyd::exec {

/// What a run is doing, for somebody who waits for it.
struct turn_words {
  std::string text;      ///< "turn 2: run_command"; empty: nothing worth a word
  bool is_delay = false; ///< it waits for a person or a provider, which may take long
};

/// The words for a line of a conversation's record. Pure; what cannot be read has none.
turn_words turn_in_words(std::string_view line);

} // namespace boyd::exec
