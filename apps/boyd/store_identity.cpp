#include "store_identity.hpp"

#include "boyd/files/atomic_file.hpp"
#include "json_view.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <utility>
#include <variant>

namespace boyd::app {

namespace {

constexpr std::size_t known_store_bytes = 8192;

constexpr std::string_view embedded = "sqlite";

/// How the first migration of an empty database is announced.
constexpr std::string_view first_migration = "schema version 1 (";

} // namespace

result<std::optional<known_store>> read_known_store(file_system& files, const std::string& path) {
  const auto text = files.read(path, known_store_bytes);
  if (!text && text.error().code == errc::not_found)
    return std::nullopt;
  if (!text)
    return fail(text.error());
  const auto value = object_of(*text);
  known_store known{text_of(value, "id"), text_of(value, "store")};
  if (known.id.empty()) {
    spdlog::warn("store: {} is damaged; the opened database is taken as this home's", path);
    return std::nullopt;
  }
  return known;
}

result<void> write_known_store(file_system& files, const std::string& path, const known_store& s) {
  return files::write_atomic(files, path,
                             nlohmann::json{{"id", s.id}, {"store", s.name}}.dump() + "\n");
}

error another_store(const known_store& known, const std::string& name, const std::string& what,
                    const std::string& where) {
  const auto way_back = known.name == name || known.name.empty()
                            ? "restore the database"
                            : "set node.store back to " + known.name +
                                  ", or move the data: boyd store migrate " + known.name + " " +
                                  name;
  return {errc::invalid_configuration,
          "node.store points to " + what +
              " instead of this home's database; it lacks the pauses, budgets, history and queue "
              "of this home",
          where, way_back + "; or use this database: boyd store begin"};
}

identified_store::identified_store(std::unique_ptr<dispatch_store> inner,
                                   std::shared_ptr<file_system> files, std::string path,
                                   std::string name, store_check check)
    : inner_(std::move(inner)), files_(std::move(files)), path_(std::move(path)),
      name_(std::move(name)), check_(std::move(check)) {
  inner_->tell_migrations([this](const std::string& what) -> result<void> {
    if (!what.starts_with(first_migration)) {
      // it has been a store before
    } else if (known_ && known_->name == embedded && name_ == embedded) {
      // A file without history that is gone was not lost: check_database_is_there has looked.
      known_.reset();
    } else if (known_) {
      wrong_ = another("an empty database");
      return fail(*wrong_);
    }
    if (is_ahead_)
      return fail(errc::cancelled, "the database will be migrated later");
    return told_ ? told_(what) : result<void>{};
  });
}

error identified_store::another(const std::string& what) const {
  return another_store(*known_, name_, what, inner_->describe());
}

result<void> identified_store::open() {
  if (std::exchange(opened_ahead_, false))
    return {};
  wrong_.reset();
  auto known = read_known_store(*files_, path_);
  if (!known)
    return fail(std::move(known.error()));
  known_ = std::move(*known);
  if (auto opened = inner_->open(); !opened)
    return opened;
  if (auto identified = identify(); !identified || !check_)
    return identified;
  auto checked = check_(*inner_);
  if (!checked && checked.error().code == errc::invalid_configuration)
    wrong_ = checked.error();
  return checked;
}

result<void> identified_store::identify() {
  auto replies = inner_->apply({store::get_facts{store_facts::scope}});
  if (!replies)
    return fail(std::move(replies.error()));
  const auto* facts = std::get_if<store::get_facts::reply>(&replies->front());
  if (facts == nullptr)
    return fail(errc::bug, "the database does not return its identity", inner_->describe());
  const auto fact = [&](const std::string& key) {
    const auto found = facts->find(key);
    return found == facts->end() ? std::string{} : found->second;
  };
  const auto id = fact(store_facts::id);
  if (const auto moved = fact(store_facts::moved_to); !moved.empty())
    wrong_ = error{errc::invalid_configuration,
                   "the content of this database was moved to " + moved, inner_->describe(),
                   "set node.store: " + moved + "; or use the old one: boyd store begin"};
  else if (!fact(store_facts::incoming).empty())
    wrong_ = error{errc::invalid_configuration, "an unfinished move into this database exists",
                   inner_->describe(),
                   "finish it with: boyd store migrate " +
                       text_of(object_of(fact(store_facts::incoming)), "from") + " " + name_};
  else if (known_ && known_->id != id && !facts->contains(store_facts::came_from + known_->id))
    wrong_ = another("another database");
  if (wrong_)
    return fail(*wrong_);
  const known_store now{id, name_};
  if (id.empty() || known_ == now)
    return {};
  known_ = now;
  // A full disk of the home stops no other disk's store.
  if (auto written = write_known_store(*files_, path_, now); !written)
    spdlog::warn("store: cannot save the identity of the database: {}", to_string(written.error()));
  return {};
}

result<void> look_ahead(std::function<std::unique_ptr<dispatch_store>()>& make) {
  auto first = std::make_shared<std::unique_ptr<dispatch_store>>(make());
  if (auto* identified = dynamic_cast<identified_store*>(first->get()))
    if (auto seen = identified->look_ahead(); !seen)
      return seen;
  make = [first, next = std::move(make)] { return *first ? std::move(*first) : next(); };
  return {};
}

result<void> identified_store::look_ahead() {
  is_ahead_ = true;
  const auto opened = open();
  is_ahead_ = false;
  opened_ahead_ = opened.has_value();
  return wrong_ ? result<void>(fail(*wrong_)) : result<void>{};
}

} // namespace boyd::app
