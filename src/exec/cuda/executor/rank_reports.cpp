#include "exec/cuda/executor/rank_reports.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace harpe::cuda {
namespace {

using transport::Blob;

// A report without its texts.
struct ReportHead {
  std::int32_t status = 0;  // error code of the driver
  std::uint8_t has_end = 0;
  std::uint8_t has_record = 0;
  std::uint8_t is_poisoned = 0;
  std::uint8_t call_bytes = 0;
  std::uint8_t name_bytes = 0;
  device::FaultRecord record{};
};

}  // namespace

Blob pack(const RankReport& report) {
  ReportHead head{.has_end = report.end ? std::uint8_t{1} : std::uint8_t{0},
                  .has_record = report.record ? std::uint8_t{1} : std::uint8_t{0},
                  .is_poisoned = report.is_poisoned ? std::uint8_t{1} : std::uint8_t{0}};
  if (report.record) head.record = *report.record;
  std::string texts;
  if (report.end) {
    const std::string call = report.end->call.substr(0, 255);
    const std::string name = report.end->name.substr(0, 255);
    head.status = static_cast<std::int32_t>(report.end->status);
    head.call_bytes = static_cast<std::uint8_t>(call.size());
    head.name_bytes = static_cast<std::uint8_t>(name.size());
    texts = call + name + report.end->reason;
  }
  const std::string all = std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + texts;
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

RankReport unpack(const Blob& blob) {
  RankReport report;
  ReportHead head;
  if (blob.size() < sizeof(head)) {
    report.is_lost = true;
    return report;
  }
  std::memcpy(&head, blob.data(), sizeof(head));
  const std::string texts = std::string(reinterpret_cast<const char*>(blob.data()) + sizeof(head),
                                        blob.size() - sizeof(head));
  report.is_poisoned = head.is_poisoned != 0;
  if (head.has_record != 0) report.record = head.record;
  if (head.has_end != 0) {
    const std::size_t call = std::min<std::size_t>(head.call_bytes, texts.size());
    const std::size_t name = std::min<std::size_t>(head.name_bytes, texts.size() - call);
    report.end = CudaError{.call = texts.substr(0, call),
                           .status = static_cast<CUresult>(head.status),
                           .name = texts.substr(call, name),
                           .reason = texts.substr(call + name),
                           .where = {}};
  }
  return report;
}

std::vector<RankReport> exchange(processes::ProcessGroup& group, const RankReport& own,
                                 std::chrono::milliseconds wait_limit) {
  const auto answers = group.conclude(pack(own), own.is_fine(), wait_limit);
  std::vector<RankReport> reports;
  for (const processes::ProcessGroup::Answer& answer : answers) {
    RankReport report;
    if (answer.said) report = unpack(*answer.said);
    report.is_lost = report.is_lost || answer.is_lost;
    reports.push_back(std::move(report));
  }
  reports[static_cast<std::size_t>(group.rank())] = own;
  return reports;
}

}  // namespace harpe::cuda
