#include "boyd/core/text.hpp"
#include "boyd/exec/told_tools.hpp"
#include "support.hpp"

/// What the programs' events tell of their tools. Each stream is written after the published format
/// that its test names.
namespace boyd::tools_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;
using lines = std::vector<std::string>;

namespace {

std::string stream(const lines& events) {
  std::string text;
  for (const auto& e : events)
    text += e + "\n";
  return text;
}

/// "NAME PATH… COMMAND URL: RESULT", with "failed " before it.
lines told(const exec::cli_report& r) {
  lines all;
  for (const auto& t : r.tools) {
    std::string line = (t.failed ? "failed " : "") + t.name;
    for (const auto& p : t.paths)
      line += " " + p;
    for (const auto* word : {&t.command, &t.url})
      line += word->empty() ? std::string() : " " + *word;
    all.push_back(line + ": " + t.result);
  }
  return all;
}

lines names(const std::vector<context::citable>& items) {
  lines all;
  for (const auto& i : items)
    all.insert(all.end(), i.names.begin(), i.names.end());
  return all;
}

exec::told_tool command(const std::string& line) {
  exec::told_tool t;
  t.name = "Bash";
  t.command = line;
  return t;
}

exec::told_tool file(const std::string& path, const std::string& result = {}) {
  exec::told_tool t;
  t.name = "Read";
  t.paths = {path};
  t.result = result;
  return t;
}

} // namespace

TEST_CASE("tools of claude: content blocks of the Messages API in its stream-json", "[agent_cli]") {
  const auto r = read_all(
      built_in("claude").adapter,
      stream(
          {R"({"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I look."},)"
           R"({"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/r/guide.md","limit":9}},)"
           R"({"type":"tool_use","id":"toolu_2","name":"Bash","input":{"command":"cat notes.md","description":"d"}}]}})",
           R"({"type":"user","message":{"role":"user","content":[)"
           R"({"tool_use_id":"toolu_2","type":"tool_result","content":[{"type":"text","text":"a note"}]},)"
           R"({"tool_use_id":"toolu_1","type":"tool_result","content":"1 the guide"}]}})",
           R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_3","name":"Read","input":{"file_path":"/r/gone.md"}}]}})",
           R"({"type":"user","message":{"content":[{"type":"tool_result","content":"File does not exist.","is_error":true,"tool_use_id":"toolu_3"}]}})",
           R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_4","name":"Grep","input":{"pattern":"x","path":"src"}},)"
           R"({"type":"tool_use","id":"toolu_5","name":"WebFetch","input":{"url":"https://example.org/a","prompt":"p"}},)"
           R"({"type":"tool_use","id":"toolu_6","name":"NotebookEdit","input":{"notebook_path":"/r/a.ipynb"}}]}})",
           R"({"type":"result","subtype":"success","is_error":false,"result":"Done."})"}));
  CHECK(told(r) == lines{"Read /r/guide.md: 1 the guide", "Bash cat notes.md: a note",
                         "failed Read /r/gone.md: File does not exist.", "Grep src: ",
                         "WebFetch https://example.org/a: ", "NotebookEdit /r/a.ipynb: "});
  CHECK(r.text == "Done.");
  CHECK(r.tools_dropped == 0);
}

