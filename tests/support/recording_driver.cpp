#include "tests/support/recording_driver.h"

#include <elf.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "tests/support/fake_driver.h"

namespace harpe::testing_support {
namespace {

// A graph or an instance of one. Nodes keep their addresses.
struct RecordedGraph {
  std::vector<std::unique_ptr<RecordedNode>> nodes;
  const RecordedGraph* of = nullptr;  // the graph that it is an instance of
};

struct LoadedModule {
  std::size_t parameter_bytes = 0;
};

thread_local RecordedGraph* capturing = nullptr;

CUresult keep_call(std::string call) {
  recording().calls.push_back(std::move(call));
  return CUDA_SUCCESS;
}

// The size of the parameters of a cubin's kernel: its constant bank without the reserved head.
std::size_t parameter_bytes_of(const void* image) {
  constexpr std::string_view kBank = ".nv.constant0.";
  constexpr std::size_t kBeforeParameters = 0x210;  // of sm_90
  const auto* const bytes = static_cast<const char*>(image);
  Elf64_Ehdr head;
  std::memcpy(&head, bytes, sizeof(head));
  const auto section = [&](std::size_t index) {
    Elf64_Shdr header;
    std::memcpy(&header, bytes + head.e_shoff + index * sizeof(header), sizeof(header));
    return header;
  };
  const char* const names = bytes + section(head.e_shstrndx).sh_offset;
  for (std::size_t index = 0; index < head.e_shnum; ++index) {
    const Elf64_Shdr header = section(index);
    if (std::string_view(names + header.sh_name).starts_with(kBank)) {
      return header.sh_size - kBeforeParameters;
    }
  }
  return 0;
}

CUresult launch_kernel(const CUlaunchConfig* config, CUfunction function, void** parameters,
                       void**) {
  if (capturing == nullptr) return keep_call("cuLaunchKernelEx");
  auto node = std::make_unique<RecordedNode>();
  const auto* const module = reinterpret_cast<const LoadedModule*>(function);
  const auto* const parameter = static_cast<const std::byte*>(parameters[0]);
  node->parameter.assign(parameter, parameter + module->parameter_bytes);
  node->kernel.func = function;
  node->kernel.gridDimX = config->gridDimX;
  node->kernel.gridDimY = config->gridDimY;
  node->argument = node->parameter.data();
  node->kernel.kernelParams = &node->argument;
  capturing->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

CUresult copy(const char* call, const CUDA_MEMCPY3D& params) {
  if (capturing == nullptr) return keep_call(call);
  auto node = std::make_unique<RecordedNode>();
  node->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  node->copy = params;
  capturing->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

CUresult set(CUdeviceptr at, unsigned char, std::size_t, CUstream) {
  if (capturing == nullptr) return keep_call("cuMemsetD8Async");
  auto node = std::make_unique<RecordedNode>();
  node->type = CU_GRAPH_NODE_TYPE_MEMSET;
  node->set = at;
  capturing->nodes.push_back(std::move(node));
  return CUDA_SUCCESS;
}

// The node of an instance that was made from this node of its graph.
RecordedNode& instance_of(CUgraphExec exec, CUgraphNode node) {
  auto& instance = *reinterpret_cast<RecordedGraph*>(exec);
  std::size_t at = 0;
  while (instance.of->nodes[at].get() != reinterpret_cast<RecordedNode*>(node)) ++at;
  return *instance.nodes[at];
}

CUresult instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  const auto* const captured = reinterpret_cast<const RecordedGraph*>(graph);
  auto instance = std::make_unique<RecordedGraph>();
  instance->of = captured;
  for (const auto& node : captured->nodes) {
    instance->nodes.push_back(std::make_unique<RecordedNode>(*node));
  }
  *exec = reinterpret_cast<CUgraphExec>(instance.release());
  ++recording().graphs;
  return keep_call("cuGraphInstantiateWithFlags");
}

CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                const cuuint64_t* sizes, const cuuint64_t*, const cuuint32_t* box,
                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  *map = {};
  auto* const words = reinterpret_cast<std::uint64_t*>(map);
  words[0] = reinterpret_cast<std::uint64_t>(address);
  words[1] = static_cast<std::uint64_t>(type);
  for (cuuint32_t axis = 0; axis < rank; ++axis) words[2 + axis] = sizes[axis] << 8 | box[axis];
  return CUDA_SUCCESS;
}

CUdeviceptr next_address(std::size_t bytes) {
  constexpr std::uint64_t kAlign = 512;
  return std::exchange(recording().memory, recording().memory + (bytes / kAlign + 1) * kAlign);
}

void record_memory(cuda::DriverApi& driver) {
  // Kernels see host memory at an address of its own.
  driver.cuMemHostGetDevicePointer = [](CUdeviceptr* address, void*, unsigned) {
    *address = next_address(0);
    return CUDA_SUCCESS;
  };
  driver.cuMemAlloc = [](CUdeviceptr* address, std::size_t bytes) {
    *address = next_address(bytes);
    ++recording().allocations;
    return keep_call("cuMemAlloc");
  };
  driver.cuMemFree = [](CUdeviceptr) {
    --recording().allocations;
    return keep_call("cuMemFree");
  };
  driver.cuMemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    return copy("cuMemcpyAsync", {.srcDevice = from, .dstDevice = to, .WidthInBytes = bytes});
  };
  driver.cuMemcpy2DAsync = [](const CUDA_MEMCPY2D* rows, CUstream) {
    return copy("cuMemcpy2DAsync", {.srcDevice = rows->srcDevice,
                                    .dstDevice = rows->dstDevice,
                                    .WidthInBytes = rows->WidthInBytes,
                                    .Height = rows->Height});
  };
  driver.cuMemcpy3DAsync = [](const CUDA_MEMCPY3D* slices, CUstream) {
    return copy("cuMemcpy3DAsync", *slices);
  };
  driver.cuMemsetD8Async = set;
  driver.cuTensorMapEncodeTiled = encode;
}

void record_contexts(cuda::DriverApi& driver) {
  driver.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    static char places[16];
    *context = reinterpret_cast<CUcontext>(&places[device]);
    return CUDA_SUCCESS;
  };
  driver.cuDevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  driver.cuCtxSetCurrent = [](CUcontext context) {
    recording().current = context;
    return CUDA_SUCCESS;
  };
  driver.cuCtxGetCurrent = [](CUcontext* context) {
    *context = recording().current;
    return CUDA_SUCCESS;
  };
}

