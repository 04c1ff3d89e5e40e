#include "actors/mcp/parts.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/time.hpp"
#include "boyd/ports/clock.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace boyd::mcp_pool {

namespace {

constexpr std::size_t trust_bytes = 4u << 20;
/// Changes of the file of trust that wait for each other.
constexpr std::size_t most_jobs = 1000;

using trust_list = std::vector<mcp::trusted_server>;

/// A missing file is an empty list.
void read_trust_list(self_pointer self, std::function<void(result<trust_list>)> then) {
  const auto path = mcp_core::trust_file_of(self->state.context->home);
  ask<workspace_reply>(self, self->state.workspace,
                       workspace_request{{}, read_text_file{path, trust_bytes}},
                       [then, path](result<workspace_reply> r) {
                         if (!r && r.error().code == errc::not_found)
                           return then(trust_list{});
                         if (!r)
                           return then(fail(std::move(r.error())));
                         auto list = mcp::read_trust(r->text);
                         if (!list && list.error().where.empty())
                           list.error().where = path;
                         then(std::move(list));
                       });
}

void next_job(self_pointer self) {
  auto& s = self->state;
  if (s.trusting || s.trust_jobs.empty())
    return;
  s.trusting = true;
  const auto job = std::move(s.trust_jobs.front());
  s.trust_jobs.pop_front();
  job();
}

/// Reads the list, lets `change` make another one of it, and writes that; `done` when it is
/// durable. One at a time: nothing of another change is lost.
void change_trust(self_pointer self, std::function<trust_list(trust_list)> change,
                  std::function<void(result<void>)> done) {
  auto& s = self->state;
  if (s.trust_jobs.size() >= most_jobs)
    return done(
        fail(errc::overloaded, "too many changes to the list of trusted servers are waiting"));
  const auto over = [self, done](result<void> r) {
    self->state.trusting = false;
    done(std::move(r));
    next_job(self);
  };
  s.trust_jobs.emplace_back([self, change, over] {
    read_trust_list(self, [self, change, over](result<trust_list> list) {
      if (!list)
        return over(fail(std::move(list.error())));
      const auto path = mcp_core::trust_file_of(self->state.context->home);
      ask<workspace_reply>(
          self, self->state.workspace,
          workspace_request{{}, write_durable_file{path, mcp::trust_text(change(*list))}},
          [over](result<workspace_reply> r) {
            over(r ? result<void>() : fail(std::move(r.error())));
          });
    });
  });
  next_job(self);
}

using prints_taker = std::function<void(result<mcp::program_prints>)>;

/// Hashes one file after the other of `left`.
void hash_next(self_pointer self, std::vector<std::string> left,
               const std::shared_ptr<mcp::program_prints>& prints, const prints_taker& then) {
  if (left.empty())
    return then(std::move(*prints));
  const auto path = left.back();
  left.pop_back();
  ask<workspace_reply>(self, self->state.workspace, workspace_request{{}, hash_inputs{{path}}},
                       [self, left, path, prints, then](result<workspace_reply> r) {
                         if (!r)
                           return then(fail(std::move(r.error())));
                         prints->emplace(path, r->text);
                         hash_next(self, left, prints, then);
                       });
}

/// The regular files among `paths`, and what links among them lead to, with their hashes.
void hash_programs(self_pointer self, const std::vector<std::string>& paths,
                   const prints_taker& then) {
  if (paths.empty())
    return then(mcp::program_prints{});
  inspect_files look{paths};
  for (const auto& path : paths) // where a link leads to a directory, this is one
    look.paths.push_back(path + "/.");
  ask<workspace_reply>(self, self->state.workspace, workspace_request{{}, std::move(look)},
                       [self, paths, then](result<workspace_reply> r) {
                         if (!r)
                           return then(fail(std::move(r.error())));
                         std::vector<std::string> files;
                         for (std::size_t i = 0; i < paths.size(); ++i) {
                           const auto kind = r->files[i].kind;
                           if (kind == file_kind::regular ||
                               (kind == file_kind::symlink &&
                                r->files[paths.size() + i].kind != file_kind::directory))
                             files.push_back(paths[i]);
                         }
                         hash_next(self, std::move(files), std::make_shared<mcp::program_prints>(),
                                   then);
                       });
}

/// Fills in what the command lines of `view` name, from the `at`-th server on.
void read_programs(self_pointer self, const std::string& workspace,
                   const std::shared_ptr<workspace_view>& view, std::size_t at,
                   const std::function<void()>& then) {
  if (at >= view->found.size())
    return then();
  hash_programs(self, mcp_core::programs_of(workspace, view->found[at]),
                [self, workspace, view, at, then](result<mcp::program_prints> prints) {
                  if (prints)
                    view->found[at].programs = std::move(*prints);
                  else
                    view->found[at].problem =
                        "cannot check the files that it runs: " + to_string(prints.error());
                  read_programs(self, workspace, view, at + 1, then);
                });
}

/// What a person is told of what is trusted from now on.
std::vector<std::string> told_changes(self_pointer self, const mcp::found_server& f,
                                      const std::string& key) {
  std::vector<std::string> lines{"it runs: " + f.words};
  const auto& changes = self->state.changes;
  if (const auto it = changes.find(key); it != changes.end())
    lines.insert(lines.end(), it->second.begin(), it->second.end());
  return lines;
}

/// All processes of one server of a workspace.
void end_servers(self_pointer self, const std::string& file, const std::string& name) {
  std::vector<std::string> keys;
  for (const auto& [key, m] : self->state.members)
    if (m.what.file == file && m.what.name == name)
      keys.push_back(key);
  for (const auto& key : keys)
    end_server(self, key);
}

void trust_found(self_pointer self, trust_promise promise, const std::string& workspace,
                 const mcp::found_server& f) {
  mcp::trusted_server t;
  t.file = mcp_core::file_of(workspace);
  t.name = f.definition.name;
  t.hash = f.hash;
  t.words = f.words;
  t.programs = f.programs;
  t.at = format_rfc3339(self->state.context->ports.clock->now(), true);
  const auto key = mcp_core::key_of(t.name, workspace);
  mcp_trust_reply reply{{}, t.name, t.file, told_changes(self, f, key)};
  change_trust(
      self, [t](trust_list all) { return mcp_core::with_trust(std::move(all), t); },
      [self, promise, reply, key, workspace](result<void> r) mutable {
        if (!r)
          return answer<mcp_trust_reply>(promise,
                                         result<mcp_trust_reply>(fail(std::move(r.error()))));
        spdlog::info("{}: trusted by a person", key);
        self->state.changes.erase(key);
        self->state.seen.erase(workspace);
        end_servers(self, reply.file, reply.server);
        promise.deliver(result<mcp_trust_reply>(std::move(reply)));
      });
}

void forget(self_pointer self, trust_promise promise, const std::string& workspace,
            const std::string& name) {
  const auto file = mcp_core::file_of(workspace);
  change_trust(
      self,
      [file, name](trust_list all) { return mcp_core::without_trust(std::move(all), file, name); },
      [self, promise, file, name, workspace](result<void> r) mutable {
        if (!r)
          return answer<mcp_trust_reply>(promise,
                                         result<mcp_trust_reply>(fail(std::move(r.error()))));
        self->state.seen.erase(workspace);
        end_servers(self, file, name);
        promise.deliver(result<mcp_trust_reply>(mcp_trust_reply{{}, name, file, {}}));
      });
}

/// Where an agent works that may use servers of its .mcp.json; empty for others.
std::string workspace_of(self_pointer self, const config::kernel& k, const config::agent& a) {
  const auto* chat = std::get_if<config::chat_executor>(&a.run);
  if (chat == nullptr || !a.mcp_json)
    return {};
  return chat->workspace.empty() ? self->state.context->kernel_home(k.kernel_id) : chat->workspace;
}

bool names(const workspace_view& v, const std::string& server) {
  return std::ranges::any_of(v.found, [&](const auto& f) { return f.definition.name == server; }) ||
         std::ranges::any_of(v.trusted, [&](const auto& t) { return t.name == server; });
}

/// The workspaces in question, one after the other, until one or more name the server.
struct trust_search {
  trust_promise promise;
  mcp_trust_order order;
  std::vector<std::string> left;
  std::vector<std::pair<std::string, workspace_view>> hits;
};

void finish_search(self_pointer self, trust_search& s) {
  const auto refuse = [&](error e) {
    s.promise.deliver(result<mcp_trust_reply>(fail(std::move(e))));
  };
  if (s.hits.empty())
    return refuse({errc::not_found,
                   "no .mcp.json in an agent's workspace has a server " + s.order.server,
                   {},
                   "set the workspace with --path; its agents need mcp_json: true"});
  if (s.hits.size() > 1)
    return refuse({errc::conflict,
                   "more than one workspace has a server " + s.order.server + ": " +
                       s.hits[0].first + ", " + s.hits[1].first,
                   {},
                   "choose one with --path"});
  const auto& [workspace, view] = s.hits.front();
  const auto has_name = [&](const auto& t) { return t.name == s.order.server; };
  if (s.order.forget && std::ranges::none_of(view.trusted, has_name))
    return refuse({errc::not_found, "the server " + s.order.server + " is not trusted",
                   mcp_core::file_of(workspace), "list them with: boyd tools ls"});
  if (s.order.forget)
    return forget(self, s.promise, workspace, s.order.server);
  const auto f = std::ranges::find_if(
      view.found, [&](const auto& x) { return x.definition.name == s.order.server; });
  if (f == view.found.end())
    return refuse({errc::not_found, "the file no longer has a server " + s.order.server,
                   mcp_core::file_of(workspace),
                   "to stop trusting it: boyd tools forget " + s.order.server});
  if (!f->problem.empty())
    return refuse({errc::invalid_configuration,
                   "the server " + s.order.server + ": " + f->problem,
                   mcp_core::file_of(workspace),
                   {}});
  if (s.order.hash != mcp::pin_of(*f))
    return refuse({errc::conflict,
                   s.order.hash.empty()
                       ? std::string("the decision to trust the server has no hash")
                       : "the server has changed: its hash is now " + mcp::pin_of(*f),
                   mcp_core::file_of(workspace), "review it: boyd tools show " + s.order.server});
  trust_found(self, s.promise, workspace, *f);
}

void search_next(self_pointer self, const std::shared_ptr<trust_search>& s) {
  if (s->left.empty())
    return finish_search(self, *s);
  const auto workspace = s->left.back();
  s->left.pop_back();
  look_into(self, workspace, [self, s, workspace](result<workspace_view> v) {
    if (!v)
      return answer<mcp_trust_reply>(s->promise,
                                     result<mcp_trust_reply>(fail(std::move(v.error()))));
    if (names(*v, s->order.server))
      s->hits.emplace_back(workspace, std::move(*v));
    search_next(self, s);
  });
}

} // namespace

