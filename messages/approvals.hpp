#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/approval_operations.hpp"
#include "messages/message.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace boyd {

/// A run wants a person's word for one action. `ask.approval_id` is the waiter's own, new for each.
struct approval_wish {
  store::ask_approval ask;
  milliseconds wait{0}; ///< how long the run waits
  bool hold = false;    ///< when nobody answers, the request stays open for the dispatch's next run
  /// A form (JSON schema) that the note of an approval has to fill in; empty: any note will do.
  std::string form_json{};
};

enum class approval_word : std::uint8_t {
  asked,      ///< it is in the inbox; another word follows
  approved,   ///< approval_use may follow
  granted,    ///< used: the action may be done now, once
  denied,     ///< rejected, expired, withdrawn, or it could not be asked or used
  unanswered, ///< nobody decided in the time that the run waits
  held        ///< the same, and the request stays open for the dispatch's next run
};

/// What has become of a wish.
struct approval_answer : message {
  std::string wish; ///< approval_id as it was asked for
  approval_word word = approval_word::denied;
  store::approval row;
  std::string why; ///< for the record and the model
};

/// Lets an approved action through; `hash` is made of what is about to be done. Answered by
/// `granted` or `denied`.
struct approval_use {
  std::string wish;
  std::string hash;
};

/// The run is over, or does without: what it has asked and not used is withdrawn.
struct approval_over {
  std::string dispatch_id;
  std::int64_t fence = 0;
};

/// Nobody waits for this wish any more, though the run goes on: its request is withdrawn.
struct approval_withdrawal : message {
  std::string wish;
  std::string why; ///< for the record
};

/// A person's word.
struct approval_decision : message {
  store::decide_approval what;
};

struct approvals_query : message {};

/// The inbox as this node sees it.
struct approvals_status {
  std::uint64_t waiting_runs = 0; ///< of this node
  std::uint64_t notices_sent = 0;
  std::uint64_t notices_failed = 0;
  std::string last_notice_error; ///< empty after a success
};

} // namespace boyd
