#include "actors/executor/parts.hpp"

namespace boyd::executing {

void begin_chat(self_pointer self, const config::chat_executor&) {
  finish_unstarted(self, {errc::refused, "this node calls no models", {}, {}},
                   failure_class::environment);
}
void perform_talk(self_pointer, exec::chat_effect&) {}
void on_place(self_pointer, const place_answer&) {}
void on_call_ended(self_pointer, const model_call_ended&) {}
void on_talk_again(self_pointer, const talk_again&) {}
void write_turns(self_pointer) {}

} // namespace boyd::executing
