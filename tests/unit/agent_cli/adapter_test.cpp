#include "support.hpp"

namespace boyd::adapter_test {

using namespace boyd;
using namespace boyd::agent_cli_testing;

namespace {

std::string texts(const config::load_result& r) {
  std::string out;
  for (const auto& f : r.findings)
    out += f.text() + "\n";
  return out;
}

bool says(const config::load_result& r, std::string_view part) {
  UNSCOPED_INFO(texts(r));
  return !r.value && texts(r).find(part) != std::string::npos;
}

config::load_result with(const std::string& adapter) {
  return load_text(with_executor("{type: agent_cli, adapter: mine}", "adapters:\n" + adapter));
}

} // namespace

TEST_CASE("the built-in adapters are valid", "[agent_cli]") {
  for (const std::string name : {"claude", "codex", "gemini", "goose", "opencode"}) {
    const auto cli = built_in(name);
    CHECK(cli.adapter.name == name);
    CHECK(cli.adapter.argv.front() == config::argument_group{name});
    CHECK(cli.adapter.startup_timeout > milliseconds{0});
    CHECK(cli.denials_fail);
  }
  CHECK(built_in("claude").adapter.tested_versions.size() == 2);
}

TEST_CASE("the example of a coder in a worktree is valid", "[agent_cli]") {
  const auto cli = executor_of(load_text(source_file("config/examples/coder.yaml")));
  CHECK(cli.adapter.name == "claude");
  REQUIRE(cli.worktree);
  CHECK(cli.worktree->base == "HEAD");
}

TEST_CASE("an adapter of one's own: in the file, over a built-in, by path", "[agent_cli]") {
  const std::string own = "adapters:\n  - {name: codex, argv: [mine], events: [{when: {/e: 1}, "
                          "final: true}]}\n";
  const auto above =
      executor_of(load_text(with_executor("{type: agent_cli, adapter: codex}", own)));
  CHECK(above.adapter.argv.front() == config::argument_group{"mine"});
  CHECK(above.adapter.events.front().when.front().values == std::vector<std::string>{"1"});
  const std::map<std::string, std::string> files{
      {"/etc/boyd/adapters/x.yaml",
       "name: x\nargv: [x]\nevents: [{when: {/type: [a, b]}, final: true}]\n"},
      {"/etc/boyd/bad.yaml",
       "name: x\nargv: [x]\nevents:\n  - when: {/type: end}\n    finall: true\n"}};
  const auto by_path =
      executor_of(load_text(with_executor("{type: agent_cli, adapter: adapters/x.yaml}"), files));
  CHECK(by_path.adapter.name == "x");
  CHECK(by_path.adapter.events.front().when.front().values.size() == 2);
  const auto bad = load_text(with_executor("{type: agent_cli, adapter: ./bad.yaml}"), files);
  CHECK(says(bad, "/etc/boyd/bad.yaml:5:5: events[0].finall: unknown key; did you mean final?"));
  CHECK(says(load_text(with_executor("{type: agent_cli, adapter: ./no.yaml}"), files),
             "cannot read the adapter"));
}

TEST_CASE("what is wrong with an adapter is told with its place", "[agent_cli]") {
  const std::string events = "    events: [{when: {/type: end}, final: true}]\n";
  CHECK(
      says(load_text(with_executor("{type: agent_cli, adapter: cluade}")), "did you mean claude?"));
  CHECK(says(with("  - name: mine\n    argv: [x]\n"), "no event is final"));
  CHECK(says(with("  - name: mine\n    argv: [x, '{prompt}']\n" + events),
             "boyd.yaml:4:15: adapters[0].argv[1]: a prompt must not be an argument"));
  CHECK(says(with("  - name: mine\n    argv: ['{model}']\n" + events),
             "must not contain placeholders"));
  CHECK(says(with("  - name: mine\n    argv: [x, 'a{args}']\n" + events), "{args} must be"));
  CHECK(says(with("  - name: mine\n    argv: [x, '-r={session}']\n" + events),
             "argv has {session}, so sessions must be declared"));
  CHECK(says(with("  - name: mine\n    argv: [x]\n    sessions: anywhere\n" + events),
             "no {session}, so"));
  CHECK(says(with("  - name: mine\n    argv: [x, '-m={permission}']\n" + events),
             "no values are listed"));
  CHECK(says(with("  - name: mine\n    argv: [x]\n    stdin: stream-json\n" + events),
             "stdin: stream-json needs"));
  CHECK(
      says(with("  - name: mine\n    argv: [x]\n    events: [{when: {type: end}, final: true}]\n"),
           "a JSON pointer begins with /"));
  CHECK(says(
      with("  - name: mine\n    argv: [x]\n    events: [{when: {/t: {has: x}}, final: true}]\n"),
      "no event can match this"));
  CHECK(says(with("  - name: mine\n    argv: [x]\n    events: [{when: {/t: e}, final: true, text: "
                  "[/a~2]}]\n"),
             "write ~ as ~0"));
  CHECK(says(with("  - name: mine\n    argv: [x]\n    parser: jsonll\n" + events),
             "did you mean jsonl?"));
}

TEST_CASE("a budget of what a program never tells is refused", "[agent_cli]") {
  const auto with = [](const std::string& adapter, const std::string& budget) {
    return load_text(with_executor("{type: agent_cli, adapter: " + adapter + "}") +
                     "        budget: {" + budget + "}\n");
  };
  CHECK(says(with("codex", "run: {cost: 1}"),
             "budget.run.cost: the limit has no effect: codex does not report its cost"));
  CHECK(says(with("codex", "day: {cost: '0.50'}"), "budget.day.cost: the limit has no effect"));
  CHECK(says(with("opencode", "run: {turns: 3}"), "opencode does not report its turns"));
  for (const auto* fine : {"run: {cost: 0}", "run: {tokens: 5, wall: 1m}, day: {tokens: 9}"})
    executor_of(with("codex", fine));
  executor_of(with("claude", "run: {turns: 3, tokens: 5, cost: 1, wall: 1m}, day: {cost: 1}"));
}

TEST_CASE("what does not fit an adapter is told", "[agent_cli]") {
  CHECK(says(load_text(with_executor("{type: agent_cli, adapter: claude, permission: acceptEdit}")),
             "did you mean acceptEdits?"));
  CHECK(says(load_text(with_executor("{type: agent_cli, adapter: goose, resume: agent}")),
             "cannot resume sessions"));
  CHECK(says(load_text(with_executor(
                 "{type: agent_cli, adapter: claude, resume: agent, worktree: {repo: /srv/r}}")),
             "only in the same directory"));
  CHECK(says(load_text(with_executor(
                 "{type: agent_cli, adapter: codex, cwd: /srv, worktree: {repo: /srv/r}}")),
             "one of cwd and worktree"));
  const auto fine = executor_of(load_text(with_executor(
      "{type: agent_cli, adapter: codex, resume: agent, worktree: {repo: r, base: main}}")));
  REQUIRE(fine.worktree);
  CHECK(fine.worktree->repo == "/etc/boyd/r");
  CHECK(fine.resume);
}

} // namespace boyd::adapter_test
