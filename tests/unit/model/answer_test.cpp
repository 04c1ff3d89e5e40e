#include "unit/model/answers.hpp"

namespace boyd::answer_test {

using namespace boyd;
using namespace boyd::model_test;
using model::stop_reason;
using model::tool_call;

namespace {

/// A chunk with this delta.
std::string chunk(const std::string& delta, const std::string& reason = "") {
  return R"({"id":"c1","choices":[{"index":0,"delta":)" + delta + R"(,"finish_reason":)" +
         (reason.empty() ? "null" : '"' + reason + '"') + "}]}";
}

std::string call_piece(const std::string& piece) {
  return chunk(R"({"tool_calls":[)" + piece + "]}");
}

} // namespace

TEST_CASE("answer: a stream as OpenAI sends it", "[answer]") {
  const auto a = answer_of(stream({
      R"({"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null})",
      chunk(R"({"content":"Hel"})"),
      chunk(R"({"content":"lo"})"),
      chunk("{}", "stop"),
      R"({"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}})",
  }));
  CHECK(a.text == "Hello");
  CHECK(a.stop == stop_reason::stop);
  CHECK(a.model == "gpt-x");
  CHECK(a.id == "c1");
  CHECK(a.used == model::usage{10, 4, 7, 5, true});
  CHECK(json_of(a) == json{{"role", "assistant"}, {"content", "Hello"}});
}

TEST_CASE("answer: a plain one, also when a stream was asked for", "[answer]") {
  const std::string body =
      R"({"id":"c2","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"annotations":[],"tool_calls":[],"vendor":{"a":1}},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}})";
  for (const std::string before : {"", "\n ", "\xEF\xBB\xBF"}) {
    const auto a = answer_of(before + body);
    CHECK(a.text == "Hi");
    CHECK(a.used == model::usage{3, 0, 1, 0, true});
    // Unknown fields stay; what no server takes back goes.
    CHECK(json_of(a) == json{{"role", "assistant"}, {"content", "Hi"}, {"vendor", {{"a", 1}}}});
  }
}

TEST_CASE("answer: calls of tools in pieces", "[answer]") {
  const auto a = answer_of(stream({
      chunk(R"({"role":"assistant","content":null})"),
      call_piece(
          R"({"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}})"),
      call_piece(R"({"index":0,"function":{"arguments":"{\"path\":"}})"),
      call_piece(R"({"index":0,"function":{"arguments":"\"x\"}"}})"),
      call_piece(
          R"({"index":1,"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}})"),
      chunk("{}", "tool_calls"),
  }));
  CHECK(a.stop == stop_reason::tool_calls);
  CHECK(a.calls ==
        std::vector<tool_call>{{"call_a", "read", R"({"path":"x"})"}, {"call_b", "list", "{}"}});
  CHECK(json_of(a) == json::parse(
                          R"({"role":"assistant","content":null,"tool_calls":[
                {"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"path\":\"x\"}"}},
                {"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}}]})"));
}

