#include "actors/knowledge/approval_proof.hpp"

#include "boyd/core/sha256.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/ports/clock.hpp"
#include "src/core/json_values.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace boyd {

namespace {

using nlohmann::json;

constexpr std::size_t proven_at_once = std::size_t{4} << 20;
/// A long log is followed so long at once; questions that come so soon behind it do not go on.
constexpr milliseconds proving_turn = 8s;
constexpr milliseconds between_turns = 1s;

/// The hash of the line before, as a line names it; nothing: it has no place in the chain. The
/// end of a line is looked at first: of millions of lines few are parsed.
std::optional<std::string> named_hash(std::string_view line) {
  constexpr std::string_view before = R"("prev":")";
  constexpr std::string_view check_sum = R"(,"crc":")";
  constexpr std::size_t check_sum_bytes = 18; // with its digits, a quote and the brace
  auto end = line;
  if (end.size() > check_sum_bytes &&
      end.substr(end.size() - check_sum_bytes).starts_with(check_sum))
    end.remove_suffix(check_sum_bytes);
  else if (end.ends_with('}'))
    end.remove_suffix(1);
  const auto bytes = before.size() + graph::genesis.size() + 1;
  if (end.size() > bytes && end.ends_with('"') &&
      end.substr(end.size() - bytes).starts_with(before))
    return std::string(end.substr(end.size() - graph::genesis.size() - 1, graph::genesis.size()));
  const auto read = graph::parse_edge(line);
  return read && read->seq ? std::optional(read->prev) : std::nullopt;
}

std::string_view without_break(std::string_view raw) {
  if (raw.ends_with('\n'))
    raw.remove_suffix(1);
  return raw;
}

} // namespace

void approval_proof::begin() {
  at_ = {};
  at_.head = graph::genesis;
}

bool approval_proof::is_at(const log_position& until) const {
  return at_.segment == until.segment && at_.bytes == until.bytes && !at_.last.empty() &&
         sha256_hex(at_.last) == until.last_hash;
}

/// Whether the log before the place is still the one that was followed.
result<bool> approval_proof::is_still_there(graph::segment_files& files,
                                            const std::vector<graph::segment>& segments) const {
  const auto which = std::ranges::find(segments, at_.segment, &graph::segment::number);
  if (which == segments.end() || at_.bytes < at_.last.size())
    return false; // or it broke off at the beginning of a segment
  const auto text = files.read(*which, at_.bytes - at_.last.size(), at_.last.size());
  if (!text && (text.error().code == errc::not_found || text.error().code == errc::corrupt))
    return false;
  if (!text)
    return fail(text.error());
  return *text == at_.last;
}

result<bool> approval_proof::follow(const log_position& until) {
  if (is_at(until))
    return true;
  const auto begun = context_->ports.clock->steady();
  if (paused_ && begun - *paused_ < between_turns)
    return false;
  paused_.reset();
  graph::segment_files files(*context_->ports.files, context_->home, context_->ports.unpack);
  const auto segments = files.list();
  if (!segments)
    return fail(segments.error());
  bool goes_on = !at_.last.empty() &&
                 std::pair(at_.segment, at_.bytes) <= std::pair(until.segment, until.bytes);
  if (goes_on) {
    const auto same = is_still_there(files, *segments);
    if (!same)
      return fail(same.error());
    goes_on = *same;
  }
  if (!goes_on)
    begin();
  // What stands behind the end of the node's own lines is set aside soon.
  const auto ends = context_->written->ends();
  for (const auto& s : *segments) {
    if (s.number < at_.segment || s.number > until.segment)
      continue;
    if (s.number != at_.segment) {
      at_.segment = s.number;
      at_.bytes = 0;
      at_.lines = 0;
    }
    const auto own = ends.find(s.number);
    const auto end = s.number == until.segment ? until.bytes
                     : own != ends.end()       ? own->second
                                               : std::numeric_limits<std::uint64_t>::max();
    const auto read = follow_segment(files, s, end, begun);
    // The line behind it names one that nobody can read.
    if (!read && (read.error().code != errc::corrupt || s.number == until.segment))
      return fail(read.error());
    if (read && !*read)
      return false;
  }
  if (!is_at(until)) {
    // The end is not the one that the index has read. The next question begins anew.
    lose_all();
    at_.last.clear();
  }
  return true;
}

