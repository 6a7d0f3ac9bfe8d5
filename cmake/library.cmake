# libharpe: Harpe for programs that call it (docs/library.md). One shared object holds all modules
# and exports the names of include/harpe alone.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(GLOB library_sources CONFIGURE_DEPENDS src/library/*.cpp)
file(GLOB public_headers CONFIGURE_DEPENDS include/harpe/*.h)
# Its objects, which the extension of the Python package has inside too.
add_library(harpe_library OBJECT ${library_sources})
target_include_directories(harpe_library PUBLIC ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(harpe_library PRIVATE
  HARPE_BUILDS_ITSELF HARPE_VERSION="${PROJECT_VERSION}")
target_link_libraries(harpe_library PUBLIC harpe_report PRIVATE harpe_flags)
add_library(harpe_shared SHARED $<TARGET_OBJECTS:harpe_library>)
# Before 1.0 a minor version may change what programs were compiled against.
set_target_properties(harpe_shared PROPERTIES
  OUTPUT_NAME harpe EXPORT_NAME harpe VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(harpe_shared PUBLIC cxx_std_20)
target_include_directories(harpe_shared PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(harpe_shared PRIVATE harpe_report)
set(library_map ${CMAKE_SOURCE_DIR}/cmake/library.map)
target_link_options(harpe_shared PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL
                    -Wl,--version-script=${library_map})
set_property(TARGET harpe_shared PROPERTY LINK_DEPENDS ${library_map})

# find_package(harpe) gives harpe::harpe.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/harpe)
install(TARGETS harpe_shared EXPORT harpe COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/harpe COMPONENT library)
install(EXPORT harpe FILE harpe-config.cmake NAMESPACE harpe:: DESTINATION ${package_folder}
        COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/harpe-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/harpe-config-version.cmake DESTINATION ${package_folder}
        COMPONENT library)
