#include "place_gate_internal.hpp"

namespace boyd::adapters::curl_detail {

bool place_gate::enter(const std::string& place, http_handle handle, time connect_by, time now) {
  auto found = sites_.find(place);
  if (found == sites_.end()) {
    forget_old(now);
    found = sites_.emplace(place, site{}).first;
  }
  auto& s = found->second;
  if (now < s.good_until)
    return true;
  if (!s.first) {
    s.first = handle;
    return true;
  }
  s.waiting.emplace(handle, connect_by);
  due_.emplace(connect_by, handle);
  return false;
}

std::vector<http_handle> place_gate::connected(const std::string& place, time now) {
  std::vector<http_handle> released;
  const auto found = sites_.find(place);
  if (found == sites_.end())
    return released;
  auto& s = found->second;
  s.first.reset();
  s.good_until = now + good_for;
  for (const auto& [handle, due] : s.waiting) {
    released.push_back(handle);
    due_.erase({due, handle});
  }
  s.waiting.clear();
  return released;
}

place_gate::after_end place_gate::ended(const std::string& place, http_handle handle,
                                        bool place_fails) {
  after_end after;
  const auto found = sites_.find(place);
  if (found == sites_.end())
    return after;
  auto& s = found->second;
  if (const auto w = s.waiting.find(handle); w != s.waiting.end()) {
    due_.erase({w->second, handle});
    s.waiting.erase(w);
  }
  if (s.first != handle)
    return after;
  s.first.reset();
  if (place_fails) {
    for (const auto& [other, due] : s.waiting) {
      after.failed.push_back(other);
      due_.erase({due, other});
    }
    s.waiting.clear();
  } else if (!s.waiting.empty()) {
    const auto w = s.waiting.begin();
    after.next = s.first = w->first;
    due_.erase({w->second, w->first});
    s.waiting.erase(w);
  }
  return after;
}

std::vector<http_handle> place_gate::overdue(time now) const {
  std::vector<http_handle> all;
  for (const auto& [due, handle] : due_) {
    if (due > now)
      break;
    all.push_back(handle);
  }
  return all;
}

std::optional<place_gate::time> place_gate::next_due() const {
  if (due_.empty())
    return std::nullopt;
  return due_.begin()->first;
}

void place_gate::forget_old(time now) {
  std::erase_if(sites_, [&](const auto& entry) {
    const site& s = entry.second;
    return !s.first && s.waiting.empty() && s.good_until <= now;
  });
}

} // namespace boyd::adapters::curl_detail
