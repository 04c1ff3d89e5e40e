#pragma once

#include "json_view.hpp"
#include "terminal.hpp"

#include <string>

namespace boyd::app {

/// What the log of facts lacks, as answers tell it ("damage"), as a sentence with what to do;
/// empty: nothing.
std::string damage_of(const json& body);

/// "1 damaged line (of 42) was left out; …", of "left_out" and "lines" of an answer; empty: none
/// was.
std::string left_out_of(const json& body);

/// Both, below an answer.
void print_lost_facts(const json& body, const terminal& t);

} // namespace boyd::app
