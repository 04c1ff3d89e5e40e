#include "delta.hpp"

#include "boyd/core/outside_json.hpp"
#include "boyd/core/text.hpp"
#include "json.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

// What is sent back differs from what came in this, because servers refuse their own words:
//   * members that are null go, but for `content`; `tool_calls` without a call goes (OpenAI);
//   * `tool_calls[].index` goes: it belongs to chunks alone (OpenAI refuses it);
//   * `annotations` go: only answers have them (OpenAI's own schema of requests);
//   * arguments that are no JSON object become {}: Ollama, vLLM and llama.cpp refuse the whole
//     request otherwise; the tool's answer says what was wrong with them;
//   * a call without an id, or with one that was there before, gets "call_<n>";
//   * `role` is assistant; `content` is null when only tools were called (Anthropic refuses "").
// Reasoning stays under its own name: DeepSeek refuses an answer with calls that comes without it.
namespace boyd::model {
namespace {

using nlohmann::json;

/// Strings that come once, or again and again whole; all others come in pieces.
constexpr std::array<std::string_view, 11> whole_strings{
    "id",     "type",        "role",
    "name",   "index",       "format",
    "status", "signature",   "thought_signature",
    "object", "tool_call_id"};
/// Entries of an array are the same when these are.
constexpr std::array<const char*, 2> entry_names{"type", "id"};
/// An entry of an array is looked for among so many: pieces follow one another.
constexpr std::size_t entries_searched = 64;

bool is_whole(std::string_view key) {
  return std::find(whole_strings.begin(), whole_strings.end(), key) != whole_strings.end();
}

void merge_members(json& into, const json& from);

bool same_entry(const json& a, const json& b) {
  const auto* index = member(a, "index");
  const auto* other = member(b, "index");
  if (!index || !other || *index != *other)
    return false;
  // OpenRouter numbers a text and an encrypted block alike, and each encrypted block with its own
  // id.
  return std::all_of(entry_names.begin(), entry_names.end(), [&](const char* key) {
    const auto name = text_of(a, key);
    const auto other_name = text_of(b, key);
    return name.empty() || other_name.empty() || name == other_name;
  });
}

void merge_entry(json& into, const json& entry) {
  const auto size = into.size();
  for (std::size_t back = 1; back <= std::min(size, entries_searched); ++back)
    if (auto& present = into[size - back]; same_entry(present, entry))
      return merge_members(present, entry);
  into.push_back(entry);
}

void merge_value(json& into, std::string_view key, const json& value) {
  if (into.is_string() && value.is_string()) {
    const auto& piece = value.get_ref<const std::string&>();
    auto& text = into.get_ref<std::string&>();
    if (!is_whole(key))
      text += piece;
    else if (!piece.empty())
      text = piece;
  } else if (into.is_object() && value.is_object()) {
    merge_members(into, value);
  } else if (into.is_array() && value.is_array()) {
    for (const auto& entry : value)
      merge_entry(into, entry);
  } else {
    into = value;
  }
}

void merge_members(json& into, const json& from) {
  for (const auto& [key, value] : from.items())
    if (!value.is_null())
      merge_value(into[key], key, value);
}

/// Adds a part of a content, or joins it with the last one of its kind.
void add_part(json& parts, const json& part) {
  const auto type = text_of(part, "type");
  if (!parts.empty() && part.is_object() && text_of(parts.back(), "type") == type &&
      part.size() == 2) {
    auto& last = parts.back();
    for (const char* key : {"text", "thinking"}) {
      const auto* piece = member(part, key);
      if (!piece || !last.contains(key))
        continue;
      if (piece->is_string() && last[key].is_string()) {
        last[key].get_ref<std::string&>() += piece->get_ref<const std::string&>();
        return;
      }
      if (piece->is_array() && last[key].is_array()) {
        for (const auto& inner : *piece)
          add_part(last[key], inner);
        return;
      }
    }
  }
  parts.push_back(part);
}

/// A string, or a value that should have been one (arguments as an object).
std::string text_or_json(const json& value) {
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

/// Whether `text` is one JSON object. Looked at piece by piece, so what cannot be one costs
/// nothing.
bool is_json_object(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || text.front() != '{' || text.back() != '}')
    return false;
  const auto value = parse_piece(text);
  return value && value->is_object();
}

} // namespace

bool message_builder::add(const json& delta) {
  if (!delta.is_object())
    return true;
  for (const auto& [key, value] : delta.items()) {
    if (value.is_null() || key == "role" || key == "annotations")
      continue;
    if (key == "content") {
      add_content(value);
    } else if (key == "tool_calls") {
      if (!add_calls(value))
        return false;
    } else if (key == "refusal" && value.is_string()) {
      refusal_ += value.get_ref<const std::string&>();
      progress_ += value.get_ref<const std::string&>().size();
    } else {
      if (value.is_string() && !is_whole(key))
        progress_ += value.get_ref<const std::string&>().size();
      merge_value(message_[key], key, value);
    }
  }
  return true;
}

void message_builder::add_text(std::string_view text) {
  text_ += text;
  progress_ += text.size();
}

/// Nearly always a string; Mistral's reasoning models send parts.
void message_builder::add_content(const json& content) {
  if (content.is_string()) {
    const auto& text = content.get_ref<const std::string&>();
    add_text(text);
    if (!parts_.empty() && !text.empty())
      add_part(parts_, {{"type", "text"}, {"text", text}});
    return;
  }
  if (!content.is_array())
    return;
  if (parts_.empty() && !text_.empty())
    add_part(parts_, {{"type", "text"}, {"text", text_}});
  for (const auto& part : content) {
    const auto text = text_of(part, "text");
    if (text.empty())
      progress_ += to_text(part).size();
    add_text(text);
    add_part(parts_, part);
  }
}

bool message_builder::add_calls(const json& pieces) {
  if (!pieces.is_array())
    return true;
  for (const auto& piece : pieces) {
    if (!piece.is_object())
      continue;
    if (is_repetition(piece))
      continue;
    const auto at = slot_of(piece);
    if (at >= calls_of_an_answer)
      return false;
    if (at == calls_.size())
      calls_.emplace_back();
    auto& slot = calls_[at];
    if (const auto index = count_of(piece, "index"))
      slot.index = index;
    for (const auto& [key, value] : piece.items()) {
      if (value.is_null() || key == "index")
        continue;
      if (key == "function" && value.is_object())
        add_function(slot, value);
      else
        merge_value(slot.whole[key], key, value);
    }
    slot.call.id = text_of(slot.whole, "id");
  }
  return true;
}

/// Whether a piece for `slot` begins another call: servers number all calls 0, and leave out ids. A
/// complete object is followed by another name or another object; both of them again are a
/// repetition.
bool message_builder::begins_another(const call_slot& slot, const json& piece) {
  const auto id = text_of(piece, "id");
  const bool other_id = !id.empty() && !slot.call.id.empty() && id != slot.call.id;
  const auto* function = member(piece, "function");
  const auto name = function ? text_of(*function, "name") : std::string();
  if (other_id && !name.empty())
    return true;
  if (!is_json_object(slot.call.arguments))
    return false;
  const auto* arguments = function ? member(*function, "arguments") : nullptr;
  const auto text = arguments ? text_or_json(*arguments) : std::string();
  return other_id || (!name.empty() && name != slot.call.name) || trim(text).starts_with('{');
}

/// Whether a piece says once more what its call already holds, as servers do that end a stream with
/// the whole message.
bool message_builder::is_repetition(const json& piece) const {
  const auto* function = member(piece, "function");
  const auto* arguments = function ? member(*function, "arguments") : nullptr;
  if (!arguments)
    return false;
  const auto text = text_or_json(*arguments);
  const auto name = text_of(*function, "name");
  const auto id = text_of(piece, "id");
  const auto index = count_of(piece, "index");
  return is_json_object(text) && std::ranges::any_of(calls_, [&](const call_slot& slot) {
           const bool same_id =
               id.empty() || slot.call.id.empty() ? index.has_value() : slot.call.id == id;
           const bool same_place = same_id && (!index || !slot.index || index == slot.index);
           return same_place && (name.empty() || name == slot.call.name) &&
                  slot.call.arguments == text;
         });
}

/// Where a piece belongs; calls_.size() for a new call. With an index that is simple, but for
/// servers that number all calls 0; without one (Gemini and others) an id or a name begins a call,
/// and what has neither goes on with the last.
std::size_t message_builder::slot_of(const json& piece) {
  const auto id = text_of(piece, "id");
  const auto* function = member(piece, "function");
  const bool named = function && !text_of(*function, "name").empty();
  if (const auto index = count_of(piece, "index")) {
    const auto [found, fresh] = slot_of_index_.try_emplace(*index, calls_.size());
    if (!fresh && begins_another(calls_[found->second], piece))
      found->second = calls_.size();
    return found->second;
  }
  if (!id.empty()) {
    for (std::size_t i = calls_.size(); i > 0; --i)
      if (calls_[i - 1].call.id == id)
        return i - 1;
    // The id may come after the first piece of its call.
    const bool continues = !named && !calls_.empty() && calls_.back().call.id.empty();
    return continues ? calls_.size() - 1 : calls_.size();
  }
  return named || calls_.empty() || begins_another(calls_.back(), piece) ? calls_.size()
                                                                         : calls_.size() - 1;
}

void message_builder::add_function(call_slot& slot, const json& function) {
  auto& whole = slot.whole["function"];
  for (const auto& [key, value] : function.items()) {
    if (value.is_null())
      continue;
    if (key == "arguments") {
      const auto piece = text_or_json(value);
      slot.call.arguments += piece;
      progress_ += piece.size();
    } else if (key == "name") {
      // Some servers say the whole name with each piece.
      const auto piece = text_or_json(value);
      if (piece != slot.call.name)
        slot.call.name += piece;
    } else {
      merge_value(whole[key], key, value);
    }
  }
}

void message_builder::name_calls() {
  std::erase_if(calls_,
                [](const call_slot& s) { return s.call.name.empty() && s.call.arguments.empty(); });
  std::set<std::string> taken;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    auto& id = calls_[i].call.id;
    for (std::size_t n = i; id.empty() || !taken.insert(id).second; ++n)
      id = "call_" + std::to_string(n);
  }
}

