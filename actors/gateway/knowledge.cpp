#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace boyd::gateway_impl {

namespace {

using kind = inspect_graph::kind;

struct named_question {
  std::string_view name;
  kind what;
  bool wants_subject;
};

constexpr std::array<named_question, 8> questions{{{"trace", kind::trace, true},
                                                   {"stats", kind::stats, false},
                                                   {"lineage", kind::lineage, true},
                                                   {"why", kind::why, true},
                                                   {"findings", kind::findings, false},
                                                   {"learned", kind::learned, false},
                                                   {"query", kind::query, false},
                                                   {"picture", kind::picture, false}}};

constexpr std::size_t standard_rows = 50;
constexpr std::size_t most_rows = 1000;
constexpr std::size_t most_depth = 10;

error bad_parameter(const std::string& what, const std::string& where, const std::string& next) {
  return {errc::invalid_argument, what, where, next};
}

/// The question as the request says it; an error is answered, and nothing returned.
std::optional<inspect_graph> question_of(const exchange_ptr& x) {
  const auto name = x->query("question");
  const auto* const q = std::find_if(questions.begin(), questions.end(),
                                     [&](const named_question& n) { return n.name == name; });
  const auto refuse = [&](const error& e) {
    x->fail_with(e);
    return std::nullopt;
  };
  if (q == questions.end())
    return refuse(
        bad_parameter("unknown question: " + name, "question",
                      "use trace, stats, lineage, why, findings, learned, query, picture or ends"));
  inspect_graph g;
  g.what = q->what;
  g.subject = x->query("subject");
  if (q->wants_subject && g.subject.empty())
    return refuse(
        bad_parameter("missing parameter: subject", "subject",
                      g.what == kind::lineage ? "use the name of a skill" : "use the id of a run"));
  g.from = x->query("from");
  g.to = x->query("to");
  g.type = x->query("type");
  if (!g.type.empty() && !graph::is_edge_type(g.type))
    return refuse(bad_parameter("not a type of fact: " + g.type, "type",
                                "use used_in, resulted_in, decided_by, validated_by, promoted_to, "
                                "derived_from, supports, reinforces or managed_by"));
  if (const auto since = x->query("since"); !since.empty()) {
    const auto time = parse_rfc3339(since);
    if (!time)
      return refuse(bad_parameter("not a time: since: " + since, "since",
                                  "use RFC 3339, for example 2026-02-13T10:00:00Z"));
    g.since = *time;
  }
  const auto limit = x->limit(standard_rows, most_rows);
  if (!limit)
    return std::nullopt;
  g.most = *limit;
  if (const auto depth = x->query("depth"); !depth.empty()) {
    const bool is_number = depth.size() <= 2 && depth.find_first_not_of("0123456789") == depth.npos;
    if (!is_number || std::stoul(depth) > most_depth)
      return refuse(bad_parameter("depth must be a number from 0 to " + std::to_string(most_depth),
                                  "depth", {}));
    g.depth = std::stoi(depth);
  }
  return g;
}

} // namespace

void ask_about_log(const exchange_ptr& x, knowledge_request question,
                   std::function<void(knowledge_reply&)> then,
                   std::function<void(const error&)> otherwise) {
  ask<knowledge_reply>(
      x->self, x->self->state.parts.knowledge, knowledge_request{{}, catch_up{}},
      [x, question = std::move(question), then = std::move(then),
       otherwise = std::move(otherwise)](const result<knowledge_reply>& caught_up) {
        if (!caught_up)
          return x->fail_with(caught_up.error());
        ask<knowledge_reply>(x->self, x->self->state.parts.inspector, knowledge_request(question),
                             [x, then, otherwise](result<knowledge_reply> r) {
                               if (!r && otherwise)
                                 return otherwise(r.error());
                               if (!r)
                                 return x->fail_with(r.error());
                               then(*r);
                             });
      });
}