TEST_CASE("answer: calls as other servers send them", "[answer]") {
  SECTION("Gemini: no index, the reason is stop, signatures come back verbatim") {
    const auto a = answer_of(stream({
        call_piece(
            R"({"extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"arguments":"{\"p\":1}","name":"read"},"id":"f1","type":"function"},{"function":{"arguments":"{\"p\":2}","name":"read"},"id":"f2","type":"function"})"),
        chunk(R"({"role":"assistant","extra_content":{"google":{"thought":true}}})", "stop"),
    }));
    CHECK(a.stop == stop_reason::tool_calls);
    CHECK(a.calls ==
          std::vector<tool_call>{{"f1", "read", R"({"p":1})"}, {"f2", "read", R"({"p":2})"}});
    const auto message = json_of(a);
    CHECK(message["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "c2ln");
    CHECK(message["extra_content"]["google"]["thought"] == true);
  }
  SECTION("Gemini: arguments and a signature that come alone belong to the last call") {
    const auto a = answer_of(stream({
        call_piece(R"({"id":"f1","type":"function","function":{"name":"read"}})"),
        call_piece(R"({"function":{"arguments":"{\"p\":"}})"),
        call_piece(R"({"function":{"arguments":"1}"}})"),
        call_piece(R"({"extra_content":{"google":{"thought_signature":"s"}}})"),
        chunk("{}", "stop"),
    }));
    CHECK(a.calls == std::vector<tool_call>{{"f1", "read", R"({"p":1})"}});
    CHECK(json_of(a)["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "s");
  }
  SECTION("all calls have the index 0") {
    const auto a = answer_of(stream({
        call_piece(R"({"index":0,"id":"a","function":{"name":"x","arguments":"{}"}})"),
        call_piece(R"({"index":0,"id":"b","function":{"name":"y","arguments":"{\"k\""}})"),
        call_piece(R"({"index":0,"id":"","function":{"arguments":":1}"}})"),
        chunk("{}", "tool_calls"),
    }));
    CHECK(a.calls == std::vector<tool_call>{{"a", "x", "{}"}, {"b", "y", R"({"k":1})"}});
  }
  SECTION("the name with each piece, no type, an index that begins at 1") {
    const auto a = answer_of(stream({
        call_piece(R"({"index":1,"id":"a","function":{"name":"x","arguments":"{\"k\""}})"),
        call_piece(R"({"index":1,"id":"a","function":{"name":"x","arguments":":1}"}})"),
        chunk("{}", "tool_calls"),
    }));
    CHECK(a.calls == std::vector<tool_call>{{"a", "x", R"({"k":1})"}});
    CHECK(json_of(a)["tool_calls"][0]["type"] == "function");
  }
  SECTION("arguments as an object, no ids, or one id twice") {
    const auto a = answer_of(stream({
        call_piece(
            R"({"function":{"name":"x","arguments":{"k":1}}},{"function":{"name":"y","arguments":{}}})"),
        call_piece(R"({"index":7,"id":"same","function":{"name":"z","arguments":"{}"}})"),
        call_piece(R"({"index":8,"id":"same","function":{"name":"z","arguments":"{}"}})"),
        chunk("{}", "tool_calls"),
    }));
    CHECK(a.calls == std::vector<tool_call>{{"call_0", "x", R"({"k":1})"},
                                            {"call_1", "y", "{}"},
                                            {"same", "z", "{}"},
                                            {"call_3", "z", "{}"}});
    CHECK(json_of(a)["tool_calls"][0]["function"]["arguments"] == R"({"k":1})");
  }
  SECTION("arguments that are none are told to the caller, but not sent back") {
    const auto a = answer_of(stream({
        call_piece(R"({"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":"}})"),
        call_piece(R"({"index":1,"id":"b","function":{"name":"y","arguments":""}})"),
        chunk("{}", "length"),
    }));
    CHECK(a.stop == stop_reason::length);
    CHECK(a.calls[0].arguments == R"({"k":)");
    CHECK(a.calls[1].arguments.empty());
    const auto message = json_of(a);
    for (const auto& call : message["tool_calls"])
      CHECK(call["function"]["arguments"] == "{}");
  }
}

TEST_CASE("answer: a word of calls without one stands for the conversation to judge", "[answer]") {
  const auto a = answer_of(stream({chunk(R"({"content":"x"})"), chunk("{}", "tool_calls")}));
  CHECK(a.stop == stop_reason::tool_calls);
  CHECK(a.calls.empty());
}

TEST_CASE("answer: reasoning goes back under its own name", "[answer]") {
  SECTION("DeepSeek, vLLM: reasoning_content; the role comes with each piece") {
    const auto a = answer_of(stream({
        chunk(R"({"role":"assistant","reasoning_content":"I th","content":null})"),
        chunk(R"({"role":"assistant","reasoning_content":"ink","content":""})"),
        chunk(R"({"role":"assistant","content":"so"})", "stop"),
    }));
    CHECK(a.text == "so");
    CHECK(json_of(a) ==
          json{{"role", "assistant"}, {"content", "so"}, {"reasoning_content", "I think"}});
  }
  SECTION("OpenRouter: reasoning_details by index, signatures whole") {
    const auto a = answer_of(stream({
        chunk(
            R"({"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"anthropic-claude-v1","index":0}]})"),
        chunk(
            R"({"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","format":"anthropic-claude-v1","index":0}]})"),
        chunk(
            R"({"reasoning_details":[{"type":"reasoning.text","signature":"SIG","format":"anthropic-claude-v1","index":0}]})"),
        chunk(
            R"({"reasoning_details":[{"type":"reasoning.encrypted","data":"D1","id":"t1","index":0}]})"),
        chunk(
            R"({"reasoning_details":[{"type":"reasoning.encrypted","data":"D2","id":"t2","index":0}]})"),
        chunk(R"({"content":"x"})", "stop"),
    }));
    const auto message = json_of(a);
    CHECK(message["reasoning"] == "ab");
    REQUIRE(message["reasoning_details"].size() == 3);
    CHECK(message["reasoning_details"][0] == json{{"type", "reasoning.text"},
                                                  {"text", "ab"},
                                                  {"signature", "SIG"},
                                                  {"format", "anthropic-claude-v1"},
                                                  {"index", 0}});
    CHECK(message["reasoning_details"][2]["data"] == "D2");
  }
  SECTION("Mistral: the content in parts") {
    const auto a = answer_of(stream({
        chunk(R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]})"),
        chunk(R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"}]}]})"),
        chunk(R"({"content":"Hel"})"),
        chunk(R"({"content":[{"type":"text","text":"lo"}]})"),
        chunk("{}", "stop"),
    }));
    CHECK(a.text == "Hello");
    CHECK(json_of(a)["content"] ==
          json::parse(R"([{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},
                          {"type":"text","text":"Hello"}])"));
  }
}

