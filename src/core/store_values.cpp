#include "boyd/ports/dispatch_store.hpp"

// Here and nowhere else: a variant of so many alternatives is dear to compile.
namespace boyd::store {

operation::operation() = default;
operation::~operation() = default;
operation::operation(const operation&) = default;
operation::operation(operation&&) noexcept = default;
operation& operation::operator=(const operation&) = default;
operation& operation::operator=(operation&&) noexcept = default;

any_reply::any_reply() = default;
any_reply::~any_reply() = default;
any_reply::any_reply(const any_reply&) = default;
any_reply::any_reply(any_reply&&) noexcept = default;
any_reply& any_reply::operator=(const any_reply&) = default;
any_reply& any_reply::operator=(any_reply&&) noexcept = default;

bool is_question(const operation& op) {
#define BOYD_OR_IS(name) || std::holds_alternative<name>(op)
  return false BOYD_STORE_QUESTIONS(BOYD_OR_IS) BOYD_STORE_STORIES(BOYD_OR_IS);
#undef BOYD_OR_IS
}

} // namespace boyd::store
