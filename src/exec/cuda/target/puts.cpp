#include "exec/cuda/target/puts.h"

#include "exec/cuda/target/staging.h"
#include "support/check.h"
#include "sync/nodes.h"

namespace harpe::cuda {
namespace {

std::vector<actions::Assign> moves_of(const SpecSource& source, TaskId put) {
  std::vector<actions::Assign> moves;
  const actions::Scratch no_scratch;
  const Task& task = source.plan.tasks[put.index()];
  for (actions::Action& action : actions::prepare_moves(source.setting(no_scratch), task).actions) {
    auto* const move = std::get_if<actions::Assign>(&action);
    HP_CHECK(move != nullptr, "a put is made of moves");
    moves.push_back(std::move(*move));
  }
  return moves;
}

}  // namespace

std::map<TaskId, std::int64_t> put_bytes_of(const SpecSource& source) {
  std::map<TaskId, std::int64_t> bytes;
  for (const TaskId put : sync::puts_of(source.plan)) {
    std::int64_t& sum = bytes[put];
    for (const actions::Assign& move : moves_of(source, put)) sum += image_bytes(move);
  }
  return bytes;
}

std::vector<actions::Action> packing_of(const SpecSource& source, TaskId put) {
  std::vector<actions::Action> packing;
  std::byte* image = source.staging(put);
  for (const actions::Assign& move : moves_of(source, put)) {
    packing.emplace_back(stage(move, image, nullptr).pack);
    image += image_bytes(move);
  }
  return packing;
}

std::vector<actions::Action> landing_of(const SpecSource& source, TaskId put) {
  std::vector<actions::Action> landing;
  std::byte* image = source.landing(put);
  for (const actions::Assign& move : moves_of(source, put)) {
    landing.emplace_back(stage(move, nullptr, image).land);
    image += image_bytes(move);
  }
  return landing;
}

}  // namespace harpe::cuda
