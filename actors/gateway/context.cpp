#include "actors/gateway/context.hpp"

#include "actors/context/core.hpp"
#include "actors/support/ask.hpp"
#include "boyd/context/reading.hpp"
#include "boyd/core/workspace_path.hpp"
#include "boyd/ports/clock.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

namespace boyd::gateway_impl {

namespace {

/// Text that is looked through for references; references that are read at once.
constexpr std::size_t text_bytes = std::size_t{256} << 10;
constexpr std::size_t most_references = 200;

/// The directory that all agents of a kernel work in; empty: there is none.
std::string common_root(const config::kernel& kernel, const std::string& kernel_home) {
  std::set<std::string> roots;
  for (const auto& a : kernel.agents)
    roots.insert(reading_root(a, kernel_home));
  return roots.size() == 1 ? *roots.begin() : std::string();
}

std::string text_in_body(const json& body, const char* key) {
  const auto it = body.find(key);
  return it != body.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// A list of texts; nothing when it is something else, which is answered.
std::optional<std::vector<std::string>> texts_in(const exchange_ptr& x, const json& body,
                                                 const char* key) {
  std::vector<std::string> all;
  const auto it = body.find(key);
  if (it == body.end() || it->is_null())
    return all;
  const bool is_list =
      it->is_array() && std::ranges::all_of(*it, [](const json& one) { return one.is_string(); });
  if (!is_list || it->size() > most_references) {
    x->fail_with({errc::invalid_argument,
                  is_list
                      ? "at most " + std::to_string(most_references) +
                            " references can be given at once, not " + std::to_string(it->size())
                      : std::string(key) + " must be a list of texts",
                  std::string(key), is_list ? "give the others in another call" : ""});
    return std::nullopt;
  }
  for (const auto& one : *it)
    all.push_back(one.get<std::string>());
  return all;
}

/// Members that nobody would read are a slip. False: it is answered.
bool has_only(const exchange_ptr& x, const json& body, const std::set<std::string>& known) {
  for (const auto& [key, value] : body.items())
    if (!known.contains(key)) {
      std::string all;
      for (const auto& k : known)
        all += (all.empty() ? "parameters: " : ", ") + k;
      x->fail_with({errc::invalid_argument, "no such member: " + key, "body", all});
      return false;
    }
  return true;
}

/// "@hosts.txt" as one word of a shell.
std::string typed(const context::reference& r) {
  const auto text = context::to_text(r);
  const bool is_plain =
      r.kind == context::reference_kind::file && text.find_first_of(" \t\"'\\") == text.npos;
  return is_plain ? text : "'" + text + "'";
}

/// What no agent of the kernel can ever read, because it lies outside of the directories of all.
std::optional<error> beyond_all_agents(const config::kernel& kernel, const std::string& kernel_home,
                                       const std::vector<std::string>& texts) {
  std::set<std::string> roots;
  for (const auto& a : kernel.agents)
    roots.insert(reading_root(a, kernel_home));
  const auto leads_out = [](const std::string& root, const std::string& path) {
    const auto inside = workspace_path(root, path);
    return !inside && inside.error().code == errc::refused;
  };
  for (const auto& text : texts) {
    auto what = context::parse_declared(text);
    if (!what || what->kind == context::reference_kind::command || roots.empty() ||
        !std::ranges::all_of(roots, [&](const auto& r) { return leads_out(r, what->target); }))
      continue;
    std::string all;
    for (const auto& r : roots)
      all += (all.empty() ? "" : ", ") + r;
    const auto outside = what->target;
    what->target = outside.substr(outside.find_last_of('/') + 1);
    return error{errc::refused,
                 "not added: " + outside + " is outside the director" +
                     (roots.size() == 1 ? "y" : "ies") + " that agents may read (" + all + ")",
                 {},
                 what->target.empty() || what->target == ".."
                     ? "copy it there, and name it by its path below"
                     : "copy it there, then: boyd context add " + typed(*what)};
  }
  return std::nullopt;
}

std::string_view kind_name(context::reference_kind kind) {
  switch (kind) {
  case context::reference_kind::directory:
    return "directory";
  case context::reference_kind::command:
    return "command";
  case context::reference_kind::file:
    break;
  }
  return "file";
}

json entries_json(const context::buffer& b) {
  json items = json::array();
  for (const auto& e : b.entries)
    items.push_back({{"reference", context::to_text(e.what)},
                     {"kind", kind_name(e.what.kind)},
                     {"added_at", to_json(std::optional(e.added))}});
  return items;
}

/// The kernel's buffer; an error is answered.
void read_buffer_of(const exchange_ptr& x, const std::string& kernel_id,
                    const std::function<void(context::buffer)>& then) {
  state_request request;
  request.what = read_kernel_files{kernel_id, {context::buffer_file}};
  ask<state_reply>(x->self, x->self->state.parts.state_writer, std::move(request),
                   [x, then](result<state_reply> r) {
                     if (r && r->unreadable.contains(context::buffer_file))
                       r = fail(r->unreadable.at(context::buffer_file));
                     if (!r)
                       return x->fail_with(r.error());
                     auto kept = context::read_buffer(r->files[context::buffer_file]);
                     if (!kept)
                       return x->fail_with(kept.error());
                     then(std::move(*kept));
                   });
}

json fate_json(const context::candidate_fate& f, const std::string& text) {
  const bool is_text = f.found.verdict == context::reference_verdict::text;
  json one{{"text", text.substr(f.found.offset, f.found.length)},
           {"offset", f.found.offset},
           {"counts", f.counts},
           {"reason", f.why}};
  one["reference"] = is_text ? json(nullptr) : json(context::to_text(f.found.what));
  one["kind"] = is_text ? json(nullptr) : json(kind_name(f.found.what.kind));
  return one;
}

json content_json(const context::offered_item& i) {
  return {{"id", i.id},
          {"path", i.path},
          {"type", context::name_of(i.type)},
          {"origin", context::name_of(i.from)},
          {"sha256", i.content_hash},
          {"content", i.content},
          {"reason", i.failure}};
}

void reply_content(const exchange_ptr& x, const reader_identity& who,
                   const result<context_items>& r) {
  if (!r)
    return x->fail_with(r.error());
  json items = json::array();
  for (const auto& i : r->items)
    items.push_back(content_json(i));
  x->reply(
      "context_content",
      {{"kernel_id", who.kernel->kernel_id}, {"workspace", who.root}, {"items", std::move(items)}});
}

/// Kernel and agent that a body names; an error is answered.
std::optional<reader_identity> reader_in(const exchange_ptr& x, const json& body) {
  const auto* kernel = x->kernel(text_in_body(body, "kernel"));
  return kernel == nullptr ? std::nullopt : reader_of(x, *kernel, text_in_body(body, "agent"));
}

/// Whether the agents of a kernel can read what was added to its buffer.
struct reading_trial {
  exchange_ptr x;
  const config::kernel* kernel = nullptr;
  std::vector<context::wanted> references;
  /// Agents that read below one directory by one policy are told apart by nothing.
  std::vector<std::vector<const config::agent*>> groups;
  std::size_t tried = 0; ///< groups
  json answer;
};

bool read_alike(const config::agent& a, const config::agent& b, const std::string& kernel_home) {
  return reading_root(a, kernel_home) == reading_root(b, kernel_home) && a.policy == b.policy &&
         a.tools == b.tools;
}

void add_problems(reading_trial& trial, std::vector<context::offered_item> items,
                  const std::vector<const config::agent*>& group, const std::string& root) {
  static_cast<void>(commands_to_run(items, trial.references, *group.front(), root));
  json names = json::array();
  for (const auto* a : group)
    names.push_back(a->agent_id);
  for (const auto& i : items)
    if (!i.failure.empty())
      trial.answer["problems"].push_back(
          {{"path", i.path}, {"reason", i.failure}, {"workspace", root}, {"agents", names}});
}

/// Group after group; then answers. A group of which the reading part says nothing is passed over:
/// the references are added whatever comes of this.
void try_next(const std::shared_ptr<reading_trial>& trial) {
  const auto& x = trial->x;
  if (trial->tried == trial->groups.size())
    return x->reply("context_change", std::move(trial->answer));
  const auto tried = trial->tried++;
  const auto& agent = *trial->groups[tried].front();
  const auto& id = trial->kernel->kernel_id;
  const auto home = x->self->state.parts.context->kernel_home(id);
  const auto root = reading_root(agent, home);
  workspace_request request;
  request.what = boyd::read_items{root,         reading_scope(root, home, id), trial->references,
                                  agent.policy, x->configuration->secrets,     {}};
  ask<workspace_reply>(x->self, x->self->state.parts.workspace, std::move(request),
                       [trial, tried, root](result<workspace_reply> r) {
                         if (r)
                           add_problems(*trial, std::move(r->items), trial->groups[tried], root);
                         try_next(trial);
                       });
}

/// Answers `answer` with `problems`: what of `texts` enabled agents cannot read as it is now.
void reply_with_problems(const exchange_ptr& x, const config::kernel& kernel,
                         const std::vector<std::string>& texts, json answer) {
  const auto home = x->self->state.parts.context->kernel_home(kernel.kernel_id);
  auto trial = std::make_shared<reading_trial>();
  trial->x = x;
  trial->kernel = &kernel;
  trial->answer = std::move(answer);
  trial->answer["problems"] = json::array();
  for (const auto& text : texts)
    if (auto what = context::parse_declared(text))
      trial->references.push_back({std::move(*what), context::origin::buffer, false, false, false});
  for (const auto& a : kernel.agents) {
    if (!a.enabled || trial->references.empty())
      continue;
    const auto group = std::ranges::find_if(
        trial->groups, [&](const auto& g) { return read_alike(*g.front(), a, home); });
    if (group != trial->groups.end())
      group->push_back(&a);
    else
      trial->groups.push_back({&a});
  }
  try_next(trial);
}

} // namespace

std::optional<reader_identity> reader_of(const exchange_ptr& x, const config::kernel& kernel,
                                         const std::string& agent_id) {
  const auto home = x->self->state.parts.context->kernel_home(kernel.kernel_id);
  if (agent_id.empty()) {
    auto root = common_root(kernel, home);
    auto nobody = std::make_shared<config::agent>();
    nobody->agent_id = "boyd";
    nobody->sandbox = x->configuration->node_settings.sandbox;
    return reader_identity{&kernel, std::move(nobody), root.empty() ? home : std::move(root)};
  }
  const auto* agent = config::find_agent(kernel, agent_id);
  if (agent == nullptr) {
    refuse_agent(x, kernel.kernel_id, agent_id);
    return std::nullopt;
  }
  return reader_identity{&kernel, {x->configuration, agent}, reading_root(*agent, home)};
}

void read_items_for(const exchange_ptr& x, const reader_identity& who,
                    std::vector<context::wanted> references, memory_wish wish,
                    std::function<void(result<context_items>)> done) {
  if (references.empty() && wish.most == 0 && !wish.learning)
    return done(context_items{});
  auto& parts = x->self->state.parts;
  reading_task task;
  task.context = parts.context;
  task.configuration = x->configuration;
  task.agent = who.agent;
  task.who.home = parts.context->home;
  task.who.kernel_home = parts.context->kernel_home(who.kernel->kernel_id);
  task.who.kernel_id = who.kernel->kernel_id;
  task.who.cycle_id = "dry-run";
  task.who.agent_id = who.agent->agent_id;
  task.who.dispatch_id = "dry-run-context";
  task.who.session_id = exec::make_session_id(who.agent->agent_id, "dry-run");
  task.root = who.root;
  task.references = std::move(references);
  task.secrets = x->configuration->secrets;
  task.question = std::move(wish.question);
  task.recall = wish.most;
  task.learning = std::move(wish.learning);
  task.workspace = parts.workspace;
  task.knowledge = parts.knowledge;
  task.asker = x->self->address();
  const auto reader = spawn_context_reader(x->self->system(), std::move(task));
  x->self->monitor(reader);
  x->self->state.conversations.add(reader);
  ask<context_items>(
      x->self, reader, read_context{},
      [reader, done = std::move(done)](result<context_items> r) { done(std::move(r)); },
      reading_limit());
}

json context_json(const std::vector<context::offered_item>& items,
                  const context::context_block& block) {
  json all = json::array();
  std::int64_t tokens = 0;
  for (const auto& p : block.placed) {
    const auto& i = items[p.offered];
    const bool failed = p.as == context::shown_as::failed;
    tokens += p.tokens;
    all.push_back({{"key", p.key},
                   {"id", i.id},
                   {"path", i.path},
                   {"type", context::name_of(i.type)},
                   {"as", context::name_of(failed ? context::shown_as::left_out : p.as)},
                   {"failed", failed},
                   {"required", i.required},
                   {"section", context::name_of(p.where)},
                   {"semantic", context::name_of(i.about)},
                   {"tokens", p.tokens},
                   {"whole_tokens", p.whole},
                   {"score", i.score},
                   {"importance", i.importance},
                   {"origin", context::name_of(i.from)},
                   {"sha256", i.content_hash},
                   {"reason", p.reason}});
  }
  return {{"budget_tokens", block.budget_tokens},
          {"tokens", tokens},
          {"block_tokens", block.tokens},
          {"items", std::move(all)}};
}

void list_context(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  read_buffer_of(x, kernel->kernel_id, [x, id = kernel->kernel_id](const context::buffer& b) {
    x->reply("context", {{"kernel_id", id}, {"items", entries_json(b)}});
  });
}

void change_context(exchange_ptr x) {
  // Else an agent could give itself, and all others, what no person has named.
  if (x->request.caller && !may_decide(*x))
    return x->fail_with(not_a_person(*x, x->request.path));
  const auto body = x->body();
  if (!body || !has_only(x, *body, {"kernel", "add", "remove", "clear"}))
    return;
  const auto* kernel = x->kernel(text_in_body(*body, "kernel"));
  if (kernel == nullptr)
    return;
  auto add = texts_in(x, *body, "add");
  auto remove = add ? texts_in(x, *body, "remove") : std::nullopt;
  if (!add || !remove)
    return;
  const auto home = x->self->state.parts.context->kernel_home(kernel->kernel_id);
  if (const auto refused = beyond_all_agents(*kernel, home, *add))
    return x->fail_with(*refused);
  const auto clear = body->find("clear");
  const bool clears = clear != body->end() && clear->is_boolean() && clear->get<bool>();
  state_request request;
  request.what = change_buffer{kernel->kernel_id, {std::move(*add), std::move(*remove), clears}};
  ask<state_reply>(x->self, x->self->state.parts.state_writer, std::move(request),
                   [x, kernel](const result<state_reply>& r) {
                     if (!r)
                       return x->fail_with(r.error());
                     const auto& b = r->buffer;
                     auto named = b.added;
                     named.insert(named.end(), b.known.begin(), b.known.end());
                     reply_with_problems(x, *kernel, named,
                                         {{"kernel_id", kernel->kernel_id},
                                          {"added", b.added},
                                          {"known", b.known},
                                          {"removed", b.removed},
                                          {"items", entries_json(b.after)}});
                   });
}

void read_context_of(exchange_ptr x) {
  if (x->request.caller && !may_decide(*x))
    return x->fail_with(not_a_person(*x, x->request.path));
  const auto body = x->body();
  if (!body || !has_only(x, *body, {"kernel", "agent", "references"}))
    return;
  const auto who = reader_in(x, *body);
  const auto named = who ? texts_in(x, *body, "references") : std::nullopt;
  if (!named)
    return;
  const auto done = [x, who = *who](const result<context_items>& r) { reply_content(x, who, r); };
  if (named->empty())
    return read_buffer_of(x, who->kernel->kernel_id,
                          [x, who = *who, done](const context::buffer& b) {
                            read_items_for(x, who, context::references_of(b), {}, done);
                          });
  std::vector<context::wanted> references;
  for (const auto& text : *named) {
    auto what = context::parse_declared(text);
    if (!what)
      return x->fail_with(what.error());
    references.push_back({std::move(*what), context::origin::reference, false, false, false});
  }
  read_items_for(x, *who, std::move(references), {}, done);
}

void resolve_context(exchange_ptr x) {
  const auto body = x->body();
  if (!body || !has_only(x, *body, {"kernel", "agent", "text"}))
    return;
  const auto who = reader_in(x, *body);
  if (!who)
    return;
  auto text = text_in_body(*body, "text");
  if (text.size() > text_bytes)
    return x->fail_with({errc::limit_exceeded,
                         "the text is longer than " + std::to_string(text_bytes) + " bytes", "text",
                         "use a shorter text"});
  workspace_request request;
  request.what = boyd::read_items{who->root, {}, {}, who->agent->policy, {}, text};
  ask<workspace_reply>(x->self, x->self->state.parts.workspace, std::move(request),
                       [x, who = *who, text](const result<workspace_reply>& r) {
                         if (!r)
                           return x->fail_with(r.error());
                         json all = json::array();
                         for (const auto& f : r->fates)
                           all.push_back(fate_json(f, text));
                         x->reply("context_resolve", {{"kernel_id", who.kernel->kernel_id},
                                                      {"workspace", who.root},
                                                      {"has_code", text.find('`') != text.npos},
                                                      {"references", std::move(all)}});
                       });
}

} // namespace boyd::gateway_impl
