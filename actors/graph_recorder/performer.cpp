#include "actors/graph_recorder/performer.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/graph/foreign_lines.hpp"
#include "boyd/graph/lost_end.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/file_system.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

namespace boyd {

namespace {

/// So often the log is opened anew when another program has written to it meanwhile.
constexpr int most_openings = 8;

/// The last line that is one; empty: there is none.
std::string_view last_fact(std::string_view text) {
  for (auto end = text.rfind('\n'); end != text.npos; end = text.rfind('\n')) {
    text = text.substr(0, end);
    const auto line = text.substr(text.rfind('\n') + 1);
    if (graph::parse_edge(line))
      return line;
  }
  return {};
}

/// The newest lines of this segment, as far as it is `end` bytes long.
std::vector<graph::written_line> newest_lines(const graph::log_tail& tail, const graph::segment& of,
                                              std::uint64_t end) {
  std::vector<graph::written_line> lines;
  if (tail.parts.empty() || !(tail.parts.back().which == of))
    return lines;
  const auto& part = tail.parts.back();
  auto text = std::string_view(tail.text).substr(part.begin);
  text = text.substr(0, static_cast<std::size_t>(end - std::min(end, part.offset)));
  while (lines.size() < graph::known_lines && text.ends_with('\n')) {
    const auto before = text.size() == 1 ? text.npos : text.rfind('\n', text.size() - 2);
    const auto begin = before == text.npos ? 0 : before + 1;
    lines.push_back({part.offset + begin, part.offset + text.size(),
                     sha256_hex(text.substr(begin, text.size() - 1 - begin))});
    text = text.substr(0, begin);
  }
  std::ranges::reverse(lines);
  return lines;
}

} // namespace

graph_session::graph_session(node_context_ptr context, std::size_t limit)
    : context_(std::move(context)), limit_(limit),
      files_(*context_->ports.files, context_->home, context_->ports.unpack),
      path_(files_.path(now_)), base_(context_->layout().graph_log()) {}

void graph_session::perform(jobs& batch) {
  // A command that answers questions: it writes nothing that nobody has asked for.
  if (context_->passive &&
      std::ranges::all_of(batch, [](const auto& j) { return j.request.facts.empty(); })) {
    look();
    for (auto& j : batch)
      j.reply = graph_reply{};
    return;
  }
  auto open = faults::pass("graph_recorder.append");
  if (open)
    open = ensure_open();
  if (!open) {
    for (auto& j : batch)
      j.reply = fail(open.error());
    return;
  }
  draft d;
  d.chain = chain_;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto more = render(d, batch[i].request);
    if (more && d.bytes + more->bytes > files::journal_batch_bytes && !d.lines.empty()) {
      write(batch, d);
      d = draft{};
      d.chain = chain_;
      more = render(d, batch[i].request);
    }
    if (!more) {
      batch[i].reply = fail(std::move(more.error()));
      continue;
    }
    d.chain = std::move(more->chain);
    d.bytes += more->bytes;
    std::ranges::move(more->lines, std::back_inserter(d.lines));
    std::ranges::move(more->hashes, std::back_inserter(d.hashes));
    d.facts.merge(more->facts);
    d.heads.emplace_back(i, d.chain.head());
  }
  write(batch, d);
}

/// One request's new facts as lines behind `before`.
result<graph_session::draft> graph_session::render(const draft& before,
                                                   const graph_request& request) const {
  draft d;
  d.chain = before.chain;
  const auto known = [&](const std::string& key) {
    return recent_.contains(key) || before.facts.contains(key) || d.facts.contains(key);
  };
  for (const auto& f : request.facts) {
    // Keys are made of what the line says, so that they equal those read back from the log.
    auto next = d.chain;
    auto line = next.append(f);
    if (!line)
      return fail(std::move(line.error()));
    auto read = graph::parse_edge(*line);
    if (!read)
      return fail(errc::bug, "a rendered edge is unreadable", path_);
    auto key = graph::key_of(read->fact);
    if (known(key))
      continue;
    d.chain = std::move(next);
    d.bytes += line->size() + 1;
    d.lines.push_back(std::move(*line));
    d.hashes.push_back(d.chain.head());
    d.facts.insert(std::move(key));
  }
  if (d.bytes > files::journal_batch_bytes)
    return fail(errc::limit_exceeded, "too many facts in one request", path_);
  return d;
}

