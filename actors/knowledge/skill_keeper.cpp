#include "actors/knowledge/skill_keeper.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/memory/tokens.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"
#include "boyd/skills/bank.hpp"
#include "boyd/skills/facts.hpp"
#include "boyd/skills/lessons.hpp"
#include "boyd/skills/memory_policy.hpp"
#include "boyd/skills/skill.hpp"
#include "boyd/skills/stage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace boyd {

namespace {

/// Of an item's content, what it is found by.
constexpr std::size_t searched_bytes = std::size_t{64} << 10;
/// Of an item's content that is to become a skill.
constexpr std::size_t content_bytes = std::size_t{1} << 20;
/// Scopes whose best items are offered: a run has one, and which one is known when it is read.
constexpr std::size_t most_scopes = 4;
constexpr std::size_t most_skills = 1000;

constexpr std::int64_t no_budget = std::numeric_limits<std::int64_t>::max() / 4;

memory::recall_question question_of(const std::string& text, utc_time at) {
  memory::recall_question q;
  q.text = text;
  q.at = at;
  q.budget_tokens = no_budget;
  return q;
}

/// What its history makes of how well an item fits (docs/context.md).
double worth_of(const std::string& id, context::item_statistics s, utc_time now,
                const context::confidence_rule& ranking) {
  constexpr double fresh = 0.1;
  constexpr double use = 0.1;
  constexpr double base = 0.85;
  constexpr double share = 0.3;
  s.confidence = context::confidence_of(s, id, ranking);
  return (1 - fresh + fresh * context::freshness(s, now)) *
         (1 + use * std::log1p(static_cast<double>(s.use_count))) *
         (base + share * context::importance(s, now));
}

const std::vector<std::string>& secrets_of(const configuration_ptr& configuration) {
  static const std::vector<std::string> none;
  return configuration ? configuration->secrets : none;
}

} // namespace

/// A skill that runs may be told of.
struct skill_keeper::approved_skill {
  skill_view view;
  skills::document text;
};

const config::learning_settings& skill_keeper::settings_of(const std::string& kernel_id) const {
  static const config::learning_settings standard;
  const auto* kernel = configuration_ ? configuration_->find_kernel(kernel_id) : nullptr;
  return kernel == nullptr ? standard : kernel->learning;
}

// -- the bank -------------------------------------------------------------------------------------

void skill_keeper::note(std::string_view id, const graph::learned_item& item) {
  const bool is_in = skills::is_banked(item.counts) && !item.frozen && !item.scope.empty() &&
                     item.counts.policy != context::standing::forgotten;
  const std::string key(id);
  for (const auto& kernel_id : item.kernels) {
    auto& b = banks_[kernel_id];
    const auto known = b.items.find(key);
    if (!is_in) {
      if (known == b.items.end())
        continue;
      b.items.erase(known);
      b.search.reset();
      continue;
    }
    if (known == b.items.end() || known->second.hash != item.hash)
      b.search.reset();
    auto& kept = b.items.insert_or_assign(key, item).first->second;
    // Nobody asks the bank for it, and it is most of an item.
    std::vector<std::string>().swap(kept.referenced_by);
  }
}

bool skill_keeper::is_taken(const config::learning_settings& settings,
                            const graph::learned_item& item) const {
  return std::ranges::find(settings.types, item.type) != settings.types.end();
}

std::string skill_keeper::text_of_object(const std::string& hash, std::size_t most) const {
  if (hash.size() < 2)
    return {};
  auto text = context_->ports.files->read_part(context_->layout().object(hash), 0, most);
  return text ? std::move(*text) : std::string();
}

/// Whole, and what its hash says; empty: it is not on record any more.
std::string skill_keeper::content_of(const graph::learned_item& item) const {
  auto text = text_of_object(item.hash, content_bytes + 1);
  return text.size() <= content_bytes && sha256_hex(text) == item.hash ? text : std::string();
}

