#include "boyd/mcp/content.hpp"
#include "boyd/mcp/line_reader.hpp"
#include "boyd/mcp/session.hpp"
#include "boyd/mcp/trust.hpp"
#include "fuzz/target.hpp"

#include <string>
#include <variant>

namespace boyd::fuzz {
namespace {

using namespace boyd::mcp;

/// What a session does with a server's words keeps to the protocol, whatever they are.
class heard {
 public:
  void take(session& s, session_effects effects) {
    for (auto& any : effects) {
      require(!over_, "nothing comes after the end");
      if (auto* out = std::get_if<effect::send>(&any)) {
        require(read_message(out->text).has_value(), "what is sent is a message");
        require(out->text.find('\n') == std::string::npos, "what is sent is one line");
      } else if (auto* done = std::get_if<effect::call_done>(&any)) {
        require(!answered_, "a call is answered once");
        answered_ = true;
        if (done->result_json)
          (void)words_of_call(*done->result_json);
      } else if (std::holds_alternative<effect::failed>(any)) {
        over_ = true;
      }
    }
    require(s.is_over() == over_, "the end is told");
    require(s.tools().size() <= most_tools, "the list of tools is bounded");
  }

 private:
  bool over_ = false;
  bool answered_ = false;
};

void converse(std::string_view bytes, bool http, era_t remembered, bool asks) {
  session_options o;
  o.http = http;
  o.remembered = remembered;
  o.asks = asks;
  session s(o);
  heard all;
  steady_time now{};
  all.take(s, s.begin(now));
  server_call call;
  call.key = "call";
  call.name = "t";
  all.take(s, s.call(call, now));
  line_reader lines(1u << 20);
  (void)lines.feed(bytes, [&](std::string_view line) {
    now += 100ms;
    all.take(s, s.on_message(line, now));
    all.take(s, s.on_time(now));
  });
  all.take(s, s.on_closed({errc::actor_down, "gone", {}, {}}));
}

/// The first byte picks who listens, the rest is what a server writes.
void run(std::string_view input) {
  reader in{input};
  const auto who = in.byte();
  const auto bytes = in.rest();
  if (const auto m = read_message(bytes)) {
    const auto text = std::visit([](const auto& x) { return to_text(x); }, *m);
    const auto again = read_message(text);
    require(again && *again == *m, "a message is read as it was written");
  }
  converse(bytes, (who & 1) != 0, (who & 2) != 0 ? era_t::legacy : era_t::unknown, (who & 4) != 0);
  const auto nothing = [](const std::string&) { return std::optional<std::string>(); };
  (void)read_mcp_json(bytes, nothing);
  if (const auto list = read_trust(bytes))
    require(read_trust(trust_text(*list)) == *list, "the list of trust is read as it was written");
}

const registration registered{"mcp_messages", run};

} // namespace
} // namespace boyd::fuzz
