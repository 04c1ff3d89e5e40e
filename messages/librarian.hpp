#pragma once

#include "boyd/context/wanted.hpp"
#include "boyd/plan/wake.hpp"
#include "messages/message.hpp"

#include <map>
#include <string>
#include <vector>

namespace boyd {

/// Runs the senses that are due and reads identity, goal and memory.
struct gather_context : message {
  std::string kernel_id;
};

struct gathered_context : message {
  std::string goal;
  std::string memory;
  std::string skills;
  std::string senses;
  std::vector<context::wanted> buffer; ///< references of the kernel's buffer
  std::vector<std::string> problems;   ///< what could not be had; never fatal
};

/// Evaluates `wake:` of these agents; the answers' memory is kept by the librarian as facts.
struct check_wake : message {
  std::string kernel_id;
  std::vector<std::string> agent_ids;
  /// A person or the API asked for the cycle: each check is made, whatever its back-off, and one
  /// that finds no change leaves the back-off as it was.
  bool by_hand = false;
};

struct wake_results : message {
  std::map<std::string, plan::wake_answer> agents;
};

} // namespace boyd
