#include "exec/cuda/executor/puts.h"

#include "exec/cuda/actions/staging.h"
#include "exec/cuda/executor/nodes.h"
#include "support/check.h"

namespace harpe::cuda {
namespace {

std::vector<actions::Assign> moves_of(const Prepared& prepared, TaskId put) {
  std::vector<actions::Assign> moves;
  const Task& task = prepared.plan.tasks[put.index()];
  for (actions::Action& action : actions::prepare_moves(prepared.setting(), task).actions) {
    auto* const move = std::get_if<actions::Assign>(&action);
    HP_CHECK(move != nullptr, "a put is made of moves");
    moves.push_back(std::move(*move));
  }
  return moves;
}

}  // namespace

std::map<TaskId, std::int64_t> put_bytes_of(const Prepared& prepared) {
  std::map<TaskId, std::int64_t> bytes;
  for (const TaskId put : puts_of(prepared.plan)) {
    std::int64_t& sum = bytes[put];
    for (const actions::Assign& move : moves_of(prepared, put)) sum += image_bytes(move);
  }
  return bytes;
}

std::vector<actions::Action> packing_of(const Prepared& prepared, TaskId put) {
  std::vector<actions::Action> packing;
  std::byte* image = prepared.network->staging(put);
  for (const actions::Assign& move : moves_of(prepared, put)) {
    packing.emplace_back(stage(move, image, nullptr).pack);
    image += image_bytes(move);
  }
  return packing;
}

std::vector<actions::Action> landing_of(const Prepared& prepared, TaskId put) {
  std::vector<actions::Action> landing;
  std::byte* image = prepared.network->landing(put);
  for (const actions::Assign& move : moves_of(prepared, put)) {
    landing.emplace_back(stage(move, nullptr, image).land);
    image += image_bytes(move);
  }
  return landing;
}

}  // namespace harpe::cuda
