#include "tests/support/fake_driver.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace harpe::testing_support {
namespace {

std::mutex& mutex() {
  static std::mutex one;
  return one;
}

CUresult note(const char* call) {
  const std::lock_guard lock(mutex());
  fake_gpu().calls.emplace_back(call);
  return CUDA_SUCCESS;
}

// Creates one more resource, or fails at FakeGpu::refuse_at.
CUresult take(const char* call = nullptr) {
  {
    const std::lock_guard lock(mutex());
    FakeGpu& gpu = fake_gpu();
    if (gpu.taken++ == gpu.refuse_at) return CUDA_ERROR_OUT_OF_MEMORY;
    ++gpu.held;
  }
  return call == nullptr ? CUDA_SUCCESS : note(call);
}

CUresult give(const char* call = nullptr) {
  {
    const std::lock_guard lock(mutex());
    --fake_gpu().held;
  }
  return call == nullptr ? CUDA_SUCCESS : note(call);
}

// A non-null handle for any driver object.
template <class Handle>
Handle some() {
  static int place = 0;
  return reinterpret_cast<Handle>(&place);
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
    return take("cuDevicePrimaryCtxRetain");
  };
  driver.cuDevicePrimaryCtxRelease = [](CUdevice) { return give("cuDevicePrimaryCtxRelease"); };
  driver.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  driver.cuCtxGetCurrent = [](CUcontext* context) {
    *context = nullptr;
    return CUDA_SUCCESS;
  };
}

// Parts have all SMs that are asked for; the context of each is another.
void add_parts(cuda::DriverApi& driver) {
  driver.cuDeviceGetDevResource = [](CUdevice, CUdevResource* all, CUdevResourceType) {
    all->sm.smCount = 132;
    return CUDA_SUCCESS;
  };
  driver.cuDevSmResourceSplitByCount = [](CUdevResource* parts, unsigned* count,
                                          const CUdevResource*, CUdevResource*, unsigned,
                                          unsigned least) {
    for (unsigned i = 0; i < *count; ++i) parts[i].sm.smCount = least;
    return CUDA_SUCCESS;
  };
  driver.cuDevResourceGenerateDesc = [](CUdevResourceDesc*, CUdevResource*, unsigned) {
    return CUDA_SUCCESS;
  };
  driver.cuGreenCtxCreate = [](CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned) {
    return fake_gpu().allocation == CUDA_SUCCESS ? note("cuGreenCtxCreate") : fake_gpu().allocation;
  };
  driver.cuCtxFromGreenCtx = [](CUcontext* context, CUgreenCtx) {
    static std::atomic<std::uintptr_t> made = 0;
    *context = reinterpret_cast<CUcontext>(++made);
    return CUDA_SUCCESS;
  };
}

