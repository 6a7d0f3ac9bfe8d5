#include "exec/cuda/profile/measure.h"

namespace harpe::cuda::profile {

Checked<GpuFigures> measure_gpus(const MeasureRequest& request) {
  const auto say = [&](std::string_view stage) {
    if (request.progress) request.progress(stage);
  };
  say("opening GPUs");
  HP_TRY(const std::unique_ptr<Crew> crew, Crew::open(request.crew));
  GpuFigures figures;
  figures.gpu = crew->member(0).device->facts().name;
  figures.gpus = crew->size();
  say("measuring launches and signals");
  HP_TRY(figures.starts, measure_starts(*crew));
  if (crew->size() > 1) {
    say("measuring copies");
    HP_TRY(figures.links, measure_links(*crew, request.quick));
    say("measuring collectives");
    HP_TRY(figures.links->collectives, measure_collectives(*crew, request.quick));
    say("measuring GEMMs beside copies");
    HP_TRY(figures.interference, measure_interference(*crew, request.quick));
  }
  say("measuring GEMMs, attention and other leaves");
  HP_TRY(figures.leaves, measure_leaves(*crew, request.quick, figures.starts.kernel));
  say("measuring libraries");
  Checked<LibraryFigures> libraries = measure_libraries(*crew, request, figures.starts.kernel);
  if (libraries.ok()) {
    figures.libraries = std::move(libraries).value();
  } else {
    figures.no_libraries = render_message(libraries.error());
  }
  return figures;
}

}  // namespace harpe::cuda::profile