void graph_session::write(jobs& batch, draft& d) {
  if (!d.lines.empty()) {
    auto end = append(d);
    if (!end && (end.error().code == errc::conflict ? open_without_others() : log_.has_value()))
      end = append(d); // on a handle that is opened and verified anew
    if (!end) {
      const auto why = end.error();
      lost(why);
      write_failed_ = true;
      for (const auto& [i, head] : d.heads)
        batch[i].reply = fail(why);
      return;
    }
    acknowledge(d, *end - d.bytes);
    write_failed_ = false;
    restored();
  }
  for (auto& [i, head] : d.heads)
    batch[i].reply = graph_reply{std::move(head)};
}

result<std::uint64_t> graph_session::append(const draft& d) {
  if (!log_)
    return fail(errc::io_error, "the log is not open", path_);
  if (auto rolled = roll_over(d.bytes); !rolled)
    return fail(std::move(rolled.error()));
  if (auto alone = check_for_others(); !alone)
    return fail(std::move(alone.error()));
  std::string bytes;
  bytes.reserve(d.bytes);
  for (const auto& line : d.lines)
    bytes.append(line).append("\n");
  context_->written->begin(number_, std::move(bytes));
  return log_->append(d.lines);
}

/// The length of the file that is written is looked at by the journal.
result<void> graph_session::check_for_others() const {
  auto& fs = *context_->ports.files;
  const auto foreign = graph::has_foreign_segment(fs, context_->home, *context_->written);
  if (!foreign)
    return fail(foreign.error());
  if (*foreign)
    return fail(errc::conflict, "another program has written to a segment of the log", path_);
  const auto& last = log_->last_line();
  if (last.empty())
    return {};
  const auto there = fs.read_part(path_, log_->end() - last.size() - 1, last.size());
  if (!there && there.error().code == errc::not_found)
    return {}; // the journal tells it
  if (!there)
    return fail(there.error());
  if (*there != last)
    return fail(errc::conflict, "another program has changed the last line", path_);
  return {};
}

bool graph_session::open_without_others() {
  const auto before = chain_.head();
  log_.reset();
  return ensure_open() && chain_.head() == before;
}

void graph_session::acknowledge(const draft& d, std::uint64_t begin) {
  for (const auto& key : d.facts)
    remember(key);
  chain_ = d.chain;
  std::vector<graph::written_line> lines;
  for (std::size_t i = 0; i < d.lines.size(); ++i) {
    const auto end = begin + d.lines[i].size() + 1;
    lines.push_back({begin, end, d.hashes[i]});
    begin = end;
  }
  context_->written->wrote(number_, lines);
}

void graph_session::look() {
  const auto segments = files_.list();
  auto tail = segments ? read_tail(files_, *segments, checked_graph_bytes)
                       : result<graph::log_tail>(fail(segments.error()));
  if (!tail)
    return lost(tail.error());
  tail->text.erase(tail->text.rfind('\n') + 1);
  if (const auto checked = check(*tail); !checked)
    return lost(checked.error());
  tell_foreign();
  tell_lost_end(*tail);
}

result<void> graph_session::ensure_open() {
  if (log_)
    return {};
  auto opened = open_log();
  if (!opened) {
    log_.reset();
    lost(opened.error());
  }
  return opened;
}

files::journal_options graph_session::journal_rules() const {
  files::journal_options options;
  options.parses = [](std::string_view line) { return graph::parse_edge(line).has_value(); };
  return options;
}

/// Opens the newest segment; one that is compressed is followed by a new one. Answers the log's
/// end.
result<graph::log_tail> graph_session::open_segment() {
  auto segments = files_.list();
  if (!segments)
    return fail(std::move(segments.error()));
  if (segments->empty())
    segments->push_back({});
  if (segments->back().compressed)
    segments->push_back({segments->back().number + 1, false});
  now_ = segments->back();
  path_ = files_.path(now_);
  const auto is_link = files_.is_link(now_);
  if (!is_link)
    return fail(is_link.error());
  if (*is_link)
    return fail(errc::refused, "the log is a symbolic link, and a node writes through none", path_,
                "find out who put it there; then restore the log itself from a backup, and check "
                "it: boyd kg verify");
  auto log = files::journal::open(*context_->ports.files, path_, journal_rules());
  if (!log)
    return fail(std::move(log.error()));
  take_torn(log->torn()); // an opening that fails further down does not find it again
  log_.emplace(std::move(*log));
  auto tail = read_tail(files_, *segments, checked_graph_bytes);
  if (!tail || tail->parts.empty() || !(tail->parts.back().which == now_))
    return tail;
  // What has come since the opening is not the recorder's.
  const auto& part = tail->parts.back();
  const auto own = log_->end() - std::min(log_->end(), part.offset);
  if (own < tail->text.size() - part.begin)
    tail->text.resize(part.begin + static_cast<std::size_t>(own));
  if (own > 0 && !tail->text.ends_with(log_->last_line() + "\n"))
    return fail(errc::conflict, "another program has changed the last line", path_);
  return tail;
}

