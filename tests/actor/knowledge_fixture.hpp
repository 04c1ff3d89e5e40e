#pragma once

#include "actors/knowledge/performer.hpp"
#include "actors/state_writer/performer.hpp"
#include "boyd/ports/repository.hpp"
#include "node_fixture.hpp"
#include "src/adapters/libgit2/repository.hpp"
#include "src/adapters/posix/file_system.hpp"
#include "src/adapters/sqlite/knowledge_index.hpp"
#include "support/pch.hpp"
#include "support/temp_dir.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace boyd::test {

/// The workers of the state writer and of the memory on a real disk, with real git and SQLite.
struct knowledge_fixture {
  test::temp_dir home;
  std::shared_ptr<test::virtual_clock> clock = std::make_shared<test::virtual_clock>();
  std::shared_ptr<node_context> context = make_context();
  configuration_ptr configuration = std::make_shared<config::configuration>();
  state_session writer{context, configuration};
  std::unique_ptr<knowledge_session> memory = std::make_unique<knowledge_session>(context);

  knowledge_fixture() { REQUIRE(write(init_kernel_home{"default"})); }

  std::shared_ptr<node_context> make_context() const {
    auto c = std::make_shared<node_context>();
    c->ports.clock = clock;
    c->ports.random = std::make_shared<sim::seeded_entropy>(1);
    c->ports.files = adapters::make_posix_file_system();
    c->ports.repositories = adapters::make_git_repositories();
    c->ports.make_knowledge_index = adapters::make_sqlite_knowledge_index;
    c->home = home.path();
    return c;
  }

  template <class What>
  result<state_reply> write(What what) {
    std::vector<job<state_request, state_reply>> batch;
    batch.emplace_back(state_request{{}, std::move(what)});
    writer.perform(batch);
    return batch[0].reply;
  }

  template <class What>
  result<knowledge_reply> ask(What what) {
    std::vector<job<knowledge_request, knowledge_reply>> batch;
    knowledge_request request;
    request.what = std::move(what);
    batch.emplace_back(std::move(request));
    memory->perform(batch);
    return batch[0].reply;
  }

  std::vector<std::string> recall(const std::string& question, std::optional<utc_time> at = {}) {
    recall_memory what{"default", {{question, at}}, 1000, 0};
    // Entries of files are as old as these, which a real clock dates.
    if (!at)
      what.questions.front().at = *parse_rfc3339("2100-01-01T00:00:00Z");
    const auto reply = ask(std::move(what));
    if (!reply)
      return {to_string(reply.error())};
    std::vector<std::string> texts;
    for (const auto& [row, score] : reply->answers.front())
      texts.push_back(row.text);
    return texts;
  }

  memory_description describe() { return ask(describe_memory{"default"})->description; }

  void restart() {
    memory.reset();
    memory = std::make_unique<knowledge_session>(context);
  }

  std::string file(const std::string& name) const { return home.file("kernel/default/" + name); }
  std::string index() const { return home.file("knowledge/index.db"); }
  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << text;
  }
};

/// What somebody wrote down at that time.
inline memory::memory_entry entry(const std::string& text, const char* time,
                                  const std::string& author = {}) {
  return {{}, "chat", author, {}, text, *parse_rfc3339(time), true};
}

} // namespace boyd::test
