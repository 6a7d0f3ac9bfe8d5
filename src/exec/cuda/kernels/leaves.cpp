#include "exec/cuda/kernels/leaves.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "support/check.h"

namespace harpe::library {
namespace {

using cuda::AttentionSpec;
using cuda::GemmPanelSpec;
using cuda::GemmSpec;

// What cuBLASLt is advised to have on Hopper.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

Diag cannot(const LeafPlace& place, const std::string& reason) {
  return make_diag(DiagCode::G083,
                   {{"kernel", place.kernel}, {"nest", place.nest}, {"reason", reason}});
}

Diag missing(const LeafPlace& place, const char* library, const std::string& reason) {
  return make_diag(DiagCode::G084,
                   {{"kernel", place.kernel}, {"library", library}, {"reason", reason}});
}

ProductShape shape_of(const GemmSpec& spec, const GemmPanelSpec& panel) {
  return {.m = panel.rows,
          .n = spec.n,
          .k = spec.k,
          .in = spec.in,
          .out = spec.out,
          .layout = spec.layout,
          .a_stride = panel.pieces.front().stride,
          .b_stride = spec.b_stride,
          .c_stride = panel.c_stride,
          .add = spec.add};
}

struct Call {
  std::shared_ptr<const LibraryProduct> product;
  cuda::DeviceAddress a = 0;
  cuda::DeviceAddress b = 0;
  cuda::DeviceAddress c = 0;
};

}  // namespace

Checked<Workspace> Leaves::workspace_of(QueueId queue) {
  auto found = workspaces_.find(queue);
  if (found == workspaces_.end()) {
    HP_TRY(cuda::DeviceMemory memory, cuda::DeviceMemory::allocate(*device_, kWorkspaceBytes));
    found = workspaces_.emplace(queue, std::move(memory)).first;
  }
  return Workspace{.address = found->second.address(), .bytes = kWorkspaceBytes};
}

Checked<CublasLt> Leaves::products(const LeafPlace& place) {
  if (!products_) {
    Result<CublasLt, Missing> opened = CublasLt::open(search_, {});
    if (!opened.ok()) return missing(place, "cuBLASLt", opened.error().reason);
    products_ = std::move(opened).value();
  }
  HP_TRY(const Workspace workspace, workspace_of(place.queue));
  return products_->with(workspace);
}

Checked<const Cudnn*> Leaves::attention(const LeafPlace& place) {
  if (!attention_) {
    Result<Cudnn, Missing> opened = Cudnn::open(search_);
    if (!opened.ok()) return missing(place, "cuDNN", opened.error().reason);
    attention_ = std::move(opened).value();
  }
  return &*attention_;
}

Checked<Step> Leaves::prepare(const GemmSpec& spec, const LeafPlace& place) {
  HP_TRY(const CublasLt library, products(place));
  std::vector<Call> calls;
  for (const GemmPanelSpec& panel : spec.panels) {
    HP_CHECK(panel.pieces.size() == 1 && panel.addends.empty() && !cuda::is_awaited(panel),
             "nothing is joined with a library's product");
    auto product = library.prepare(shape_of(spec, panel));
    if (!product.ok()) return cannot(place, product.error().reason);
    if ((*product)->algorithms() == 0) return cannot(place, "cuBLASLt names no algorithm");
    calls.push_back({.product = std::move(product).value(),
                     .a = panel.pieces.front().a,
                     .b = spec.b,
                     .c = panel.c});
  }
  return Step([calls = std::move(calls)](CUstream stream) -> Checked<Ok> {
    for (const Call& call : calls) {
      if (!call.product->launch(0, call.a, call.b, call.c, stream)) {
        return refused("cublasLtMatmul", "cuBLASLt");
      }
    }
    return Ok{};
  });
}

Result<AttentionShape, Missing> shape_of(const AttentionSpec& spec) {
  if (spec.carried) return Missing{"it goes on with a state, and cuDNN begins anew"};
  if (spec.to_state) return Missing{"it leaves a state in f32, and cuDNN rounds its results"};
  if (spec.panels.size() != 1 || spec.chunks.size() != 1) {
    return Missing{"it has several blocks of queries or keys"};
  }
  const cuda::AttentionPanelSpec& panel = spec.panels.front();
  const cuda::AttentionChunkSpec& chunk = spec.chunks.front();
  AttentionShape shape{.batch = spec.batch,
                       .rows = panel.rows,
                       .keys = chunk.rows,
                       .heads = spec.heads,
                       .kv_heads = spec.kv_heads,
                       .columns = spec.query_dim,
                       .v_columns = spec.value_dim,
                       .causal = spec.causal,
                       .in = spec.element,
                       .window = spec.window,
                       .scale = spec.scale};
  shape.layout = {.q = panel.queries.strides,
                  .k = chunk.keys.strides,
                  .v = chunk.values.strides,
                  .o = panel.output.strides,
                  .lse = panel.lse.strides};
  if (!spec.causal) return shape;
  const std::int64_t lead = panel.position - chunk.position;
  if (lead < 0) return Missing{"its first queries see no key"};
  shape.keys = std::min(shape.keys, lead + shape.rows);
  shape.from_first = lead == 0;
  if (!shape.from_first && shape.keys != lead + shape.rows) {
    return Missing{"its last " + std::to_string(lead + shape.rows - shape.keys) +
                   " queries see all keys, the others not"};
  }
  return shape;
}

Checked<Step> Leaves::prepare(const AttentionSpec& spec, const LeafPlace& place) {
  const Result<AttentionShape, Missing> shape = shape_of(spec);
  if (!shape.ok()) return cannot(place, shape.error().reason);
  HP_TRY(const Cudnn* const library, attention(place));
  const cuda::AttentionPanelSpec& panel = spec.panels.front();
  const cuda::AttentionChunkSpec& chunk = spec.chunks.front();
  auto made = library->prepare(*shape, panel.lse.address != 0);
  if (!made.ok()) return cannot(place, made.error().reason);
  const std::shared_ptr<const LibraryAttention> kernel = std::move(made).value();
  if (kernel->workspace_bytes() > 0) {
    HP_TRY(cuda::DeviceMemory space,
           cuda::DeviceMemory::allocate(*device_, kernel->workspace_bytes()));
    spaces_.push_back(std::move(space));
  }
  const cuda::DeviceAddress space = kernel->workspace_bytes() > 0 ? spaces_.back().address() : 0;
  const AttentionAddresses at{.q = panel.queries.address,
                              .k = chunk.keys.address,
                              .v = chunk.values.address,
                              .o = panel.output.address,
                              .lse = panel.lse.address};
  return Step([kernel, at, space](CUstream stream) -> Checked<Ok> {
    if (kernel->launch(at, space, stream)) return Ok{};
    return refused("execute", "cuDNN");
  });
}

}  // namespace harpe::library
