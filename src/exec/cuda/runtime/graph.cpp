#include "exec/cuda/runtime/graph.h"

#include <memory>
#include <utility>

#include "exec/cuda/runtime/current_device.h"

namespace harpe::cuda {

Graph::Graph(Graph&& other) noexcept
    : device_(other.device_),
      handle_(std::exchange(other.handle_, nullptr)),
      nodes_(std::exchange(other.nodes_, 0)) {}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(nodes_, other.nodes_);
  return *this;
}

Graph::~Graph() {
  if (handle_ != nullptr) device_.driver().cuGraphExecDestroy(handle_);
}

Checked<Ok> Graph::upload(const Stream& stream) const {
  return driver_call(device_.driver(), "cuGraphUpload",
                     device_.driver().cuGraphUpload(handle_, stream.handle()));
}

Result<Ok, CudaError> Graph::launch(CUstream stream) const {
  return cuda_call(device_.driver(), "cuGraphLaunch",
                   device_.driver().cuGraphLaunch(handle_, stream));
}

CapturedGraph::CapturedGraph(CapturedGraph&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

CapturedGraph& CapturedGraph::operator=(CapturedGraph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

CapturedGraph::~CapturedGraph() {
  if (handle_ != nullptr) device_.driver().cuGraphDestroy(handle_);
}

Checked<std::size_t> CapturedGraph::count() const {
  std::size_t nodes = 0;
  HP_REQUIRE_OK(driver_call(device_.driver(), "cuGraphGetNodes",
                            device_.driver().cuGraphGetNodes(handle_, nullptr, &nodes)));
  return nodes;
}

Checked<std::vector<CUgraphNode>> CapturedGraph::nodes() const {
  HP_TRY(std::size_t count, this->count());
  std::vector<CUgraphNode> nodes(count);
  HP_REQUIRE_OK(driver_call(device_.driver(), "cuGraphGetNodes",
                            device_.driver().cuGraphGetNodes(handle_, nodes.data(), &count)));
  return nodes;
}

Checked<Graph> CapturedGraph::instantiate() const {
  HP_TRY(const std::size_t nodes, count());
  const CurrentDevice current(device_);
  const DriverApi& driver = device_.driver();
  CUgraphExec handle = nullptr;
  const Result<Ok, CudaError> made =
      cuda_call(driver, "cuGraphInstantiateWithFlags",
                driver.cuGraphInstantiateWithFlags(&handle, handle_, 0));
  if (!made.ok()) return to_diag(made.error(), device_.facts().id.value, "a graph");
  return Graph(device_, handle, static_cast<std::int64_t>(nodes));
}

Result<Ok, CudaError> CapturedGraph::add_to_capture(CUstream stream) const {
  const DriverApi& driver = device_.driver();
  CUstreamCaptureStatus status{};
  CUgraph graph = nullptr;
  const CUgraphNode* after = nullptr;
  std::size_t count = 0;
  HP_REQUIRE_OK(cuda_call(driver, "cuStreamGetCaptureInfo",
                          driver.capture_info(stream, &status, nullptr, &graph, &after, &count)));
  CUgraphNode node = nullptr;
  HP_REQUIRE_OK(cuda_call(driver, "cuGraphAddChildGraphNode",
                          driver.cuGraphAddChildGraphNode(&node, graph, after, count, handle_)));
  return cuda_call(driver, "cuStreamUpdateCaptureDependencies",
                   driver.set_capture_after(stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

Result<Ok, CudaError> ForeignCapture::call_at_end(const DriverApi& driver,
                                                  std::function<void()> end) const {
  using End = std::function<void()>;
  auto kept = std::make_unique<End>(std::move(end));
  const auto call = [](void* given) {
    const std::unique_ptr<End> its(static_cast<End*>(given));
    (*its)();
  };
  CUuserObject object = nullptr;
  HP_REQUIRE_OK(cuda_call(
      driver, "cuUserObjectCreate",
      driver.cuUserObjectCreate(&object, kept.get(), call, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)));
  static_cast<void>(kept.release());  // the object has it
  const Result<Ok, CudaError> retained = cuda_call(
      driver, "cuGraphRetainUserObject", driver.cuGraphRetainUserObject(graph, object, 1, 0));
  HP_REQUIRE_OK(cuda_call(driver, "cuUserObjectRelease", driver.cuUserObjectRelease(object, 1)));
  return retained;
}

Result<std::optional<ForeignCapture>, CudaError> find_capture(const DriverApi& driver,
                                                              CUstream stream) {
  CUstreamCaptureStatus status{};
  ForeignCapture capture;
  HP_REQUIRE_OK(cuda_call(
      driver, "cuStreamGetCaptureInfo",
      driver.capture_info(stream, &status, &capture.id, &capture.graph, nullptr, nullptr)));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return std::optional<ForeignCapture>();
  return std::optional(capture);
}

Checked<GraphCapture> GraphCapture::begin(const Device& device, const Stream& origin) {
  HP_REQUIRE_OK(driver_call(
      device.driver(), "cuStreamBeginCapture",
      device.driver().cuStreamBeginCapture(origin.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)));
  return GraphCapture(device, origin.handle());
}

GraphCapture::GraphCapture(GraphCapture&& other) noexcept
    : device_(other.device_), origin_(std::exchange(other.origin_, nullptr)) {}

GraphCapture::~GraphCapture() {
  if (origin_ == nullptr) return;
  CUgraph graph = nullptr;
  device_.driver().cuStreamEndCapture(origin_, &graph);
  if (graph != nullptr) device_.driver().cuGraphDestroy(graph);
}

Checked<CapturedGraph> GraphCapture::end_captured() {
  HP_CHECK(origin_ != nullptr, "a capture ends once");
  const DriverApi& driver = device_.driver();
  CUgraph raw = nullptr;
  HP_REQUIRE_OK(driver_call(driver, "cuStreamEndCapture",
                            driver.cuStreamEndCapture(std::exchange(origin_, nullptr), &raw)));
  return CapturedGraph(device_, raw);
}

Checked<Graph> GraphCapture::end() {
  HP_TRY(const CapturedGraph captured, end_captured());
  return captured.instantiate();
}

}  // namespace harpe::cuda
