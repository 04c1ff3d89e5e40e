#pragma once

#include <string_view>

namespace boyd::model {

/// Whether a JSON Schema keeps the rules of strict structured output: each object names all its
/// properties as required and allows no others, and no word is used that OpenAI refuses there.
/// Source: platform.openai.com/docs/guides/structured-outputs, "Supported schemas".
bool fits_strict(std::string_view schema);

} // namespace boyd::model
