#include "boyd/faults/faulty_ports.hpp"
#include "methods.hpp"
#include "support/pch.hpp"
#include "support/wait.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

/// Every method of every watched port is called, for every owner, and the points that it passes are
/// compared with what they should be: a pass that is missing is noticed.
namespace boyd::fault_ports_test {

using namespace boyd;
using faults::action;

namespace {

class plain_file final : public open_file {
 public:
  result<std::size_t> write(std::string_view bytes) override { return bytes.size(); }
  void begin_sync() override {}
  result<void> sync() override { return {}; }
  result<void> truncate(std::uint64_t) override { return {}; }
  result<void> rewrite(std::uint64_t, std::string_view) override { return {}; }
  result<std::uint64_t> size() override { return std::uint64_t{0}; }
  result<std::string> read_part(std::uint64_t, std::size_t) override { return std::string(); }
};

class plain_files final : public file_system {
 public:
  result<std::string> read(const std::string&, std::size_t) override { return std::string(); }
  result<std::string> read_below(const std::string&, const std::string&, std::size_t) override {
    return std::string();
  }
  result<std::string> read_part(const std::string&, std::uint64_t, std::size_t) override {
    return std::string();
  }
  result<file_info> stat(const std::string&) override { return file_info{}; }
  result<std::unique_ptr<open_file>> open(const std::string&, open_mode) override {
    return std::make_unique<plain_file>();
  }
  result<void> rename(const std::string&, const std::string&) override { return {}; }
  result<void> unlink(const std::string&) override { return {}; }
  result<void> sync_directory(const std::string&) override { return {}; }
  result<void> make_directories(const std::string&) override { return {}; }
  result<std::vector<std::string>> list(const std::string&) override {
    return std::vector<std::string>{};
  }
};

class plain_tools final : public confined_files {
 public:
  result<text_part> read(const std::string&, const std::string&, std::uint64_t,
                         std::size_t) override {
    return text_part{};
  }
  result<void> write(const std::string&, const std::string&, std::string_view) override {
    return {};
  }
  result<void> write_over(const std::string&, const std::string&, std::string_view,
                          const may_replace&) override {
    return {};
  }
  result<listing> list(const std::string&, const std::string&, std::size_t) override {
    return listing{};
  }
  result<place> find(const std::string&, const std::string&) override { return place{}; }
  result<walk_end> walk(const std::string&, const std::string&, const walk_limits&,
                        const wanted_file&, const visit_file&) override {
    return walk_end{};
  }
};

class plain_repository final : public repository {
 public:
  result<std::vector<path_change>> changes() override { return std::vector<path_change>{}; }
  result<std::size_t> tracked_files() override { return std::size_t{0}; }
  result<std::vector<std::string>> tracked_paths() override { return std::vector<std::string>{}; }
  result<bool> ignores(const std::string&) override { return false; }
  result<void> stage(const std::vector<path_change>&) override { return {}; }
  result<std::optional<std::string>> commit(const std::vector<path_change>&, const std::string&,
                                            utc_time) override {
    return std::optional<std::string>();
  }
  result<commit_pair> commit_two(const std::vector<path_change>&, const earlier_version&,
                                 const std::string&, const std::string&, utc_time) override {
    return commit_pair{};
  }
  result<std::vector<commit_info>> history(const std::string&, std::size_t) override {
    return std::vector<commit_info>{};
  }
  result<std::string> diff(const std::string&, const std::string&) override {
    return std::string();
  }
  result<std::string> read_at(const std::string&, const std::string&) override {
    return std::string();
  }
  result<std::string> commit_at(utc_time) override { return std::string(); }
  result<std::optional<std::string>> head() override { return std::optional<std::string>(); }
  result<bool> is_kept(const std::string&) override { return true; }
  result<std::size_t> loose_objects() override { return std::size_t{0}; }
  result<std::size_t> pack() override { return std::size_t{0}; }
};

class plain_repositories final : public repository_provider {
 public:
  result<std::unique_ptr<repository>> init(const std::string&, const git_identity&) override {
    return std::make_unique<plain_repository>();
  }
  result<std::unique_ptr<repository>> open(const std::string&, const git_identity&) override {
    return std::make_unique<plain_repository>();
  }
};

/// A call of one method; what it may need is made before.
using drive = std::function<void()>;
using driven = std::map<std::string, drive>;

driven calls_of(const std::shared_ptr<file_system>& f, const std::shared_ptr<open_file>& o) {
  return {
      {"file_system::read", [f] { (void)f->read("/a", 1); }},
      {"file_system::read_below", [f] { (void)f->read_below("/a", "b", 1); }},
      {"file_system::read_part", [f] { (void)f->read_part("/a", 1, 1); }},
      {"file_system::stat", [f] { (void)f->stat("/a"); }},
      {"file_system::open", [f] { (void)f->open("/a", open_mode::append); }},
      {"file_system::rename", [f] { (void)f->rename("/a", "/b"); }},
      {"file_system::unlink", [f] { (void)f->unlink("/a"); }},
      {"file_system::sync_directory", [f] { (void)f->sync_directory("/"); }},
      {"file_system::make_directories", [f] { (void)f->make_directories("/d"); }},
      {"file_system::list", [f] { (void)f->list("/"); }},
      {"open_file::write", [o] { (void)o->write("x"); }},
      {"open_file::begin_sync", [o] { o->begin_sync(); }},
      {"open_file::sync", [o] { (void)o->sync(); }},
      {"open_file::truncate", [o] { (void)o->truncate(0); }},
      {"open_file::rewrite", [o] { (void)o->rewrite(0, "x"); }},
      {"open_file::size", [o] { (void)o->size(); }},
      {"open_file::read_part", [o] { (void)o->read_part(0, 1); }},
  };
}

driven calls_of(const std::shared_ptr<confined_files>& t) {
  return {
      {"confined_files::find", [t] { (void)t->find("/w", "a"); }},
      {"confined_files::list", [t] { (void)t->list("/w", "a", 1); }},
      {"confined_files::read", [t] { (void)t->read("/w", "a", 0, 1); }},
      {"confined_files::walk", [t] { (void)t->walk("/w", "a", {}, {}, {}); }},
      {"confined_files::write", [t] { (void)t->write("/w", "a", "x"); }},
      {"confined_files::write_over", [t] { (void)t->write_over("/w", "a", "x", {}); }},
  };
}

driven calls_of(const std::shared_ptr<repository_provider>& p,
                const std::shared_ptr<repository>& r) {
  return {
      {"repository_provider::init", [p] { (void)p->init("/r", {}); }},
      {"repository_provider::open", [p] { (void)p->open("/r", {}); }},
      {"repository_provider::project_of", [p] { (void)p->project_of("/r"); }},
      {"repository::changes", [r] { (void)r->changes(); }},
      {"repository::commit", [r] { (void)r->commit({}, "", {}); }},
      {"repository::commit_at", [r] { (void)r->commit_at({}); }},
      {"repository::commit_two", [r] { (void)r->commit_two({}, {}, "", "", {}); }},
      {"repository::diff", [r] { (void)r->diff("", ""); }},
      {"repository::filter_contents", [r] { r->filter_contents({}); }},
      {"repository::filtered", [r] { (void)r->filtered(); }},
      {"repository::head", [r] { (void)r->head(); }},
      {"repository::history", [r] { (void)r->history("", 1); }},
      {"repository::ignores", [r] { (void)r->ignores("a"); }},
      {"repository::is_kept", [r] { (void)r->is_kept(""); }},
      {"repository::left_out", [r] { (void)r->left_out(); }},
      {"repository::loose_objects", [r] { (void)r->loose_objects(); }},
      {"repository::pack", [r] { (void)r->pack(); }},
      {"repository::read_at", [r] { (void)r->read_at("", ""); }},
      {"repository::remarks", [r] { (void)r->remarks(); }},
      {"repository::stage", [r] { (void)r->stage({}); }},
      {"repository::tracked_files", [r] { (void)r->tracked_files(); }},
      {"repository::tracked_paths", [r] { (void)r->tracked_paths(); }},
  };
}

/// The points that a call passes: all are armed, and none strikes.
std::set<std::string> passed_by(const drive& call) {
  std::vector<faults::arming> all;
  for (const auto name : faults::points()) {
    faults::arming a;
    a.point = std::string(name);
    const auto can = faults::find(name)->can;
    for (const auto what : {action::error, action::drop, action::crash, action::delay})
      if (faults::contains(can, what))
        a.what = what;
    a.after = 1'000'000;
    a.delay = a.what == action::delay ? 1ms : 0ms;
    all.push_back(std::move(a));
  }
  const faults::isolation of_this_call;
  REQUIRE(faults::arm(all, 1));
  call();
  std::set<std::string> passed;
  for (const auto& f : faults::armed())
    if (f.passes > 0)
      passed.insert(f.what.point);
  return passed;
}

std::set<std::string> expected(const std::string& point) {
  return point.empty() || point.starts_with("- ") ? std::set<std::string>{}
                                                  : std::set<std::string>{point};
}

/// Of whom a file is, and what its owner never does with one: nothing passes a point there.
struct owner {
  std::string name;
  faults::file_points points;
  std::set<std::string> never;
};

const std::vector<owner> owners{
    {"state_writer", faults::state_writer_files, {"repair"}}, // it replaces
    {"graph_recorder", faults::graph_recorder_files, {"rename", "unlink"}},
    {"spool", faults::spool_files, {"rename"}},
    {"workspace", faults::workspace_files, {}},
};

} // namespace

TEST_CASE("faults: each method of each watched port passes its point, for each owner", "[faults]") {
  std::set<std::string> seen;
  for (const auto& o : owners) {
    const auto files = faults::watched(std::make_shared<plain_files>(), o.points);
    const std::shared_ptr<open_file> file = std::move(files->open("/a", open_mode::append).value());
    for (const auto& [method, call] : calls_of(files, file)) {
      seen.insert(method);
      const auto& point = fault_coverage_test::methods.at(method);
      auto wanted = expected(std::string(point));
      if (!wanted.empty()) {
        const auto what = point.substr(point.find('.') + 1);
        wanted = o.never.contains(std::string(what)) ? std::set<std::string>{}
                                                     : expected(o.name + "." + std::string(what));
      }
      INFO(o.name << ", " << method);
      CHECK(passed_by(call) == wanted);
    }
  }
  const auto tools = faults::watched(std::make_shared<plain_tools>());
  auto others = calls_of(tools);
  const auto provider = faults::watched(std::make_shared<plain_repositories>());
  const std::shared_ptr<repository> opened = std::move(provider->open("/r", {}).value());
  others.merge(calls_of(provider, opened));
  for (const auto& [method, call] : others) {
    seen.insert(method);
    INFO(method);
    CHECK(passed_by(call) == expected(std::string(fault_coverage_test::methods.at(method))));
  }
  for (const auto& [method, point] : fault_coverage_test::methods) {
    const auto port = method.substr(0, method.find(':'));
    const bool watched = port == "file_system" || port == "open_file" || port == "confined_files" ||
                         port == "repository" || port == "repository_provider";
    INFO(method << " is not called here");
    CHECK((!watched || seen.contains(method)));
  }
}

TEST_CASE("faults: what programs tell passes the points of their owner", "[faults]") {
  const std::vector<std::pair<std::string, faults::process_points>> programs{
      {"processes", faults::executor_processes},
      {"probe", faults::probe_processes},
      {"mcp", faults::mcp_processes}};
  for (const auto& [name, points] : programs) {
    process_events plain;
    plain.on_output = [](output_stream, std::string_view) {};
    plain.on_exit = [](const process_exit&) {};
    const auto events = faults::watched(std::move(plain), points);
    INFO(name);
    CHECK(passed_by([&] { events.on_output(output_stream::out, "x"); }) ==
          std::set{name + ".output"});
    CHECK(passed_by([&] { events.on_exit({}); }) == std::set{name + ".exit"});
  }
}

namespace {

/// What is heard of an answer.
struct heard {
  std::vector<int> heads;
  std::string body;
  std::vector<result<void>> ends;
  test::event_latch ended;

