#include "boyd/graph/edge_log.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/crc32.hpp"
#include "boyd/core/limits.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"
#include "plain_line_internal.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace boyd::graph {

namespace {

using json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 6> node_prefixes = {"ctx_",      "exec_",    "skill_",
                                                           "decision_", "outcome_", "candidate_"};
constexpr std::array<std::string_view, 9> edge_types = {
    "used_in",    "validated_by", "promoted_to", "derived_from", "supports",
    "reinforces", "decided_by",   "resulted_in", "managed_by"};

/// Counts brackets before parsing: a deeply nested value parses, but cannot be copied or destroyed
/// without exhausting the stack (FAULTS).
bool is_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > limits::json_depth) {
        return true;
      }
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

/// A JSON object, or why there is none.
result<json> parse_object(std::string_view text) {
  if (text.size() > max_line_bytes) {
    return fail(errc::limit_exceeded, "the line is too long");
  }
  if (is_too_deep(text)) {
    return fail(errc::limit_exceeded, "the value is nested too deeply");
  }
  auto value = json::parse(text, nullptr, false);
  if (value.is_discarded()) {
    return fail(errc::parse_error, "not well-formed JSON");
  }
  if (!value.is_object()) {
    return fail(errc::parse_error, "not a JSON object");
  }
  return value;
}

std::optional<std::string> text_member(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string() || it->get_ref<const std::string&>().empty()) {
    return std::nullopt;
  }
  return it->get<std::string>();
}

constexpr std::string_view seal_begin = R"(,"crc":")";
constexpr std::string_view seal_end = R"("})";
constexpr std::size_t seal_bytes = seal_begin.size() + crc32_digits + seal_end.size();

/// The end of a line that has this text before it.
std::string seal_of(std::string_view text) {
  return std::string(seal_begin) + crc32_hex(text) + std::string(seal_end);
}

bool is_digest(std::string_view text) {
  return text.size() == genesis.size() &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Reads seq and prev into `line`; both or neither must be there.
result<void> read_chain_members(const json& object, logged_edge& line) {
  const bool has_seq = object.contains("seq");
  if (has_seq != object.contains("prev")) {
    return fail(errc::parse_error, "only one of seq and prev is present");
  }
  if (!has_seq) {
    return {};
  }
  const auto& seq = object["seq"];
  const auto prev = text_member(object, "prev");
  if (!seq.is_number_unsigned() || seq.get<std::uint64_t>() == 0 || !prev || !is_digest(*prev)) {
    return fail(errc::parse_error, "seq or prev is malformed");
  }
  line.seq = seq.get<std::uint64_t>();
  line.prev = *prev;
  return {};
}

} // namespace

std::string key_of(const edge& e) {
  auto key = e.from + '\x1f' + e.type + '\x1f' + e.to + '\x1f';
  if (const auto meta = parse_object(e.meta_json))
    if (const auto fence = meta->find("fence"); fence != meta->end() && fence->is_number_integer())
      key += fence->dump();
  return key;
}

bool is_node_id(std::string_view id) noexcept {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  return std::any_of(node_prefixes.begin(), node_prefixes.end(),
                     [&](std::string_view prefix) {
                       return id.starts_with(prefix) && id.size() > prefix.size();
                     }) &&
         std::none_of(id.begin(), id.end(), is_control);
}

bool is_edge_type(std::string_view type) noexcept {
  return std::find(edge_types.begin(), edge_types.end(), type) != edge_types.end();
}

result<logged_edge> parse_edge(std::string_view line) {
  if (auto plain = read_plain_line(line)) {
    return std::move(*plain);
  }
  auto object = parse_object(line);
  if (!object) {
    return fail(errc::parse_error, object.error().what);
  }
  const auto from = text_member(*object, "from");
  const auto to = text_member(*object, "to");
  const auto type = text_member(*object, "type");
  const auto timestamp = object->find("timestamp");
  if (!from || !to || !type) {
    return fail(errc::parse_error, "from, to or type is missing");
  }
  if (timestamp == object->end() || !timestamp->is_number_integer()) {
    return fail(errc::parse_error, "timestamp is missing");
  }
  logged_edge read;
  read.fact = {*from, *to, *type, from_unix_ms(timestamp->get<std::int64_t>()), "{}"};
  if (const auto meta = object->find("meta"); meta != object->end()) {
    if (!meta->is_object()) {
      return fail(errc::parse_error, "meta is not an object");
    }
    read.fact.meta_json = dump(*meta);
  }
  if (auto chained = read_chain_members(*object, read); !chained) {
    return fail(std::move(chained.error()));
  }
  return read;
}