memory::recall_index& skill_keeper::search_of(const bank& b) const {
  if (b.search)
    return *b.search;
  b.search = std::make_unique<memory::recall_index>();
  for (const auto& [id, item] : b.items) {
    std::string text = item.path;
    for (const auto& tag : skills::tags_of(item.path))
      text += " " + tag;
    text += "\n" + text_of_object(item.hash, searched_bytes);
    b.search->add(memory::recall_entry{id, {}, id, {}, std::move(text)});
  }
  return *b.search;
}

void skill_keeper::offer_bank(const offer_learned& what, knowledge_reply& reply) const {
  const auto& settings = settings_of(what.kernel_id);
  const auto found = banks_.find(what.kernel_id);
  if (found == banks_.end() || found->second.items.empty() || settings.bank == 0)
    return;
  const auto& b = found->second;
  auto& search = search_of(b);
  const auto now = context_->ports.clock->now();
  auto question = question_of(what.question, now);
  question.limit = settings.bank * most_scopes * 2;
  memory::recall_feedback histories;
  for (const auto& [id, item] : b.items)
    histories.weigh(id, worth_of(id, item.counts, now, what.ranking));
  std::map<std::string, std::size_t> of_scope;
  for (const auto& r : search.recall(question, histories)) {
    const auto& id = search.id(r.place);
    const auto& item = b.items.at(id);
    // What fits in nothing is no answer.
    if (r.score <= 0 || !is_taken(settings, item))
      continue;
    if (!of_scope.contains(item.scope) && of_scope.size() == most_scopes)
      continue;
    if (++of_scope[item.scope] <= settings.bank)
      reply.bank.push_back({id, item, r.score});
  }
}

void skill_keeper::add_bank_files(const draw_lessons& what, knowledge_reply& reply,
                                  const std::map<std::string, graph::learned_item>& items) const {
  const auto& settings = settings_of(what.kernel_id);
  const auto bank_of = banks_.find(what.kernel_id);
  for (const auto& [id, item] : items) {
    const bool is_in = bank_of != banks_.end() && bank_of->second.items.contains(id);
    const bool was_in = item.stage == skills::name_of(skills::stage::bank) ||
                        item.stage == skills::name_of(skills::stage::skill_candidate);
    if (!is_taken(settings, item) || (!is_in && !was_in))
      continue;
    auto banked = skills::bank_item_of(id, item, text_of_object(item.hash, searched_bytes));
    banked.deprecated = !is_in;
    reply.files[skills::bank_file(id)] = skills::to_json(banked);
  }
  if (reply.files.empty() || bank_of == banks_.end())
    return;
  std::vector<skills::bank_entry> all;
  for (const auto& [id, item] : bank_of->second.items)
    if (is_taken(settings, item))
      all.push_back(skills::bank_entry_of(id, item));
  reply.files[skills::bank_index_file] = skills::to_json(std::move(all));
}

// -- skills ---------------------------------------------------------------------------------------

std::vector<std::string> skill_keeper::names_of_skills(const std::string& kernel_id) const {
  auto& files = *context_->ports.files;
  const auto folder = context_->kernel_home(kernel_id) + "/skills";
  std::vector<std::string> names;
  // Not through a link, which an agent may have put there.
  const auto info = files.stat(folder);
  if (!info || info->kind != file_kind::directory)
    return names;
  const auto listed = files.list(folder);
  if (!listed)
    return names;
  for (const auto& name : *listed)
    if (skills::is_skill_name(name) && names.size() < most_skills)
      names.push_back(name);
  std::ranges::sort(names);
  return names;
}

