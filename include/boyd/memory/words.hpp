#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Text as recall sees it (docs/context.md): tokens, words, stems. Pure. Bytes that are no UTF-8
/// count as U+FFFD each.
namespace boyd::memory {

/// Estimated tokens: one for each Chinese, Japanese or Korean character, a quarter for each other
/// byte, rounded up.
std::int64_t count_tokens(std::string_view utf8) noexcept;

/// The words of a text in their order: lower case, without accents; runs of Chinese, Japanese or
/// Korean characters as their overlapping pairs.
std::vector<std::string> words_in(std::string_view utf8);

/// English words that say nothing about a text's subject.
bool is_stop_word(std::string_view word) noexcept;

/// The stem of an English word by M. F. Porter, "An algorithm for suffix stripping" (1980), with
/// the author's two later changes (bli → ble, logi → log). Other words stay as they are.
std::string stem_of(std::string word);

/// The stems of the words that are no stop words.
std::vector<std::string> terms_in(std::string_view utf8);

} // namespace boyd::memory
