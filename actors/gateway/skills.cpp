#include "actors/gateway/skill_decisions.hpp"
#include "actors/support/ask.hpp"
#include "boyd/context/reading.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/skills/document.hpp"
#include "boyd/skills/facts.hpp"
#include "boyd/skills/skill.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

namespace boyd::gateway_impl {

namespace {

constexpr const char* list_them = "list them with: boyd skills ls";
/// Commits of a skill's file that are looked through for one of its versions.
constexpr std::size_t searched_commits = 200;
/// Of config::redact_text, in the place of a secret.
constexpr std::string_view redacted_mark = "[redacted]";

json share(std::int64_t part, std::int64_t rest) {
  return part + rest == 0 ? json(nullptr)
                          : json(static_cast<double>(part) / static_cast<double>(part + rest));
}

json skill_json(const skill_view& v, bool with_text) {
  const auto& c = v.known.counts;
  json versions = json::array();
  for (const auto& n : v.known.versions)
    versions.push_back({{"version", n.number},
                        {"hash", n.hash},
                        {"by", n.by},
                        {"reason", n.reason},
                        {"at", to_json(std::optional(n.at))}});
  json out{{"name", v.name},
           {"id", v.id},
           {"description", v.description},
           {"state", v.state},
           {"approved", v.version > 0},
           {"version", v.version},
           {"hash", v.hash},
           {"score", v.score},
           {"confidence", c.confidence},
           {"uses", c.use_count},
           {"successes", c.success_count},
           {"failures", c.failure_count},
           {"success_rate", share(c.success_count, c.failure_count)},
           {"recent", v.known.recent},
           {"last_used", to_json(c.last_used)},
           {"sources", v.known.sources},
           {"versions", std::move(versions)},
           {"problems", v.problems}};
  if (with_text)
    out["text"] = v.text;
  return out;
}

json candidate_json(const candidate_view& c, bool with_text) {
  const auto& counts = c.item.counts;
  json out{{"id", c.id},
           {"source", c.known.context_id},
           {"scope", c.known.scope},
           {"paths", json::array({c.known.path})},
           {"suggested_name", c.name},
           {"description", c.description},
           {"confidence", counts.confidence},
           {"usage", counts.use_count},
           {"referenced", counts.referenced},
           {"success_rate", share(counts.verified_useful, counts.verified_not_useful)},
           {"last_used", to_json(counts.last_used)},
           {"evidence", c.item.referenced_by},
           {"status", graph::name_of(c.status)},
           {"created", to_json(std::optional(c.known.created))},
           {"decided_by", c.known.by},
           {"reason", c.known.reason},
           {"skill", c.known.skill},
           {"hash", c.hash},
           {"drafted", c.drafted},
           {"problems", c.problems}};
  if (with_text)
    out["text"] = c.text;
  return out;
}

/// A skill by its name or id; a candidate by its id, its item's, the beginning of one that no other
/// has, or the name that its skill would get.
result<named> find(const knowledge_reply& all, const std::string& id) {
  for (const auto& s : all.skills)
    if (s.name == id || s.id == id)
      return named{&s, nullptr};
  std::vector<const candidate_view*> fits;
  for (const auto& c : all.candidates) {
    if (c.id == id || c.known.context_id == id)
      return named{nullptr, &c};
    const auto digits = c.id.substr(c.id.find('_') + 1);
    if (c.id.starts_with(id) || digits.starts_with(id) || c.name == id)
      fits.push_back(&c);
  }
  if (fits.size() > 1)
    return fail(errc::invalid_argument, "more than one candidate begins with " + id, {}, list_them);
  if (fits.empty())
    return fail(errc::not_found, "no such skill or candidate: " + id, {}, list_them);
  return named{nullptr, fits.front()};
}

} // namespace

void ask_about_skills(const exchange_ptr& x, look_at_skills what,
                      std::function<void(knowledge_reply&)> then) {
  knowledge_request request;
  request.what = std::move(what);
  ask<knowledge_reply>(x->self, x->self->state.parts.knowledge, std::move(request),
                       [x, then = std::move(then)](result<knowledge_reply> r) {
                         if (!r)
                           return x->fail_with(r.error());
                         then(*r);
                       });
}

void begin_decision(exchange_ptr x, const std::string& id, decision_maker decide) {
  if (!may_decide(*x)) {
    const auto no = not_a_person(*x, id);
    spdlog::warn("skills: {} of {} by {} was refused: {}", x->request.path, id.substr(0, 100),
                 x->request.caller ? x->request.caller->name : "an unknown user", no.what);
    return x->fail_with(no);
  }
  const auto body = x->body();
  if (!body)
    return;
  auto d = std::make_shared<deciding>();
  d->x = x;
  d->id = id;
  d->body = *body;
  d->kernel = x->kernel(d->text("kernel"));
  if (d->kernel == nullptr)
    return;
  if (holds_secret(*x, d->text("reason")))
    return x->fail_with({errc::refused,
                         "the reason seems to contain a secret and would be recorded", "reason",
                         "leave the secret out"});
  ask_about_skills(x, {d->kernel->kernel_id, {}, true}, [d, decide](knowledge_reply& r) {
    d->known = std::move(r);
    const auto found = find(d->known, d->id);
    if (!found)
      return d->x->fail_with(found.error());
    decide(d, *found);
  });
}

json decision_json(const deciding_ptr& d, const char* action, const std::string& id) {
  return {{"kernel_id", d->kernel->kernel_id}, {"action", action}, {"id", id}, {"by", d->by()}};
}

namespace {

// -- decisions ------------------------------------------------------------------------------------

std::string decision_id_of(const deciding& d) {
  return make_uuid_v7(d.now(), *d.x->self->state.parts.context->ports.random);
}

void record(const deciding_ptr& d, std::vector<graph::edge> facts, json answer) {
  const auto subject = "decision: " + answer.value("action", std::string()) + " " +
                       answer.value("skill", answer.value("id", std::string()));
  record_and_commit(
      d->x, d->kernel->kernel_id, subject, decision_id_of(*d), std::move(facts),
      [d, answer = std::move(answer)](const json&) { d->x->reply("skill_decision", answer); });
}

std::string subject_of(const std::string& skill, std::int64_t version) {
  return "skill " + skill + ": version " + std::to_string(version);
}

/// The bytes stand in the file, and in the history, before a fact says that they are approved.
void write_and_record(const deciding_ptr& d, const skills::approval& a, const std::string& text,
                      std::vector<graph::edge> facts, json answer) {
  state_request request;
  request.what = write_skill{d->kernel->kernel_id, skills::file_of(a.name), text,
                             subject_of(a.name, a.version)};
  ask<state_reply>(
      d->x->self, d->x->self->state.parts.state_writer, std::move(request),
      [d, facts = std::move(facts), answer = std::move(answer)](const result<state_reply>& r) {
        if (!r)
          return d->x->fail_with(r.error());
        record(d, facts, answer);
      });
}

/// Another text than the one that was seen.
bool is_other_text(const deciding_ptr& d, const std::string& hash) {
  const auto seen = d->text("hash");
  if (seen.empty()) {
    d->x->fail_with({errc::invalid_argument, "the approval has no hash", "hash",
                     "boyd skills show " + d->id + " shows the hash"});
    return true;
  }
  if (seen == hash)
    return false;
  d->x->fail_with({errc::conflict, "the text has changed: the hash does not match", d->id,
                   "see: boyd skills show " + d->id});
  return true;
}

/// What is approved is what the history keeps and prompts show: no secret may stand there.
bool has_secret(const deciding_ptr& d, const std::string& text, const std::string& what,
                const std::string& next) {
  const auto found = skills::secrets_in(text, d->x->configuration->secrets);
  if (found.empty())
    return false;
  d->x->fail_with({errc::refused,
                   what + " has what looks like a secret, which no approved skill may hold",
                   skills::lines_of(found), next});
  return true;
}

std::string problems_of(const std::vector<std::string>& problems) {
  std::string all;
  for (const auto& p : problems)
    all += (all.empty() ? "" : "; ") + p;
  return all;
}

/// Its own file stands for what nobody knows the source of.
std::string source_of(const deciding_ptr& d, const skill_view& s) {
  if (!s.known.sources.empty())
    return s.known.sources.front();
  return context::item_id(context::scope_of_kernel(d->kernel->kernel_id), context::item_type::file,
                          skills::file_of(s.name));
}

void approve_candidate(const deciding_ptr& d, const candidate_view& c) {
  if (c.status == graph::candidate_status::approved)
    return d->x->fail_with({errc::conflict, "already approved by " + c.known.by, c.id,
                            "see: boyd skills show " + c.name});
  if (!c.is_sound)
    return d->x->fail_with({errc::refused, "no text to approve: " + problems_of(c.problems), c.id,
                            "add a text: boyd skills draft " + d->id});
  if (is_other_text(d, c.hash) ||
      has_secret(d, c.text, "the text",
                 "write it without the secret (a placeholder such as $PASSWORD or "
                 "<password> may stand there): boyd skills draft " +
                     d->id + " FILE"))
    return;
  const auto taken = std::ranges::find(d->known.skills, c.name, &skill_view::name);
  if (taken != d->known.skills.end())
    return d->x->fail_with({errc::conflict, "a skill with this name exists: " + c.name, c.id,
                            "use another name in the draft"});
  skills::approval a;
  a.kernel_id = d->kernel->kernel_id;
  a.name = c.name;
  a.hash = c.hash;
  a.source = c.known.context_id;
  a.candidate = c.id;
  a.confidence = c.item.counts.confidence;
  a.uses = c.item.counts.use_count;
  a.by = d->by();
  a.reason = d->text("reason");
  auto answer = decision_json(d, "approve", c.id);
  answer["skill"] = c.name;
  answer["version"] = a.version;
  answer["hash"] = c.hash;
  write_and_record(d, a, c.text, skills::facts_of(a, d->now()), std::move(answer));
}

/// Of a file that is there: imported, or changed since it was approved.
void approve_file(const deciding_ptr& d, const skill_view& s) {
  if (s.version > 0)
    return d->x->fail_with(
        {errc::conflict, "this text is already approved, as version " + std::to_string(s.version),
         s.name, "to enable it: boyd skills enable " + s.name});
  if (!s.is_sound)
    return d->x->fail_with({errc::refused, "cannot approve it: " + problems_of(s.problems), s.name,
                            "fix skills/" + s.name + "/SKILL.md"});
  if (is_other_text(d, s.hash) ||
      has_secret(d, s.text, "the text",
                 "write a placeholder such as $PASSWORD or <password> "
                 "there, in skills/" +
                     s.name + "/SKILL.md, then: boyd skills approve " + s.name))
    return;
  skills::approval a;
  a.kernel_id = d->kernel->kernel_id;
  a.name = s.name;
  a.version = skills::next_version(s.known);
  a.hash = s.hash;
  a.source = source_of(d, s);
  a.confidence = s.known.versions.empty() ? graph::skill_rules{}.confidence_of_imported
                                          : s.known.counts.confidence;
  a.uses = s.known.counts.use_count;
  a.by = d->by();
  a.reason = d->text("reason");
  auto answer = decision_json(d, "approve", s.id);
  answer["skill"] = s.name;
  answer["version"] = a.version;
  answer["hash"] = s.hash;
  write_and_record(d, a, s.text, skills::facts_of(a, d->now()), std::move(answer));
}

void decide_candidate(const deciding_ptr& d, const named& what, const char* action) {
  if (what.candidate == nullptr)
    return d->x->fail_with({errc::invalid_argument,
                            "not a candidate: " + d->id,
                            {},
                            "to disable a skill: boyd skills disable " + d->id});
  const auto& c = *what.candidate;
  if (c.status == graph::candidate_status::approved)
    return d->x->fail_with({errc::conflict, "already approved by " + c.known.by, c.id,
                            "to disable the skill: boyd skills disable " + c.name});
  record(d,
         {skills::fact_of({c.id, action, decision_id_of(*d), d->by(), d->text("reason"),
                           c.item.counts.referenced},
                          d->now())},
         decision_json(d, action, c.id));
}

void switch_skill(const deciding_ptr& d, const named& what, const char* action) {
  if (what.skill == nullptr)
    return d->x->fail_with({errc::invalid_argument,
                            "this is a candidate: " + d->id,
                            {},
                            "decide with: boyd skills approve|reject|defer " + d->id});
  const auto& s = *what.skill;
  if (s.known.versions.empty())
    return d->x->fail_with({errc::refused, "not approved", s.name,
                            "review and approve it: boyd skills approve " + s.name});
  record(d,
         {skills::fact_of({s.id, action, decision_id_of(*d), d->by(), d->text("reason"), 0},
                          d->now())},
         decision_json(d, action, s.id));
}

// -- rollback -------------------------------------------------------------------------------------

/// A version that is looked for in the history of its file.
struct rolling_back {
  deciding_ptr d;
  const skill_view* skill = nullptr;
  graph::skill_version version;
  std::vector<commit_info> commits;
  std::size_t next = 0;
  std::string kept; ///< instead of the version, with [redacted] where it has a secret

