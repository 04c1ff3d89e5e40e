#pragma once

/// Data files compiled into the binary (cmake/BoydEmbed.cmake).
namespace boyd::embedded {

extern const char* const schema_text;  ///< config/boyd.schema.json
extern const char* const default_text; ///< config/default.yaml
// config/adapters/*.yaml
extern const char* const adapter_claude;
extern const char* const adapter_codex;
extern const char* const adapter_gemini;
extern const char* const adapter_goose;
extern const char* const adapter_improve;
extern const char* const adapter_opencode;

} // namespace boyd::embedded
