// What the launcher asks of the process that gives directories the set-gid bit (runner/as_agent/directory_modes.hpp), and what that
// answers.
#pragma once

#include "common/base/fields.hpp"

namespace pi_agent {

// With one descriptor, of the directory.
struct ModeRequest {
    unsigned mode = 0; // set-uid is in none
    static void fields(auto &archive, auto &self) { archive.bounded(self.mode, 03777, "a mode was asked for that no directory gets"); }
};

struct ModeAnswer {
    int error = 0; // errno; 0: it is done
    static void fields(auto &archive, auto &self) { archive.bounded(self.error, 4095, "an impossible error was answered"); }
};

} // namespace pi_agent
