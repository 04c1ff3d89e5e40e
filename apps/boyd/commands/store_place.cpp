#include "store_place.hpp"

#include "../counted.hpp"
#include "../time_view.hpp"
#include "boyd/ports/clock.hpp"

#include <numeric>
#include <utility>
#include <variant>

namespace boyd::app {

result<store_place> take_home(const arguments& args) {
  store_place at;
  auto where = place_of(args);
  if (!where)
    return fail(std::move(where.error()));
  at.where = std::move(*where);
  if (auto there = require_home(at.where); !there)
    return fail(std::move(there.error()));
  at.local = local_ports();
  auto settings = load_configuration_to_ask(at.where.config_path, *at.local.files, *at.local.zones);
  if (!settings)
    return fail(std::move(settings.error()));
  at.settings = std::move(*settings);
  auto id = node_id_of(at.where, *at.local.files, *at.local.clock, *at.local.random);
  if (!id)
    return fail(std::move(id.error()));
  at.node_id = std::move(*id);
  auto lock = adapters::home_lock::acquire(at.where.home, at.local.clock->now(), at.node_id);
  if (!lock && lock.error().code == errc::locked)
    return fail(errc::locked,
                args.verb + " needs the node stopped: " + in_user_zone(lock.error().what),
                at.where.home, "boyd stop");
  if (!lock)
    return fail(std::move(lock.error()));
  at.lock.emplace(std::move(*lock));
  return at;
}

std::string store_content::fact(const std::string& key) const {
  const auto found = facts.find(key);
  return found == facts.end() ? std::string{} : found->second;
}

std::string store_content::text() const {
  return counted(dispatches, "run") + ", " + counted(pauses, "pause");
}

namespace {

result<store_content> content_of(dispatch_store& opened) {
  auto replies = opened.apply(
      {store::get_facts{store_facts::scope}, store::count_by_status{}, store::list_pauses{}});
  if (!replies)
    return fail(std::move(replies.error()));
  const auto* facts = std::get_if<store::get_facts::reply>(&(*replies)[0]);
  const auto* counts = std::get_if<store::count_by_status::reply>(&(*replies)[1]);
  const auto* pauses = std::get_if<store::list_pauses::reply>(&(*replies)[2]);
  if (facts == nullptr || counts == nullptr || pauses == nullptr)
    return fail(errc::bug, "unexpected answer from the database", opened.describe());
  const auto sum = std::accumulate(counts->begin(), counts->end(), std::uint64_t{0},
                                   [](std::uint64_t n, const auto& c) { return n + c.second; });
  return store_content{*facts, sum, pauses->size()};
}

} // namespace

result<opened_store> open_store(const store_place& at, const std::string& name) {
  auto make = plain_store(at.local, at.where, *at.settings, name);
  if (!make)
    return fail(std::move(make.error()));
  opened_store it{(*make)(), {}};
  if (auto opened = it.store->open(); !opened)
    return fail(std::move(opened.error()));
  auto content = content_of(*it.store);
  if (!content)
    return fail(std::move(content.error()));
  it.content = std::move(*content);
  return it;
}

} // namespace boyd::app