/// Another program may write between two looks: what was opened must end where the node has
/// written to, or it is set aside again.
result<graph::log_tail> graph_session::open_own() {
  for (int opening = 0; opening < most_openings; ++opening) {
    if (auto done = set_foreign_aside(); !done)
      return fail(std::move(done.error()));
    auto tail = open_segment();
    if (!tail && tail.error().code == errc::conflict)
      continue;
    if (!tail)
      return tail;
    const auto own = graph::own_end(*context_->ports.files, context_->home, *context_->written,
                                    now_, log_->end());
    if (!own)
      return fail(own.error());
    if (*own == log_->end())
      return tail;
    log_.reset();
  }
  return fail(errc::conflict, "another program keeps on writing to the log", path_,
              "find out which program it is, and end it");
}

/// What the log's end says is read from there, so that a log that is cut within its last segment,
/// or lies in one that is still empty, goes on behind the last line that there is.
result<void> graph_session::open_log() {
  auto& fs = *context_->ports.files;
  if (seen_) {
    auto info = fs.stat(path_);
    if (!info)
      return fail(std::move(info.error()));
    if (info->kind == file_kind::missing)
      return fail(errc::io_error, "the knowledge graph is missing", path_,
                  "restore it, or restart the node to start a new one");
  } else if (auto made = fs.make_directories(context_->layout().knowledge()); !made) {
    return made;
  }
  const auto tail = open_own();
  if (!tail)
    return fail(tail.error());
  const auto checked = check(*tail);
  if (!checked)
    return fail(checked.error());
  tell_foreign();
  tell_lost_end(*tail);
  auto chain = graph::edge_chain::resume(last_fact(tail->text), checked->sequence);
  if (!chain)
    return fail(std::move(chain.error()));
  order_.clear();
  recent_.clear();
  const std::span served(checked->served);
  for (const auto line : served.last(std::min(served.size(), remembered_facts)))
    if (auto edge = graph::parse_edge(line))
      remember(graph::key_of(edge->fact));
  chain_ = std::move(*chain);
  seen_ = true;
  return tell_readers(*tail);
}

result<void> graph_session::set_foreign_aside() {
  return graph::set_foreign_lines_aside(*context_->ports.files, context_->home, *context_->written,
                                        context_->ports.clock->now());
}

result<void> graph_session::tell_readers(const graph::log_tail& tail) {
  const auto segments = files_.list();
  if (!segments)
    return fail(segments.error());
  const auto before = context_->written->ends();
  graph::written_log::segment_ends ends;
  for (const auto& s : *segments) {
    const auto info = context_->ports.files->stat(files_.path(s));
    if (!info)
      return fail(info.error());
    if (s.compressed || s.number >= now_.number)
      continue;
    const auto known = before.find(s.number);
    ends[s.number] = known == before.end() ? info->size : std::min(info->size, known->second);
  }
  ends[now_.number] = log_->end();
  number_ = context_->written->opened(std::move(ends), newest_lines(tail, now_, log_->end()),
                                      chain_.head() == graph::genesis ? "" : chain_.head());
  return {};
}

/// The old segment is durable to its last line before the new one is made: a crash leaves an empty
/// one at most.
result<void> graph_session::roll_over(std::size_t bytes) {
  if (log_->end() == 0 || log_->end() + bytes <= limit_)
    return {};
  if (auto done = set_foreign_aside(); !done)
    return done;
  const graph::segment next{now_.number + 1, false};
  auto log = files::journal::open(*context_->ports.files, files_.path(next), journal_rules());
  if (!log)
    return fail(std::move(log.error()));
  if (log->end() > 0)
    return fail(errc::conflict, "another program has begun the next segment", files_.path(next));
  log_.emplace(std::move(*log));
  now_ = next;
  path_ = files_.path(now_);
  context_->written->goes_on_in(number_, now_.number);
  return {};
}

