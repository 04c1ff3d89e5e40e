#include "home_claim.hpp"

#include "boyd/core/ids.hpp"
#include "boyd/core/text.hpp"
#include "boyd/files/atomic_file.hpp"
#include "json_view.hpp"
#include "terminal.hpp"

#include <spdlog/spdlog.h>

#include <utility>
#include <variant>

namespace boyd::app {

namespace {

constexpr std::size_t token_bytes = 4096;

/// A node beats every 10 s: one that was seen within this time is alive.
constexpr milliseconds is_alive_for = 30s;

} // namespace

home_claim::tokens home_claim::own() const {
  const auto text = o_.files->read(path(), token_bytes);
  const auto value = text ? object_of(*text) : json::object();
  return {text_of(value, "token"), text_of(value, "next")};
}

result<void> home_claim::keep(const tokens& t) const {
  return files::write_atomic(*o_.files, path(),
                             json{{"token", t.now}, {"next", t.next}}.dump() + "\n");
}

std::string home_claim::machine() const {
  const auto id = o_.files->read("/etc/machine-id", token_bytes);
  return id ? std::string(trim(*id)) : std::string{};
}

error home_claim::refusal(const std::string& owner, const std::string& why) const {
  return {errc::invalid_configuration,
          "node " + o_.node_id + " belongs to the home " + owner + ": " + why, o_.home,
          "if this home is a copy, give it a new id:\n  rm " +
              shell_word(home_layout(o_.home).node_id()) + " " + shell_word(path()) +
              "\nif the other home no longer exists:\n  boyd store begin"};
}

result<void> check_no_copy(file_system& files, const std::string& home, const std::string& original,
                           const std::string& node_id) {
  if (original.empty() || original == home)
    return {};
  const auto id = files.read(home_layout(original).node_id(), token_bytes);
  if (!id || trim(*id) != node_id)
    return {};
  return fail(errc::invalid_configuration,
              home + " is a copy of " + original +
                  ", which still exists; two nodes must not have the same id",
              {},
              "to use this copy beside the original:\n  rm " +
                  shell_word(home_layout(home).node_id()) + "\nif you moved the home here:\n  rm " +
                  shell_word(home_layout(original).node_id()));
}

result<void> home_claim::check_other(const std::string& home, const std::string& machine_id) const {
  return machine_id == machine() ? check_no_copy(*o_.files, o_.home, home, o_.node_id)
                                 : result<void>{};
}

result<void> home_claim::check_original(dispatch_store& opened) const {
  auto replies = opened.apply({store::get_facts{home_scope}});
  if (!replies)
    return fail(std::move(replies.error()));
  const auto* facts = std::get_if<store::get_facts::reply>(&replies->front());
  if (facts == nullptr)
    return fail(errc::bug, "unexpected answer from the database", opened.describe());
  const auto found = facts->find(o_.node_id);
  const auto owner = found == facts->end() ? json::object() : object_of(found->second);
  return check_other(text_of(owner, "home"), text_of(owner, "machine"));
}

std::string home_claim::fact_of_place(const std::string& token) const {
  return json{{"token", token},
              {"home", o_.home},
              {"host", o_.host},
              {"machine", machine()},
              {"at", format_rfc3339(o_.clock->now())}}
      .dump();
}

result<void> home_claim::hold(dispatch_store& opened) {
  auto replies = opened.apply({store::get_facts{home_scope}, store::list_nodes{}});
  if (!replies)
    return fail(std::move(replies.error()));
  const auto* facts = std::get_if<store::get_facts::reply>(&(*replies)[0]);
  const auto* nodes = std::get_if<store::list_nodes::reply>(&(*replies)[1]);
  if (facts == nullptr || nodes == nullptr)
    return fail(errc::bug, "unexpected answer from the database", opened.describe());
  const auto found = facts->find(o_.node_id);
  const auto owner = found == facts->end() ? json::object() : object_of(found->second);
  const auto token = text_of(owner, "token");
  const auto name = text_of(owner, "home") + " on " + text_of(owner, "host");
  if (!held_.empty() && token == held_)
    return {};
  const auto before = own();
  const auto home = text_of(owner, "home");
  const bool same_place = home == o_.home && text_of(owner, "machine") == machine();
  if (!o_.shared_store) {
    if (same_place)
      return {};
    if (auto other = check_other(home, text_of(owner, "machine")); !other)
      return other;
    auto written = opened.apply({store::put_fact{home_scope, o_.node_id, fact_of_place({})}});
    return written ? result<void>() : fail(std::move(written.error()));
  }
  if (token.empty())
    return take(opened, before);
  if (!held_.empty() && !same_place)
    return fail(refusal(name, "it was started there after this one"));
  if (token != before.now && token != before.next && !same_place)
    return fail(refusal(name, "it ran there after this home was copied"));
  if (!same_place)
    for (const auto& n : *nodes)
      if (n.node_id == o_.node_id && o_.clock->now() - n.last_seen < is_alive_for)
        return fail(refusal(name, "it was active there at " + format_rfc3339(n.last_seen) +
                                      " (wait 30 s after stopping that node)"));
  return take(opened, before);
}

/// Whatever ends it in between, the home knows the token that the store has.
result<void> home_claim::take(dispatch_store& opened, const tokens& before) {
  const auto token = make_uuid_v7(o_.clock->now(), *o_.random);
  // A full disk of the home stops no other disk's store.
  if (auto kept = keep({before.now, token}); !kept) {
    spdlog::warn("store: cannot save the node id of this home: {}", to_string(kept.error()));
    return {};
  }
  auto written = opened.apply({store::put_fact{home_scope, o_.node_id, fact_of_place(token)}});
  if (!written)
    return fail(std::move(written.error()));
  held_ = token;
  if (auto kept = keep({token, {}}); !kept)
    spdlog::warn("store: {}", to_string(kept.error()));
  return {};
}

} // namespace boyd::app
