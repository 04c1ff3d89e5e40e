#include "boyd/core/outside_json.hpp"

#include "boyd/core/json_depth.hpp"
#include "boyd/core/text.hpp"
#include "fuzz/target.hpp"

#include <nlohmann/json.hpp>

namespace boyd::fuzz {
namespace {

/// A byte for the options, then the text: whatever is read is strict JSON and is read again the
/// same.
void run(std::string_view input) {
  reader in(input);
  const unsigned knobs = in.byte();
  outside_json_options options;
  options.is_piece = (knobs & 1U) != 0;
  if ((knobs & 2U) != 0)
    options.string_bytes = knobs / 4;
  const auto found = find_json(in.rest(), options);
  if (!found)
    return;
  require(nlohmann::json::accept(found->text), "the text is strict JSON");
  require(check_json_depth(found->text).has_value(), "the depth is bounded");
  require(found->begin < found->end && found->end <= in.rest().size(), "the place is in the input");
  const auto again = mend_json(found->text);
  require(again && again->text == found->text, "strict JSON stays as it is");
  auto joined = found->text;
  join_pieces(joined);
  require(sanitize_utf8(joined) == joined, "joined text is UTF-8");
}

const registration registered{"outside_json", run};

} // namespace
} // namespace boyd::fuzz