/// Damage is nothing that stops the recorder: the chain goes on behind it, and what it hit is gone
/// from every reader's sight but not from the disk.
result<graph_session::checked_end> graph_session::check(const graph::log_tail& tail) {
  health_.notice.clear();
  tell_torn();
  const auto report = tail.is_whole ? graph::verify(tail.text) : graph::verify_end(tail.text, 0);
  auto lines = graph::sort_lines(tail.text, report);
  if (report.intact())
    return checked_end{std::move(lines.served), {}};
  const auto place = graph::place_in_tail(files_, tail, report.problems.front().line);
  if (!place)
    return fail(place.error());
  tell_damage(*place, report, lines);
  checked_end checked{std::move(lines.served), {}};
  if (report.damaged_at_end > 0 && (tail.is_whole || report.chained > 0))
    checked.sequence = report.last_sequence + report.damaged_at_end;
  return checked;
}

void graph_session::tell_damage(const std::string& place, const graph::chain_report& report,
                                const graph::log_lines& lines) {
  const auto& first = report.problems.front();
  std::string told = context_->layout().knowledge() + "/" + place + " is " +
                     std::string(graph::name_of(first.kind)) + " (" + first.detail + ")";
  if (const auto more = report.problems.size() - 1; more > 0)
    told += " and " + std::to_string(more) + " more findings";
  if (!lines.damaged.empty()) {
    const auto kept = set_aside(lines.damaged);
    told += kept ? "; set aside in " + base_ + ".damaged"
                 : "; cannot set it aside: " + to_string(kept.error());
    told += ", the other " + std::to_string(lines.served.size()) + " lines are used";
  }
  told += "; list all findings with: boyd kg verify";
  spdlog::error("graph_recorder: {}", told);
  health_.notice += (health_.notice.empty() ? "" : "; ") + told;
}

/// Of what was cut off, what may have been acknowledged: whole lines, and a fact whose line break
/// has become something else. What an unfinished write leaves ends within a line, or with one.
void graph_session::take_torn(std::string_view torn) {
  auto lines = split(torn, '\n');
  if (const auto last = lines.back();
      last.empty() || !graph::parse_edge(last.substr(0, last.size() - 1)))
    lines.pop_back();
  std::erase(lines, std::string_view{});
  torn_.insert(torn_.end(), lines.begin(), lines.end());
}

/// Nobody can say whether they were: a person decides what they are worth.
void graph_session::tell_torn() {
  if (torn_.empty())
    return;
  const auto kept = set_aside({torn_.begin(), torn_.end()});
  health_.notice = path_ + ": the last line" +
                   (torn_.size() == 1 ? " was not a fact"
                                      : "s, " + std::to_string(torn_.size()) + ", were not facts") +
                   " (damaged, or incomplete after a power cut); cut off and stored in " + path_ +
                   ".torn" + (kept ? " and " + base_ + ".damaged" : "");
  spdlog::error("graph_recorder: {}", health_.notice);
}

void graph_session::tell_foreign() {
  const auto all = graph::list_foreign_lines(*context_->ports.files, context_->home);
  foreign_.clear();
  std::string text;
  if (!all) {
    text = to_string(all.error());
  } else {
    for (const auto& f : *all) {
      text += (text.empty() ? "" : "; ") + graph::place_of(f) + ": " + graph::told(f);
      foreign_.push_back(context_->layout().knowledge() + "/" + f.file);
    }
  }
  if (text.empty())
    return;
  spdlog::error("graph_recorder: {}", text);
  health_.notice += (health_.notice.empty() ? "" : "; ") + text;
}

/// Of a kernel that rests the line may stand before the log's end: it is looked for once.
result<std::set<std::string>> graph_session::missing_heads(const graph::log_tail& log,
                                                           std::set<std::string> heads) {
  std::erase_if(far_heads_, [&](const std::string& head) { return !heads.contains(head); });
  auto missing = graph::heads_not_in(log.text, std::move(heads));
  if (log.is_whole)
    return missing;
  std::erase_if(missing, [&](const std::string& head) { return far_heads_.contains(head); });
  if (missing.empty())
    return missing;
  auto nowhere = graph::missing_heads(files_, missing);
  if (nowhere)
    for (const auto& head : missing)
      if (!nowhere->contains(head))
        far_heads_.insert(head);
  return nowhere;
}

