#include "boyd/queue/schema_parts.hpp"

#include <map>
#include <set>

namespace boyd::queue {

std::vector<std::string> schema_differences(const std::vector<schema_part>& expected,
                                            const std::vector<schema_part>& found) {
  std::map<std::string, std::string> there;
  for (const auto& part : found)
    there.emplace(part.name, part.form);
  std::vector<std::string> lines;
  std::set<std::string> known;
  for (const auto& part : expected) {
    known.insert(part.name);
    const auto own = "table " + part.table;
    if (part.name != own && !part.table.empty() && !there.contains(own))
      continue;
    const auto it = there.find(part.name);
    if (it == there.end())
      lines.push_back(part.name + " is missing");
    else if (it->second != part.form)
      lines.push_back(part.name + " is " + it->second + ", not " + part.form);
  }
  for (const auto& part : found)
    if (part.name.starts_with("trigger ") && !known.contains(part.name))
      lines.push_back(part.name + " is not part of Boyd and may refuse its writes");
  return lines;
}

} // namespace boyd::queue
