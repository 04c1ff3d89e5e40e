#pragma once

#include "../home.hpp"
#include "../store_identity.hpp"
#include "adapters/posix/home_lock.hpp"
#include "boyd/ports/dispatch_store.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

/// What the verbs of `boyd store` share.
namespace boyd::app {

/// The home of a command that works on its store; no node of it runs meanwhile.
struct store_place {
  place where;
  ports local;
  std::shared_ptr<const config::configuration> settings;
  std::string node_id;
  std::optional<adapters::home_lock> lock;
};

/// `locked` while a node or another command uses the home.
result<store_place> take_home(const arguments& args);

/// What a store holds, as far as a person wants to know before deciding.
struct store_content {
  store::get_facts::reply facts; ///< about itself (store_facts)
  std::uint64_t dispatches = 0;
  std::size_t pauses = 0;

  /// Empty: there is none.
  std::string fact(const std::string& key) const;
  std::string text() const;
};

struct opened_store {
  std::unique_ptr<dispatch_store> store;
  store_content content;
};

/// The store of this name (a value of node.store), whosesoever it is.
result<opened_store> open_store(const store_place& at, const std::string& name);

/// `boyd store migrate`.
result<std::string> migrate_store(const arguments& args);

} // namespace boyd::app
