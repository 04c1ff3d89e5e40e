#include "actors/approvals/core.hpp"

#include "boyd/queue/approvals.hpp"

#include <algorithm>
#include <utility>

namespace boyd::approving {

namespace {

using store::approval_outcome;
using store::approval_state;

/// Worth another try: the store is away or has too much to do.
bool may_pass(const error& e) {
  return category_of(e.code) == error_category::transient ||
         category_of(e.code) == error_category::overloaded || e.code == errc::actor_down ||
         e.code == errc::store_unavailable || e.code == errc::commit_in_doubt;
}

/// Half a second more than the store's clock may say.
constexpr milliseconds expiry_slack = 500ms;

void append(effects& to, effects more) {
  std::ranges::move(more, std::back_inserter(to));
}

std::string why_not_used(approval_outcome o) {
  switch (o) {
  case approval_outcome::mutated:
    return "the action differs from the approved one; the approval is void";
  case approval_outcome::expired:
    return "the approval has expired";
  case approval_outcome::used:
    return "the approval was already used";
  default:
    return "the approval cannot be used (" + std::string(queue::name_of(o)) + ")";
  }
}

} // namespace

std::string describe(const store::approval& row) {
  const auto note = row.note.empty() ? std::string() : ": " + row.note;
  switch (row.state) {
  case approval_state::approved:
  case approval_state::used:
    return "approved by " + row.decided_by + note;
  case approval_state::rejected:
    return "rejected by " + row.decided_by + note;
  case approval_state::expired:
    return "the request expired";
  case approval_state::withdrawn:
    return "the request was withdrawn";
  case approval_state::voided:
    return "the request is void";
  case approval_state::pending:
    break;
  }
  return "no decision yet";
}

waiting_room::waiting_room(std::function<std::string()> make_id, milliseconds look_every)
    : make_id_(std::move(make_id)), look_every_(look_every) {}

effects waiting_room::on_wish(approval_wish wish, steady_time now) {
  const auto id = wish.ask.approval_id;
  if (all_.empty())
    looked_ = now;
  entry e;
  e.until = now + wish.wait;
  e.wish = std::move(wish);
  effect::ask ask{e.wish.ask};
  if (!all_.try_emplace(id, std::move(e)).second)
    return {};
  return {std::move(ask)};
}

effects waiting_room::end(std::string wish, approval_word word, store::approval row,
                          std::string why) {
  all_.erase(wish);
  return {effect::tell{{{}, std::move(wish), word, std::move(row), std::move(why)}}};
}

/// What the row says now.
effects waiting_room::look_at(const std::string& wish, entry& e, const store::approval& row) {
  e.row = row;
  if (row.state == approval_state::pending)
    return {};
  if (row.state != approval_state::approved)
    return end(wish, approval_word::denied, row, describe(row));
  e.now = phase::approved;
  return {effect::tell{{{}, wish, approval_word::approved, row, describe(row)}}};
}

effects waiting_room::on_asked(const std::string& wish, const result<store::ask_approval::reply>& r,
                               steady_time now) {
  const auto it = all_.find(wish);
  if (it == all_.end() || it->second.now != phase::asking)
    return {};
  auto& e = it->second;
  if (!r) {
    if (!may_pass(r.error()) || now >= e.until)
      return end(wish, approval_word::denied, {},
                 "cannot ask for approval: " + to_string(r.error()));
    e.now = phase::asleep;
    e.again = now + ask_again;
    return {};
  }
  if (!e.unwanted.empty()) {
    e.row = r->row;
    return leave(wish, e, e.unwanted);
  }
  e.now = phase::pending;
  e.expires = now + e.wish.ask.lives + expiry_slack;
  effects out{effect::tell{{{}, wish, approval_word::asked, r->row, {}}}};
  if (r->fresh && r->row.state == approval_state::pending)
    out.emplace_back(effect::notify{r->row});
  if (!r->fresh) // an earlier request's time: it is looked at in any case
    e.expires = std::min(e.expires, now + (r->row.expires_at - r->row.created_at) + expiry_slack);
  append(out, look_at(wish, e, r->row));
  return out;
}

effects waiting_room::on_rows(const std::vector<store::approval>& rows) {
  // A wish may have taken over a request that was made under another id.
  std::map<std::string, std::string> wishes;
  for (const auto& [wish, e] : all_)
    if (e.now == phase::pending)
      wishes[e.row.approval_id] = wish;
  effects out;
  for (const auto& row : rows)
    if (const auto found = wishes.find(row.approval_id); found != wishes.end())
      append(out, look_at(found->second, all_.at(found->second), row));
  return out;
}

effects waiting_room::on_decided(const store::approval& row) {
  return on_rows({row});
}

effect::use waiting_room::use_of(const std::string& wish, const entry& e) const {
  return {wish, {e.row.approval_id, e.hash, e.wish.ask.fence, e.use_id}};
}

effects waiting_room::on_use(const approval_use& use) {
  const auto it = all_.find(use.wish);
  if (it == all_.end() || it->second.now != phase::approved)
    return {};
  auto& e = it->second;
  e.now = phase::using_up;
  e.hash = use.hash;
  e.use_id = make_id_();
  return {use_of(use.wish, e)};
}

effects waiting_room::on_used(const std::string& wish, const result<store::use_approval::reply>& r,
                              steady_time now) {
  const auto it = all_.find(wish);
  if (it == all_.end() || it->second.now != phase::using_up)
    return {};
  auto& e = it->second;
  if (!r) {
    if (!may_pass(r.error()) || ++e.tries >= use_tries)
      return end(wish, approval_word::denied, e.row,
                 "cannot use the approval: " + to_string(r.error()));
    e.now = phase::retrying;
    e.again = now + ask_again;
    return {};
  }
  auto row = r->row.value_or(e.row);
  if (r->outcome == approval_outcome::accepted) {
    auto why = describe(row);
    return end(wish, approval_word::granted, std::move(row), std::move(why));
  }
  return end(wish, approval_word::denied, std::move(row), why_not_used(r->outcome));
}

effects waiting_room::leave(const std::string& wish, entry& e, std::string why) {
  e.now = phase::leaving;
  store::withdraw_approvals op;
  op.dispatch_id = e.wish.ask.matter.dispatch_id;
  op.fence = e.wish.ask.fence;
  op.approval_id = e.row.approval_id;
  op.hold = e.wish.hold;
  op.why = std::move(why);
  return {effect::withdraw{wish, std::move(op)}};
}

effects waiting_room::on_withdrawn(const std::string& wish,
                                   const result<store::withdraw_approvals::reply>& r) {
  const auto it = all_.find(wish);
  if (it == all_.end() || it->second.now != phase::leaving)
    return {};
  auto row = std::move(it->second.row);
  const bool held = it->second.wish.hold && r && !r->ended.empty();
  row.held = held;
  return end(wish, held ? approval_word::held : approval_word::unanswered, std::move(row),
             "no decision while the run waited");
}

effects waiting_room::on_withdrawal(const std::string& wish, const std::string& why) {
  const auto it = all_.find(wish);
  if (it == all_.end())
    return {};
  auto& e = it->second;
  e.wish.hold = false;
  switch (e.now) {
  case phase::asking: // the store may have it by now
    e.unwanted = why;
    return {};
  case phase::asleep:
    return end(wish, approval_word::unanswered, {}, why);
  case phase::pending:
  case phase::approved:
    return leave(wish, e, why);
  case phase::using_up:
  case phase::retrying:
  case phase::leaving:
    break;
  }
  return {};
}

std::string waiting_room::form_of(const std::string& approval_id) const {
  const auto it = std::ranges::find_if(
      all_, [&](const auto& one) { return one.second.row.approval_id == approval_id; });
  return it == all_.end() ? std::string() : it->second.wish.form_json;
}

bool waiting_room::looks_due(steady_time now) const {
  return soon_ || now - looked_ >= look_every_;
}

effects waiting_room::on_time(steady_time now) {
  effects out;
  effect::look look;
  const bool due = looks_due(now);
  for (auto it = all_.begin(); it != all_.end();) {
    const auto here = it++;
    auto& [wish, e] = *here;
    if (e.now == phase::asleep && e.again <= now) {
      e.now = phase::asking;
      out.emplace_back(effect::ask{e.wish.ask});
    } else if (e.now == phase::retrying && e.again <= now) {
      e.now = phase::using_up;
      out.emplace_back(use_of(wish, e));
    } else if (e.now == phase::pending && e.until <= now) {
      append(out, leave(wish, e, "no decision while the run waited"));
    } else if (e.now == phase::pending && (due || e.expires <= now)) {
      if (e.expires <= now) // unless the store's clock says otherwise, this look ends the wait
        e.expires = now + ask_again;
      look.ids.push_back(e.row.approval_id);
    }
  }
  if (due) {
    looked_ = now;
    soon_ = false;
  }
  for (std::size_t from = 0; from < look.ids.size(); from += ids_at_once)
    out.emplace_back(effect::look{{look.ids.begin() + static_cast<std::ptrdiff_t>(from),
                                   look.ids.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                          from + ids_at_once, look.ids.size()))}});
  return out;
}

void waiting_room::look_soon() {
  soon_ = true;
}

void waiting_room::forget(const std::string& wish) {
  all_.erase(wish);
}

std::optional<steady_time> waiting_room::next(steady_time now) const {
  std::optional<steady_time> at;
  const auto consider = [&](steady_time t) {
    if (!at || t < *at)
      at = t;
  };
  for (const auto& [wish, e] : all_) {
    if (e.now == phase::asleep || e.now == phase::retrying)
      consider(e.again);
    if (e.now != phase::pending)
      continue;
    consider(std::min(e.until, e.expires));
    consider(soon_ ? now : looked_ + look_every_);
  }
  return at;
}

} // namespace boyd::approving
