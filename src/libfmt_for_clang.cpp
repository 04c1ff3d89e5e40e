// In libfmt.so, which GCC 12 built, this function has another symbol than Clang 14 gives it: GCC
// puts `char` for `Char` in the types of its parameters. What Clang builds brings its own.
#include <fmt/format.h>

template void fmt::detail::vformat_to(buffer<char>& buf, basic_string_view<char> fmt,
                                      basic_format_args<buffer_context<type_identity_t<char>>> args,
                                      locale_ref loc);
