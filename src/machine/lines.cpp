#include "machine/lines.h"

#include <array>

namespace harpe {
namespace {

constexpr std::array<std::string_view, 7> kTransports = {"ce",    "sm",    "tma",     "nccl",
                                                         "proxy", "ibgda", "multimem"};

template <class Field>
Figure required(std::string_view name, Unit unit, Field* field) {
  return {
      .name = name, .unit = unit, .range = FigureRange::Positive, .required = true, .field = field};
}

template <class Field>
Figure optional(std::string_view name, Unit unit, Field* field) {
  return {.name = name, .unit = unit, .field = field};
}

// " by own"; empty for a sample of any supplier.
std::string print_supplier(Supplier by) {
  return by == Supplier::Any ? "" : " by " + std::string(print(by));
}

}  // namespace

std::string Line::name() const {
  std::string out = head;
  for (std::size_t i = 0; i < keys; ++i) out += " " + print(figures[i]);
  return out;
}

Line line_of(Processor& processor) {
  return {.head = "processor " + processor.name,
          .figures = {required("sms", Unit::None, &processor.sms),
                      required("memory", Unit::Bytes, &processor.memory_bytes),
                      required("bandwidth", Unit::Bandwidth, &processor.memory_bandwidth),
                      optional("cache", Unit::Bytes, &processor.cache_bytes),
                      optional("kernel_start", Unit::Time, &processor.kernel_start),
                      optional("kernel_issue", Unit::Time, &processor.kernel_issue),
                      optional("event", Unit::Time, &processor.event),
                      optional("execution_start", Unit::Time, &processor.execution_start)},
          .from = &processor.from};
}

Line line_of(MachineLevel& level) {
  return {.head = "level " + level.name + " " + std::string(print(level.kind)),
          .figures = {required("size", Unit::None, &level.size),
                      required("bandwidth", Unit::Bandwidth, &level.bandwidth),
                      optional("latency", Unit::Time, &level.latency),
                      optional("messages", Unit::None, &level.messages_per_second),
                      optional("proxy_post", Unit::Time, &level.proxy_post),
                      optional("proxy_peer", Unit::Time, &level.proxy_peer),
                      optional("proxy_fence", Unit::Time, &level.proxy_fence),
                      optional("proxy_word", Unit::Time, &level.proxy_word),
                      optional("proxy_count", Unit::Time, &level.proxy_count),
                      optional("nic_fence", Unit::Time, &level.nic_fence),
                      optional("nic_drain", Unit::Time, &level.nic_drain),
                      optional("gpu_post", Unit::Time, &level.gpu_post)},
          .from = &level.from};
}

Line line_of(TransportRate& transport) {
  return {.head = "transport " + transport.via + " at " + transport.level,
          .figures = {optional("start", Unit::Time, &transport.start),
                      required("bandwidth", Unit::Bandwidth, &transport.bandwidth),
                      optional("sms", Unit::None, &transport.sms),
                      optional("unrounded", Unit::None, &transport.unrounded),
                      optional("converting", Unit::Bandwidth, &transport.converting)},
          .from = &transport.from};
}

Line line_of(CompletionSample& completion) {
  Figure outstanding = required("outstanding", Unit::None, &completion.outstanding);
  outstanding.required = false;
  outstanding.fallback = 1;
  return {.head = "completion at " + completion.level,
          .figures = {required("groups", Unit::None, &completion.groups), outstanding,
                      optional("time", Unit::Time, &completion.time),
                      optional("behind", Unit::None, &completion.behind),
                      optional("nic_drain", Unit::Time, &completion.nic_drain)},
          .keys = 2,
          .from = &completion.from};
}

Line line_of(CollectiveSample& collective) {
  return {.head = "collective " + std::string(print(collective.kind)) + " at " + collective.level +
                  print_supplier(collective.by),
          .figures = {required("ranks", Unit::None, &collective.ranks),
                      required("bytes", Unit::Bytes, &collective.bytes),
                      required("time", Unit::Time, &collective.time)},
          .keys = 2,
          .from = &collective.from};
}

Line line_of(LeafRate& rate) {
  const auto tile = [](std::string_view name, FigureRange range, double* field) {
    return Figure{.name = name, .range = range, .fallback = 1, .field = field};
  };
  return {.head = "rate " + rate.leaf + " " + rate.dtype + print_supplier(rate.by),
          .figures = {optional("peak", Unit::Rate, &rate.peak),
                      tile("tile_rows", FigureRange::Positive, &rate.tile_rows),
                      tile("tile_columns", FigureRange::NotNegative, &rate.tile_columns),
                      optional("held_rows", Unit::None, &rate.held_rows),
                      optional("few_rows", Unit::None, &rate.few_rows),
                      optional("half_depth", Unit::None, &rate.half_depth),
                      Figure{.name = "memory_share",
                             .range = FigureRange::Fraction,
                             .fallback = 1,
                             .field = &rate.memory_share},
                      optional("start", Unit::Time, &rate.start),
                      optional("few_start", Unit::Time, &rate.few_start)},
          .from = &rate.from};
}

Line line_of(LeafSample& sample) {
  const auto extent = [](std::string_view name, double* field) {
    return Figure{.name = name, .range = FigureRange::Positive, .fallback = 1, .field = field};
  };
  LeafShape& shape = sample.shape;
  return {.head = "sample " + sample.leaf + " " + sample.dtype + (sample.causal ? " causal" : "") +
                  print_supplier(sample.by),
          .figures = {extent("batch", &shape.batch), extent("rows", &shape.rows),
                      extent("columns", &shape.columns), extent("depth", &shape.depth),
                      optional("flops", Unit::None, &shape.flops),
                      optional("bytes", Unit::Bytes, &shape.bytes),
                      required("time", Unit::Time, &sample.time)},
          .keys = 6,
          .from = &sample.from};
}

Line line_of(PredictionError& error) {
  return {.head = "error " + error.family,
          .figures = {required("plans", Unit::None, &error.plans),
                      optional("median", Unit::None, &error.median),
                      optional("nine_of_ten", Unit::None, &error.nine_of_ten)},
          .from = &error.from};
}

std::vector<Line> lines_of(Machine& machine) {
  std::vector<Line> lines = {line_of(machine.processor)};
  for (MachineLevel& level : machine.levels) lines.push_back(line_of(level));
  for (TransportRate& transport : machine.transports) lines.push_back(line_of(transport));
  for (CompletionSample& completion : machine.completions) lines.push_back(line_of(completion));
  for (CollectiveSample& collective : machine.collectives) lines.push_back(line_of(collective));
  for (LeafRate& rate : machine.rates) lines.push_back(line_of(rate));
  for (LeafSample& sample : machine.samples) lines.push_back(line_of(sample));
  for (PredictionError& error : machine.errors) lines.push_back(line_of(error));
  return lines;
}

std::span<const std::string_view> all_transport_names() { return kTransports; }

}  // namespace harpe
