#pragma once

#include "messages/store.hpp"

#include <vector>

namespace boyd {

/// The replies in the order of the request's operations. For the store's own parts and for tests;
/// who asks has tickets (store_request::add).
struct store_replies {
  static const std::vector<store::any_reply>& of(const store_reply& r) { return r.values_; }
};

} // namespace boyd
