#pragma once

#include "actors/support/node_context.hpp"
#include "boyd/faults/faulty_ports.hpp"

#include <memory>

namespace boyd {

/// The same node for one part, with the part's fault points before its files, before the file
/// tools and before every repository.
inline node_context_ptr with_fault_points(const node_context_ptr& context,
                                          const faults::file_points& files) {
  auto own = std::make_shared<node_context>(*context);
  if (own->ports.files)
    own->ports.files = faults::watched(own->ports.files, files);
  if (own->ports.repositories)
    own->ports.repositories = faults::watched(own->ports.repositories);
  if (own->ports.workspaces)
    own->ports.workspaces = faults::watched(own->ports.workspaces);
  return own;
}

} // namespace boyd