void add_memory(cuda::DriverApi& driver) {
  driver.cuMemAlloc = [](CUdeviceptr* address, std::size_t) {
    *address = 512;
    if (fake_gpu().allocation != CUDA_SUCCESS) return fake_gpu().allocation;
    return take("cuMemAlloc");
  };
  driver.cuMemFree = [](CUdeviceptr) { return give("cuMemFree"); };
  driver.cuMemGetInfo = [](std::size_t* free, std::size_t* total) {
    *free = *total = fake_gpu().free_bytes;
    return CUDA_SUCCESS;
  };
  driver.cuMemHostAlloc = [](void** host, std::size_t bytes, unsigned) {
    const CUresult result = take();
    constexpr std::size_t kAlign = 512;
    if (result == CUDA_SUCCESS) {
      *host = std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
    }
    return result;
  };
  driver.cuMemFreeHost = [](void* host) {
    std::free(host);
    return give();
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
  driver.cuMemsetD8Async = [](CUdeviceptr, unsigned char, std::size_t, CUstream) {
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyHtoDAsync = [](CUdeviceptr, const void*, std::size_t, CUstream) {
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr, std::size_t bytes, CUstream) {
    std::memset(to, 0, bytes);
    return CUDA_SUCCESS;
  };
  driver.cuMemcpyAsync = [](CUdeviceptr, CUdeviceptr, std::size_t, CUstream) {
    return CUDA_SUCCESS;
  };
  driver.cuMemcpy2DAsync = [](const CUDA_MEMCPY2D*, CUstream) { return CUDA_SUCCESS; };
}

void add_peers(cuda::DriverApi& driver) {
  driver.cuDeviceCanAccessPeer = [](int* can, CUdevice, CUdevice) {
    *can = fake_gpu().are_peers ? 1 : 0;
    return CUDA_SUCCESS;
  };
  driver.cuCtxEnablePeerAccess = [](CUcontext, unsigned) { return note("cuCtxEnablePeerAccess"); };
  driver.cuIpcGetMemHandle = [](CUipcMemHandle*, CUdeviceptr) { return CUDA_SUCCESS; };
  driver.cuIpcOpenMemHandle = [](CUdeviceptr* address, CUipcMemHandle, unsigned) {
    *address = 1024;
    return take();
  };
  driver.cuIpcCloseMemHandle = [](CUdeviceptr) { return give(); };
}

// After a graph launch, the test chooses the result of waiting.
CUresult wait() {
  const FakeGpu& gpu = fake_gpu();
  return gpu.graphs_launched > 0 && gpu.on_wait ? gpu.on_wait() : CUDA_SUCCESS;
}

void add_streams(cuda::DriverApi& driver) {
  driver.cuStreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    *stream = some<CUstream>();
    return take();
  };
  driver.cuStreamDestroy = [](CUstream) { return give(); };
  driver.cuStreamSynchronize = [](CUstream) { return wait(); };
  driver.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) { return CUDA_SUCCESS; };
  driver.cuStreamWriteValue32 = [](CUstream, CUdeviceptr address, cuuint32_t, unsigned) {
    const std::lock_guard lock(mutex());
    fake_gpu().is_told = true;
    fake_gpu().argument = address;
    return CUDA_SUCCESS;
  };
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    *event = some<CUevent>();
    return take();
  };
  driver.cuEventDestroy = [](CUevent) { return give(); };
  driver.cuEventRecord = [](CUevent, CUstream) { return CUDA_SUCCESS; };
  driver.cuEventSynchronize = [](CUevent) { return wait(); };
  driver.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    *milliseconds = 1;
    return CUDA_SUCCESS;
  };
  driver.cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) {
    return note("cuStreamBeginCapture");
  };
  driver.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    const CUresult result = fake_gpu().capture;
    *graph = result == CUDA_SUCCESS ? some<CUgraph>() : nullptr;
    note("cuStreamEndCapture");
    return result;
  };
}

void add_graphs(cuda::DriverApi& driver) {
  driver.capture_info = [](CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                           const CUgraphNode**, std::size_t*) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  driver.cuGraphGetNodes = [](CUgraph, CUgraphNode*, std::size_t* nodes) {
    *nodes = 3;
    return CUDA_SUCCESS;
  };
  driver.cuGraphInstantiateWithFlags = [](CUgraphExec* graph, CUgraph, unsigned long long) {
    *graph = some<CUgraphExec>();
    return take("cuGraphInstantiateWithFlags");
  };
  driver.cuGraphDestroy = [](CUgraph) { return note("cuGraphDestroy"); };
  driver.cuGraphExecDestroy = [](CUgraphExec) { return give("cuGraphExecDestroy"); };
  driver.cuGraphUpload = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
  driver.cuGraphLaunch = [](CUgraphExec, CUstream) {
    note("cuGraphLaunch");
    const FakeGpu& gpu = fake_gpu();
    {
      const std::lock_guard lock(mutex());
      ++fake_gpu().graphs_launched;
    }
    return gpu.on_launch ? gpu.on_launch() : CUDA_SUCCESS;
  };
}

void add_kernels(cuda::DriverApi& driver) {
  driver.cuModuleLoadData = [](CUmodule* module, const void*) {
    const FakeGpu& gpu = fake_gpu();
    const CUresult result = gpu.on_load ? gpu.on_load() : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
    const CUresult taken = take("cuModuleLoadData");
    if (taken == CUDA_SUCCESS) *module = some<CUmodule>();
    return taken;
  };
  driver.cuModuleUnload = [](CUmodule) { return give("cuModuleUnload"); };
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

bool is_told() {
  const std::lock_guard lock(mutex());
  return fake_gpu().is_told;
}

std::shared_ptr<const cuda::DriverApi> make_fake_driver() {
  {
    const std::lock_guard lock(mutex());  // a thread of an earlier test may still run
    fake_gpu() = FakeGpu();
  }
  cuda::DriverApi driver;
  add_devices(driver);
  add_parts(driver);
  add_memory(driver);
  add_peers(driver);
  add_streams(driver);
  add_graphs(driver);
  add_kernels(driver);
  return std::make_shared<const cuda::DriverApi>(driver);
}

}  // namespace harpe::testing_support
