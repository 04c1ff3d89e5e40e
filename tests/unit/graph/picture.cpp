#include "boyd/graph/picture.hpp"

#include "support/mermaid.hpp"
#include "support/pch.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace boyd::picture_test {

using namespace boyd::graph;
using Catch::Matchers::Contains;

namespace {

/// Labels that would end a picture's own syntax.
const std::vector<std::string>& hostile() {
  static const std::vector<std::string> all{"a\"] --> b[\"",
                                            "end",
                                            "subgraph x",
                                            "a\nb\r\nc",
                                            "x\\",
                                            "x\\\"",
                                            "%%{init: {}}%%",
                                            "<script>1</script>",
                                            "#quot;#35;",
                                            "a|b|c",
                                            "click A \"http\"",
                                            "`rm -rf`",
                                            "}\n}",
                                            "数据库 ✓",
                                            "\xff\xfe",
                                            "",
                                            "\x1b[31m",
                                            "\\N\\G",
                                            "<b>bold</b>",
                                            "n1",
                                            "{x}",
                                            "(y)",
                                            "graph TD",
                                            ";",
                                            "\t",
                                            "1. one",
                                            "- one",
                                            "**bold**",
                                            "$$x$$",
                                            "@{shape: x}",
                                            "fa:fa-car",
                                            "---",
                                            "style n1 fill:#f00",
                                            "classDef x",
                                            "&amp;",
                                            "\u202eturned",
                                            "😀"};
  return all;
}

picture hostile_picture() {
  picture p;
  for (const auto& label : hostile()) {
    const auto n = std::to_string(p.nodes.size());
    p.nodes.push_back({"ctx_" + n + label, label, 0.5});
    p.nodes.push_back({"skill_" + n + label, label, 0});
    p.nodes.push_back({"decision_" + n + label, label, 1});
    p.edges.push_back({"ctx_" + n + label, "skill_" + n + label, "supports", 3});
    p.edges.push_back({"skill_" + n + label, "decision_" + n + label, "managed_by" + label, 1});
  }
  return p;
}

/// Whether `program`, where there is one, takes `text` from a file.
bool is_taken(const std::string& program, const std::string& text) {
  if (std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) != 0) {
    WARN(program << " is not installed: its own opinion is not asked");
    return true;
  }
  std::string name = "/tmp/boyd-picture-XXXXXX";
  const int fd = ::mkstemp(name.data());
  REQUIRE(fd >= 0);
  std::ofstream(name) << text;
  const auto code =
      std::system((program + " -Tsvg '" + name + "' >/dev/null 2>'" + name + ".err'").c_str());
  std::ifstream said(name + ".err");
  const std::string words{std::istreambuf_iterator<char>(said), {}};
  std::remove(name.c_str());
  std::remove((name + ".err").c_str());
  INFO(words);
  CHECK(words.empty());
  return code == 0;
}

} // namespace

TEST_CASE("picture: arrows and shapes say what the types are", "[picture]") {
  const picture p{
      {{"ctx_1", "src/a.cpp", 0.715}, {"skill_x", "skill_x", 0}, {"decision_1", "d", 0}},
      {{"skill_x", "ctx_1", "derived_from", 1},
       {"skill_x", "ctx_1", "supports", 2},
       {"skill_x", "decision_1", "managed_by", 1}},
      false};
  CHECK(to_mermaid(p) == "graph TD\n"
                         "  n1[\"src/a.cpp #40;0.72#41;\"]\n"
                         "  n2([\"skill_x\"])\n"
                         "  n3{\"d\"}\n"
                         "  n2 -->|\"derived_from\"| n1\n"
                         "  n2 ==>|\"supports x2\"| n1\n"
                         "  n2 -.->|\"managed_by\"| n3\n");
  CHECK(to_dot(p) == "digraph knowledge {\n"
                     "  rankdir=LR;\n"
                     "  n1 [shape=box, label=\"src/a.cpp (0.72)\"];\n"
                     "  n2 [shape=ellipse, label=\"skill_x\"];\n"
                     "  n3 [shape=diamond, label=\"d\"];\n"
                     "  n2 -> n1 [label=\"derived_from\"];\n"
                     "  n2 -> n1 [label=\"supports x2\"];\n"
                     "  n2 -> n3 [label=\"managed_by\"];\n"
                     "}\n");
  CHECK(to_text(p) == "[Nodes]\n"
                      "ctx_1  src/a.cpp  0.72\n"
                      "skill_x\n"
                      "decision_1  d\n"
                      "\n[Edges]\n"
                      "skill_x -> ctx_1  derived_from\n"
                      "skill_x -> ctx_1  supports x2\n"
                      "skill_x -> decision_1  managed_by\n");
  CHECK(read_picture(to_json(p)).value() == p);
  CHECK_FALSE(read_picture("[]"));
  CHECK_FALSE(read_picture("{\"nodes\": 1, \"edges\": []}"));
}

TEST_CASE("picture: hostile labels stay labels", "[picture]") {
  const auto p = hostile_picture();
  const auto mermaid = to_mermaid(p);
  // A line for each node and edge, and nothing of a label outside of its quotes.
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = mermaid.find('\n', at)) != mermaid.npos; ++at)
    ++lines;
  CHECK(lines == 1 + p.nodes.size() + p.edges.size());
  for (std::size_t begin = 0; begin < mermaid.size();) {
    const auto end = mermaid.find('\n', begin);
    const auto line = mermaid.substr(begin, end - begin);
    const auto quotes = std::count(line.begin(), line.end(), '"');
    CHECK((begin == 0 ? quotes == 0 : quotes == 2));
    begin = end + 1;
  }
  CHECK(is_taken("dot", to_dot(p)));
}

TEST_CASE("picture: Mermaid's own parser takes every picture with hostile labels", "[picture]") {
  std::vector<std::string> pictures{to_mermaid(hostile_picture()), to_mermaid({})};
  // And each label alone, as every kind of node and on an edge.
  for (const auto& label : hostile()) {
    picture p;
    for (const auto* kind :
         {"ctx_1", "exec_1", "skill_1", "decision_1", "outcome_1", "candidate_1"})
      p.nodes.push_back({kind, label, 0});
    for (const std::string type : {"derived_from", "supports", "used_in"})
      p.edges.push_back({"skill_1", "ctx_1", type, 1});
    p.edges.push_back({"ctx_1", "decision_1", label, 2});
    p.edges.push_back({"ctx_1", "exec_1", label, 1});
    p.cut = true;
    pictures.push_back(to_mermaid(p));
  }
  CHECK(boyd::test::not_mermaid(pictures).empty());
}

} // namespace boyd::picture_test