TEST_CASE("answer: a refusal is told apart", "[answer]") {
  const auto a =
      answer_of(stream({chunk(R"({"role":"assistant","content":null,"refusal":"I can"})"),
                        chunk(R"({"refusal":"not"})"), chunk("{}", "stop")}));
  CHECK(a.refusal == "I cannot");
  CHECK(a.text.empty());
  CHECK(json_of(a)["refusal"] == "I cannot");
  CHECK(json_of(a)["content"] == "");
}

TEST_CASE("answer: reasons to stop under all their names", "[answer]") {
  const std::map<std::string, stop_reason> reasons{{"stop", stop_reason::stop},
                                                   {"STOP", stop_reason::stop},
                                                   {"eos", stop_reason::stop},
                                                   {"length", stop_reason::length},
                                                   {"model_length", stop_reason::length},
                                                   {"content_filter", stop_reason::content_filter},
                                                   {"SAFETY", stop_reason::content_filter},
                                                   {"something", stop_reason::other}};
  for (const auto& [word, reason] : reasons) {
    INFO(word);
    CHECK(answer_of(stream({chunk(R"({"content":"x"})"), chunk("{}", word)})).stop == reason);
  }
}

TEST_CASE("answer: usage in each chunk, under other names, or not at all", "[answer][usage]") {
  const auto with = [](const std::string& usage) {
    return answer_of(stream({chunk(R"({"content":"12345678"})"), chunk("{}", "stop"),
                             R"({"choices":[],"usage":)" + usage + "}"}))
        .used;
  };
  CHECK(with("null") == model::usage{0, 0, 2, 0, false});
  CHECK(with("{}") == model::usage{0, 0, 2, 0, false});
  // DeepSeek.
  CHECK(with(R"({"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":8})") ==
        model::usage{9, 8, 1, 0, true});
  // Gemini and xAI: reasoning is in the total alone.
  CHECK(with(R"({"prompt_tokens":10,"completion_tokens":5,"total_tokens":65})") ==
        model::usage{10, 0, 55, 50, true});
  // Garbage stays within reason.
  CHECK(
      with(
          R"({"prompt_tokens":-4,"completion_tokens":1e300,"prompt_tokens_details":{"cached_tokens":7}})") ==
      model::usage{0, 0, 1'000'000'000'000, 0, true});
  CHECK(with(R"({"prompt_tokens":"4","completion_tokens":null})").input == 0);
  // The last one counts.
  const auto a = answer_of(stream(
      {R"({"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}})",
       R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}})"}));
  CHECK(a.used == model::usage{5, 0, 2, 0, true});
  // Groq.
  const auto b = answer_of(stream(
      {R"({"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":2}}})"}));
  CHECK(b.used.input == 5);
}

