#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace boyd::gateway_impl {

namespace {

constexpr const char* listing = "list them with: boyd actors ls";

error unknown_part(const std::string& name, const std::vector<child_status>& tree) {
  std::vector<std::string_view> names;
  for (const auto& c : tree)
    names.push_back(c.name);
  const auto close = nearest(name, names);
  return {errc::not_found,
          "no such part: " + name,
          {},
          close.empty() ? std::string(listing) : "did you mean: " + std::string(close)};
}

/// The part is looked for before anything is ordered: an answer about a slip names the nearest.
void order(const exchange_ptr& x, actor_verb what, const std::string& name) {
  const auto& p = x->self->state.parts;
  if (p.context->passive)
    return x->fail_with({errc::refused, "no node runs", {}, "start the node: boyd node"});
  if (name == "root")
    return x->fail_with({errc::refused, "root is the node itself", name,
                         "stop the node instead; the service manager restarts it"});
  if (name == "process_host")
    return x->fail_with({errc::refused, "it is a program, not a part", name,
                         "end the process by its pid; the next run starts it again"});
  ask<tree_reply>(x->self, p.tree, tree_query{}, [x, what, name](result<tree_reply> tree) {
    if (!tree)
      return x->fail_with(tree.error());
    if (std::ranges::find(tree->children, name, &child_status::name) == tree->children.end())
      return x->fail_with(unknown_part(name, tree->children));
    ask<actor_order_reply>(x->self, x->self->state.parts.tree, actor_order{{}, what, name},
                           [x, what](result<actor_order_reply> r) {
                             if (!r)
                               return x->fail_with(r.error());
                             x->reply(what == actor_verb::restart ? "actor_restart"
                                                                  : "actor_unpark",
                                      {{"name", r->name}, {"was", r->was}});
                           });
  });
}

} // namespace

void restart_actor(exchange_ptr x, const std::string& name) {
  order(x, actor_verb::restart, name);
}

void unpark_actor(exchange_ptr x, const std::string& name) {
  order(x, actor_verb::unpark, name);
}

} // namespace boyd::gateway_impl
