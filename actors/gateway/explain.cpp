#include "actors/gateway/explain.hpp"

#include "actors/support/ask.hpp"
#include "boyd/queue/row_record.hpp"
#include "boyd/queue/transitions.hpp"
#include "boyd/record/replay.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace boyd::gateway_impl {

namespace {

constexpr std::size_t whole_id = 36;
/// Dispatches that are looked through for the newest one that has run.
constexpr std::size_t looked_through = 50;
/// A record of the largest size, with all that it names.
constexpr milliseconds reading_time = 2min;

constexpr const char* how_to_list = "list them with: boyd dispatches ls";

/// Its kernel is there, and it is not. Of other kernels nothing is known: `boyd improve` has its
/// own.
bool is_removed(const exchange& x, const record::execution& e) {
  const auto* kernel = x.configuration->find_kernel(e.kernel_id);
  return kernel != nullptr && config::find_agent(*kernel, e.agent_id) == nullptr;
}

bool is_agent(const exchange& x, const std::string& id) {
  return std::ranges::any_of(x.configuration->kernels, [&](const config::kernel& k) {
    return config::find_agent(k, id) != nullptr;
  });
}

/// The newest dispatch of the agent that has run; `otherwise` is called where there is
/// none.
void find_newest_run(const exchange_ptr& x, const std::string& agent_id, execution_reader then,
                     std::function<void()> otherwise) {
  store::list_dispatches op;
  op.kernel_id = x->query("kernel");
  op.agent_id = agent_id;
  op.ended_only = true;
  op.limit = looked_through;
  ask_store(x->self, x->self->state.parts.store, op,
            [x, then = std::move(then),
             otherwise = std::move(otherwise)](const result<std::vector<dispatch>>& rows) {
              if (!rows)
                return x->fail_with(rows.error());
              const auto ran =
                  std::ranges::find_if(*rows, [](const dispatch& d) { return d.fence > 0; });
              if (ran == rows->end())
                return otherwise();
              then(ran->dispatch_id);
            });
}

/// The same of an agent that is configured: that there is none is answered.
void find_newest_run_of(const exchange_ptr& x, const std::string& agent_id, execution_reader then) {
  find_newest_run(x, agent_id, std::move(then), [x, agent_id] {
    x->fail_with({errc::not_found,
                  "the agent " + agent_id + " has not run yet",
                  {},
                  "run it: boyd run " + agent_id});
  });
}

void find_by_id(const exchange_ptr& x, const std::string& id, execution_reader then) {
  ask_store(x->self, x->self->state.parts.store, store::find_dispatch{id},
            [x, id, then = std::move(then)](const result<std::optional<dispatch>>& r) {
              if (r && *r)
                return then((*r)->dispatch_id);
              // Its record may outlive its row for a while.
              if (r && id.size() == whole_id)
                return then(id);
              if (!r && r.error().code != errc::invalid_argument)
                return x->fail_with(r.error());
              auto e = error{errc::not_found,
                             "no run or agent has this name: " + id,
                             {},
                             std::string(how_to_list) + "; `last` is the one that began last"};
              // More than one begins with it.
              if (!r && id.size() >= queue::min_id_prefix)
                e = r.error();
              // The agent may have been taken out of the configuration.
              find_newest_run(x, id, then, [x, id, e] { fail_as_unknown(x, id, e); });
            });
}

/// A parameter that is yes or no.
bool flag(const exchange& x, const std::string& key, bool standard = false) {
  const auto value = x.query(key);
  return value.empty() ? standard : value == "yes";
}

using record_reader = std::function<void(workspace_reply&, const record::execution&)>;

/// What the database knows takes the place of a record that is not there.
void read_row(const exchange_ptr& x, const std::string& dispatch_id, const error& why,
              record_reader then, const record::explain_options& options) {
  ask_store(x->self, x->self->state.parts.store, store::find_dispatch{dispatch_id},
            [x, why, options, then = std::move(then)](const result<std::optional<dispatch>>& r) {
              if (!r || !*r || (*r)->fence == 0)
                return x->fail_with(why);
              const auto e = queue::execution_of(**r);
              workspace_reply reply;
              reply.text = record::explain(e, options);
              reply.record = record::to_json(e);
              reply.replay = record::replay(
                  e,
                  [](const std::string& hash) -> result<std::string> {
                    return fail(errc::not_found, "no content", hash);
                  },
                  {}, record::seal_of(reply.record), x->self->state.parts.context->version);
              then(reply, e);
            });
}

void ask_workspace(const exchange_ptr& x, const std::string& dispatch_id, workspace_request request,
                   record_reader then, const record::explain_options& options = {}) {
  ask<workspace_reply>(
      x->self, x->self->state.parts.workspace, std::move(request),
      [x, dispatch_id, options, then = std::move(then)](result<workspace_reply> r) {
        if (!r && r.error().code == errc::not_found)
          return read_row(x, dispatch_id, r.error(), then, options);
        if (!r)
          return x->fail_with(r.error());
        const auto e = record::read_execution(r->record);
        if (!e)
          return x->fail_with(e.error());
        then(*r, *e);
      },
      reading_time);
}

json advice_json(const record::execution& e) {
  json all = json::array();
  for (const auto& a : record::advise(e))
    all.push_back({{"path", a.path},
                   {"action", a.action},
                   {"relevance", a.relevance},
                   {"quality", a.quality},
                   {"trend", a.trend},
                   {"reason", a.reason}});
  return all;
}

json texts_json(const record::replay_report& r, bool with_text) {
  json all = json::array();
  for (const auto& t : r.texts) {
    json one{{"name", t.name},
             {"fence", t.fence},
             {"recorded", t.recorded},
             {"same", t.same},
             {"bytes", t.text.size()}};
    if (with_text)
      one["text"] = t.text;
    all.push_back(std::move(one));
  }
  return all;
}

json problems_json(const record::replay_report& r) {
  json all = json::array();
  for (const auto& p : r.problems)
    all.push_back({{"where", p.where}, {"what", p.what}, {"hash", p.hash}, {"detail", p.detail}});
  return all;
}

} // namespace

