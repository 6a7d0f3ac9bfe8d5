#include "exec/cuda/graph.h"

#include <utility>

#include "exec/cuda/current_device.h"

namespace harpe::cuda {
namespace {

// A graph as captured: gone once it can be run.
class Captured {
 public:
  Captured(const DriverApi& driver, CUgraph graph) : driver_(driver), graph_(graph) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { driver_.cuGraphDestroy(graph_); }

  [[nodiscard]] CUgraph handle() const { return graph_; }

 private:
  const DriverApi& driver_;
  CUgraph graph_;
};

}  // namespace

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

Result<Ok, CudaError> Graph::launch(const Stream& stream) const {
  return cuda_call(device_.driver(), "cuGraphLaunch",
                   device_.driver().cuGraphLaunch(handle_, stream.handle()));
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

Checked<Graph> GraphCapture::end() {
  HP_CHECK(origin_ != nullptr, "a capture ends once");
  const DriverApi& driver = device_.driver();
  CUgraph raw = nullptr;
  HP_REQUIRE_OK(driver_call(driver, "cuStreamEndCapture",
                            driver.cuStreamEndCapture(std::exchange(origin_, nullptr), &raw)));
  const Captured captured(driver, raw);
  std::size_t nodes = 0;
  HP_REQUIRE_OK(driver_call(driver, "cuGraphGetNodes",
                            driver.cuGraphGetNodes(captured.handle(), nullptr, &nodes)));
  const CurrentDevice current(device_);
  CUgraphExec handle = nullptr;
  const Result<Ok, CudaError> made =
      cuda_call(driver, "cuGraphInstantiateWithFlags",
                driver.cuGraphInstantiateWithFlags(&handle, captured.handle(), 0));
  if (!made.ok()) return to_diag(made.error(), device_.facts().id.value, "a graph");
  return Graph(device_, handle, static_cast<std::int64_t>(nodes));
}

}  // namespace harpe::cuda