void look_into(self_pointer self, const std::string& workspace, view_taker then) {
  const auto file = mcp_core::file_of(workspace);
  ask<workspace_reply>(
      self, self->state.workspace, workspace_request{{}, read_text_file{file, mcp::mcp_json_bytes}},
      [self, workspace, file, then](result<workspace_reply> r) {
        auto view = std::make_shared<workspace_view>();
        if (!r && r.error().code != errc::not_found)
          return then(fail(std::move(r.error())));
        if (r) {
          auto found = mcp::read_mcp_json(r->text, self->state.context->environment);
          if (!found) {
            found.error().where = file;
            return then(fail(std::move(found.error())));
          }
          view->found = std::move(*found);
        }
        read_programs(self, workspace, view, 0, [self, workspace, view, then] {
          read_trust_list(self, [self, workspace, view, then](result<trust_list> list) {
            if (!list)
              return then(fail(std::move(list.error())));
            for (auto& f : view->found)
              if (f.problem.empty())
                f.problem = mcp::unseen_problem(f, self->state.configuration->secrets);
            view->trusted = std::move(*list);
            std::erase_if(view->trusted,
                          [&](const auto& t) { return t.file != mcp_core::file_of(workspace); });
            view->servers = mcp_core::judge(workspace, view->found, view->trusted);
            self->state.seen[workspace] = view->servers;
            then(std::move(*view));
          });
        });
      });
}

