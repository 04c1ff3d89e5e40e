#pragma once

// Precompiled for all rooms, and part of the other precompiled headers. It only saves time: every
// file includes what it uses (BOYD_PCH=OFF builds without it).
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#if FMT_VERSION >= 90000 && FMT_VERSION < 100000 && !defined(FMT_HEADER_ONLY)
// The formatter itself. fmt 9 has it in its library, but its headers compile it again in every file
// that logs a value.
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);
#endif

#if NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR == 11
// Reading and writing of JSON text, which every file that does it would compile again (a fifth of
// some). pch.cpp has it once.
namespace nlohmann::detail {
extern template class serializer<json>;
extern template class json_sax_dom_parser<json>;
extern template class json_sax_dom_callback_parser<json>;
extern template class lexer<json, iterator_input_adapter<std::string::const_iterator>>;
extern template class lexer<json, iterator_input_adapter<const char*>>;
extern template class parser<json, iterator_input_adapter<std::string::const_iterator>>;
extern template class parser<json, iterator_input_adapter<const char*>>;
} // namespace nlohmann::detail
#endif
