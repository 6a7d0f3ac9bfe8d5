#include "cli/request.h"

#include "cli/environment.h"
#include "cli/flag_values.h"
#include "compile/target.h"
#include "support/build.h"

namespace harpe::cli {

Checked<Request> request_of(const CommandLine& line) {
  if (line.words.empty()) {
    return make_diag(DiagCode::U110, {{"verb", line.verb}, {"what", "an operator or a file"}});
  }
  HP_TRY(const std::vector<NamedFile> files, parse_named_files("--input", line.values("input")));
  Request request{.target = line.words.front(),
                  .parameters = {line.words.begin() + 1, line.words.end()},
                  .inputs = {},
                  .mesh = line.value("mesh"),
                  .schedule = line.value("schedule"),
                  .machine = line.value("machine")};
  for (const NamedFile& file : files) request.inputs.push_back(file.name);
  request.homes = line.values("home");
  request.layout = line.value("layout").value_or(request.layout);
  request.version = identify_build(HARPE_VERSION);
  const auto given = line.value("cache");
  Checked<std::optional<std::string>> cache = cache_of(given, "--cache");
  if (cache.ok()) {
    request.cache = *std::move(cache);
  } else if (given) {
    return cache.error();
  }
  return request;
}

Checked<Request> operator_request_of(const CommandLine& line) {
  HP_TRY(Request request, request_of(line));
  if (kind_of(request.target) == TargetKind::PlanFile) {
    return make_diag(DiagCode::U119, {{"verb", line.verb}, {"path", request.target}});
  }
  return request;
}

Checked<Backend> backend_of(const CommandLine& line) {
  static const std::vector<std::string> kBackends = {"cpu", "cuda"};
  const std::string backend = line.value("backend").value_or("cpu");
  if (backend == "cpu") return Backend::Cpu;
  if (backend == "cuda") return Backend::Cuda;
  const bool means_cuda = backend == "gpu" || backend == "GPU";
  return make_diag(DiagCode::U109,
                   {{"flag", "--backend"},
                    {"text", backend},
                    {"wanted", "cpu or cuda" + (means_cuda ? " (GPUs are `cuda`)"
                                                           : suggestion(backend, kBackends))}});
}

namespace {

// Only GPUs have several engines.
Checked<CollectiveEngine> engine_of(const CommandLine& line, Backend backend) {
  const auto text = line.value("collectives");
  if (!text) return CollectiveEngine::Auto;
  const auto refuse = [&](const std::string& wanted) {
    return make_diag(DiagCode::U109,
                     {{"flag", "--collectives"}, {"text", *text}, {"wanted", wanted}});
  };
  if (backend != Backend::Cuda) return refuse("given with `--backend cuda`");
  const auto found = std::ranges::find(kEngineNames, *text);
  if (found != kEngineNames.end()) {
    return static_cast<CollectiveEngine>(found - kEngineNames.begin());
  }
  const std::vector<std::string> names(kEngineNames.begin(), kEngineNames.end());
  return refuse("auto, nccl or pull" + suggestion(*text, names));
}

}  // namespace

Checked<Backend> target_of(const CommandLine& line, Backend otherwise) {
  static const std::vector<std::string> kTargets = {"cpu", "h200"};
  const auto target = line.value("target");
  if (!target) return otherwise;
  if (*target == "cpu") return Backend::Cpu;
  if (*target == "h200") return Backend::Cuda;
  return make_diag(DiagCode::U109, {{"flag", "--target"},
                                    {"text", *target},
                                    {"wanted", "cpu or h200" + suggestion(*target, kTargets)}});
}

CudaPlaces library_places_of(const CommandLine& line) {
  return {.nvrtc = line.value("nvrtc"),
          .cuda_folders = cuda_folders(),
          .library_folders = library_folders(line.value("libraries")),
          .kernel_cache = std::nullopt};
}

Checked<CudaPlaces> cuda_places_of(const CommandLine& line) {
  CudaPlaces places = library_places_of(line);
  HP_TRY(places.kernel_cache, cache_of(line.value("cache"), "--cache"));
  if (places.kernel_cache) *places.kernel_cache += "/kernels";
  return places;
}

Checked<BackendRequest> backend_request_of(const CommandLine& line) {
  BackendRequest request;
  HP_TRY(request.backend, backend_of(line));
  HP_TRY(request.target, target_of(line, request.backend));
  if (request.backend == Backend::Cuda && request.target != Backend::Cuda) {
    return make_diag(DiagCode::U109, {{"flag", "--target"},
                                      {"text", *line.value("target")},
                                      {"wanted", "given with `--backend cpu`"}});
  }
  request.share_gpus = line.has("share-gpus");
  request.divide_gpus = line.has("divide-gpus");
  request.provider = line.value("provider");
  request.interface = line.value("interface").value_or("");
  HP_TRY(request.collectives, engine_of(line, request.backend));
  if (request.backend != Backend::Cuda) return request;
  HP_TRY(request.places, cuda_places_of(line));
  return request;
}

}  // namespace harpe::cli
