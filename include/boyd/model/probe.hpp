#pragma once

#include "boyd/config/models.hpp"
#include "boyd/core/result.hpp"
#include "boyd/core/time.hpp"
#include "boyd/model/chat.hpp"
#include "boyd/model/trouble.hpp"
#include "boyd/ports/http_client.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boyd::model {

/// What was found of each capability; nothing: not found out.
struct found_capabilities {
  std::optional<bool> tools;
  std::optional<bool> schema;
  std::optional<bool> stream;
  std::optional<bool> stream_usage;

  bool operator==(const found_capabilities&) const = default;
};

/// As text, to be kept: JSON with the address that it was found at and when.
std::string to_text(const found_capabilities& found, const std::string& base_url, utc_time at);

/// What `text` says of `base_url`; nothing when it is of another address, or no such text.
found_capabilities found_in(std::string_view text, const std::string& base_url);

/// Puts what was found into the place of what the configuration itself does not say.
void apply(const found_capabilities& found, config::provider& p);

/// The scope of the facts in which findings are kept, by model.
std::string findings_scope(const std::string& provider_id);

enum class probe_state : std::uint8_t {
  works,
  lacks,   ///< the endpoint answers, but cannot do this
  unclear, ///< worth a look; says nothing for sure
  failed,
  skipped, ///< something before it failed
};

std::string_view name_of(probe_state s) noexcept;

/// One thing that was tried.
struct probe_check {
  std::string name; ///< models | chat | stream | stream_usage | tools | schema
  probe_state state = probe_state::skipped;
  std::string what; ///< in words; may hold what the endpoint said
  std::string next; ///< what to do; may be empty
  milliseconds took{0};
};

/// Finds out by calls what a provider's endpoint can do: its list of models, a small answer, one as
/// a stream, the usage in it, a tool, an answer by a schema. One call after the other, each with a
/// limit of its own; what fails beyond doubt (no connection, no right key, no such model) ends it.
/// Only what the endpoint clearly does or refuses becomes a finding. Not thread-safe.
class provider_probe {
 public:
  /// `key`: empty for none.
  provider_probe(config::provider p, std::string model, std::string key);

  struct call {
    http_request request;
    usage most; ///< what it may use; none: no model is called
  };
  /// The next call; nothing: all is said. To be answered by finish() or stop().
  std::optional<call> next();

  /// How the call went: what it used; nothing when nobody knows (it may have cost something).
  std::optional<usage> finish(const http_head& head, std::string_view body,
                              const result<void>& transport, milliseconds took);

  /// The call cannot be made: the rest is skipped.
  void stop(std::string what, std::string next);

  /// In the order of the names above; complete when next() gave nothing.
  const std::vector<probe_check>& checks() const { return checks_; }
  const found_capabilities& found() const { return found_; }
  /// A small chat went well.
  bool answers() const { return answers_; }

 private:
  enum class step : std::uint8_t {
    models,
    chat,
    stream,
    stream_without_usage,
    tools,
    tools_at_will, ///< the tool is not forced: not every server takes that
    schema,
    over,
  };

  http_request list_request() const;
  call chat_call() const;
  void say(std::string name, probe_state state, std::string what, std::string next = {});
  void note(std::string name, std::optional<bool>& finding, bool can, std::string what);
  void fail_with(std::string name, const trouble& t, const result<void>& transport);
  std::string advice(const trouble& t, const result<void>& transport) const;
  void skip_rest();
  void on_models(const http_head& head, std::string_view body, const result<void>& transport);
  void on_trouble(const trouble& t, const result<void>& transport);
  void on_answer(const chat_answer& a, bool streamed);
  void on_stream(const chat_answer& a, bool streamed);
  void on_tools(const chat_answer& a);
  void on_schema(const chat_answer& a);

  config::provider provider_; ///< as configured, but able to do everything
  config::model_capabilities configured_;
  std::string model_;
  std::string key_;
  step at_ = step::models;
  milliseconds took_{0};
  bool listed_ = false; ///< the list of models was there
  bool answers_ = false;
  std::vector<std::string> models_;
  std::vector<probe_check> checks_;
  found_capabilities found_;
};

} // namespace boyd::model
