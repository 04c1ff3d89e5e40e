#include "bench/context/speed.hpp"

#include "actors/knowledge/performer.hpp"
#include "bench/support/statistics.hpp"
#include "boyd/files/atomic_file.hpp"
#include "boyd/memory/entry.hpp"
#include "src/adapters/posix/clock.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/sqlite/knowledge_index.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace boyd::bench {

namespace {

constexpr const char* kernel_id = "default";
constexpr std::size_t vocabulary = 30'000;
constexpr unsigned seed = 4711;

/// Words as frequent as in a natural text: the n-th one of n-th rank.
class drawn_text {
 public:
  std::string words(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += (text.empty() ? "" : " ") + word();
    return text;
  }
  std::string chinese(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      const unsigned c = 0x4E00 + draw(2000); // NOLINT(readability-magic-numbers)
      text += static_cast<char>(0xE0 | (c >> 12U));
      text += static_cast<char>(0x80 | ((c >> 6U) & 0x3FU));
      text += static_cast<char>(0x80 | (c & 0x3FU));
    }
    return text;
  }
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }

 private:
  std::string word() {
    const double u = std::generate_canonical<double, 32>(random_);
    auto rank = static_cast<std::size_t>(std::pow(static_cast<double>(vocabulary), u));
    std::string out;
    constexpr std::string_view syllables = "bakodemifuglanorpistuvexzy";
    for (rank += 7; rank > 0; rank /= 13) // NOLINT(readability-magic-numbers)
      out += syllables.substr(rank % 13 * 2, 2);
    return out;
  }

  std::mt19937_64 random_{seed};
};

result<void> make_files(const node_context& node, std::size_t entries) {
  drawn_text draw;
  std::map<std::string, std::string> files; ///< by month
  constexpr std::size_t month = 7;
  constexpr auto between = 7min;
  auto t = *parse_rfc3339("2025-01-01T00:00:00Z");
  for (std::size_t i = 0; i < entries; ++i, t += between) {
    memory::memory_entry e;
    e.time = t;
    e.source = "session " + std::to_string(i / 25);    // NOLINT(readability-magic-numbers)
    e.author = "agent" + std::to_string(draw.draw(5)); // NOLINT(readability-magic-numbers)
    e.text = draw.draw(10) == 0 ? draw.chinese(20 + draw.draw(30)) // NOLINT
                                : draw.words(8 + draw.draw(35));   // NOLINT
    files[format_rfc3339(t).substr(0, month)] += memory::write_import_line(e) + "\n";
  }
  const auto folder = node.kernel_home(kernel_id) + "/archive";
  if (auto made = node.ports.files->make_directories(folder); !made)
    return made;
  for (const auto& [name, bytes] : files)
    if (auto written =
            files::write_atomic(*node.ports.files, folder + "/" + name + ".jsonl", bytes);
        !written)
      return written;
  return {};
}

knowledge_request question_about(const std::string& text) {
  recall_memory what;
  what.kernel_id = kernel_id;
  what.questions.push_back({text, {}});
  what.budget_tokens = 1000; // NOLINT(readability-magic-numbers)
  knowledge_request request;
  request.what = std::move(what);
  return request;
}

result<double> ask(knowledge_session& session, const std::string& text) {
  std::vector<job<knowledge_request, knowledge_reply>> batch;
  batch.emplace_back(question_about(text));
  const auto since = stopwatch_clock::now();
  session.perform(batch);
  const auto seconds = seconds_since(since);
  if (!batch.front().reply)
    return fail(batch.front().reply.error());
  if (batch.front().reply->answers.front().empty())
    return fail(errc::bug, "a question found nothing", text);
  return seconds;
}

} // namespace

result<recall_speed> measure_speed(const std::string& directory, std::size_t entries,
                                   std::size_t questions) {
  auto node = std::make_shared<node_context>();
  node->home = directory;
  node->ports.files = adapters::make_posix_file_system();
  node->ports.clock = adapters::make_system_clock();
  node->ports.make_knowledge_index = adapters::make_sqlite_knowledge_index;
  if (auto made = make_files(*node, entries); !made)
    return fail(std::move(made.error()));
  recall_speed out;
  drawn_text draw;
  {
    knowledge_session first(node);
    const auto before = processor_seconds();
    const auto seconds = ask(first, draw.words(8)); // NOLINT(readability-magic-numbers)
    if (!seconds)
      return fail(seconds.error());
    out.index_seconds = *seconds;
    out.index_cpu_seconds = processor_seconds() - before;
  }
  knowledge_session session(node);
  auto before = processor_seconds();
  const auto loaded = ask(session, draw.words(8)); // NOLINT(readability-magic-numbers)
  if (!loaded)
    return fail(loaded.error());
  out.load_seconds = *loaded;
  out.load_cpu_seconds = processor_seconds() - before;
  before = processor_seconds();
  std::vector<double> ms;
  constexpr double milli = 1000;
  for (std::size_t i = 0; i < questions; ++i) {
    auto text = draw.words(4 + draw.draw(12)) + (i % 10 == 0 ? draw.chinese(6) : ""); // NOLINT
    text += i % 5 == 0 ? " in May" : "";                                              // NOLINT
    const auto seconds = ask(session, text);
    if (!seconds)
      return fail(seconds.error());
    ms.push_back(*seconds * milli);
  }
  out.query_cpu_ms = (processor_seconds() - before) * milli /
                     static_cast<double>(std::max<std::size_t>(questions, 1));
  out.query_ms = median(ms);
  out.query_p99_ms = percentile(ms, 99); // NOLINT(readability-magic-numbers)
  constexpr double mib = 1 << 20;
  if (const auto info = node->ports.files->stat(node->layout().knowledge_index()))
    out.index_mib = static_cast<double>(info->size) / mib;
  out.resident_mib = peak_resident_mib();
  return out;
}

} // namespace boyd::bench
