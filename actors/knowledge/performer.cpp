#include "actors/knowledge/performer.hpp"

#include "actors/knowledge/log_source.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/ids.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/graph/inspector.hpp"
#include "boyd/graph/log_damage.hpp"
#include "boyd/memory/document.hpp"
#include "boyd/memory/entry.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/record/execution.hpp"
#include "boyd/skills/skill.hpp"
#include "boyd/skills/stage.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

namespace boyd {

namespace {

/// A file that was changed so shortly before it was read may have been changed again since, without
/// another time: its bytes are compared.
constexpr milliseconds time_resolution = 2s;
/// What `learned` tells of when nobody says since when.
constexpr milliseconds learned_window = 7 * 24h;
constexpr const char* folders[] = {"archive", "notes", "research"};
/// A folder with more files is large, and so many of its files are looked at before each question.
constexpr std::size_t files_at_once = 500;
/// A replay of the history works so long for one request, and looks at the clock so often.
constexpr milliseconds turn_of_replay = 2s;
constexpr std::size_t facts_between_looks = 1'000;
/// Whoever asked for a replay goes on at once, or has left.
constexpr milliseconds abandoned_after = 60s;
constexpr std::size_t most_bytes_of_record = std::size_t{64} << 20;

memory::recall_document document_of(const memory_row& r) {
  return {r.id, r.time, r.source, r.author, r.terms, r.cost};
}

/// "research" of "research/a.md"; what lies in no folder is its own.
std::string folder_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

bool is_as_known(const memory_file& known, const file_info& now) {
  return known.size == now.size && known.inode == now.inode && known.modified == now.modified;
}

} // namespace

struct knowledge_session::file_changes {
  std::vector<memory_row> added; ///< of entries that no file held before
  bool removed = false;          ///< an entry is held by no file any more
};

struct knowledge_session::running_replay {
  explicit running_replay(const replay_policy& what)
      : id(what.id), both(what.numbers, what.since) {}

