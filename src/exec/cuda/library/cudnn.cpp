#include "exec/cuda/library/cudnn.h"

#ifdef HARPE_WITH_CUDNN_FRONTEND
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cmath>
#include <unordered_map>

// The frontend looks symbols up in this handle. Written once, by Cudnn::open.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}
#endif

namespace harpe::library {

#ifdef HARPE_WITH_CUDNN_FRONTEND
namespace {

namespace fe = cudnn_frontend;

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kLse, kDo, kDq, kDk, kDv };

using Dims = std::vector<std::int64_t>;

// Dimensions are [batch, head, row, column] in every layout.
Dims packed(const Dims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1};
}

Dims in_dims(const device::AttentionStrides& strides) {
  return {strides.batch, strides.head, strides.row, 1};
}

std::shared_ptr<fe::graph::Tensor_attributes> describe(fe::graph::Graph& graph, const char* name,
                                                       Uid uid, const Dims& dims,
                                                       const Dims& strides) {
  return graph.tensor(
      fe::graph::Tensor_attributes().set_name(name).set_uid(uid).set_dim(dims).set_stride(strides));
}

std::shared_ptr<fe::graph::Tensor_attributes> describe(fe::graph::Graph& graph, const char* name,
                                                       Uid uid, const Dims& dims) {
  return describe(graph, name, uid, dims, packed(dims));
}

