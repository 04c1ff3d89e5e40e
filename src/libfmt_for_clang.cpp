// libfmt.so of Debian is built by GCC 12, which gives this function another symbol than Clang 14
// does:
// "<Char>" in its parameters' types is mangled before or after it is replaced. What is built by
// Clang brings its own.
#include <fmt/format.h>

template void fmt::detail::vformat_to(buffer<char>& buf, basic_string_view<char> fmt,
                                      basic_format_args<buffer_context<type_identity_t<char>>> args,
                                      locale_ref loc);
