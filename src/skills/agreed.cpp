#include "boyd/skills/agreed.hpp"

#include <algorithm>

namespace boyd::skills {

agreed_decisions agreed(const std::vector<shown_decision>& shown,
                        const std::vector<policy_decision>& now) {
  agreed_decisions all;
  for (const auto& s : shown) {
    const auto d = std::ranges::find(now, s.id, &policy_decision::id);
    const std::string today(name_of(d == now.end() ? memory_action::keep : d->action));
    if (today != s.action)
      all.changed.push_back({s.id, d == now.end() ? s.id : d->path, s.action, today});
    else if (d != now.end() && d->action != memory_action::keep &&
             std::ranges::find(all.done, s.id, &policy_decision::id) == all.done.end())
      all.done.push_back(*d);
  }
  return all;
}

} // namespace boyd::skills