// A graph that is built once and runs any number of times.
class Fused {
 public:
  Fused(std::shared_ptr<void> handle, device::Element in) : handle_(std::move(handle)) {
    graph_
        .set_io_data_type(in == device::Element::F16 ? fe::DataType_t::HALF
                                                     : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  [[nodiscard]] fe::graph::Graph& graph() { return graph_; }
  [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }

  [[nodiscard]] fe::error_t build() {
    if (auto status = graph_.build(static_cast<cudnnHandle_t>(handle_.get()), {fe::HeurMode_t::A});
        status.is_bad()) {
      return status;
    }
    return graph_.get_workspace_size(workspace_bytes_);
  }

  [[nodiscard]] bool launch(const std::vector<std::pair<Uid, std::uint64_t>>& at,
                            std::uint64_t workspace, void* stream) const {
    auto* const handle = static_cast<cudnnHandle_t>(handle_.get());
    if (fe::detail::set_stream(handle, static_cast<cudaStream_t>(stream)) != CUDNN_STATUS_SUCCESS) {
      return false;
    }
    std::unordered_map<std::int64_t, void*> pack;
    for (const auto& [uid, address] : at) pack[uid] = reinterpret_cast<void*>(address);
    return graph_.execute(handle, pack, reinterpret_cast<void*>(workspace)).is_good();
  }

 private:
  std::shared_ptr<void> handle_;
  fe::graph::Graph graph_;
  std::int64_t workspace_bytes_ = 0;
};

// For fe::graph::SDPA_attributes and the backward's attributes.
template <class Attributes>
void set_options(const AttentionShape& shape, Attributes& options) {
  options.set_name("attention");
  options.set_attn_scale(shape.scale > 0 ? static_cast<float>(shape.scale)
                                         : 1.0F / std::sqrt(static_cast<float>(shape.columns)));
  if (!shape.causal) return;
  const bool from_first = shape.from_first || shape.rows == shape.keys;
  options.set_diagonal_alignment(from_first ? fe::DiagonalAlignment_t::TOP_LEFT
                                            : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
  options.set_diagonal_band_right_bound(0);
  if (shape.window > 0) options.set_diagonal_band_left_bound(static_cast<int>(shape.window));
}

class Attention final : public LibraryAttention {
 public:
  Attention(std::shared_ptr<void> handle, const AttentionShape& shape, bool statistics)
      : fused_(std::move(handle), shape.in), statistics_(statistics) {}

  [[nodiscard]] fe::error_t build(const AttentionShape& s) {
    fe::graph::Graph& graph = fused_.graph();
    const Dims of_q = {s.batch, s.heads, s.rows, s.columns};
    const Dims of_k = {s.batch, s.kv_heads, s.keys, s.columns};
    const Dims of_v = {s.batch, s.kv_heads, s.keys, s.v_columns};
    const Dims of_o = {s.batch, s.heads, s.rows, s.v_columns};
    auto q = describe(graph, "q", kQ, of_q, s.layout ? in_dims(s.layout->q) : packed(of_q));
    auto k = describe(graph, "k", kK, of_k, s.layout ? in_dims(s.layout->k) : packed(of_k));
    auto v = describe(graph, "v", kV, of_v, s.layout ? in_dims(s.layout->v) : packed(of_v));
    fe::graph::SDPA_attributes options;
    set_options(s, options);
    options.set_generate_stats(statistics_);
    auto [o, lse] = graph.sdpa(q, k, v, options);
    o->set_output(true).set_uid(kO).set_dim(of_o);
    o->set_stride(s.layout ? in_dims(s.layout->o) : packed(of_o));
    if (statistics_) {
      lse->set_output(true).set_uid(kLse).set_data_type(fe::DataType_t::FLOAT);
      if (s.layout) {
        lse->set_dim({s.batch, s.heads, s.rows, 1}).set_stride(in_dims(s.layout->lse));
      }
    }
    return fused_.build();
  }

  [[nodiscard]] std::int64_t workspace_bytes() const override { return fused_.workspace_bytes(); }

  [[nodiscard]] bool launch(const AttentionAddresses& at, std::uint64_t workspace,
                            void* stream) const override {
    std::vector<std::pair<Uid, std::uint64_t>> all = {
        {kQ, at.q}, {kK, at.k}, {kV, at.v}, {kO, at.o}};
    if (statistics_) all.emplace_back(kLse, at.lse);
    return fused_.launch(all, workspace, stream);
  }

 private:
  Fused fused_;
  bool statistics_;
};

class Backward final : public LibraryBackward {
 public:
  Backward(std::shared_ptr<void> handle, const AttentionShape& shape)
      : fused_(std::move(handle), shape.in) {}

  [[nodiscard]] fe::error_t build(const AttentionShape& s, bool deterministic) {
    fe::graph::Graph& graph = fused_.graph();
    const Dims of_queries = {s.batch, s.heads, s.rows, s.columns};
    const Dims of_keys = {s.batch, s.kv_heads, s.keys, s.columns};
    auto q = describe(graph, "q", kQ, of_queries);
    auto k = describe(graph, "k", kK, of_keys);
    auto v = describe(graph, "v", kV, of_keys);
    auto o = describe(graph, "o", kO, of_queries);
    auto d_o = describe(graph, "do", kDo, of_queries);
    auto lse = graph.tensor(fe::graph::Tensor_attributes()
                                .set_name("lse")
                                .set_uid(kLse)
                                .set_dim({s.batch, s.heads, s.rows, 1})
                                .set_stride({s.heads * s.rows, s.rows, 1, 1})
                                .set_data_type(fe::DataType_t::FLOAT));
    fe::graph::SDPA_backward_attributes options;
    set_options(s, options);
    options.set_deterministic_algorithm(deterministic);
    auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, o, d_o, lse, options);
    const auto give = [](const auto& tensor, Uid uid, const Dims& dims) {
      tensor->set_output(true).set_uid(uid).set_dim(dims).set_stride(packed(dims));
    };
    give(dq, kDq, of_queries);
    give(dk, kDk, of_keys);
    give(dv, kDv, of_keys);
    return fused_.build();
  }

  [[nodiscard]] std::int64_t workspace_bytes() const override { return fused_.workspace_bytes(); }

  [[nodiscard]] bool launch(const BackwardAddresses& at, std::uint64_t workspace,
                            void* stream) const override {
    const AttentionAddresses& in = at.inputs;
    return fused_.launch({{kQ, in.q},
                          {kK, in.k},
                          {kV, in.v},
                          {kO, in.o},
                          {kLse, in.lse},
                          {kDo, at.d_o},
                          {kDq, at.dq},
                          {kDk, at.dk},
                          {kDv, at.dv}},
                         workspace, stream);
  }

 private:
  Fused fused_;
};

// Opens the CUDA runtime, which the frontend loads by its bare name, from the toolkit's folder if
// need be.
Result<Ok, Missing> open_runtime(const Search& search) {
  const auto runtime =
      open_library({.what = "the CUDA runtime",
                    .names = {"libcudart.so.13", "libcudart.so.12"},
                    .remedy = "install the CUDA toolkit"},
                   {.file = "", .folders = search.folders, .toolkits = search.toolkits});
  if (!runtime.ok()) return Missing{render_message(runtime.error())};
  return Ok{};
}

}  // namespace

Result<Cudnn, Missing> Cudnn::open(const Search& search) {
  HP_REQUIRE_OK(open_runtime(search));
  const auto library = open_library(wanted_cudnn(), search);
  if (!library.ok()) return Missing{render_message(library.error())};
  fe::cudnn_dlhandle = ::dlopen(library->path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (fe::cudnn_dlhandle == nullptr) return Missing{"cuDNN could not be opened again"};
  cudnnHandle_t handle = nullptr;
  if (const auto status = fe::detail::create_handle(&handle); status != CUDNN_STATUS_SUCCESS) {
    return Missing{std::string("cuDNN: ") + fe::detail::get_error_string(status)};
  }
  const std::size_t number = fe::detail::get_backend_version();
  Cudnn opened;
  opened.handle_ = std::shared_ptr<void>(
      handle, [](void* held) { fe::detail::destroy_handle(static_cast<cudnnHandle_t>(held)); });
  opened.version_ = std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) +
                    "." + std::to_string(number % 100);
  return opened;
}

Result<std::unique_ptr<LibraryAttention>, Missing> Cudnn::prepare(const AttentionShape& shape,
                                                                  bool statistics) const {
  auto attention = std::make_unique<Attention>(handle_, shape, statistics);
  if (auto status = attention->build(shape); status.is_bad()) {
    return Missing{"cuDNN: " + status.get_message()};
  }
  return std::unique_ptr<LibraryAttention>(std::move(attention));
}

Result<std::unique_ptr<LibraryBackward>, Missing> Cudnn::prepare_backward(
    const AttentionShape& shape, bool deterministic) const {
  auto backward = std::make_unique<Backward>(handle_, shape);
  if (auto status = backward->build(shape, deterministic); status.is_bad()) {
    return Missing{"cuDNN: " + status.get_message()};
  }
  return std::unique_ptr<LibraryBackward>(std::move(backward));
}

#else

namespace {

Missing without_cudnn() { return Missing{"built without cudnn-frontend's headers"}; }

}  // namespace

Result<Cudnn, Missing> Cudnn::open(const Search&) { return without_cudnn(); }

Result<std::unique_ptr<LibraryAttention>, Missing> Cudnn::prepare(const AttentionShape&,
                                                                  bool) const {
  return without_cudnn();
}

Result<std::unique_ptr<LibraryBackward>, Missing> Cudnn::prepare_backward(const AttentionShape&,
                                                                          bool) const {
  return without_cudnn();
}

#endif

}  // namespace harpe::library
