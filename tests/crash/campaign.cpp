#include "crash/campaign.hpp"

#include "support/knob.hpp"
#include "support/telling.hpp"
#include "support/wait.hpp"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <unistd.h>

namespace boyd::crash {

namespace {

namespace fs = std::filesystem;

/// What a sanitized run does of the points, and takes of the time.
constexpr std::uint64_t sanitized_share = 3;
/// Of the points of a case, that are made although its time is up: a slow machine proves less, but
/// not nothing.
constexpr std::uint64_t least_share = 20;
/// But not for longer than so many times what it has: then something is wrong.
constexpr std::uint64_t longest_factor = 10;
constexpr std::size_t told_bytes = 6000;

const char* configuration = R"(version: 1
node: {log_level: info, max_concurrent: 4, lease: 5s, lease_renewal: 1s}
kernels:
  - kernel_id: default
    schedule: "0 0 1 1 *"
    max_cycle_history: 50
    agents:
      - agent_id: first
        prompt: work
        context: [agent.sh]
        executor: {type: command, argv: [sh, "@/agent.sh"], cwd: "@"}
      - agent_id: second
        prompt: "work on {STATE}"
        executor: {type: command, argv: [sh, "@/agent.sh", "{prompt_file}"], cwd: "@"}
      - agent_id: failing
        prompt: work
        executor: {type: command, argv: [sh, -c, "exit 7"], cwd: "@"}
      - agent_id: script
        prompt: work
        executor: {type: script, answers: [{output: fine, summary: fine}]}
)";

const char* agent =
    R"(printf '%s %s %s %s %s\n' "$BOYD_DISPATCH_ID" "$BOYD_FENCE" "$BOYD_CYCLE_ID" \
  "$BOYD_AGENT_ID" "$$" >> @/effects
echo done
)";

std::string at(std::string text, const std::string& path) {
  for (auto i = text.find('@'); i != std::string::npos; i = text.find('@', i))
    text.replace(i, 1, path);
  return text;
}

std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  return static_cast<std::uint64_t>(test::knob(name, static_cast<std::int64_t>(otherwise)));
}

/// A home may have a socket in it, which std::filesystem does not copy.
void copy(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  if (const auto copied = test::program({"/bin/cp", "-a", from, to}).finish(); copied.code != 0)
    throw std::runtime_error("cp: " + copied.err);
}

/// What the test itself wrote must not be what a power cut takes.
void make_durable(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::syncfs(fd) != 0)
    throw std::runtime_error("cannot sync " + directory);
  ::close(fd);
}

bool is_alive(int pid) {
  const auto text = test::read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto close = text.rfind(')');
  return close != std::string::npos && close + 2 < text.size() && text[close + 2] != 'Z';
}

} // namespace

effort effort_of(std::uint64_t points, std::chrono::seconds most) {
  effort e;
  const char* wanted = std::getenv("BOYD_CRASH_POINTS");
  e.all = wanted != nullptr && std::string(wanted) == "all";
  e.points = BOYD_CRASH_SANITIZED ? points / sanitized_share : points;
  e.most = std::chrono::seconds{
      number_of("BOYD_CRASH_SECONDS", static_cast<std::uint64_t>(most.count()) /
                                          (BOYD_CRASH_SANITIZED ? sanitized_share : 1))};
  if (e.all) {
    e.points = std::numeric_limits<std::uint64_t>::max();
    e.most = std::chrono::seconds{number_of("BOYD_CRASH_SECONDS", 0)};
  }
  if (wanted != nullptr && !e.all) {
    e.points = number_of("BOYD_CRASH_POINTS", points);
    e.most = std::chrono::seconds{number_of("BOYD_CRASH_SECONDS", 0)};
  }
  e.seed = number_of("BOYD_CRASH_SEED", std::random_device{}());
  return e;
}

std::string about(const effort& e, std::uint64_t point, const fault& f) {
  return "seed " + std::to_string(e.seed) + ", point " + std::to_string(point) + ", call " +
         std::to_string(f.at) + ", fault " + std::to_string(static_cast<int>(f.what)) +
         (f.cut_flags != 0 ? ", flags " + std::to_string(f.cut_flags) : "");
}

bool tally::enough() const {
  const auto spent = std::chrono::steady_clock::now() - start_;
  const auto is_over = [&](std::uint64_t times) {
    return effort_.most.count() > 0 && spent >= times * effort_.most;
  };
  return done_ >= effort_.points || (is_over(1) && done_ >= effort_.points / least_share) ||
         is_over(longest_factor);
}

void tally::report(const std::string& what, const proving_ground& ground) const {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  std::cout << "crash matrix: " << done_
            << (done_ < effort_.points && !effort_.all
                    ? " (time was up before " + std::to_string(effort_.points) + ") "
                    : " ")
            << what << " in " << spent.count() << " s; seed " << effort_.seed
            << "; acknowledged: " << ground.cycles() << " cycles, " << ground.outcomes()
            << " outcomes; the disk was examined " << ground.examined() << " times, "
            << ground.wrong() << " things were wrong\n";
}

proving_ground::proving_ground(const std::string& where)
    : home_(fs::canonical(where.empty() ? outside_.path() : where).string() + "/home"),
      witness_(outside_.file("effects")), kept_(witness_) {}

std::vector<std::string> proving_ground::argv(std::vector<std::string> args) const {
  args.insert(args.begin(), {test::boyd_binary(), "--home", home_});
  return args;
}

