#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"

namespace boyd::gateway_impl {

namespace {

constexpr std::size_t standard_log = 20;
constexpr std::size_t largest_log = 1000;

void query_repository(const exchange_ptr& x, repository_request request,
                      std::function<void(repository_reply&)> then) {
  ask<repository_reply>(x->self, x->self->state.parts.git_committer, std::move(request),
                        [x, then](result<repository_reply> r) {
                          if (r)
                            return then(*r);
                          auto e = r.error();
                          if (e.next.empty() && e.code == errc::not_found)
                            e.next = "see: boyd state log";
                          x->fail_with(e);
                        });
}

error no_such_file(const exchange& x, const std::string& kernel_id, const std::string& path) {
  const auto home = x.self->state.parts.context->kernel_home(kernel_id);
  return {errc::not_found, "no such file: " + path, home,
          path == "STATE.md" ? "the first cycle creates it: boyd cycle" : "its files: ls " + home};
}

} // namespace

void get_state(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  const auto path = x->query("path").empty() ? std::string("STATE.md") : x->query("path");
  const auto at = x->query("at");
  auto reply = [x, id = kernel->kernel_id, path, at](const std::string& text) {
    x->reply("state", {{"kernel_id", id}, {"path", path}, {"at", at}, {"text", text}});
  };
  if (!at.empty())
    return query_repository(x, {{}, query_file_at{kernel->kernel_id, path, at}},
                            [reply](repository_reply& r) { reply(r.text); });
  state_request request;
  request.what = read_kernel_files{kernel->kernel_id, {path}};
  ask<state_reply>(x->self, x->self->state.parts.state_writer, std::move(request),
                   [x, reply, path, id = kernel->kernel_id](result<state_reply> r) {
                     if (!r)
                       return x->fail_with(r.error());
                     if (const auto bad = r->unreadable.find(path); bad != r->unreadable.end())
                       return x->fail_with(bad->second);
                     auto it = r->files.find(path);
                     if (it == r->files.end())
                       return x->fail_with(no_such_file(*x, id, path));
                     reply(it->second);
                   });
}

void get_state_log(exchange_ptr x) {
  const auto* kernel = x->kernel();
  const auto limit = kernel == nullptr ? std::nullopt : x->limit(standard_log, largest_log);
  if (!limit)
    return;
  query_repository(x, {{}, query_history{kernel->kernel_id, x->query("path"), *limit}},
                   [x](repository_reply& r) {
                     json items = json::array();
                     for (const auto& c : r.commits) {
                       json trailers = json::object();
                       for (const auto& [key, value] : c.trailers)
                         trailers[key] = value;
                       items.push_back({{"hash", c.hash},
                                        {"time", to_json(std::optional(c.time))},
                                        {"subject", c.subject},
                                        {"trailers", std::move(trailers)}});
                     }
                     x->reply("state_log", {{"items", std::move(items)}});
                   });
}

void get_state_diff(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  const auto from = x->query("from");
  const auto to = x->query("to");
  if (from.empty())
    return x->fail_with({errc::invalid_argument, "missing parameter: from", "from",
                         "a cycle id, a time or a commit; see: boyd state log"});
  query_repository(x, {{}, query_diff{kernel->kernel_id, from, to}}, [x, from, to](auto& r) {
    x->reply("state_diff", {{"from", from}, {"to", to}, {"diff", r.text}});
  });
}

} // namespace boyd::gateway_impl
