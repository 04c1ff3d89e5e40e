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
  return std::holds_alternative<list_occurrences>(op) || std::holds_alternative<list_cycles>(op) ||
         std::holds_alternative<list_decisions>(op) || std::holds_alternative<find_dispatch>(op) ||
         std::holds_alternative<list_dispatches>(op) ||
         std::holds_alternative<latest_per_agent>(op) ||
         std::holds_alternative<count_by_status>(op) || std::holds_alternative<due_agents>(op) ||
         std::holds_alternative<list_pauses>(op) || std::holds_alternative<get_facts>(op) ||
         std::holds_alternative<list_nodes>(op) || std::holds_alternative<sum_spend>(op) ||
         std::holds_alternative<list_spend>(op) || std::holds_alternative<find_approval>(op) ||
         std::holds_alternative<list_approvals>(op);
}

} // namespace boyd::store
