#include "plan/plan.h"

#include <algorithm>

namespace harpe {

std::string_view print(Level level) {
  switch (level) {
    case Level::Home:
      return "home";
    case Level::Stage:
      return "stage";
    case Level::Acc:
      return "acc";
    case Level::Inbox:
      return "inbox";
    case Level::Drain:
      return "drain";
    case Level::Sum:
      return "sum";
    case Level::Pack:
      return "pack";
  }
  return "";
}

std::string_view print(QueueKind kind) {
  switch (kind) {
    case QueueKind::Host:
      return "host";
    case QueueKind::Sm:
      return "sm";
    case QueueKind::Ce:
      return "ce";
    case QueueKind::Tma:
      return "tma";
    case QueueKind::Nccl:
      return "nccl";
    case QueueKind::Proxy:
      return "proxy";
    case QueueKind::Ibgda:
      return "ibgda";
    case QueueKind::Multimem:
      return "multimem";
  }
  return "";
}

std::string_view print(TaskKind kind) {
  switch (kind) {
    case TaskKind::Entry:
      return "entry";
    case TaskKind::Exit:
      return "exit";
    case TaskKind::Init:
      return "init";
    case TaskKind::Compute:
      return "compute";
    case TaskKind::Copy:
      return "copy";
    case TaskKind::Pack:
      return "pack";
    case TaskKind::Unpack:
      return "unpack";
    case TaskKind::Fold:
      return "fold";
    case TaskKind::Finalise:
      return "finalise";
    case TaskKind::Collective:
      return "collective";
  }
  return "";
}

std::string_view print(WriteMode mode) {
  switch (mode) {
    case WriteMode::Read:
      return "r";
    case WriteMode::Init:
      return "init";
    case WriteMode::Add:
      return "add";
    case WriteMode::Set:
      return "set";
  }
  return "";
}

std::string_view print(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::AllGather:
      return "all_gather";
    case CollectiveOp::AllToAll:
      return "all_to_all";
    case CollectiveOp::ReduceScatter:
      return "reduce_scatter";
  }
  return "";
}

std::string_view print(SyncKind kind) {
  switch (kind) {
    case SyncKind::Event:
      return "event";
    case SyncKind::Flag:
      return "flag";
    case SyncKind::Counter:
      return "counter";
  }
  return "";
}

bool is_put(const Plan& plan, const Task& task) {
  const QueueKind queue = plan.queues[task.queue.index()].kind;
  const bool through_nic = queue == QueueKind::Proxy || queue == QueueKind::Ibgda;
  return task.kind == TaskKind::Copy && through_nic;
}

RankId destination_of(const Plan& plan, const Task& task) {
  return plan.allocs[task.writes.front().alloc.index()].rank;
}

std::int64_t arena_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (const Alloc& alloc : plan.allocs) bytes = std::max(bytes, alloc.offset + alloc.bytes);
  return bytes;
}

}  // namespace harpe
