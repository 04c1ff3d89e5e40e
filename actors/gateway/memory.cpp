#include "actors/gateway/state.hpp"
#include "actors/support/ask.hpp"
#include "boyd/memory/document.hpp"
#include "boyd/memory/entry.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd::gateway_impl {

namespace {

constexpr std::size_t most_questions = 100;
constexpr std::int64_t standard_budget = 4000;
constexpr std::int64_t largest_budget = 1'000'000;
constexpr std::int64_t largest_limit = 1000;

error bad_member(const std::string& what, const std::string& next) {
  return {errc::invalid_argument, what, "body", next};
}

/// A member that is a text; empty when it is missing.
result<std::string> text_of(const json& body, const char* key) {
  const auto it = body.find(key);
  if (it == body.end() || it->is_null())
    return std::string();
  if (!it->is_string())
    return fail(bad_member(std::string(key) + " is not a string", {}));
  return it->get<std::string>();
}

result<std::int64_t> number_of(const json& body, const char* key, std::int64_t standard,
                               std::int64_t most) {
  const auto it = body.find(key);
  if (it == body.end() || it->is_null())
    return standard;
  if (it->is_number_integer())
    if (const auto n = it->get<std::int64_t>(); n >= 1 && n <= most)
      return n;
  return fail(
      bad_member(std::string(key) + " must be a number from 1 to " + std::to_string(most), {}));
}

/// The kernel that the body names; an error is answered, and null returned.
const config::kernel* kernel_of(const exchange_ptr& x, const json& body) {
  const auto id = text_of(body, "kernel");
  if (id)
    return x->kernel(*id);
  x->fail_with(id.error());
  return nullptr;
}

result<memory_question> question_of(const json& q) {
  if (!q.is_object())
    return fail(bad_member("a question is not a JSON object", "write {\"query\": \"…\"}"));
  const auto text = text_of(q, "query");
  const auto at = text_of(q, "at");
  if (!text || !at)
    return fail(text ? at.error() : text.error());
  memory_question out{*text, {}};
  if (at->empty())
    return out;
  const auto time = parse_rfc3339(*at);
  if (!time)
    return fail(bad_member("not a time: at: " + *at,
                           "use RFC 3339 with a time zone, for example 2026-02-13T10:00:00Z"));
  out.at = *time;
  return out;
}

result<recall_memory> recall_of(const std::string& kernel_id, const json& body) {
  recall_memory what;
  what.kernel_id = kernel_id;
  const auto budget = number_of(body, "budget", standard_budget, largest_budget);
  const auto limit = number_of(body, "limit", 0, largest_limit);
  if (!budget || !limit)
    return fail(budget ? limit.error() : budget.error());
  what.budget_tokens = *budget;
  what.limit = static_cast<std::size_t>(*limit);
  const auto questions = body.find("questions");
  if (questions == body.end() || !questions->is_array() || questions->empty() ||
      questions->size() > most_questions)
    return fail(bad_member("questions must be a list of 1 to " + std::to_string(most_questions) +
                               " questions",
                           "write {\"questions\": [{\"query\": \"…\"}]}"));
  for (const auto& q : *questions) {
    auto question = question_of(q);
    if (!question)
      return fail(std::move(question.error()));
    what.questions.push_back(std::move(*question));
  }
  return what;
}

json json_of_answer(const std::vector<recalled_row>& answer) {
  json items = json::array();
  std::int64_t tokens = 0;
  for (const auto& [row, score] : answer) {
    tokens += row.cost;
    items.push_back({{"id", row.id},
                     {"key", row.key},
                     {"source", row.source},
                     {"time", to_json(std::optional(row.time))},
                     {"author", row.author},
                     {"section", row.section},
                     {"text", row.text},
                     {"tokens", row.cost},
                     {"score", score}});
  }
  return {{"items", std::move(items)}, {"tokens", tokens}};
}

json json_of_section(const memory_section_description& s, const memory::section_caps& caps) {
  json out{{"file", s.file},       {"section", s.section},    {"entries", s.entries},
           {"longest", s.longest}, {"most_entries", nullptr}, {"most_characters", nullptr},
           {"over", false}};
  if (const auto cap = memory::cap_of(s.section, caps)) {
    out["most_entries"] = cap->entries;
    out["most_characters"] = cap->characters;
    out["over"] = s.entries > cap->entries || s.longest > cap->characters;
  }
  return out;
}

json json_of_edit(const state::memory_edit& e) {
  return {{"file", e.file},
          {"section", e.section},
          {"changed", e.changed},
          {"archived", e.archived},
          {"notes", e.notes}};
}

void ask_memory(const exchange_ptr& x, knowledge_request request,
                std::function<void(knowledge_reply&)> then) {
  ask<knowledge_reply>(x->self, x->self->state.parts.knowledge, std::move(request),
                       [x, then = std::move(then)](result<knowledge_reply> r) {
                         if (!r)
                           return x->fail_with(r.error());
                         then(*r);
                       });
}

void ask_writer(const exchange_ptr& x, state_request request,
                std::function<void(state_reply&)> then) {
  ask<state_reply>(x->self, x->self->state.parts.state_writer, std::move(request),
                   [x, then = std::move(then)](result<state_reply> r) {
                     if (!r)
                       return x->fail_with(r.error());
                     then(*r);
                   });
}

} // namespace

