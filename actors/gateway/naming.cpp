#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/text.hpp"
#include "boyd/queue/dispatch_ids.hpp"
#include "boyd/queue/transitions.hpp"

#include <algorithm>
#include <memory>
#include <utility>

/// How people name a dispatch: its id or a part of it, `last`, an agent.
namespace boyd::gateway_impl {

namespace {

constexpr const char* newest_run = "last";
/// A retried run may begin after newer ones: so many are looked through for the last beginning.
constexpr std::size_t looked_through = 50;
/// Beginnings of short ids: the fewest characters that are looked for, in so many runs, of which so
/// many are named.
constexpr std::size_t least_typed = 4;
constexpr std::size_t most_compared = 1000;
constexpr std::size_t most_named = 5;
constexpr const char* advice = "list them with: boyd dispatches ls";

/// An agent as a person writes it.
struct agent_name {
  std::string kernel_id; ///< empty: of any kernel
  std::string agent_id;
};

/// "KERNEL/AGENT", or the agent alone.
agent_name read_agent(const exchange& x, const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos)
    return {x.query("kernel"), name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

bool is_configured(const config::configuration& in, const agent_name& who) {
  return std::ranges::any_of(in.kernels, [&](const config::kernel& k) {
    return (who.kernel_id.empty() || who.kernel_id == k.kernel_id) &&
           config::find_agent(k, who.agent_id) != nullptr;
  });
}

std::vector<std::string_view> agent_ids(const exchange& x, const std::string& kernel_id) {
  std::vector<std::string_view> all;
  for (const auto& k : x.configuration->kernels)
    if (kernel_id.empty() || kernel_id == k.kernel_id)
      for (const auto& a : k.agents)
        all.emplace_back(a.agent_id);
  return all;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string_view>& known,
                         const std::string& otherwise) {
  const auto close = nearest(name, known);
  return close.empty() ? otherwise : "did you mean " + std::string(close) + "?";
}

error not_found(const exchange& x, const std::string& name) {
  auto known = agent_ids(x, {});
  known.emplace_back(newest_run);
  return {errc::not_found,
          "no run or agent has this name: " + name,
          {},
          did_you_mean(name, known, advice)};
}

/// The newest one of the agent; `otherwise` is called where there is none.
void find_newest(const exchange_ptr& x, const agent_name& who, const dispatch_reader& then,
                 std::function<void()> otherwise) {
  store::list_dispatches op;
  op.kernel_id = who.kernel_id;
  op.agent_id = who.agent_id;
  op.limit = 1;
  op.with_bodies = true;
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, then, otherwise = std::move(otherwise)](result<std::vector<dispatch>> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              if (rows->empty())
                return otherwise();
              then(rows->front());
            });
}

void find_by_id(const exchange_ptr& x, const std::string& id, const dispatch_reader& then) {
  ask_store(x->self, x->self->state.parts.store, store::find_dispatch{id},
            [x, id, then](result<std::optional<dispatch>> r) {
              if (r && *r)
                return then(**r);
              // The agent may have been taken out of the configuration.
              const bool is_name = r || id.size() < queue::min_id_prefix;
              const auto why = is_name ? not_found(*x, id) : r.error();
              if (!r && r.error().code != errc::invalid_argument)
                return x->fail_with(why);
              find_newest(x, read_agent(*x, id), then, [x, id, why] {
                auto e = why;
                if (e.next.empty())
                  e.next = advice;
                fail_as_unknown(x, id, e);
              });
            });
}

} // namespace

error no_such_agent(const exchange& x, const std::string& kernel_id, const std::string& name) {
  return {errc::not_found, "no such agent: " + name,
          kernel_id.empty() ? x.configuration->path : kernel_id,
          did_you_mean(name, agent_ids(x, kernel_id), "list them with: boyd agents")};
}