TEST_CASE("tools of codex: items of exec_events.rs", "[agent_cli]") {
  const auto r = read_all(
      built_in("codex").adapter,
      stream(
          {R"({"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'cat guide.md'","aggregated_output":"","exit_code":null,"status":"in_progress"}})",
           R"({"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'cat guide.md'","aggregated_output":"the guide\n","exit_code":0,"status":"completed"}})",
           R"({"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"rm x","aggregated_output":"","exit_code":null,"status":"declined"}})",
           R"({"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"/r/a.txt","kind":"update"},{"path":"/r/b.txt","kind":"add"}],"status":"completed"}})",
           R"({"type":"item.completed","item":{"id":"item_4","type":"file_change","changes":[{"path":"/r/c.txt","kind":"add"}],"status":"failed"}})",
           R"({"type":"item.completed","item":{"id":"item_5","type":"mcp_tool_call","server":"files","tool":"read_text","arguments":{"path":"/r/d.md"},"result":{"content":[{"type":"text","text":"d"}],"structured_content":null},"error":null,"status":"completed"}})",
           R"({"type":"item.completed","item":{"id":"item_6","type":"agent_message","text":"Done."}})",
           R"({"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}})"}));
  CHECK(told(r) == lines{"command_execution /bin/bash -lc 'cat guide.md': the guide\n",
                         "failed command_execution rm x: ", "file_change /r/a.txt: ",
                         "file_change /r/b.txt: ", "read_text /r/d.md: d"});
  CHECK(r.text == "Done.");
}

TEST_CASE("tools of gemini: events of output/types.ts, names of its tool declarations",
          "[agent_cli]") {
  const auto r = read_all(
      built_in("gemini").adapter,
      stream(
          {R"({"type":"tool_use","timestamp":"t","tool_name":"read_file","tool_id":"a","parameters":{"file_path":"guide.md"}})",
           R"({"type":"tool_use","timestamp":"t","tool_name":"run_shell_command","tool_id":"b","parameters":{"command":"ls docs"}})",
           R"({"type":"tool_result","timestamp":"t","tool_id":"b","status":"success","output":"plan.md"})",
           R"({"type":"tool_result","timestamp":"t","tool_id":"a","status":"error","error":{"type":"file_not_found","message":"m"}})",
           R"({"type":"tool_use","timestamp":"t","tool_name":"list_directory","tool_id":"c","parameters":{"dir_path":"docs"}})",
           R"({"type":"tool_use","timestamp":"t","tool_name":"read_many_files","tool_id":"d","parameters":{"include":["a.md","b.md"]}})",
           R"({"type":"message","timestamp":"t","role":"assistant","content":"Done.","delta":true})",
           R"({"type":"result","timestamp":"t","status":"success","stats":{}})"}));
  CHECK(told(r) == lines{"failed read_file guide.md: ", "run_shell_command ls docs: plan.md",
                         "list_directory docs: ", "read_many_files a.md b.md: "});
  CHECK(r.text == "Done.");
}

TEST_CASE("tools of goose: content of conversation/message.rs", "[agent_cli]") {
  const auto r = read_all(
      built_in("goose").adapter,
      stream(
          {R"({"type":"message","message":{"id":"m1","role":"assistant","created":1,"content":[{"type":"text","text":"I look."},)"
           R"({"type":"toolRequest","id":"t1","toolCall":{"status":"success","value":{"name":"developer__text_editor","arguments":{"command":"view","path":"/r/guide.md"}}}}]}})",
           R"({"type":"message","message":{"id":"m2","role":"user","created":1,"content":[{"type":"toolResponse","id":"t1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"the guide"}],"isError":false}}}]}})",
           R"({"type":"message","message":{"id":"m3","role":"assistant","created":1,"content":[{"type":"toolRequest","id":"t2","toolCall":{"status":"success","value":{"name":"developer__shell","arguments":{"command":"cat a.md"}}}}]}})",
           R"({"type":"message","message":{"id":"m4","role":"user","created":1,"content":[{"type":"toolResponse","id":"t2","toolResult":{"status":"success","value":[{"type":"text","text":"a"}]}}]}})",
           R"({"type":"message","message":{"id":"m5","role":"assistant","created":1,"content":[{"type":"toolRequest","id":"t3","toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"x"}}}}]}})",
           R"({"type":"message","message":{"id":"m6","role":"user","created":1,"content":[{"type":"toolResponse","id":"t3","toolResult":{"status":"error","error":"no"}}]}})",
           R"({"type":"message","message":{"id":"m7","role":"assistant","created":1,"content":[{"type":"text","text":"Done."}]}})",
           R"({"type":"complete","input_tokens":1,"output_tokens":1})"}));
  CHECK(told(r) == lines{"developer__text_editor /r/guide.md view: the guide",
                         "developer__shell cat a.md: a", "failed shell x: "});
  CHECK(r.text == "Done.");
}

