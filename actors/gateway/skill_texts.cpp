#include "actors/gateway/skill_decisions.hpp"
#include "actors/support/ask.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/skills/skill.hpp"
#include "boyd/skills/stage.hpp"

#include <optional>
#include <string>
#include <utility>

/// Texts that become skills, and what the bank holds.
namespace boyd::gateway_impl {

namespace {

/// The text of a SKILL.md in a body; what is none is answered, and nothing returned.
std::optional<skills::document> document_in(const deciding& d) {
  const auto& yaml = d.x->self->state.parts.context->parse_tree;
  if (!yaml) {
    d.x->fail_with({errc::refused, "front matter cannot be parsed here", {}, {}});
    return std::nullopt;
  }
  auto parsed = skills::parse_document(d.text("text"), yaml);
  if (parsed.value)
    return std::move(parsed.value);
  std::string all;
  for (const auto& f : parsed.findings)
    if (f.is_error)
      all += (all.empty() ? "" : "; ") + skills::to_text(f);
  d.x->fail_with({errc::invalid_argument, all, "SKILL.md", "check it with: boyd skills validate"});
  return std::nullopt;
}

json scan_json(const deciding& d) {
  json found = json::array();
  for (const auto& f : skills::scan_document(d.text("text"), d.x->configuration->secrets))
    found.push_back(skills::to_text(f));
  return found;
}

void write_text(const deciding_ptr& d, std::string name, json answer) {
  state_request request;
  request.what = write_kernel_files{d->kernel->kernel_id, {{std::move(name), d->text("text")}}};
  ask<state_reply>(d->x->self, d->x->self->state.parts.state_writer, std::move(request),
                   [d, answer = std::move(answer)](const result<state_reply>& r) {
                     if (!r)
                       return d->x->fail_with(r.error());
                     d->x->reply("skill_text", answer);
                   });
}

void draft(const deciding_ptr& d, const named& what) {
  if (what.candidate == nullptr)
    return d->x->fail_with(
        {errc::invalid_argument,
         "not a candidate: " + d->id,
         {},
         "edit skills/" + d->id + "/SKILL.md, then: boyd skills approve " + d->id});
  const auto& c = *what.candidate;
  if (c.status == graph::candidate_status::approved)
    return d->x->fail_with(
        {errc::conflict, "already approved by " + c.known.by, c.id,
         "edit skills/" + c.name + "/SKILL.md, then: boyd skills approve " + c.name});
  if (!d->body.contains("text"))
    return word_draft(d, c);
  if (const auto text = document_in(*d))
    keep_draft(d, c.id, text->name, json::object());
}

/// Not approved: it needs the same look as any other.
void take_imported(const deciding_ptr& d, const skills::document& text) {
  ask_about_skills(
      d->x, {d->kernel->kernel_id, text.name}, [d, name = text.name](knowledge_reply& r) {
        const auto& there = r.skills.front();
        const auto hash = sha256_hex(d->text("text"));
        if (there.state != "missing" && there.hash != hash)
          return d->x->fail_with({errc::conflict, "a skill with this name exists: " + name, name,
                                  "use another name, or remove skills/" + name});
        auto answer = decision_json(d, "import", graph::skill_id(d->kernel->kernel_id, name));
        answer["skill"] = name;
        answer["hash"] = hash;
        answer["problems"] = scan_json(*d);
        write_text(d, skills::file_of(name), std::move(answer));
      });
}

} // namespace

void import_skill(exchange_ptr x) {
  if (!may_decide(*x))
    return x->fail_with(not_a_person(*x, x->request.path));
  const auto body = x->body();
  if (!body)
    return;
  auto d = std::make_shared<deciding>();
  d->x = x;
  d->body = *body;
  d->kernel = x->kernel(d->text("kernel"));
  const auto text = d->kernel == nullptr ? std::nullopt : document_in(*d);
  if (text)
    take_imported(d, *text);
}

void keep_draft(const deciding_ptr& d, const std::string& candidate_id, const std::string& skill,
                json more) {
  auto answer = decision_json(d, "draft", candidate_id);
  answer["skill"] = skill;
  answer["hash"] = sha256_hex(d->text("text"));
  answer["problems"] = scan_json(*d);
  answer.update(more);
  write_text(d, skills::draft_file(candidate_id), std::move(answer));
}

void draft_skill(exchange_ptr x, const std::string& id) {
  begin_decision(std::move(x), id, draft);
}

void list_bank(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  look_at_skills what;
  what.kernel_id = kernel->kernel_id;
  what.bank = true;
  ask_about_skills(x, std::move(what), [x, kernel](knowledge_reply& r) {
    const auto now = x->self->state.parts.context->ports.clock->now();
    json items = json::array();
    for (const auto& b : r.bank) {
      const auto& c = b.item.counts;
      const auto stands = skills::stage_of(c, now);
      items.push_back({{"id", b.id},
                       {"path", b.item.path},
                       {"type", context::name_of(b.item.type)},
                       {"scope", b.item.scope},
                       {"stage", skills::name_of(stands.where)},
                       {"reason", stands.reason},
                       {"score", stands.score},
                       {"confidence", c.confidence},
                       {"use_count", c.use_count},
                       {"referenced", c.referenced},
                       {"useful_rate", useful_rate(c)},
                       {"last_used", to_json(c.last_used)}});
    }
    x->reply("context_bank",
             with_losses({{"kernel_id", kernel->kernel_id}, {"items", std::move(items)}}, r));
  });
}

} // namespace boyd::gateway_impl
