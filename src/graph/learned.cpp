#include "boyd/graph/learned.hpp"

#include "boyd/graph/links.hpp"
#include "boyd/graph/lists.hpp"
#include "fact_meta_internal.hpp"
#include "learned_json_internal.hpp"

#include <algorithm>
#include <utility>

namespace boyd::graph {

namespace {

using detail::json;

/// Items that are kept at hand; beyond them the index is asked again.
constexpr std::size_t most_items = 30'000;
constexpr std::size_t number_digits = 20;
/// Facts of one decision.
constexpr double most_parts = 10'000;
/// Executions that are named as evidence, the latest ones.
constexpr std::size_t most_evidence = 10;

/// Keys sort as the numbers do.
std::string number_key(std::uint64_t n) {
  auto digits = std::to_string(n);
  return std::string(number_digits - digits.size(), '0') + digits;
}

context::item_type type_named(std::string_view name) {
  using context::item_type;
  for (const auto t : {item_type::directory, item_type::runtime, item_type::generated})
    if (name == context::name_of(t))
      return t;
  return item_type::file;
}

std::string to_text(const std::vector<edge>& facts) {
  auto all = json::array();
  for (const auto& f : facts)
    all.push_back({{"from", f.from},
                   {"to", f.to},
                   {"type", f.type},
                   {"at", to_unix_ms(f.timestamp)},
                   {"meta", f.meta_json}});
  return dump(all);
}

std::vector<edge> read_facts(std::string_view text) {
  std::vector<edge> facts;
  const auto all = json::parse(text, nullptr, false);
  for (const auto& f : all.is_array() ? all : json::array())
    if (f.is_object())
      facts.push_back({text_in(f, "from"), text_in(f, "to"), text_in(f, "type"),
                       detail::time_in(f, "at").value_or(utc_time{}), text_in(f, "meta")});
  return facts;
}

std::string run_key(const std::string& execution, const fact_meta& meta) {
  const auto fence = meta.number("fence");
  return execution + '\x1f' +
         (fence ? std::to_string(static_cast<std::int64_t>(*fence)) : std::string());
}

} // namespace

std::string to_text(const learned_question& q) {
  return dump({{"text", q.text}, {"items", q.items}, {"at", to_unix_ms(q.at)}});
}

std::optional<learned_question> read_learned_question(std::string_view text) {
  const auto j = json::parse(text, nullptr, false);
  if (!j.is_object())
    return std::nullopt;
  return learned_question{text_in(j, "text"), texts_in(j, "items"),
                          from_unix_ms(number_in(j, "at"))};
}

credit credit_of(std::string_view outcome_meta) {
  const fact_meta meta(outcome_meta);
  const auto what = meta.text("class");
  const bool of_content = what.empty() || what == "none" || what == "deterministic";
  if (!of_content)
    return credit::none;
  const auto verification = meta.text("verification");
  const bool ran = meta.text("execution") == "succeeded";
  if (what == "deterministic" || (ran && verification == "failed"))
    return credit::failure;
  const bool good = verification == "passed" ||
                    (verification != "failed" && ran && meta.text("claim") != "failed");
  return good && meta.text("status") == "done" && !meta.flag("weak") ? credit::success
                                                                     : credit::none;
}

void learner::resume_run(std::string_view key, std::string_view value) {
  const auto j = json::parse(value, nullptr, false);
  if (!j.is_object())
    return;
  open_run run{std::string(key), {}, false};
  if (const auto items = j.find("items"); items != j.end() && items->is_array())
    for (const auto& i : *items)
      if (i.is_object())
        run.items.push_back({text_in(i, "id"), flag_in(i, "cited"), flag_in(i, "counts")});
  auto name = text_in(j, "run");
  ages_[run.number] = name;
  runs_.insert_or_assign(std::move(name), std::move(run));
}

result<learner::item_at_hand*> learner::changing_at_hand(const std::string& id) {
  auto known = items_.find(id);
  if (known == items_.end()) {
    auto text = look_(index_area::items, id);
    if (!text)
      return fail(std::move(text.error()));
    item_at_hand fresh;
    if (auto item = *text ? read_learned_item(**text) : std::nullopt) {
      fresh.listed = true;
      fresh.listed_at = item->counts.last_used;
      fresh.noisy = is_noisy(item->counts);
      fresh.item = std::move(*item);
    }
    known = items_.emplace(id, std::move(fresh)).first;
  }
  known->second.saves = saves_;
  if (!std::exchange(known->second.changed, true))
    changed_items_.push_back(id);
  return &known->second;
}

result<learned_item*> learner::changing(const std::string& id) {
  const auto known = changing_at_hand(id);
  if (!known)
    return fail(known.error());
  return &(*known)->item;
}

result<void> learner::take(const edge& fact, std::uint64_t line) {
  if (fact.type == "used_in")
    return take_use(fact, line);
  if (fact.type == "resulted_in")
    return take_outcome(fact, line);
  if (is_rare(fact.type))
    if (auto taken = uses_.take(fact, line); !taken)
      return taken;
  if (fact.type == "promoted_to")
    changes_.push_back({index_area::promotions, fact.from, fact.to});
  if (fact.type == "managed_by" || fact.type == "reinforces" || fact.type == "promoted_to") {
    const fact_meta meta(fact.meta_json);
    const auto parts = meta.number("of").value_or(1);
    auto decision = meta.text("decision");
    if (parts > 1 && parts <= most_parts && !decision.empty())
      return hold(fact, decision, static_cast<std::size_t>(parts));
  }
  return take_one(fact);
}

result<void> learner::take_one(const edge& fact) {
  if (fact.type == "supports")
    return take_support(fact);
  if ((fact.type == "managed_by" || fact.type == "reinforces") && fact.from.starts_with("ctx_"))
    return take_decision(fact);
  return skills_.take(fact);
}

/// Facts of one decision count once all of them have come: a crash may have cut it.
result<void> learner::hold(const edge& fact, const std::string& decision, std::size_t parts) {
  auto known = held_.find(decision);
  if (known == held_.end()) {
    const auto text = look_(index_area::held, decision);
    if (!text)
      return fail(text.error());
    known = held_.emplace(decision, *text ? read_facts(**text) : std::vector<edge>{}).first;
  }
  known->second.push_back(fact);
  changed_held_.insert(decision);
  if (known->second.size() < parts)
    return {};
  const auto all = std::exchange(known->second, {});
  for (const auto& one : all)
    if (auto taken = take_one(one); !taken)
      return taken;
  return {};
}

result<void> learner::take_use(const edge& fact, std::uint64_t line) {
  const fact_meta meta(fact.meta_json);
  auto found = changing_at_hand(fact.from);
  if (!found)
    return fail(std::move(found.error()));
  (*found)->line = line;
  auto& it = (*found)->item;
  auto& c = it.counts;
  const auto from = meta.text("from");
  if (c.injected == 0) {
    it.type = type_named(meta.text("type"));
    c.created = fact.timestamp;
    c.confidence = context::first_confidence(it.type, from == "declared" || from == "reference");
  }
  const auto hash = meta.text("hash");
  if (!hash.empty() && !it.hash.empty() && hash != it.hash) {
    c.changed = fact.timestamp;
    it.undone = context::standing::open;
    // What was decided of the other content says nothing of this one.
    if (c.policy == context::standing::shortened) {
      c.policy = context::standing::open;
      c.policy_hash.clear();
    }
  }
  if (!hash.empty())
    it.hash = hash;
  if (auto path = meta.text("path"); !path.empty())
    it.path = std::move(path);
  it.frozen = meta.flag("frozen");
  if (auto scope = meta.text("scope"); !scope.empty())
    it.scope = std::move(scope);
  if (auto kernel = meta.text("kernel");
      !kernel.empty() && std::ranges::find(it.kernels, kernel) == it.kernels.end())
    it.kernels.push_back(std::move(kernel));
  ++c.injected;
  const bool cited = meta.flag("cited");
  if (!cited && !meta.flag("used"))
    return {};
  it.undone = context::standing::open;
  ++c.use_count;
  c.referenced += cited ? 1 : 0;
  if (cited) {
    if (it.referenced_by.size() == most_evidence)
      it.referenced_by.erase(it.referenced_by.begin());
    else if (it.referenced_by.size() * 2 > most_evidence)
      it.referenced_by.reserve(most_evidence); // not twice as much as there was
    it.referenced_by.push_back(fact.to);
  }
  c.last_used = std::max(c.last_used.value_or(fact.timestamp), fact.timestamp);
  const bool counts =
      !meta.flag("enforced") || meta.number("accuracy").value_or(1) >= rules_.least_accuracy;
  auto [run, fresh] = runs_.try_emplace(run_key(fact.to, meta));
  if (fresh) {
    run->second.number = number_key(line);
    ages_[run->second.number] = run->first;
  }
  run->second.changed = true;
  run->second.items.push_back({fact.from, cited, counts});
  drop_oldest();
  return {};
}

result<void> learner::take_outcome(const edge& fact, std::uint64_t line) {
  const fact_meta meta(fact.meta_json);
  const auto node = runs_.extract(run_key(fact.from, meta));
  if (node.empty())
    return {};
  const auto& run = node.mapped();
  ages_.erase(run.number);
  changes_.push_back({index_area::open_runs, run.number, std::nullopt});
  const auto what = credit_of(fact.meta_json);
  if (what == credit::none)
    return {};
  const bool good = what == credit::success;
  learned_question served{meta.text("question"), {}, fact.timestamp};
  for (const auto& used : run.items) {
    if (!used.counts)
      continue;
    auto found = changing(used.id);
    if (!found)
      return fail(std::move(found.error()));
    (*found)->undone = context::standing::open;
    auto& c = (*found)->counts;
    detail::count_outcome(c, good, good ? rules_.success_step : -rules_.failure_step);
    if (good && used.cited && (*found)->type == context::item_type::generated)
      served.items.push_back(used.id);
  }
  if (!served.text.empty() && !served.items.empty()) {
    changes_.push_back({index_area::questions, number_key(line), to_text(served)});
    fresh_.push_back(std::move(served));
  }
  return {};
}

/// What a skill's uses mean for an item that it comes from.
result<void> learner::take_support(const edge& fact) {
  if (!names_in_skill_id(fact.from) || !fact.to.starts_with("ctx_"))
    return {};
  const fact_meta meta(fact.meta_json);
  auto found = changing(fact.to);
  if (!found)
    return fail(std::move(found.error()));
  (*found)->undone = context::standing::open;
  auto& c = (*found)->counts;
  c.last_used = std::max(c.last_used.value_or(fact.timestamp), fact.timestamp);
  const auto count = [&](std::string_view key, bool good, double step) {
    constexpr double most = 10'000; // runs of one cycle
    const auto times = std::clamp(meta.number(key).value_or(0), 0.0, most);
    for (int i = 0; i < static_cast<int>(times); ++i)
      detail::count_outcome(c, good, step);
  };
  count("successes", true, rules_.success_step);
  count("failures", false, -rules_.failure_step);
  return {};
}

result<void> learner::take_decision(const edge& fact) {
  using context::standing;
  const fact_meta meta(fact.meta_json);
  const auto action = meta.text("action");
  const bool shortens = action == "archive" || action == "summarize";
  if (action != "stage" && action != "forget" && action != "reinforce" && action != "undo" &&
      !shortens)
    return {};
  auto found = changing(fact.from);
  if (!found)
    return fail(std::move(found.error()));
  auto& item = **found;
  if (action == "stage") {
    item.stage = meta.text("to");
    return {};
  }
  item.undone = action == "undo" ? item.counts.policy : standing::open;
  item.counts.policy = shortens             ? standing::shortened
                       : action == "forget" ? standing::forgotten
                       : action == "undo"   ? standing::open
                                            : standing::pinned;
  item.counts.policy_hash = shortens ? item.hash : std::string();
  return {};
}

void learner::drop_oldest() {
  while (runs_.size() > rules_.most_open_runs) {
    const auto oldest = ages_.begin();
    runs_.erase(oldest->second);
    changes_.push_back({index_area::open_runs, oldest->first, std::nullopt});
    ages_.erase(oldest);
  }
}

void learner::change_rules(const learning_rules& rules) {
  rules_ = rules;
  skills_.change_rules({.success_step = rules.success_step, .failure_step = rules.failure_step});
}

void learner::drop_changes() {
  changes_.clear();
  fresh_.clear();
  for (const auto& id : std::exchange(changed_items_, {}))
    items_.at(id).changed = false;
  for (auto& run : runs_)
    run.second.changed = false;
  changed_held_.clear();
  std::erase_if(held_, [](const auto& decision) { return decision.second.empty(); });
  skills_.drop_changes();
  uses_.drop_changes();
}

/// Brings the lists of the index up to what the item is now.
void learner::list(const std::string& id, item_at_hand& known,
                   const std::function<void(const index_change& c)>& put) const {
  const auto& c = known.item.counts;
  if (!known.listed || known.listed_at != c.last_used) {
    if (known.listed)
      put({index_area::items_by_use, key_by_use(known.listed_at, id), std::nullopt});
    put({index_area::items_by_use, key_by_use(c.last_used, id), std::string()});
    known.listed = true;
    known.listed_at = c.last_used;
  }
  const bool is_in = is_noisy(c);
  if (is_in && known.line > 0)
    put({index_area::noisy_items, id, std::to_string(known.line)});
  else if (!is_in && known.noisy)
    put({index_area::noisy_items, id, std::nullopt});
  known.noisy = is_in;
}

std::vector<index_change> learner::take_changes() {
  std::vector<index_change> all;
  each_change([&all](const index_change& c) { all.push_back(c); });
  let_go();
  return all;
}

void learner::each_change(const std::function<void(const index_change& c)>& put) {
  for (const auto& c : std::exchange(changes_, {}))
    put(c);
  saved_items_ = std::exchange(changed_items_, {});
  std::ranges::sort(saved_items_);
  ++saves_;
  for (const auto& id : saved_items_) {
    auto& known = items_.at(id);
    known.changed = false;
    put({index_area::items, id, to_text(known.item)});
    list(id, known, put);
  }
  uses_.each_change(put);
  std::vector<index_change> of_skills;
  skills_.add_changes(of_skills);
  for (const auto& c : of_skills)
    put(c);
  for (const auto& decision : changed_held_) {
    const auto& facts = held_.at(decision);
    put({index_area::held, decision, facts.empty() ? std::nullopt : std::optional(to_text(facts))});
  }
  changed_held_.clear();
  held_.clear();
  for (auto& [name, run] : runs_) {
    if (!std::exchange(run.changed, false))
      continue;
    json items = json::array();
    for (const auto& i : run.items)
      items.push_back({{"id", i.id}, {"cited", i.cited}, {"counts", i.counts}});
    put({index_area::open_runs, run.number, dump({{"run", name}, {"items", std::move(items)}})});
  }
}

void learner::let_go() {
  saved_items_.clear();
  if (items_.size() <= most_items)
    return;
  std::erase_if(items_, [this](const auto& known) {
    return !known.second.changed && known.second.saves + 1 < saves_;
  });
  if (items_.size() > most_items)
    std::erase_if(items_, [](const auto& known) { return !known.second.changed; });
}

} // namespace boyd::graph