  http_events watched(faults::point p) {
    http_events plain;
    plain.on_head = [this](const http_head& h) { heads.push_back(h.status); };
    plain.on_body = [this](std::string_view bytes) { body += bytes; };
    plain.on_end = [this](const result<void>& r) {
      ends.push_back(r);
      ended.signal();
    };
    return faults::watched(std::move(plain), p);
  }
};

void answer(const http_events& to) {
  to.on_head({200, {}});
  to.on_body("one ");
  to.on_body("two");
  to.on_end({});
}

faults::arming armed_at(action what, std::int64_t after) {
  faults::arming a;
  a.point = "models.answer";
  a.what = what;
  a.after = after;
  a.delay = what == action::delay ? 1h : 0ms;
  return a;
}

} // namespace

TEST_CASE("faults: an answer over HTTP passes its point, and is whole when nothing strikes",
          "[faults]") {
  for (const auto p : {faults::point("models.answer"), faults::point("mcp.answer")}) {
    const std::string name(p.info().name);
    heard h;
    const auto events = h.watched(p);
    CHECK(passed_by([&] { events.on_head({200, {}}); }) == std::set{name});
    CHECK(passed_by([&] { events.on_body("x"); }) == std::set{name});
    CHECK(passed_by([&] { events.on_end({}); }) == std::set{name});
    CHECK(h.heads == std::vector<int>{200});
    CHECK(h.body == "x");
    REQUIRE(h.ends.size() == 1);
    CHECK(h.ends.front());
  }
}

TEST_CASE("faults: an answer that breaks off has an end that says so", "[faults]") {
  for (const int at : {0, 1, 2, 3}) {
    const faults::isolation of_this_test;
    heard h;
    REQUIRE(faults::arm({armed_at(action::error, at)}, 1));
    answer(h.watched("models.answer"));
    INFO("at event " << at);
    CHECK(h.heads.size() == (at > 0 ? 1u : 0u));
    CHECK(h.body == (at < 2 ? "" : at == 2 ? "one " : "one two"));
    REQUIRE(h.ends.size() == 1);
    REQUIRE_FALSE(h.ends.front());
    CHECK(h.ends.front().error().code == errc::io_error);
  }
}

TEST_CASE("faults: an answer with a changed bit, or a late one, is heard in its order",
          "[faults]") {
  {
    const faults::isolation of_this_test;
    heard h;
    REQUIRE(faults::arm({armed_at(action::corrupt, 1)}, 1));
    answer(h.watched("models.answer"));
    CHECK(h.body.size() == 7);
    CHECK(h.body != "one two");
    CHECK(h.body.ends_with("two"));
    CHECK(h.ends.front());
  }
  heard h;
  REQUIRE(faults::arm({armed_at(action::delay, 1)}, 1));
  answer(h.watched("models.answer"));
  CHECK(h.ended.count() == 0); // an hour
  faults::disarm();
  REQUIRE(h.ended.wait());
  CHECK(h.heads == std::vector<int>{200});
  CHECK(h.body == "one two");
  CHECK(h.ends.front());
}

} // namespace boyd::fault_ports_test
