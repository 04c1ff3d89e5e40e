#pragma once

#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "messages/approvals.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace boyd::approving {

/// A store that does not answer is asked again after this long.
inline constexpr milliseconds ask_again = 1s;
/// How often the use of an approval is tried while the store is away.
inline constexpr int use_tries = 60;
/// Ids of one question to the store.
inline constexpr std::size_t ids_at_once = 500;

namespace effect {

/// Puts the wish into the inbox; its answer comes back through on_asked.
struct ask {
  store::ask_approval what;
};

/// Its answer comes back through on_used.
struct use {
  std::string wish;
  store::use_approval what;
};

/// Its answer comes back through on_withdrawn with `wish`; nothing comes back when that is empty.
struct withdraw {
  std::string wish;
  store::withdraw_approvals what;
};

/// How do these stand? The answer comes back through on_rows.
struct look {
  std::vector<std::string> ids;
};

/// For the waiter of `answer.wish`.
struct tell {
  approval_answer answer;
};

/// Somebody is to be told of a new request.
struct notify {
  store::approval row;
};

} // namespace effect

using any_effect = std::variant<effect::ask, effect::use, effect::withdraw, effect::look,
                                effect::tell, effect::notify>;
using effects = std::vector<any_effect>;

/// Who waits in this node for people's words, as a state machine: (event, now) → effects. Each wish
/// is told `asked` at most once and then one last word, but that `approved` may be followed by a
/// use, whose answer is the last. Late events of wishes that are over change nothing. Not
/// thread-safe.
class waiting_room {
 public:
  /// `make_id`: unlike all others. `look_every`: how soon a decision is seen of which nobody tells.
  waiting_room(std::function<std::string()> make_id, milliseconds look_every);

  effects on_wish(approval_wish wish, steady_time now);
  effects on_asked(const std::string& wish, const result<store::ask_approval::reply>& r,
                   steady_time now);
  effects on_rows(const std::vector<store::approval>& rows);
  /// A decision that was made through this node.
  effects on_decided(const store::approval& row);
  effects on_use(const approval_use& use);
  effects on_used(const std::string& wish, const result<store::use_approval::reply>& r,
                  steady_time now);
  effects on_withdrawn(const std::string& wish, const result<store::withdraw_approvals::reply>& r);
  /// This wish is not wanted any more, though its run goes on.
  effects on_withdrawal(const std::string& wish, const std::string& why);
  effects on_time(steady_time now);
  /// Somebody may have decided elsewhere: the next on_time looks.
  void look_soon();
  /// The run waits no longer for these. What it asked is withdrawn by its end, not here.
  void forget(const std::string& wish);

  /// The form that an approval of this request has to fill in; empty: none, or not known here.
  std::string form_of(const std::string& approval_id) const;

  /// When on_time has something to do; nothing: never.
  std::optional<steady_time> next(steady_time now) const;
  std::size_t waiting() const { return all_.size(); }

 private:
  enum class phase : std::uint8_t {
    asking,   ///< the store has been asked to take it
    asleep,   ///< the store could not be asked: again at `again`
    pending,  ///< it is in the inbox
    approved, ///< the run knows, and has not come back yet
    using_up, ///< the store has been asked
    retrying, ///< the store could not be asked to use it: again at `again`
    leaving   ///< the wait is over, and the store is told
  };
  struct entry {
    approval_wish wish;
    phase now = phase::asking;
    store::approval row;
    steady_time until{};   ///< when the run's wait ends
    steady_time expires{}; ///< as this node's clock counts
    steady_time again{};
    std::string hash; ///< of the use
    std::string use_id;
    int tries = 0;
    std::string unwanted; ///< why it is withdrawn as soon as it is in the inbox
  };

  effects look_at(const std::string& wish, entry& e, const store::approval& row);
  effects end(std::string wish, approval_word word, store::approval row, std::string why);
  effect::use use_of(const std::string& wish, const entry& e) const;
  effects leave(const std::string& wish, entry& e, std::string why);
  bool looks_due(steady_time now) const;

  std::function<std::string()> make_id_;
  milliseconds look_every_;
  steady_time looked_{};
  bool soon_ = false;
  std::map<std::string, entry> all_; ///< by wish
};

/// A person's word about what became of the request, for the model.
std::string describe(const store::approval& row);

} // namespace boyd::approving
