#include "boyd/exec/cli_reader.hpp"

#include "../core/json_values.hpp"
#include "boyd/core/money.hpp"
#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "json_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace boyd::exec {

namespace {

using json = nlohmann::json;

/// The value at a JSON pointer, or null. A loop of our own: the library's throws on an index that
/// is no number.
const json* value_at(const json& root, std::string_view place) {
  const auto* at = &root;
  while (!place.empty()) {
    place.remove_prefix(1);
    const auto end = std::min(place.find('/'), place.size());
    std::string name;
    for (std::size_t i = 0; i < end; ++i) {
      if (place[i] == '~' && i + 1 < end)
        name += place[++i] == '1' ? '/' : '~';
      else
        name += place[i];
    }
    place.remove_prefix(end);
    if (at->is_object()) {
      const auto found = at->find(name);
      if (found == at->end())
        return nullptr;
      at = &*found;
    } else if (at->is_array()) {
      constexpr std::size_t longest_index = 6;
      const bool number = !name.empty() && name.size() <= longest_index &&
                          name.find_first_not_of("0123456789") == std::string::npos &&
                          (name.size() == 1 || name.front() != '0');
      if (!number || std::stoul(name) >= at->size())
        return nullptr;
      at = &(*at)[std::stoul(name)];
    } else {
      return nullptr;
    }
  }
  return at;
}

/// The first of the places that holds something.
const json* first_of(const json& event, const std::vector<config::json_place>& places) {
  for (const auto& place : places)
    if (const auto* found = value_at(event, place); found != nullptr && !found->is_null())
      return found;
  return nullptr;
}

bool holds(const config::event_condition& condition, const json& event) {
  const auto* found = value_at(event, condition.at);
  if (found == nullptr || found->is_structured())
    return false;
  if (condition.values.empty())
    return found->is_string() &&
           found->get_ref<const std::string&>().find(condition.part) != std::string::npos;
  const auto text = found->dump(-1, ' ', false, json::error_handler_t::replace);
  return std::ranges::find(condition.values, text) != condition.values.end();
}

/// A scalar as words; structures as JSON.
std::string words_of(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string one_line(const json& value) {
  return sanitize_utf8(cut_characters(first_line(words_of(value)), event_word_characters));
}

/// A number that was counted; nothing for what cannot be one, or what no run uses.
std::optional<std::int64_t> count_of(const json& value) {
  if (!value.is_number() || value.get<double>() > static_cast<double>(most_told_tokens))
    return std::nullopt;
  if (value.is_number_integer())
    return std::max<std::int64_t>(value.get<std::int64_t>(), 0);
  return std::nullopt;
}

/// Dollars as JSON has them, rounded to millionths.
std::optional<std::int64_t> cost_of(const json& value) {
  if (!value.is_number())
    return std::nullopt;
  const auto dollars = value.get<double>();
  if (!std::isfinite(dollars) || dollars < 0 || dollars > most_told_dollars)
    return std::nullopt;
  return std::llround(dollars * static_cast<double>(dollar));
}

/// Programs repeat numbers in later events, or tell each step's alone.
void put(std::int64_t& total, std::optional<std::int64_t> value, bool add) {
  if (value)
    total =
        add ? std::min(total, std::numeric_limits<std::int64_t>::max() - *value) + *value : *value;
}

std::optional<std::int64_t> sum_of(const json& event,
                                   const std::vector<config::json_place>& places) {
  std::optional<std::int64_t> sum;
  for (const auto& place : places)
    if (const auto* found = value_at(event, place))
      if (const auto value = count_of(*found))
        sum = sum.value_or(0) + *value;
  return sum;
}

void add_name(cli_report& report, std::string name) {
  ++report.denied;
  auto& all = report.denials;
  if (all.size() < denial_names && std::ranges::find(all, name) == all.end())
    all.push_back(std::move(name));
}

class event_meaning {
 public:
  event_meaning(const config::adapter_event& rule, const json& event, cli_report& report)
      : rule_(rule), event_(event), report_(report) {}

  void apply() {
    report_.final = report_.final || rule_.final;
    report_.failed = report_.failed || rule_.failed;
    if (const auto kind = failure_class_from(rule_.failure); kind && *kind != failure_class::none)
      report_.failure = *kind;
    word(rule_.error, report_.error);
    word(rule_.session, report_.session);
    word(rule_.model, report_.model);
    text();
    numbers();
    denials();
    for (const auto& [name, place] : rule_.facts)
      word({place}, report_.facts[name]);
  }

 private:
  void word(const std::vector<config::json_place>& places, std::string& to) const {
    if (const auto* found = first_of(event_, places); found != nullptr)
      if (auto line = one_line(*found); !line.empty())
        to = std::move(line);
  }

  void text() {
    if (rule_.clears_text)
      report_.text.clear();
    const auto* found = first_of(event_, rule_.text);
    if (found == nullptr || (found->is_structured() && found->empty()))
      return;
    auto more = words_of(*found);
    if (!rule_.append)
      report_.text.clear();
    const auto room = event_text_bytes - std::min(event_text_bytes, report_.text.size());
    report_.text_cut = report_.text_cut || more.size() > room;
    more.resize(std::min(more.size(), room));
    report_.text += more;
  }

  void numbers() {
    const auto first = [&](const auto& places, auto convert) {
      const auto* found = first_of(event_, places);
      return found == nullptr ? std::nullopt : convert(*found);
    };
    const auto cost = first(rule_.cost, cost_of);
    const auto input = sum_of(event_, rule_.input);
    const auto output = sum_of(event_, rule_.output);
    report_.told_figures = report_.told_figures || cost || input || output;
    put(report_.cost, cost, rule_.add);
    put(report_.turns, first(rule_.turns, count_of), rule_.add);
    put(report_.input, input, rule_.add);
    put(report_.cached, sum_of(event_, rule_.cached), rule_.add);
    put(report_.output, output, rule_.add);
    put(report_.reasoning, sum_of(event_, rule_.reasoning), rule_.add);
  }

  void denials() {
    const auto* found = first_of(event_, rule_.denials);
    if (found == nullptr)
      return;
    if (!found->is_array())
      return denial(*found);
    for (const auto& one : *found)
      denial(one);
  }

  void denial(const json& one) {
    const auto* name = value_at(one, rule_.denial);
    add_name(report_, name == nullptr ? std::string("something") : one_line(*name));
  }

  const config::adapter_event& rule_;
  const json& event_;
  cli_report& report_;
};

bool all_hold(const std::vector<config::event_condition>& conditions, const json& value) {
  return std::ranges::all_of(conditions, [&](const auto& c) { return holds(c, value); });
}

/// A text, or the texts of a list of blocks.
std::string text_of_blocks(const json& value) {
  if (value.is_string())
    return value.get<std::string>();
  std::string text;
  if (value.is_array())
    for (const auto& block : value)
      text += block.is_string() ? block.get<std::string>() : text_in(block, "text");
  return text;
}

/// Notes the tools that an event tells of.
class tool_uses {
 public:
  tool_uses(const config::adapter_tool& rule, cli_report& report) : rule_(rule), report_(report) {}

  void take(const json& event) {
    const auto* found = value_at(event, rule_.at);
    if (found == nullptr)
      return;
    if (!found->is_array())
      return use(*found);
    for (const auto& one : *found)
      use(one);
  }

 private:
  void use(const json& one) {
    if (!one.is_object() || !all_hold(rule_.when, one))
      return;
    told_tool told;
    told.id = word(one, rule_.id);
    told.name = word(one, rule_.name);
    told.paths = paths(one);
    told.command = command(one);
    told.url = word(one, rule_.url);
    told.failed = std::ranges::any_of(rule_.failed, [&](const auto& c) { return holds(c, one); });
    const bool is_call =
        !told.name.empty() || !told.paths.empty() || !told.command.empty() || !told.url.empty();
    auto* known = of_id(told.id);
    if (known == nullptr && is_call)
      known = add(std::move(told));
    else if (known != nullptr)
      known->failed = known->failed || told.failed;
    if (known != nullptr)
      answer(one, known->result);
  }

  /// The call that an answer belongs to: most often the one before it.
  told_tool* of_id(const std::string& id) {
    if (id.empty())
      return nullptr;
    const auto known = std::find_if(report_.tools.rbegin(), report_.tools.rend(),
                                    [&](const told_tool& t) { return t.id == id; });
    return known == report_.tools.rend() ? nullptr : &*known;
  }

  told_tool* add(told_tool told) {
    if (told.name.empty())
      told.name = rule_.called.empty() ? "tool" : rule_.called;
    auto bytes = told.id.size() + told.name.size() + told.command.size() + told.url.size();
    for (const auto& path : told.paths)
      bytes += path.size();
    if (report_.tools.size() == told_tools_kept || report_.tool_words + bytes > told_tools_bytes) {
      ++report_.tools_dropped;
      return nullptr;
    }
    report_.tool_words += bytes;
    return &report_.tools.emplace_back(std::move(told));
  }

  static std::string word_in(const json& value) {
    auto text =
        value.is_string() ? sanitize_utf8(value.get_ref<const std::string&>()) : std::string();
    return text.size() > tool_word_bytes ? std::string() : text;
  }

  static std::string word(const json& one, const std::vector<config::json_place>& places) {
    const auto* found = first_of(one, places);
    return found == nullptr ? std::string() : word_in(*found);
  }

  std::vector<std::string> paths(const json& one) const {
    std::vector<std::string> all;
    const auto* found = first_of(one, rule_.path);
    if (found == nullptr)
      return all;
    const auto keep = [&](const json& value) {
      if (auto path = word_in(value); !path.empty())
        all.push_back(std::move(path));
    };
    if (!found->is_array())
      keep(*found);
    else
      for (const auto& value : *found)
        keep(value);
    return all;
  }

  /// A program and its arguments, too.
  std::string command(const json& one) const {
    const auto* found = first_of(one, rule_.command);
    if (found == nullptr)
      return {};
    std::string line;
    if (found->is_string())
      line = found->get<std::string>();
    else if (found->is_array())
      for (const auto& part : *found)
        if (part.is_string())
          line += (line.empty() ? "" : " ") + part.get_ref<const std::string&>();
    line = sanitize_utf8(line);
    if (line.size() <= tool_word_bytes)
      return line;
    line.resize(tool_word_bytes);
    return sanitize_utf8(line) + "…"; // half of a character may be its end
  }

  void answer(const json& one, std::string& to) {
    const auto* found = first_of(one, rule_.result);
    if (found == nullptr)
      return;
    auto text = sanitize_utf8(text_of_blocks(*found));
    const auto others = report_.tool_results - to.size();
    if (text.empty() || others + text.size() > tool_result_bytes)
      return;
    report_.tool_results = others + text.size();
    to = std::move(text);
  }

  const config::adapter_tool& rule_;
  cli_report& report_;
};

/// Returns whether it shows progress.
bool take_event(const config::cli_adapter& adapter, const json& event, cli_report& report) {
  ++report.events;
  bool progress = true;
  for (const auto& rule : adapter.events) {
    if (!all_hold(rule.when, event))
      continue;
    progress = progress && rule.progress;
    event_meaning(rule, event, report).apply();
    if (rule.tool)
      tool_uses(*rule.tool, report).take(event);
  }
  report.moves += progress ? 1 : 0;
  return progress;
}

} // namespace

bool cli_reader::append(std::string_view bytes) {
  using parser_t = config::cli_adapter::parser_t;
  bool progress = !bytes.empty();
  if (adapter_.parser == parser_t::jsonl)
    progress = append_lines(bytes);
  else if (adapter_.parser == parser_t::json)
    append_document(bytes);
  begun_ = begun_ || progress;
  return progress;
}

void cli_reader::complain(std::string_view bytes) {
  constexpr std::size_t line_bytes = 64u << 10;
  if (adapter_.stderr_denials.empty())
    return;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    complaint_ += part.substr(0, line_bytes - std::min(line_bytes, complaint_.size()));
    if (end == std::string_view::npos)
      return;
    take_complaint();
    bytes.remove_prefix(end + 1);
  }
}

