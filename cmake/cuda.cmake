# The CUDA back end. It needs cuda.h alone, of a toolkit or of the Python package
# nvidia-cuda-runtime: the driver and the run-time compiler are opened when they are used, and a
# machine without them builds and runs everything else.
set(HARPE_CUDNN_FRONTEND_DIR "${CMAKE_BINARY_DIR}/cudnn_frontend/include" CACHE PATH
    "Headers of cudnn-frontend (tools/fetch_cudnn_frontend)")
set(HARPE_CUDA_FOUND OFF)
if(NOT HARPE_CUDA STREQUAL "OFF")
  find_path(HARPE_CUDA_INCLUDE_DIR NAMES cuda.h HINTS ENV CUDA_HOME ENV CUDA_PATH
            PATHS /usr/local/cuda PATH_SUFFIXES include)
  # Not kept: pip's environment of a build ends with it.
  if(NOT HARPE_CUDA_INCLUDE_DIR AND HARPE_PYTHON)
    find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
    execute_process(
      COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/find_cuda_header.py
      OUTPUT_VARIABLE HARPE_CUDA_INCLUDE_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  if(HARPE_CUDA_INCLUDE_DIR)
    file(STRINGS ${HARPE_CUDA_INCLUDE_DIR}/cuda.h version REGEX "^#define CUDA_VERSION [0-9]+")
    string(REGEX REPLACE "[^0-9]" "" version "${version}")
    if(version GREATER_EQUAL 12000)
      set(HARPE_CUDA_FOUND ON)
    endif()
  endif()
  if(HARPE_CUDA STREQUAL "ON" AND NOT HARPE_CUDA_FOUND)
    message(FATAL_ERROR "HARPE_CUDA=ON, and there is no cuda.h of CUDA 12 or newer; set CUDA_HOME "
      "or HARPE_CUDA_INCLUDE_DIR")
  endif()
endif()

# What H200s launch for a plan. Every build decides alike, so nothing of it needs CUDA's headers
# (tools/check_layers.py): a kernel's folder has those files that do under names with `prepare`.
harpe_module(exec/cuda/target exec/actions exec launch sync plan offers ir)
file(GLOB kernels CONFIGURE_DEPENDS src/exec/cuda/kernels/*.cpp src/exec/cuda/kernels/*/*.cpp)
set(prepared_kernels ${kernels})
list(FILTER kernels EXCLUDE REGEX "/prepare[^/]*$")
list(FILTER prepared_kernels INCLUDE REGEX "/prepare[^/]*$")
set(plain_data src/exec/cuda/runtime/tensor_map_spec.cpp src/exec/cuda/signals/signal_variants.cpp)
target_sources(harpe_exec_cuda_target PRIVATE ${kernels} ${plain_data})
set_target_properties(harpe_exec_cuda_target PROPERTIES UNITY_BUILD_BATCH_SIZE 15)

if(HARPE_CUDA_FOUND)
  harpe_module(exec/cuda/runtime transport support)
  target_include_directories(harpe_exec_cuda_runtime SYSTEM PUBLIC ${HARPE_CUDA_INCLUDE_DIR})
  target_link_libraries(harpe_exec_cuda_runtime PUBLIC ${CMAKE_DL_LIBS})
  harpe_module(exec/cuda/jit exec/cuda/runtime)
  file(GLOB device_headers CONFIGURE_DEPENDS src/exec/cuda/device/* src/exec/cuda/*/device/*
       src/exec/cuda/*/*/device/* src/transport/descriptor_layout.h)
  harpe_embed_headers(harpe_exec_cuda_jit exec/cuda/jit/device_texts.h device_text
                      ${device_headers})
  harpe_module(exec/cuda/signals exec/cuda/jit)
  harpe_module(exec/cuda/library exec/cuda/jit)
  add_library(harpe_exec_cuda_kernels STATIC ${prepared_kernels})
  target_link_libraries(harpe_exec_cuda_kernels PRIVATE harpe_flags PUBLIC harpe_exec_cuda_target
                        harpe_exec_cuda_signals harpe_exec_cuda_library)
  harpe_module(exec/cuda/executor exec/cuda/kernels exec/cuda/target exec/processes exec launch sync
               plan ir)
  harpe_module(exec/cuda/group exec/cuda/executor exec/group)
  harpe_module(exec/cuda/profile exec/cuda/kernels)
  harpe_module(exec/cuda exec/cuda/group exec/cuda/profile)
  harpe_module(measure/baselines exec/cuda/kernels exec)
  # These need no header of CUDA, and are in every build already.
  foreach(room runtime signals)
    get_target_property(sources harpe_exec_cuda_${room} SOURCES)
    list(FILTER sources EXCLUDE REGEX "/(tensor_map_spec|signal_variants)\\.cpp$")
    set_target_properties(harpe_exec_cuda_${room} PROPERTIES SOURCES "${sources}")
    target_link_libraries(harpe_exec_cuda_${room} PUBLIC harpe_exec_cuda_target)
  endforeach()
  # As many units as if they were one library.
  foreach(room exec_cuda_runtime exec_cuda_kernels exec_cuda_executor exec_cuda_profile
          measure_baselines)
    set_target_properties(harpe_${room} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  endforeach()
endif()
# Libraries that ours is timed beside need headers of their own; without them they are not there.
set(HARPE_CUDNN_FOUND OFF)
if(HARPE_CUDA_FOUND AND EXISTS ${HARPE_CUDNN_FRONTEND_DIR}/cudnn_frontend.h AND
   EXISTS ${HARPE_CUDA_INCLUDE_DIR}/cudnn.h)
  set(HARPE_CUDNN_FOUND ON)
  set_source_files_properties(src/exec/cuda/library/cudnn.cpp PROPERTIES
    COMPILE_DEFINITIONS HARPE_WITH_CUDNN_FRONTEND
    COMPILE_OPTIONS "-isystem;${HARPE_CUDNN_FRONTEND_DIR}")
endif()
message(STATUS "cuDNN beside ours: ${HARPE_CUDNN_FOUND}")
message(STATUS "CUDA back end: ${HARPE_CUDA_FOUND} (wanted ${HARPE_CUDA})")