void get_memory(exchange_ptr x) {
  const auto* kernel = x->kernel();
  if (kernel == nullptr)
    return;
  knowledge_request request;
  request.what = describe_memory{kernel->kernel_id};
  ask_memory(x, std::move(request), [x, kernel](knowledge_reply& r) {
    const auto& d = r.description;
    json files = json::array();
    for (const auto& f : d.files)
      files.push_back({{"path", f.path}, {"bytes", f.bytes}, {"entries", f.entries}});
    json sections = json::array();
    for (const auto& s : d.sections)
      sections.push_back(json_of_section(s, kernel->memory.caps));
    x->reply("memory", {{"kernel_id", kernel->kernel_id},
                        {"entries", d.entries},
                        {"files", std::move(files)},
                        {"sections", std::move(sections)},
                        {"problems", d.problems}});
  });
}

void recall(exchange_ptr x) {
  const auto body = x->body();
  const auto* kernel = body ? kernel_of(x, *body) : nullptr;
  if (kernel == nullptr)
    return;
  auto what = recall_of(kernel->kernel_id, *body);
  if (!what)
    return x->fail_with(what.error());
  knowledge_request request;
  request.what = std::move(*what);
  ask_memory(x, std::move(request), [x, id = kernel->kernel_id](knowledge_reply& r) {
    json answers = json::array();
    for (const auto& answer : r.answers)
      answers.push_back(json_of_answer(answer));
    x->reply("memory_recall", {{"kernel_id", id}, {"answers", std::move(answers)}});
  });
}

void append_to_memory(exchange_ptr x) {
  const auto body = x->body();
  const auto* kernel = body ? kernel_of(x, *body) : nullptr;
  if (kernel == nullptr)
    return;
  append_memory what{kernel->kernel_id, *text_of(*body, "file"), *text_of(*body, "section"),
                     *text_of(*body, "text")};
  state_request request;
  request.what = std::move(what);
  ask_writer(x, std::move(request), [x, id = kernel->kernel_id](state_reply& r) {
    auto out = json_of_edit(r.edits.front());
    out["kernel_id"] = id;
    x->reply("memory_append", std::move(out));
  });
}

void import_to_memory(exchange_ptr x) {
  const auto body = x->body();
  const auto* kernel = body ? kernel_of(x, *body) : nullptr;
  if (kernel == nullptr)
    return;
  import_memory what{kernel->kernel_id, {}};
  const auto lines = body->find("lines");
  if (lines == body->end() || !lines->is_array())
    return x->fail_with(bad_member("lines must be a list of strings", {}));
  for (const auto& line : *lines) {
    auto entry = memory::read_import_line(line.is_string() ? line.get<std::string>() : "");
    if (!entry) {
      entry.error().where = "lines[" + std::to_string(what.entries.size()) + "]";
      return x->fail_with(entry.error());
    }
    what.entries.push_back(std::move(*entry));
  }
  state_request request;
  request.what = std::move(what);
  ask_writer(x, std::move(request), [x](state_reply& r) {
    x->reply("memory_import", {{"imported", r.imported.imported}, {"skipped", r.imported.skipped}});
  });
}

void compact_memory_files(exchange_ptr x) {
  const auto body = x->body();
  const auto* kernel = body ? kernel_of(x, *body) : nullptr;
  if (kernel == nullptr)
    return;
  const bool dry_run = *text_of(*body, "apply") != "yes";
  state_request request;
  request.what = compact_memory{kernel->kernel_id, dry_run};
  ask_writer(x, std::move(request), [x, dry_run, id = kernel->kernel_id](state_reply& r) {
    json files = json::array();
    for (const auto& edit : r.edits)
      files.push_back(json_of_edit(edit));
    x->reply("memory_compact",
             {{"kernel_id", id}, {"dry_run", dry_run}, {"files", std::move(files)}});
  });
}

} // namespace boyd::gateway_impl