/// One line is one denial.
void cli_reader::take_complaint() {
  for (const auto& rule : adapter_.stderr_denials) {
    if (complaint_.find(rule.contains) == std::string::npos)
      continue;
    add_name(report_, rule.denial);
    break;
  }
  complaint_.clear();
}

void cli_reader::begin_line() {
  line_.clear();
  skipping_ = in_object_ = in_string_ = cut_ = cut_here_ = false;
  string_bytes_ = 0;
}

/// Cuts the texts of an event, not the event.
void cli_reader::keep(std::string_view bytes) {
  constexpr std::size_t window = 512;
  while (!bytes.empty() && !skipping_) {
    // The usual case, some bytes of a text, at once.
    const auto part = bytes.substr(0, window);
    const auto plain = std::min(part.find_first_of("\"\\{"), part.size());
    const bool room =
        line_.size() + plain <= event_line_bytes && string_bytes_ + plain < event_string_bytes;
    if (plain > 0 && room) {
      line_ += bytes.substr(0, plain);
      string_bytes_ += plain;
      since_escape_ += plain;
      bytes.remove_prefix(plain);
      continue;
    }
    keep_character(bytes.front());
    bytes.remove_prefix(1);
  }
}

void cli_reader::keep_character(char c) {
  constexpr std::size_t short_escape = 2;
  constexpr std::size_t unicode_escape_bytes = 6; // \uXXXX
  const bool escaped = in_string_ && since_escape_ == 1;
  const bool ends = in_string_ && c == '"' && !escaped;
  const auto most = line_.size() > event_line_bytes ? event_short_bytes : event_string_bytes;
  if (in_string_ && !ends && string_bytes_ >= most &&
      (since_escape_ >= escape_bytes_ || cut_here_)) {
    cut_ = cut_here_ = true;
    since_escape_ = c == '\\' && !escaped ? 1 : since_escape_ == 1 ? 2 : since_escape_ + 1;
    return;
  }
  line_ += c;
  ++string_bytes_;
  ++since_escape_;
  if (in_string_) {
    if (ends)
      in_string_ = cut_here_ = false;
    else if (c == '\\' && !escaped) {
      since_escape_ = 1;
      escape_bytes_ = short_escape;
    } else if (escaped && c == 'u') {
      escape_bytes_ = unicode_escape_bytes;
    }
  } else if (c == '{') {
    in_object_ = true;
  } else if (c == '"' && in_object_) {
    in_string_ = true;
    string_bytes_ = 0;
    since_escape_ = unicode_escape_bytes;
  }
  if (!in_string_)
    string_bytes_ = 0;
  if (line_.size() > event_most_bytes) {
    skipping_ = true;
    ++report_.too_long;
    line_.clear();
    line_.shrink_to_fit();
  }
}

