#include "exec/cuda/kernels/element_words.h"

namespace harpe::cuda {

using device::Element;

const char* word_of(Element element) {
  switch (element) {
    case Element::BF16:
      return "bf16";
    case Element::F16:
      return "f16";
    case Element::F32:
      return "f32";
  }
  return "";
}

const char* enumerator_of(Element element) {
  switch (element) {
    case Element::BF16:
      return "BF16";
    case Element::F16:
      return "F16";
    case Element::F32:
      return "F32";
  }
  return "";
}

}  // namespace harpe::cuda
