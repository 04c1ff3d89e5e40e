#pragma once

#include "boyd/model/chat.hpp"
#include "support/pch.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

/// Answers as providers send them, read in one piece or in many.
namespace boyd::model_test {

using nlohmann::json;
using outcome = std::variant<model::chat_answer, model::trouble>;

inline http_head head_of(int status, http_headers headers = {}) {
  return {status, std::move(headers)};
}

/// Server-sent events with these data, and the end.
inline std::string stream(const std::vector<std::string>& data, bool done = true) {
  std::string out;
  for (const auto& d : data)
    out += "data: " + d + "\n\n";
  return done ? out + "data: [DONE]\n\n" : out;
}

/// What is read when `body` comes in pieces of `piece` bytes (0: whole).
inline outcome read_answer(const http_head& head, const std::string& body, std::size_t piece = 0,
                           const result<void>& transport = {}) {
  model::answer_reader reader;
  reader.on_head(head);
  if (piece == 0)
    piece = std::max<std::size_t>(body.size(), 1);
  for (std::size_t at = 0; at < body.size(); at += piece)
    reader.on_body(std::string_view(body).substr(at, piece));
  return reader.finish(transport);
}

/// The answer, read whole and byte by byte.
inline model::chat_answer answer_of(const std::string& body) {
  const auto whole = read_answer(head_of(200), body);
  if (const auto* wrong = std::get_if<model::trouble>(&whole))
    FAIL("trouble: " << wrong->what);
  const auto bytewise = read_answer(head_of(200), body, 1);
  REQUIRE(std::holds_alternative<model::chat_answer>(bytewise));
  REQUIRE(std::get<model::chat_answer>(bytewise).message ==
          std::get<model::chat_answer>(whole).message);
  return std::get<model::chat_answer>(whole);
}

inline model::trouble trouble_of(const outcome& out) {
  const auto* wrong = std::get_if<model::trouble>(&out);
  if (wrong == nullptr)
    FAIL("no trouble, but: " << std::get<model::chat_answer>(out).text);
  return *wrong;
}

inline model::trouble trouble_of(const std::string& body, int status = 200,
                                 http_headers headers = {}) {
  return trouble_of(read_answer(head_of(status, std::move(headers)), body));
}

inline json json_of(const model::chat_answer& a) {
  return json::parse(a.message);
}

} // namespace boyd::model_test