TEST_CASE("tools of opencode: parts of its run.ts, arguments of its tools", "[agent_cli]") {
  const auto r = read_all(
      built_in("opencode").adapter,
      stream(
          {R"({"type":"tool_use","timestamp":1,"sessionID":"s","part":{"type":"tool","tool":"read","callID":"c1","state":{"status":"completed","input":{"filePath":"/r/guide.md"},"output":"the guide"},"id":"p1"}})",
           R"({"type":"tool_use","timestamp":1,"sessionID":"s","part":{"type":"tool","tool":"bash","callID":"c2","state":{"status":"error","input":{"command":"false"},"error":"no"},"id":"p2"}})",
           R"({"type":"tool_use","timestamp":1,"sessionID":"s","part":{"type":"tool","tool":"webfetch","callID":"c3","state":{"status":"completed","input":{"url":"https://example.org"},"output":"page"},"id":"p3"}})",
           R"({"type":"text","timestamp":1,"sessionID":"s","part":{"type":"text","text":"Done."}})",
           R"({"type":"done","timestamp":1,"sessionID":"s"})"}));
  CHECK(told(r) == lines{"read /r/guide.md: the guide",
                         "failed bash false: ", "webfetch https://example.org: page"});
  CHECK(r.text == "Done.");
}

TEST_CASE("tools: what is no use of one is passed over, and the run goes on", "[agent_cli]") {
  std::string deep;
  for (int i = 0; i < 40; ++i)
    deep += "[";
  deep += "1";
  for (int i = 0; i < 40; ++i)
    deep += "]";
  const lines values{"null", "7", "true", "\"x\"", "{}", "[null,1,[[]]]", deep};
  for (const std::string name : {"claude", "codex", "gemini", "goose", "opencode"}) {
    INFO(name);
    lines events;
    for (const auto& v : values) {
      events.push_back(R"({"type":"assistant","message":{"content":)" + v + "}}");
      events.push_back(R"({"type":"assistant","message":)" + v + "}");
      events.push_back(R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":)" + v +
                       R"(,"name":)" + v + R"(,"input":)" + v + "}]}}");
      events.push_back(R"({"type":"user","message":{"content":[{"type":"tool_result","content":)" +
                       v + R"(,"tool_use_id":)" + v + "}]}}");
      events.push_back(R"({"type":"item.completed","item":{"id":)" + v +
                       R"(,"type":"command_execution","command":)" + v +
                       R"(,"aggregated_output":)" + v + "}}");
      events.push_back(
          R"({"type":"item.completed","item":{"type":"file_change","status":"completed","changes":)" +
          v + "}}");
      events.push_back(R"({"type":"tool_use","tool_id":)" + v + R"(,"parameters":)" + v +
                       R"(,"part":)" + v + "}");
      events.push_back(R"({"type":"tool_use","parameters":{"file_path":)" + v + R"(,"command":)" +
                       v + R"(},"part":{"state":{"input":)" + v + R"(,"output":)" + v + "}}}");
      events.push_back(R"({"type":"tool_result","tool_id":)" + v + R"(,"output":)" + v + "}");
      events.push_back(R"({"type":"message","message":{"content":[{"type":"toolRequest","id":)" +
                       v + R"(,"toolCall":)" + v + R"(},{"type":"toolResponse","id":)" + v +
                       R"(,"toolResult":)" + v + "}]}}");
    }
    const auto success = transcript(name + "_success");
    const auto r = read_all(built_in(name).adapter, stream(events) + success, 4096);
    CHECK(r.final);
    CHECK_FALSE(r.failed);
    CHECK(r.tools.size() < events.size());
    for (const auto& t : r.tools)
      CHECK(exec::reading_of(t, {"/r", "/r", "kernel:k"}).call.starts_with(t.name + " {"));
  }
}

