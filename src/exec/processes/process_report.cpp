#include "exec/processes/process_report.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>

namespace harpe::processes {
namespace {

// Plain bytes of numbers, and texts behind their lengths: both sides are the same build (N015).
class Writer {
 public:
  template <class Value>
    requires std::is_trivially_copyable_v<Value>
  void put(const Value& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    blob_.insert(blob_.end(), bytes.begin(), bytes.end());
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    blob_.insert(blob_.end(), bytes.begin(), bytes.end());
  }
  transport::Blob take() && { return std::move(blob_); }

 private:
  transport::Blob blob_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Value>
    requires std::is_trivially_copyable_v<Value>
  bool get(Value& value) {
    if (bytes_.size() < sizeof(value)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_ = bytes_.subspan(sizeof(value));
    return true;
  }
  bool get(std::string& text) {
    std::uint64_t size = 0;
    if (!get(size) || size > bytes_.size()) return false;
    text.assign(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return true;
  }
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

// Writes or reads all fields. False if the bytes of a reader end too early.
template <class Bytes, class FaultOf>
bool each_field(FaultOf& fault, const Bytes& step) {
  return step(fault.kind) && step(fault.rank) && step(fault.task) && step(fault.task_text) &&
         step(fault.signal) && step(fault.producer) && step(fault.producer_rank) &&
         step(fault.producer_text) && step(fault.expected) && step(fault.observed) &&
         step(fault.elapsed);
}

constexpr std::size_t kMostFaults = 256;  // of one process: what fits into one message

Fault lost(RankId rank) {
  Fault fault;
  fault.kind = FaultKind::PeerLost;
  fault.rank = rank;
  return fault;
}

// 0: the rank has exited or its own part failed; 1: it waits for a rank without a known fault; 2:
// it waits for a rank that waits itself.
int distance_of(const Fault& fault, const std::set<RankId>& waiting) {
  const bool waits = fault.kind == FaultKind::WaitTimedOut || fault.kind == FaultKind::WaitGivenUp;
  if (!waits) return 0;
  return waiting.contains(fault.producer_rank) ? 2 : 1;
}

}  // namespace

transport::Blob pack(const ProcessReport& report) {
  Writer writer;
  writer.put(report.bytes_moved);
  writer.put(report.cpu_time);
  writer.put(report.network);
  const std::size_t count = std::min(report.faults.size(), kMostFaults);
  writer.put(static_cast<std::uint64_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    each_field(report.faults[i], [&](const auto& field) {
      writer.put(field);
      return true;
    });
  }
  return std::move(writer).take();
}

std::optional<ProcessReport> unpack(std::span<const std::byte> bytes) {
  ProcessReport report;
  Reader reader(bytes);
  std::uint64_t count = 0;
  const bool has_head = reader.get(report.bytes_moved) && reader.get(report.cpu_time) &&
                        reader.get(report.network) && reader.get(count);
  if (!has_head || count > kMostFaults) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    Fault fault;
    if (!each_field(fault, [&](auto& field) { return reader.get(field); })) return std::nullopt;
    report.faults.push_back(std::move(fault));
  }
  return reader.is_empty() ? std::optional(std::move(report)) : std::nullopt;
}

ProcessReport merge(const std::vector<ProcessGroup::Answer>& answers, const ProcessReport& own,
                    const Partition& partition) {
  ProcessReport all;
  for (std::size_t of = 0; of < answers.size(); ++of) {
    const bool is_own = static_cast<int>(of) == partition.process;
    const ProcessGroup::Answer& answer = answers[of];
    std::optional<ProcessReport> report;
    if (is_own) report = own;
    if (!is_own && answer.said) report = unpack(*answer.said);
    if (!report) {
      if (answer.is_lost || answer.said) {
        all.faults.push_back(lost(partition.first_of(static_cast<int>(of))));
      }
      continue;
    }
    all.bytes_moved += report->bytes_moved;
    all.cpu_time += report->cpu_time;
    all.network += report->network;
    all.faults.insert(all.faults.end(), report->faults.begin(), report->faults.end());
  }
  std::set<RankId> waiting;
  for (const Fault& fault : all.faults) {
    if (fault.producer.valid()) waiting.insert(fault.rank);
  }
  std::ranges::stable_sort(all.faults, {}, [&](const Fault& fault) {
    return std::pair(fault.kind != FaultKind::PeerLost, distance_of(fault, waiting));
  });
  return all;
}

}  // namespace harpe::processes
