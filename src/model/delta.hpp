#pragma once

#include "boyd/model/chat.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::model {

/// More calls of tools in one answer are garbage.
inline constexpr std::size_t calls_of_an_answer = 256;

/// An assistant's message, built from the pieces of a stream or from one whole message.
class message_builder {
 public:
  /// Adds a delta, or a message. False when there are more calls than calls_of_an_answer.
  bool add(const nlohmann::json& delta);

  /// The text so far.
  const std::string& text() const { return text_; }
  /// Bytes of text, reasoning and arguments so far.
  std::size_t progress() const { return progress_; }

  /// Moves text, refusal, calls and message to `answer`. Once.
  void finish(chat_answer& answer);

 private:
  struct call_slot {
    nlohmann::json whole = nlohmann::json::object();
    tool_call call;
    std::optional<std::int64_t> index; ///< that its pieces came with
  };

  void add_content(const nlohmann::json& content);
  void add_text(std::string_view text);
  bool add_calls(const nlohmann::json& pieces);
  static bool begins_another(const call_slot& slot, const nlohmann::json& piece);
  bool is_repetition(const nlohmann::json& piece) const;
  std::size_t slot_of(const nlohmann::json& piece);
  void add_function(call_slot& slot, const nlohmann::json& function);
  void join();
  void name_calls();
  nlohmann::json calls_json() const;

  nlohmann::json message_ = nlohmann::json::object();
  nlohmann::json parts_ = nlohmann::json::array(); ///< of the content, where it came in parts
  std::vector<call_slot> calls_;
  std::map<std::int64_t, std::size_t> slot_of_index_;
  std::string text_;
  std::string refusal_;
  std::size_t progress_ = 0;
};

} // namespace boyd::model
