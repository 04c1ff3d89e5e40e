#include "actors/conversation/line.hpp"

#include "boyd/config/redact.hpp"
#include "boyd/faults/faulty_ports.hpp"
#include "boyd/faults/points.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/http_client.hpp"

#include <caf/actor.hpp>
#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

namespace boyd::conversing {

bool line::perform_plain(exec::chat_effect& any) {
  if (auto* e = std::get_if<exec::effect::ask_place>(&any)) {
    caf::anon_send(parts_.governor,
                   place_request{{},
                                 {{}, e->provider_id, parts_.caller, e->call, e->tokens, e->model},
                                 caf::actor_cast<place_holder_actor>(parts_.owner)});
  } else if (const auto* d = std::get_if<exec::effect::drop_place>(&any)) {
    release(d->provider_id, d->call, {});
  } else if (auto* l = std::get_if<exec::effect::leave_place>(&any)) {
    release(l->provider_id, l->call, call_ended{l->tokens, std::move(l->trouble), l->counted});
  } else if (auto* paid = std::get_if<exec::effect::settle_spend>(&any)) {
    // Sent, not asked: the owner may be gone before the answer. What the store does not take stays
    // reserved, which counts the most that the call could have cost.
    store_request request;
    request.add(std::move(paid->what));
    caf::anon_send(parts_.store, std::move(request));
  } else if (auto* c = std::get_if<exec::effect::call_model>(&any)) {
    start(*c);
  } else if (std::holds_alternative<exec::effect::cancel_call>(any)) {
    cancel();
  } else {
    return false;
  }
  return true;
}

void line::release(const std::string& provider_id, std::uint64_t call,
                   std::optional<call_ended> ended) const {
  caf::anon_send(parts_.governor, place_release{{},
                                                provider_id,
                                                call,
                                                std::move(ended),
                                                caf::actor_cast<place_holder_actor>(parts_.owner)});
}

void line::start(exec::effect::call_model& e) {
  const auto call = e.call;
  http_events events;
  events.on_head = [hear = parts_.hear, call](const http_head& head) {
    hear([&](exec::dialogue& d) { d.on_head(call, head); });
  };
  events.on_body = [hear = parts_.hear, call](std::string_view bytes) {
    hear([&](exec::dialogue& d) { d.on_body(call, bytes); });
  };
  events.on_end = [owner = parts_.owner, call](const result<void>& transport) {
    if (auto strong = caf::actor_cast<caf::actor>(owner))
      caf::anon_send(strong, call_returned{{}, call, transport});
  };
  if (auto passed = faults::pass("models.call"); !passed)
    return events.on_end(fail(std::move(passed.error())));
  under_way_.emplace(call, parts_.context->ports.http->start(
                               std::move(e.request),
                               faults::watched(std::move(events), faults::point("models.answer"))));
}

void line::cancel() {
  if (const auto was = std::exchange(under_way_, std::nullopt))
    parts_.context->ports.http->cancel(was->second);
}

void line::on_place(const place_answer& m) const {
  if (parts_.talk)
    parts_.talk([&](exec::dialogue& d) { return d.on_place(m.call, m.why, m.input_ratio); });
}

void line::on_returned(const call_returned& m) {
  if (under_way_ && under_way_->first == m.call)
    under_way_.reset();
  if (parts_.talk)
    parts_.talk([&](exec::dialogue& d) { return d.on_call_end(m.call, m.transport); });
}

void line::on_again(const call_again& m) const {
  if (parts_.talk)
    parts_.talk([&](exec::dialogue& d) { return d.on_repeat(m.call); });
}

std::string record_line(const node_context& context, const std::string& json,
                        const std::vector<std::string>& secrets) {
  return config::redact_text("{\"at\":\"" + format_rfc3339(context.ports.clock->now(), true) +
                                 "\"," + json.substr(1),
                             secrets) +
         '\n';
}

error key_trouble(const std::string& file, const error& why) {
  return {is_silence(why) ? why.code : errc::not_found, "cannot read the API key: " + why.what,
          file, "put the key into this file and make it readable for the node's user"};
}

void take_findings(exec::chat_target& target, const store::get_facts::reply& facts) {
  if (const auto found = facts.find(target.model); found != facts.end())
    model::apply(model::found_in(found->second, target.provider.base_url), target.provider);
}

} // namespace boyd::conversing
