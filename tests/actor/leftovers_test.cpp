#include "actors/node/leftovers.hpp"
#include "node_fixture.hpp"
#include "support/pch.hpp"

namespace boyd::leftovers_test {

using namespace boyd;
using boyd::test::simulated_node;

TEST_CASE("prompt files of a killed node are removed, and nothing else", "[leftovers]") {
  simulated_node n;
  CHECK(remove_leftover_prompts(*n.files, "/boyd").value() == 0); // no directory yet
  n.disk->put("/boyd/run/prompts/d-1-1.txt", "secret");
  n.disk->put("/boyd/run/prompts/d-2-1.txt", "secret");
  n.disk->put("/boyd/run/prompts/notes.md", "mine");
  n.disk->put("/boyd/run/prompts/folder.txt/inside.txt", "mine");
  n.disk->put("/boyd/run/node_id", "id");
  CHECK(remove_leftover_prompts(*n.files, "/boyd").value() == 2);
  const auto left = n.disk->snapshot();
  CHECK(left.count("/boyd/run/prompts/d-1-1.txt") == 0);
  CHECK(left.count("/boyd/run/prompts/d-2-1.txt") == 0);
  CHECK(left.count("/boyd/run/prompts/notes.md") == 1);
  CHECK(left.count("/boyd/run/prompts/folder.txt/inside.txt") == 1);
  CHECK(left.count("/boyd/run/node_id") == 1);
}

TEST_CASE("one start removes a bounded number of prompt files", "[leftovers]") {
  simulated_node n;
  for (std::size_t i = 0; i < prompt_files_at_start + 1; ++i)
    n.disk->put("/boyd/run/prompts/" + std::to_string(i) + ".txt", "");
  CHECK(remove_leftover_prompts(*n.files, "/boyd").value() == prompt_files_at_start);
  CHECK(remove_leftover_prompts(*n.files, "/boyd").value() == 1);
}

} // namespace boyd::leftovers_test
