// What the launcher asks the process that gives directories the set-gid bit (runner/as_agent/directory_modes.hpp), and its answer.
#pragma once

#include "common/base/fields.hpp"

namespace pi_agent {

// Comes with one descriptor, of the directory.
struct ModeRequest {
    unsigned mode = 0; // never with set-uid
    static void fields(auto &archive, auto &self) { archive.bounded(self.mode, 03777, "a mode was asked for that no directory gets"); }
};

struct ModeAnswer {
    int error = 0; // errno; 0: it is done
    static void fields(auto &archive, auto &self) { archive.bounded(self.error, 4095, "an impossible error was answered"); }
};

} // namespace pi_agent