  std::string id;
  skills::policy_comparison both;
  log_source::forward at{};
  std::size_t looked_at = 0; ///< facts
  steady_time asked_at{};    ///< the last time
};

knowledge_session::knowledge_session(node_context_ptr context, configuration_ptr configuration,
                                     task what)
    : context_(std::move(context)), configuration_(std::move(configuration)), task_(what),
      facts_(context_), skills_(context_, configuration_, facts_) {
  facts_.watch_items(
      {[this] { skills_.forget(); },
       [this](std::string_view id, const graph::learned_item& item) { skills_.note(id, item); }});
}

knowledge_session::~knowledge_session() = default;

memory_row knowledge_session::row_of(memory::filed_entry e, const std::string& file) const {
  static const std::vector<std::string> none;
  auto& entry = e.entry;
  for (auto* text : {&entry.key, &entry.source, &entry.author, &entry.section, &entry.text})
    *text = config::redact_text(std::move(*text), configuration_ ? configuration_->secrets : none);
  auto d = memory::document_of({e.id, entry.time, entry.source, entry.author, entry.text});
  return {std::move(e.id),
          file,
          std::move(entry.key),
          std::move(entry.source),
          std::move(entry.author),
          std::move(entry.section),
          std::move(entry.text),
          std::move(d.terms),
          entry.time,
          entry.has_time,
          d.cost};
}

void knowledge_session::perform(std::vector<job<knowledge_request, knowledge_reply>>& batch) {
  looked_at_.clear();
  has_read_facts_ = false;
  drop_abandoned_replay();
  for (auto& j : batch) {
    j.reply = answer(j.request);
    problem_ = j.reply ? std::string() : to_string(j.reply.error());
    if (problem_.empty())
      since_.reset();
    else if (!since_)
      since_ = context_->ports.clock->now();
  }
  if (!index_)
    return;
  const auto left = context_->ports.files->stat(context_->layout().knowledge_index());
  if (left && left->kind == file_kind::regular && left->inode == index_file_.inode)
    index_file_ = *left;
}

part_health knowledge_session::health() const {
  part_health h;
  h.last_error = problem_;
  h.notice = skills_.doubts();
  return h;
}

/// A torn index is closed by the failure, and made anew by the next look at it.
result<knowledge_reply> knowledge_session::answer(const knowledge_request& request) {
  result<knowledge_reply> reply = fail(errc::corrupt, "not checked yet");
  for (int tries = 0; tries < 2 && !reply && reply.error().code == errc::corrupt; ++tries) {
    reply = try_to_answer(request);
    if (reply)
      break;
    // Whatever the index has now, it is not known here.
    forget_index();
  }
  return reply;
}

void knowledge_session::forget_index() {
  index_.reset();
  kernels_.clear();
  facts_.forget();
  has_read_facts_ = false;
}

result<knowledge_reply> knowledge_session::try_to_answer(const knowledge_request& request) {
  if (auto opened = open_index(); !opened)
    return fail(std::move(opened.error()));
  const bool only_asks = task_ == task::questions;
  if (auto read = only_asks ? facts_.find_position(*index_) : read_facts(); !read)
    return fail(std::move(read.error()));
  if (auto answered = answer_question(request))
    return std::move(*answered);
  if (only_asks)
    return fail(errc::bug, "it answers questions about the log alone");
  if (std::holds_alternative<catch_up>(request.what))
    return knowledge_reply{};
  if (const auto* items = std::get_if<know_items>(&request.what)) {
    auto known = facts_.statistics(*index_, items->ids);
    if (!known)
      return fail(std::move(known.error()));
    knowledge_reply reply;
    reply.items = std::move(*known);
    return reply;
  }
  if (const auto* evidence = std::get_if<find_evidence>(&request.what))
    return find(*evidence);
  if (auto known = skills_.answer(*index_, request)) {
    const auto* looked = std::get_if<look_at_skills>(&request.what);
    if (*known && looked != nullptr && (looked->candidates || looked->bank))
      tell_losses(**known);
    return std::move(*known);
  }
  const auto in_memory = [this](const auto& what) -> result<knowledge_reply> {
    if (!is_valid_name(what.kernel_id))
      return fail(errc::invalid_argument, "not a kernel name", what.kernel_id);
    using asked = std::decay_t<decltype(what)>;
    auto m = fresh_memory(what.kernel_id, std::is_same_v<asked, describe_memory>);
    if (!m)
      return fail(std::move(m.error()));
    return carry_out(**m, what);
  };
  const auto* question = std::get_if<recall_memory>(&request.what);
  return question != nullptr ? in_memory(*question)
                             : in_memory(std::get<describe_memory>(request.what));
}

std::optional<result<knowledge_reply>>
knowledge_session::answer_question(const knowledge_request& request) {
  if (const auto* about = std::get_if<inspect_graph>(&request.what))
    return inspect(*about);
  if (const auto* kernel = std::get_if<judge_memory>(&request.what))
    return judge(*kernel);
  if (const auto* policy = std::get_if<replay_policy>(&request.what))
    return replay(*policy);
  return std::nullopt;
}

result<knowledge_reply> knowledge_session::inspect(const inspect_graph& what) {
  log_source source(*index_, facts_.files(), facts_.position());
  const auto now = context_->ports.clock->now();
  const graph::inspection in{source, now, [now](const context::item_statistics& s) {
                               return std::string(skills::name_of(skills::stage_of(s, now).where));
                             }};
  knowledge_reply reply;
  const auto of_execution = [&](auto ask_of) -> result<std::string> {
    const auto execution = graph::find_execution(in, what.subject);
    if (execution)
      reply.invented = invented_by(*execution);
    return execution ? ask_of(in, *execution) : fail(execution.error());
  };
  const auto answered = [&]() -> result<std::string> {
    using kind = inspect_graph::kind;
    switch (what.what) {
    case kind::trace:
      return of_execution(graph::trace);
    case kind::why:
      return of_execution(graph::why);
    case kind::stats:
      return graph::stats(in, what.most);
    case kind::lineage:
      return graph::lineage(in, what.subject);
    case kind::findings:
      return graph::findings(in, what.most);
    case kind::learned:
      return graph::learned_since(in, what.since.value_or(now - learned_window));
    case kind::query:
      return graph::query(in, {what.from, what.to, what.type, what.since, what.most});
    case kind::picture:
      return graph::neighbourhood(in, what.subject, what.depth, what.most);
    }
    return fail(errc::bug, "an unknown question");
  }();
  auto damage = damage_of_log();
  if (!answered) {
    auto why = answered.error();
    if (why.code == errc::not_found && !damage.empty()) {
      why.what += "; the log of facts is not whole: " + damage;
      why.next = "check the log: boyd kg verify";
    }
    return fail(std::move(why));
  }
  reply.inspected = *answered;
  reply.damage = std::move(damage);
  return reply;
}

/// The log does not have them, and the record may be gone.
std::vector<std::string> knowledge_session::invented_by(const std::string& execution) const {
  constexpr std::string_view prefix = "exec_";
  const auto id = execution.starts_with(prefix) ? execution.substr(prefix.size()) : execution;
  if (!is_valid_name(id))
    return {};
  const auto text =
      context_->ports.files->read(context_->layout().record(id), most_bytes_of_record);
  const auto kept = text ? record::read_execution(*text) : fail(text.error());
  return kept && kept->cited ? kept->cited->invented : std::vector<std::string>{};
}

/// Commits are looked at once for each end of the log: none names a line behind it.
std::string knowledge_session::damage_of_log() {
  const auto& at = facts_.position();
  auto end = std::to_string(at.lines) + " " + at.last_hash;
  if (const auto segments = facts_.files().list(); segments && !segments->empty()) {
    const auto info = context_->ports.files->stat(facts_.files().path(segments->back()));
    end += " " + segments->back().file() + " " + std::to_string(info ? info->size : 0);
  }
  const auto& ports = context_->ports;
  auto expected = ports.repositories && sound_end_ != end
                      ? graph::expected_anchors(context_->home, *ports.files, *ports.repositories)
                      : std::vector<graph::anchor>{};
  // Of a kernel that rests the line may be far from the end: it is looked for once, as long as the
  // recorder does not miss it.
  auto heads = graph::heads_of(expected);
  if (const auto lost = graph::read_lost_ends(*ports.files, context_->home))
    for (const auto& l : *lost)
      found_heads_.erase(l.named.head);
  utc_time newest{};
  for (const auto& a : expected)
    newest = std::max(newest, a.at);
  std::erase_if(expected, [&](const graph::anchor& a) {
    return a.at < newest && found_heads_.contains(a.head);
  });
  const auto damage = graph::log_damage(facts_.files(), expected, at.missing);
  if (!damage)
    return "it cannot be checked: " + to_string(damage.error());
  if (damage->empty()) {
    sound_end_ = end;
    if (!heads.empty())
      found_heads_ = std::move(heads);
  }
  return *damage;
}

void knowledge_session::tell_losses(knowledge_reply& reply) {
  reply.damage = damage_of_log();
  reply.left_out = facts_.position().skipped;
  reply.lines = facts_.position().lines;
}

result<knowledge_reply> knowledge_session::find(const find_evidence& what) {
  log_source source(*index_, facts_.files(), facts_.position());
  auto found = graph::evidence_of(source, what.about);
  if (!found)
    return fail(std::move(found.error()));
  knowledge_reply reply;
  reply.evidence = std::move(*found);
  return reply;
}

result<knowledge_reply> knowledge_session::judge(const judge_memory& what) {
  knowledge_reply reply;
  log_source source(*index_, facts_.files(), facts_.position());
  auto read = source.each_item([&](const std::string& id, const graph::learned_item& item) {
    if (item.kernels.empty() ||
        std::ranges::find(item.kernels, what.kernel_id) != item.kernels.end())
      reply.judged.push_back({id, item, false});
  });
  if (!read)
    return fail(std::move(read.error()));
  for (auto& i : reply.judged) {
    auto candidate = index_->value(index_area::candidates, skills::candidate_id(i.id));
    if (!candidate)
      return fail(std::move(candidate.error()));
    i.has_candidate = candidate->has_value();
  }
  reply.decisions = skills::decide_all(reply.judged, context_->ports.clock->now());
  tell_losses(reply);
  return reply;
}

/// In turns, so that other questions are answered between them, and nobody takes the worker for
/// stuck.
result<knowledge_reply> knowledge_session::replay(const replay_policy& what) {
  const auto& clock = *context_->ports.clock;
  const auto begin = clock.steady();
  const auto& position = facts_.position();
  if (replay_ && replay_->id != what.id)
    return fail(errc::overloaded, "another replay of the history is under way", {},
                "try again when it has ended");
  if (!replay_) {
    replay_ = std::make_unique<running_replay>(what);
    replay_->at.until = position.lines;
  }
  const auto lost = [this](error why) -> result<knowledge_reply> {
    replay_.reset();
    return fail(std::move(why));
  };
  auto& r = *replay_;
  r.asked_at = begin;
  if (position.lines < r.at.until)
    return lost({errc::conflict, "the log of facts has become another one meanwhile",
                 context_->layout().graph_log(), "ask again"});
  log_source source(*index_, facts_.files(), position);
  result<void> taken;
  const auto through = source.forwards(r.at, [&](const graph::edge& fact, std::uint64_t line) {
    taken = r.both.take(fact, line);
    const bool looks = ++r.looked_at % facts_between_looks == 0;
    return taken.has_value() && !(looks && clock.steady() - begin >= turn_of_replay);
  });
  if (!through || !taken)
    return lost(through ? taken.error() : through.error());
  knowledge_reply reply;
  reply.looked_at = r.looked_at;
  reply.left_out = position.skipped + r.at.unread;
  reply.lines = r.at.line;
  reply.lines_of = r.at.until;
  reply.goes_on = !*through;
  if (reply.goes_on)
    return reply;
  const auto results = r.both.finish(clock.now());
  reply.differences = skills::differences(results.now, results.then);
  replay_.reset();
  return reply;
}

void knowledge_session::drop_abandoned_replay() {
  if (replay_ && context_->ports.clock->steady() - replay_->asked_at >= abandoned_after)
    replay_.reset();
}

result<void> knowledge_session::read_facts() {
  if (std::exchange(has_read_facts_, true))
    return {};
  auto read = facts_.catch_up(*index_);
  if (read || read.error().code == errc::corrupt)
    return read;
  spdlog::warn("knowledge: cannot read the log of facts: {}", to_string(read.error()));
  return {};
}

result<earlier_feedback> knowledge_session::feedback_before(const recall_memory& what,
                                                            utc_time now) {
  std::optional<utc_time> last;
  for (const auto& q : what.questions)
    if (const auto at = q.at.value_or(now); facts_.has_learned_since(at))
      last = std::max(last.value_or(at), at);
  if (!last)
    return earlier_feedback{};
  auto questions = fact_reader::questions_until(*index_, *last);
  if (!questions)
    return fail(std::move(questions.error()));
  return earlier_feedback(std::move(*questions));
}

result<std::vector<recalled_row>>
knowledge_session::answer_to(kernel_memory& m, const std::string& kernel_id,
                             const memory::recall_question& asked,
                             const memory::recall_feedback& learned) {
  const auto best = m.index.recall(asked, learned);
  std::vector<std::string> ids;
  ids.reserve(best.size());
  for (const auto& r : best)
    ids.push_back(m.index.id(r.place));
  auto rows = index_->find(kernel_id, ids);
  if (!rows)
    return fail(std::move(rows.error()));
  std::vector<recalled_row> answer;
  std::size_t i = 0;
  for (auto& row : *rows) {
    while (ids[i] != row.id)
      ++i;
    answer.push_back({std::move(row), best[i].score});
  }
  return answer;
}

result<knowledge_reply> knowledge_session::carry_out(kernel_memory& m, const recall_memory& what) {
  auto reply = ask_index(m, what);
  if (!reply || is_current(what.kernel_id, m, *reply))
    return reply;
  m.large.clear();
  if (auto looked = look(what.kernel_id, m); !looked)
    return fail(std::move(looked.error()));
  return ask_index(m, what);
}

bool knowledge_session::is_current(const std::string& kernel_id, const kernel_memory& m,
                                   const knowledge_reply& reply) const {
  std::set<std::string> files;
  for (const auto& answer : reply.answers)
    for (const auto& r : answer)
      if (m.large.contains(folder_of(r.row.file)))
        files.insert(r.row.file);
  const auto home = context_->kernel_home(kernel_id);
  return std::ranges::all_of(files, [&](const std::string& file) {
    const auto known = m.files.find(file);
    const auto now = context_->ports.files->stat(home + "/" + file);
    return now && known != m.files.end() && is_as_known(known->second, *now);
  });
}

result<knowledge_reply> knowledge_session::ask_index(kernel_memory& m, const recall_memory& what) {
  knowledge_reply reply;
  const auto now = context_->ports.clock->now();
  facts_.weigh_by(what.ranking);
  auto before = feedback_before(what, now);
  if (!before)
    return fail(std::move(before.error()));
  const auto time_of = [&](std::size_t i) { return what.questions[i].at.value_or(now); };
  // The oldest first: what was learned by then is folded once for all.
  std::vector<std::size_t> by_time(what.questions.size());
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  std::ranges::stable_sort(by_time, {}, time_of);
  reply.answers.resize(by_time.size());
  for (const auto i : by_time) {
    memory::recall_question asked;
    asked.text = what.questions[i].text;
    asked.at = time_of(i);
    asked.budget_tokens = what.budget_tokens;
    asked.limit = what.limit;
    const bool is_past = facts_.has_learned_since(asked.at);
    auto answer =
        answer_to(m, what.kernel_id, asked, is_past ? before->at(asked.at) : facts_.feedback());
    if (!answer)
      return fail(std::move(answer.error()));
    reply.answers[i] = std::move(*answer);
  }
  return reply;
}

result<knowledge_reply> knowledge_session::carry_out(kernel_memory& m,
                                                     const describe_memory& what) {
  knowledge_reply reply;
  auto& d = reply.description;
  d.entries = m.entries.size();
  for (const auto& [path, file] : m.files) {
    d.files.push_back({path, file.size, m.ids[path].size()});
    if (file.unreadable > 0)
      d.problems.push_back(path + ": unreadable lines: " + std::to_string(file.unreadable));
  }
  for (const auto& [path, why] : m.unreadable)
    d.problems.push_back(path + ": " + why);
  for (const char* file : {"SOUL.md", "MEMORY.md"})
    describe_sections(what.kernel_id, file, d);
  return reply;
}

void knowledge_session::describe_sections(const std::string& kernel_id, const std::string& file,
                                          memory_description& to) const {
  const auto bytes = context_->ports.files->read_below(context_->kernel_home(kernel_id), file,
                                                       limits::revision_bytes);
  if (!bytes)
    return;
  for (const auto& p : memory::split_memory(*bytes)) {
    if (!p.entry)
      continue;
    auto it = std::ranges::find_if(to.sections, [&](const memory_section_description& s) {
      return s.file == file && s.section == p.section;
    });
    if (it == to.sections.end())
      it = to.sections.insert(to.sections.end(), {file, p.section, 0, 0});
    ++it->entries;
    it->longest = std::max(it->longest, count_characters(memory::words_of_entry(p.text)));
  }
}

// -- the index follows the files ------------------------------------------------------------------

result<knowledge_session::kernel_memory*>
knowledge_session::fresh_memory(const std::string& kernel_id, bool whole) {
  auto& m = kernels_[kernel_id];
  if (whole && !m.large.empty()) {
    m.large.clear();
    looked_at_.erase(kernel_id);
  }
  if (m.is_sound && looked_at_.contains(kernel_id))
    return &m;
  if (!m.is_sound)
    if (auto loaded = load(kernel_id, m); !loaded)
      return fail(std::move(loaded.error()));
  if (auto looked = look(kernel_id, m); !looked)
    return fail(std::move(looked.error()));
  looked_at_.insert(kernel_id);
  return &m;
}

result<void> knowledge_session::open_index() {
  if (!context_->ports.make_knowledge_index)
    return fail(errc::refused, "the memory index is not available here");
  auto& files = *context_->ports.files;
  const auto path = context_->layout().knowledge_index();
  const auto file = files.stat(path);
  if (index_ && (!file || is_the_index(*file)))
    return {};
  const bool was_open = index_ != nullptr;
  forget_index();
  if (task_ == task::questions) {
    if (file && file->kind == file_kind::missing)
      return fail(errc::store_unavailable, "the index of what the node knows is being made", path,
                  "ask again in a moment");
  } else {
    if (was_open)
      spdlog::warn("{}: somebody removed or changed it; looking at it again", path);
    const bool is_another =
        was_open && file && file->kind != file_kind::missing && file->inode != index_file_.inode;
    if (is_another)
      if (auto removed = files.unlink(path); !removed)
        return removed;
    if (auto made = files.make_directories(context_->layout().knowledge()); !made)
      return made;
  }
  auto index = context_->ports.make_knowledge_index(path);
  if (auto opened = index->open(task_ == task::all ? index_use::keep : index_use::read); !opened)
    return opened;
  const auto opened = files.stat(path);
  if (!opened)
    return fail(opened.error());
  index_ = std::move(index);
  index_file_ = *opened;
  return {};
}

bool knowledge_session::is_the_index(const file_info& file) const {
  const auto& known = index_file_;
  return file.kind == file_kind::regular && file.inode == known.inode &&
         (task_ == task::questions || (file.size == known.size && file.modified == known.modified));
}

result<void> knowledge_session::load(const std::string& kernel_id, kernel_memory& m) {
  m = {};
  auto files = index_->files(kernel_id);
  if (!files)
    return fail(std::move(files.error()));
  for (auto& file : *files)
    m.files.emplace(file.path, file);
  auto scanned = index_->scan(kernel_id, [&m](memory_row& row) {
    m.ids[row.file].insert(row.id);
    auto [known, fresh] = m.entries.try_emplace(row.id, known_entry{row.time, 0});
    ++known->second.files;
    if (fresh)
      m.index.add(document_of(row));
  });
  m.is_sound = scanned.has_value();
  return scanned;
}

std::set<std::string> knowledge_session::settled_folders(const std::string& kernel_id,
                                                         kernel_memory& m) const {
  std::set<std::string> settled;
  const auto home = context_->kernel_home(kernel_id);
  for (const auto& [name, folder] : m.large) {
    const auto info = context_->ports.files->stat(home + "/" + name);
    if (info && info->kind == file_kind::directory && info->inode == folder.info.inode &&
        info->modified == folder.info.modified &&
        info->modified + time_resolution < folder.listed_at)
      settled.insert(name);
  }
  std::erase_if(m.large, [&](const auto& folder) { return !settled.contains(folder.first); });
  return settled;
}

std::vector<std::string> knowledge_session::next_files(kernel_memory& m,
                                                       const std::set<std::string>& settled) {
  std::vector<std::string> next;
  if (settled.empty())
    return next;
  auto it = m.files.upper_bound(m.looked_up_to);
  for (std::size_t i = 0; i < m.files.size() && next.size() < files_at_once; ++i, ++it) {
    if (it == m.files.end())
      it = m.files.begin();
    if (settled.contains(folder_of(it->first)))
      next.push_back(it->first);
  }
  if (!next.empty())
    m.looked_up_to = next.back();
  return next;
}

std::map<std::string, file_info>
knowledge_session::present_files(const std::string& kernel_id, kernel_memory& m,
                                 const std::set<std::string>& settled) const {
  auto& files = *context_->ports.files;
  const auto home = context_->kernel_home(kernel_id);
  std::map<std::string, file_info> present;
  const auto add = [&](const std::string& path) {
    if (!memory::is_memory_file(path))
      return;
    if (const auto info = files.stat(home + "/" + path); info && info->kind == file_kind::regular)
      present.emplace(path, *info);
  };
  add("MEMORY.md");
  add("SOUL.md");
  for (const std::string folder : folders) {
    if (settled.contains(folder))
      continue;
    const auto now = context_->ports.clock->now();
    // Not through a link, which an agent may have put there.
    const auto info = files.stat(home + "/" + folder);
    if (!info || info->kind != file_kind::directory)
      continue;
    const auto names = files.list(home + "/" + folder);
    if (!names)
      continue;
    for (const auto& name : *names)
      add(folder + "/" + name);
    if (names->size() > files_at_once)
      m.large[folder] = {*info, now};
  }
  return present;
}

result<void> knowledge_session::look(const std::string& kernel_id, kernel_memory& m) {
  const auto settled = settled_folders(kernel_id, m);
  auto present = present_files(kernel_id, m, settled);
  file_changes changes;
  std::vector<std::string> gone;
  for (const auto& [path, file] : m.files)
    if (!settled.contains(folder_of(path)) && !present.contains(path))
      gone.push_back(path);
  const auto home = context_->kernel_home(kernel_id);
  for (const auto& path : next_files(m, settled)) {
    const auto info = context_->ports.files->stat(home + "/" + path);
    if (info && info->kind == file_kind::regular)
      present.emplace(path, *info);
    else
      gone.push_back(path);
  }
  // Of files that are not looked at now, what is known of them stays.
  std::erase_if(m.unreadable, [&](const auto& file) {
    return present.contains(file.first) || !settled.contains(folder_of(file.first));
  });
  // What moves from one file to another keeps the time at which it was first seen: gone last.
  for (const auto& [path, info] : present)
    if (auto done = look_at_file(kernel_id, m, path, info, changes); !done)
      return done;
  for (const auto& path : gone)
    if (auto done = drop_file(kernel_id, m, path, changes); !done)
      return done;
  if (changes.removed)
    return load(kernel_id, m);
  for (const auto& row : changes.added)
    m.index.add(document_of(row));
  return {};
}

result<void> knowledge_session::look_at_file(const std::string& kernel_id, kernel_memory& m,
                                             const std::string& path, const file_info& info,
                                             file_changes& changes) {
  const auto known = m.files.find(path);
  const bool is_same = known != m.files.end() && is_as_known(known->second, info);
  if (is_same && info.modified + time_resolution < known->second.read_at)
    return {};
  const auto now = context_->ports.clock->now();
  auto bytes = context_->ports.files->read_below(context_->kernel_home(kernel_id), path,
                                                 limits::revision_bytes);
  if (!bytes) {
    // What the index has of it stays.
    m.unreadable[path] = bytes.error().what;
    return {};
  }
  memory_file file{path, info.size, info.inode, info.modified, now, sha256_hex(*bytes)};
  if (known == m.files.end() || known->second.hash != file.hash)
    return take_file(kernel_id, m, std::move(file), *bytes, changes);
  file.unreadable = known->second.unreadable;
  auto put = index_->put_file(kernel_id, file, {}, {});
  if (put)
    known->second = std::move(file);
  return put;
}

result<void> knowledge_session::take_file(const std::string& kernel_id, kernel_memory& m,
                                          memory_file file, const std::string& bytes,
                                          file_changes& changes) {
  auto found = memory::entries_of_file(kernel_id, file.path, bytes, file.modified);
  file.unreadable = found.unreadable;
  auto& ids = m.ids[file.path];
  std::unordered_set<std::string> left;
  std::vector<memory_row> fresh;
  for (auto& e : found.entries) {
    left.insert(e.id);
    if (ids.contains(e.id))
      continue;
    if (const auto known = m.entries.find(e.id); known != m.entries.end() && !e.entry.has_time)
      e.entry.time = known->second.time;
    fresh.push_back(row_of(std::move(e), file.path));
  }
  std::vector<std::string> gone;
  for (const auto& id : ids)
    if (!left.contains(id))
      gone.push_back(id);
  if (auto put = index_->put_file(kernel_id, file, gone, fresh); !put)
    return put;
  for (const auto& id : gone)
    changes.removed = --m.entries[id].files == 0 || changes.removed;
  for (auto& row : fresh)
    if (m.entries.try_emplace(row.id, known_entry{row.time, 0}).first->second.files++ == 0)
      changes.added.push_back(std::move(row));
  ids = std::move(left);
  const auto path = file.path;
  m.files[path] = std::move(file);
  return {};
}

result<void> knowledge_session::drop_file(const std::string& kernel_id, kernel_memory& m,
                                          const std::string& path, file_changes& changes) {
  if (auto removed = index_->remove_file(kernel_id, path); !removed)
    return removed;
  for (const auto& id : m.ids[path])
    changes.removed = --m.entries[id].files == 0 || changes.removed;
  m.ids.erase(path);
  m.files.erase(path);
  return {};
}

} // namespace boyd
