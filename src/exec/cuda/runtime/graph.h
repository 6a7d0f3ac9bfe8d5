#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Work of a GPU that was captured, to be run again and again.
class Graph {
 public:
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  [[nodiscard]] std::int64_t nodes() const { return nodes_; }  // kernels, copies and the like
  // Prepares the first run, which otherwise does it. Errors: G005.
  [[nodiscard]] Checked<Ok> upload(const Stream& stream) const;
  // Orders a run in a stream of its GPU: after what the stream holds, a run before included.
  [[nodiscard]] Result<Ok, CudaError> launch(CUstream stream) const;
  [[nodiscard]] Result<Ok, CudaError> launch(const Stream& stream) const {
    return launch(stream.handle());
  }
  // For changes of its nodes.
  [[nodiscard]] CUgraphExec handle() const { return handle_; }

 private:
  friend class CapturedGraph;
  Graph(Device device, CUgraphExec handle, std::int64_t nodes)
      : device_(std::move(device)), handle_(handle), nodes_(nodes) {}

  Device device_;
  CUgraphExec handle_ = nullptr;
  std::int64_t nodes_ = 0;
};

// Work as it was captured: what Graphs are made of.
class CapturedGraph {
 public:
  CapturedGraph(CapturedGraph&& other) noexcept;
  CapturedGraph& operator=(CapturedGraph&& other) noexcept;
  ~CapturedGraph();

  // Kernels, copies and the like; they name what is to be changed in a Graph. Errors: G005.
  [[nodiscard]] Checked<std::vector<CUgraphNode>> nodes() const;
  // Errors: G005, G008.
  [[nodiscard]] Checked<Graph> instantiate() const;
  // As one node of what the stream captures, behind what it has captured. Errors: G005.
  [[nodiscard]] Result<Ok, CudaError> add_to_capture(CUstream stream) const;

 private:
  friend class GraphCapture;
  CapturedGraph(Device device, CUgraph handle) : device_(std::move(device)), handle_(handle) {}
  [[nodiscard]] Checked<std::size_t> count() const;

  Device device_;
  CUgraph handle_ = nullptr;
};

// Whether what is ordered in the stream is captured by its owner. Errors: G005.
[[nodiscard]] Result<bool, CudaError> is_captured(const DriverApi& driver, CUstream stream);

// While one is under way, what is ordered in `origin`, and in streams that wait for events recorded
// there, is not run but kept. All of these streams are joined, by events that `origin` waits for,
// before the end. Only the thread that began may order and end; others go on undisturbed.
class GraphCapture {
 public:
  // Requires: `origin` outlives this. Errors: G005.
  [[nodiscard]] static Checked<GraphCapture> begin(const Device& device, const Stream& origin);
  GraphCapture(GraphCapture&& other) noexcept;
  GraphCapture& operator=(GraphCapture&& other) = delete;
  // Without an end: gives up what was kept.
  ~GraphCapture();

  // Requires: not ended. Errors: G005, what was wrong within the capture too; `origin` is free
  // again either way.
  [[nodiscard]] Checked<CapturedGraph> end_captured();
  // The same, to be run as it is.
  [[nodiscard]] Checked<Graph> end();

 private:
  GraphCapture(Device device, CUstream origin) : device_(std::move(device)), origin_(origin) {}

  Device device_;
  CUstream origin_ = nullptr;
};

}  // namespace harpe::cuda