  std::string what() const { return "version " + std::to_string(version.number); }
  std::string how_to_go_on() const {
    return "write it without the secret into skills/" + skill->name +
           "/SKILL.md, then: boyd skills approve " + skill->name;
  }
};

using rolling_ptr = std::shared_ptr<rolling_back>;

void restore(const rolling_ptr& r, const std::string& old) {
  const auto& d = r->d;
  const auto& s = *r->skill;
  if (has_secret(d, old, r->what(), r->how_to_go_on()))
    return;
  skills::approval a;
  a.kernel_id = d->kernel->kernel_id;
  a.name = s.name;
  a.version = skills::next_version(s.known);
  const auto text = skills::with_version(old, a.version);
  a.hash = sha256_hex(text);
  a.source = source_of(d, s);
  a.confidence = s.known.counts.confidence;
  a.uses = s.known.counts.use_count;
  a.by = d->by();
  a.reason = graph::rollback_reason(r->version.number, d->text("reason"));
  auto facts = skills::facts_of(a, d->now());
  facts.push_back(
      skills::fact_of({s.id, "rollback", decision_id_of(*d), d->by(), a.reason, 0}, d->now()));
  auto answer = decision_json(d, "rollback", s.id);
  answer["skill"] = s.name;
  answer["version"] = a.version;
  answer["from_version"] = r->version.number;
  answer["hash"] = a.hash;
  write_and_record(d, a, text, std::move(facts), std::move(answer));
}

/// The bytes of the version are in none of the commits.
void tell_not_kept(const rolling_ptr& r) {
  const auto& name = r->skill->name;
  if (r->kept.empty())
    return r->d->x->fail_with({errc::not_found, r->what() + " is not in the history",
                               skills::file_of(name),
                               "its SHA-256 is " + r->version.hash +
                                   "; write it again, then: boyd skills approve " + name});
  std::vector<skills::finding> hidden;
  int number = 0;
  for (const auto line : split(r->kept, '\n'))
    if (++number; line.find(redacted_mark) != line.npos)
      hidden.push_back({number, {}, {}});
  r->d->x->fail_with({errc::refused,
                      r->what() + " had what looks like a secret, which the history has not kept",
                      skills::lines_of(hidden), r->how_to_go_on()});
}

/// The commit that an approval makes says so; a cycle's may have taken the file before it.
void note_kept(const rolling_ptr& r, const commit_info& commit, std::string text) {
  if (text.find(redacted_mark) == text.npos)
    return;
  if (r->kept.empty() || commit.subject == subject_of(r->skill->name, r->version.number))
    r->kept = std::move(text);
}

void look_at_commit(const rolling_ptr& r) {
  const auto& d = r->d;
  if (r->next == r->commits.size())
    return tell_not_kept(r);
  repository_request request;
  request.what = query_file_at{d->kernel->kernel_id, skills::file_of(r->skill->name),
                               r->commits[r->next].hash};
  ask<repository_reply>(d->x->self, d->x->self->state.parts.git_committer, std::move(request),
                        [r](const result<repository_reply>& found) {
                          if (found && sha256_hex(found->text) == r->version.hash)
                            return restore(r, found->text);
                          if (found)
                            note_kept(r, r->commits[r->next], found->text);
                          ++r->next;
                          look_at_commit(r);
                        });
}

void roll_back(const deciding_ptr& d, const named& what) {
  if (what.skill == nullptr)
    return d->x->fail_with({errc::invalid_argument, "not a skill: " + d->id, {}, list_them});
  const auto& s = *what.skill;
  const auto& versions = s.known.versions;
  const auto wanted = d->text("version");
  std::int64_t number = 0;
  if (wanted.empty() && versions.size() > 1)
    number = versions[versions.size() - 2].number;
  else
    std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  const auto found = std::ranges::find(versions, number, &graph::skill_version::number);
  if (found == versions.end())
    return d->x->fail_with({errc::not_found,
                            wanted.empty() ? "no earlier version" : "no such version: " + wanted,
                            s.name, "boyd skills show " + s.name + " lists the versions"});
  auto r = std::make_shared<rolling_back>();
  r->d = d;
  r->skill = &s;
  r->version = *found;
  if (s.hash == found->hash)
    return restore(r, s.text);
  repository_request request;
  request.what = query_history{d->kernel->kernel_id, skills::file_of(s.name), searched_commits};
  ask<repository_reply>(d->x->self, d->x->self->state.parts.git_committer, std::move(request),
                        [r](result<repository_reply> history) {
                          if (!history)
                            return r->d->x->fail_with(history.error());
                          r->commits = std::move(history->commits);
                          look_at_commit(r);
                        });
}

} // namespace

void list_skills(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  const bool with_texts = x->query("texts") == "yes";
  ask_about_skills(x, {kernel->kernel_id, {}, true}, [x, kernel, with_texts](knowledge_reply& r) {
    json skills = json::array();
    for (const auto& s : r.skills)
      skills.push_back(skill_json(s, with_texts));
    json candidates = json::array();
    for (const auto& c : r.candidates)
      candidates.push_back(candidate_json(c, with_texts));
    x->reply("skills", with_losses({{"kernel_id", kernel->kernel_id},
                                    {"skills", std::move(skills)},
                                    {"candidates", std::move(candidates)}},
                                   r));
  });
}

void show_skill(exchange_ptr x, const std::string& id) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  ask_about_skills(x, {kernel->kernel_id, {}, true}, [x, kernel, id](knowledge_reply& r) {
    const auto found = find(r, id);
    if (!found)
      return x->fail_with(found.error());
    json body{{"kernel_id", kernel->kernel_id}, {"skill", nullptr}, {"candidate", nullptr}};
    if (found->skill != nullptr)
      body["skill"] = skill_json(*found->skill, true);
    else
      body["candidate"] = candidate_json(*found->candidate, true);
    x->reply("skill", std::move(body));
  });
}

void approve_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id, [](const deciding_ptr& d, const named& what) {
    if (what.candidate != nullptr)
      approve_candidate(d, *what.candidate);
    else
      approve_file(d, *what.skill);
  });
}

void reject_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id, [](const deciding_ptr& d, const named& what) {
    decide_candidate(d, what, "reject");
  });
}

void defer_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id, [](const deciding_ptr& d, const named& what) {
    decide_candidate(d, what, "defer");
  });
}

void enable_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id,
                 [](const deciding_ptr& d, const named& what) { switch_skill(d, what, "enable"); });
}

void disable_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id, [](const deciding_ptr& d, const named& what) {
    switch_skill(d, what, "disable");
  });
}

void roll_back_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id, roll_back);
}

} // namespace boyd::gateway_impl
