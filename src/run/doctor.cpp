#include "run/doctor.h"

#include <algorithm>
#include <thread>

#include "run/gpus.h"
#include "run/host.h"
#include "run/memory.h"
#include "transport/fabric_provider.h"
#include "transport/shared_provider.h"

namespace harpe {
namespace {

std::vector<std::string> vectors_of_host() {
  std::vector<std::string> vectors;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) vectors.emplace_back("avx2");
  if (__builtin_cpu_supports("fma")) vectors.emplace_back("fma");
  if (__builtin_cpu_supports("avx512f")) vectors.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) vectors.emplace_back("avx512bw");
  if (__builtin_cpu_supports("avx512bf16")) vectors.emplace_back("avx512bf16");
#endif
  return vectors;
}

HostFacts examine_host() {
  HostFacts host;
  host.name = describe_host();
  host.cores = std::max(1U, std::thread::hardware_concurrency());
  host.vectors = vectors_of_host();
  host.free_bytes = available_bytes();
  for (const DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16}) {
    host.products.emplace_back(print(dtype), name_products(dtype, true));
  }
  return host;
}

void examine_gpus(const CudaPlaces& places, Examination& examination) {
  const Checked<const Gpus*> gpus = find_gpus();
  if (gpus.ok()) return (*gpus)->examine(places, examination);
  examination.libraries.push_back({.name = "driver",
                                   .path = "",
                                   .version = "",
                                   .problem = render_message(gpus.error()),
                                   .tried = {},
                                   .cost = std::string(kNoRunsOnGpus)});
}

TransportFacts facts_of(const transport::FabricOffer& offer) {
  TransportFacts facts{.name = offer.provider,
                       .is_tested = offer.is_tested,
                       .is_there = offer.is_there,
                       .asked = transport::describe(offer.asked),
                       .given = "",
                       .ordering = ""};
  if (!offer.is_there) return facts;
  facts.given = transport::describe(offer.given);
  const auto chosen = transport::choose(std::nullopt, offer.given, true, offer.provider);
  facts.ordering = chosen.ok() ? std::string(print(chosen->ordering)) : "nothing";
  return facts;
}

std::vector<TransportFacts> examine_transports() {
  const transport::Guarantees shared = transport::make_shared_provider()->given();
  std::vector<TransportFacts> all = {facts_of({.provider = "shared",
                                               .is_tested = true,
                                               .is_there = true,
                                               .asked = shared,
                                               .given = shared})};
  for (const transport::FabricOffer& offer : transport::examine_fabric("")) {
    all.push_back(facts_of(offer));
  }
  return all;
}

}  // namespace

Examination examine(const CudaPlaces& places) {
  Examination examination;
  examination.host = examine_host();
  examination.transports = examine_transports();
  examine_gpus(places, examination);
  return examination;
}

}  // namespace harpe