bool cli_reader::append_lines(std::string_view bytes) {
  bool progress = false;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    keep(bytes.substr(0, end));
    // It moves on, whatever it is.
    progress = progress || skipping_ || cut_;
    if (end == std::string_view::npos)
      break;
    progress = take_line() || progress;
    bytes.remove_prefix(end + 1);
  }
  return progress;
}

void cli_reader::append_document(std::string_view bytes) {
  if (!document_taken_)
    keep(bytes);
}

bool cli_reader::take_line() {
  bool progress = false;
  if (!skipping_ && !trim(line_).empty() && !take_events(line_, progress))
    ++report_.no_json;
  begin_line();
  return progress;
}

bool cli_reader::take_events(std::string_view text, bool& progress) {
  constexpr int most = 64; // in one line
  bool any = false;
  for (int i = 0; i < most; ++i) {
    const auto found = find_object(text);
    if (!found)
      break;
    any = true;
    report_.cut += i == 0 && cut_ ? 1 : 0;
    progress = take_event(adapter_, found->value, report_) || progress;
    text.remove_prefix(found->end);
  }
  return any;
}

bool cli_reader::take_pending() {
  using parser_t = config::cli_adapter::parser_t;
  if (adapter_.parser == parser_t::text || skipping_ || document_taken_ || in_string_)
    return false;
  bool progress = false;
  if (!trim(without_escapes(line_)).ends_with('}') || !take_events(line_, progress))
    return false;
  document_taken_ = adapter_.parser == parser_t::json;
  begin_line();
  begun_ = true;
  return true;
}

