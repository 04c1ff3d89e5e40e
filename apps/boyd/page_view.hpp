#pragma once

#include "terminal.hpp"

#include <string>
#include <string_view>

namespace boyd::app {

/// A Markdown page for that terminal. Headings are bold and without their signs, paragraphs are
/// filled to the width, and each row of a table becomes an item of a list, since rows of a table
/// are wider than a screen. Sections in which there is nothing are left out; the last line names
/// them.
std::string page_on_screen(std::string_view markdown, const terminal& t);

} // namespace boyd::app