void graph_session::tell_lost_end(const graph::log_tail& log) {
  auto& fs = *context_->ports.files;
  tells_lost_end_ = false;
  auto lost = graph::read_lost_ends(fs, context_->home);
  std::string told;
  if (!lost) {
    told = to_string(lost.error());
  } else {
    const auto& repositories = context_->ports.repositories;
    const auto newest = repositories ? graph::newest_anchors(context_->home, fs, *repositories)
                                     : std::vector<graph::anchor>{};
    auto heads = graph::heads_of(newest);
    for (const auto& l : *lost)
      if (!l.accepted)
        heads.insert(l.named.head);
    const auto missing = missing_heads(log, std::move(heads));
    if (!missing)
      spdlog::error("graph_recorder: {}", to_string(missing.error()));
    const bool changed =
        missing &&
        graph::compare_with_log(
            *lost, newest, [&](const std::string& head) { return !missing->contains(head); },
            context_->ports.clock->now());
    if (told = graph::told(*lost); !told.empty())
      told +=
          std::string("; restore it from a backup, or accept the loss: ") + graph::accept_command;
    if (changed)
      if (auto kept = graph::write_lost_ends(fs, context_->home, std::move(*lost)); !kept)
        told += (told.empty() ? "" : "; ") + to_string(kept.error());
  }
  if (told.empty())
    return;
  tells_lost_end_ = true;
  told = base_ + ": " + told;
  spdlog::error("graph_recorder: {}", told);
  health_.notice += (health_.notice.empty() ? "" : "; ") + told;
}

bool graph_session::is_opened_again() const {
  auto& fs = *context_->ports.files;
  const auto info = fs.stat(path_);
  if (info && (info->kind == file_kind::missing || info->size != log_->end()))
    return true;
  if (const auto foreign = graph::has_foreign_segment(fs, context_->home, *context_->written);
      foreign && *foreign)
    return true;
  const auto is_gone = [&](const std::string& path) {
    const auto there = fs.stat(path);
    return there && there->kind == file_kind::missing;
  };
  if (std::ranges::any_of(foreign_, is_gone))
    return true;
  if (!tells_lost_end_)
    return false;
  const auto lost = graph::read_lost_ends(fs, context_->home);
  return lost && graph::told(*lost).empty();
}

/// Copies damaged lines that are not there yet: a later start finds the same ones.
result<void> graph_session::set_aside(const std::vector<std::string_view>& damaged) {
  auto& fs = *context_->ports.files;
  const std::string aside = base_ + ".damaged";
  auto there = fs.read(aside, files::journal_file_bytes);
  if (!there && there.error().code != errc::not_found)
    return fail(std::move(there.error()));
  const std::string old = there ? std::move(*there) : std::string{};
  const auto lines = split(old, '\n');
  const std::set<std::string_view> known(lines.begin(), lines.end());
  std::string fresh;
  for (const auto line : damaged)
    if (!known.contains(line))
      fresh.append(line).append("\n");
  if (fresh.empty())
    return {};
  return files::write_atomic(fs, aside, old + fresh);
}

void graph_session::remember(std::string fact) {
  if (!recent_.insert(fact).second)
    return;
  order_.push_back(std::move(fact));
  if (order_.size() > remembered_facts) {
    recent_.erase(order_.front());
    order_.pop_front();
  }
}

void graph_session::probe() {
  if (health_.ok && log_ && is_opened_again())
    log_.reset();
  if (health_.ok && log_)
    return;
  if (!ensure_open())
    return;
  if (auto takes = write_failed_
                       ? files::try_writing(*context_->ports.files, context_->layout().knowledge())
                       : result<void>{};
      !takes)
    return lost(takes.error());
  write_failed_ = false;
  restored();
}

/// The journal knows what it has acknowledged, and writes the rest anew on another handle: whoever
/// reads the file again takes for durable what a failed fsync has left in the page cache. Only what
/// others have changed is opened, checked and read anew before the next use.
void graph_session::lost(const error& why) {
  if (why.code == errc::conflict)
    log_.reset();
  if (health_.ok) {
    health_.since = context_->ports.clock->now();
    spdlog::error("graph_recorder: {}", to_string(why));
  }
  health_.ok = false;
  health_.reason = to_string(why);
  health_.last_error = health_.reason;
}

void graph_session::restored() {
  health_.ok = true;
  health_.reason.clear();
  health_.since.reset();
}

} // namespace boyd
