#pragma once

#include "boyd/ports/http_client.hpp"
#include "support/sim/http.hpp"
#include "support/sim/seeded_entropy.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::sim {

/// What a simulated model did with a call of a chat.
enum class model_act : std::uint8_t {
  answered,  ///< its last word, by the schema where there is one
  uncounted, ///< the same, and nothing about usage
  wrote,     ///< wants write_file
  read,      ///< wants read_file
  listed,    ///< wants list_dir
  erred,     ///< wants a tool that there is not, or gives it no JSON
  off_schema,
  empty,
  declined,
  cut,      ///< ended at its limit of tokens
  nonsense, ///< 200, and no JSON
  rate_limited,
  failed,            ///< 500
  overloaded,        ///< 503
  overloaded_midway, ///< 200, an event, then an error object
  broke_off,         ///< the connection broke in the answer
  stalled,           ///< it began, and nothing more came
  silent,            ///< nothing ever came
  unreachable,
};

inline constexpr std::size_t model_acts = static_cast<std::size_t>(model_act::unreachable) + 1;

std::string_view name_of(model_act a) noexcept;

/// An answer, and what is in it.
struct model_reply {
  sim_http_answer http;
  model_act act = model_act::answered;
  std::int64_t tokens = 0; ///< that it says were used; 0: it says nothing
  /// Of a file that it wants written: its serial number, which is in the id of the tool call, too.
  struct file_wish {
    std::uint64_t serial = 0;
    std::string path;
  };
  std::vector<file_wish> writes{};
};

/// What models write, one text for each serial number: a torn one is none of them.
std::string whole_text(std::uint64_t serial);
/// The serial number of a whole text; nothing for anything else.
std::optional<std::uint64_t> serial_of(std::string_view text);
/// The id of the tool call that writes it.
std::string write_id(std::uint64_t serial);

/// The files that models write, relative to the workspace.
inline constexpr std::array<std::string_view, 2> model_files{"notes.md", "log/latest.md"};

/// The endpoints of a world: often good, sometimes as models and their networks are, and for a
/// while none of it. Everything is drawn from `choices`. What it says of usage never goes beyond
/// what the caller may have reserved by four bytes a token. Single-threaded.
class models {
 public:
  explicit models(seeded_entropy& choices) : choices_(choices) {}

  /// To a planner or reducer.
  sim_http_answer advise(const http_request& request);
  /// To a chat, in the format of OpenAI's chat completions, plain or as events.
  model_reply converse(const http_request& request);

  /// From now on all calls of chats come to `act`; nothing: to what is drawn.
  void trouble(std::optional<model_act> act) { trouble_ = act; }
  /// How many calls have met it.
  std::uint64_t troubled() const { return troubled_; }
  /// One of the troubles.
  model_act draw_trouble();

  /// How often each was done.
  const std::array<std::uint64_t, model_acts>& acts() const { return acts_; }

 private:
  struct asked;

  std::uint64_t draw(std::uint64_t below) { return choices_.next() % below; }
  milliseconds draw_ms(milliseconds from, milliseconds to);
  model_act draw_act(const asked& q);
  void speak(const asked& q, model_reply& r);
  void fail_with(const asked& q, model_reply& r);

  seeded_entropy& choices_;
  std::optional<model_act> trouble_;
  std::uint64_t troubled_ = 0; ///< calls
  std::uint64_t serial_ = 0;
  std::array<std::uint64_t, model_acts> acts_{};
};

} // namespace boyd::sim