void cli_reader::finish() {
  using parser_t = config::cli_adapter::parser_t;
  if (adapter_.parser != parser_t::text && !line_.empty())
    begun_ = take_line() || begun_;
  line_.clear();
  take_complaint();
  report_.text = sanitize_utf8(report_.text);
}

run_usage usage_of(const cli_report& r, const std::string& adapter, milliseconds wall,
                   const std::string& ended) {
  const auto figure = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const auto some = [&](std::uint64_t n) { return n > 0 ? usage_figure(figure(n)) : std::nullopt; };
  std::vector<told_fact> told;
  for (const auto& [name, value] : r.facts)
    if (!value.empty())
      told.push_back({name, value});
  return {.provider = adapter,
          .model = r.model,
          .turns = r.turns,
          .denied = figure(r.denied),
          .input_tokens = r.input,
          .cached_tokens = r.cached,
          .output_tokens = r.output,
          .reasoning_tokens = r.reasoning,
          .cost_microusd = r.cost,
          .session_id = r.session,
          .events = figure(r.events),
          .denials = r.denials,
          .no_json_lines = some(r.no_json),
          .too_long_lines = some(r.too_long),
          .cut_events = some(r.cut),
          .ended = ended,
          .wall_ms = wall.count(),
          .told = std::move(told)};
}

} // namespace boyd::exec
