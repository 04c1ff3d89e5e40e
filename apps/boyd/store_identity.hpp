#pragma once

#include "boyd/core/result.hpp"
#include "boyd/ports/dispatch_store.hpp"
#include "boyd/ports/file_system.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace boyd::app {

/// Facts by which stores are told apart, in the scope `store`. A migration gives each store its
/// `id`; `boyd store` writes the others.
namespace store_facts {
inline constexpr const char* scope = "store";
inline constexpr const char* id = "id";
inline constexpr const char* moved_to = "moved_to"; ///< node.store of the store that took its place
inline constexpr const char* incoming = "incoming"; ///< a move into it is not complete
/// "came_from:<id>": the store whose place it took, so that every home follows.
inline constexpr const char* came_from = "came_from:";
inline constexpr const char* begun = "begun:"; ///< "begun:<node_id>": who began with it, and when
} // namespace store_facts

/// The store that a home works with.
struct known_store {
  std::string id;
  std::string name; ///< node.store, as it was configured

  bool operator==(const known_store&) const = default;
};

/// HOME/run/store. Nothing: the home has not had one, or the file is damaged.
result<std::optional<known_store>> read_known_store(file_system& files, const std::string& path);
result<void> write_known_store(file_system& files, const std::string& path, const known_store& s);

/// The refusal of a store that is not the home's: `name` is its node.store, `what` it is, `where`
/// it is described. Says how to go back, take the content along, or begin anew.
error another_store(const known_store& known, const std::string& name, const std::string& what,
                    const std::string& where);

/// Asked of each store that has just been opened.
using store_check = std::function<result<void>(dispatch_store& opened)>;

/// A store that opens only if it is the one that the home has worked with, and refuses another one
/// (empty, restored, of another home) with `invalid_configuration` before anything is done in it:
/// pauses, budgets and history would be gone without a word. A home that knows no store yet takes
/// the first that opens for its own. Threads: as the store that it holds.
class identified_store final : public dispatch_store {
 public:
  /// `path`: HOME/run/store; `name`: node.store; `check`: what else must hold, or null; its
  /// `invalid_configuration` refuses the store, too.
  identified_store(std::unique_ptr<dispatch_store> inner, std::shared_ptr<file_system> files,
                   std::string path, std::string name, store_check check);

  void tell_migrations(migration_step before) override { told_ = std::move(before); }
  result<void> open() override;
  result<std::vector<store::any_reply>> apply(const std::vector<store::operation>& batch) override {
    return inner_->apply(batch);
  }
  void tidy() override { inner_->tidy(); }
  result<std::vector<std::string>> concerns() override { return inner_->concerns(); }
  std::string describe() const override { return inner_->describe(); }

  /// Opens it ahead, without a migration: the next `open` need not. The error, when this is not the
  /// home's store; nothing when it is, or that cannot be told now.
  result<void> look_ahead();

 private:
  result<void> identify();
  error another(const std::string& what) const;

  std::unique_ptr<dispatch_store> inner_;
  std::shared_ptr<file_system> files_;
  std::string path_;
  std::string name_;
  store_check check_;
  migration_step told_;
  std::optional<known_store> known_;
  bool is_ahead_ = false;      ///< `look_ahead` is under way: nothing is migrated
  bool opened_ahead_ = false;  ///< and the next `open` has nothing to do
  std::optional<error> wrong_; ///< why the latest open found another store
};

/// Looks ahead with the first store that `make` makes, which `make` then hands out first: a node
/// and the commands end at once where this is not the home's store, instead of waiting for it.
result<void> look_ahead(std::function<std::unique_ptr<dispatch_store>()>& make);

} // namespace boyd::app