result<skill_view> skill_keeper::view_of(knowledge_index& index, const std::string& kernel_id,
                                         const std::string& name) const {
  skill_view v;
  v.name = name;
  v.id = graph::skill_id(kernel_id, name);
  auto known = index.value(index_area::skills, v.id);
  if (!known)
    return fail(std::move(known.error()));
  if (*known)
    if (auto skill = graph::read_learned_skill(**known))
      v.known = std::move(*skill);
  const auto now = context_->ports.clock->now();
  v.score = context::importance(v.known.counts, now);
  auto text = context_->ports.files->read_below(
      context_->kernel_home(kernel_id), skills::file_of(name), skills::most_document_bytes + 1);
  if (!text) {
    proof_.forget_doubt(v.id);
    v.state = text.error().code == errc::not_found ? "missing" : "unreadable";
    v.problems.push_back(to_string(text.error()));
    return v;
  }
  v.text = std::move(*text);
  v.hash = sha256_hex(v.text);
  // Bytes of an earlier version are not in force again because somebody has put them there.
  const auto* version = skills::version_with(v.known, v.hash);
  if (version != nullptr && version != &v.known.versions.back())
    version = nullptr;
  if (version == nullptr) {
    proof_.forget_doubt(v.id);
  } else if (auto doubt = proof_.doubt_of(v.id, *version, facts_.position()); !doubt.empty()) {
    v.problems.push_back(std::move(doubt));
    version = nullptr;
  } else if (proof_.is_disabled(v.id)) {
    v.known.disabled = true;
  }
  v.version = version == nullptr ? 0 : version->number;
  v.state = version == nullptr ? "not approved"
                               : std::string(skills::name_of(skills::state_of(v.known, now)));
  if (!context_->parse_tree) {
    v.state = "unreadable";
    v.problems.push_back("front matter cannot be parsed here");
    return v;
  }
  const auto parsed = skills::parse_document(v.text, context_->parse_tree, name);
  for (const auto& f : parsed.findings)
    v.problems.push_back(skills::to_text(f));
  v.is_sound = parsed.value.has_value();
  if (version == nullptr)
    for (const auto& f : skills::scan_document(v.text, secrets_of(configuration_)))
      v.problems.push_back(skills::to_text(f));
  if (parsed.value)
    v.description = parsed.value->description;
  else if (version != nullptr)
    v.state = "unreadable";
  return v;
}

result<std::vector<skill_view>> skill_keeper::all_skills(knowledge_index& index,
                                                         const std::string& kernel_id) const {
  std::set<std::string> names;
  for (auto& name : names_of_skills(kernel_id))
    names.insert(std::move(name));
  // Those whose files are gone, too.
  auto read = index.each(index_area::skills, [&](std::string_view id, std::string_view value) {
    const auto of = graph::names_in_skill_id(id);
    const auto known = graph::read_learned_skill(value);
    if (of && of->first == kernel_id && known && !known->versions.empty())
      names.insert(of->second);
  });
  if (!read)
    return fail(std::move(read.error()));
  std::vector<skill_view> all;
  for (const auto& name : names) {
    auto view = view_of(index, kernel_id, name);
    if (!view)
      return fail(std::move(view.error()));
    all.push_back(std::move(*view));
  }
  return all;
}

result<void> skill_keeper::offer_skills(knowledge_index& index, const offer_learned& what,
                                        knowledge_reply& reply) const {
  const auto& settings = settings_of(what.kernel_id);
  if (settings.skills == 0 || !context_->parse_tree)
    return {};
  std::vector<approved_skill> enabled;
  for (const auto& name : names_of_skills(what.kernel_id)) {
    auto view = view_of(index, what.kernel_id, name);
    if (!view)
      return fail(std::move(view.error()));
    const bool is_enabled = view->state == skills::name_of(skills::skill_state::enabled);
    if (!is_enabled && view->state != skills::name_of(skills::skill_state::degraded))
      continue;
    reply.names.push_back(name);
    if (!is_enabled)
      continue;
    auto parsed = skills::parse_document(view->text, context_->parse_tree, name);
    if (parsed.value)
      enabled.push_back({std::move(*view), std::move(*parsed.value)});
  }
  memory::recall_index search;
  std::vector<skills::offered_skill> offered;
  for (const auto& s : enabled) {
    const auto when = s.text.metadata.find("when_to_use");
    offered.push_back({s.view.name, s.text.description, {}});
    search.add(memory::recall_entry{
        s.view.name,
        {},
        s.view.name,
        {},
        s.view.name + " " + s.text.description + "\n" +
            (when == s.text.metadata.end() ? std::string() : when->second) + "\n" + s.text.body});
  }
  auto left = settings.skill_tokens;
  std::size_t whole = 0;
  for (const auto& r :
       search.recall(question_of(what.question, context_->ports.clock->now()), {})) {
    const auto place = std::ranges::find(offered, search.id(r.place), &skills::offered_skill::name);
    const auto& body = enabled[static_cast<std::size_t>(place - offered.begin())].text.body;
    const auto cost = memory::estimate_tokens(body);
    if (r.score <= 0 || whole == settings.skills || cost > left)
      continue;
    ++whole;
    left -= cost;
    place->body = body;
  }
  reply.section = skills::skills_section(offered);
  return {};
}

