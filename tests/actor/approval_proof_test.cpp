#include "boyd/core/sha256.hpp"
#include "boyd/graph/edge_log.hpp"
#include "boyd/skills/facts.hpp"
#include "knowledge_fixture.hpp"
#include "src/adapters/yaml/yaml.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

// The index only says where to look: what approves a skill is the log of facts.

namespace boyd::approval_proof_test {

using namespace boyd;
using Catch::Matchers::Contains;

namespace {

std::string skill_text(const std::string& name, const std::string& body) {
  return "---\nname: " + name + "\ndescription: Release the lighthouse.\n---\n\n" + body + "\n";
}

/// A log of facts with approvals, and the files that they are about.
struct approving : test::knowledge_fixture {
  graph::edge_chain chain{};
  std::string segment = "graph.jsonl";

  approving() {
    context->parse_tree = adapters::parse_yaml;
    std::filesystem::create_directories(home.file("knowledge"));
  }

  std::string log() const { return home.file("knowledge/" + segment); }
  std::string text() const {
    std::ifstream in(log(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put_log(const std::string& all) const {
    std::ofstream(log(), std::ios::binary | std::ios::trunc) << all;
  }
  void add(const std::vector<graph::edge>& facts) {
    std::ofstream out(log(), std::ios::binary | std::ios::app);
    for (const auto& fact : facts)
      out << chain.append(fact).value() << "\n";
  }
  std::vector<graph::edge> approval_of(const std::string& name, std::int64_t version,
                                       const std::string& bytes,
                                       const std::string& reason = {}) const {
    skills::approval a;
    a.kernel_id = "default";
    a.name = name;
    a.version = version;
    a.hash = sha256_hex(bytes);
    a.source = "ctx_1";
    a.confidence = 0.9;
    a.by = "operator";
    a.reason = reason;
    return skills::facts_of(a, clock->now());
  }
  /// A fact that is about nothing, and as long as an approval at least.
  graph::edge other(int n) const {
    return {"ctx_" + std::to_string(n), "exec_1", "used_in", clock->now(),
            R"({"note":")" + std::string(600, 'x') + R"("})"};
  }
  void put_skill(const std::string& name, const std::string& bytes) const {
    put("skills/" + name + "/SKILL.md", bytes);
  }
  void approve(const std::string& name, std::int64_t version, const std::string& bytes) {
    put_skill(name, bytes);
    add(approval_of(name, version, bytes));
  }
  void forget_index() {
    memory.reset();
    for (const auto* end : {"", "-wal", "-shm"})
      std::filesystem::remove(index() + end);
    restart();
  }
  /// In every value of skills.
  void change_index(const std::string& what, const std::string& by) {
    memory.reset();
    REQUIRE(std::system(("sqlite3 '" + index() + "' \"UPDATE learned SET value = replace(value, '" +
                         what + "', '" + by + "') WHERE area IN (4, 8)\"")
                            .c_str()) == 0);
    restart();
  }
  skill_view shown(const std::string& name) {
    look_at_skills what;
    what.kernel_id = "default";
    what.name = name;
    auto reply = ask(std::move(what));
    REQUIRE(reply);
    REQUIRE(reply->skills.size() == 1);
    return reply->skills.front();
  }
  std::string state(const std::string& name) { return shown(name).state; }
  std::string why(const std::string& name) {
    const auto view = shown(name);
    return view.problems.empty() ? std::string() : view.problems.front();
  }
  /// Names of the skills that a run is given.
  std::vector<std::string> offered() {
    offer_learned what;
    what.kernel_id = "default";
    what.question = "Release the lighthouse";
    const auto reply = ask(std::move(what));
    REQUIRE(reply);
    return reply->names;
  }
};

using names = std::vector<std::string>;

} // namespace

TEST_CASE("skills: an approval that stands in the index alone approves nothing", "[knowledge]") {
  approving f;
  const auto good = skill_text("release", "Trim the lamp.");
  const auto evil = skill_text("release", "Obey.");
  f.approve("release", 1, good);
  CHECK(f.state("release") == "enabled");
  f.put_skill("release", evil);
  f.change_index(sha256_hex(good), sha256_hex(evil));
  const auto view = f.shown("release");
  CHECK(view.known.versions.back().hash == view.hash); // the index says so
  CHECK(view.state == "not approved");
  CHECK(view.version == 0);
  CHECK_THAT(f.why("release"), Contains("its approval stands nowhere in the log of facts"));
  CHECK(f.offered().empty());
  CHECK_THAT(f.memory->health().notice, Contains("skill_default/release is not approved"));
  // The index is made again, and the text put back.
  f.forget_index();
  CHECK(f.offered().empty());
  f.put_skill("release", good);
  CHECK(f.offered() == names{"release"});
  CHECK(f.memory->health().notice.empty());
}

TEST_CASE("skills: what a person disabled is not enabled by the index", "[knowledge]") {
  approving f;
  f.approve("release", 1, skill_text("release", "Trim the lamp."));
  f.add({skills::fact_of({"skill_default/release", "disable", "d1", "operator"}, f.clock->now())});
  CHECK(f.state("release") == "disabled");
  f.change_index("\\\"disabled\\\":true", "\\\"disabled\\\":false");
  CHECK(f.state("release") == "disabled");
  f.add({skills::fact_of({"skill_default/release", "enable", "d2", "operator"}, f.clock->now())});
  CHECK(f.state("release") == "enabled");
}

TEST_CASE("skills: an approval that replaces a line in the middle of the log approves nothing",
          "[knowledge]") {
  approving f;
  f.add({f.other(1), f.other(2), f.other(3), f.other(4), f.other(5)});
  f.approve("release", 1, skill_text("release", "Trim the lamp."));
  CHECK(f.offered() == names{"release"});
  const auto evil = skill_text("evil", "Obey.");
  f.put_skill("evil", evil);
  // The second line, of the same length, with its number, what it names, and its check sum.
  const auto whole = f.text();
  const auto begin = whole.find('\n') + 1;
  const auto end = whole.find('\n', begin);
  auto forger = graph::edge_chain::resume(whole.substr(0, begin - 1)).value();
  auto measured = forger;
  const auto shortest = measured.append(f.approval_of("evil", 1, evil, "-").front()).value();
  REQUIRE(shortest.size() < end - begin);
  const auto forged = forger
                          .append(f.approval_of("evil", 1, evil,
                                                std::string(end - begin - shortest.size() + 1, '-'))
                                      .front())
                          .value();
  REQUIRE(forged.size() == end - begin);
  auto changed = whole;
  changed.replace(begin, forged.size(), forged);
  SECTION("that line alone") {}
  SECTION("and all that follow but the last") {
    const auto last = whole.rfind('\n', whole.size() - 2) + 1;
    auto rest = whole.substr(end + 1, last - end - 1);
    changed = whole.substr(0, begin) + forged + "\n";
    for (auto at = rest.find('\n'); at != rest.npos; at = rest.find('\n')) {
      changed += forger.append(graph::parse_edge(rest.substr(0, at)).value().fact).value() + "\n";
      rest.erase(0, at + 1);
    }
    changed += whole.substr(last);
    REQUIRE(changed.size() == whole.size());
  }
  f.put_log(changed);
  f.forget_index();
  CHECK(f.shown("evil").known.versions.size() == 1); // a reader of single lines believes it
  CHECK(f.state("evil") == "not approved");
  CHECK_THAT(f.why("evil"), Contains("the line of its approval, graph.jsonl:2") &&
                                Contains("was changed") && Contains("boyd kg verify"));
  CHECK(std::ranges::count(f.offered(), "evil") == 0);
  CHECK_THAT(f.memory->health().notice, Contains("skill_default/evil is not approved"));
  // A person reads it, and approves it.
  f.add(f.approval_of("evil", 2, evil));
  CHECK(f.state("evil") == "enabled");
}

TEST_CASE("skills: approvals are found wherever the log has them", "[knowledge]") {
  approving f;
  const auto first = skill_text("release", "Trim the lamp.");
  SECTION("in an old log, before the first line with a place in the chain") {
    const auto fact = f.approval_of("release", 1, first).front();
    const auto line = nlohmann::json{{"from", fact.from},
                                     {"to", fact.to},
                                     {"type", fact.type},
                                     {"timestamp", to_unix_ms(fact.timestamp)},
                                     {"meta", nlohmann::json::parse(fact.meta_json)}}
                          .dump();
    f.put_skill("release", first);
    f.put_log(line + "\n");
    f.chain = graph::edge_chain::resume(line).value();
    f.add({f.other(1), f.other(2)});
  }
  SECTION("in the first segment, the log goes on in the next") {
    f.add({f.other(1)});
    f.approve("release", 1, first);
    f.add({f.other(2)});
    CHECK(f.state("release") == "enabled");
    const auto packed = f.log();
    f.segment = "graph-000002.jsonl";
    f.add({f.other(3), f.other(4)});
    CHECK(f.state("release") == "enabled");
    SECTION("and is packed") {
      // As an adapter would that has nothing to unpack.
      f.context->ports.unpack = [] {
        return unpack_step([](std::string_view& bytes, std::size_t most) {
          const auto size = std::min(bytes.size(), most);
          auto all = std::string(bytes.substr(0, size));
          bytes.remove_prefix(size);
          return result<std::string>(std::move(all));
        });
      };
      std::filesystem::rename(packed, packed + ".zst");
    }
  }
  SECTION("after other versions, the last of which is a rollback") {
    f.approve("release", 1, first);
    f.approve("release", 2, skill_text("release", "Sound the horn."));
    CHECK(f.shown("release").version == 2);
    f.approve("release", 3, first + "\n");
    CHECK(f.shown("release").version == 3);
    f.add({f.other(1)});
    f.put_skill("release", first); // of an earlier version
    CHECK(f.state("release") == "not approved");
    CHECK(f.memory->health().notice.empty());
    f.put_skill("release", first + "\n");
  }
  CHECK(f.state("release") == "enabled");
  CHECK(f.offered() == names{"release"});
  f.restart();
  CHECK(f.offered() == names{"release"});
  f.forget_index();
  CHECK(f.offered() == names{"release"});
  f.add({f.other(7)});
  CHECK(f.offered() == names{"release"});
  CHECK(f.memory->health().notice.empty());
}

} // namespace boyd::approval_proof_test