TEST_CASE("tools: 100,000 uses, long words and broken text are bounded", "[agent_cli]") {
  const auto use = [](const std::string& id, const std::string& path, std::size_t result = 1) {
    return R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":")" + id +
           R"(","name":"Read","input":{"file_path":")" + path + "\"}}]}}\n" +
           R"({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":")" + id +
           "\",\"content\":\"" + std::string(result, 'x') + "\"}]}}\n";
  };
  const auto adapter = built_in("claude").adapter;
  constexpr std::size_t uses = 100'000;
  exec::cli_reader reader(adapter);
  for (std::size_t i = 0; i < uses; ++i)
    reader.append(use("id" + std::to_string(i), "/r/" + std::to_string(i) + ".md",
                      i < exec::told_tools_kept ? 1000 : 1));
  reader.append(R"({"type":"result","result":"Done."})"
                "\n");
  reader.finish();
  const auto& r = reader.report();
  CHECK(r.final);
  CHECK(r.tools.size() == exec::told_tools_kept);
  CHECK(r.tools.front().paths.front() == "/r/0.md"); // what came first
  CHECK(r.tools_dropped == uses - exec::told_tools_kept);
  std::size_t results = 0;
  for (const auto& t : r.tools)
    results += t.result.size();
  CHECK(results == r.tool_results);
  CHECK(results <= exec::tool_result_bytes);
  CHECK(results > exec::tool_result_bytes - 2000);

  // All words of all uses together are bounded, too; a path that none can be is left out.
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += use(std::to_string(i), "/r/" + std::string(3000, 'p') + std::to_string(i));
  const auto wide = read_all(adapter, text, 64u << 10);
  CHECK(wide.tools.size() < 100);
  CHECK(wide.tools.size() + wide.tools_dropped == 200);
  CHECK(wide.tool_words <= exec::told_tools_bytes);
  const auto no_path = read_all(adapter, use("a", std::string(exec::tool_word_bytes + 1, 'p')));
  REQUIRE(no_path.tools.size() == 1);
  CHECK(no_path.tools.front().paths.empty());

  // A command is cut where it can be seen; bytes that are no text become U+FFFD.
  const auto cut = read_all(
      adapter,
      R"({"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash",)"
      R"("input":{"command":")" +
          std::string(exec::tool_word_bytes - 1, 'c') + "ü" + "\"}}]}}\n");
  REQUIRE(cut.tools.size() == 1);
  CHECK(cut.tools.front().command.ends_with("…"));
  CHECK(sanitize_utf8(cut.tools.front().command) == cut.tools.front().command);
  const auto broken = read_all(adapter, use("a", "/r/\xff\xc3.md"));
  REQUIRE(broken.tools.size() == 1);
  const auto path = broken.tools.front().paths.front();
  CHECK(path.starts_with("/r/"));
  CHECK(sanitize_utf8(path) == path);
}

TEST_CASE("tools: a file is named as items are, and by its whole path", "[agent_cli]") {
  const exec::tool_places same{"/srv/repo", "/srv/repo", "kernel:k"};
  for (const std::string path : {"docs/plan.md", "./docs/plan.md", "/srv/repo/docs/plan.md",
                                 "/srv/repo/src/../docs/plan.md"}) {
    INFO(path);
    const auto read = exec::reading_of(file(path, "the plan"), same);
    CHECK(read.paths == lines{"docs/plan.md"});
    CHECK(names(read.citables) == lines{"docs/plan.md", "/srv/repo/docs/plan.md"});
    CHECK(read.citables.front().content == "the plan");
    CHECK(read.citables.front().path == read.call);
  }
  CHECK(exec::reading_of(file("docs/", ""), same).paths == lines{"docs"});
  // It works below of where its items are, or elsewhere.
  const exec::tool_places below{"/srv/repo/lib", "/srv/repo", "kernel:k"};
  CHECK(exec::reading_of(file("a.md"), below).paths == lines{"lib/a.md"});
  const exec::tool_places apart{"/away", "/srv/repo", "kernel:k"};
  CHECK(names(exec::reading_of(file("a.md"), apart).citables) == lines{"a.md", "/away/a.md"});
  const exec::tool_places nowhere{"/away", "", "kernel:k"};
  CHECK(exec::reading_of(file("a.md"), nowhere).paths == lines{"/away/a.md"});
  auto failed = file("a.md", "no such file");
  failed.failed = true;
  const auto nothing = exec::reading_of(failed, same);
  CHECK(nothing.call == R"(Read {"path":"a.md"})");
  CHECK(nothing.paths.empty());
  CHECK(nothing.citables.empty());
}

