# Third-party libraries, each private to the one module that may use it.
include(CMakePushCheckState)
include(CheckCXXSourceCompiles)

# The files whose loops the compiler has to vectorise.
set_source_files_properties(src/ir/interpret_math.cpp src/lower/clock.cpp
  src/verify/clocks.cpp PROPERTIES
  COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3>;-ffp-contract=fast")
target_compile_options(harpe_exec_cpu_kernels PRIVATE
  $<$<NOT:$<CONFIG:Debug>>:-O3> -ffp-contract=fast)

# OpenBLAS: f32 and f64 tiles where it is the fastest. The threaded flavour, held to one thread: the
# serial one may not be called from two threads at once. Opened when it is needed.
set(HARPE_BLAS_FOUND OFF)
if(HARPE_OPENBLAS)
  find_path(OPENBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas)
  find_library(OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
  if(OPENBLAS_INCLUDE_DIR AND OPENBLAS_LIBRARY)
    set(HARPE_BLAS_FOUND ON)
    target_include_directories(harpe_exec_cpu_kernels SYSTEM PRIVATE ${OPENBLAS_INCLUDE_DIR})
    target_link_libraries(harpe_exec_cpu_kernels PRIVATE ${CMAKE_DL_LIBS})
    target_compile_definitions(harpe_exec_cpu_kernels PRIVATE HARPE_WITH_OPENBLAS)
  endif()
endif()

# oneDNN: f32 and bf16 tiles on AVX-512. Its number of threads is OpenMP's, so that is needed too.
set(HARPE_DNNL_FOUND OFF)
set(HARPE_DNNL_BF16_FOUND OFF)
if(HARPE_ONEDNN)
  find_package(OpenMP QUIET COMPONENTS CXX)
  find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  find_library(ONEDNN_LIBRARY dnnl)
  if(OpenMP_CXX_FOUND AND ONEDNN_INCLUDE_DIR AND ONEDNN_LIBRARY)
    set(HARPE_DNNL_FOUND ON)
    target_include_directories(harpe_exec_cpu_kernels SYSTEM PRIVATE ${ONEDNN_INCLUDE_DIR})
    target_link_libraries(harpe_exec_cpu_kernels PRIVATE ${ONEDNN_LIBRARY} OpenMP::OpenMP_CXX)
    target_compile_definitions(harpe_exec_cpu_kernels PRIVATE HARPE_WITH_ONEDNN)
    cmake_push_check_state(RESET)
    set(CMAKE_REQUIRED_LIBRARIES ${ONEDNN_LIBRARY})
    check_cxx_source_compiles(
      "extern \"C\" int dnnl_gemm_bf16bf16f32(); int main() { return dnnl_gemm_bf16bf16f32(); }"
      HARPE_DNNL_EXPORTS_BF16)
    cmake_pop_check_state()
    if(HARPE_DNNL_EXPORTS_BF16)
      set(HARPE_DNNL_BF16_FOUND ON)
      target_compile_definitions(harpe_exec_cpu_kernels PRIVATE HARPE_WITH_ONEDNN_BF16)
    endif()
  endif()
endif()

target_link_libraries(harpe_exec_cpu PRIVATE Threads::Threads)

# OpenSSL: ranks that meet over a network prove that they know the same secret.
set(OPENSSL_USE_STATIC_LIBS ${HARPE_PORTABLE})
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
target_link_libraries(harpe_transport PRIVATE OpenSSL::Crypto PUBLIC Threads::Threads)

# libfabric: puts and signals between hosts; opened when it is needed. Shared memory needs none.
set(HARPE_FABRIC_FOUND OFF)
if(HARPE_FABRIC)
  find_path(LIBFABRIC_INCLUDE_DIR rdma/fabric.h)
  if(LIBFABRIC_INCLUDE_DIR)
    set(HARPE_FABRIC_FOUND ON)
    target_include_directories(harpe_transport SYSTEM PRIVATE ${LIBFABRIC_INCLUDE_DIR})
    target_compile_definitions(harpe_transport PRIVATE HARPE_WITH_FABRIC)
  endif()
endif()
message(STATUS
  "Transports: shared memory; libfabric ${HARPE_FABRIC_FOUND} (wanted ${HARPE_FABRIC})")

# tcmalloc: plans are many small vectors, and the C library's allocator takes a third of the time
# that a search takes. Linked into programs, never into what other programs load.
set(HARPE_TCMALLOC_FOUND OFF)
add_library(harpe_allocator INTERFACE)
if(HARPE_TCMALLOC AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  find_library(TCMALLOC_LIBRARY libtcmalloc_minimal.a)
  if(TCMALLOC_LIBRARY)
    set(HARPE_TCMALLOC_FOUND ON)
    target_link_libraries(harpe_allocator INTERFACE
                          $<LINK_LIBRARY:WHOLE_ARCHIVE,${TCMALLOC_LIBRARY}>)
  endif()
endif()
message(STATUS "Allocator: tcmalloc ${HARPE_TCMALLOC_FOUND} (wanted ${HARPE_TCMALLOC})")

message(STATUS "CPU tiles: OpenBLAS ${HARPE_BLAS_FOUND} (wanted ${HARPE_OPENBLAS}), "
  "oneDNN ${HARPE_DNNL_FOUND} (wanted ${HARPE_ONEDNN}), its bf16 ${HARPE_DNNL_BF16_FOUND}; "
  "own loops for the rest")