result<bool> approval_proof::follow_segment(graph::segment_files& files,
                                            const graph::segment& which, std::uint64_t end,
                                            steady_time begun) {
  std::string rest;
  for (auto from = at_.bytes; from < end;) {
    const auto part = files.read(
        which, from, static_cast<std::size_t>(std::min<std::uint64_t>(proven_at_once, end - from)));
    if (!part)
      return fail(part.error());
    if (part->empty())
      break;
    from += part->size();
    rest += *part;
    std::string_view left = rest;
    for (auto line_end = left.find('\n'); line_end != left.npos; line_end = left.find('\n')) {
      take(left.substr(0, line_end + 1));
      left.remove_prefix(line_end + 1);
    }
    rest.erase(0, rest.size() - left.size());
    const auto now = context_->ports.clock->steady();
    if (from < end && now - begun >= proving_turn) {
      paused_ = now;
      return false;
    }
  }
  if (!rest.empty())
    take(rest); // the torn end of a segment is a line, too
  return true;
}

void approval_proof::take(std::string_view raw) {
  at_.bytes += raw.size();
  ++at_.lines;
  at_.last = raw;
  const auto line = without_break(raw);
  if (line.empty())
    return;
  const auto named = named_hash(line);
  if (!named && !graph::parse_edge(line))
    return; // no fact: nothing is chained to it
  // Lines of an old log, before the first one with a place in the chain, are believed.
  const bool is_linked = named ? *named == at_.head : !at_.chained;
  if (!is_linked)
    lose_all();
  at_.chained = at_.chained || named;
  at_.head = sha256_hex(line);
  if (line.find("skill_") != line.npos)
    take_fact(line);
}

void approval_proof::take_fact(std::string_view line) {
  const auto read = graph::parse_edge(line);
  if (!read || !graph::is_as_written(line, *read))
    return;
  const auto& fact = read->fact;
  const bool approves = fact.type == "promoted_to" && graph::names_in_skill_id(fact.to);
  const bool decides = fact.type == "managed_by" && graph::names_in_skill_id(fact.from);
  if (!approves && !decides)
    return;
  const auto meta = json::parse(fact.meta_json, nullptr, false);
  if (decides) {
    const auto action = text_in(meta, "action");
    const auto known = at_.approved.find(fact.from);
    if (known != at_.approved.end() && (action == "enable" || action == "disable"))
      known->second.disabled = action == "disable";
    return;
  }
  const auto hash = text_in(meta, "hash");
  const auto number = boyd::number_in<json>(meta, "fence");
  if (hash.empty())
    return;
  auto& known = at_.approved[fact.to];
  if (known.number == number && known.hash == hash)
    return; // told twice
  known = {number, hash,
           graph::segment{at_.segment, false}.name() + ":" + std::to_string(at_.lines), false};
}

void approval_proof::lose_all() {
  for (auto& [skill, known] : at_.approved)
    at_.lost[skill] = std::move(known);
  at_.approved.clear();
}

std::string approval_proof::find_doubt(const std::string& skill,
                                       const graph::skill_version& version,
                                       const log_position& until) {
  const auto done = follow(until);
  if (!done)
    return "its approval cannot be looked up in the log of facts: " + to_string(done.error());
  if (!*done)
    return "its approval is still being looked up in the log of facts, which is long: ask again "
           "in a moment";
  const auto is_it = [&](const std::map<std::string, approval>& all) {
    const auto found = all.find(skill);
    return found != all.end() && found->second.number == version.number &&
           found->second.hash == version.hash;
  };
  if (is_it(at_.approved))
    return {};
  if (is_it(at_.lost))
    return "the line of its approval, " + at_.lost.at(skill).place +
           ", was changed, or one behind it: find it with boyd kg verify, then read the skill and "
           "approve it again";
  return "its approval stands nowhere in the log of facts: stop the node, delete "
         "knowledge/index.db (it is made again from the log), then read the skill";
}

std::string approval_proof::doubt_of(const std::string& skill, const graph::skill_version& version,
                                     const log_position& until) {
  auto doubt = find_doubt(skill, version, until);
  if (doubt.empty()) {
    doubts_.erase(skill);
    return doubt;
  }
  auto& told = doubts_[skill];
  if (told != doubt)
    spdlog::warn("knowledge: {} is not approved: {}", skill, doubt);
  told = doubt;
  return doubt;
}

bool approval_proof::is_disabled(const std::string& skill) const {
  const auto known = at_.approved.find(skill);
  return known != at_.approved.end() && known->second.disabled;
}

std::string approval_proof::doubts() const {
  std::string all;
  for (const auto& [skill, doubt] : doubts_)
    all += (all.empty() ? "" : "; ") + skill + " is not approved: " + doubt;
  return all;
}

} // namespace boyd
