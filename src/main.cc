#include "cli/program.h"

int main(int argc, char** argv) { return orthrus::run_program(argc, argv); }
