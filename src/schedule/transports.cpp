#include "schedule/transports.h"

#include <algorithm>
#include <array>
#include <vector>

#include "schedule/state.h"

namespace harpe {
namespace {

struct Transport {
  Via via;
  std::vector<Signal> signals;
  bool source_only;
  bool fence;
  bool inline_capable;
};

Transport describe(Via via) {
  switch (via) {
    case Via::Ce:
      return {via, {Signal::Event, Signal::Flag}, false, false, false};
    case Via::Sm:
      return {via, {Signal::Flag, Signal::Counter}, false, false, true};
    case Via::Tma:
      return {via, {Signal::Flag}, false, false, true};
    case Via::Nccl:
      return {via, {}, false, false, false};
    case Via::Proxy:  // immediate data can raise a counter; a batch puts one flag
      return {via, {Signal::Flag, Signal::Counter, Signal::Batched}, true, true, false};
    case Via::Ibgda:
      return {via, {Signal::Flag}, true, true, false};
    case Via::Multimem:
      return {via, {Signal::Flag}, true, false, false};
  }
  HP_CHECK(false, "unknown transport");
}

}  // namespace

std::string describe_signals(Via via) {
  std::vector<std::string> names;
  for (const Signal signal : describe(via).signals) names.emplace_back(print(signal));
  return names.empty() ? "its own signal only" : quote_list(names);
}

bool can_signal(Via via, Signal signal) {
  const std::vector<Signal> signals = describe(via).signals;
  return std::ranges::find(signals, signal) != signals.end();
}

bool takes_fence(Via via) { return describe(via).fence; }

bool is_source_initiated(Via via) { return describe(via).source_only; }

bool is_inline_capable(Via via) { return describe(via).inline_capable; }

}  // namespace harpe
