// write_pages FOLDER: writes the pages that page_test.py examines in a browser.
#include <fstream>
#include <string>

#include "tests/support/sample_page.h"

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::string folder = words[1];
  const auto write = [&](const std::string& name, const harpe::ReportPage& page) {
    std::ofstream(folder + "/" + name + ".html", std::ios::binary) << harpe::print_html(page);
  };
  write("sample", harpe::sample_page(8, 8));
  write("large", harpe::sample_page(8, 320));
  write("hostile", harpe::hostile_page());
  harpe::ReportPage bare;
  bare.title = "gemm on tp=2";
  write("bare", bare);
  return 0;
}
