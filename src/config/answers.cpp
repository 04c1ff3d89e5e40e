#include "boyd/config/tree.hpp"
#include "passes.hpp"

#include <utility>

namespace boyd::config {
namespace {

/// Answers name no time zones.
class no_zones final : public time_zones {
 public:
  result<std::shared_ptr<const time_zone>> find(const std::string& name) const override {
    return fail(errc::not_found, "no time zone database is available here", name);
  }
};

tree text_of(std::string text) {
  tree out;
  out.text = std::move(text);
  return out;
}

tree map_of(std::string key, tree value) {
  tree out;
  out.kind = tree::kind_t::map;
  out.keys.push_back({std::move(key), value.at});
  out.items.push_back(std::move(value));
  return out;
}

void add(tree& map, std::string key, tree value) {
  map.keys.push_back({std::move(key), value.at});
  map.items.push_back(std::move(value));
}

tree list_of(tree item) {
  tree out;
  out.kind = tree::kind_t::sequence;
  out.items.push_back(std::move(item));
  return out;
}

constexpr std::string_view inner = "kernels[0].agents[0].executor.";

/// A whole configuration around the answers, so that one schema and one set of checks hold.
tree wrap(tree answers) {
  auto executor = map_of("answers", std::move(answers));
  add(executor, "type", text_of("script"));
  auto agent = map_of("executor", std::move(executor));
  add(agent, "agent_id", text_of("script"));
  auto root = map_of("kernels", list_of(map_of("agents", list_of(std::move(agent)))));
  add(root, "version", text_of("1"));
  return root;
}

tl::unexpected<error> failed(finding first, std::size_t more) {
  if (first.key.starts_with(inner)) {
    first.key.erase(0, inner.size());
  }
  const auto where = first.where();
  auto what = first.text().substr(where.size() + 2);
  if (more > 0) {
    what += " (and " + std::to_string(more) + " more)";
  }
  return fail(errc::parse_error, std::move(what), where);
}

} // namespace

result<std::vector<script_executor::answer>> build_answers(const std::string& path, parsed source) {
  if (source.value) {
    pass p{path, source.findings};
    auto root = wrap(std::move(*source.value));
    validate(p, root);
    check_meaning(p, root, no_zones{});
    if (source.findings.empty()) {
      fill_defaults(root);
      const auto whole = convert(p, root);
      return std::get<script_executor>(whole.kernels.front().agents.front().run).answers;
    }
  }
  return failed(source.findings.front(), source.findings.size() - 1);
}

} // namespace boyd::config
