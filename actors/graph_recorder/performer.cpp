#include "actors/graph_recorder/performer.hpp"

#include "boyd/core/text.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/files/atomic_file.hpp"
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

constexpr const char* way_out =
    "move the file to an archive, then: boyd doctor --accept-graph, and "
    "boyd actors restart graph_recorder";

} // namespace

graph_session::graph_session(node_context_ptr context, std::size_t limit)
    : context_(std::move(context)), limit_(limit), path_(context_->layout().graph_log()) {}

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
      return fail(errc::bug, "a rendered edge does not read back", path_);
    auto key = graph::key_of(read->fact);
    if (known(key))
      continue;
    d.chain = std::move(next);
    d.bytes += line->size() + 1;
    d.lines.push_back(std::move(*line));
    d.facts.insert(std::move(key));
  }
  if (d.bytes > files::journal_batch_bytes)
    return fail(errc::limit_exceeded, "too many facts in one request", path_);
  return d;
}

void graph_session::write(jobs& batch, draft& d) {
  if (!d.lines.empty()) {
    auto end = log_ ? log_->append(d.lines) : fail(errc::io_error, "the log is not open", path_);
    if (!end && log_ && end.error().code != errc::conflict)
      end = log_->append(d.lines); // on a handle that is opened and verified anew
    if (!end) {
      full_ = log_ && log_->end() + d.bytes > limit_;
      auto why = full_ ? error{errc::no_space,
                               "the knowledge graph has reached its limit of " +
                                   std::to_string(limit_) + " bytes, and its edges wait",
                               path_, way_out}
                       : end.error();
      lost(why);
      write_failed_ = true;
      for (const auto& [i, head] : d.heads)
        batch[i].reply = fail(why);
      return;
    }
    for (const auto& key : d.facts)
      remember(key);
    chain_ = d.chain;
    write_failed_ = false;
    full_ = false;
    warn_of_limit();
    restored();
  }
  for (auto& [i, head] : d.heads)
    batch[i].reply = graph_reply{std::move(head)};
}

