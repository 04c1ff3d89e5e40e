#include "boyd/core/text.hpp"
#include "session_internal.hpp"

#include <algorithm>
#include <utility>

namespace boyd::mcp {

namespace {

/// What a question may say.
constexpr std::size_t question_bytes = 16u << 10;

const char* method_of(server_call::kind_t kind) {
  switch (kind) {
  case server_call::kind_t::list_resources:
    return "resources/list";
  case server_call::kind_t::read_resource:
    return "resources/read";
  case server_call::kind_t::tool:
    break;
  }
  return "tools/call";
}

json params_of(const server_call& call) {
  json params = json::object();
  switch (call.kind) {
  case server_call::kind_t::list_resources:
    if (!call.cursor.empty())
      params["cursor"] = call.cursor;
    break;
  case server_call::kind_t::read_resource:
    params["uri"] = call.name;
    break;
  case server_call::kind_t::tool:
    params["name"] = call.name;
    params["arguments"] = call.arguments_json.empty() ? json::object() : parse(call.arguments_json);
    break;
  }
  return params;
}

/// As the answer of a person goes to the server.
json answer_json(const question_answer& a) {
  json out = {{"action", a.action}};
  if (a.action == "accept" && !a.content_json.empty())
    out["content"] = parse(a.content_json);
  return out;
}

} // namespace

bool session::impl::must_wait() const {
  return now_in != phase::ready || (o.checks_tools && (!judge || list_in_doubt));
}

/// Also the next round of a call, after people's answers: the tool may be another one meanwhile.
void session::impl::start_call(const std::string& key, steady_time now) {
  const auto it = calls.find(key);
  if (it == calls.end())
    return;
  auto& c = it->second;
  if (must_wait()) {
    waiting.push_back(key);
    return;
  }
  if (auto refused = judge ? judge(c.what) : std::nullopt)
    return finish_call(key, fail(std::move(*refused)));
  auto params = params_of(c.what);
  if (!c.answers.empty())
    params["inputResponses"] = std::exchange(c.answers, json::object());
  if (c.state)
    params["requestState"] = *std::exchange(c.state, std::nullopt);
  const auto name =
      c.what.kind == server_call::kind_t::list_resources ? std::string() : c.what.name;
  c.request = request({open_request::kind_t::call, key, c.deadline}, method_of(c.what.kind),
                      std::move(params), name, now);
}

void session::impl::start_waiting(steady_time now) {
  if (!must_wait())
    for (const auto& key : std::exchange(waiting, {}))
      start_call(key, now);
}

session_effects session::on_tools_checked(call_judge judge, steady_time now) {
  auto& s = *impl_;
  if (s.now_in != impl::phase::ready)
    return {};
  s.judge = std::move(judge);
  s.start_waiting(now);
  return s.take();
}

/// From now on the server has its whole time.
void session::impl::allow_time(open_call& c, steady_time now) {
  c.deadline = now + c.what.timeout;
  c.longest = now + std::max(c.what.timeout, c.what.longest);
}

/// A word of progress keeps its call alive, within bounds.
void session::impl::on_progress(const json& params, steady_time now) {
  const auto& token = member(params, "progressToken");
  const auto id = id_in(token);
  const auto number = id ? number_of(*id) : std::nullopt;
  const auto open = number ? requests.find(*number) : requests.end();
  if (open == requests.end() || open->second.kind != open_request::kind_t::call)
    return;
  const auto it = calls.find(open->second.key);
  if (it == calls.end() || it->second.request != number)
    return;
  auto& c = it->second;
  c.deadline = std::max(c.deadline, std::min(now + c.what.timeout, c.longest));
  open->second.deadline = c.deadline;
}

void session::impl::finish_call(const std::string& key, result<std::string> r) {
  const auto it = calls.find(key);
  if (it == calls.end())
    return;
  std::erase_if(questions, [&](const auto& q) {
    if (q.second.call != key)
      return false;
    out.emplace_back(effect::withdraw{q.first});
    return true;
  });
  calls.erase(it);
  out.emplace_back(effect::call_done{key, std::move(r)});
}

/// The call was not done: once more, in a new session. One that is refused there as well has failed
/// for another reason, or the server would be asked for ever.
void session::impl::on_session_gone(open_call& c, int greeting, steady_time now) {
  c.sent_again = true;
  const auto key = c.what.key;
  c.request.reset();
  allow_time(c, now);
  if (now_in == phase::ready && greeting != greetings)
    return start_call(key, now);
  waiting.push_back(key);
  if (now_in == phase::ready)
    greet_again(now);
}

void session::impl::drop_call(const std::string& key, const std::string& why, steady_time) {
  const auto it = calls.find(key);
  if (it == calls.end())
    return;
  if (const auto id = it->second.request) {
    requests.erase(*id);
    // Closing its stream is how a stateless server over HTTP is told.
    if (!(o.http && era == era_t::modern))
      notify("notifications/cancelled", {{"requestId", *id}, {"reason", why}});
    if (o.http)
      out.emplace_back(effect::abandon{*id});
  }
  std::erase(waiting, key);
  std::erase_if(questions, [&](const auto& q) {
    if (q.second.call != key)
      return false;
    out.emplace_back(effect::withdraw{q.first});
    return true;
  });
  calls.erase(it);
}

void session::impl::on_call_result(const std::string& key, std::string result_json,
                                   steady_time now) {
  const auto all = parse(result_json);
  const auto& type = member(all, "resultType");
  // Servers of earlier revisions do not say it.
  if (era != era_t::modern || type.is_null() || type == "complete")
    return finish_call(key, std::move(result_json));
  if (type == "input_required")
    return on_input_required(key, all, now);
  finish_call(key, fail(errc::parse_error, "the server answered with an unknown result type"));
}

/// The request that an answer without a readable id is for: the one on whose stream it came, else
/// the only one that is open.
std::optional<std::int64_t> session::impl::only_request(std::optional<std::int64_t> via) const {
  if (via)
    return requests.contains(*via) ? via : std::nullopt;
  std::optional<std::int64_t> only;
  for (const auto& [id, r] : requests) {
    if (r.kind == open_request::kind_t::listen)
      continue;
    if (only)
      return std::nullopt;
    only = id;
  }
  return only;
}

/// The answer to a request came and cannot be read: nobody waits for it any longer. True: the
/// request was open.
bool session::impl::end_unread(std::int64_t id, error why, steady_time now) {
  const auto it = requests.find(id);
  if (it == requests.end())
    return false;
  const auto open = it->second;
  requests.erase(it);
  using kind = open_request::kind_t;
  switch (open.kind) {
  case kind::discover:
    if (now_in == phase::probing)
      initialize(now);
    break;
  case kind::initialize:
    fail_session(std::move(why));
    break;
  case kind::tools:
    if (now_in == phase::listing) {
      fail_session(std::move(why));
    } else {
      note(true, "cannot list its tools again: " + why.what);
      end_listing(now);
    }
    break;
  case kind::listen:
    listen_at = now + 30s;
    break;
  case kind::call:
    if (const auto call = calls.find(open.key); call != calls.end()) {
      call->second.request.reset();
      finish_call(open.key, fail(std::move(why)));
    }
    break;
  }
  return true;
}

// -- questions -----------------------------------------------------------------------------------

void session::impl::on_input_required(const std::string& key, const json& result, steady_time now) {
  auto& c = calls.at(key);
  const auto& inputs = member(result, "inputRequests");
  const auto& state = member(result, "requestState");
  if (++c.rounds > most_rounds)
    return finish_call(key,
                       fail(errc::limit_exceeded, "the server still asks for input after " +
                                                      std::to_string(most_rounds) + " rounds"));
  if ((!inputs.is_object() || inputs.empty()) && !state.is_string())
    return finish_call(
        key, fail(errc::parse_error, "the server needs more input, but does not say which"));
  if (inputs.is_object() && inputs.size() > most_questions)
    return finish_call(key,
                       fail(errc::limit_exceeded, "the server asks too many questions at once"));
  if (inputs.is_object())
    for (const auto& [name, wanted] : inputs.items())
      if (text_in(wanted, "method") != "elicitation/create")
        return finish_call(key, fail(errc::refused, "the server needs " +
                                                        text_in(wanted, "method").substr(0, 100) +
                                                        ", which this node does not support"));
  if (state.is_string())
    c.state = state.get<std::string>();
  c.answers = json::object();
  c.gathering = true;
  if (inputs.is_object())
    for (const auto& [name, wanted] : inputs.items())
      ask(key, std::nullopt, name, member(wanted, "params"), now);
  c.gathering = false;
  round_complete(key, now);
}

/// `input`: the question's name in inputRequests, in the stateless era.
void session::impl::ask(const std::string& call, std::optional<rpc_id> request,
                        const std::string& input, const json& params, steady_time now) {
  const auto number = ++last_question;
  const auto it = calls.find(call);
  if (it != calls.end())
    it->second.asked.emplace(number, input);
  questions.emplace(number, open_question{it == calls.end() ? std::string() : call,
                                          std::move(request), now + o.question_timeout});
  question q;
  q.call = call;
  q.mode = text_in(params, "mode") == "url" ? "url" : "form";
  q.message = text_in(params, "message");
  if (const auto& schema = member(params, "requestedSchema"); schema.is_object())
    q.schema_json = dump(schema);
  q.url = text_in(params, "url");
  const bool too_long = q.message.size() + q.schema_json.size() + q.url.size() > question_bytes;
  const bool too_many = questions.size() > most_questions ||
                        (it != calls.end() && ++it->second.questions > most_questions);
  if (!o.asks || too_long || too_many) {
    note(true, "declined a question: " +
                   (too_long  ? std::string("too long")
                    : !o.asks ? std::string("no person can be asked here")
                              : "a call can ask at most " + std::to_string(most_questions)) +
                   ". The question: " + std::string(cut_characters(q.message, 200)));
    return answered(number, {"decline", {}}, now);
  }
  out.emplace_back(effect::ask{number, std::move(q)});
}

void session::impl::answered(std::uint64_t number, const question_answer& a, steady_time now) {
  const auto it = questions.find(number);
  if (it == questions.end())
    return;
  const auto q = it->second;
  questions.erase(it);
  const auto call = calls.find(q.call);
  std::string input;
  if (call != calls.end()) {
    auto& c = call->second;
    if (const auto asked = c.asked.find(number); asked != c.asked.end()) {
      input = asked->second;
      c.asked.erase(asked);
    }
    // The server has its whole time again: a person's does not count.
    if (c.asked.empty())
      allow_time(c, now);
    if (c.request)
      if (const auto open = requests.find(*c.request); open != requests.end())
        open->second.deadline = c.deadline;
  }
  if (q.request)
    return respond(*q.request, answer_json(a));
  if (call == calls.end())
    return;
  call->second.answers[input] = answer_json(a);
  round_complete(q.call, now);
}

void session::impl::round_complete(const std::string& key, steady_time now) {
  const auto& c = calls.at(key);
  if (c.asked.empty() && !c.gathering)
    start_call(key, now);
}

} // namespace boyd::mcp