bool is_as_written(std::string_view line, const logged_edge& read) {
  if (!read.seq)
    return true;
  const auto text = line.substr(0, line.size() - std::min(line.size(), seal_bytes));
  const auto seal = line.substr(text.size());
  if (seal.starts_with(seal_begin))
    return seal == seal_of(text);
  // A flipped bit may have made another member of the check sum's.
  return line.ends_with(R"("prev":")" + read.prev + R"("})");
}

result<edge_chain> edge_chain::resume(std::string_view last_line,
                                      const std::optional<std::uint64_t>& sequence) {
  edge_chain chain;
  if (last_line.empty()) {
    return chain;
  }
  const auto last = parse_edge(last_line);
  if (!last) {
    return fail(errc::corrupt, "the last line is not an edge: " + last.error().what);
  }
  chain.head_ = sha256_hex(last_line);
  chain.sequence_ = sequence.value_or(last->seq.value_or(0));
  return chain;
}

result<std::string> edge_chain::append(const edge& fact) {
  if (!is_node_id(fact.from) || !is_node_id(fact.to)) {
    return fail(errc::invalid_argument, "not a node id", fact.from + " -> " + fact.to);
  }
  if (!is_edge_type(fact.type)) {
    return fail(errc::invalid_argument, "not an edge type", fact.type);
  }
  auto meta = parse_object(fact.meta_json);
  if (!meta) {
    const auto code =
        meta.error().code == errc::limit_exceeded ? errc::limit_exceeded : errc::invalid_argument;
    return fail(code, "meta: " + meta.error().what);
  }
  json line;
  line["from"] = sanitize_utf8(fact.from);
  line["to"] = sanitize_utf8(fact.to);
  line["type"] = fact.type;
  line["timestamp"] = to_unix_ms(fact.timestamp);
  line["meta"] = std::move(*meta);
  line["seq"] = sequence_ + 1;
  line["prev"] = head_;
  auto text = dump(line);
  text.pop_back(); // the brace, which the seal brings
  text += seal_of(text);
  // The line itself is one level deeper than its meta.
  if (text.size() > max_line_bytes || is_too_deep(text)) {
    return fail(errc::limit_exceeded, "the edge is too large");
  }
  ++sequence_;
  head_ = sha256_hex(text);
  return text;
}

std::string_view name_of(chain_problem_kind kind) noexcept {
  switch (kind) {
  case chain_problem_kind::malformed:
    return "malformed";
  case chain_problem_kind::changed:
    return "changed";
  case chain_problem_kind::removed:
    return "removed";
  case chain_problem_kind::out_of_order:
    return "out_of_order";
  case chain_problem_kind::unchained:
    return "unchained";
  case chain_problem_kind::torn:
    return "torn";
  case chain_problem_kind::head_missing:
    return "head_missing";
  case chain_problem_kind::foreign:
    return "foreign";
  case chain_problem_kind::linked:
    return "linked";
  }
  return "unknown";
}

void chain_verifier::take(std::string_view line, bool complete) {
  ++report_.lines;
  if (!complete) {
    add(report_.lines, chain_problem_kind::torn, "the last line has no line break");
  }
  if (line.empty()) {
    return;
  }
  const auto digest = sha256_hex(line);
  const bool is_anchored = missing_heads_.erase(digest) > 0;
  const auto read = parse_edge(line);
  const bool believed = read && is_as_written(line, *read) && (read->seq || report_.chained == 0);
  if (!read) {
    add(report_.lines, chain_problem_kind::malformed, read.error().what);
  } else if (!read->seq) {
    judge_older();
  } else if (!believed) {
    add(report_.lines, chain_problem_kind::changed, "wrong checksum");
  } else {
    if (std::exchange(in_the_middle_, false)) {
      report_.last_sequence = *read->seq - 1;
      report_.head = read->prev;
      good_head_ = read->prev;
    }
    judge_chained(*read);
  }
  if (believed) {
    previous_line_ = report_.lines;
    good_head_ = digest;
  }
  damaged_between_ = believed ? 0 : damaged_between_ + 1;
  if (is_anchored) {
    report_.anchored_line = report_.lines;
    report_.anchored_head = digest;
  }
  report_.behind_anchor = is_anchored ? 0 : report_.behind_anchor + (believed ? 1 : 0);
  report_.head = digest;
}