std::vector<const config::agent*> agents_in(self_pointer self, const std::string& workspace) {
  std::vector<const config::agent*> all;
  for (const auto& k : self->state.configuration->kernels)
    for (const auto& a : k.agents)
      if (workspace_of(self, k, a) == workspace)
        all.push_back(&a);
  return all;
}

std::vector<std::string> open_workspaces(self_pointer self) {
  std::vector<std::string> all;
  for (const auto& k : self->state.configuration->kernels)
    for (const auto& a : k.agents)
      if (const auto path = workspace_of(self, k, a);
          !path.empty() && std::ranges::find(all, path) == all.end())
        all.push_back(path);
  return all;
}

trust_promise decide_trust(self_pointer self, const mcp_trust_order& order) {
  auto s = std::make_shared<trust_search>();
  s->promise = self->make_response_promise<result<mcp_trust_reply>>();
  s->order = order;
  auto promise = s->promise;
  s->left = open_workspaces(self);
  auto wanted = order.workspace;
  while (wanted.size() > 1 && wanted.ends_with('/'))
    wanted.pop_back();
  if (!wanted.empty()) {
    if (std::ranges::find(s->left, wanted) == s->left.end()) {
      promise.deliver(result<mcp_trust_reply>(
          fail(errc::not_found, "no agent with mcp_json: true uses this workspace", wanted,
               "use the absolute path of the workspace as in the configuration")));
      return promise;
    }
    s->left = {wanted};
  }
  search_next(self, s);
  return promise;
}