result<knowledge_reply> skill_keeper::carry_out(knowledge_index& index,
                                                const offer_learned& what) const {
  knowledge_reply reply;
  offer_bank(what, reply);
  if (auto offered = offer_skills(index, what, reply); !offered)
    return fail(std::move(offered.error()));
  return reply;
}

// -- candidates -----------------------------------------------------------------------------------

/// The text that an approval would make of it: a draft, else the item's content.
void skill_keeper::write_text(candidate_view& c, const std::string& kernel_id) const {
  auto draft = context_->ports.files->read_below(
      context_->kernel_home(kernel_id), skills::draft_file(c.id), skills::most_document_bytes + 1);
  c.drafted = draft.has_value();
  if (const auto content = content_of(c.item); !content.empty())
    c.own_text = skills::render_document(skills::document_of(c.known, c.item, c.name, content));
  if (!draft && c.own_text.empty()) {
    c.problems.push_back("the content of " + c.known.path +
                         " is no longer recorded; the next run that reads it records it again");
    return;
  }
  c.text = draft ? std::move(*draft) : c.own_text;
  c.hash = sha256_hex(c.text);
  if (!context_->parse_tree)
    return c.problems.push_back("front matter cannot be parsed here");
  const auto parsed = skills::parse_document(c.text, context_->parse_tree);
  for (const auto& f : parsed.findings)
    c.problems.push_back(skills::to_text(f));
  c.is_sound = parsed.value.has_value();
  if (parsed.value) {
    c.name = parsed.value->name;
    c.description = parsed.value->description;
  }
  for (const auto& f : skills::scan_document(c.text, secrets_of(configuration_)))
    c.problems.push_back(skills::to_text(f));
}

/// An approval wrote the file, and broke off before its fact: it is the candidate's, still.
bool has_left(const candidate_view& c, const skill_view& s) {
  return s.name == c.name && s.known.versions.empty() && !s.hash.empty() && s.hash == c.hash;
}

bool has_left(const candidate_view& c, const std::vector<skill_view>& known) {
  return std::ranges::any_of(known, [&](const skill_view& s) { return has_left(c, s); });
}

result<std::vector<candidate_view>>
skill_keeper::all_candidates(knowledge_index& index, const std::string& kernel_id,
                             const std::vector<skill_view>& known) const {
  std::vector<candidate_view> all;
  auto read = index.each(index_area::candidates, [&](std::string_view id, std::string_view value) {
    auto c = graph::read_learned_candidate(value);
    if (!c || c->kernel_id != kernel_id)
      return;
    auto& view = all.emplace_back();
    view.id = id;
    view.known = std::move(*c);
  });
  if (!read)
    return fail(std::move(read.error()));
  std::set<std::string> names;
  for (const auto& s : known)
    names.insert(s.name);
  for (auto& c : all) {
    auto item = index.value(index_area::items, c.known.context_id);
    if (!item)
      return fail(std::move(item.error()));
    if (*item)
      if (auto learned = graph::read_learned_item(**item))
        c.item = std::move(*learned);
    c.status = skills::status_of(c.known, c.item);
    if (const auto of = graph::names_in_skill_id(c.known.skill)) {
      c.name = of->second;
      continue; // its text is the skill's
    }
    const auto plain = skills::name_of_path(c.known.path);
    c.name = plain;
    write_text(c, kernel_id);
    for (int n = 2; names.contains(c.name) && !has_left(c, known); ++n) {
      c.name = plain.substr(0, skills::most_name_characters - 4) + "-" + std::to_string(n);
      c.problems.clear();
      write_text(c, kernel_id);
      if (c.drafted)
        break; // its text names it
    }
    names.insert(c.name);
  }
  return all;
}