chain_report chain_verifier::finish() {
  report_.damaged_at_end = damaged_between_;
  for (const auto& head : missing_heads_)
    add(report_.lines, chain_problem_kind::head_missing, "no line has the anchored hash " + head);
  std::stable_sort(report_.problems.begin(), report_.problems.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(report_);
}

void chain_verifier::judge_chained(const logged_edge& line) {
  ++report_.chained;
  const auto expected = report_.last_sequence + 1;
  const bool linked = line.prev == (damaged_between_ > 0 ? good_head_ : report_.head);
  if (*line.seq == expected) {
    // What stood between the last line without a number and this one may be what is damaged.
    if (!linked && !(damaged_between_ > 0 && report_.last_sequence == 0))
      accuse(line);
  } else if (!linked && *line.seq == before_jump_ + 2 && std::exchange(jumped_, false)) {
    // The line before bore a number that was not its own: what follows goes on behind it.
    accuse(line);
    report_.last_sequence = *line.seq;
  } else if (*line.seq > expected) {
    // Damaged lines in between are reported as such; so many missing numbers are then explained.
    if (*line.seq > expected + damaged_between_) {
      add(report_.lines, chain_problem_kind::removed,
          "seq " + std::to_string(expected) + " to " + std::to_string(*line.seq - 1) +
              " are missing");
      jumped_ = true;
      before_jump_ = report_.last_sequence;
    }
  } else {
    add(report_.lines, chain_problem_kind::out_of_order,
        "seq " + std::to_string(*line.seq) + " after " + std::to_string(expected - 1));
  }
  report_.last_sequence = std::max(report_.last_sequence, *line.seq);
}

/// The line and the one before it do not fit together: which of them was changed? Another text
/// has quite another hash, so that a `prev` that is almost the right one was hit itself.
void chain_verifier::accuse(const logged_edge& line) {
  const auto& wanted = damaged_between_ > 0 ? good_head_ : report_.head;
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(line.prev.size(), wanted.size()); ++i)
    same += line.prev[i] == wanted[i] ? 1 : 0;
  if (previous_line_ == 0 || same > genesis.size() / 2)
    add(report_.lines, chain_problem_kind::changed, "prev is not the hash of the previous line");
  else
    add(previous_line_, chain_problem_kind::changed,
        "not the line to which line " + std::to_string(report_.lines) + " was chained");
}

void chain_verifier::judge_older() {
  if (report_.chained > 0) {
    add(report_.lines, chain_problem_kind::unchained,
        "has no seq and prev, but follows a chain; it does not count");
    return;
  }
  ++report_.older;
  report_.last_older = report_.lines;
}

void chain_verifier::add(std::size_t line, chain_problem_kind kind, std::string detail) {
  report_.problems.push_back({line, kind, std::move(detail)});
}

namespace {

template <class F>
void for_each_line(std::string_view text, F take) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const bool complete = end != std::string_view::npos;
    take(text.substr(0, end), complete);
    text.remove_prefix(complete ? end + 1 : text.size());
  }
}

} // namespace

std::vector<std::size_t> chain_report::damaged() const {
  std::vector<std::size_t> numbers;
  for (const auto& p : problems)
    if (p.kind == chain_problem_kind::malformed || p.kind == chain_problem_kind::changed ||
        p.kind == chain_problem_kind::out_of_order || p.kind == chain_problem_kind::unchained)
      numbers.push_back(p.line);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

chain_report verify(std::string_view text, const std::optional<std::string>& anchored_head) {
  chain_verifier walk(anchored_head ? std::set<std::string>{*anchored_head}
                                    : std::set<std::string>{});
  for_each_line(text, [&](std::string_view line, bool complete) { walk.take(line, complete); });
  return walk.finish();
}

chain_report verify_end(std::string_view text, std::size_t lines_before) {
  chain_verifier walk(lines_before);
  for_each_line(text, [&](std::string_view line, bool complete) { walk.take(line, complete); });
  return walk.finish();
}

log_lines sort_lines(std::string_view text, const chain_report& report, std::size_t lines_before) {
  const auto damaged = report.damaged();
  log_lines lines;
  auto number = lines_before;
  for_each_line(text, [&](std::string_view line, bool) {
    ++number;
    if (!line.empty())
      (std::binary_search(damaged.begin(), damaged.end(), number) ? lines.damaged : lines.served)
          .push_back(line);
  });
  return lines;
}

} // namespace boyd::graph
