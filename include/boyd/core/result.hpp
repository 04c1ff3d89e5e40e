#pragma once

#include "boyd/core/errc.hpp"

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace boyd {

/// A failure as a person reads it: what went wrong, where, and what to do next.
struct error {
  errc code = errc::bug;
  std::string what;  ///< one sentence, no trailing period
  std::string where; ///< file:line:column, path, or name of the part; may be empty
  std::string next;  ///< what the reader can do; may be empty

  bool operator==(const error&) const = default;
};

/// The category of `e`, for decisions.
inline error_category category_of(const error& e) noexcept {
  return category_of(e.code);
}

/// "where: what; next", leaving out what is empty. For logs and stderr.
std::string to_string(const error& e);

/// The value, or why there is none. Domain functions return it; nothing throws across a port.
template <class T>
using result = tl::expected<T, error>;

/// Shorthand: `return fail(errc::not_found, "no such agent: x", "boyd.yaml");`
inline tl::unexpected<error> fail(errc code, std::string what, std::string where = {},
                                  std::string next = {}) {
  return tl::unexpected<error>(error{code, std::move(what), std::move(where), std::move(next)});
}

/// Passes the error of another result on.
inline tl::unexpected<error> fail(error e) {
  return tl::unexpected<error>(std::move(e));
}

} // namespace boyd