void refuse_agent(const exchange_ptr& x, const std::string& kernel_id, const std::string& name) {
  const auto& p = x->self->state.parts;
  // Who cannot read the file again has read it just now.
  if (!p.context->parse_configuration)
    return x->fail_with(no_such_agent(*x, kernel_id, name));
  const auto& path = x->configuration->path;
  ask<workspace_reply>(x->self, p.workspace, workspace_request{{}, read_configuration{path}},
                       [x, kernel_id, name, path](const result<workspace_reply>& r) {
                         const bool is_read = r && r->configuration && *r->configuration;
                         if (is_read && is_configured(**r->configuration, {kernel_id, name}))
                           return x->fail_with(
                               {errc::not_found,
                                "agent " + name +
                                    " is in the configuration file, but the running node has not " +
                                    "read it yet",
                                path, "boyd reload"});
                         x->fail_with(no_such_agent(*x, kernel_id, name));
                       });
}

bool refuse_unknown_filter(const exchange_ptr& x) {
  const auto kernel = x->query("kernel");
  if (!kernel.empty() && x->configuration->find_kernel(kernel) == nullptr) {
    std::vector<std::string_view> known;
    for (const auto& k : x->configuration->kernels)
      known.emplace_back(k.kernel_id);
    x->fail_with({errc::not_found, "no such kernel: " + kernel, x->configuration->path,
                  did_you_mean(kernel, known, "list them with: boyd status")});
    return true;
  }
  const auto agent = x->query("agent");
  if (agent.empty() || is_configured(*x->configuration, {kernel, agent}))
    return false;
  refuse_agent(x, kernel, agent);
  return true;
}

void find_last_begun(const exchange_ptr& x, const dispatch_reader& then,
                     std::function<void()> otherwise) {
  store::list_dispatches op;
  op.kernel_id = x->query("kernel");
  op.limit = looked_through;
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, then, otherwise = std::move(otherwise)](result<std::vector<dispatch>> rows) {
              if (!rows)
                return x->fail_with(rows.error());
              std::erase_if(*rows, [](const dispatch& d) {
                return d.status == dispatch_status::pending || !d.started_at;
              });
              const auto last = std::ranges::max_element(
                  *rows, {}, [](const dispatch& d) { return *d.started_at; });
              if (last == rows->end())
                return otherwise();
              then(*last);
            });
}

void fail_as_unknown(const exchange_ptr& x, const std::string& id, const error& otherwise) {
  const bool is_short = id.size() >= least_typed && id.size() < queue::min_random_part &&
                        id.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_short)
    return x->fail_with(otherwise);
  store::list_dispatches op;
  op.limit = most_compared;
  ask_store(x->self, x->self->state.parts.store, std::move(op),
            [x, id, otherwise](const result<std::vector<dispatch>>& rows) {
              std::string named;
              std::size_t count = 0;
              for (const auto& d : rows ? *rows : std::vector<dispatch>{}) {
                const auto random = queue::random_part_of(d.dispatch_id);
                if (random.starts_with(id) && ++count <= most_named)
                  named += (named.empty() ? "" : ", ") +
                           std::string(random.substr(0, queue::min_random_part)) + " of " +
                           d.kernel_id + "/" + d.agent_id;
              }
              if (count == 0)
                return x->fail_with(otherwise);
              x->fail_with({errc::not_found,
                            "a short id needs " + std::to_string(queue::min_random_part) +
                                " characters: " + id,
                            {},
                            "runs that begin so: " + named + (count > most_named ? ", …" : "")});
            });
}

void find_dispatch(const exchange_ptr& x, const std::string& name, const dispatch_reader& then) {
  if (name == newest_run)
    return find_last_begun(
        x, [x, then](const dispatch& d) { find_by_id(x, d.dispatch_id, then); },
        [x] {
          x->fail_with({errc::not_found, "no runs yet", {}, "run a cycle: boyd cycle"});
        });
  const auto who = read_agent(*x, name);
  if (!is_configured(*x->configuration, who))
    return find_by_id(x, name, then);
  find_newest(x, who, then, [x, who] {
    x->fail_with({errc::not_found,
                  "agent " + who.agent_id + " has not run yet",
                  {},
                  "run it now: boyd run " + who.agent_id + "; or see: boyd why " + who.agent_id});
  });
}

} // namespace boyd::gateway_impl