void proving_ground::begin_anew() {
  past_cycles_ += witness_.cycles();
  past_outcomes_ += witness_.outcomes();
  witness_ = witness(outside_.file("effects"));
  fs::remove(outside_.file("effects"));
  fs::remove_all(home_);
  fs::create_directory(home_);
  fs::permissions(home_, fs::perms::owner_all);
  test::write_file(home_ + "/boyd.yaml", at(configuration, outside_.path()));
  test::write_file(outside_.file("agent.sh"), at(agent, outside_.path()));
  const auto made = run({"init", "--no-input"}, {});
  if (made.code != 0)
    throw std::runtime_error("boyd init: " + made.err);
  const auto state = home_ + "/kernel/default/STATE.md";
  test::write_file(state, test::read_file(state) + agents_text);
  make_durable(home_);
  settle("the first cycle");
  settle("the second cycle");
}

void proving_ground::begin_with_a_log() {
  begin_anew();
  const auto node = start({"node"}, {});
  if (!node->wait_for_stderr("ready: node "))
    throw std::runtime_error("boyd node: " + node->finish().err);
  ask_cycle({});
  node->signal(SIGKILL);
  heard_node(node->finish(), {});
  if (fs::file_size(home_ + "/boyd.db-wal") == 0)
    throw std::runtime_error("the killed node has left no log");
  make_durable(home_);
  check("killed");
}

void proving_ground::renew_sometimes(std::uint64_t round, const std::string& about) {
  constexpr std::uint64_t rounds_of_a_home = 150;
  if (round == 0 || round % rounds_of_a_home != 0)
    return;
  settle(about);
  check_nothing_lives(about);
  begin_anew();
}

void proving_ground::keep() {
  copy(home_, outside_.file("kept"));
  fs::copy_file(outside_.file("effects"), outside_.file("kept-effects"),
                fs::copy_options::overwrite_existing);
  kept_ = witness_;
}

void proving_ground::restore() {
  copy(outside_.file("kept"), home_);
  fs::copy_file(outside_.file("kept-effects"), outside_.file("effects"),
                fs::copy_options::overwrite_existing);
  make_durable(home_);
  witness_ = kept_;
}

std::unique_ptr<test::program> proving_ground::start(std::vector<std::string> args,
                                                     const fault& f) {
  return std::make_unique<test::program>(argv(std::move(args)), shim_.arm(home_, f));
}

test::finished proving_ground::run(std::vector<std::string> args, const fault& f) {
  const auto what = args.front();
  auto ended = start(std::move(args), f)->finish();
  shim_.disarm();
  remember(what, ended, f);
  return ended;
}

void proving_ground::remember(const std::string& verb, const test::finished& ended,
                              const fault& f) {
  if (f.what == action::eio || f.what == action::enospc || f.what == action::shorten)
    witness_.disk_failed();
  told_ +=
      "-- boyd " + verb + " ended with " + std::to_string(ended.code) +
      (shim_.struck() ? ", struck at call " + std::to_string(f.at) + ": " + shim_.where() : "") +
      "\n" + ended.err + ended.out;
  if (told_.size() > told_bytes)
    told_.erase(0, told_.size() - told_bytes);
}

test::finished proving_ground::cycle(const fault& f) {
  auto ended = run({"cycle", "--json"}, f);
  witness_.heard_cycle(ended);
  return ended;
}

void proving_ground::heard_cycle(const test::finished& ended, const fault& f) {
  shim_.disarm();
  remember("cycle", ended, f);
  witness_.heard_cycle(ended);
}

void proving_ground::heard_node(const test::finished& ended, const fault& f) {
  shim_.disarm();
  remember("node", ended, f);
}

void proving_ground::ask_cycle(const fault& of_node) {
  const auto ended = test::program(argv({"cycle", "--json"})).finish();
  remember("cycle", ended, of_node);
  witness_.heard_cycle(ended);
}

std::uint64_t proving_ground::calls_of(std::uint32_t kinds) {
  settle("counting", kinds);
  if (shim_.calls() == 0)
    throw std::runtime_error("a cycle makes no such calls, or the shim is not there");
  return shim_.calls();
}

void proving_ground::require(const std::vector<std::string>& violations, const std::string& about) {
  wrong_ += violations.size();
  if (violations.empty())
    return;
  std::string text = about + "\n";
  for (const auto& v : violations)
    text += "* " + v + "\n";
  if (const char* kept = std::getenv("BOYD_CRASH_KEEP")) {
    copy(home_, kept);
    text += "the home is kept in " + std::string(kept) + "\n";
  }
  throw broken(text + "what the runs said:\n" + told_);
}

std::vector<std::string> proving_ground::told_as_broken(std::vector<std::string> violations,
                                                        const std::string& about) const {
  if (!expects_losses_)
    for (const auto& v : violations)
      test::tell_broken(v + "; " + about);
  return violations;
}

void proving_ground::check(const std::string& about) {
  ++examined_;
  const auto wrong = witness_.judge(look_at_disk(home_, outside_.file("scratch")));
  require(told_as_broken(wrong, about), about);
}

void proving_ground::settle(const std::string& about, std::uint32_t counted) {
  const auto ended = cycle({.kinds = counted});
  const auto answer = ended.json();
  std::vector<std::string> wrong;
  // One agent fails on purpose.
  if (!answer.is_object() || answer.value("status", "") != "partial_success" ||
      !answer.at("problems").empty()) {
    wrong.emplace_back("a cycle without faults is not good");
  } else {
    ++examined_;
    wrong = told_as_broken(witness_.judge_settled(look_at_disk(home_, outside_.file("scratch"))),
                           about);
  }
  require(wrong, about + ", then a cycle without faults");
}

void proving_ground::check_nothing_lives(const std::string& about) {
  std::vector<std::string> alive;
  for (const int pid : witness_.agent_pids())
    if (!test::wait_until([pid] { return !is_alive(pid); }))
      alive.push_back("process " + std::to_string(pid) + " of an agent is alive");
  require(alive, about);
}

} // namespace boyd::crash