void record_kernels(cuda::DriverApi& driver) {
  driver.cuModuleLoadData = [](CUmodule* module, const void* image) {
    auto* const loaded = new LoadedModule{.parameter_bytes = parameter_bytes_of(image)};
    *module = reinterpret_cast<CUmodule>(loaded);
    return keep_call("cuModuleLoadData");
  };
  driver.cuModuleUnload = [](CUmodule module) {
    delete reinterpret_cast<LoadedModule*>(module);
    return CUDA_SUCCESS;
  };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char*) {
    *function = reinterpret_cast<CUfunction>(module);
    return CUDA_SUCCESS;
  };
  driver.cuFuncGetParamInfo = [](CUfunction function, std::size_t index, std::size_t* offset,
                                 std::size_t* bytes) {
    if (index > 0) return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    *bytes = reinterpret_cast<const LoadedModule*>(function)->parameter_bytes;
    return CUDA_SUCCESS;
  };
  driver.cuLaunchKernelEx = launch_kernel;
}

void record_graphs(cuda::DriverApi& driver) {
  driver.cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) {
    capturing = new RecordedGraph;
    return CUDA_SUCCESS;
  };
  driver.cuStreamEndCapture = [](CUstream, CUgraph* graph) {
    *graph = reinterpret_cast<CUgraph>(std::exchange(capturing, nullptr));
    return CUDA_SUCCESS;
  };
  driver.cuGraphGetNodes = [](CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
    const auto& recorded = *reinterpret_cast<const RecordedGraph*>(graph);
    *count = recorded.nodes.size();
    if (nodes == nullptr) return CUDA_SUCCESS;
    for (const auto& node : recorded.nodes) *nodes++ = reinterpret_cast<CUgraphNode>(node.get());
    return CUDA_SUCCESS;
  };
  driver.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
    *type = reinterpret_cast<const RecordedNode*>(node)->type;
    return CUDA_SUCCESS;
  };
  driver.cuGraphKernelNodeGetParams = [](CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
    *params = reinterpret_cast<const RecordedNode*>(node)->kernel;
    return CUDA_SUCCESS;
  };
  driver.cuGraphMemcpyNodeGetParams = [](CUgraphNode node, CUDA_MEMCPY3D* params) {
    *params = reinterpret_cast<const RecordedNode*>(node)->copy;
    return CUDA_SUCCESS;
  };
  driver.cuGraphInstantiateWithFlags = instantiate;
  driver.cuGraphDestroy = [](CUgraph graph) {
    delete reinterpret_cast<RecordedGraph*>(graph);
    return CUDA_SUCCESS;
  };
  driver.cuGraphExecDestroy = [](CUgraphExec exec) {
    delete reinterpret_cast<RecordedGraph*>(exec);
    --recording().graphs;
    return CUDA_SUCCESS;
  };
}

