#pragma once

#include "arguments.hpp"
#include "boyd/core/result.hpp"

#include <functional>
#include <string>

/// Questions to a person at the terminal.
namespace boyd::app {

/// Whether there is one: both streams are terminals, and neither --no-input nor --json forbids it.
bool can_ask(const arguments& args);

/// What is wrong with an answer, for the person; empty: nothing.
using answer_check = std::function<std::string(const std::string& answer)>;

/// One answer, asked for again while `check` finds something wrong; `standard` for nothing but a
/// line break. False when the input ended before it (Ctrl-D).
bool ask_person(std::string& answer, const std::string& question, const std::string& standard,
                const answer_check& check = {});

/// The error of a command whose questions were not all answered.
error unanswered();

/// The check of a name of a kernel or an agent.
std::string problem_of_name(const std::string& answer);

/// The check of a schedule; an empty one is good.
std::string problem_of_schedule(const std::string& answer);

} // namespace boyd::app
