// pi-agentctl sudoers: the rule that apply would install, for those who keep their sudo rules elsewhere.
#pragma once

#include <ostream>

namespace pi_agent {

// Prints it once visudo has found nothing wrong; where there is no visudo, a note on `notes` says so. Throws Failure(internal) when visudo
// refuses it.
void run_sudoers(std::ostream &out, std::ostream &notes);

} // namespace pi_agent
