#include "exec/group/local_homes.h"

#include "plan/slots.h"
#include "support/check.h"

namespace harpe {
namespace {

// By allocation: whether other ranks access it, by tasks of theirs or in a collective.
std::vector<bool> find_shared(const Plan& plan) {
  std::vector<bool> is_shared(plan.allocs.size(), false);
  for (const Task& task : plan.tasks) {
    const RankId rank = plan.queues[task.queue.index()].rank;
    for (const std::vector<Ref>* refs : {&task.reads, &task.writes}) {
      for (const Ref& ref : *refs) {
        const bool is_met = task.kind == TaskKind::Collective;
        if (is_met || plan.allocs[ref.alloc.index()].rank != rank) {
          is_shared[ref.alloc.index()] = true;
        }
      }
    }
  }
  return is_shared;
}

// Per dimension of the buffer: how many of its elements the allocation holds.
std::vector<std::int64_t> local_shape(const Blocks& blocks, int buffer, RankId rank) {
  const BufferTable& table = blocks.buffers()[static_cast<std::size_t>(buffer)];
  const SlotShape slot = slot_shape(blocks, buffer, blocks.home(buffer, rank));
  std::vector<std::int64_t> shape;
  std::size_t axis = 0;  // a buffer's axes are those of its dimensions, concatenated
  for (const DimTable& dim : table.dims) {
    std::int64_t extent = dim.axes.empty() ? dim.opaque : 1;
    for (std::size_t i = 0; i < dim.axes.size(); ++i) extent *= slot.axes[axis++].length;
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

std::int64_t LocalHome::bytes() const {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  return elements * size_in_bytes(dtype);
}

std::vector<LocalHome> local_homes(const Plan& plan, const Blocks& blocks, RankId rank) {
  const std::vector<bool> is_shared = find_shared(plan);
  std::vector<LocalHome> homes;
  for (const Role role : {Role::In, Role::Out}) {
    for (const Buffer* const buffer : buffers_of(plan.program)) {
      if (buffer->role != role) continue;
      LocalHome& home = homes.emplace_back();
      home = {.buffer = buffer->name, .role = role, .dtype = buffer->dtype, .shape = {}};
      home.shape.assign(shape_of(plan.program, *buffer).size(), 0);
      for (std::size_t id = 0; id < plan.allocs.size(); ++id) {
        const Alloc& alloc = plan.allocs[id];
        const bool is_it = alloc.level == Level::Home && alloc.rank == rank;
        if (!is_it || alloc.buffer != buffer->name) continue;
        home.alloc = AllocId(static_cast<std::int64_t>(id));
        home.dtype = alloc.dtype;
        home.shape = local_shape(blocks, blocks.find_buffer(buffer->name), rank);
        home.is_own = !is_shared[id];
      }
    }
  }
  return homes;
}

bool is_dense(const TensorView& tensor) {
  std::int64_t stride = 1;
  for (std::size_t axis = tensor.axes; axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

}  // namespace harpe