result<knowledge_reply> skill_keeper::carry_out(knowledge_index& index,
                                                const look_at_skills& what) const {
  knowledge_reply reply;
  if (what.bank) {
    if (const auto bank_of = banks_.find(what.kernel_id); bank_of != banks_.end())
      for (const auto& [id, item] : bank_of->second.items)
        if (is_taken(settings_of(what.kernel_id), item))
          reply.bank.push_back({id, item, 0});
    return reply;
  }
  if (!what.name.empty()) {
    if (!skills::is_skill_name(what.name))
      return fail(errc::invalid_argument, "not a skill name", what.name,
                  "list them with: boyd skills ls");
    auto view = view_of(index, what.kernel_id, what.name);
    if (!view)
      return fail(std::move(view.error()));
    reply.skills.push_back(std::move(*view));
    return reply;
  }
  auto all = all_skills(index, what.kernel_id);
  if (!all)
    return fail(std::move(all.error()));
  reply.skills = std::move(*all);
  if (!what.candidates)
    return reply;
  auto candidates = all_candidates(index, what.kernel_id, reply.skills);
  if (!candidates)
    return fail(std::move(candidates.error()));
  reply.candidates = std::move(*candidates);
  std::erase_if(reply.skills, [&](const skill_view& s) {
    return std::ranges::any_of(reply.candidates, [&](const auto& c) { return has_left(c, s); });
  });
  return reply;
}

// -- lessons --------------------------------------------------------------------------------------

/// Where a person has said so beforehand. What is approved names its bytes, as always.
result<void> skill_keeper::approve_by_policy(knowledge_index& index, const draw_lessons& what,
                                             knowledge_reply& reply) const {
  const auto& policy = settings_of(what.kernel_id).approves;
  if (!policy)
    return {};
  auto known = all_skills(index, what.kernel_id);
  if (!known)
    return fail(std::move(known.error()));
  auto candidates = all_candidates(index, what.kernel_id, *known);
  if (!candidates)
    return fail(std::move(candidates.error()));
  for (const auto& c : *candidates) {
    const auto& ids = what.about.items;
    const bool is_of_cycle = std::ranges::find(ids, c.known.context_id) != ids.end();
    const auto& counts = c.item.counts;
    // What somebody has drafted, a person reads first; and so what the scan has found.
    if (!is_of_cycle || c.status != graph::candidate_status::pending || !c.is_sound || c.drafted ||
        !c.problems.empty() || counts.confidence <= policy->confidence ||
        useful_rate(counts) <= policy->success_rate)
      continue;
    reply.files[skills::file_of(c.name)] = c.text;
    skills::approval a;
    a.kernel_id = what.kernel_id;
    a.name = c.name;
    a.hash = c.hash;
    a.source = c.known.context_id;
    a.candidate = c.id;
    a.confidence = counts.confidence;
    a.uses = counts.use_count;
    a.by = "policy of the kernel (learning.approve_when)";
    for (auto& fact : skills::facts_of(a, what.at))
      reply.facts.push_back(std::move(fact));
  }
  return {};
}

/// What one kernel decides by itself must not reach the runs of another, nor a text that nobody has
/// tried since it changed.
bool may_act_by_itself(const graph::learned_item& item, const draw_lessons& what) {
  constexpr milliseconds settled = 7 * 24h;
  return std::ranges::all_of(item.kernels,
                             [&](const std::string& k) { return k == what.kernel_id; }) &&
         (!item.counts.changed || what.at - *item.counts.changed >= settled);
}