// A child graph is recorded as it is when it is added.
void record_captures(cuda::DriverApi& driver) {
  driver.capture_info = [](CUstream, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                           const CUgraphNode**, std::size_t*) {
    *status =
        recording().is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  driver.set_capture_after = [](CUstream, CUgraphNode*, std::size_t, unsigned) {
    return keep_call("cuStreamUpdateCaptureDependencies");
  };
  driver.cuGraphAddChildGraphNode = [](CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,
                                       CUgraph child) {
    recording().launched.clear();
    for (const auto& node : reinterpret_cast<const RecordedGraph*>(child)->nodes) {
      recording().launched.push_back(*node);
    }
    return keep_call("cuGraphAddChildGraphNode");
  };
  driver.cuGraphKernelNodeSetParams = [](CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
    std::vector<std::byte>& parameter = reinterpret_cast<RecordedNode*>(node)->parameter;
    std::memcpy(parameter.data(), params->kernelParams[0], parameter.size());
    return keep_call("cuGraphKernelNodeSetParams");
  };
  driver.cuGraphMemcpyNodeSetParams = [](CUgraphNode node, const CUDA_MEMCPY3D* params) {
    reinterpret_cast<RecordedNode*>(node)->copy = *params;
    return keep_call("cuGraphMemcpyNodeSetParams");
  };
}

void record_runs(cuda::DriverApi& driver) {
  driver.cuGraphExecKernelNodeSetParams = [](CUgraphExec exec, CUgraphNode node,
                                             const CUDA_KERNEL_NODE_PARAMS* params) {
    std::vector<std::byte>& parameter = instance_of(exec, node).parameter;
    std::memcpy(parameter.data(), params->kernelParams[0], parameter.size());
    return keep_call("cuGraphExecKernelNodeSetParams");
  };
  driver.cuGraphExecMemcpyNodeSetParams = [](CUgraphExec exec, CUgraphNode node,
                                             const CUDA_MEMCPY3D* params, CUcontext) {
    instance_of(exec, node).copy = *params;
    return keep_call("cuGraphExecMemcpyNodeSetParams");
  };
  driver.cuGraphLaunch = [](CUgraphExec exec, CUstream) {
    recording().launched.clear();
    for (const auto& node : reinterpret_cast<const RecordedGraph*>(exec)->nodes) {
      recording().launched.push_back(*node);
    }
    return keep_call("cuGraphLaunch");
  };
  driver.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
    return capturing == nullptr ? keep_call("cuStreamWaitEvent") : CUDA_SUCCESS;
  };
  driver.cuEventRecord = [](CUevent, CUstream) {
    return capturing == nullptr ? keep_call("cuEventRecord") : CUDA_SUCCESS;
  };
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    static char place = 0;
    *event = reinterpret_cast<CUevent>(&place);
    return CUDA_SUCCESS;
  };
  driver.cuEventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuEventSynchronize = [](CUevent) { return keep_call("cuEventSynchronize"); };
  driver.cuStreamSynchronize = [](CUstream) { return keep_call("cuStreamSynchronize"); };
}

}  // namespace

Recording& recording() {
  thread_local Recording own;
  return own;
}

std::shared_ptr<const cuda::DriverApi> make_recording_driver() {
  cuda::DriverApi driver = *make_fake_driver();
  recording() = {};
  record_memory(driver);
  record_contexts(driver);
  record_kernels(driver);
  record_graphs(driver);
  record_captures(driver);
  record_captures(driver);
  record_runs(driver);
  return std::make_shared<const cuda::DriverApi>(driver);
}

}  // namespace harpe::testing_support