void find_execution(const exchange_ptr& x, const std::string& id, execution_reader then) {
  if (id == "last")
    return find_last_begun(
        x, [then = std::move(then)](const dispatch& d) { then(d.dispatch_id); },
        [x] {
          x->fail_with({errc::not_found, "no runs yet", {}, "run a cycle: boyd cycle"});
        });
  if (is_agent(*x, id))
    return find_newest_run_of(x, id, std::move(then));
  find_by_id(x, id, std::move(then));
}

void explain_run(exchange_ptr x, const std::string& id) {
  record::explain_options options{flag(*x, "context"), flag(*x, "lifecycle"),
                                  flag(*x, "facts", true), flag(*x, "graph")};
  find_execution(x, id, [x, options](const std::string& dispatch_id) {
    workspace_request request;
    request.what = explain_execution{dispatch_id, options};
    const auto tell = [x](workspace_reply& r, const record::execution& e) {
      x->reply("explain", {{"dispatch_id", e.dispatch_id},
                           {"kernel_id", e.kernel_id},
                           {"cycle_id", e.cycle_id},
                           {"agent_id", e.agent_id},
                           {"fate", record::name_of(record::fate_of(e))},
                           {"removed", is_removed(*x, e)},
                           {"markdown", r.text},
                           {"recommendations", advice_json(e)},
                           {"record", json::parse(r.record, nullptr, false)}});
    };
    ask_workspace(x, dispatch_id, std::move(request), tell, options);
  });
}

void replay_run(exchange_ptr x, const std::string& id) {
  find_execution(x, id, [x](const std::string& dispatch_id) {
    workspace_request request;
    request.what = replay_execution{dispatch_id};
    const auto tell = [x](workspace_reply& r, const record::execution& e) {
      const auto& again = *r.replay;
      x->reply("replay", {{"dispatch_id", e.dispatch_id},
                          {"agent_id", e.agent_id},
                          {"holds", again.holds()},
                          {"texts", texts_json(again, flag(*x, "texts"))},
                          {"explanation",
                           {{"recorded", again.explanation_recorded},
                            {"same", again.explanation_same},
                            {"words_differ", again.words_differ},
                            {"written_by", e.attempts.empty() ? "" : e.attempts.back().version},
                            {"bytes", again.explanation.size()}}},
                          {"contents", again.contents},
                          {"problems", problems_json(again)}});
    };
    ask_workspace(x, dispatch_id, std::move(request), tell);
  });
}

} // namespace boyd::gateway_impl
