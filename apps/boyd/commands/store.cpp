#include "../exit_codes.hpp"
#include "../home_claim.hpp"
#include "../json_view.hpp"
#include "../serving.hpp"
#include "../terminal.hpp"
#include "asking.hpp"
#include "boyd/ports/clock.hpp"
#include "commands.hpp"
#include "store_place.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace boyd::app {

namespace {

/// Records in the store, and in the home, that they belong together from now on.
result<void> begin_with(const store_place& at, opened_store& it,
                        const std::optional<known_store>& before) {
  const nlohmann::json record{{"at", format_rfc3339(at.local.clock->now())},
                              {"home", at.where.home},
                              {"before_id", before ? before->id : ""},
                              {"before", before ? before->name : ""}};
  const auto put = [](const std::string& key, const std::string& value) {
    return store::put_fact{store_facts::scope, key, value};
  };
  auto written = it.store->apply({put(store_facts::begun + at.node_id, record.dump()),
                                  put(store_facts::moved_to, {}),
                                  store::put_fact{home_scope, at.node_id, {}}});
  if (!written)
    return fail(std::move(written.error()));
  return write_known_store(*at.local.files, at.where.layout().known_store(),
                           {it.content.fact(store_facts::id), at.settings->node_settings.store});
}

result<std::string> begin(const arguments& args) {
  auto at = take_home(args);
  if (!at)
    return fail(std::move(at.error()));
  auto before = read_known_store(*at->local.files, at->where.layout().known_store());
  if (!before)
    return fail(std::move(before.error()));
  auto it = open_store(*at, at->settings->node_settings.store);
  if (!it)
    return fail(std::move(it.error()));
  const auto described = it->store->describe();
  if (const auto from = it->content.fact(store_facts::incoming); !from.empty())
    return fail(errc::refused, "an unfinished move into this database exists", described,
                "finish it with: boyd store migrate " + text_of(object_of(from), "from") + " " +
                    at->settings->node_settings.store);
  if (auto agreed = agree(args,
                          "Use " + described + " (" + it->content.text() +
                              ")? The data of the previous database is not copied.",
                          "store begin");
      !agreed)
    return fail(std::move(agreed.error()));
  if (auto begun = begin_with(*at, *it, *before); !begun)
    return fail(std::move(begun.error()));
  return "This home now uses " + described + ": " + it->content.text() + ".\n";
}

result<std::string> show(const arguments& args) {
  auto at = take_home(args);
  if (!at)
    return fail(std::move(at.error()));
  auto known = read_known_store(*at->local.files, at->where.layout().known_store());
  if (!known)
    return fail(std::move(known.error()));
  auto it = open_store(*at, at->settings->node_settings.store);
  if (!it)
    return fail(std::move(it.error()));
  const auto id = it->content.fact(store_facts::id);
  std::string text = it->store->describe() + "\n  id " + id + "\n  " + it->content.text() + "\n";
  if (*known && (*known)->id != id)
    text += "  does not belong to this home; its database is " + (*known)->id + " (" +
            (*known)->name + ")\n";
  return text;
}

} // namespace

int run_store(const arguments& args) {
  if (args.verb == "store begin" || args.verb == "store migrate")
    if (auto person = only_a_person("change the database of a home"); !person)
      return report(person.error(), args.json);
  const auto done = args.verb == "store begin"     ? begin(args)
                    : args.verb == "store migrate" ? migrate_store(args)
                                                   : show(args);
  if (!done)
    return report(done.error(), args.json);
  if (args.json)
    print(nlohmann::json{{"schema", "boyd.store/1"}, {"text", *done}}.dump() + "\n");
  else
    print(*done);
  return exit_code::ok;
}

} // namespace boyd::app
