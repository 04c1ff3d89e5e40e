#pragma once

#include "actors/gateway/state.hpp"
#include "boyd/ports/clock.hpp"
#include "boyd/ports/entropy.hpp"

#include <functional>
#include <memory>
#include <string>

/// What requests about skills share (skills.cpp, skill_texts.cpp).
namespace boyd::gateway_impl {

/// One skill or candidate that an id names.
struct named {
  const skill_view* skill = nullptr;
  const candidate_view* candidate = nullptr;
};

/// What a person decides, with all that it is about.
struct deciding {
  exchange_ptr x;
  const config::kernel* kernel = nullptr;
  std::string id;
  json body;
  knowledge_reply known; ///< as it was when they decided

  std::string text(const char* key) const {
    const auto it = body.find(key);
    return it != body.end() && it->is_string() ? it->get<std::string>() : std::string();
  }
  std::string by() const { return x->request.caller->name; }
  utc_time now() const { return x->self->state.parts.context->ports.clock->now(); }
};

using deciding_ptr = std::shared_ptr<deciding>;
using decision_maker = void (*)(const deciding_ptr&, const named&);

/// Only a person: else an agent could give itself, and all others, a way of doing things. What is
/// wrong is answered.
void begin_decision(exchange_ptr x, const std::string& id, decision_maker decide);

/// {kernel_id, action, id, by}.
json decision_json(const deciding_ptr& d, const char* action, const std::string& id);

/// Keeps the body's `text` as the candidate's draft, and answers with `more` besides.
void keep_draft(const deciding_ptr& d, const std::string& candidate_id, const std::string& skill,
                json more); // skill_texts.cpp

/// Asks a model for the candidate's draft: the body's `provider` (else the only one) and `model`. A
/// draft that is there stays, unless the body has `replace`: yes.
void word_draft(const deciding_ptr& d, const candidate_view& c); // skill_drafts.cpp

/// An error is answered.
void ask_about_skills(const exchange_ptr& x, look_at_skills what,
                      std::function<void(knowledge_reply&)> then);

} // namespace boyd::gateway_impl
