#include "actors/supervision/core.hpp"

#include <algorithm>
#include <utility>

namespace boyd {

supervisor_core::supervisor_core(std::vector<child_rule> rules, restart_intensity intensity)
    : intensity_(intensity) {
  for (auto& r : rules)
    add(std::move(r));
}

void supervisor_core::add(child_rule rule) {
  if (auto* c = find(rule.id)) {
    c->rule = std::move(rule);
    c->wanted = true;
    c->ended = false;
    return;
  }
  child c;
  c.rule = std::move(rule);
  children_.push_back(std::move(c));
}

void supervisor_core::remove(const std::string& id) {
  if (auto* c = find(id)) {
    c->wanted = false;
    if (!c->alive)
      std::erase_if(children_, [&](const child& x) { return x.rule.id == id; });
  }
}

bool supervisor_core::renew(const std::string& id) {
  auto* c = find(id);
  if (c == nullptr)
    return false;
  const bool renewed = c->alive && !c->renewing;
  c->renewing = c->alive;
  const bool revived = std::exchange(c->ended, false);
  if (revived) {
    c->wanted = true;
    ++c->renewals;
  }
  if (!c->alive)
    c->restart_at = {};
  return renewed || revived;
}

bool supervisor_core::unpark(const std::string& id) {
  auto* c = find(id);
  if (c == nullptr || !c->parked)
    return false;
  c->parked = false;
  ++c->renewals;
  c->reason.clear();
  c->failures.clear();
  c->backoff = {};
  c->restart_at = {};
  return true;
}

void supervisor_core::started(const std::string& id) {
  if (auto* c = find(id)) {
    c->alive = true;
    c->stopping = false;
    c->renewing = false;
  }
}

void supervisor_core::start_failed(const std::string& id, const std::string& why, steady_time now,
                                   double unit) {
  if (auto* c = find(id))
    failed(*c, why, now, unit);
}

void supervisor_core::down(const std::string& id, bool failure, const std::string& why,
                           steady_time now, double unit) {
  auto* c = find(id);
  if (c == nullptr)
    return;
  const bool asked = c->stopping;
  c->alive = false;
  c->stopping = false;
  if (!c->wanted) {
    std::erase_if(children_, [&](const child& x) { return x.rule.id == id; });
    return;
  }
  if (asked || shutting_down_) {
    c->restart_at = now;
    c->renewals += shutting_down_ ? 0 : 1;
    return;
  }
  if (!failure && c->rule.restart != restart_kind::permanent)
    return end(*c);
  if (c->rule.restart == restart_kind::temporary) {
    c->last_error = why;
    return end(*c);
  }
  failed(*c, why, now, unit);
}

void supervisor_core::end(child& c) {
  c.wanted = false;
  c.ended = true;
}

void supervisor_core::failed(child& c, const std::string& why, steady_time now, double unit) {
  ++c.restarts;
  c.last_error = why;
  c.restart_at = now + c.backoff.failed(now, unit);
  const bool subtree_spent = c.rule.vital && spend_restart(failures_, now, intensity_);
  const auto own = c.rule.intensity.value_or(c.rule.vital ? intensity_ : restart_intensity{});
  const bool spent = spend_restart(c.failures, now, own);
  if (holding_ && c.rule.vital)
    exhaust(c, why, {});
  else if (spent || subtree_spent)
    exhaust(c, why,
            "failed " + std::to_string(c.failures.size()) + " times within " +
                format_duration(own.period) + ": " + why);
}

void supervisor_core::gave_up(const std::string& id, const std::string& why, steady_time now) {
  auto* c = find(id);
  if (c == nullptr || !c->wanted || c->stopping || shutting_down_)
    return down(id, true, why, now, 0);
  c->alive = false;
  c->restart_at = now;
  ++c->restarts;
  c->last_error = why;
  exhaust(*c, why, why);
}

void supervisor_core::exhaust(child& c, const std::string& why, std::string parked_because) {
  if (c.rule.vital || is_last_of_group(c)) {
    exhausted_ = true;
    exhausted_by_ = c.rule.id + ": " + why;
    return;
  }
  c.parked = true;
  c.reason = std::move(parked_because);
}

bool supervisor_core::is_last_of_group(const child& c) const {
  return !c.rule.group.empty() && std::ranges::none_of(children_, [&](const child& x) {
    return &x != &c && x.rule.group == c.rule.group && x.wanted && !x.parked;
  });
}

void supervisor_core::hold() {
  holding_ = true;
}

void supervisor_core::begin_shutdown() {
  shutting_down_ = true;
}

bool supervisor_core::has_living_dependents(const child& c) const {
  return std::ranges::any_of(children_, [&](const child& x) {
    return x.alive && std::ranges::find(x.rule.depends_on, c.rule.id) != x.rule.depends_on.end();
  });
}

/// Nobody waits for it: those that depend on it run without.
bool supervisor_core::is_absent(const child& c) {
  return c.parked || c.ended;
}

void supervisor_core::mark_stale() {
  for (auto& c : children_) {
    c.stale = !c.wanted || c.renewing || shutting_down_;
    c.because = c.renewing ? c.rule.id : "";
  }
  const auto lacks = [&](const std::string& id) {
    const auto* d = find(id);
    return d == nullptr || (!is_absent(*d) && (!d->alive || d->stopping || d->stale));
  };
  // A rule that was replaced may depend on children behind it.
  for (bool found = true; found;) {
    found = false;
    for (auto& c : children_) {
      const auto lost =
          c.stale ? c.rule.depends_on.end() : std::ranges::find_if(c.rule.depends_on, lacks);
      if (lost == c.rule.depends_on.end())
        continue;
      c.stale = found = true;
      const auto* sibling = find(*lost);
      c.because = sibling != nullptr && sibling->stale ? sibling->because : *lost;
    }
  }
}

supervision_actions supervisor_core::reconcile(steady_time now) {
  supervision_actions todo;
  if (holding_ && !shutting_down_)
    return todo;
  if (exhausted_ && !shutting_down_) {
    todo.escalate = true;
    todo.reason = exhausted_by_;
    return todo;
  }
  mark_stale();
  for (auto it = children_.rbegin(); it != children_.rend(); ++it) {
    if (it->alive && !it->stopping && it->stale && !has_living_dependents(*it)) {
      it->stopping = true;
      todo.stop.push_back(it->rule.id);
    }
  }
  if (shutting_down_)
    return todo;
  for (auto& c : children_) {
    if (c.alive || !c.wanted || c.parked || has_living_dependents(c))
      continue;
    const bool ready = std::ranges::all_of(c.rule.depends_on, [&](const std::string& id) {
      const auto* d = find(id);
      return d != nullptr && (is_absent(*d) || (d->alive && !d->stopping && !d->stale) ||
                              std::ranges::find(todo.start, id) != todo.start.end());
    });
    if (!ready)
      continue;
    if (c.restart_at <= now)
      todo.start.push_back(c.rule.id);
    else if (!todo.wake_at || c.restart_at < *todo.wake_at)
      todo.wake_at = c.restart_at;
  }
  return todo;
}

bool supervisor_core::all_stopped() const {
  return std::ranges::none_of(children_, [](const child& c) { return c.alive; });
}

const std::string* supervisor_core::parked(const std::string& id) const {
  const auto* c = find(id);
  return c != nullptr && c->parked ? &c->reason : nullptr;
}

std::set<std::string> supervisor_core::changing() const {
  std::set<std::string> ids;
  for (const auto& c : children_)
    if (c.alive && (c.stopping || c.stale))
      ids.insert(c.rule.id);
  return ids;
}

milliseconds supervisor_core::stop_grace(const std::string& id) const {
  const auto* c = find(id);
  return c != nullptr ? c->rule.stop_grace : milliseconds{0};
}

std::string supervisor_core::started_anew_with(const std::string& id) const {
  const auto* c = find(id);
  return c != nullptr && c->wanted && c->stopping && !shutting_down_ ? c->because : "";
}

std::vector<child_view> supervisor_core::view() const {
  std::vector<child_view> all;
  for (const auto& c : children_) {
    const bool over = !c.wanted || holding_ || shutting_down_;
    const char* state = c.stopping ? "stopping"
                        : c.alive  ? "running"
                        : c.parked ? "parked"
                        : c.ended  ? "ended"
                        : over     ? "stopped"
                                   : "restarting";
    all.push_back({c.rule.id, state, c.restarts, c.last_error, c.reason, c.renewals});
  }
  return all;
}

supervisor_core::child* supervisor_core::find(const std::string& id) {
  auto it = std::ranges::find_if(children_, [&](const child& c) { return c.rule.id == id; });
  return it == children_.end() ? nullptr : &*it;
}

const supervisor_core::child* supervisor_core::find(const std::string& id) const {
  auto it = std::ranges::find_if(children_, [&](const child& c) { return c.rule.id == id; });
  return it == children_.end() ? nullptr : &*it;
}

} // namespace boyd