TEST_CASE("answer: what ends it", "[answer]") {
  const auto text = chunk(R"({"content":"x"})");
  const result<void> broke = fail(errc::io_error, "connection reset", "host");
  const result<void> ended = fail(errc::cancelled, "cancelled");
  SECTION("[DONE] is enough, and so is a reason") {
    CHECK(answer_of(stream({text})).stop == stop_reason::other);
    CHECK(answer_of(stream({text, chunk("{}", "stop")}, false)).stop == stop_reason::stop);
  }
  SECTION("nothing behind [DONE] counts") {
    CHECK(answer_of(stream({text, chunk("{}", "stop")}) + "data: garbage\n\n").text == "x");
    const auto out = read_answer(head_of(200), stream({text}), 0, broke);
    CHECK(std::holds_alternative<model::chat_answer>(out));
  }
  SECTION("without either the stream ended early") {
    const auto t = trouble_of(stream({text}, false));
    CHECK(t.kind == model::trouble_kind::bad_answer);
    CHECK(model::may_repeat(t));
    CHECK(trouble_of(read_answer(head_of(200), stream({text}, false), 0, broke)).kind ==
          model::trouble_kind::unavailable);
  }
  SECTION("a cancelled one is cancelled, unless it was complete") {
    const auto reason = stream({text, chunk("{}", "stop")}, false);
    CHECK(trouble_of(read_answer(head_of(200), reason, 0, ended)).kind ==
          model::trouble_kind::cancelled);
    CHECK(std::holds_alternative<model::chat_answer>(read_answer(head_of(200), reason, 0, broke)));
    CHECK(trouble_of(read_answer(head_of(500), "x", 0, ended)).kind ==
          model::trouble_kind::cancelled);
  }
  SECTION("nothing at all") {
    model::answer_reader silent;
    CHECK(trouble_of(silent.finish(broke)).kind == model::trouble_kind::unavailable);
    model::answer_reader empty;
    CHECK(trouble_of(empty.finish({})).kind == model::trouble_kind::bad_answer);
    CHECK(trouble_of("").kind == model::trouble_kind::bad_answer);
    CHECK(trouble_of(stream({})).kind == model::trouble_kind::bad_answer);
    CHECK(trouble_of(R"({"id":"x","choices":[]})").kind == model::trouble_kind::bad_answer);
  }
}

TEST_CASE("answer: progress is what the model said, not what keeps the line open", "[answer]") {
  model::answer_reader reader;
  reader.on_head(head_of(200));
  reader.on_body(
      ": OPENROUTER PROCESSING\n\ndata: " + chunk(R"({"role":"assistant","content":""})") + "\n\n");
  CHECK(reader.progress() == 0);
  reader.on_body("data: " + chunk(R"({"reasoning":"abc"})") + "\n\n");
  CHECK(reader.progress() == 3);
  reader.on_body("data: " + chunk(R"({"content":"de"})") + "\n\n");
  CHECK(reader.progress() == 5);
  CHECK(reader.text() == "de");
  reader.on_body(
      "data: " + call_piece(R"({"index":0,"id":"a","function":{"name":"x","arguments":"{}"}})") +
      "\n\n");
  CHECK(reader.progress() == 7);
}

TEST_CASE("answer: other choices are left alone", "[answer]") {
  const auto a = answer_of(stream(
      {R"({"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]})",
       chunk("{}", "stop")}));
  CHECK(a.text == "yes");
}

TEST_CASE("answer: portable for another provider", "[answer]") {
  const auto a = answer_of(stream(
      {chunk(R"({"content":"t","reasoning_content":"r"})"),
       call_piece(
           R"({"index":0,"id":"a","extra_content":{"google":1},"function":{"name":"x","arguments":"{}"}})"),
       chunk("{}", "tool_calls")}));
  CHECK(json::parse(model::portable_message(a.message)) ==
        json::parse(R"({"role":"assistant","content":"t","tool_calls":[
            {"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]})"));
  CHECK(
      json::parse(model::portable_message(
          R"({"role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}]})")) ==
      json{{"role", "assistant"}, {"content", "a"}});
  for (const std::string same : {R"({"role":"user","content":"x"})", "garbage", ""})
    CHECK(model::portable_message(same) == same);
}