json message_builder::calls_json() const {
  auto out = json::array();
  for (const auto& slot : calls_) {
    auto whole = slot.whole;
    whole["id"] = slot.call.id;
    if (!whole.contains("type"))
      whole["type"] = "function";
    auto& function = whole["function"];
    function["name"] = slot.call.name;
    function["arguments"] = is_json_object(slot.call.arguments) ? slot.call.arguments : "{}";
    out.push_back(std::move(whole));
  }
  return out;
}

/// Characters that were cut in two are whole now. Arguments that are no strict JSON object are
/// mended, for tools and providers read them strictly.
void message_builder::join() {
  join_pieces(text_);
  join_pieces(refusal_);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    auto& call = calls_[i].call;
    if (call.name.empty() && i > 0) // another object for the same tool
      call.name = calls_[i - 1].call.name;
    join_pieces(call.name);
    join_pieces(call.arguments);
    if (const auto mended = mend_json(call.arguments); mended && mended->mended)
      call.arguments = mended->text;
  }
}

void message_builder::finish(chat_answer& answer) {
  join();
  name_calls();
  message_["role"] = "assistant";
  if (!parts_.empty())
    message_["content"] = std::move(parts_);
  else if (text_.empty() && !calls_.empty())
    message_["content"] = nullptr;
  else
    message_["content"] = text_;
  if (!refusal_.empty())
    message_["refusal"] = refusal_;
  if (!calls_.empty())
    message_["tool_calls"] = calls_json();
  answer.message = to_text(message_);
  join_pieces(answer.message);
  for (auto& slot : calls_)
    answer.calls.push_back(std::move(slot.call));
  answer.text = std::move(text_);
  answer.refusal = std::move(refusal_);
}

message_json portable_message(const message_json& message) {
  const auto value = parse_json(message);
  if (!value || text_of(*value, "role") != "assistant")
    return message;
  json out{{"role", "assistant"}, {"content", nullptr}};
  if (const auto* content = member(*value, "content"); content && content->is_string()) {
    out["content"] = *content;
  } else if (content && content->is_array()) {
    std::string text;
    for (const auto& part : *content)
      text += text_of(part, "text");
    out["content"] = text;
  }
  const auto* calls = member(*value, "tool_calls");
  if (!calls || !calls->is_array())
    return to_text(out);
  for (const auto& call : *calls) {
    const auto* function = member(call, "function");
    if (function)
      out["tool_calls"].push_back({{"id", text_of(call, "id")},
                                   {"type", "function"},
                                   {"function",
                                    {{"name", text_of(*function, "name")},
                                     {"arguments", text_of(*function, "arguments")}}}});
  }
  return to_text(out);
}

} // namespace boyd::model
