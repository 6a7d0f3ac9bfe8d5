# The command line `harpe`.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS src/cli/*.cpp)
list(REMOVE_ITEM cli_sources ${CMAKE_SOURCE_DIR}/src/cli/main.cpp)
add_library(harpe_cli STATIC ${cli_sources})
target_link_libraries(harpe_cli PUBLIC harpe_profile harpe_measure harpe_report
                      PRIVATE harpe_flags CLI11::CLI11 fmt::fmt)
target_compile_definitions(harpe_cli PRIVATE HARPE_VERSION="${PROJECT_VERSION}")
# What prints is never waited for: less optimisation, so that it compiles faster.
target_compile_options(harpe_cli PRIVATE $<$<CONFIG:Release>:-O1>)
# The refusals that tests hold exactly are the examples of `harpe explain`.
file(GLOB_RECURSE refusals CONFIGURE_DEPENDS tests/golden/fail_*.comm)
harpe_embed_texts(harpe_cli cli/examples.h example_text ${refusals})
add_executable(harpe src/cli/main.cpp)
target_link_libraries(harpe PRIVATE harpe_cli harpe_flags harpe_allocator)
