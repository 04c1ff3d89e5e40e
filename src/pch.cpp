// Compiled so that its precompiled header is there for all rooms, with what that declares to be
// compiled once.
#include "pch.hpp"

#if NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR == 11
namespace nlohmann::detail {

template class serializer<json>;
template class json_sax_dom_parser<json>;
template class json_sax_dom_callback_parser<json>;
template class lexer<json, iterator_input_adapter<std::string::const_iterator>>;
template class lexer<json, iterator_input_adapter<const char*>>;
template class parser<json, iterator_input_adapter<std::string::const_iterator>>;
template class parser<json, iterator_input_adapter<const char*>>;

} // namespace nlohmann::detail
#endif
