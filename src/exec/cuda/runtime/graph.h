#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exec/cuda/runtime/device_memory.h"

namespace harpe::cuda {

// Captured work of a GPU, to be run repeatedly.
class Graph {
 public:
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  [[nodiscard]] std::int64_t nodes() const { return nodes_; }  // kernels, copies and the like
  // Prepares the first run, which would otherwise do it. Errors: G005.
  [[nodiscard]] Checked<Ok> upload(const Stream& stream) const;
  // Enqueues a run in a stream of its GPU, behind the stream's earlier work, previous runs
  // included.
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

// Work as captured, from which Graphs are made.
class CapturedGraph {
 public:
  CapturedGraph(CapturedGraph&& other) noexcept;
  CapturedGraph& operator=(CapturedGraph&& other) noexcept;
  ~CapturedGraph();

  // Kernels, copies and the like; they identify what to change in a Graph. Errors: G005.
  [[nodiscard]] Checked<std::vector<CUgraphNode>> nodes() const;
  // Errors: G005, G008.
  [[nodiscard]] Checked<Graph> instantiate() const;
  // Adds it as one node to the stream's capture, behind what that has captured. Errors: G005.
  [[nodiscard]] Result<Ok, CudaError> add_to_capture(CUstream stream) const;

 private:
  friend class GraphCapture;
  CapturedGraph(Device device, CUgraph handle) : device_(std::move(device)), handle_(handle) {}
  [[nodiscard]] Checked<std::size_t> count() const;

  Device device_;
  CUgraph handle_ = nullptr;
};

// A capture by the owner of a stream.
struct ForeignCapture {
  std::uint64_t id = 0;  // differs from all other captures of the process
  CUgraph graph = nullptr;

  // Calls `end` once the graph, and all that is made of it, has run for the last time and is
  // destroyed. That is on a thread of the driver's: `end` may not call the driver. Errors: G005;
  // then `end` may have been called.
  [[nodiscard]] Result<Ok, CudaError> call_at_end(const DriverApi& driver,
                                                  std::function<void()> end) const;
};
// The capture that the stream is in. Errors: G005.
[[nodiscard]] Result<std::optional<ForeignCapture>, CudaError> find_capture(const DriverApi& driver,
                                                                            CUstream stream);

// While a capture is active, work enqueued in `origin`, and in streams that wait for events
// recorded there, is recorded and not run. All of these streams must join `origin`, by events that
// it waits for, before the end. Only the thread that began may enqueue and end; other threads are
// not affected.
class GraphCapture {
 public:
  // Requires: `origin` outlives this. Errors: G005.
  [[nodiscard]] static Checked<GraphCapture> begin(const Device& device, const Stream& origin);
  GraphCapture(GraphCapture&& other) noexcept;
  GraphCapture& operator=(GraphCapture&& other) = delete;
  // Without an end: discards what was recorded.
  ~GraphCapture();

  // Requires: not ended. Errors: G005, errors within the capture included; `origin` is free again
  // in either case.
  [[nodiscard]] Checked<CapturedGraph> end_captured();
  // The same, instantiated.
  [[nodiscard]] Checked<Graph> end();

 private:
  GraphCapture(Device device, CUstream origin) : device_(std::move(device)), origin_(origin) {}

  Device device_;
  CUstream origin_ = nullptr;
};

}  // namespace harpe::cuda