caf::typed_response_promise<result<bool>> check_tools(self_pointer self, const server_listed& m) {
  auto promise = self->make_response_promise<result<bool>>();
  const auto it = self->state.members.find(m.key);
  if (it == self->state.members.end()) {
    promise.deliver(result<bool>(fail(errc::cancelled, "the server is no longer needed")));
    return promise;
  }
  const auto what = it->second.what;
  const auto tools = m.tools;
  // The list is read and, the first time, written in one go: nobody changes it in between.
  auto outcome = std::make_shared<result<bool>>(true);
  change_trust(
      self,
      [self, what, tools, outcome](trust_list all) {
        const auto t = std::ranges::find_if(
            all, [&](const auto& x) { return x.file == what.file && x.name == what.name; });
        if (t == all.end()) {
          *outcome =
              fail(errc::refused, "the server " + what.name + " is no longer trusted", what.file);
        } else if (!t->has_tools) {
          t->has_tools = true;
          t->tools = mcp::prints_of(tools);
        } else if (auto changes = mcp::changes_since(*t, tools); !changes.empty()) {
          std::string list;
          for (const auto& c : changes)
            list += (list.empty() ? "" : "; ") + c;
          self->state.changes[mcp_core::key_of(what.name, what.workspace)] = std::move(changes);
          *outcome = fail(
              errc::refused,
              "the tools of the server " + what.name + " differ from the trusted ones: " + list,
              what.file,
              "review them, then run: boyd tools trust " + what.name + " --path " + what.workspace);
        }
        return all;
      },
      [promise, outcome](result<void> r) mutable {
        if (!r)
          return answer<bool>(promise, result<bool>(fail(std::move(r.error()))));
        promise.deliver(std::move(*outcome));
      });
  return promise;
}

namespace {

/// Whether what a server would run now is what was trusted.
result<bool> same_programs(const mcp_core::instance& what, const result<mcp::program_prints>& now) {
  if (!now)
    return fail(now.error());
  std::string changes;
  for (const auto& line : mcp::program_changes(what.programs, *now))
    changes += (changes.empty() ? "" : "; ") + line;
  if (changes.empty())
    return true;
  return fail(errc::refused,
              "the server " + what.name +
                  " would run other files than the trusted ones: " + changes,
              what.file,
              "review it, then run: boyd tools trust " + what.name + " --path " + what.workspace);
}

} // namespace

caf::typed_response_promise<result<bool>> check_programs(self_pointer self,
                                                         const server_starting& m) {
  auto promise = self->make_response_promise<result<bool>>();
  const auto it = self->state.members.find(m.key);
  if (it == self->state.members.end()) {
    promise.deliver(result<bool>(fail(errc::cancelled, "the server is no longer needed")));
    return promise;
  }
  const auto what = it->second.what;
  hash_programs(self, mcp::named_paths(what.definition, what.cwd, what.workspace),
                [promise, what](const result<mcp::program_prints>& now) mutable {
                  promise.deliver(same_programs(what, now));
                });
  return promise;
}

} // namespace boyd::mcp_pool