/// Of the memory policy, what the configuration lets the node do by itself. The decision is the
/// cycle's own, so that the same one drawn again adds nothing.
result<void> skill_keeper::apply_policy(knowledge_index& index, const draw_lessons& what,
                                        const std::map<std::string, graph::learned_item>& items,
                                        knowledge_reply& reply) const {
  const auto* kernel = configuration_ ? configuration_->find_kernel(what.kernel_id) : nullptr;
  if (kernel == nullptr || kernel->memory.policy_auto.empty())
    return {};
  std::vector<skills::policy_item> judged;
  for (const auto& [id, item] : items) {
    if (!may_act_by_itself(item, what))
      continue;
    const auto candidate = index.value(index_area::candidates, skills::candidate_id(id));
    if (!candidate)
      return fail(candidate.error());
    judged.push_back({id, item, candidate->has_value()});
  }
  auto decisions = skills::decide_all(judged, what.at);
  const auto& wanted = kernel->memory.policy_auto;
  std::erase_if(decisions, [&](const skills::policy_decision& d) {
    return std::ranges::find(wanted, skills::name_of(d.action)) == wanted.end();
  });
  for (auto& fact :
       skills::facts_of(decisions, judged, "decision_policy-" + what.cycle_id, what.kernel_id,
                        "policy of the kernel (memory.policy.auto)", what.at))
    reply.facts.push_back(std::move(fact));
  return {};
}

result<knowledge_reply> skill_keeper::carry_out(knowledge_index& index,
                                                const draw_lessons& what) const {
  knowledge_reply reply;
  skills::lesson_input in;
  in.kernel_id = what.kernel_id;
  in.cycle_id = what.cycle_id;
  in.at = what.at;
  const auto& types = settings_of(what.kernel_id).types;
  in.types = {types.begin(), types.end()};
  std::map<std::string, graph::learned_item> items;
  for (const auto& id : what.about.items) {
    auto text = index.value(index_area::items, id);
    const auto candidate = skills::candidate_id(id);
    auto known = text ? index.value(index_area::candidates, candidate) : std::move(text);
    if (!known)
      return fail(std::move(known.error()));
    if (*known)
      in.candidates.insert(candidate);
    if (auto item = *text ? graph::read_learned_item(**text) : std::nullopt) {
      items[id] = *item;
      in.items.push_back({id, std::move(*item)});
    }
  }
  for (const auto& used : what.about.skills) {
    auto text = index.value(index_area::skills, used.id);
    if (!text)
      return fail(std::move(text.error()));
    if (auto skill = *text ? graph::read_learned_skill(**text) : std::nullopt)
      in.skills.push_back({used.id, std::move(*skill), used.successes, used.failures});
  }
  add_bank_files(what, reply, items);
  reply.facts = skills::lessons_of(in);
  if (auto applied = apply_policy(index, what, items, reply); !applied)
    return fail(std::move(applied.error()));
  if (auto approved = approve_by_policy(index, what, reply); !approved)
    return fail(std::move(approved.error()));
  return reply;
}

std::optional<result<knowledge_reply>>
skill_keeper::answer(knowledge_index& index, const knowledge_request& request) const {
  const auto carried_out = [&](const auto& what) -> result<knowledge_reply> {
    if (!is_valid_name(what.kernel_id))
      return fail(errc::invalid_argument, "not a kernel name", what.kernel_id);
    return carry_out(index, what);
  };
  if (const auto* offer = std::get_if<offer_learned>(&request.what))
    return carried_out(*offer);
  if (const auto* look = std::get_if<look_at_skills>(&request.what))
    return carried_out(*look);
  if (const auto* lessons = std::get_if<draw_lessons>(&request.what))
    return carried_out(*lessons);
  return std::nullopt;
}

} // namespace boyd
