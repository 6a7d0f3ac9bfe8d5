#include "exec/cuda/library/leaves.h"

namespace harpe::library {
namespace {

// The workspace that is recommended for cuBLASLt on Hopper.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;

Diag missing(const LeafPlace& place, const char* library, const std::string& reason) {
  return make_diag(DiagCode::G084,
                   {{"kernel", place.kernel}, {"library", library}, {"reason", reason}});
}

}  // namespace

Diag LeafPlace::refuse(const std::string& reason) const {
  return make_diag(DiagCode::G083, {{"kernel", kernel}, {"nest", nest}, {"reason", reason}});
}

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

Checked<cuda::DeviceAddress> Leaves::reserve(std::int64_t bytes) {
  HP_TRY(cuda::DeviceMemory space, cuda::DeviceMemory::allocate(*device_, bytes));
  spaces_.push_back(std::move(space));
  return spaces_.back().address();
}

}  // namespace harpe::library
