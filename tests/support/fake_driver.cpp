#include "tests/support/fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace harpe::testing_support {
namespace {

CUresult note(const char* call) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  fake_gpu().calls.emplace_back(call);
  return CUDA_SUCCESS;
}

CUresult attribute(int* value, CUdevice_attribute which, CUdevice /*device*/) {
  *value = 0;
  if (which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) *value = fake_gpu().compute_major;
  if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = 132;
  return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig* config, CUfunction /*function*/, void** parameters,
                void** /*extra*/) {
  FakeGpu& gpu = fake_gpu();
  gpu.launch = *config;
  gpu.cluster = config->attrs[0];
  std::memcpy(&gpu.argument, parameters[0], sizeof(gpu.argument));
  return note("cuLaunchKernelEx");
}

void add_devices(cuda::DriverApi& driver) {
  driver.cuGetErrorName = [](CUresult, const char** name) {
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult, const char** reason) {
    *reason = "out of memory";
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetCount = [](int* count) {
    *count = fake_gpu().devices;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char* name, int length, CUdevice) {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
    return CUDA_SUCCESS;
  };
  driver.cuDeviceTotalMem = [](std::size_t* bytes, CUdevice) {
    *bytes = 1024;
    return CUDA_SUCCESS;
  };
  driver.cuDeviceGetAttribute = attribute;
  driver.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    *context = nullptr;
    return note("cuDevicePrimaryCtxRetain");
  };
  driver.cuDevicePrimaryCtxRelease = [](CUdevice) { return note("cuDevicePrimaryCtxRelease"); };
  driver.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  driver.cuCtxGetCurrent = [](CUcontext* context) {
    *context = nullptr;
    return CUDA_SUCCESS;
  };
}

void add_memory(cuda::DriverApi& driver) {
  driver.cuMemAlloc = [](CUdeviceptr* address, std::size_t) {
    *address = 512;
    if (fake_gpu().allocation != CUDA_SUCCESS) return fake_gpu().allocation;
    return note("cuMemAlloc");
  };
  driver.cuMemFree = [](CUdeviceptr) { return note("cuMemFree"); };
  driver.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
    *free = *total = fake_gpu().free_bytes;
    return CUDA_SUCCESS;
  };
  driver.cuMemHostAlloc = [](void** host, std::size_t bytes, unsigned) {
    *host = std::malloc(bytes);
    return CUDA_SUCCESS;
  };
  driver.cuMemFreeHost = [](void* host) {
    std::free(host);
    return CUDA_SUCCESS;
  };
  driver.cuMemHostGetDevicePointer = [](CUdeviceptr* address, void* host, unsigned) {
    *address = reinterpret_cast<CUdeviceptr>(host);
    return CUDA_SUCCESS;
  };
  driver.cuMemHostRegister = [](void*, std::size_t, unsigned) { return note("cuMemHostRegister"); };
  driver.cuMemHostUnregister = [](void*) { return note("cuMemHostUnregister"); };
  driver.cuMemsetD32Async = [](CUdeviceptr, unsigned, std::size_t, CUstream) {
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyHtoDAsync = [](CUdeviceptr, const void*, std::size_t, CUstream) {
    return CUDA_SUCCESS;
  };
}

void add_peers(cuda::DriverApi& driver) {
  driver.cuDeviceCanAccessPeer = [](int* can, CUdevice, CUdevice) {
    *can = fake_gpu().are_peers ? 1 : 0;
    return CUDA_SUCCESS;
  };
  driver.cuCtxEnablePeerAccess = [](CUcontext, unsigned) { return note("cuCtxEnablePeerAccess"); };
}

void add_streams(cuda::DriverApi& driver) {
  driver.cuStreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    static int place = 0;
    *stream = reinterpret_cast<CUstream>(&place);
    return CUDA_SUCCESS;
  };
  driver.cuStreamDestroy = [](CUstream) { return CUDA_SUCCESS; };
  driver.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  driver.cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) {
    return note("cuStreamBeginCapture");
  };
  driver.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    static int place = 0;
    const CUresult result = fake_gpu().capture;
    *graph = result == CUDA_SUCCESS ? reinterpret_cast<CUgraph>(&place) : nullptr;
    note("cuStreamEndCapture");
    return result;
  };
}

void add_graphs(cuda::DriverApi& driver) {
  driver.cuGraphGetNodes = [](CUgraph, CUgraphNode*, std::size_t* nodes) {
    *nodes = 3;
    return CUDA_SUCCESS;
  };
  driver.cuGraphInstantiateWithFlags = [](CUgraphExec* graph, CUgraph, unsigned long long) {
    static int place = 0;
    *graph = reinterpret_cast<CUgraphExec>(&place);
    return note("cuGraphInstantiateWithFlags");
  };
  driver.cuGraphDestroy = [](CUgraph) { return note("cuGraphDestroy"); };
  driver.cuGraphExecDestroy = [](CUgraphExec) { return note("cuGraphExecDestroy"); };
  driver.cuGraphLaunch = [](CUgraphExec, CUstream) { return note("cuGraphLaunch"); };
}

void add_kernels(cuda::DriverApi& driver) {
  driver.cuModuleLoadData = [](CUmodule* module, const void*) {
    static int place = 0;
    *module = reinterpret_cast<CUmodule>(&place);
    return note("cuModuleLoadData");
  };
  driver.cuModuleUnload = [](CUmodule) { return note("cuModuleUnload"); };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    *function = nullptr;
    return CUDA_SUCCESS;
  };
  driver.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int value) {
    fake_gpu().shared_bytes = value;
    return CUDA_SUCCESS;
  };
  driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int,
                                                          std::size_t) {
    *blocks = 1;
    return CUDA_SUCCESS;
  };
  driver.cuLaunchKernelEx = launch;
}

}  // namespace

FakeGpu& fake_gpu() {
  static FakeGpu gpu;
  return gpu;
}

std::shared_ptr<const cuda::DriverApi> make_fake_driver() {
  fake_gpu() = FakeGpu();
  cuda::DriverApi driver;
  add_devices(driver);
  add_memory(driver);
  add_peers(driver);
  add_streams(driver);
  add_graphs(driver);
  add_kernels(driver);
  return std::make_shared<const cuda::DriverApi>(driver);
}

}  // namespace harpe::testing_support