void graph_session::look() {
  auto& fs = *context_->ports.files;
  const auto info = fs.stat(path_);
  const auto size = info && info->kind != file_kind::missing ? info->size : 0;
  const auto begin = size > checked_graph_bytes ? size - checked_graph_bytes - 1 : 0;
  const auto bytes = size > 0 ? fs.read_part(path_, begin, checked_graph_bytes + 1) : std::string{};
  if (!bytes)
    return lost(bytes.error());
  const auto whole = std::string_view(*bytes).substr(0, bytes->rfind('\n') + 1);
  if (const auto checked = check(whole, begin); !checked)
    return lost(checked.error());
  tell_lost_end(whole);
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

result<void> graph_session::open_log() {
  auto& fs = *context_->ports.files;
  if (seen_) {
    auto info = fs.stat(path_);
    if (!info)
      return fail(std::move(info.error()));
    if (info->kind == file_kind::missing)
      return fail(errc::io_error, "the knowledge graph is missing", path_,
                  "put it back; or restart the node to begin a new one");
  } else if (auto made = fs.make_directories(context_->layout().knowledge()); !made) {
    return made;
  }
  files::journal_options options;
  options.max_file_bytes = limit_;
  options.parses = [](std::string_view line) { return graph::parse_edge(line).has_value(); };
  auto log = files::journal::open(fs, path_, options);
  if (!log)
    return fail(std::move(log.error()));
  take_torn(log->torn()); // an opening that fails further down does not find it again
  // One byte more: whether the part begins with a whole line.
  const auto begin = log->end() > checked_graph_bytes ? log->end() - checked_graph_bytes - 1 : 0;
  auto bytes = fs.read_part(path_, begin, checked_graph_bytes + 1);
  if (!bytes)
    return fail(std::move(bytes.error()));
  const auto checked = check(*bytes, begin);
  if (!checked)
    return fail(checked.error());
  tell_lost_end(*bytes);
  auto chain = graph::edge_chain::resume(log->last_line(), checked->sequence);
  if (!chain)
    return fail(std::move(chain.error()));
  order_.clear();
  recent_.clear();
  const std::span served(checked->served);
  for (const auto line : served.last(std::min(served.size(), remembered_facts)))
    if (auto edge = graph::parse_edge(line))
      remember(graph::key_of(edge->fact));
  chain_ = std::move(*chain);
  log_.emplace(std::move(*log));
  full_ = told_of_limit_ = false;
  warn_of_limit();
  seen_ = true;
  return {};
}

/// Damage is nothing that stops the recorder: the chain goes on behind it, and what it hit is gone
/// from every reader's sight but not from the disk.
result<graph_session::checked_end> graph_session::check(std::string_view part,
                                                        std::uint64_t begin) {
  const auto cut = begin == 0 ? 0 : std::min(part.find('\n'), part.size() - 1) + 1;
  const auto end = part.substr(cut);
  health_.notice.clear();
  tell_torn();
  auto report = begin == 0 ? graph::verify(end) : graph::verify_end(end, 0);
  if (report.intact())
    return checked_end{std::move(graph::sort_lines(end, report).served), {}};
  const auto before = count_lines(begin + cut);
  if (!before)
    return fail(before.error());
  if (begin > 0)
    report = graph::verify_end(end, *before);
  auto lines = graph::sort_lines(end, report, *before);
  tell_damage(report, lines);
  checked_end checked{std::move(lines.served), {}};
  if (report.damaged_at_end > 0 && (begin == 0 || report.chained > 0))
    checked.sequence = report.last_sequence + report.damaged_at_end;
  return checked;
}

void graph_session::tell_damage(const graph::chain_report& report, const graph::log_lines& lines) {
  const auto& first = report.problems.front();
  std::string told = path_ + ": line " + std::to_string(first.line) + " is " +
                     std::string(graph::name_of(first.kind)) + " (" + first.detail + ")";
  if (const auto more = report.problems.size() - 1; more > 0)
    told += " and " + std::to_string(more) + " more findings";
  if (!lines.damaged.empty()) {
    const auto kept = set_aside(lines.damaged);
    told += kept ? "; set aside in " + path_ + ".damaged"
                 : "; it cannot be set aside: " + to_string(kept.error());
    told += ", the other " + std::to_string(lines.served.size()) + " lines are served";
  }
  told += "; `boyd doctor` names them all";
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
  health_.notice = path_ + ": its last line" +
                   (torn_.size() == 1 ? " was no fact"
                                      : "s, " + std::to_string(torn_.size()) + ", were no facts") +
                   " (damaged, or left so by a power cut); cut off, kept in " + path_ + ".torn" +
                   (kept ? " and " + path_ + ".damaged" : "");
  spdlog::error("graph_recorder: {}", health_.notice);
}

void graph_session::tell_lost_end(std::string_view log) {
  auto& fs = *context_->ports.files;
  tells_lost_end_ = false;
  auto lost = graph::read_lost_ends(fs, context_->home);
  std::string told;
  if (!lost) {
    told = to_string(lost.error());
  } else {
    const auto& repositories = context_->ports.repositories;
    const auto newest = repositories ? graph::newest_anchor(context_->home, fs, *repositories)
                                     : std::optional<graph::anchor>{};
    const bool changed = graph::compare_with_log(*lost, newest, log, context_->ports.clock->now());
    if (told = graph::told(*lost); !told.empty())
      told += std::string("; put it back from a backup, or accept what is left: ") +
              graph::accept_command;
    if (changed)
      if (auto kept = graph::write_lost_ends(fs, context_->home, std::move(*lost)); !kept)
        told += (told.empty() ? "" : "; ") + to_string(kept.error());
  }
  if (told.empty())
    return;
  tells_lost_end_ = true;
  told = path_ + ": " + told;
  spdlog::error("graph_recorder: {}", told);
  health_.notice += (health_.notice.empty() ? "" : "; ") + told;
}

bool graph_session::is_opened_again() const {
  auto& fs = *context_->ports.files;
  const auto info = fs.stat(path_);
  if (info && (info->kind == file_kind::missing || info->size < log_->end()))
    return true;
  if (!tells_lost_end_)
    return false;
  const auto lost = graph::read_lost_ends(fs, context_->home);
  return lost && graph::told(*lost).empty();
}

/// Lines in the log before `end`, for the numbers of those behind it.
result<std::size_t> graph_session::count_lines(std::uint64_t end) const {
  constexpr std::size_t step = std::size_t{1} << 20;
  std::size_t lines = 0;
  for (std::uint64_t at = 0; at < end;) {
    const auto bytes = context_->ports.files->read_part(
        path_, at, static_cast<std::size_t>(std::min<std::uint64_t>(step, end - at)));
    if (!bytes)
      return fail(bytes.error());
    if (bytes->empty())
      return fail(errc::conflict, "the log has become shorter", path_);
    lines += static_cast<std::size_t>(std::ranges::count(*bytes, '\n'));
    at += bytes->size();
  }
  return lines;
}

/// Copies damaged lines that are not there yet: a later start finds the same ones.
result<void> graph_session::set_aside(const std::vector<std::string_view>& damaged) {
  auto& fs = *context_->ports.files;
  const std::string aside = path_ + ".damaged";
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
  if (!ensure_open() || full_)
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

void graph_session::warn_of_limit() {
  if (log_->end() < limit_ / 10 * 9 || std::exchange(told_of_limit_, true))
    return;
  health_.notice += (health_.notice.empty() ? "" : "; ") + path_ + ": has " +
                    std::to_string(log_->end()) + " of at most " + std::to_string(limit_) +
                    " bytes; " + way_out;
  spdlog::warn("graph_recorder: {}", health_.notice);
}

void graph_session::restored() {
  health_.ok = true;
  health_.reason.clear();
  health_.since.reset();
}

} // namespace boyd
