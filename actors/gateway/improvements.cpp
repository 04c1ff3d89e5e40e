#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/config/redact.hpp"
#include "boyd/core/sha256.hpp"
#include "boyd/core/text.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

/// What an improvement cycle by hand did, as a run of `executor: {type: improve}` tells it.
namespace boyd::gateway_impl {

namespace {

constexpr std::size_t told_characters = 2000;
constexpr std::size_t hash_characters = 8;

/// Facts that such a run tells, by the member of the body that has them (adapters/improve.yaml).
constexpr std::array<std::pair<const char*, const char*>, 10> told{{{"improvement", "cycle_id"},
                                                                    {"task", "task"},
                                                                    {"title", "title"},
                                                                    {"source", "source"},
                                                                    {"outcome", "outcome"},
                                                                    {"failure", "failure_class"},
                                                                    {"cause", "cause"},
                                                                    {"executor", "executor"},
                                                                    {"approach", "approach"},
                                                                    {"commit", "commit"}}};

std::string text_in(const json& body, const char* key) {
  const auto it = body.find(key);
  return it != body.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// The outcome of a run that was none of a queue's.
graph::edge fact_of(const exchange& x, const std::string& kernel, const json& body) {
  const bool good = text_in(body, "outcome") == "SUCCESS";
  const auto failure = lower(text_in(body, "failure_class"));
  json meta{{"agent", "improve"},
            {"by", "hand"},
            {"kernel", kernel},
            {"fence", 1},
            {"status", good ? "done" : "failed"},
            {"execution", good ? "succeeded" : "failed"},
            {"verification", good ? "passed" : "failed"},
            {"class", failure.empty() ? "none" : failure},
            {"repository", text_in(body, "repository")}};
  for (const auto& [fact, member] : told)
    if (const auto text = text_in(body, member); !text.empty())
      meta["told"][fact] = std::string(
          cut_characters(config::redact_text(text, x.configuration->secrets), told_characters));
  // One fact for a cycle of a repository, however often it is told.
  const auto id = "improve-" + sha256_hex(text_in(body, "repository")).substr(0, hash_characters) +
                  "-" + text_in(body, "cycle_id");
  return {"exec_" + id, "outcome_" + id, "resulted_in",
          x.self->state.parts.context->ports.clock->now(), meta.dump()};
}

} // namespace

void record_improvement(exchange_ptr x) {
  const auto body = x->body();
  const auto* kernel = body ? x->kernel(text_in(*body, "kernel")) : nullptr;
  if (kernel == nullptr)
    return;
  for (const auto* key : {"cycle_id", "repository", "task", "outcome"})
    if (text_in(*body, key).empty())
      return x->fail_with({errc::invalid_argument, std::string(key) + " is missing", "body",
                           "boyd improve sends what it did"});
  auto fact = fact_of(*x, kernel->kernel_id, *body);
  ask<graph_reply>(x->self, x->self->state.parts.graph_recorder,
                   graph_request{{}, {std::move(fact)}},
                   [x, id = kernel->kernel_id](const result<graph_reply>& r) {
                     if (!r)
                       return x->fail_with(r.error());
                     x->reply("improvement", {{"kernel_id", id}});
                   });
}

} // namespace boyd::gateway_impl
