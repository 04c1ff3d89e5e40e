#pragma once

/// Data files compiled into the binary (cmake/BoydEmbed.cmake).
namespace boyd::embedded {

extern const char* const schema_text;  ///< config/boyd.schema.json
extern const char* const default_text; ///< config/default.yaml

} // namespace boyd::embedded
