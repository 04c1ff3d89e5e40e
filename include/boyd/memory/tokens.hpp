#pragma once

#include <cstdint>
#include <string_view>

namespace boyd::memory {

/// Estimated tokens of a text, for budgets of prompts (docs/context.md): within 15 % of what a byte
/// pair tokenizer of a current model counts on texts of some length. By code points, in hundredths
/// of a token:
///
/// * a run of ASCII letters of one word, which ends before a capital behind a small letter: 100,
///   and 15 for each letter beyond the sixth;
/// * a run of ASCII digits: 100 for each three of them, begun ones included;
/// * blanks between two words: nothing for one, 70 for several or with a line break;
/// * a run of other ASCII characters: 80, and 40 for each one beyond the first;
/// * a Chinese, Japanese or Korean character: 100; any other one: 120.
///
/// Unlike count_tokens, which the definition of recall prices entries by.
std::int64_t estimate_tokens(std::string_view utf8) noexcept;

} // namespace boyd::memory
