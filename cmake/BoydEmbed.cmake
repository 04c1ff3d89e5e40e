# boyd_embed(<target> <name> <file>): compiles the text of a data file into a library. The library's
# code declares `extern const char* const <name>;` in namespace boyd::embedded. A changed file makes
# CMake run again.
function(boyd_embed target name path)
  file(READ ${path} content)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${target}_${name}.cpp)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"namespace boyd::embedded {
extern const char* const @name@;
const char* const @name@ = R\"boyd_data(@content@)boyd_data\";
} // namespace boyd::embedded
")
  target_sources(${target} PRIVATE ${output})
endfunction()