json with_losses(json body, const knowledge_reply& r) {
  body["damage"] = r.damage;
  body["left_out"] = r.left_out;
  body["lines"] = r.lines;
  return body;
}

void record_and_commit(const exchange_ptr& x, const std::string& kernel_id,
                       const std::string& subject, const std::string& decision_id,
                       std::vector<graph::edge> facts, std::function<void(json commit)> then) {
  commit_boundary what;
  what.kernel_id = kernel_id;
  what.message = subject;
  what.trailers = {{"Boyd-Cycle", decision_id},
                   {"Boyd-Node", x->self->state.parts.context->node_id}};
  ask<graph_reply>(
      x->self, x->self->state.parts.graph_recorder, graph_request{{}, std::move(facts)},
      [x, what = std::move(what), then = std::move(then)](const result<graph_reply>& recorded) {
        if (!recorded)
          return x->fail_with(recorded.error());
        repository_request request;
        auto named = what;
        named.trailers.emplace_back("Boyd-Graph-Head", recorded->head);
        request.what = std::move(named);
        ask<repository_reply>(x->self, x->self->state.parts.git_committer, std::move(request),
                              [then](const result<repository_reply>& r) {
                                then(r && r->commit ? json(*r->commit) : json(nullptr));
                              });
      });
}

namespace {

/// Of an agent that has not run the whole log says nothing; of a log that is not whole that is
/// told.
void tell_unknown(const exchange_ptr& x, const inspect_graph& question, const error& why) {
  const bool is_run = question.what == kind::trace || question.what == kind::why;
  const auto& agent = question.subject;
  const bool is_agent =
      std::ranges::any_of(x->configuration->kernels, [&agent](const config::kernel& k) {
        return config::find_agent(k, agent) != nullptr;
      });
  if (!is_run || !is_agent || why.code != errc::not_found ||
      why.what.find("not whole") != why.what.npos)
    return x->fail_with(why);
  x->fail_with({errc::not_found,
                "the agent " + agent + " has not run yet",
                {},
                "run it: boyd run " + agent});
}

void answer_from_log(const exchange_ptr& x, const inspect_graph& question) {
  knowledge_request request;
  request.what = question;
  ask_about_log(
      x, std::move(request),
      [x, name = x->query("question")](knowledge_reply& r) {
        auto body = json::parse(r.inspected, nullptr, false);
        if (body.is_object())
          body["damage"] = r.damage;
        if (body.is_object() && (name == "trace" || name == "why"))
          body["invented"] = r.invented;
        x->reply("kg_" + name, std::move(body));
      },
      [x, question](const error& why) { tell_unknown(x, question, why); });
}

/// How far the log is this node's own, for whoever reads the files themselves.
void answer_ends(const exchange_ptr& x) {
  json segments = json::array();
  for (const auto& [number, bytes] : x->self->state.parts.context->written->ends())
    segments.push_back({{"segment", number}, {"bytes", bytes}});
  x->reply("kg_ends", {{"segments", std::move(segments)}});
}

} // namespace

void get_knowledge(exchange_ptr x) {
  if (x->query("question") == "ends")
    return answer_ends(x);
  auto question = question_of(x);
  if (!question)
    return;
  const bool is_run = question->what == kind::trace || question->what == kind::why;
  if (!is_run || question->subject != "last")
    return answer_from_log(x, *question);
  // The log alone knows only which run ended last; it says where the database has none.
  find_last_begun(
      x,
      [x, q = *question](const dispatch& d) mutable {
        if (!is_final(d.status))
          return x->fail_with({errc::not_found,
                               "the last run has not ended: nothing is known of it yet",
                               d.dispatch_id, "ask about another: boyd dispatches ls"});
        q.subject = d.dispatch_id;
        answer_from_log(x, q);
      },
      [x, q = *question] { answer_from_log(x, q); });
}

} // namespace boyd::gateway_impl
