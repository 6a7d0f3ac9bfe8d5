#include "run/host.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "exec/cpu/kernels/gemm.h"

namespace harpe {

std::string describe_host() {
  std::ifstream file("/proc/cpuinfo");
  std::string name = "CPU";
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    name = line.substr(colon + 2);
    break;
  }
  std::erase(name, '"');
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  return name + ", " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
}

std::string name_products(DType dtype, bool uses_libraries) {
  const Products products = uses_libraries ? Products::Libraries : Products::OwnLoops;
  const GemmBackend backend = gemm_backend(dtype, products);
  std::string name(backend.library);
  if (backend.operands != dtype) name += " as " + std::string(print(backend.operands));
  return name;
}

}  // namespace harpe