TEST_CASE("tools: the files that a command names can be cited, and need not be", "[agent_cli]") {
  const exec::tool_places where{"/r", "/r", "kernel:k"};
  const auto read = exec::reading_of(
      command(
          R"(/bin/bash -lc "sed -n '1,20p' docs/a.md | grep -v x > /dev/null; cat b.md Makefile")"),
      where);
  const auto all = names(read.citables);
  for (const std::string name : {"docs/a.md", "/r/docs/a.md", "b.md", "/r/b.md"}) {
    INFO(name);
    CHECK(std::ranges::find(all, name) != all.end());
  }
  for (const std::string none : {"-n", "-v", "/dev/null", "Makefile"}) {
    INFO(none);
    CHECK(std::ranges::find(all, none) == all.end());
  }
  // What a prompt showed of them was used; nothing else must be cited.
  for (const std::string path : {"docs/a.md", "b.md", "Makefile"}) {
    INFO(path);
    CHECK(std::ranges::find(read.paths, path) != read.paths.end());
  }
  for (const auto& item : read.citables) {
    CHECK(item.content.empty());
    CHECK(item.path == read.call);
  }
  CHECK(context::find_used("an answer", "", read.citables, read.paths).empty());
  // Each of two files is an item of its own, apart from what the prompt has.
  std::vector<context::citable> items{{"C1", "ctx_1", "docs/a.md", "shown"}};
  items.insert(items.end(), read.citables.begin(), read.citables.end());
  const auto cited = context::find_citations("[Reference] file: b.md\n[C1]\n", items);
  REQUIRE(cited.size() == 2);
  REQUIRE(cited[0].item);
  CHECK(*cited[0].item > 0);
  CHECK(cited[1].item == std::optional<std::size_t>(0));
  CHECK(context::find_used("an answer", "", items, read.paths) == std::vector<std::size_t>{0});

  const auto page = exec::reading_of(command("curl -s https://example.org/a.html"), where);
  const auto pages = names(page.citables);
  CHECK(std::ranges::find(pages, "https://example.org/a.html") != pages.end());
  auto by_address = exec::told_tool{};
  by_address.name = "WebFetch";
  by_address.url = "https://example.org/b";
  CHECK(names(exec::reading_of(by_address, where).citables) == lines{"https://example.org/b"});
}

TEST_CASE("tools: what is wrong with an adapter's tool is told with its place", "[agent_cli]") {
  const auto findings = [](const std::string& tool) {
    const auto r = load_text(with_executor("{type: agent_cli, adapter: mine}",
                                           "adapters:\n  - name: mine\n    argv: [x]\n    events: "
                                           "[{when: {/t: e}, final: true, tool: " +
                                               tool + "}]\n"));
    std::string all;
    for (const auto& f : r.findings)
      all += f.text() + "\n";
    return all;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(findings("{path: [/p], failed: {/e: [1, 2]}}").empty());
  CHECK(has(findings("{when: {/t: {has: x}}}"), "tool.when"));
  CHECK(has(findings("{failed: {/t: {has: x}}}"), "no event can match this"));
  CHECK(has(findings("{path: [p]}"), "a JSON pointer begins with /"));
  CHECK(has(findings("{pth: [/p]}"), "did you mean path?"));
}

} // namespace boyd::tools_test