TEST_CASE("field case 01: parallel calls in one slot are calls of their own", "[answer]") {
  const auto names_of = [](const std::vector<std::string>& pieces) {
    std::vector<std::string> events;
    for (const auto& p : pieces)
      events.push_back(call_piece(p));
    events.push_back(chunk("{}", "tool_calls"));
    std::vector<std::string> out;
    for (const auto& call : answer_of(stream(events)).calls)
      out.push_back(call.name + call.arguments);
    return out;
  };
  const auto piece = [](const std::string& rest) { return R"({"index":0,)" + rest + "}"; };
  const std::string a = R"({"path":"a.txt"})";
  const std::string b = R"({"path":"b.txt"})";
  const auto whole = [](const std::string& arguments, const std::string& name = "read_file") {
    return R"("function":{"name":")" + name + R"(","arguments":)" + json(arguments).dump() + "}";
  };
  const std::vector<std::string> both{"read_file" + a, "read_file" + b};
  CHECK(names_of({piece(whole(a)), piece(whole(b))}) == both);
  // Without the second name, without an index, with an id for each, as an object, in pieces.
  CHECK(names_of({piece(whole(a)), piece(R"("function":{"arguments":)" + json(b).dump() + "}")}) ==
        both);
  CHECK(names_of({"{" + whole(a) + "}", "{" + whole(b) + "}"}) == both);
  CHECK(names_of({piece(R"("id":"1",)" + whole(a)), piece(R"("id":"2",)" + whole(b))}) == both);
  CHECK(names_of({piece(R"("function":{"name":"read_file","arguments":{"path":"a.txt"}})"),
                  piece(R"("function":{"name":"read_file","arguments":{"path":"b.txt"}})")}) ==
        both);
  CHECK(names_of({piece(R"("function":{"name":"read_file","arguments":"{\"path\":"})"),
                  piece(R"("function":{"arguments":"\"a.txt\"}"})"), piece(whole(b))}) == both);
  CHECK(names_of({piece(whole(a)), piece(whole(b, "list_dir"))}) ==
        std::vector<std::string>{"read_file" + a, "list_dir" + b});
  // Once more the same is a repetition; the name with each piece is none.
  CHECK(names_of({piece(whole(a)), piece(whole(a))}) == std::vector<std::string>{"read_file" + a});
  CHECK(names_of({piece(R"("id":"1",)" + whole(a)), piece(R"("id":"1",)" + whole(a))}) ==
        std::vector<std::string>{"read_file" + a});
  CHECK(names_of({piece(whole("{\"path\":")), piece(whole("\"a.txt\"}")), piece(whole(""))}) ==
        std::vector<std::string>{"read_file" + a});
  CHECK(names_of(
            {piece(whole(R"({"q":{"x":1},)")), piece(R"("function":{"arguments":"\"r\":{}}"})")}) ==
        std::vector<std::string>{R"(read_file{"q":{"x":1},"r":{}})"});
}

TEST_CASE("field case 02: half a surrogate pair does not cost a paid answer", "[answer]") {
  const auto a = answer_of(stream({chunk(R"({"content":"Hi \ud83d"})"),
                                   chunk(R"({"content":"\ude00 there"})"), chunk("{}", "stop")}));
  CHECK(a.text == "Hi \U0001F600 there");
  CHECK(json_of(a)["content"] == "Hi \U0001F600 there");
  const auto lone = answer_of(stream({chunk(R"({"content":"Hi \ud83d"})"),
                                      chunk(R"({"content":" caf)"
                                            "\xE9"
                                            R"("})"),
                                      chunk("{}", "stop")}));
  CHECK(lone.text == "Hi \uFFFD caf\uFFFD");
  // Bytes of one character in two events; reasoning; a plain answer.
  const auto split =
      answer_of(stream({chunk("{\"content\":\"\xF0\x9F\"}"), chunk("{\"content\":\"\x98\x80\"}"),
                        chunk(R"({"reasoning_content":"\ud83d"})"),
                        chunk(R"({"reasoning_content":"\ude00"})"), chunk("{}", "stop")}));
  CHECK(split.text == "\U0001F600");
  CHECK(json_of(split)["reasoning_content"] == "\U0001F600");
  CHECK(
      answer_of(R"({"choices":[{"message":{"content":"\ud83d!","x":NaN},"finish_reason":"stop"}]})")
          .text == "\uFFFD!");
  const auto call = answer_of(stream(
      {call_piece(
           R"({"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}})"),
       chunk("{}", "tool_calls")}));
  REQUIRE(call.calls.size() == 1);
  CHECK(json::parse(call.calls[0].arguments)["a"] == "\uFFFD");
}

TEST_CASE("field case 03: what stands at the end of a body is an event", "[answer]") {
  const auto text = "data: " + chunk(R"({"content":"done"})") + "\n\n";
  const auto last = chunk("{}", "stop");
  const std::string used =
      R"({"choices":[],"usage":{"prompt_tokens":131233,"completion_tokens":7}})";
  for (const std::string end : {"\n", "", "\r\n", "\r", "\n\ndata: [DONE]", "\n\ndata: [DONE]\n",
                                "\n\ndata:[DONE]", "\n\ndata: [DONE]\r"}) {
    INFO(json(end).dump());
    CHECK(answer_of(text + "data: " + last + end).text == "done");
    const auto with_usage = answer_of(text + "data: " + last + "\n\ndata: " + used + end);
    CHECK(with_usage.used.input == 131233);
  }
  // Half an event is where the stream broke off.
  CHECK(trouble_of(text + "data: " + last.substr(0, last.size() / 2)).what ==
        "the stream ended early");
  // [DONE] ends the stream at once, also on a connection that then fails.
  const auto reset = result<void>(fail(errc::io_error, "reset"));
  const auto cut = read_answer(head_of(200), text + "data: [DONE]", 0, reset);
  CHECK(std::holds_alternative<model::chat_answer>(cut));
}

} // namespace boyd::answer_test
